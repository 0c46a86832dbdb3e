"""A function applied to elements of an array in place.

    scatter_apply : (operand, indices [.., k], scalar -> scalar) -> operand

An element has the function applied once for each window that it is in.
"""

from __future__ import annotations

from funcml.core.avals import shaped
from funcml.core.ir import Jaxpr, intern
from funcml.core.tracing import aval_of, bind, trace
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.gather_scatter import GatherScatterMode, Scatter, as_indices, scatter_params
from funcml.primitives.tangents import scalar_of

__all__ = ["scatter_apply"]


class ScatterApply(Scatter):
    """x with a function applied to each element as many times as there are windows that it is in.

    `update` is the function, a program of one scalar. The updates only tell the shape. No derivative.
    """

    holds_jaxpr = True

    def jvp_rule(self, primals, tangents, **params):
        found = self._all_zero(primals, tangents, params)
        if found is not None:
            return found
        raise NotImplementedError(
            "x.at[idx].apply(f) has no derivative where indices may repeat; pass unique_indices=True if they do not"
        )


scatter_apply_p = ScatterApply("scatter_apply")


def scatter_apply(
    operand,
    scatter_indices,
    func,
    dimension_numbers,
    *,
    update_shape,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
):
    """`operand` with the scalar function `func` applied once for each window that an element is in.

    `update_shape` is the shape that updates of another scatter would have. `func` may use no arrays from outside.
    """
    aval = aval_of(operand)
    params = scatter_params(dimension_numbers, indices_are_sorted, unique_indices, mode)
    update = _scalar_program(func, shaped((), aval.dtype))
    updates = broadcast_in_dim(scalar_of(aval, 0), tuple(update_shape))
    indices = as_indices("scatter_apply", scatter_indices)
    return bind(scatter_apply_p, (operand, indices, updates), {**params, "update": update})


def _scalar_program(func, aval) -> Jaxpr:
    program, captured = trace(lambda x: [func(x)], [aval], "apply")
    if captured:
        raise NotImplementedError(
            "x.at[idx].apply(f) where indices may repeat: f may not use other arrays; pass unique_indices=True if they do not"
        )
    out = program.out_avals[0]
    if out.shape != () or out.dtype != aval.dtype:
        raise TypeError(f"x.at[idx].apply(f): f must map {aval} to the same type, got {out}")
    return intern(program)
