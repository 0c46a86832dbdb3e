"""Reading the static arguments of functions: axes, shapes, dtypes, and what must be a known value.

    axis_of   : (name, axis, ndim) -> int
    axes_of   : (name, axis | axes | None, ndim) -> tuple of ints
    shape_of  : (name, int | ints) -> shape
    dtype_of  : (dtype-like | None, default) -> dtype
    concrete  : (name, what, x) -> NumPy array or number
"""

from __future__ import annotations

import operator

import numpy as np

from funcml import dtypes
from funcml.core.errors import ConcretizationError
from funcml.core.tracing import Tracer, value_of

__all__ = ["axes_of", "axis_of", "concrete", "dtype_or", "index_of", "length_of", "no_out", "no_sharding", "shape_of"]


_SHAPES = "Shapes must be 1D sequences of concrete values of integer type"


def index_of(name: str, what: str, x) -> int:
    """A static int; TypeError names the argument."""
    try:
        return operator.index(x)
    except ConcretizationError:
        raise
    except TypeError:
        raise TypeError(f"{name} expects an int as {what}, got {x!r} of type {type(x).__name__}") from None


def axis_of(name: str, axis, ndim: int) -> int:
    """An axis as a non-negative int; ValueError if there is none such.

    >>> axis_of("sum", -1, 3)
    2
    """
    axis = index_of(name, "axis", axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is out of bounds for an array of {ndim} dimensions")
    return axis % ndim


def axes_of(name: str, axis, ndim: int) -> tuple[int, ...]:
    """One axis, several or None (all) as distinct non-negative ints.

    >>> axes_of("sum", None, 2), axes_of("sum", (0, -1), 3)
    ((0, 1), (0, 2))
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list):
        return (axis_of(name, axis, ndim),)
    axes = tuple([axis_of(name, a, ndim) for a in axis])
    if len(set(axes)) != len(axes):
        argument = "'axes' of" if name.startswith("lax.") else "'axis':"
        raise ValueError(f"{name}: repeated axis, duplicate value in {argument} {tuple(axis)}")
    return axes


def shape_of(name: str, shape) -> tuple[int, ...]:
    """A shape given as an int or a sequence of ints; ValueError for negative lengths."""
    if isinstance(shape, tuple | list):
        shape = tuple([length_of(name, n) for n in shape])
    elif np.ndim(shape) == 0:
        shape = (length_of(name, shape),)
    else:
        shape = tuple([length_of(name, n) for n in np.asarray(shape)])
    if any(n < 0 for n in shape):
        raise ValueError(f"{name}: lengths must not be negative, got the shape {shape}")
    return shape


def length_of(name: str, n) -> int:
    try:
        return operator.index(n)
    except ConcretizationError as error:
        raise type(error)(
            f"{name}: {_SHAPES}, got a traced value.\n"
            f"If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions. {error}"
        ) from None
    except TypeError:
        found = f"{n!r} of type {type(n).__name__}"
        raise TypeError(f"{name}: {_SHAPES}, got {found}") from None


def dtype_or(dtype, default):
    """The dtype that was asked for, or else the default."""
    return default if dtype is None else dtypes.canonical(dtype)


def concrete(name: str, what: str, x, advice: str = "make it a Python or NumPy value, or a static argument"):
    """`x` as a NumPy array, where it decides the shape of the result and so must be known; `advice` says what to do else."""
    if type(x) is Tracer:
        value = value_of(x)
        if value is None:
            raise ConcretizationError(
                f"{name}: Abstract tracer value encountered where concrete value is expected. It arose in "
                f"{_place(name, what)}, which decides the shape of the result, so its value must be known, but it is a traced "
                f"array {x.aval} of {x.frame.name}; {advice}"
            )
        x = value
    return np.asarray(x)


def _place(name: str, what: str) -> str:
    """An argument by its name, or what is described in words."""
    return f"the {name} argument {what!r}" if what.isidentifier() else what


def no_out(name: str, out) -> None:
    """Raises for the argument `out`, which arrays that cannot be written to have no use for."""
    if out is not None:
        raise NotImplementedError(f"{name}: arrays are immutable, so there is no `out`; use the result: x = {name}(...)")


def no_sharding(name: str, out_sharding) -> None:
    """Raises for a sharding of the result, which XLA chooses here."""
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding must be None, got {out_sharding}; move the result with device_put")
