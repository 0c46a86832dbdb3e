"""Helpers of batch rules: bringing the mapped axis of each operand to one place."""

from __future__ import annotations

from funcml.core.avals import ShapedArray
from funcml.core.tracing import aval_of
from funcml.primitives.axes import broadcast_in_dim, moveaxis

__all__ = ["at_front", "batched_aval", "example_aval", "place_axis", "spread_at_front"]


def at_front(x, dim):
    """`x` with its mapped axis in front; `x` itself if it is not mapped."""
    return x if dim is None else moveaxis(x, dim, 0)


def spread_at_front(axis, x, dim):
    """`x` with its mapped axis in front; one is made (by broadcasting) if it is not mapped."""
    if dim is not None:
        return moveaxis(x, dim, 0)
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (axis.size, *shape), tuple(range(1, len(shape) + 1)))


def place_axis(axis, x, dim, wanted):
    """`x` with its mapped axis moved from `dim` to `wanted`, made by broadcasting where it has none; None for both: `x`."""
    if wanted is None:
        if dim is not None:
            raise ValueError("an output that depends on the mapped axis was declared unmapped")
        return x
    return moveaxis(spread_at_front(axis, x, dim), 0, wanted)


def batched_aval(aval: ShapedArray, axis, dim: int | None) -> ShapedArray:
    """`aval` with the mapped axis at `dim`; itself where `dim` is None."""
    return aval if dim is None else aval.update(shape=(*aval.shape[:dim], axis.size, *aval.shape[dim:]))


def example_aval(aval: ShapedArray, dim: int | None) -> ShapedArray:
    """`aval` without its mapped axis."""
    return aval if dim is None else aval.update(shape=(*aval.shape[:dim], *aval.shape[dim + 1 :]))
