"""Examples of a batch that take part in control flow, and those that only stand beside them."""

from __future__ import annotations

from funcml.core.ir import Jaxpr, sub_programs
from funcml.core.tracing import aval_of
from funcml.primitives.axes import broadcast_in_dim, reshape
from funcml.primitives.elementwise import select
from funcml.primitives.indexing import dynamic_slice
from funcml.primitives.reductions import argmax

__all__ = ["has_loop", "live_examples", "select_examples"]


def select_examples(flags, on_true, on_false):
    """`select` by one flag for each example; the mapped axis of both is in front."""
    return select(broadcast_in_dim(flags, aval_of(on_true).shape, (0,)), on_true, on_false)


def live_examples(axis, live, operands) -> list:
    """`operands`, mapped in front, with each example that is not live replaced by one that is (if any is)."""
    place = argmax(live, 0)
    return [select_examples(live, x, _spread(axis, x, place)) for x in operands]


def _spread(axis, x, place):
    shape = aval_of(x).shape
    one = dynamic_slice(x, (place, *[0] * (len(shape) - 1)), (1, *shape[1:]))
    return broadcast_in_dim(reshape(one, shape[1:]), shape, tuple(range(1, len(shape))))


def has_loop(jaxpr: Jaxpr) -> bool:
    """Whether a program contains a loop whose length depends on values: it may not end on operands it was not meant for."""
    return any(
        eqn.primitive.length_varies or any(map(has_loop, sub_programs(eqn.params))) for eqn in jaxpr.eqns
    )
