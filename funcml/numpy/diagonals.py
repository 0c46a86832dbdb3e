"""Matrices by their diagonals: ones on a diagonal, triangles, the elements of a diagonal, and where these stand.

The k-th diagonal holds the elements (i, i + k).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from funcml import dtypes
from funcml.core.tracing import Tracer, aval_of
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, dtype_or, index_of, length_of
from funcml.numpy.creation import on_device
from funcml.numpy.promotion import as_array, literal, operand, settle, spread
from funcml.numpy.selection import nonzero
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "eye", "fill_diagonal", "identity",
    "mask_indices", "tri", "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices", "triu_indices_from",
]


# ---- ones and zeros ----------------------------------------------------------------------------------------------


def eye(N: int, M: int | None = None, k: int = 0, dtype=None, *, device=None) -> Array:
    """The N by M matrix with ones on its k-th diagonal; `k` may be traced.

    >>> eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    x = _diagonal_mask(*_lengths("eye", N, M), _offset("eye", k), "eq", dtype_or(dtype, dtypes.default_float()))
    return on_device(x, device)


def identity(n: int, dtype=None) -> Array:
    """The n by n identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype=None) -> Array:
    """The N by M matrix with ones on and below its k-th diagonal; `k` may be traced."""
    return _diagonal_mask(*_lengths("tri", N, M), _offset("tri", k), "ge", dtype_or(dtype, dtypes.default_float()))


def _lengths(name: str, rows, columns) -> tuple[int, int]:
    rows, columns = length_of(name, rows), length_of(name, rows if columns is None else columns)
    if rows < 0 or columns < 0:
        raise ValueError(f"{name}: lengths must not be negative, got ({rows}, {columns})")
    return rows, columns


def _offset(name: str, k):
    """The number of a diagonal: an int, or a traced integer."""
    if isinstance(k, Tracer) and k.shape == () and dtypes.is_integer(k.dtype):
        return k
    k = index_of(name, "k", k)
    dtypes.check_int_range(k, dtypes.default_int())
    return dtypes.default_int().type(k)


@fused(static=("rows", "columns", "relation", "dtype"))
def _diagonal_mask(rows, columns, k, relation, dtype):
    """Where i + k relation j, as numbers of `dtype`."""
    index = dtypes.int32 if dtypes.bit_width(aval_of(k).dtype) <= 32 else dtypes.int64
    i, j = shaping.iota(index, (rows, columns), 0), shaping.iota(index, (rows, columns), 1)
    compare = {"eq": ew.eq, "ge": ew.ge}[relation]
    return ew.convert(compare(spread(ew.convert(as_array(k), index), (rows, columns)), ew.sub(j, i)), dtype)


@fused(static=("k", "lower"))
def _triangle(m, k, lower):
    m = as_array(m)
    if m.ndim < 2:
        raise ValueError(f"tril and triu expect at least 2 dimensions, got {m.aval}")
    rows, columns = m.shape[-2:]
    k = max(-rows, min(k, columns))
    i, j = shaping.iota(dtypes.int32, (rows, columns), 0), shaping.iota(dtypes.int32, (rows, columns), 1)
    i = ew.add(i, np.int32(k)) if k else i
    kept = spread(ew.ge(i, j) if lower else ew.le(i, j), m.shape)
    if dtypes.is_bool(m.dtype):
        return ew.and_(m, kept)
    return ew.select(kept, m, ax.broadcast_in_dim(literal(0, m.dtype), m.shape))


def tril(m, k: int = 0) -> Array:
    """`m` [.., rows, columns] with zeros above its k-th diagonal."""
    return _triangle(operand("tril", m), index_of("tril", "k", k), True)


def triu(m, k: int = 0) -> Array:
    """`m` [.., rows, columns] with zeros below its k-th diagonal."""
    return _triangle(operand("triu", m), index_of("triu", "k", k), False)


# ---- the elements of a diagonal ----------------------------------------------------------------------------------


@fused(static=("offset", "axis1", "axis2"))
def diagonal(a, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements (i, i + offset) of two axes, as the last axis of the result."""
    a = as_array(operand("diagonal", a))
    if a.ndim < 2:
        raise ValueError(f"diagonal expects at least 2 dimensions, got {a.aval}")
    first, second = axis_of("diagonal", axis1, a.ndim), axis_of("diagonal", axis2, a.ndim)
    if first == second:
        raise ValueError(f"diagonal: axis1 and axis2 can not be same, got {axis1} and {axis2}")
    a = ax.moveaxis(ax.moveaxis(a, first, a.ndim - 1), second - (second > first), a.ndim - 1)
    return _diagonal_of_last(a, index_of("diagonal", "offset", offset))


# Flattened, element (i, i + k) of an [n, m] matrix stands at start + i (m + 1).
def _diagonal_of_last(a, k: int) -> Array:
    *batch, n, m = a.shape
    length = max(0, min(n, m - k) if k >= 0 else min(n + k, m))
    start = 0 if not length else (k if k >= 0 else -k * m)
    flat = ax.reshape(a, (*batch, n * m))
    limit = start + (length - 1) * (m + 1) + 1 if length else start
    return shaping.slice_in_dim(flat, start, limit, m + 1, axis=len(batch))


@fused(static=("k",))
def diag(v, k: int = 0) -> Array:
    """A matrix with `v` on its k-th diagonal; of a matrix, its k-th diagonal.

    >>> diag(np.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int64)
    """
    v, k = as_array(operand("diag", v)), index_of("diag", "k", k)
    if v.ndim == 2:
        return _diagonal_of_last(v, k)
    if v.ndim != 1:
        raise ValueError(f"diag expects a vector or a matrix, got {v.aval}")
    n = v.shape[0] + abs(k)
    zero = literal(0, v.dtype)
    row = shaping.pad(v, zero, [(max(k, 0), max(-k, 0), 0)])
    on_diagonal = _diagonal_mask(n, n, np.int64(k), "eq", dtypes.bool_)
    return ew.select(on_diagonal, spread(row, (n, n)), ax.broadcast_in_dim(zero, (n, n)))


def diagflat(v, k: int = 0) -> Array:
    """A matrix with the elements of `v`, in row-major order, on its k-th diagonal."""
    v = as_array(operand("diagflat", v))
    return diag(ax.reshape(v, (v.size,)), k)


def fill_diagonal(a, val, wrap: bool = False, *, inplace: bool = True) -> Array:
    """`a` with `val`, a number or an array whose elements are repeated as needed, on its main diagonal.

    Arrays are immutable, so `inplace=False` has to be said. All axes of `a` have one length, unless it is a matrix; in a
    tall one the diagonal starts anew, a row below its end, if `wrap`.

    >>> fill_diagonal(np.zeros((2, 2)), 1.0, inplace=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    if inplace:
        raise NotImplementedError(
            "fill_diagonal: arrays are immutable; use the result: x = fill_diagonal(x, val, inplace=False)"
        )
    return _fill_diagonal(*settle("fill_diagonal", a, val), bool(wrap))


# Flattened, two neighbours on the diagonal are `step` apart: the sum of the strides of all axes.
@fused(static=("wrap",))
def _fill_diagonal(a, val, wrap):
    a, val = as_array(a), as_array(val)
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise ValueError(f"fill_diagonal expects a matrix, or an array whose axes have one length, got {a.aval}")
    if a.size == 0:
        return a
    if val.size == 0:
        raise ValueError(f"fill_diagonal: there is no value to fill {a.aval} with, got {val.aval}")
    step = sum(math.prod(a.shape[i + 1 :]) for i in range(a.ndim))
    end = a.size if wrap or a.ndim > 2 else min(a.size, a.shape[1] ** 2)
    count = -(-end // step)
    values = ew.convert(ax.reshape(val, (val.size,)), a.dtype)
    times = -(-count // val.size)
    values = ax.reshape(ax.broadcast_in_dim(values, (times, val.size), (1,)), (times * val.size,))
    values = shaping.slice_in_dim(values, 0, count)
    behind = a.size - ((count - 1) * step + 1)
    spaced = shaping.pad(values, literal(0, a.dtype), [(0, behind, step - 1)])
    place = shaping.iota(dtypes.int32 if a.size < 2**31 else dtypes.int64, (a.size,))
    filled = ew.and_(ew.eq(ew.rem(place, step), 0), ew.lt(place, end))
    return ax.reshape(ew.select(filled, spaced, ax.reshape(a, (a.size,))), a.shape)


# ---- places ------------------------------------------------------------------------------------------------------


def _index_arrays(found) -> tuple[Array, ...]:
    return tuple([asarray(x, dtypes.default_int()) for x in found])


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Row and column of each element on and below the k-th diagonal of an n by m matrix."""
    rows, columns = _index_arrays(np.tril_indices(n, k, m))
    return rows, columns


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Row and column of each element on and above the k-th diagonal of an n by m matrix."""
    rows, columns = _index_arrays(np.triu_indices(n, k, m))
    return rows, columns


def _matrix_shape(name: str, arr) -> tuple[int, int]:
    shape = arr.shape if hasattr(arr, "shape") else as_array(operand(name, arr)).shape
    if len(shape) != 2:
        raise ValueError(f"{name} expects a matrix, got an array of the shape {tuple(shape)}")
    rows, columns = shape
    return rows, columns


def tril_indices_from(arr, k: int = 0) -> tuple[Array, Array]:
    """Row and column of each element of the matrix `arr` on and below its k-th diagonal."""
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr, k: int = 0) -> tuple[Array, Array]:
    """Row and column of each element of the matrix `arr` on and above its k-th diagonal."""
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of `ndim` axes of length n."""
    n, ndim = index_of("diag_indices", "n", n), index_of("diag_indices", "ndim", ndim)
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must be nonnegative, got {n} and {ndim}")
    return _index_arrays(np.diag_indices(n, ndim))


def diag_indices_from(arr) -> tuple[Array, ...]:
    """The indices of the main diagonal of `arr`, whose axes must have one length."""
    aval = aval_of(as_array(operand("diag_indices_from", arr)))
    if aval.ndim < 2 or len(set(aval.shape)) > 1:
        raise ValueError(f"diag_indices_from expects two or more axes of one length, got {aval}")
    return diag_indices(aval.shape[0], aval.ndim)


def mask_indices(n: int, mask_func: Callable, k: int = 0, *, size: int | None = None) -> tuple[Array, Array]:
    """Row and column of each element of an n by n matrix of ones that `mask_func(matrix, k)` leaves.

    >>> mask_indices(2, triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    ones = ax.broadcast_in_dim(literal(1, dtypes.default_float()), (index_of("mask_indices", "n", n),) * 2)
    rows, columns = nonzero(mask_func(ones, k), size=size)
    return rows, columns
