"""Calls of the host: a Python function of NumPy arrays in the middle of a compiled program.

    pure_callback[function, out_avals, vmap_method] xs -> ys        no effect: may run any number of times, or not at all
    io_callback[function, out_avals] xs -> ys                       runs once, where it stands; ordered_callback in order
    debug_callback[function] xs ->                                  looks on: no derivative, each example of a batch by itself

`function` takes arrays and gives a tuple of arrays of `out_avals`; `HostFunction` sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from funcml import tree
from funcml.control_flow.lanes import each_example
from funcml.core.ir import Primitive
from funcml.core.tracing import bind
from funcml.primitives.axes import expand_dims, moveaxis
from funcml.primitives.batching import spread_at_front

__all__ = [
    "VMAP_METHODS",
    "HostFunction",
    "debug_callback_p",
    "io_callback_p",
    "ordered_callback_p",
    "ordered_debug_callback_p",
    "pure_callback_p",
]

VMAP_METHODS = ("sequential", "expand_dims", "broadcast_all")


class HostFunction:
    """A user's function on flat arrays: equal to another of the same function and structures."""

    __slots__ = ("function", "who", "in_treedef", "out_treedef")

    def __init__(self, function: Callable, who: str, in_treedef: Any, out_treedef: Any):
        self.function, self.who, self.in_treedef, self.out_treedef = function, who, in_treedef, out_treedef

    def _key(self) -> tuple:
        function = self.function if isinstance(self.function, Hashable) else id(self.function)
        return function, self.who, self.in_treedef, self.out_treedef

    def __eq__(self, other) -> bool:
        return isinstance(other, HostFunction) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def call(self, out_avals, *arrays) -> tuple:
        """The results, checked: XLA would read past the end of a result that is too small."""
        args, kwargs = tree.unflatten(self.in_treedef, arrays)
        result = self.function(*args, **kwargs)
        if self.out_treedef is None:
            return ()
        leaves, treedef = tree.flatten(result)
        if treedef != self.out_treedef:
            problem = tree.explain_difference(treedef, self.out_treedef, "the structure of what it returned")
            raise TypeError(f"{self.who} of {self}: {problem}")
        places = [tree.keystr(path) for path, _ in tree.leaves_with_path(result)]
        return tuple([self._checked(x, a, place) for x, a, place in zip(leaves, out_avals, places, strict=True)])

    def _checked(self, x, aval, place: str) -> np.ndarray:
        found = np.asarray(x)
        if found.shape != aval.shape or not np.can_cast(found.dtype, aval.dtype, "same_kind"):
            raise TypeError(
                f"{self.who} of {self}: the result{place} is {found.dtype}{list(found.shape)}, but it was declared as {aval}"
            )
        return np.ascontiguousarray(found, aval.dtype).reshape(aval.shape)


class _HostCall(Primitive):
    """What the calls share."""

    multiple_results = True

    def type_rule(self, *avals, function, out_avals, **params):
        return out_avals

    def jvp_rule(self, primals, tangents, *, function, **params):
        raise NotImplementedError(
            f"{function.who} of {function} has no derivative: what runs on the host cannot be recorded. Give pure_callback "
            "a `vjp=`, wrap the call in `custom_jvp` or `custom_vjp`, or cut it off with `lax.stop_gradient` on its arguments"
        )


class PureCallback(_HostCall):
    """See the module; `vmap_method` says what a batch does."""

    def batch_rule(self, axis, operands, dims, *, function, out_avals, vmap_method):
        params = {"function": function, "out_avals": out_avals, "vmap_method": vmap_method}
        if vmap_method is None:
            raise NotImplementedError(
                f"vmap of {function.who} of {function}: say what the function does with a batch, by vmap_method='sequential' "
                "(called for each example), 'expand_dims' or 'broadcast_all' (called once, with a leading axis)"
            )
        if vmap_method == "sequential":
            return each_example(axis, self, operands, dims, params, f"{params['function'].who} of a batch")
        if vmap_method == "broadcast_all":
            operands = [spread_at_front(axis, x, d) for x, d in zip(operands, dims, strict=True)]
        else:
            operands = [expand_dims(x, (0,)) if d is None else moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
        params["out_avals"] = tuple([a.update(shape=(axis.size, *a.shape)) for a in out_avals])
        return bind(self, operands, params), [0] * len(out_avals)


class IoCallback(_HostCall):
    """See the module."""

    has_effect = True

    def batch_rule(self, axis, operands, dims, **params):
        if self.is_ordered:
            raise NotImplementedError(f"vmap of an ordered {params['function'].who}: the examples of a batch have no order")
        return each_example(axis, self, operands, dims, params, f"{params['function'].who} of a batch")


class DebugCallback(_HostCall):
    """See the module."""

    has_effect = True

    def jvp_rule(self, primals, tangents, **params):
        bind(self, primals, params)
        return [], []

    def transpose_rule(self, cts, *operands, **params):
        return [None] * len(operands)

    def batch_rule(self, axis, operands, dims, **params):
        return each_example(axis, self, operands, dims, params, f"{params['function'].who} of a batch")


class OrderedIoCallback(IoCallback):
    """One that runs after all ordered calls before it."""

    is_ordered = True


class OrderedDebugCallback(DebugCallback):
    """One that runs after all ordered calls before it."""

    is_ordered = True


pure_callback_p = PureCallback("pure_callback")
io_callback_p = IoCallback("io_callback")
ordered_callback_p = OrderedIoCallback("ordered_callback")
debug_callback_p = DebugCallback("debug_callback")
ordered_debug_callback_p = OrderedDebugCallback("ordered_debug_callback")
