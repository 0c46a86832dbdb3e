"""Orders: sorted elements, the places they come from, and places in sorted arrays.

nan stands last, whatever its sign; complex numbers are ordered by real part, then by imaginary part.
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, index_of
from funcml.numpy.manipulation import unstack
from funcml.numpy.promotion import as_array, operand, promote_dtypes, settle, spread
from funcml.numpy.rows import fill
from funcml.numpy.selection import take
from funcml.numpy.ufuncs import less
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives import sorting as order

__all__ = [
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort", "sort_complex",
]


# ---- sorting -----------------------------------------------------------------------------------------------------


def _check_kind(name: str, kind, given_order) -> None:
    if given_order is not None:
        raise NotImplementedError(f"{name}: arrays have no fields, so there is no `order`")
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"{name}: kind must be 'quicksort', 'mergesort', 'heapsort' or 'stable', got {kind!r}")


def sort(a, axis: int | None = -1, *, kind=None, order=None, stable: bool = True, descending: bool = False) -> Array:
    """The elements along `axis` (flattened, if None) in ascending or descending order; `kind` makes no difference.

    >>> sort(np.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int64)
    """
    _check_kind("sort", kind, order)
    return _sort(operand("sort", a), axis, bool(stable), bool(descending))


@fused(static=("axis", "stable", "descending"))
def _sort(a, axis, stable, descending):
    a = _strong(a)
    if axis is None:
        a, axis = ax.reshape(a, (a.size,)), 0
    axis = axis_of("sort", axis, a.ndim)
    out = order.sort(a, axis, stable)
    return shaping.rev(out, (axis,)) if descending else out


def _strong(a) -> Array:
    a = as_array(a)
    return ew.convert(a, a.dtype)


def argsort(a, axis: int | None = -1, *, kind=None, order=None, stable: bool = True, descending: bool = False,
            dtype=None) -> Array:
    """The indices along `axis` that put the elements in order; equal elements keep theirs."""
    _check_kind("argsort", kind, order)
    dtype = dtypes.default_int() if dtype is None else dtypes.canonical(dtype)
    return _argsort(operand("argsort", a), axis, bool(stable), bool(descending), dtype)


# To keep equal elements in order while descending, the reversed array is sorted and the result reversed.
@fused(static=("axis", "stable", "descending", "dtype"))
def _argsort(a, axis, stable, descending, dtype):
    a = _strong(a)
    if axis is None:
        a, axis = ax.reshape(a, (a.size,)), 0
    axis = axis_of("argsort", axis, a.ndim)
    index = shaping.iota(dtype, a.shape, axis)
    if descending:
        a, index = shaping.rev(a, (axis,)), shaping.rev(index, (axis,))
    _, index = order.sort((a, index), axis, stable)
    return shaping.rev(index, (axis,)) if descending else index


def lexsort(keys, axis: int = -1) -> Array:
    """The indices that sort by the last key, then, where that is equal, by the one before it, and so on."""
    keys = list(keys) if isinstance(keys, list | tuple) else list(unstack(keys))
    if not keys:
        raise TypeError("lexsort expects at least one key, got none")
    return _lexsort([operand("lexsort", k) for k in keys], axis, dtypes.default_int())


@fused(static=("axis", "dtype"))
def _lexsort(keys, axis, dtype):
    keys = [_strong(k) for k in keys]
    if len({k.shape for k in keys}) > 1:
        raise ValueError(f"lexsort expects keys of one shape, got {', '.join(str(k.aval) for k in keys)}")
    if not keys[0].ndim:
        return as_array(dtype.type(0))
    axis = axis_of("lexsort", axis, keys[0].ndim)
    index = shaping.iota(dtype, keys[0].shape, axis)
    return order.sort((*keys[::-1], index), axis, True, len(keys))[-1]


def partition(a, kth: int, axis: int = -1) -> Array:
    """The elements along `axis` so that the one at `kth` is in its sorted place, less ones before and greater ones after."""
    a = as_array(operand("partition", a))
    axis_of("partition", index_of("partition", "kth", kth), a.shape[axis_of("partition", axis, a.ndim)])
    return sort(a, axis)


def argpartition(a, kth: int, axis: int = -1) -> Array:
    """The indices that partition the elements along `axis` at `kth`."""
    a = as_array(operand("argpartition", a))
    axis_of("argpartition", index_of("argpartition", "kth", kth), a.shape[axis_of("argpartition", axis, a.ndim)])
    return argsort(a, axis)


def sort_complex(a) -> Array:
    """The elements along the last axis, sorted, as complex numbers."""
    a = sort(a)
    dtype = a.dtype if dtypes.is_complex(a.dtype) else dtypes.complex_dtype(dtypes.inexact_dtype(a.dtype))
    return ew.convert(a, dtype)


# ---- places in sorted arrays -------------------------------------------------------------------------------------

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all", "default")
_COMPARE_ALL_UP_TO = 64


def searchsorted(a, v, side: str = "left", sorter=None, *, method: str = "scan") -> Array:
    """Where the elements of `v` belong in the sorted vector `a`: before ('left') or behind ('right') equal elements.

    `method` makes no difference to the result. nan belongs at the end.

    >>> searchsorted(np.array([1, 2, 3]), 2)
    Array(1, dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if method not in _METHODS:
        raise ValueError(f"searchsorted: method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    a, v = settle("searchsorted", a, v)
    if np.ndim(a) != 1:
        raise ValueError(f"searchsorted expects a vector to search in, got {aval_of(a)}")
    if sorter is not None:
        a = take(a, sorter)
    wide = dtypes.int64 if np.shape(a)[0] > dtypes.iinfo(dtypes.int32).max else dtypes.int32
    return _search(a, v, side, wide)


def _below(x, y):
    """x < y with nan at the end."""
    if not dtypes.is_inexact(aval_of(x).dtype):
        return ew.lt(x, y)
    return ew.or_(less(x, y), ew.and_(ew.eq(x, x), ew.ne(y, y)))


def _goes_behind(element, value, side: str):
    return _below(element, value) if side == "left" else ew.not_(_below(value, element))


@fused(static=("side", "dtype"))
def _search(a, v, side, dtype):
    a, v = [as_array(x) for x in promote_dtypes("searchsorted", a, v)]
    n = a.shape[0]
    if n == 0:
        return ax.broadcast_in_dim(dtype.type(0), v.shape) if v.ndim else as_array(dtype.type(0))
    if n <= _COMPARE_ALL_UP_TO:
        shape = (*v.shape, n)
        passed = _goes_behind(spread(a, shape), ax.broadcast_in_dim(v, shape, tuple(range(v.ndim))), side)
        return ax.reduce_sum(ew.convert(passed, dtype), (v.ndim,))
    return _bisect(a, v, side, dtype)


# low <= place <= high throughout; the interval is halved ceil(log2(n + 1)) times.
def _bisect(a, v, side, dtype):
    n = a.shape[0]
    low, high = (ax.broadcast_in_dim(dtype.type(k), v.shape) if v.ndim else as_array(dtype.type(k)) for k in (0, n))
    for _ in range(n.bit_length()):
        middle = ew.add(low, ew.div(ew.sub(high, low), 2))
        element = take(a, ew.min(middle, fill(middle, n - 1)), mode="promise_in_bounds")
        behind = ew.and_(_goes_behind(element, v, side), ew.lt(low, high))
        low, high = ew.select(behind, ew.add(middle, 1), low), ew.select(behind, high, middle)
    return low


def digitize(x, bins, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin that each element lies in: i for bins[i - 1] <= x < bins[i]; with `right`, the right edge counts.

    `bins` are in ascending or descending order.
    """
    bins = as_array(operand("digitize", bins))
    if bins.ndim != 1:
        raise ValueError(f"digitize expects a vector of bins, got {bins.aval}")
    return _digitize(settle("digitize", x, bins)[0], bins, bool(right))


@fused(static=("right",))
def _digitize(x, bins, right):
    n = bins.shape[0]
    side = "left" if right else "right"
    rising = _search(bins, x, side, dtypes.int32)
    if n < 2:
        return rising
    falling = ew.sub(np.int32(n), _search(shaping.rev(bins, (0,)), x, side, dtypes.int32))
    ends = [ax.squeeze(shaping.slice_in_dim(bins, i, i + 1), (0,)) for i in (0, n - 1)]
    return ew.select(ew.le(ends[0], ends[1]), rising, falling)
