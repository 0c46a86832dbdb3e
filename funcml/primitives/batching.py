"""Helpers of batch rules: bringing the mapped axis of each operand to one place."""

from __future__ import annotations

from funcml.core.tracing import aval_of
from funcml.primitives.axes import broadcast_in_dim, moveaxis

__all__ = ["at_front", "spread_at_front"]


def at_front(x, dim):
    """`x` with its mapped axis in front; `x` itself if it is not mapped."""
    return x if dim is None else moveaxis(x, dim, 0)


def spread_at_front(axis, x, dim):
    """`x` with its mapped axis in front; one is made (by broadcasting) if it is not mapped."""
    if dim is not None:
        return moveaxis(x, dim, 0)
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (axis.size, *shape), tuple(range(1, len(shape) + 1)))
