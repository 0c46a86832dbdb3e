"""StableHLO of `primitives.axes`."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.primitives import axes


@lowers(axes.broadcast_in_dim_p)
def _broadcast_in_dim(emit, eqn, operands):
    (x,), (out,) = eqn.invars, eqn.outvars
    return emit.broadcast(operands[0], x.aval, out.aval, eqn.params["broadcast_dimensions"])


@lowers(axes.reshape_p)
def _reshape(emit, eqn, operands):
    (x,), (out,) = eqn.invars, eqn.outvars
    return emit.op(f"stablehlo.reshape {operands[0]} : ({tensor_type(x.aval)}) -> {tensor_type(out.aval)}")


@lowers(axes.transpose_p)
def _transpose(emit, eqn, operands):
    (x,), (out,) = eqn.invars, eqn.outvars
    types = f"({tensor_type(x.aval)}) -> {tensor_type(out.aval)}"
    return emit.op(f"stablehlo.transpose {operands[0]}, dims = [{numbers(eqn.params['permutation'])}] : {types}")


def reduce_with(operation: str, unit):
    """The rule of a reduction by one StableHLO operation; `unit(dtype)` is its neutral element."""

    def rule(emit, eqn, operands):
        (x,), (out,) = eqn.invars, eqn.outvars
        scalar = shaped((), x.aval.dtype)
        start = emit.constant(unit(x.aval.dtype), scalar)
        return emit.op(
            f"stablehlo.reduce({operands[0]} init: {start}) applies stablehlo.{operation} across dimensions = "
            f"[{numbers(eqn.params['axes'])}] : ({tensor_type(x.aval)}, {tensor_type(scalar)}) -> {tensor_type(out.aval)}"
        )

    return rule


lowers(axes.reduce_sum_p)(reduce_with("add", lambda dtype: 0))
lowers(axes.reduce_or_p)(reduce_with("or", lambda dtype: False if dtypes.is_bool(dtype) else 0))
