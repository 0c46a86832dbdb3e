"""Order statistics: medians, quantiles and percentiles, with and without nan."""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, no_out
from funcml.numpy.creation import array
from funcml.numpy.promotion import as_array, exact, operand, to_inexact
from funcml.numpy.reductions import static_axis
from funcml.numpy.rows import fill
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import indexing, sorting

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False) -> Array:
    """The values below which the fraction `q` of the elements over the given axes lies; nan if there is one.

    Between two elements: 'linear', 'lower', 'higher', 'nearest' or 'midpoint'. The axes of `q` stand first in the result.

    >>> quantile(array([1.0, 2.0, 3.0]), 0.25)
    Array(1.5, dtype=float32)
    """
    return _checked("quantile", a, q, axis, out, overwrite_input, method, keepdims, 1, False)


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False) -> Array:
    """`quantile` of q / 100."""
    return _checked("percentile", a, q, axis, out, overwrite_input, method, keepdims, 100, False)


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False) -> Array:
    """`quantile` of the elements that are not nan."""
    return _checked("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, 1, True)


def nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False) -> Array:
    """`percentile` of the elements that are not nan."""
    return _checked("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, 100, True)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False) -> Array:
    """The middle element over the given axes, or the mean of the two middle ones; nan if there is one."""
    return _checked("median", a, 0.5, axis, out, overwrite_input, "linear", keepdims, 1, False)


def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False) -> Array:
    """The median of the elements that are not nan."""
    return _checked("nanmedian", a, 0.5, axis, out, overwrite_input, "linear", keepdims, 1, True)


def _checked(name, a, q, axis, out, overwrite_input, method, keepdims, whole, skip_nan):
    no_out(name, out)
    if overwrite_input:
        raise ValueError(f"{name}: arrays are immutable, so overwrite_input must be False")
    if method not in _METHODS:
        raise ValueError(f"{name}: method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    q = array(q, dtypes.float64) if isinstance(q, list | tuple) else operand(name, exact(q))
    return _quantile(operand(name, a), q, name, static_axis(axis), method, bool(keepdims), whole, skip_nan)


# Of n sorted elements, the quantile is the one at q (n - 1), found between its neighbours low and high.
@fused(static=("name", "axis", "method", "keepdims", "whole", "skip_nan"))
def _quantile(a, q, name, axis, method, keepdims, whole, skip_nan):
    a = as_array(to_inexact(name, a))
    if dtypes.is_complex(a.dtype):
        raise ValueError(f"{name} expects real numbers, got {a.aval}")
    axes = axes_of(name, axis, a.ndim)
    rows = _rows(ew.convert(a, a.dtype), axes)
    q = as_array(q)
    if q.ndim > 1:
        raise ValueError(f"{name} expects a number or a vector as q, got {q.aval}")
    out = _of_rows(rows, ax.reshape(q, (q.size,)), method, whole, skip_nan)
    kept = tuple([1 if i in axes else n for i, n in enumerate(a.shape) if keepdims or i not in axes])
    return ax.reshape(ax.moveaxis(out, 1, 0), (*q.shape, *kept))


def _rows(a, axes):
    """[rows, elements over `axes`]."""
    others = [i for i in range(a.ndim) if i not in axes]
    length = math.prod([a.shape[i] for i in axes])
    return ax.reshape(ax.transpose(a, (*others, *axes)), (math.prod([a.shape[i] for i in others]), length))


def _of_rows(rows, q, method, whole, skip_nan):
    count, n = rows.shape
    missing = ew.ne(rows, rows)
    if n == 0:
        return ax.broadcast_in_dim(rows.dtype.type(math.nan), (count, q.shape[0]))
    rows = sorting.sort(ew.select(missing, fill(rows, math.inf), rows), 1)
    wide = rows.dtype if rows.dtype in (dtypes.float32, dtypes.float64) else dtypes.float32
    shape = (count, q.shape[0])
    nans = ax.reduce_sum(ew.convert(missing, wide), (1,))
    present = ew.sub(float(n), nans) if skip_nan else fill(nans, n)
    last = ax.broadcast_in_dim(ew.sub(ew.max(present, 1), 1), shape, (0,))
    q = ew.convert(q, wide) if whole == 1 else ew.div(ew.convert(q, wide), float(whole))
    place = ew.mul(ax.broadcast_in_dim(q, shape, (1,)), last)
    low = ew.clamp(0.0, ew.floor(place), last)
    high = ew.clamp(0.0, ew.ceil(place), last)
    below, above = (indexing.take_along_axis(rows, ew.convert(i, dtypes.int32), 1) for i in (low, high))
    out = _between(below, above, ew.convert(ew.sub(place, low), rows.dtype), method)
    unknown = ew.eq(present, 0) if skip_nan else ew.gt(nans, 0)
    return ew.select(ax.broadcast_in_dim(unknown, shape, (0,)), fill(out, math.nan), out)


def _between(below, above, part, method):
    if method == "lower":
        return below
    if method == "higher":
        return above
    if method == "nearest":
        nearer_above = ew.gt(part, 0.5)
        return ew.select(nearer_above, above, below)
    equal = ew.eq(below, above)
    gap = ew.select(equal, fill(below, 0), ew.sub(above, below))
    return ew.add(below, ew.mul(gap, fill(gap, 0.5) if method == "midpoint" else part))
