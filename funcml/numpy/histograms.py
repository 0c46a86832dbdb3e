"""Counts: of integers, and of samples in bins.

A bin holds its lower edge, the last one its upper edge too; samples outside of all bins, and nan, are not counted.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.lowering.execute import fused
from funcml.numpy.arguments import concrete, index_of, no_sharding
from funcml.numpy.creation import linspace
from funcml.numpy.promotion import as_array, operand, operands, promote_dtypes, spread, to_inexact
from funcml.numpy.reductions import max as max_of
from funcml.numpy.reductions import min as min_of
from funcml.numpy.rows import fill
from funcml.numpy.sampled import diff
from funcml.numpy.sorting import searchsorted
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives.gather_scatter import ScatterDimensionNumbers, scatter_add

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def bincount(x, weights=None, minlength: int = 0, *, length: int | None = None, out_sharding=None) -> Array:
    """How often each of 0, 1, ... stands in the vector of integers `x`, or the sum of the `weights` where it does.

    The result has at least `minlength` elements, or exactly `length`, so that `x` may be traced: greater integers are then
    not counted. Negative ones count as 0.

    >>> bincount(np.array([0, 1, 1, 3]))
    Array([1, 2, 0, 1], dtype=int32)
    """
    no_sharding("bincount", out_sharding)
    x = as_array(operand("bincount", x))
    if not (dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
        raise TypeError(f"bincount expects integers, got {x.aval}; convert them with .astype(int)")
    if x.ndim != 1:
        raise ValueError(f"bincount expects a vector, got {x.aval}")
    minlength = index_of("bincount", "minlength", minlength)
    if length is None:
        known = concrete("bincount", "the array (without `length`)", x)
        length = max(minlength, int(known.max()) + 1 if known.size else 0)
    weights = None if weights is None else operand("bincount", weights)
    if weights is not None and np.shape(weights) != x.shape:
        raise ValueError(f"bincount: x {x.aval} and weights {aval_of(weights)} must have one shape")
    return _bincount(x, weights, index_of("bincount", "length", length), dtypes.default_int())


@fused(static=("length", "dtype"))
def _bincount(x, weights, length, dtype):
    x = ew.convert(x, dtypes.int32) if dtypes.is_bool(x.dtype) else x
    x = ew.max(x, 0) if dtypes.is_signed(x.dtype) else x
    return _counted(x, fill(ew.convert(x, dtype), 1) if weights is None else as_array(weights), length)


def _counted(places, amounts, length: int):
    """[n] places and amounts -> [length]; places outside are dropped."""
    if not length:
        return ax.broadcast_in_dim(amounts.dtype.type(0), (0,))
    zeros = ax.broadcast_in_dim(amounts.dtype.type(0), (length,))
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    return scatter_add(zeros, ax.expand_dims(places, (1,)), amounts, numbers, mode="drop")


# ---- one axis ----------------------------------------------------------------------------------------------------


def histogram_bin_edges(a, bins=10, range=None, weights=None) -> Array:
    """The edges of `bins` equal bins over `range` (from the least to the greatest element, if None), or `bins` themselves.

    The name of one of NumPy's rules for the number of bins needs an array of known values.
    """
    if isinstance(bins, str):
        edges = np.histogram_bin_edges(concrete("histogram_bin_edges", "an array under a rule", a), bins, range)
        return asarray(edges, dtypes.inexact_dtype(dtypes.result_type(a)))
    bins = np.asarray(bins) if isinstance(bins, list | tuple) else bins
    a, bins = operands("histogram_bin_edges", (a, bins))
    dtype = dtypes.inexact_dtype(dtypes.result_type(a))
    if np.ndim(bins) == 1:
        return ew.convert(as_array(bins), dtype)
    count = index_of("histogram_bin_edges", "bins", bins)
    if count < 1:
        raise ValueError(f"histogram_bin_edges: there must be at least one bin, got bins={count}")
    if range is None:
        return _edges(a, None, count, dtype)
    limits = list(range)
    if len(limits) != 2 or any(map(np.ndim, limits)):
        raise ValueError(f"histogram_bin_edges: range must be a pair of numbers or None, got {range!r}")
    if any(isinstance(x, Array) for x in limits):
        return _edges(None, [as_array(x) for x in limits], count, dtype)
    low, high = limits
    return asarray(np.linspace(low - 0.5, high + 0.5, count + 1) if low == high else np.linspace(low, high, count + 1), dtype)


@fused(static=("count", "dtype"))
def _edges(a, limits, count, dtype):
    if limits is None:
        a = as_array(a)
        limits = (np.zeros((), dtype), np.ones((), dtype)) if a.size == 0 else (min_of(a), max_of(a))
    low, high = [ew.convert(as_array(x), dtype) for x in limits]
    width = ew.select(ew.eq(low, high), fill(low, 0.5), fill(low, 0))
    return linspace(ew.sub(low, width), ew.add(high, width), count + 1, dtype=dtype)


def _bins(edges, x):
    """The bin of each element of `x`, and whether it lies in one."""
    n = edges.shape[0]
    place = ew.sub(searchsorted(edges, x, side="right"), 1)
    last = spread(ax.squeeze(shaping.slice_in_dim(edges, n - 1, n), (0,)), x.shape)
    place = ew.select(ew.eq(x, last), fill(place, n - 2), place)
    return place, ew.and_(ew.ge(place, 0), ew.lt(place, n - 1))


def histogram(a, bins=10, range=None, weights=None, density: bool | None = None) -> tuple[Array, Array]:
    """(how many samples of `a` lie in each bin, the edges of the bins), both of a float dtype.

    `bins` is their number or the vector of their edges; with `weights`, one for each sample, these are summed. With `density`
    the result is divided by its integral.

    >>> histogram(np.array([1.0, 2.0, 1.5]), bins=2)[0]
    Array([1., 2.], dtype=float64)
    """
    if weights is None:
        a, weights = operand("histogram", a), None
        edges = histogram_bin_edges(a, bins, range)
        return _histogram(a, edges, None, bool(density)), edges
    a, weights = promote_dtypes("histogram", a, weights, inexact=True)
    if np.shape(a) != np.shape(weights):
        raise ValueError(f"histogram: a {aval_of(a)} and weights {aval_of(weights)} must have one shape")
    edges = histogram_bin_edges(a, bins, range)
    return _histogram(a, edges, weights, bool(density)), edges


@fused(static=("density",))
def _histogram(a, edges, weights, density):
    a = as_array(to_inexact("histogram", a))
    a = ax.reshape(a, (a.size,))
    a, edges = [as_array(x) for x in promote_dtypes("histogram", a, edges)]
    place, counts = _bins(edges, a)
    n = edges.shape[0] - 1
    amounts = ew.convert(counts, dtypes.int32) if weights is None else ax.reshape(as_array(weights), (a.size,))
    out = _counted(ew.select(counts, place, fill(place, n)), amounts, n)
    out = ew.convert(out, a.dtype)
    if not density:
        return out
    total = spread(ax.reduce_sum(out, (0,)), out.shape)
    return ew.div(ew.div(out, diff(edges)), total)


# ---- several axes ------------------------------------------------------------------------------------------------


def histogram2d(x, y, bins=10, range=None, weights=None, density: bool | None = None) -> tuple[Array, Array, Array]:
    """(how many of the points (x, y) lie in each bin, the edges along x, the edges along y).

    `bins` is a number or a vector of edges, for both axes, or a pair of them.
    """
    x, y = [as_array(v) for v in promote_dtypes("histogram2d", x, y)]
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"histogram2d expects vectors of one length, got {x.aval} and {y.aval}")
    if np.ndim(bins) if not isinstance(bins, list | tuple) else len(bins) > 2:
        bins = [bins, bins] if len(bins) > 2 else list(bins)
    sample = shaping.concatenate([ax.expand_dims(x, (1,)), ax.expand_dims(y, (1,))], 1)
    out, (x_edges, y_edges) = histogramdd(sample, bins, range, weights, density)
    return out, x_edges, y_edges


def histogramdd(sample, bins=10, range=None, weights=None, density: bool | None = None) -> tuple[Array, list[Array]]:
    """(how many of the points `sample` [points, D] lie in each bin, the edges along each of the D axes).

    `bins` is a number for all axes, or a list of D numbers or vectors of edges; `range` a list of D pairs, or None for all
    that there is. With `weights`, one for each point, these are summed; with `density` the result is divided by its integral.
    """
    sample = as_array(operand("histogramdd", sample))
    if sample.ndim != 2:
        raise ValueError(f"histogramdd expects points as rows of a matrix, got {sample.aval}")
    count, rank = sample.shape
    if weights is not None:
        sample, weights = [as_array(x) for x in promote_dtypes("histogramdd", sample, weights, inexact=True)]
        if weights.shape != (count,):
            raise ValueError(f"histogramdd: one weight for each of the {count} points expected, got {weights.aval}")
    bins = list(bins) if isinstance(bins, list | tuple) or np.ndim(bins) else [bins] * rank
    if len(bins) != rank:
        raise ValueError(f"histogramdd of {sample.aval}: bins for each of the {rank} axes expected, got {len(bins)}")
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank or any(r is not None and np.shape(r) != (2,) for r in ranges):
        raise ValueError(f"histogramdd of {sample.aval}: range must be a list of {rank} pairs or Nones, got {range!r}")
    columns = [ax.squeeze(column, (1,)) for column in shaping.split(sample, (1,) * rank, 1)]
    edges = [histogram_bin_edges(*args) for args in zip(columns, bins, ranges, strict=True)]
    return _histogramdd(columns, edges, weights, bool(density), dtypes.default_int()), edges


# The bins of all axes are numbered as one, row-major.
@fused(static=("density", "dtype"))
def _histogramdd(columns, edges, weights, density, dtype):
    lengths = [e.shape[0] - 1 for e in edges]
    place = counts = None
    for column, edge, n in zip(columns, edges, lengths, strict=True):
        edge, column = [as_array(x) for x in promote_dtypes("histogramdd", edge, to_inexact("histogramdd", column))]
        here, inside = _bins(edge, column)
        place = here if place is None else ew.add(ew.mul(place, n), here)
        counts = inside if counts is None else ew.and_(counts, inside)
    size = math.prod(lengths)
    amounts = ew.convert(counts, dtype) if weights is None else as_array(weights)
    out = ax.reshape(_counted(ew.select(counts, place, fill(place, size)), amounts, size), lengths)
    if not density:
        return out
    out = ew.convert(out, edges[0].dtype)
    out = ew.div(out, spread(ax.reduce_sum(out, tuple(i for i, _ in enumerate(lengths))), out.shape))
    for i, edge in enumerate(edges):
        out = ew.div(out, ax.broadcast_in_dim(diff(edge), out.shape, (i,)))
    return out
