"""StableHLO of `transforms.monoids`: a reduction whose region is the function."""

from __future__ import annotations

from funcml.core.avals import shaped
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.lowering.rules_windows import window_attributes
from funcml.transforms import monoids


def _region(emit, combine) -> str:
    """The function as the region of a reduction."""
    inputs = [emit.fresh() for _ in combine.invars]
    heads = ", ".join(f"{name}: {tensor_type(v.aval)}" for name, v in zip(inputs, combine.invars, strict=True))

    def body(emit):
        outs = emit.program(combine, inputs)
        emit.lines.append(f"stablehlo.return {', '.join(outs)} : {', '.join(tensor_type(v.aval) for v in combine.outs)}")

    return f"({{\n^bb0({heads}):\n{emit.region(body)}\n}})"


def _reduction(emit, name, eqn, operands, avals, attributes):
    scalars = [shaped((), a.dtype) for a in avals]
    ins = ", ".join(map(tensor_type, (*avals, *scalars)))
    outs = [v.aval for v in eqn.outvars]
    return emit.ops(
        f'"stablehlo.{name}"({", ".join(operands)}) <{{{attributes}}}> {_region(emit, eqn.params["combine"])} : '
        f"({ins}) -> ({', '.join(map(tensor_type, outs))})",
        len(outs),
    )


@lowers(monoids.reduce_p)
def _reduce(emit, eqn, operands):
    avals = [v.aval for v in eqn.invars[: len(eqn.outvars)]]
    axes = eqn.params["axes"]
    return _reduction(emit, "reduce", eqn, operands, avals, f"dimensions = array<i64{':' if axes else ''} {numbers(axes)}>")


@lowers(monoids.reduce_window_p)
def _reduce_window(emit, eqn, operands):
    count, window = len(eqn.outvars), eqn.params["window"]
    avals = [v.aval for v in eqn.invars[:count]]
    if 0 in (avals[0].size, eqn.outvars[0].aval.size):
        outs = zip(operands[count:], eqn.outvars, strict=True)
        return [emit.broadcast(v, shaped((), o.aval.dtype), o.aval, ()) for v, o in outs]
    return _reduction(emit, "reduce_window", eqn, operands, avals, window_attributes(window))
