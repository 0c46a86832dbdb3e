"""Examples of a batch that take part in control flow, and those that only stand beside them."""

from __future__ import annotations

import warnings

from funcml.control_flow.programs import recorded
from funcml.control_flow.scan import scan
from funcml.core.ir import Jaxpr, Primitive, sub_programs
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, reshape
from funcml.primitives.batching import at_front
from funcml.primitives.elementwise import select
from funcml.primitives.indexing import dynamic_slice
from funcml.primitives.reductions import argmax

__all__ = ["LoopedBatchWarning", "each_example", "has_loop", "live_examples", "looped", "select_examples"]


class LoopedBatchWarning(UserWarning):
    """A batch runs example by example, for want of a batch rule."""


def select_examples(flags, on_true, on_false):
    """`select` by one flag for each example; the mapped axis of both is in front."""
    return select(broadcast_in_dim(flags, aval_of(on_true).shape, (0,)), on_true, on_false)


def live_examples(axis, live, operands) -> list:
    """`operands`, mapped in front, with each example that is not live replaced by one that is (if any is)."""
    if not axis.size:
        return list(operands)
    place = argmax(live, 0)
    return [select_examples(live, x, _spread(axis, x, place)) for x in operands]


def _spread(axis, x, place):
    shape = aval_of(x).shape
    one = dynamic_slice(x, (place, *[0] * (len(shape) - 1)), (1, *shape[1:]))
    return broadcast_in_dim(reshape(one, shape[1:]), shape, tuple(range(1, len(shape))))


def each_example(
    axis, primitive: Primitive, operands, dims, params: dict, name: str, unroll: int = 1
) -> tuple[list, list]:
    """An equation applied to each example of a batch by itself, one after the other: for what has an effect.

    Gives lists, of one result for a primitive of a single one.
    """
    xs = [at_front(x, d) for x, d in zip(operands, dims, strict=True) if d is not None]
    fixed = [x for x, d in zip(operands, dims, strict=True) if d is None]
    n = len(fixed)

    def step(*values):
        held, slices = iter(values[:n]), iter(values[n:])
        out = bind(primitive, [next(held) if d is None else next(slices) for d in dims], params)
        return out if primitive.multiple_results else [out]

    slices = [a.update(shape=a.shape[1:]) for a in map(aval_of, xs)]
    body, captured = recorded(step, [*map(aval_of, fixed), *slices], name)
    outs = scan(body, [*captured, *fixed], [], xs, length=axis.size, unroll=unroll)
    return outs, [0] * len(outs)


_warned: set[str] = set()


def looped(axis, primitive: Primitive, operands, dims, params: dict, name: str, remedy: str) -> tuple[list, list]:
    """`each_example` of a primitive without a batch rule, with a warning the first time that this happens to `name`."""
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"vmap of {name}, which has no batch rule: the {axis.size} examples are computed one after the other. "
            f"For a rule of its own {remedy}",
            LoopedBatchWarning,
            stacklevel=2,
        )
    return each_example(axis, primitive, operands, dims, params, name)


def has_loop(jaxpr: Jaxpr) -> bool:
    """Whether a program contains a loop whose length depends on values: it may not end on operands it was not meant for."""
    return any(
        eqn.primitive.length_varies or any(map(has_loop, sub_programs(eqn.params))) for eqn in jaxpr.eqns
    )
