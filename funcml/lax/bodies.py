"""The functions that a user hands to control flow, as programs on flat values.

    flatten_arrays : tree -> values, treedef            every leaf an array or a number
    record         : (function, treedef, avals) -> Body
    settle_carry   : (carry, make) -> Body, carry       the types of a carry brought to a fixpoint
    agree          : bodies -> bodies of the same output types
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes, tree
from funcml.arguments import as_traced, as_value, function_name, is_array_like
from funcml.control_flow.programs import recorded
from funcml.core.avals import ShapedArray
from funcml.core.ir import Jaxpr
from funcml.core.tracing import aval_of, eval_jaxpr
from funcml.lowering.array import asarray
from funcml.primitives.elementwise import convert

__all__ = ["Body", "agree", "array_leaf", "check_carry", "flatten_arrays", "record", "settle_carry"]


class Body(NamedTuple):
    """A recorded function: a program (captured..., leaves of the arguments...) -> leaves of the result."""

    jaxpr: Jaxpr
    captured: list
    out_treedef: Any
    name: str

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the result's leaves."""
        return self.jaxpr.out_avals


def array_leaf(who: str, x, where: str):
    """`x` as an array or a traced value; TypeError, with its place, for what is neither array nor number."""
    if not is_array_like(x):
        raise TypeError(
            f"{who}: {where} is {x!r} of type {type(x).__name__}, but every leaf must be an array or a number; close over it "
            "instead"
        )
    value = as_value(x)
    return asarray(value) if isinstance(value, np.ndarray) else value


def flatten_arrays(who: str, what: str, value) -> tuple[list, Any]:
    """The leaves of a tree of arrays, and its structure."""
    leaves, treedef = tree.flatten(value)
    if not all(map(is_array_like, leaves)):
        for path, leaf in tree.leaves_with_path(value):
            array_leaf(who, leaf, f"{what}{tree.keystr(path)}")
    return [array_leaf(who, x, what) for x in leaves], treedef


def record(who: str, function: Callable, treedef, avals: Sequence[ShapedArray]) -> Body:
    """Records `function(*arguments)`, whose argument tuple has the structure `treedef`."""
    name = function_name(function)
    found: list = []

    def flat(*tracers):
        result = function(*tree.unflatten(treedef, tracers))
        leaves, out_treedef = flatten_arrays(f"{who} of {name}", "the result", result)
        found.append(out_treedef)
        return leaves

    if not callable(function):
        raise TypeError(f"{who} expects a callable, got {function!r} of type {type(function).__name__}")
    jaxpr, captured = recorded(flat, avals, f"{who} of {name}")
    return Body(jaxpr, captured, found[0], name)


def settle_carry(carry: list, make: Callable[[list[ShapedArray]], tuple[Body, Sequence[ShapedArray], Any]]):
    """The body of a step, the carry with its types brought to a fixpoint, and the structure of the carry that a step returns.

    `make(avals)` records the step for a carry of these types; it gives the body, the types of the carry that it returns and
    their structure. A weakly typed part of the carry takes the dtype that the step gives it; any other change is an error that
    names the place.
    """
    avals = [aval_of(x) for x in carry]
    while True:
        body, out_avals, out_treedef = make(avals)
        if len(out_avals) != len(avals):
            return body, carry, out_treedef
        wanted = [_joined(a, b) for a, b in zip(avals, out_avals, strict=True)]
        if wanted == avals:
            break
        avals = wanted
    carry = [
        x if aval_of(x).strong() is a.strong() else convert(x, a.dtype, a.weak_type) for x, a in zip(carry, avals, strict=True)
    ]
    return body, carry, out_treedef


def _joined(before: ShapedArray, after: ShapedArray) -> ShapedArray:
    """The type with which a part of the carry should enter, given how it entered and left; as it was, if nothing helps."""
    if before.shape != after.shape or not before.weak_type or before.strong() is after.strong():
        return before
    if dtypes.is_key(before.dtype) or dtypes.is_key(after.dtype):
        return before
    dtype, weak = dtypes.lattice_join((before.dtype, True), (after.dtype, after.weak_type))
    return before.update(dtype=dtype, weak_type=weak) if dtype == after.dtype else before


def check_carry(who: str, name: str, what: str, carry_treedef, carry_avals, out_treedef, out_avals) -> None:
    """TypeError, with each place, if a step does not give back a carry of the structure and types that it takes."""
    if carry_treedef != out_treedef:
        problem = tree.explain_difference(out_treedef, carry_treedef, "the structure of what it returns")
        raise TypeError(f"{who}: {name} must return a {what} of the structure that it takes; {problem}")
    given = tree.unflatten(carry_treedef, list(carry_avals))
    places = [
        f"`{what}{tree.keystr(path)}` enters as {before} and leaves as {after}"
        for (path, before), after in zip(tree.leaves_with_path(given), out_avals, strict=True)
        if before.strong() is not after.strong()
    ]
    if places:
        raise TypeError(
            f"{who}: {name} must return a {what} of the types that it takes, but {'; '.join(places)}. Convert the initial value "
            f"or the result (`.astype`), so that both are the same"
        )


def agree(who: str, bodies: Sequence[Body]) -> list[Body]:
    """Bodies whose outputs have one structure and one type; weakly typed outputs take the dtype of the others."""
    first, *others = bodies
    for body in others:
        if body.out_treedef != first.out_treedef:
            problem = tree.explain_difference(body.out_treedef, first.out_treedef, f"the structure of what {body.name} returns")
            raise TypeError(f"{who}: all branches must return the same structure as {first.name}; {problem}")
    wanted = [_common(avals) for avals in zip(*[b.out_avals for b in bodies], strict=True)]
    given = tree.unflatten(first.out_treedef, list(range(len(wanted))))
    for path, i in tree.leaves_with_path(given):
        if wanted[i] is None:
            types = ", ".join(f"{b.out_avals[i]} from {b.name}" for b in bodies)
            raise TypeError(f"{who}: all branches must return the same types, but the result{tree.keystr(path)} is {types}")
    return [_converted(b, [w for w in wanted if w is not None]) for b in bodies]


def _common(avals: Sequence[ShapedArray]) -> ShapedArray | None:
    if len({a.shape for a in avals}) > 1:
        return None
    if len({a.strong() for a in avals}) == 1:
        return avals[0].update(weak_type=all(a.weak_type for a in avals))
    if any(dtypes.is_key(a.dtype) for a in avals) or len({a.dtype for a in avals if not a.weak_type}) > 1:
        return None
    dtype, weak = dtypes.lattice_join(*[(a.dtype, a.weak_type) for a in avals])
    strong = next((a.dtype for a in avals if not a.weak_type), dtype)
    return avals[0].update(dtype=dtype, weak_type=weak) if strong == dtype else None


def _converted(body: Body, wanted: Sequence[ShapedArray]) -> Body:
    if all(a.strong() is w.strong() for a, w in zip(body.out_avals, wanted, strict=True)):
        return body

    def flat(*values):
        outs = [as_traced(x) for x in eval_jaxpr(body.jaxpr, values)]
        return [
            x if aval_of(x).strong() is w.strong() else convert(x, w.dtype, w.weak_type)
            for x, w in zip(outs, wanted, strict=True)
        ]

    return body._replace(jaxpr=recorded(flat, body.jaxpr.in_avals, body.name)[0])
