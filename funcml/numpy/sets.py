"""Arrays as sets: their different elements, and what two of them have in common or apart.

How many elements a result has depends on the values, so arrays must be known, unless `size` fixes it: more are cut off, and
missing ones filled up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, concrete, index_of
from funcml.numpy.promotion import as_array, exact, literal, operand, promote_dtypes, settle, spread
from funcml.numpy.rows import fill
from funcml.numpy.selection import nonzero, take
from funcml.numpy.sorting import searchsorted
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import reductions as red
from funcml.primitives import shaping
from funcml.primitives import sorting as order

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]


# ---- different elements ------------------------------------------------------------------------------------------


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Array
    inverse_indices: Array


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


def unique(ar, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis=None, *,
           equal_nan: bool = True, size: int | None = None, fill_value=None, sorted: bool = True):
    """The different elements of `ar` (slices along `axis`) in order; also where each stands first, which each element is,
    and how many there are of it, if asked for.

    `size` fixes how many are given, so that `ar` may be traced; missing ones are `fill_value` (the least element).

    >>> unique(np.array([3, 1, 3]))
    Array([1, 3], dtype=int64)
    """
    ar = as_array(operand("unique", ar))
    wanted = (bool(return_index), bool(return_inverse), bool(return_counts))
    axis = None if axis is None else axis_of("unique", axis, ar.ndim)
    if size is not None:
        size = index_of("unique", "size", size)
        count = ar.size if axis is None else ar.shape[axis]
        if not count and size and fill_value is None:
            raise ValueError(f"unique of {ar.aval}: there is no element to fill up to size={size} with; give fill_value")
        outs = _unique(ar, exact(fill_value), size, axis, *wanted, bool(equal_nan), dtypes.default_int())[:-1]
        return outs[0] if len(outs) == 1 else outs
    host = concrete("unique", "the array (without `size`)", ar)
    if ar.size and (axis is not None or host.dtype.kind not in "biufc"):
        return _known_slices(as_array(host), axis, wanted, bool(equal_nan))
    found: Any = np.unique(host, *wanted, axis, equal_nan=equal_nan)  # type: ignore[call-overload]
    if not isinstance(found, tuple):
        return asarray(found)
    return (asarray(found[0]), *[asarray(x, dtypes.default_int()) for x in found[1:]])


def _known_slices(ar, axis: int | None, wanted, equal_nan: bool):
    """The different slices (elements) of a known array: all places are computed, and those that hold something kept."""
    size = ar.size if axis is None else ar.shape[axis]
    values, *rest, count = _unique(ar, None, size, axis, *wanted, equal_nan, dtypes.default_int())
    values = shaping.slice_in_dim(values, 0, int(count), axis=axis or 0)
    names = [name for name, asked in zip(("index", "inverse", "counts"), wanted, strict=True) if asked]
    kept = [x if name == "inverse" else shaping.slice_in_dim(x, 0, int(count)) for name, x in zip(names, rest, strict=True)]
    return (values, *kept) if kept else values


# Rows in lexicographic order; a row that differs from the one before it starts a run of equal ones.
@fused(static=("size", "axis", "with_index", "with_inverse", "with_counts", "equal_nan", "dtype"))
def _unique(ar, fill_value, size, axis, with_index, with_inverse, with_counts, equal_nan, dtype):
    moved = ax.reshape(ar, (ar.size,)) if axis is None else ax.moveaxis(ar, axis, 0)
    n = moved.shape[0]
    starts, came_from = _runs(ax.reshape(moved, (n, math.prod(moved.shape[1:]))), equal_nan, dtype)
    (ends,) = nonzero(starts, size=size + 1, fill_value=n)
    place, ends = shaping.slice_in_dim(ends, 0, size), shaping.slice_in_dim(ends, 1, size + 1)
    present = ew.lt(place, fill(place, n))
    first = take(came_from, place, mode="clip") if n else fill(place, 0)
    first = ew.select(present, first, spread(shaping.slice_in_dim(first, 0, min(1, size)), (size,)))
    filled = moved if n else ax.broadcast_in_dim(moved.dtype.type(0), (1, *moved.shape[1:]))
    values = take(filled, first, 0, mode="clip")
    if fill_value is not None:
        filler = spread(ew.convert(as_array(fill_value), ar.dtype), values.shape)
        values = ew.select(ax.broadcast_in_dim(present, values.shape, (0,)), values, filler)
    outs = [values if axis is None else ax.moveaxis(values, 0, axis)]
    if with_index:
        outs.append(first)
    if with_inverse:
        number = ew.sub(red.cumsum(ew.convert(starts, dtype), 0), 1)
        _, inverse = order.sort((came_from, number), 0)
        outs.append(ax.reshape(inverse, ar.shape) if axis is None else inverse)
    if with_counts:
        outs.append(ew.sub(ends, place))
    return (*outs, ax.reduce_sum(ew.convert(starts, dtype), (0,)))


def _runs(rows, equal_nan: bool, dtype):
    """Where a run of equal rows starts when they are in order, and which row stands at each place then: both [n]."""
    n, width = rows.shape
    if not width:
        return ew.eq(shaping.iota(dtype, (n,)), 0), shaping.iota(dtype, (n,))
    columns = [ax.squeeze(c, (1,)) for c in shaping.split(rows, (1,) * width, 1)]
    if equal_nan and dtypes.is_complex(rows.dtype):
        columns = [ew.select(ew.ne(c, c), fill(c, complex(math.nan, math.nan)), c) for c in columns]
    *columns, came_from = order.sort((*columns, shaping.iota(dtype, (n,))), 0, True, width)
    starts = ew.eq(shaping.iota(dtype, (max(n - 1, 0),)), -1)
    for column in columns:
        before, behind = _neighbours(column)
        differs = ew.ne(before, behind)
        if equal_nan and dtypes.is_inexact(rows.dtype):
            differs = ew.and_(differs, ew.not_(ew.and_(ew.ne(before, before), ew.ne(behind, behind))))
        starts = ew.or_(starts, differs)
    return shaping.pad(starts, np.True_, [(min(1, n), 0, 0)]), came_from


def _neighbours(x):
    """x_i and x_{i+1} of a vector."""
    n = x.shape[0]
    return shaping.slice_in_dim(x, 0, max(n - 1, 0)), shaping.slice_in_dim(x, min(1, n), n)


def unique_values(x, /, *, size: int | None = None, fill_value=None) -> Array:
    """The different elements, each nan for itself."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_counts(x, /, *, size: int | None = None, fill_value=None):
    """The different elements and how many there are of each."""
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x, /, *, size: int | None = None, fill_value=None):
    """The different elements and which of them each element is."""
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_all(x, /, *, size: int | None = None, fill_value=None):
    """The different elements, where each stands first, which of them each element is, and how many there are of each."""
    return UniqueAll(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


# ---- membership --------------------------------------------------------------------------------------------------

_METHODS = ("auto", "compare_all", "binary_search", "sort")
_COMPARE_ALL_UP_TO = 64


def isin(element, test_elements, assume_unique: bool = False, invert: bool = False, *, method: str = "auto") -> Array:
    """Whether each element of the first array is one of the second (is none, with `invert`); nan is none.

    `method` and `assume_unique` make no difference to the result.

    >>> isin(np.array([1, 2, 3]), np.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    if method not in _METHODS:
        raise ValueError(f"isin: method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    return _isin(*settle("isin", element, test_elements), bool(invert), method)


@fused(static=("invert", "method"))
def _isin(x, elements, invert, method):
    x, elements = [as_array(v) for v in promote_dtypes("isin", x, elements)]
    n = elements.size
    elements = ax.reshape(elements, (n,))
    if not n:
        return fill(ew.ne(x, x), invert)
    if method == "compare_all" or (method == "auto" and n <= _COMPARE_ALL_UP_TO):
        shape = (*x.shape, n)
        found = ax.reduce_or(ew.eq(ax.broadcast_in_dim(x, shape, tuple(range(x.ndim))), spread(elements, shape)), (x.ndim,))
    else:
        ordered = order.sort(elements, 0)
        place = searchsorted(ordered, x)
        found = ew.eq(take(ordered, ew.min(place, fill(place, n - 1)), mode="promise_in_bounds"), x)
    return ew.not_(found) if invert else found


# ---- two sets ----------------------------------------------------------------------------------------------------


def _pair(name: str, ar1, ar2) -> list[Array]:
    """Both as vectors of one dtype."""
    arrays = [as_array(x) for x in promote_dtypes(name, ar1, ar2)]
    return [ax.reshape(x, (x.size,)) for x in arrays]


def _known(name: str, *arrays) -> list[np.ndarray]:
    return [concrete(name, "an array (without `size`)", x) for x in arrays]


def union1d(ar1, ar2, *, size: int | None = None, fill_value=None) -> Array:
    """The elements of either array, each once, in order.

    `size` fixes how many are given; missing ones are `fill_value` (the least element).

    >>> union1d(np.array([1, 3]), np.array([2, 1]))
    Array([1, 2, 3], dtype=int64)
    """
    return unique(shaping.concatenate(_pair("union1d", ar1, ar2), 0), size=size, fill_value=fill_value)


def intersect1d(ar1, ar2, assume_unique: bool = False, return_indices: bool = False, *, size: int | None = None,
                fill_value=None):
    """The elements that both arrays have, each once, in order; with `return_indices` also where each stands first in them.

    `size` fixes how many are given; missing ones are `fill_value` (the least common element), their indices the lengths.

    >>> intersect1d(np.array([1, 3, 2]), np.array([2, 1]))
    Array([1, 2], dtype=int64)
    """
    a, b = _pair("intersect1d", ar1, ar2)
    if size is not None:
        size = index_of("intersect1d", "size", size)
        outs = _intersection(a, b, exact(fill_value), size, dtypes.default_int())
        return outs if return_indices else outs[0]
    known = _known("intersect1d", a, b)
    found = np.intersect1d(*known, assume_unique, return_indices)  # type: ignore[call-overload]
    if not return_indices:
        return asarray(found)
    return (asarray(found[0]), *[asarray(x, dtypes.default_int()) for x in found[1:]])


# `a` backwards and `b` behind it, sorted stably: a common value shows where an element of `a` is followed by an equal one
# of `b`. These are the first of that value in `a`, whose order is turned, and in `b`.
@fused(static=("size", "dtype"))
def _intersection(a, b, fill_value, size, dtype):
    n, m = a.shape[0], b.shape[0]
    place = shaping.concatenate([shaping.rev(shaping.iota(dtype, (n,)), (0,)), ew.add(shaping.iota(dtype, (m,)), n)], 0)
    values, place = order.sort((shaping.concatenate([shaping.rev(a, (0,)), b], 0), place))
    (low, high), (here, there) = _neighbours(values), _neighbours(place)
    common = ew.and_(ew.eq(low, high), ew.and_(ew.lt(here, n), ew.ge(there, n)))
    found, present = _chosen(common, size)
    count = max(n + m - 1, 0)
    outs = _filled(_taken(low, found, count), present, fill_value)
    indices = [ew.select(present, _taken(x, found, count), fill(found, length))
               for x, length in ((here, n), (ew.sub(there, n), m))]
    return (outs, *indices)


def _chosen(mask, size: int):
    """The places where the mask is true, as many as `size`, and whether there is one."""
    n = mask.shape[0]
    (found,) = nonzero(mask, size=size, fill_value=n)
    return found, ew.lt(found, fill(found, n))


def _taken(x, places, length: int):
    return take(x, places, mode="clip") if length else ax.broadcast_in_dim(x.dtype.type(0), places.shape)


def _filled(values, present, fill_value):
    """`fill_value`, or else the first value (0, if there is none), where nothing is present."""
    size = values.shape[0]
    if fill_value is not None:
        filler = spread(ew.convert(as_array(fill_value), values.dtype), (size,))
    else:
        one = (min(1, size),)
        first, there = [shaping.slice_in_dim(x, 0, *one) for x in (values, present)]
        filler = spread(ew.select(there, first, ax.broadcast_in_dim(literal(0, values.dtype), one)), (size,))
    return ew.select(present, values, filler)


def setdiff1d(ar1, ar2, assume_unique: bool = False, *, size: int | None = None, fill_value=None) -> Array:
    """The elements of the first array that the second has not, each once, in order (as they stand, with `assume_unique`).

    `size` fixes how many are given; missing ones are `fill_value` (0).

    >>> setdiff1d(np.array([3, 1, 2]), np.array([2]))
    Array([1, 3], dtype=int64)
    """
    first = as_array(operand("setdiff1d", ar1))
    a, b = _pair("setdiff1d", first, ar2)
    if size is None:
        known = _known("setdiff1d", a, b)
        found = np.setdiff1d(*known, assume_unique)  # type: ignore[call-overload]
        return asarray(found if dtypes.is_complex(first.dtype) else found.real, first.dtype)
    size = index_of("setdiff1d", "size", size)
    fill_value = 0 if fill_value is None else fill_value
    return ew.convert(_difference(a, b, exact(fill_value), size, bool(assume_unique), dtypes.default_int()), first.dtype)


@fused(static=("size", "assume_unique", "dtype"))
def _difference(a, b, fill_value, size, assume_unique, dtype):
    n = a.shape[0]
    left = None
    if not assume_unique and n:
        a, count = _unique(a, None, n, None, False, False, False, True, dtype)
        left = ew.lt(shaping.iota(dtype, (n,)), spread(count, (n,)))
    apart = _isin(a, b, True, "auto")
    found, present = _chosen(apart if left is None else ew.and_(apart, left), size)
    return _filled(_taken(a, found, n), present, fill_value)


def setxor1d(ar1, ar2, assume_unique: bool = False, *, size: int | None = None, fill_value=None) -> Array:
    """The elements that only one of both arrays has, each once, in order.

    `size` fixes how many are given; missing ones are `fill_value` (the least of them).

    >>> setxor1d(np.array([1, 2]), np.array([2, 3]))
    Array([1, 3], dtype=int64)
    """
    a, b = _pair("setxor1d", ar1, ar2)
    if size is None:
        known = _known("setxor1d", a, b)
        return asarray(np.setxor1d(*known, assume_unique))  # type: ignore[call-overload]
    size = index_of("setxor1d", "size", size)
    return _apart(a, b, exact(fill_value), size, bool(assume_unique), dtypes.default_int())


# Both made unique and sorted as one, what is not needed behind: an element that differs from both neighbours stands alone.
@fused(static=("size", "assume_unique", "dtype"))
def _apart(a, b, fill_value, size, assume_unique, dtype):
    parts, gone = [], []
    for x in (a, b):
        n = x.shape[0]
        if assume_unique or not n:
            parts.append(x)
            gone.append(ax.broadcast_in_dim(dtypes.int32.type(0), (n,)))
            continue
        x, count = _unique(x, None, n, None, False, False, False, True, dtype)
        parts.append(x)
        gone.append(ew.convert(ew.ge(shaping.iota(dtype, (n,)), spread(count, (n,))), dtypes.int32))
    gone, values = order.sort((shaping.concatenate(gone, 0), shaping.concatenate(parts, 0)), 0, True, 2)
    n = values.shape[0]
    differs = ew.or_(ew.ne(*_neighbours(values)), ew.ne(*_neighbours(gone)))
    before, behind = [shaping.pad(differs, np.True_, [ends]) for ends in ((min(1, n), 0, 0), (0, min(1, n), 0))]
    found, present = _chosen(ew.and_(ew.eq(gone, 0), ew.and_(before, behind)), size)
    return _filled(_taken(values, found, n), present, fill_value)
