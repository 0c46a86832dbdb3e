"""From a user's call to flat values and back: what `jit`, `grad`, `vmap` and their like share.

    flatten_call  : (function, args, kwargs)  -> Call            leaves, and which of them are traced
    trace_call    : (Call, avals)             -> Traced          the program of the call, and the tree of its result
    evaluate      : (jaxpr, values)           -> values          inlined inside a trace, run outside

A leaf that is not an array (a string, a function, a Python int that is not mapped or differentiated) stays what it is
and is handed to the function unchanged.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes, tree
from funcml.core.avals import ShapedArray, shaped
from funcml.core.check import checked
from funcml.core.ir import Jaxpr, Literal, intern
from funcml.core.tracing import Tracer, aval_of, bind, current_frame, eval_jaxpr, trace
from funcml.core.values import Array
from funcml.lowering import pjrt
from funcml.lowering.array import DeviceArray, asarray
from funcml.lowering.execute import run_program
from funcml.primitives.axes import broadcast_in_dim_p

__all__ = [
    "Call",
    "Traced",
    "argument_name",
    "as_traced",
    "as_value",
    "evaluate",
    "flatten_call",
    "describe_value",
    "function_name",
    "is_array_like",
    "normalise_argnums",
    "origin_of",
    "positive_int",
    "trace_call",
    "with_exact_scalars",
]

_PYTHON_SCALARS = (float, int, bool, complex)


class Call(NamedTuple):
    """A function applied to a flattened argument list; `traced[i]` tells whether leaf i becomes a tracer."""

    function: Callable
    leaves: list
    treedef: Any
    traced: list[bool]
    transform: str

    @property
    def name(self) -> str:
        """`grad of loss`."""
        return f"{self.transform} of {function_name(self.function)}"

    def inputs(self) -> list:
        """The values of the traced leaves."""
        return [x for x, t in zip(self.leaves, self.traced, strict=True) if t]


class Traced(NamedTuple):
    """What tracing a call gave: a program (captured..., traced leaves...) -> array outputs.

    `opaque` holds the leaves that the function returned; where the program has an output a marker stands, anything else is
    an output that is no array.
    """

    jaxpr: Jaxpr
    captured: list
    out_treedef: Any
    opaque: list

    def rebuild(self, values: Sequence) -> Any:
        """The function's result with these values for its array outputs."""
        rest = iter(values)
        return tree.unflatten(self.out_treedef, [next(rest) if x is _ARRAY else x for x in self.opaque])


class _Array:
    def __repr__(self) -> str:
        return "<array>"


_ARRAY = _Array()


def function_name(function: Callable) -> str:
    """The name to show for a function."""
    inner = getattr(function, "func", function)
    return getattr(inner, "__name__", None) or type(inner).__name__


def positive_int(who: str, name: str, value) -> int | None:
    """An option of `who` that is a positive int, known when the function is recorded, or None.

    >>> positive_int("vmap", "chunk_size", 4)
    4
    """
    if value is None:
        return None
    if isinstance(value, bool) or isinstance(value, Tracer) or not hasattr(value, "__index__"):
        raise TypeError(f"{who}: {name} must be an int or None, got {value!r}; it must be known when the function is recorded")
    if operator.index(value) < 1:
        raise ValueError(f"{who}: {name} must be positive, got {operator.index(value)}")
    return operator.index(value)


def is_array_like(x) -> bool:
    """Whether `x` can be an operand: an array of ours, of NumPy or of JAX, or a number."""
    return (
        isinstance(x, Array | np.ndarray | np.generic)
        or type(x) in _PYTHON_SCALARS
        or hasattr(x, "__jax_array__")
        or pjrt.is_foreign_array(x)
    )


def as_value(x):
    """`x` as a value that can be traced or run: tracers, arrays, NumPy values and scalars as they are."""
    if isinstance(x, Array | np.generic) or type(x) in _PYTHON_SCALARS:
        return x
    if isinstance(x, np.ndarray):
        if x.dtype.kind in "OSUMm":
            return asarray(x)
        return x
    return asarray(x)


_WIDE = frozenset((dtypes.int64, dtypes.uint64, dtypes.float64, dtypes.complex128))


def with_exact_scalars(leaves: list) -> list:
    """`leaves`, where a Python number beside a 64-bit array keeps its 64 bits (and its weak type): nothing is narrowed."""
    if not any(type(x) in (float, int, complex) for x in leaves):
        return leaves
    if not any(getattr(x, "dtype", None) in _WIDE for x in leaves):
        return leaves
    return [_exact(x) if type(x) in (float, int, complex) else x for x in leaves]


def _exact(x):
    dtype = {float: dtypes.float64, int: dtypes.int64, complex: dtypes.complex128}[type(x)]
    aval = shaped((), dtype, True)
    if current_frame() is not None:
        return Literal(x, aval)
    return DeviceArray(asarray(np.asarray(x, dtype))._buffer, aval)


def flatten_call(function: Callable, args: tuple, kwargs: dict, transform: str) -> Call:
    """The call with every leaf that is an array or a float marked as traced; ints, bools and other objects are not."""
    if not callable(function):
        raise TypeError(f"{transform} expects a function, got {function!r} of type {type(function).__name__}")
    leaves, treedef = tree.flatten((args, kwargs))
    traced = [is_array_like(x) and type(x) not in (int, bool) for x in leaves]
    exact = iter(with_exact_scalars([as_value(x) for x, t in zip(leaves, traced, strict=True) if t]))
    leaves = [next(exact) if t else x for x, t in zip(leaves, traced, strict=True)]
    return Call(function, leaves, treedef, traced, transform)


def trace_call(
    call: Call, avals: Sequence[ShapedArray], values: Sequence | None = None, interned: bool | None = None
) -> Traced:
    """Traces the function on tracers of these avals in the place of the traced leaves.

    The program is interned, so that what passes make of it is found again; by default not inside another trace, where the result
    becomes part of that one.
    """
    result: list = []

    def flat(*tracers):
        rest = iter(tracers)
        leaves = [next(rest) if t else x for x, t in zip(call.leaves, call.traced, strict=True)]
        args, kwargs = tree.unflatten(call.treedef, leaves)
        outs, treedef = tree.flatten(call.function(*args, **kwargs))
        arrays = [is_array_like(x) for x in outs]
        result.extend([treedef, [_ARRAY if a else x for x, a in zip(outs, arrays, strict=True)]])
        return [as_value(x) for x, a in zip(outs, arrays, strict=True) if a]

    jaxpr, captured = trace(flat, avals, call.name, values)
    checked(jaxpr)
    if interned or (interned is None and current_frame() is None):
        jaxpr = intern(jaxpr)
    return Traced(jaxpr, captured, *result)


def evaluate(jaxpr: Jaxpr, values: Sequence, origin=None) -> list:
    """The outputs of a program: recorded in the current trace if there is one, run at once if not."""
    if current_frame() is not None:
        return [as_traced(x) for x in eval_jaxpr(jaxpr, values)]
    return run_program(jaxpr, values, origin)


def as_traced(x):
    """`x`, made a value of the current program if it is a literal."""
    if type(x) is not Literal:
        return x
    return bind(broadcast_in_dim_p, (x,), {"shape": (), "broadcast_dimensions": ()})


def origin_of(function: Callable):
    """What tells one traced function from another for the count of compile misses: its code, if it has any."""
    inner = getattr(function, "func", function)
    return getattr(inner, "__code__", None) or id(inner)


def argument_name(call: Call, index: int) -> str:
    """How the user would write leaf `index` of the call: `params['w']`."""
    args, kwargs = tree.unflatten(call.treedef, list(range(len(call.leaves))))
    for path, i in tree.leaves_with_path((args, kwargs)):
        if i == index:
            return _spell_path(call.function, path)
    return f"leaf {index}"


def _spell_path(function, path) -> str:
    which, first, *rest = path
    if which.idx == 1:
        return f"{first.key}{tree.keystr(tuple(rest))}"
    name = _parameter_name(function, first.idx)
    return f"{name}{tree.keystr(tuple(rest))}"


def _parameter_name(function, position: int) -> str:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"argument {position}"
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return positional[position].name if position < len(positional) else f"argument {position}"


def normalise_argnums(argnums, count: int, transform: str, what: str = "argnums") -> tuple[int, ...]:
    """Non-negative argument numbers; raises if one is not an int or out of range of `count` positional arguments."""
    numbers = (argnums,) if not isinstance(argnums, tuple | list | set | range) else tuple(argnums)
    found = []
    for n in numbers:
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise TypeError(f"{transform}: {what} must be an int or a tuple of ints, got {argnums!r}")
        n = n.__index__()
        if not -count <= n < count:
            raise ValueError(
                f"{transform}: {what}={argnums!r} names argument {n}, but the call has {count} positional argument"
                f"{'s' * (count != 1)}; arguments to differentiate or mark must be passed by position"
            )
        found.append(n % count)
    if len(set(found)) != len(found):
        raise ValueError(f"{transform}: {what}={argnums!r} names an argument twice")
    return tuple(found)


def describe_value(x) -> str:
    """`f32[3]`, or the type's name for what is no array."""
    if is_array_like(x):
        return str(aval_of(as_value(x)))
    return type(x).__name__
