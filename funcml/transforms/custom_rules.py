"""What `custom_jvp` and `custom_vjp` share: resolving arguments, and closed-over tracers.

A custom rule is normally run when a pass asks for it. Then the frames that its closure may point into can have ended; if the
rule closes over tracers (`closes_over_tracers`), it is therefore recorded at the call, while they are alive.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcml import dtypes, tree
from funcml.core.avals import ShapedArray
from funcml.core.ir import Literal
from funcml.core.linear import Zero
from funcml.core.tracing import Tracer, aval_of, bind
from funcml.primitives.axes import broadcast_in_dim_p
from funcml.primitives.elementwise import convert
from funcml.primitives.tangents import instantiate

__all__ = ["Constant", "SplitArguments", "check_leaves", "closes_over_tracers", "recording", "rule_argument"]


class Constant:
    """A value that is part of a key: compared by value where it can be, by identity where not."""

    __slots__ = ("value", "_key")

    def __init__(self, value):
        self.value = value
        try:
            self._key = (type(value), value)
            hash(self._key)
        except TypeError:
            self._key = (type(value), id(value))

    def __eq__(self, other) -> bool:
        return isinstance(other, Constant) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class SplitArguments:
    """The arguments of one call: positional after defaults, with the `nondiff` ones set apart."""

    def __init__(self, function: Callable, nondiff: Sequence[int], args: tuple, kwargs: dict, what: str):
        args = _positional(function, args, kwargs, what)
        self.count = len(args)
        self.nondiff_at = tuple(sorted(i % self.count if -self.count <= i < self.count else i for i in nondiff))
        if any(i >= self.count for i in self.nondiff_at):
            raise ValueError(f"{what}: nondiff_argnums={tuple(nondiff)}, but the call has {self.count} arguments")
        self.nondiff = tuple([args[i] for i in self.nondiff_at])
        self.diff = tuple([a for i, a in enumerate(args) if i not in self.nondiff_at])
        self.leaves, self.treedef = tree.flatten(self.diff)

    def merged(self, leaves: Sequence) -> list:
        """All arguments in order, with these leaves for the differentiable ones."""
        diff = iter(tree.unflatten(self.treedef, leaves))
        nondiff = dict(zip(self.nondiff_at, self.nondiff, strict=True))
        return [nondiff[i] if i in nondiff else next(diff) for i in range(self.count)]


def _positional(function, args, kwargs, what) -> tuple:
    """The arguments by position, defaults filled in."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        if kwargs:
            raise TypeError(f"{what}: pass the arguments by position; the signature of the function is not known") from None
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{what}: the arguments {sorted(bound.kwargs)} are keyword-only; rules take arguments by position: make them so"
        )
    return bound.args


def closes_over_tracers(*functions) -> bool:
    """Whether a function's closure, bound arguments or defaults hold a tracer (looked for in trees and nested functions)."""
    seen: set[int] = set()

    def holds(x, depth: int) -> bool:
        if isinstance(x, Tracer):
            return True
        if depth == 0 or id(x) in seen:
            return False
        seen.add(id(x))
        if isinstance(x, functools.partial):
            return any(holds(y, depth - 1) for y in (x.func, *x.args, *x.keywords.values()))
        if inspect.ismethod(x):
            return holds(x.__func__, depth - 1) or holds(getattr(x.__self__, "__dict__", None), depth - 1)
        if inspect.isfunction(x):
            cells = [c.cell_contents for c in x.__closure__ or () if _is_filled(c)]
            return any(holds(y, depth - 1) for y in (*cells, *(x.__defaults__ or ())))
        if isinstance(x, dict | list | tuple):
            return any(holds(y, depth - 1) for y in (x.values() if isinstance(x, dict) else x))
        if hasattr(x, "__wrapped__"):
            return holds(x.__wrapped__, depth - 1)
        return False

    return any(holds(f, 5) for f in functions)


def _is_filled(cell) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


class recording:
    """Marks a custom function as being recorded in this thread: a call of it inside its own rule is not recorded again."""

    _active = threading.local()

    def __init__(self, function):
        self.function = function

    @classmethod
    def is_on(cls, function) -> bool:
        """Whether the rule of `function` is being recorded."""
        return function in getattr(cls._active, "functions", ())

    def __enter__(self):
        self._active.functions = [*getattr(self._active, "functions", ()), self.function]

    def __exit__(self, *exc):
        self._active.functions.pop()


def rule_argument(x):
    """An operand, tangent or cotangent as a user's rule receives it: an array also where it is a literal or a symbolic zero.

    A zero of float0 is a NumPy array.
    """
    if type(x) is Literal:
        return bind(broadcast_in_dim_p, (x,), {"shape": (), "broadcast_dimensions": ()})
    return instantiate(x)


def check_leaves(found: Any, expected: Sequence[ShapedArray], treedef, what: str, like: str) -> list:
    """The leaves of what a rule returned, checked against the types it must have; None and float0 become Zero."""
    leaves, found_treedef = tree.flatten(found, is_leaf=lambda x: x is None)
    if found_treedef != treedef and len(leaves) != len(expected):
        raise TypeError(f"{what} must have the structure of {like}. {tree.explain_difference(found_treedef, treedef, 'it')}")
    return [_checked_leaf(x, aval, what, like) for x, aval in zip(leaves, expected, strict=True)]


def _checked_leaf(x, aval: ShapedArray, what: str, like: str):
    if x is None or type(x) is Zero or aval.dtype == dtypes.float0 or getattr(x, "dtype", None) == dtypes.float0:
        return Zero(aval)
    given = aval_of(x)
    if given.shape != aval.shape or (given.dtype != aval.dtype and not given.weak_type):
        raise TypeError(f"{what} must have the types of {like}: expected {aval}, got {given}")
    if given.dtype != aval.dtype:
        return convert(x, aval.dtype)
    return np.asarray(x, aval.dtype)[()] if not hasattr(x, "aval") and aval.shape == () else x

