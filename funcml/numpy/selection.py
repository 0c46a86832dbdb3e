"""Choosing elements: by a condition, by index, by number of repetitions.

An index that is known to be out of bounds raises IndexError. One that is not known while tracing follows `mode`:

    "fill" (the default)    reads `fill_value`: nan, or the lowest integer (unsigned: the highest), or True
    "clip"                  reads the nearest element
    "wrap"                  counts on from the start
    "promise_in_bounds"     is promised not to occur
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.tracing import Tracer, aval_of, value_of
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, concrete, index_of, no_out, no_sharding
from funcml.numpy.index_read import mode_name
from funcml.numpy.promotion import (
    as_array,
    broadcast_shapes,
    literal,
    operand,
    operands,
    promote_dtypes,
    settle,
    spread,
)
from funcml.numpy.rows import fill
from funcml.numpy.ufuncs import remainder
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import indexing, shaping, sorting
from funcml.primitives import reductions as red
from funcml.primitives.gather_scatter import GatherDimensionNumbers, gather

__all__ = [
    "argwhere", "compress", "extract", "flatnonzero", "nonzero", "repeat", "select", "take", "take_along_axis", "where",
]


# ---- by condition ------------------------------------------------------------------------------------------------


def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """`x` where `condition`, else `y`; with the condition alone, `nonzero` of it.

    In lanes not chosen the derivative is structurally zero: an infinite derivative there does no harm.

    >>> where(np.array([True, False]), 1.0, 0.0)
    Array([1., 0.], dtype=float32, weak_type=True)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where expects either the condition alone, or x and y too")
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value go with the condition alone")
    condition, x, y = operands("where", (condition, x, y))
    if isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval and _is_mask(condition, x.aval):
        return ew.select(condition, x, y)
    return _where(condition, *settle("where", x, y))


def _is_mask(condition, aval) -> bool:
    return isinstance(condition, Array) and condition.shape == aval.shape and condition.dtype == dtypes.bool_


@fused
def _where(condition, x, y):
    condition = _truth(condition)
    x, y = promote_dtypes("where", x, y)
    which = aval_of(condition).shape
    shape = broadcast_shapes(which, aval_of(x).shape, aval_of(y).shape)
    condition = spread(condition, shape) if which else condition
    return ew.select(condition, spread(x, shape), spread(y, shape))


def _truth(condition):
    return condition if dtypes.is_bool(aval_of(condition).dtype) else ew.ne(condition, 0)


def select(condlist, choicelist, default=0) -> Array:
    """The element of the first choice whose condition holds, else `default`."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"select expects as many conditions as choices, and at least one, got {len(condlist)} and {len(choicelist)}"
        )
    default, *choices = settle("select", default, *choicelist)
    return _select(operands("select", condlist), choices, default)


@fused
def _select(conditions, choices, default):
    out, *choices = promote_dtypes("select", default, *choices)
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        out = _where(condition, choice, out)
    return out


# ---- places ------------------------------------------------------------------------------------------------------


def nonzero(a, *, size: int | None = None, fill_value=None) -> tuple[Array, ...]:
    """The index along each axis of the elements that are not 0.

    `size` fixes how many are given, so that `a` may be traced: fewer are cut off, or filled up with `fill_value` (0, or one
    for each axis).
    """
    a = as_array(operand("nonzero", a))
    if a.ndim == 0:
        raise ValueError(f"nonzero expects at least 1 dimension, got {a.aval}; use atleast_1d")
    if size is None:
        found = np.nonzero(concrete("nonzero", "the array (without `size`)", a))
        return tuple([asarray(x, dtypes.default_int()) for x in found])
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * a.ndim
    return _nonzero(a, fills, index_of("nonzero", "size", size), dtypes.default_int())


# A stable sort by "is zero" brings the flat indices of the others to the front, in order.
@fused(static=("size", "dtype"))
def _nonzero(a, fills, size, dtype):
    flat = ax.reshape(_truth(a), (a.size,))
    count = ax.reduce_sum(ew.convert(flat, dtype), (0,))
    _, found = sorting.sort((ew.convert(ew.not_(flat), dtypes.int32), shaping.iota(dtype, (a.size,))))
    zero = literal(0, dtype)
    found = shaping.pad(found, zero, [(0, size - a.size, 0)])
    present = ew.lt(shaping.iota(dtype, (size,)), spread(count, (size,)))
    out = []
    for n, value in zip(a.shape[::-1], fills[::-1], strict=True):
        length = max(n, 1)
        value = spread(ew.convert(as_array(value), dtype), (size,))
        out.append(ew.select(present, ew.rem(found, length), value))
        found = ew.div(found, length)
    return tuple(out[::-1])


def flatnonzero(a, *, size: int | None = None, fill_value=None) -> Array:
    """The indices of the elements of `a`, flattened, that are not 0."""
    a = as_array(operand("flatnonzero", a))
    return nonzero(ax.reshape(a, (a.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a, *, size: int | None = None, fill_value=None) -> Array:
    """The indices of the elements that are not 0, a row each."""
    a = as_array(operand("argwhere", a))
    if a.ndim == 0:
        known = 0 if size is None else size
        count = known if size is not None else int(bool(concrete("argwhere", "the array (without `size`)", a)))
        return ax.broadcast_in_dim(literal(0, dtypes.default_int()), (count, 0))
    found = nonzero(a, size=size, fill_value=fill_value)
    return shaping.concatenate([ax.expand_dims(x, (1,)) for x in found], 1)


def compress(condition, a, axis=None, *, size: int | None = None, fill_value=0, out=None) -> Array:
    """The slices of `a` along `axis` (its elements, if None) where the vector `condition` is true.

    `size` fixes how many are given, so that the condition may be traced; what is missing is `fill_value`.
    """
    no_out("compress", out)
    a, condition = as_array(operand("compress", a)), as_array(condition)
    if condition.ndim != 1:
        raise ValueError(f"compress expects a vector as condition, got {condition.aval}")
    if axis is None:
        a, axis = ax.reshape(a, (a.size,)), 0
    axis = axis_of("compress", axis, a.ndim)
    (index,) = nonzero(condition, size=size, fill_value=a.shape[axis])
    return take(a, index, axis, mode="fill", fill_value=fill_value)


def extract(condition, arr, *, size: int | None = None, fill_value=0) -> Array:
    """The elements of `arr` where `condition` is true, in a row."""
    condition = as_array(condition)
    return compress(ax.reshape(condition, (condition.size,)), arr, size=size, fill_value=fill_value)


# ---- by index ----------------------------------------------------------------------------------------------------

def _mode(name: str, mode):
    if mode == "raise":
        raise NotImplementedError(f"{name}: compiled programs cannot raise, so mode 'raise' is not offered; None raises if able")
    return mode_name(mode)


def _check_bounds(name: str, indices, length: int, mode, lowest: int | None = None) -> None:
    """Raises IndexError for an index that is known to be out of bounds, if no mode was asked for."""
    known = value_of(indices) if isinstance(indices, Tracer) else indices
    if mode is not None or known is None:
        return
    known = np.asarray(known)
    wrong = known[(known < (-length if lowest is None else lowest)) | (known >= length)]
    if wrong.size:
        if not length:
            raise IndexError(f"cannot do a non-empty jnp.{name}() from an empty axis: index {wrong.flat[0]} of 0 elements")
        raise IndexError(f"{name}: index {wrong.flat[0]} is out of bounds for an axis of length {length}")


def _integers(name: str, indices) -> Array:
    indices = as_array(indices)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{name} indices must be of integer type, got {indices.dtype} ({indices.aval}); use .astype(int)")
    return indices


def _into_bounds(indices, length: int, mode, wrap_negative: bool = True):
    """Indices from the end made indices from the start."""
    if mode == "wrap":
        return remainder(indices, max(length, 1))
    return indexing.wrap_negative(indices, length) if wrap_negative else indices


def take(a, indices, axis=None, out=None, mode=None, unique_indices=False, indices_are_sorted=False, fill_value=None):
    """The elements (flattened, if `axis` is None) or slices of `a` at `indices`, whose shape stands in place of `axis`.

    >>> take(np.array([5, 6, 7]), np.array([2, -1, 0]))
    Array([7, 7, 5], dtype=int64)
    """
    no_out("take", out)
    mode = _mode("take", mode)
    a, indices = as_array(operand("take", a)), _integers("take", indices)
    if axis is None:
        a, axis = ax.reshape(a, (a.size,)), 0
    axis = axis_of("take", axis, a.ndim)
    _check_bounds("take", indices, a.shape[axis], mode)
    return _take(a, indices, axis, mode, bool(unique_indices), bool(indices_are_sorted), fill_value)


@fused(static=("axis", "mode", "unique", "are_sorted", "fill_value"))
def _take(a, indices, axis, mode, unique, are_sorted, fill_value):
    index = _into_bounds(indices, a.shape[axis], mode)
    rank = index.ndim
    window = tuple([i if i < axis else i + rank - 1 for i in range(a.ndim) if i != axis])
    sizes = [min(n, 1) if i == axis else n for i, n in enumerate(a.shape)]
    return gather(
        a,
        ax.expand_dims(index, (rank,)),
        GatherDimensionNumbers(window, (axis,), (axis,)),
        sizes,
        mode={None: "fill", "wrap": "promise_in_bounds"}.get(mode, mode),
        unique_indices=unique,
        indices_are_sorted=are_sorted,
        fill_value=fill_value,
    )


def take_along_axis(
    arr, indices, axis: int | None = -1, mode=None, fill_value=None, *, wrap_negative_indices: bool | None = None
) -> Array:
    """out[.., i, ..] = arr[.., indices[.., i, ..], ..] along `axis`; the other axes broadcast. None flattens `arr`.

    Negative indices count from the end unless `wrap_negative_indices` is False: then they are out of bounds.
    """
    wrap = wrap_negative_indices is None or bool(wrap_negative_indices)
    mode = _mode("take_along_axis", mode)
    arr, indices = as_array(operand("take_along_axis", arr)), _integers("take_along_axis", indices)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"take_along_axis without an axis expects a vector of indices, got {indices.aval}")
        arr, axis = ax.reshape(arr, (arr.size,)), 0
    axis = axis_of("take_along_axis", axis, arr.ndim)
    _check_bounds("take_along_axis", indices, arr.shape[axis], mode, 0 if not wrap else None)
    return _take_along_axis(arr, indices, axis, mode, fill_value, wrap)


@fused(static=("axis", "mode", "fill_value", "wrap"))
def _take_along_axis(arr, indices, axis, mode, fill_value, wrap):
    indices = _into_bounds(indices, arr.shape[axis], mode, wrap)
    mode = {None: "fill", "wrap": "promise_in_bounds"}.get(mode, mode)
    return indexing.take_along_axis(arr, indices, axis, mode, fill_value)


# ---- by number ---------------------------------------------------------------------------------------------------


def repeat(a, repeats, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding=None) -> Array:
    """Each slice of `a` along `axis` (each element, if None) as often as `repeats` says, a number or a vector.

    A vector may be traced if `total_repeat_length` fixes the length of the result: it is cut there, or filled up with the
    last slice.
    """
    no_sharding("repeat", out_sharding)
    a = as_array(operand("repeat", a))
    if axis is None:
        a, axis = ax.reshape(a, (a.size,)), 0
    axis = axis_of("repeat", axis, a.ndim)
    length = a.shape[axis]
    if total_repeat_length is not None:
        total = index_of("repeat", "total_repeat_length", total_repeat_length)
        return _repeat_to(a, as_array(repeats), axis, total)
    counts = concrete("repeat", "repeats (without total_repeat_length)", repeats)
    if counts.size == 1:
        return _repeat_each(a, index_of("repeat", "repeats", counts.reshape(())[()]), axis)
    if counts.shape != (length,):
        raise ValueError(f"repeat of {a.aval}: repeats must be a number or have length {length}, got the shape {counts.shape}")
    return _take(a, asarray(np.repeat(np.arange(length, dtype=np.int32), counts)), axis, "promise_in_bounds", False, True, None)


@fused(static=("count", "axis"))
def _repeat_each(a, count, axis):
    if count < 0:
        raise ValueError(f"repeat: a number of repeats must not be negative, got {count}")
    thin = ax.expand_dims(a, (axis + 1,))
    wide = spread(thin, (*a.shape[: axis + 1], count, *a.shape[axis + 1 :]))
    return ax.reshape(wide, (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1 :]))


# Slice j of the result is slice i of a for ends_{i-1} <= j < ends_i, that is, i counts the ends that j has reached.
@fused(static=("axis", "total"))
def _repeat_to(a, repeats, axis, total):
    length = a.shape[axis]
    ends = red.cumsum(spread(repeats, (length,)), 0)
    reached = ew.ge(
        ax.broadcast_in_dim(shaping.iota(ends.dtype, (total,)), (total, length), (0,)),
        ax.broadcast_in_dim(ends, (total, length), (1,)),
    )
    index = ax.reduce_sum(ew.convert(reached, dtypes.int32), (1,))
    return _take(a, ew.min(index, fill(index, max(length - 1, 0))), axis, "clip", False, True, None)
