"""Shapes and places: the same elements under another shape, order or arrangement."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import numpy as np

from funcml import dtypes
from funcml.core.tracing import Tracer, aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, axis_of, concrete, index_of, no_sharding, shape_of
from funcml.numpy.promotion import as_array, broadcast_shapes, operand, spread
from funcml.numpy.ufuncs import add, clip, floor_divide, multiply, negative, remainder, subtract
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import indexing, shaping

__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "dsplit",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "ravel_multi_index",
    "reshape",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "shape",
    "size",
    "split",
    "squeeze",
    "swapaxes",
    "tile",
    "transpose",
    "unravel_index",
    "unstack",
    "vsplit",
]


def _array(name: str, x) -> Array:
    return x if isinstance(x, Array) else as_array(operand(name, x))


# ---- shape -------------------------------------------------------------------------------------------------------


def shape(a) -> tuple[int, ...]:
    """The lengths of the axes, also of nested sequences."""
    return np.shape(a) if isinstance(a, list | tuple) else aval_of(_array("shape", a)).shape


def ndim(a) -> int:
    """The number of axes."""
    return len(shape(a))


def size(a, axis=None) -> int:
    """The number of elements, or of those along the given axes."""
    lengths = shape(a)
    return math.prod([lengths[i] for i in axes_of("size", axis, len(lengths))])


def reshape(a, shape, order: str = "C", *, copy: bool | None = None, out_sharding=None) -> Array:
    """`a` under another shape; one length may be -1 and is then worked out. Row-major, or column-major for order 'F'.

    >>> reshape(np.arange(6), (2, -1)).shape
    (2, 3)
    """
    no_sharding("reshape", out_sharding)
    a = _array("reshape", a)
    shape = _full_shape(a.aval, shape)
    if order == "F":
        return _reshape_columns(a, shape)
    if order not in ("C", "A"):
        raise ValueError(f"reshape: order must be 'C', 'F' or 'A', got {order!r}")
    return ax.reshape(a, shape)


def _full_shape(aval, shape) -> tuple[int, ...]:
    lengths = [index_of("reshape", "a length of the shape", n) for n in (shape if np.iterable(shape) else (shape,))]
    unknown = lengths.count(-1)
    if unknown > 1:
        raise ValueError(f"reshape of {aval}: one length may be -1, got {tuple(lengths)}")
    if unknown:
        rest = math.prod(n for n in lengths if n != -1)
        if rest == 0 or aval.size % rest:
            raise ValueError(f"reshape of {aval}: {aval.size} elements do not fill the shape {tuple(lengths)}")
        lengths[lengths.index(-1)] = aval.size // rest
    if any(n < 0 for n in lengths) or math.prod(lengths) != aval.size:
        raise TypeError(f"reshape of {aval}: it has {aval.size} elements, the shape {tuple(lengths)} has {math.prod(lengths)}")
    return tuple(lengths)


@fused(static=("shape",))
def _reshape_columns(a, shape):
    backwards = ax.transpose(a, tuple(range(a.ndim))[::-1])
    return ax.transpose(ax.reshape(backwards, shape[::-1]), tuple(range(len(shape)))[::-1])


def ravel(a, order: str = "C", *, out_sharding=None) -> Array:
    """The elements of `a` in a row."""
    no_sharding("ravel", out_sharding)
    return reshape(a, (-1,) if np.size(a) else (0,), "C" if order in ("A", "K") else order)


def squeeze(a, axis=None) -> Array:
    """`a` without its axes of length 1, or without those given; ValueError if one of these is longer."""
    a = _array("squeeze", a)
    if axis is None:
        gone = tuple([i for i, n in enumerate(a.shape) if n == 1])
    else:
        gone = axes_of("squeeze", axis, a.ndim)
    return ax.squeeze(a, gone)


def expand_dims(a, axis) -> Array:
    """`a` with new axes of length 1 at the places `axis` (an int or several) of the result."""
    a = _array("expand_dims", a)
    count = len(axis) if isinstance(axis, tuple | list) else 1
    return ax.expand_dims(a, axes_of("expand_dims", axis, a.ndim + count))


def broadcast_to(array, shape, *, out_sharding=None) -> Array:
    """`array` repeated along new axes, and along its axes of length 1, to have `shape`."""
    no_sharding("broadcast_to", out_sharding)
    array, shape = _array("broadcast_to", array), shape_of("broadcast_to", shape)
    if array.ndim > len(shape):
        raise ValueError(f"broadcast_to: Cannot broadcast to shape with fewer dimensions: {array.aval} to {shape}")
    if any(n not in (1, m) for n, m in zip(array.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(f"broadcast_to: Incompatible shapes for broadcasting: {array.aval} to {shape}")
    return spread(array, shape)


def broadcast_arrays(*args) -> list[Array]:
    """The arrays, broadcast to one shape."""
    arrays = [_array("broadcast_arrays", x) for x in args]
    shape = broadcast_shapes(*[x.shape for x in arrays])
    return [spread(x, shape) for x in arrays]


def at_least(rank: int, x) -> Array:
    """`x` with at least `rank` axes, new ones in front; three as `atleast_3d` has them."""
    x = _array(f"atleast_{rank}d", x)
    if x.ndim >= rank:
        return x
    if rank == 3:
        return ax.reshape(x, {0: (1, 1, 1), 1: (1, x.size, 1), 2: (*x.shape, 1)}[x.ndim])
    return ax.reshape(x, (1,) * (rank - x.ndim) + x.shape)


def _each_at_least(rank: int, arys):
    if len(arys) == 1:
        return at_least(rank, arys[0])
    return [at_least(rank, x) for x in arys]


def atleast_1d(*arys):
    """Each array with at least 1 axis; one array for one argument, a list for several."""
    return _each_at_least(1, arys)


def atleast_2d(*arys):
    """Each array with at least 2 axes, new ones in front."""
    return _each_at_least(2, arys)


def atleast_3d(*arys):
    """Each array with at least 3 axes: a vector becomes [1, n, 1], a matrix [m, n, 1]."""
    return _each_at_least(3, arys)


# ---- order of axes -----------------------------------------------------------------------------------------------


def transpose(a, axes=None) -> Array:
    """`a` with its axes in the order `axes`, reversed if that is None."""
    a = _array("transpose", a)
    if axes is None:
        return ax.transpose(a, tuple(range(a.ndim))[::-1])
    order = axes_of("transpose", tuple(axes), a.ndim)
    if len(order) != a.ndim:
        raise ValueError(f"transpose of {a.aval}: axes must order all {a.ndim} axes, got {order}")
    return ax.transpose(a, order)


def permute_dims(a, /, axes) -> Array:
    """`a` with its axes in the order `axes`."""
    return transpose(a, axes)


def matrix_transpose(x, /) -> Array:
    """`x` [.., m, n] with its last two axes swapped."""
    x = _array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose expects at least 2 dimensions, got {x.aval}")
    return ax.moveaxis(x, x.ndim - 1, x.ndim - 2)


def swapaxes(a, axis1: int, axis2: int) -> Array:
    """`a` with two axes exchanged."""
    a = _array("swapaxes", a)
    i, j = axis_of("swapaxes", axis1, a.ndim), axis_of("swapaxes", axis2, a.ndim)
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    return ax.transpose(a, order)


def moveaxis(a, source, destination) -> Array:
    """`a` with the axes `source` moved to the places `destination`, the others kept in order."""
    a = _array("moveaxis", a)
    come, go = axes_of("moveaxis", source, a.ndim), axes_of("moveaxis", destination, a.ndim)
    if len(come) != len(go):
        raise ValueError(f"moveaxis: source and destination must be as many, got {source} and {destination}")
    order = [i for i in range(a.ndim) if i not in come]
    for place, axis in sorted(zip(go, come, strict=True)):
        order.insert(place, axis)
    return ax.transpose(a, order)


def rollaxis(a, axis: int, start: int = 0) -> Array:
    """`a` with `axis` moved to stand before `start`."""
    a = _array("rollaxis", a)
    axis = axis_of("rollaxis", axis, a.ndim)
    start = a.ndim if start == a.ndim else axis_of("rollaxis", start, a.ndim)
    return ax.moveaxis(a, axis, start - (axis < start))


# ---- cutting -----------------------------------------------------------------------------------------------------


def array_split(ary, indices_or_sections, axis: int = 0) -> list[Array]:
    """`split`, into so many parts of nearly equal length."""
    return _split("array_split", ary, indices_or_sections, axis)


def split(ary, indices_or_sections, axis: int = 0) -> list[Array]:
    """`ary` cut along `axis`: into so many equal parts, or before each of the given indices.

    Raises ValueError if it does not divide into equal parts.
    """
    return _split("split", ary, indices_or_sections, axis)


def _cuts(name: str, where) -> np.ndarray:
    known = partial(concrete, name, "indices_or_sections")
    return np.asarray([known(x) for x in where]) if isinstance(where, list | tuple) else known(where)


def _split(name: str, ary, where, axis: int) -> list[Array]:
    ary = _array(name, ary)
    axis = axis_of(name, axis, ary.ndim)
    length = ary.shape[axis]
    cuts = _cuts(name, where)
    if cuts.ndim == 0:
        parts = index_of(name, "the number of parts", int(cuts) if cuts.dtype.kind == "f" and cuts == int(cuts) else cuts[()])
        if parts < 1 or (length % parts and name != "array_split"):
            raise ValueError(f"{name}: axis {axis} of {ary.aval} does not divide into {parts} equal parts; try array_split")
        sizes = [length // parts + (i < length % parts) for i in range(parts)]
        return list(_pieces(ary, tuple(sizes), axis))
    bounds = [0, *[int(c) if c >= 0 else int(c) + length for c in cuts], length]
    bounds = [min(max(b, 0), length) for b in bounds]
    if bounds == sorted(bounds):
        return list(_pieces(ary, tuple([b - a for a, b in zip(bounds, bounds[1:], strict=False)]), axis))
    return [shaping.slice_in_dim(ary, a, max(a, b), axis=axis) for a, b in zip(bounds, bounds[1:], strict=False)]


@fused(static=("sizes", "axis"))
def _pieces(x, sizes, axis):
    return tuple(shaping.split(x, sizes, axis))


def hsplit(ary, indices_or_sections) -> list[Array]:
    """`split` along the second axis, or the only one."""
    return split(ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1)


def vsplit(ary, indices_or_sections) -> list[Array]:
    """`split` along the first axis."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary, indices_or_sections) -> list[Array]:
    """`split` along the third axis."""
    return split(ary, indices_or_sections, 2)


def unstack(x, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of `x` along an axis, without that axis."""
    x = _array("unstack", x)
    if x.ndim == 0:
        raise ValueError(f"unstack expects at least 1 dimension, got {x.aval}")
    return _unstack(x, axis_of("unstack", axis, x.ndim))


@fused(static=("axis",))
def _unstack(x, axis):
    if x.shape[axis] == 0:
        return ()
    return tuple([ax.squeeze(part, (axis,)) for part in shaping.split(x, (1,) * x.shape[axis], axis)])


# ---- reversing and turning ---------------------------------------------------------------------------------------


def flip(m, axis=None) -> Array:
    """`m` with the order along the given axes (all, if None) reversed."""
    m = _array("flip", m)
    return shaping.rev(m, axes_of("flip", axis, m.ndim))


def fliplr(m) -> Array:
    """`m` with the order along its second axis reversed."""
    return flip(m, 1)


def flipud(m) -> Array:
    """`m` with the order along its first axis reversed."""
    return flip(m, 0)


@fused(static=("k", "axes"))
def rot90(m, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """`m` turned by k quarter turns in the plane of two axes, from the first towards the second."""
    m = _array("rot90", m)
    if m.ndim < 2:
        raise ValueError(f"rot90 requires its first argument to have ndim at least two, but got first argument of {m.aval}")
    first, second = axes_of("rot90", tuple(axes), m.ndim)
    match k % 4:
        case 0:
            return m
        case 1:
            return swapaxes(flip(m, second), first, second)
        case 2:
            return flip(m, (first, second))
    return flip(swapaxes(m, first, second), second)


def roll(a, shift, axis=None) -> Array:
    """`a` with its elements moved on by `shift` along `axis` (flattened, if None), those past the end at the start.

    `shift` may be traced.
    """
    a = _array("roll", a)
    if isinstance(shift, Array):
        return _roll_by_values(a, shift, axis if axis is None or isinstance(axis, int) else tuple(axis))
    if axis is None:
        return reshape(_roll(reshape(a, (-1,)), (index_of("roll", "shift", np.sum(shift)),), (0,)), a.shape)
    axis = [axis_of("roll", i, a.ndim) for i in (axis if isinstance(axis, tuple | list) else (axis,))]
    shifts, where = np.broadcast_arrays(shift, axis)
    return _roll(a, tuple(map(int, shifts.ravel())), tuple(map(int, where.ravel())))


@fused(static=("shifts", "where"))
def _roll(a, shifts, where):
    for shift, axis in zip(shifts, where, strict=True):
        length = a.shape[axis]
        cut = -shift % length if length else 0
        if cut:
            tail = shaping.slice_in_dim(a, cut, length, axis=axis)
            a = shaping.concatenate([tail, shaping.slice_in_dim(a, 0, cut, axis=axis)], axis)
    return a


@fused(static=("axis",))
def _roll_by_values(a, shift, axis):
    if axis is None:
        return reshape(_roll_by_values(reshape(a, (-1,)), shift, 0), a.shape)
    where = [axis_of("roll", i, a.ndim) for i in (axis if isinstance(axis, tuple) else (axis,))]
    shifts = unstack(spread(shift, (len(where),)))
    for by, i in zip(shifts, where, strict=True):
        a = _roll_axis(a, by, i)
    return a


# a rolled by s is [a, a] from n - s mod n on
def _roll_axis(a, by, axis):
    length = a.shape[axis]
    if length == 0:
        return a
    start = remainder(negative(by), length)
    starts = [start if i == axis else 0 for i in range(a.ndim)]
    return indexing.dynamic_slice(shaping.concatenate([a, a], axis), starts, a.shape)


# ---- repeating whole ---------------------------------------------------------------------------------------------


def tile(A, reps) -> Array:
    """`A` laid side by side `reps` times, an int or one for each axis (new axes in front)."""
    reps = tuple([index_of("tile", "reps", r) for r in reps]) if np.iterable(reps) else (index_of("tile", "reps", reps),)
    return _tile(_array("tile", A), reps)


@fused(static=("reps",))
def _tile(a, reps):
    rank = max(len(reps), a.ndim)
    shape = (1,) * (rank - a.ndim) + a.shape
    reps = (1,) * (rank - len(reps)) + reps
    if all(r == 1 for r in reps):
        return ax.reshape(a, shape)
    thin = ax.reshape(a, [m for n in shape for m in (1, n)])
    wide = spread(thin, tuple([m for r, n in zip(reps, shape, strict=True) for m in (r, n)]))
    return ax.reshape(wide, [r * n for r, n in zip(reps, shape, strict=True)])


def resize(a, new_shape) -> Array:
    """The elements of `a` in a row, repeated or cut to fill `new_shape`."""
    a, new_shape = ravel(_array("resize", a)), shape_of("resize", new_shape)
    size = math.prod(new_shape)
    if a.size == 0:
        return ax.broadcast_in_dim(a.dtype.type(0), new_shape)
    repeated = tile(a, -(-size // a.size))
    return ax.reshape(shaping.slice_in_dim(repeated, 0, size), new_shape)


# ---- flat and multi-dimensional indices --------------------------------------------------------------------------


def unravel_index(indices, shape) -> tuple[Array, ...]:
    """The index along each axis of `shape` of the elements at flat, row-major `indices`; out of bounds, the nearest.

    The lengths of `shape` may be traced.
    """
    indices = as_array(operand("unravel_index", indices))
    lengths = list(shape) if isinstance(shape, list | tuple) or np.ndim(shape) else [shape]
    if not any(isinstance(n, Tracer) for n in lengths):
        return _unravel_index(indices, shape_of("unravel_index", lengths))
    total = lengths[0]
    for n in lengths[1:]:
        total = multiply(total, n)
    from_end = add(indices, total)
    rest = clip(ew.select(ew.lt(indices, 0), ew.convert(from_end, indices.dtype), indices), 0, subtract(total, 1))
    out = []
    for n in reversed(lengths):
        out.append(ew.convert(remainder(rest, n), indices.dtype))
        rest = floor_divide(rest, n)
    return tuple(out[::-1])


@fused(static=("shape",))
def _unravel_index(indices, shape):
    size = math.prod(shape)
    from_end = ew.lt(indices, 0)
    rest = ew.select(from_end, ew.add(indices, size), indices)
    rest = clip(rest, 0, max(size - 1, 0))
    out = []
    for n in reversed(shape):
        out.append(remainder(rest, n))
        rest = floor_divide(rest, n)
    return tuple(out[::-1])


def ravel_multi_index(multi_index, dims, mode: str = "raise", order: Literal["C", "F"] = "C", *, dtype=None) -> Array:
    """The flat index in an array of shape `dims` of the elements at one index for each axis.

    `mode` is 'clip', 'wrap', 'ignore' (indices are taken as they are), or 'raise', for which they must be known values.
    """
    dims = shape_of("ravel_multi_index", dims)
    if len(multi_index) != len(dims):
        raise ValueError(f"ravel_multi_index expects {len(dims)} index arrays for the shape {dims}, got {len(multi_index)}")
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}")
    wide = None if dtype is None else dtypes.canonical(dtype)
    if mode == "raise":
        advice = (
            "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. "
            "Use mode='wrap' or mode='clip' instead."
        )
        known = [concrete("ravel_multi_index", "multi_index", x, advice) for x in multi_index]
        flat = np.ravel_multi_index(tuple(known), dims, order=order) if known else 0
        kept = dtypes.result_type(*multi_index) if multi_index else dtypes.default_int()
        return ew.convert(as_array(np.asarray(flat)), wide or kept)
    bound = {"clip": lambda i, n: clip(i, 0, n - 1), "wrap": remainder, "ignore": lambda i, n: i}.get(mode)
    if bound is None:
        raise ValueError(f"ravel_multi_index: mode must be 'raise', 'clip', 'wrap' or 'ignore', got {mode!r}")
    pairs = list(zip(multi_index, dims, strict=True))
    flat = None
    for index, n in pairs if order == "C" else reversed(pairs):
        index = as_array(operand("ravel_multi_index", index))
        index = bound(ew.convert(index, wide or index.dtype), n)
        flat = index if flat is None else add(multiply(flat, n), index)
    return as_array(np.zeros((), wide or dtypes.default_int()) if flat is None else flat)
