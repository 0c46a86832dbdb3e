"""Reductions over segments: elements of the same number go into the same result.

    segment_sum, segment_prod, segment_max, segment_min : data [n, ...], ids [n] -> [num_segments, ...]
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import concrete, index_of
from funcml.numpy.promotion import as_array, literal, operand
from funcml.primitives import gather_scatter as gs
from funcml.primitives import reductions as red
from funcml.primitives.axes import broadcast_in_dim, expand_dims, reduce_sum
from funcml.primitives.elementwise import convert, div
from funcml.primitives.shaping import concatenate, iota

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _lowest(dtype, sign: int):
    """The least value of a dtype (the greatest, if `sign` is -1)."""
    if dtypes.is_bool(dtype):
        return sign < 0
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).min if sign > 0 else dtypes.iinfo(dtype).max)
    return -sign * math.inf


_REDUCTIONS = {
    "segment_sum": (gs.scatter_add, lambda dtype: 0, reduce_sum),
    "segment_prod": (gs.scatter_mul, lambda dtype: 1, red.reduce_prod),
    "segment_max": (gs.scatter_max, lambda dtype: _lowest(dtype, 1), red.reduce_max),
    "segment_min": (gs.scatter_min, lambda dtype: _lowest(dtype, -1), red.reduce_min),
}


def _reduced(name, data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode) -> Array:
    data, ids = as_array(operand(name, data)), as_array(operand(name, segment_ids))
    if not dtypes.is_integer(ids.dtype) or ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise TypeError(f"{name}: expected data [n, ...] and integer segment_ids [n], got {data.aval} and {ids.aval}")
    if num_segments is None:
        known = concrete(name, "num_segments=None (the greatest of segment_ids + 1)", ids)
        num_segments = int(known.max()) + 1 if known.size else 0
    count = index_of(name, "num_segments", num_segments)
    if count < 0:
        raise ValueError(f"{name}: num_segments must not be negative, got {count}")
    mode = gs.GatherScatterMode.from_any(mode)
    if bucket_size is not None:
        width = index_of(name, "bucket_size", bucket_size)
        if width < 1:
            raise ValueError(f"{name}: bucket_size must be positive, got {width}")
        return _bucketed(data, ids, name, count, width, bool(indices_are_sorted), bool(unique_indices), mode)
    return _segments(data, ids, name, count, bool(indices_are_sorted), bool(unique_indices), mode)


@fused(static=("name", "count", "indices_are_sorted", "unique_indices", "mode"))
def _segments(data, ids, name, count, indices_are_sorted, unique_indices, mode):
    scatter, unit, _ = _REDUCTIONS[name]
    start = broadcast_in_dim(literal(unit(data.dtype), data.dtype), (count, *data.shape[1:]))
    numbers = gs.ScatterDimensionNumbers(tuple(range(1, data.ndim)), (0,), (0,))
    options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
    return scatter(start, expand_dims(ids, (1,)), data, numbers, **options)


# [bucket, segment, ..] by a scatter at (i // width, id of i), then reduced over the buckets
@fused(static=("name", "count", "width", "indices_are_sorted", "unique_indices", "mode"))
def _bucketed(data, ids, name, count, width, indices_are_sorted, unique_indices, mode):
    scatter, unit, reduce = _REDUCTIONS[name]
    n = ids.shape[0]
    ids = ids if dtypes.bit_width(ids.dtype) == 64 else convert(ids, dtypes.int32)
    start = broadcast_in_dim(literal(unit(data.dtype), data.dtype), (-(-n // width), count, *data.shape[1:]))
    bucket = div(iota(ids.dtype, (n,)), ids.dtype.type(width))
    at = concatenate([expand_dims(x, (1,)) for x in (bucket, ids)], 1)
    numbers = gs.ScatterDimensionNumbers(tuple(range(1, data.ndim)), (0, 1), (0, 1))
    options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
    return reduce(scatter(start, at, data, numbers, **options), (0,))


def segment_sum(
    data, segment_ids, num_segments=None, indices_are_sorted=False, unique_indices=False, bucket_size=None, mode=None
) -> Array:
    """The sums of the elements of `data` along its first axis that have the same segment id; 0 for an empty segment.

    `num_segments` is the greatest id + 1 by default, which must then be known. Ids outside 0, ..., num_segments - 1 are
    left out, or treated as `mode` says. `indices_are_sorted` and `unique_indices` are promises about the ids. With
    `bucket_size` so many neighbours are taken together first, so that long sums lose fewer digits.

    >>> import numpy as np
    >>> segment_sum(np.float32([1, 2, 3]), np.array([0, 1, 0]))
    Array([4., 2.], dtype=float32)
    """
    return _reduced("segment_sum", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode)


def segment_prod(
    data, segment_ids, num_segments=None, indices_are_sorted=False, unique_indices=False, bucket_size=None, mode=None
) -> Array:
    """The products of the elements with the same segment id; 1 for an empty segment. Arguments as of `segment_sum`."""
    return _reduced("segment_prod", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode)


def segment_max(
    data, segment_ids, num_segments=None, indices_are_sorted=False, unique_indices=False, bucket_size=None, mode=None
) -> Array:
    """The greatest elements with the same segment id; the least value of the dtype (-inf) for an empty segment.

    Arguments as of `segment_sum`.
    """
    return _reduced("segment_max", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode)


def segment_min(
    data, segment_ids, num_segments=None, indices_are_sorted=False, unique_indices=False, bucket_size=None, mode=None
) -> Array:
    """The least elements with the same segment id; the greatest value of the dtype (inf) for an empty segment.

    Arguments as of `segment_sum`.
    """
    return _reduced("segment_min", data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode)
