"""Shapes, windows and places: `lax`'s names over the primitives that move elements."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Iterator

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lax.operands import array, unsharded
from funcml.lowering.execute import fused
from funcml.numpy import creation, manipulation
from funcml.numpy.arguments import axes_of, axis_of, index_of, shape_of
from funcml.numpy.promotion import as_array, literal, operand, operands
from funcml.primitives import axes as ax
from funcml.primitives import identities, indexing
from funcml.primitives import shaping as sh

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota", "collapse",
    "concatenate", "dtype", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "empty", "expand_dims", "full", "full_like", "gather",
    "index_in_dim", "index_take", "iota", "pad", "reshape", "rev", "scatter", "scatter_add", "scatter_apply", "scatter_max",
    "scatter_min", "scatter_mul", "scatter_sub", "shape_as_value", "slice", "slice_in_dim", "split", "squeeze", "stack",
    "stage", "tile", "transpose", "unstack", "zeros_like_array",
]


# ---- shape -------------------------------------------------------------------------------------------------------


def broadcast(operand, sizes, *, out_sharding=None) -> Array:
    """The operand repeated along new axes of these sizes, in front."""
    unsharded("broadcast", out_sharding)
    x = array("broadcast", operand)
    sizes = shape_of("lax.broadcast", sizes)
    return ax.broadcast_in_dim(x, (*sizes, *x.shape), tuple(range(len(sizes), len(sizes) + x.ndim)))


def broadcast_like(arr, like_arr) -> Array:
    """`arr` repeated to have the shape of `like_arr`; axes are counted from the last."""
    return manipulation.broadcast_to(arr, array("broadcast_like", like_arr).shape)


def broadcast_in_dim(operand, shape, broadcast_dimensions, *, out_sharding=None) -> Array:
    """The operand repeated to have `shape`, its axis i being axis `broadcast_dimensions[i]` of the result."""
    unsharded("broadcast_in_dim", out_sharding)
    dims = tuple([index_of("lax.broadcast_in_dim", "a dimension", d) for d in broadcast_dimensions])
    x = array("broadcast_in_dim", operand)
    shape = shape_of("lax.broadcast_in_dim", shape)
    for fault in _broadcast_faults(x.ndim, len(shape), dims):
        raise TypeError(f"lax.broadcast_in_dim of {x.aval} to shape {shape}: {fault}, got {dims}")
    if list(dims) != sorted(dims):
        x = ax.transpose(x, sorted(range(x.ndim), key=dims.__getitem__))
        dims = tuple(sorted(dims))
    return ax.broadcast_in_dim(x, shape, dims)


def _broadcast_faults(ndim: int, out_ndim: int, dims: tuple[int, ...]) -> Iterator[str]:
    """What is wrong with the axes of a result to which those of an operand belong; the first text counts."""
    if len(dims) != ndim:
        yield "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim"
    if ndim > out_ndim:
        yield "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape"
    if any(not 0 <= d < out_ndim for d in dims):
        yield "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions"
    if len(set(dims)) != len(dims):
        yield "broadcast_in_dim broadcast_dimensions must not contain duplicates"


def broadcast_shapes(*shapes) -> tuple[int, ...]:
    """The shape to which shapes of one rank broadcast, lengths of 1 being stretched; lower ranks count from the right."""
    return np.broadcast_shapes(*shapes)


def broadcast_to_rank(x, rank: int) -> Array:
    """`x` with as many axes of length 1 in front as it lacks to `rank`."""
    x = array("broadcast_to_rank", x)
    if rank < x.ndim:
        raise ValueError(f"lax.broadcast_to_rank of {x.aval}: it has more than {rank} axes")
    return ax.reshape(x, (1,) * (rank - x.ndim) + x.shape)


def reshape(operand, new_sizes, dimensions=None, *, out_sharding=None) -> Array:
    """The operand, its axes first put into the order `dimensions`, under another shape, row-major."""
    unsharded("reshape", out_sharding)
    x = array("reshape", operand)
    if dimensions is not None:
        x = transpose(x, dimensions)
    return ax.reshape(x, shape_of("lax.reshape", new_sizes))


def transpose(operand, permutation) -> Array:
    """The operand with its axes permuted: axis i of the result is its axis `permutation[i]`."""
    permutation = tuple([index_of("lax.transpose", "an axis", p) for p in permutation])
    x = array("transpose", operand)
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(f"lax.transpose of {x.aval}: permutation must order its {x.ndim} axes, got {permutation}")
    return ax.transpose(x, permutation)


def expand_dims(array, dimensions) -> Array:
    """`array` with axes of length 1 at the places `dimensions` of the result."""
    return manipulation.expand_dims(array, tuple(dimensions))


def squeeze(array, dimensions) -> Array:
    """`array` without the axes `dimensions`, which have length 1."""
    return manipulation.squeeze(array, tuple(dimensions))


def collapse(operand, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The operand with its axes from start to stop joined into one."""
    x = array("collapse", operand)
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(x.ndim)
    if stop < start:
        raise ValueError(f"lax.collapse of {x.aval}: the axes {start_dimension} to {stop_dimension} are none")
    return ax.reshape(x, (*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]))


def full(shape, fill_value, dtype=None, *, sharding=None) -> Array:
    """An array of this shape with `fill_value` everywhere; `sharding` says where it is."""
    return creation.full(shape, fill_value, dtype, device=sharding)


def full_like(x, fill_value, dtype=None, shape=None, sharding=None) -> Array:
    """An array with the shape and dtype of `x`, where these are not given, and `fill_value` everywhere."""
    return creation.full_like(x, fill_value, dtype, shape, device=sharding)


def empty(shape, dtype, *, out_sharding=None) -> Array:
    """An array of zeros: there is no uninitialised memory."""
    unsharded("empty", out_sharding)
    return full(shape, 0, dtype)


def zeros_like_array(x) -> Array:
    """An array of zeros with the type of `x`."""
    return full_like(x, 0)


def iota(dtype, size: int) -> Array:
    """0, 1, .., size - 1."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype, shape, dimension: int, *, out_sharding=None) -> Array:
    """The array whose elements are their index along `dimension`."""
    unsharded("broadcasted_iota", out_sharding)
    return sh.iota(dtypes.canonical(dtype), shape_of("lax.broadcasted_iota", shape), dimension)


def dtype(x) -> np.dtype:
    """The dtype of an array or a number, or the one that a dtype, its name or a scalar type stands for."""
    if isinstance(x, str | type | np.dtype):
        return dtypes.canonical(x)
    return dtypes.dtype_of(operand("lax.dtype", x))[0]


def shape_as_value(shape) -> np.ndarray:
    """The lengths of a shape as a vector of integers."""
    return np.asarray(shape_of("lax.shape_as_value", shape), np.int32)


def stage(x, /) -> Array:
    """`x` as an array: inside a trace, a value of the program."""
    return identities.copy(array("stage", x))


# ---- order, joining and static windows ---------------------------------------------------------------------------


def rev(operand, dimensions) -> Array:
    """The operand with the order along `dimensions` reversed."""
    return sh.rev(array("rev", operand), tuple(dimensions))


def pad(operand, padding_value, padding_config) -> Array:
    """The operand with `padding_value` around and between its elements: (low, high, interior) for each axis."""
    x = array("pad", operand)
    fill, fill_aval = padding_value, aval_of(padding_value)
    if not hasattr(fill, "dtype"):
        fill = literal(fill, x.dtype)
    elif fill_aval.dtype != x.dtype:
        raise TypeError(f"lax.pad expects a padding_value of the dtype of {x.aval}, got {fill_aval}")
    if fill_aval.shape != ():
        raise ValueError(f"lax.pad of {x.aval}: the padding_value must be a scalar, got {fill_aval}")
    return sh.pad(x, fill, _padding_config(x, padding_config))


def _padding_config(x, config):
    """(low, high, interior) for each axis, as ints."""
    rows = [tuple([index_of("lax.pad", "padding", n) for n in row]) for row in config]
    if len(rows) != x.ndim or any(len(row) != 3 for row in rows):
        raise ValueError(
            f"lax.pad of {x.aval}: padding_config must have (low, high, interior) for each of its {x.ndim} axes, got {rows}"
        )
    if any(row[2] < 0 for row in rows):
        raise ValueError(f"lax.pad of {x.aval}: interior padding in padding_config must be nonnegative, got {rows}")
    lengths = [low + n + builtins.max(n - 1, 0) * inner + high for n, (low, high, inner) in zip(x.shape, rows, strict=True)]
    if any(n < 0 for n in lengths):
        raise ValueError(f"lax.pad of {x.aval}: Dimension size after padding is not at least 0 with padding_config {rows}")
    return rows


def concatenate(operands, dimension: int) -> Array:
    """Arrays of one dtype, joined along an axis; elsewhere their shapes are equal."""
    if not isinstance(operands, list | tuple) or not operands:
        raise ValueError(f"lax.concatenate expects a sequence of at least one array, got {operands!r}")
    return sh.concatenate([array("concatenate", x) for x in operands], dimension)


def stack(operands, axis: int = 0) -> Array:
    """Arrays of one type, joined along a new axis."""
    parts = [array("stack", x) for x in operands]
    if not parts:
        raise ValueError("lax.stack expects at least one array, got none")
    axis = axis_of("lax.stack", axis, parts[0].ndim + 1)
    return sh.concatenate([ax.expand_dims(x, (axis,)) for x in parts], axis)


def unstack(x, axis: int = 0) -> tuple[Array, ...]:
    """The slices of `x` along an axis, without that axis."""
    return manipulation.unstack(x, axis=axis)


def split(operand, sizes, axis: int = 0) -> list[Array]:
    """The operand cut along `axis` into pieces of these sizes."""
    x = array("split", operand)
    sizes = tuple([index_of("lax.split", "a size", n) for n in sizes])
    axis = axis_of("lax.split", axis, x.ndim)
    if any(n < 0 for n in sizes):
        raise ValueError(f"lax.split of {x.aval}: Sizes passed to split must be nonnegative, got {sizes}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"lax.split of {x.aval}: Sum of sizes {sum(sizes)} must be equal to the length {x.shape[axis]} of axis {axis}"
        )
    return sh.split(x, sizes, axis)


def tile(operand, reps) -> Array:
    """The operand laid side by side, as often along each axis as `reps` says."""
    x = array("tile", operand)
    if len(reps) != x.ndim:
        raise ValueError(f"lax.tile of {x.aval} expects a number for each axis, got {tuple(reps)}")
    return manipulation.tile(x, tuple(reps))


def slice(operand, start_indices, limit_indices, strides=None) -> Array:
    """The window start:limit:stride along every axis; all static, and within the operand."""
    return sh.slice_(array("slice", operand), tuple(start_indices), tuple(limit_indices), strides and tuple(strides))


def slice_in_dim(operand, start_index, limit_index, stride: int = 1, axis: int = 0) -> Array:
    """`operand[start:limit:stride]` along `axis`; negative bounds count from the end, None is the end itself."""
    x = array("slice_in_dim", operand)
    axis = axis_of("lax.slice_in_dim", axis, x.ndim)
    n = x.shape[axis]
    bounds = ((start_index, 0), (limit_index, n))
    start, limit = [default if i is None else index_of("lax.slice_in_dim", "a bound", i) for i, default in bounds]
    start, limit = start + n * (start < 0), limit + n * (limit < 0)
    return sh.slice_in_dim(x, start, limit, index_of("lax.slice_in_dim", "stride", stride), axis)


def index_in_dim(operand, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice at a static index of `axis`, which stays, of length 1, unless `keepdims` is False."""
    x = array("index_in_dim", operand)
    axis, index = axis_of("lax.index_in_dim", axis, x.ndim), index_of("lax.index_in_dim", "index", index)
    n = x.shape[axis]
    if not -n <= index < n:
        raise IndexError(f"lax.index_in_dim: index {index} is out of bounds for axis {axis} of {x.aval}")
    out = sh.slice_in_dim(x, index % n, index % n + 1, axis=axis)
    return out if keepdims else ax.squeeze(out, (axis,))


# ---- windows at positions known at run time ----------------------------------------------------------------------


def dynamic_slice(operand, start_indices, slice_sizes, *, allow_negative_indices: bool = True) -> Array:
    """The window of static sizes at `start_indices`, a scalar integer for each axis; moved inside if it is not."""
    sizes = shape_of("lax.dynamic_slice", slice_sizes)
    return _dynamic_slice(array("dynamic_slice", operand), _starts(start_indices), sizes, bool(allow_negative_indices))


def _starts(start_indices):
    if isinstance(start_indices, Array | np.ndarray):
        return start_indices
    return [as_array(i) for i in start_indices]


@fused(static=("sizes", "negative"))
def _dynamic_slice(x, starts, sizes, negative):
    return indexing.dynamic_slice(x, starts, sizes, allow_negative_indices=negative)


def dynamic_slice_in_dim(operand, start_index, slice_size: int, axis: int = 0, *, allow_negative_indices=True) -> Array:
    """The window of a static size at `start_index` of one axis, all of the others."""
    x = array("dynamic_slice_in_dim", operand)
    axis = axis_of("lax.dynamic_slice_in_dim", axis, x.ndim)
    starts = [start_index if i == axis else 0 for i in range(x.ndim)]
    sizes = [slice_size if i == axis else n for i, n in enumerate(x.shape)]
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(operand, index, axis: int = 0, keepdims: bool = True, *, allow_negative_indices=True) -> Array:
    """The slice at an index of `axis`, which stays, of length 1, unless `keepdims` is False."""
    x = array("dynamic_index_in_dim", operand)
    out = dynamic_slice_in_dim(x, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else ax.squeeze(out, axes_of("lax.dynamic_index_in_dim", axis, x.ndim))


def dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices: bool = True) -> Array:
    """The operand with the window of the shape of `update` at `start_indices` replaced by it; moved inside if it is not."""
    x, update = array("dynamic_update_slice", operand), array("dynamic_update_slice", update)
    if update.dtype != x.dtype:
        raise TypeError(f"lax.dynamic_update_slice expects an update of the dtype of {x.aval}, got {update.aval}")
    return _dynamic_update_slice(x, update, _starts(start_indices), bool(allow_negative_indices))


@fused(static=("negative",))
def _dynamic_update_slice(x, update, starts, negative):
    return indexing.dynamic_update_slice(x, update, starts, allow_negative_indices=negative)


def dynamic_update_slice_in_dim(operand, update, start_index, axis: int, *, allow_negative_indices=True) -> Array:
    """The operand with the window at `start_index` of one axis replaced by `update`."""
    x = array("dynamic_update_slice_in_dim", operand)
    axis = axis_of("lax.dynamic_update_slice_in_dim", axis, x.ndim)
    starts = [start_index if i == axis else 0 for i in range(x.ndim)]
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand, update, index, axis: int, *, allow_negative_indices=True) -> Array:
    """The operand with the slice at an index of `axis` replaced by `update`, which may lack that axis."""
    x, update = array("dynamic_update_index_in_dim", operand), array("dynamic_update_index_in_dim", update)
    axis = axis_of("lax.dynamic_update_index_in_dim", axis, x.ndim)
    if update.ndim != x.ndim:
        update = ax.expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(x, update, index, axis, allow_negative_indices=allow_negative_indices)


def index_take(src, idxs, axes) -> Array:
    """The elements of `src` at vectors of indices `idxs`, one for each of `axes`, stacked in front; clipped into bounds."""
    src = array("index_take", src)
    axes = axes_of("lax.index_take", tuple(axes), src.ndim)
    return _index_take(src, [array("index_take", i) for i in idxs], axes)


@fused(static=("axes",))
def _index_take(src, idxs, axes):
    rows = sh.concatenate([ax.expand_dims(i, (1,)) for i in idxs], 1)
    window = tuple(range(1, src.ndim - len(axes) + 1))
    sizes = [1 if i in axes else n for i, n in enumerate(src.shape)]
    return indexing.gather(src, rows, indexing.GatherDimensionNumbers(window, axes, axes), sizes, mode="clip")


# ---- many windows ------------------------------------------------------------------------------------------------


def _on_arrays(function, count: int):
    """The function of primitives with its first `count` arguments made arrays."""

    @functools.wraps(function, updated=())
    def checked(*args, **options):
        return function(*operands(f"lax.{function.__name__}", args[:count]), *args[count:], **options)

    checked.__module__ = "funcml.lax"
    return checked


gather = _on_arrays(indexing.gather, 2)
scatter = _on_arrays(indexing.scatter, 3)
scatter_add = _on_arrays(indexing.scatter_add, 3)
_scatter_sub = _on_arrays(indexing.scatter_sub, 3)


def scatter_sub(
    operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False, unique_indices=False, mode=None
) -> Array:
    """`operand` with `updates` subtracted from the windows at `scatter_indices`."""
    options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
    return _scatter_sub(operand, scatter_indices, updates, dimension_numbers, **options)


scatter_mul = _on_arrays(indexing.scatter_mul, 3)
scatter_min = _on_arrays(indexing.scatter_min, 3)
scatter_max = _on_arrays(indexing.scatter_max, 3)
scatter_apply = _on_arrays(indexing.scatter_apply, 2)
