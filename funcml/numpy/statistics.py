"""Order statistics: medians, quantiles and percentiles, with and without nan, with weights."""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, no_out, no_sharding
from funcml.numpy.creation import array
from funcml.numpy.promotion import as_array, exact, operand, promote_dtypes, settle, to_inexact
from funcml.numpy.reductions import static_axis
from funcml.numpy.rows import fill
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import indexing, sorting
from funcml.primitives import reductions as red

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

# Of n sorted elements x_0, .., x_{n-1}, the place of the quantile q is n q + a + q (1 - a - b) - 1. Sample quantiles in
# statistical packages, Hyndman and Fan, The American Statistician 50 (1996).
_SHARES = {
    "linear": (1, 1), "lower": (1, 1), "higher": (1, 1), "nearest": (1, 1), "midpoint": (1, 1), "inverted_cdf": (0, 1),
    "averaged_inverted_cdf": (0, 1), "closest_observation": (-0.5, 1.5), "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5), "weibull": (0, 0), "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None) -> Array:
    """The values below which the fraction `q` of the elements over the given axes lies; nan if there is one.

    `method` is one of NumPy's: 'linear' and six others interpolate, 'lower', 'higher', 'nearest', 'midpoint' and three others
    do not. The axes of `q` stand first in the result. `weights`, with the shape of `a` or of the given axes, go with
    'inverted_cdf'. Raises ValueError for a known `q` that is not in [0, 1].

    >>> quantile(array([1.0, 2.0, 3.0]), 0.25)
    Array(1.5, dtype=float32)
    """
    return _checked("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, 1, False)


def percentile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None, out_sharding=None
) -> Array:
    """`quantile` of q / 100."""
    no_sharding("percentile", out_sharding)
    return _checked("percentile", a, q, axis, out, overwrite_input, method, keepdims, weights, 100, False)


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None) -> Array:
    """`quantile` of the elements that are not nan."""
    return _checked("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, 1, True)


def nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None) -> Array:
    """`percentile` of the elements that are not nan."""
    return _checked("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights, 100, True)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False) -> Array:
    """The middle element over the given axes, or the mean of the two middle ones; nan if there is one."""
    return _checked("median", a, 0.5, axis, out, overwrite_input, "linear", keepdims, None, 1, False)


def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False) -> Array:
    """The median of the elements that are not nan."""
    return _checked("nanmedian", a, 0.5, axis, out, overwrite_input, "linear", keepdims, None, 1, True)


def _checked(name, a, q, axis, out, overwrite_input, method, keepdims, weights, whole, skip_nan):
    no_out(name, out)
    if overwrite_input:
        raise ValueError(f"{name}: arrays are immutable, so overwrite_input must be False")
    if method not in _SHARES:
        raise ValueError(f"{name}: method must be one of {', '.join(map(repr, _SHARES))}, got {method!r}")
    if not isinstance(q, Array) and not (isinstance(q, list | tuple) and any(isinstance(x, Array) for x in q)):
        known = np.asarray(q, np.float64)
        if (known < 0).any() or (known > whole).any():
            raise ValueError(f"{name}: q must lie in [0, {whole}], got {q!r}")
    q = array(q, dtypes.float64) if isinstance(q, list | tuple) else operand(name, exact(q))
    axis = static_axis(axis)
    if weights is None:
        return _quantile(operand(name, a), q, name, axis, method, bool(keepdims), whole, skip_nan)
    if method != "inverted_cdf":
        raise NotImplementedError(f"{name}: weights go with method='inverted_cdf' only, got {method!r}")
    return _weighted(*settle(name, a, weights), q, name, axis, bool(keepdims), whole, skip_nan)


def _real(name: str, a) -> Array:
    a = as_array(to_inexact(name, a))
    if dtypes.is_complex(a.dtype):
        raise ValueError(f"{name} expects real numbers, got {a.aval}")
    return ew.convert(a, a.dtype)


@fused(static=("name", "axis", "method", "keepdims", "whole", "skip_nan"))
def _quantile(a, q, name, axis, method, keepdims, whole, skip_nan):
    a, q = _real(name, a), as_array(q)
    axes = axes_of(name, axis, a.ndim)
    fractions = _fractions(name, q, a.dtype, whole)
    return _arranged(_of_rows(_rows(a, axes), fractions, method, skip_nan), a.shape, q.shape, axes, keepdims)


def _rows(a, axes):
    """[rows, elements over `axes`]."""
    others = [i for i in range(a.ndim) if i not in axes]
    length = math.prod([a.shape[i] for i in axes])
    return ax.reshape(ax.transpose(a, (*others, *axes)), (math.prod([a.shape[i] for i in others]), length))


def _arranged(out, shape, q_shape, axes, keepdims):
    """[rows, fractions] as the result."""
    kept = tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes])
    return ax.reshape(ax.moveaxis(out, 1, 0), (*q_shape, *kept))


def _fractions(name: str, q, dtype, whole):
    """`q` as a vector of parts of 1, in float64 if it is that: places among many elements need digits."""
    if q.ndim > 1:
        raise ValueError(f"{name} expects a number or a vector as q, got {q.aval}")
    wide = dtypes.float64 if dtypes.float64 in (dtype, q.dtype) else dtypes.float32
    q = ew.convert(ax.reshape(q, (q.size,)), wide)
    return q if whole == 1 else ew.div(q, float(whole))


def _of_rows(rows, q, method, skip_nan):
    count, n = rows.shape
    missing = ew.ne(rows, rows)
    shape = (count, q.shape[0])
    if n == 0:
        return ax.broadcast_in_dim(rows.dtype.type(math.nan), shape)
    rows = sorting.sort(ew.select(missing, fill(rows, math.inf), rows), 1)
    nans = ax.reduce_sum(ew.convert(missing, q.dtype), (1,))
    present = ew.sub(float(n), nans) if skip_nan else fill(nans, n)
    last = ax.broadcast_in_dim(ew.sub(ew.max(present, 1), 1), shape, (0,))
    q = ax.broadcast_in_dim(q, shape, (1,))
    first, second = _SHARES[method]
    place = ew.mul(q, ew.add(last, 2.0 - first - second) if first + second != 2 else last)
    place = ew.max(place, 0.0) if method in _STEPS else place  # else contracted with the addition, so that steps are missed
    place = ew.add(place, first - 1.0) if first != 1 else place
    floor = ew.floor(place)
    below, above = [
        indexing.take_along_axis(rows, ew.convert(ew.clamp(0.0, i, last), dtypes.int32), 1) for i in (floor, ew.add(floor, 1))
    ]
    out = _between(below, above, floor, ew.sub(place, floor), method)
    unknown = ew.eq(present, 0) if skip_nan else ew.gt(nans, 0)
    unknown = ew.or_(ax.broadcast_in_dim(unknown, shape, (0,)), ew.ne(q, q))
    return ew.select(unknown, fill(out, math.nan), out)


#: how much of the element above counts, for the part of the way to it; other methods take that part itself
_STEPS = {
    "lower": lambda floor, part: fill(part, 0),
    "higher": lambda floor, part: ew.sign(part),
    "nearest": lambda floor, part: ew.convert(ew.gt(part, 0.5), part.dtype),
    "midpoint": lambda floor, part: ew.mul(ew.sign(part), 0.5),
    "inverted_cdf": lambda floor, part: ew.sign(part),
    "averaged_inverted_cdf": lambda floor, part: ew.select(ew.eq(part, 0), fill(part, 0.5), fill(part, 1)),
    "closest_observation": lambda floor, part: ew.select(ew.eq(part, 0), ew.sub(1.0, ew.abs(ew.rem(floor, 2.0))), fill(part, 1)),
}


def _between(below, above, floor, part, method):
    equal = ew.eq(below, above)
    gap = ew.select(equal, fill(below, 0), ew.sub(above, below))
    if method not in _STEPS:
        part = ew.convert(part, below.dtype)
        infinite = ew.and_(ew.eq(part, 0), ew.ne(ew.sub(gap, gap), 0))
        return ew.add(below, ew.mul(ew.select(infinite, fill(gap, 0), gap), part))
    share = ew.convert(_STEPS[method](floor, part), below.dtype)
    middle = ew.add(below, ew.mul(gap, 0.5))
    return ew.select(ew.eq(share, 0), below, ew.select(ew.eq(share, 1), above, middle))


# The first element up to which the weights sum to q times all of them; what weighs nothing is passed over.
@fused(static=("name", "axis", "keepdims", "whole", "skip_nan"))
def _weighted(a, weights, q, name, axis, keepdims, whole, skip_nan):
    a, weights = [_real(name, x) for x in promote_dtypes(name, a, weights, inexact=True)]
    axes = axes_of(name, axis, a.ndim)
    if weights.shape != a.shape:
        if axis is None or weights.shape != tuple([a.shape[i] for i in axes]):
            raise ValueError(f"{name}: weights {weights.aval} must have the shape of {a.aval} or of its axes {axes}")
        in_order = sorted(axes)
        weights = ax.transpose(weights, [axes.index(i) for i in in_order])
        weights = ax.broadcast_in_dim(weights, a.shape, in_order)
    q_shape = as_array(q).shape
    out = _of_weighted_rows(_rows(a, axes), _rows(weights, axes), _fractions(name, as_array(q), a.dtype, whole), skip_nan)
    return _arranged(out, a.shape, q_shape, axes, keepdims)


def _of_weighted_rows(rows, weights, q, skip_nan):
    count, n = rows.shape
    shape = (count, q.shape[0])
    if n == 0:
        return ax.broadcast_in_dim(rows.dtype.type(math.nan), shape)
    wrong = ax.reduce_or(ew.not_(ew.ge(weights, 0)), (1,))
    missing = ew.ne(rows, rows)
    weights = ew.select(missing, fill(weights, 0), weights)
    rows, weights = sorting.sort((ew.select(missing, fill(rows, math.nan), rows), weights), 1)
    sums = red.cumsum(ew.convert(weights, q.dtype), 1)
    total = indexing.take_along_axis(sums, ax.broadcast_in_dim(dtypes.int32.type(n - 1), (count, 1)), 1)
    goal = ew.mul(ax.broadcast_in_dim(q, shape, (1,)), ax.broadcast_in_dim(total, shape, (0, 1)))
    wide = (*shape, n)
    sums = ax.broadcast_in_dim(sums, wide, (0, 2))
    short = ew.or_(ew.lt(sums, ax.broadcast_in_dim(goal, wide, (0, 1))), ew.eq(sums, 0))
    numbers = ew.sub(n - 1, ax.reduce_sum(ew.convert(missing, dtypes.int32), (1,)))
    place = ax.reduce_sum(ew.convert(short, dtypes.int32), (2,))
    place = ew.max(ew.min(place, ax.broadcast_in_dim(numbers, shape, (0,))), 0)
    out = indexing.take_along_axis(rows, place, 1)
    unknown = ew.or_(wrong, ew.eq(ax.reshape(total, (count,)), 0))
    unknown = unknown if skip_nan else ew.or_(unknown, ax.reduce_or(missing, (1,)))
    unknown = ew.or_(ax.broadcast_in_dim(unknown, shape, (0,)), ew.ne(goal, goal))
    return ew.select(unknown, fill(out, math.nan), out)
