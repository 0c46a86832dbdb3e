"""Functions that are known by samples: differences, slopes, areas, values between, and angles made continuous."""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, axis_of, index_of
from funcml.numpy.promotion import as_array, broadcast_shapes, operands, promote_dtypes, settle, spread, to_inexact
from funcml.numpy.rows import fill
from funcml.numpy.selection import take
from funcml.numpy.sorting import searchsorted
from funcml.numpy.ufuncs import floor_divide, remainder
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import reductions as red
from funcml.primitives import shaping, sorting
from funcml.primitives.identities import stop_gradient

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


def _settle(name: str, *xs) -> list:
    """`settle`, where some of the values may be None."""
    given = iter(settle(name, *[x for x in xs if x is not None]))
    return [None if x is None else next(given) for x in xs]


def _part(x, axis: int, start: int, stop: int):
    return shaping.slice_in_dim(x, start, stop, axis=axis)


def _steps(x, axis: int):
    """x_{i+1} - x_i along an axis; of bools, whether they differ."""
    n = x.shape[axis]
    behind, ahead = _part(x, axis, min(1, n), n), _part(x, axis, 0, max(n - 1, 0))
    return ew.ne(behind, ahead) if dtypes.is_bool(x.dtype) else ew.sub(behind, ahead)


# ---- differences -------------------------------------------------------------------------------------------------


def diff(a, n: int = 1, axis: int = -1, prepend=None, append=None) -> Array:
    """The n-th difference along an axis, x[i + 1] - x[i] applied n times, of `a` between `prepend` and `append`.

    >>> import numpy as np
    >>> diff(np.array([1, 4, 9]))
    Array([3, 5], dtype=int64)
    """
    n = index_of("diff", "n", n)
    if n < 0:
        raise ValueError(f"diff: order must be non-negative, got n={n}")
    return _diff(*_settle("diff", a, prepend, append), n, axis)


@fused(static=("n", "axis"))
def _diff(a, prepend, append, n, axis):
    a = as_array(a)
    if n == 0:
        return a
    if a.ndim == 0:
        raise ValueError(f"diff expects at least one dimension, got {a.aval}")
    axis = axis_of("diff", axis, a.ndim)
    if prepend is not None or append is not None:
        parts = [as_array(x) for x in promote_dtypes("diff", *[x for x in (prepend, a, append) if x is not None])]
        one = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        a = shaping.concatenate([x if x.ndim else spread(x, one) for x in parts], axis)
    for _ in range(n):
        a = _steps(a, axis)
    return a


def ediff1d(ary, to_end=None, to_begin=None) -> Array:
    """The differences of neighbours in `ary`, flattened, behind `to_begin` and before `to_end` (of its dtype)."""
    ary, *given = operands("ediff1d", [x for x in (ary, to_end, to_begin) if x is not None])
    rest = iter(given)
    return _ediff1d(ary, *[None if x is None else next(rest) for x in (to_end, to_begin)])


@fused
def _ediff1d(ary, to_end, to_begin):
    ary = as_array(ary)
    if dtypes.is_bool(ary.dtype):
        raise TypeError(f"ediff1d expects numbers, got {ary.aval}; use diff")
    between = _steps(ax.reshape(ary, (ary.size,)), 0)
    ends = [None if x is None else ew.convert(as_array(x), ary.dtype) for x in (to_begin, to_end)]
    ends = [x if x is None else ax.reshape(x, (x.size,)) for x in ends]
    return shaping.concatenate([x for x in (ends[0], between, ends[1]) if x is not None], 0)


# ---- slopes ------------------------------------------------------------------------------------------------------


def gradient(f, *varargs, axis=None, edge_order: int | None = None):
    """The slope of `f` along each of the given axes (all, if None): one array, or a list of one for each axis.

    `varargs` is the distance of the samples, one for all axes or one for each: a number, or the coordinates of the samples.
    Inside, the slope is that of the parabola through three neighbours; at the ends that of the line through two of them, or
    for `edge_order=2` of the parabola again.

    >>> import numpy as np
    >>> gradient(np.array([0.0, 1.0, 4.0, 9.0]))
    Array([1., 2., 4., 5.], dtype=float64)
    """
    if edge_order not in (None, 1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    f, *distances = settle("gradient", f, *varargs)
    axes = axes_of("gradient", tuple(axis) if isinstance(axis, list) else axis, aval_of(f).ndim)
    if len(distances) not in (0, 1, len(axes)):
        raise TypeError(f"gradient: one distance, or one for each of the axes {axes}, expected; got {len(distances)}")
    outs = _gradient(f, distances, axes, edge_order or 1)
    return outs[0] if len(axes) == 1 else list(outs)


@fused(static=("axes", "edge_order"))
def _gradient(f, distances, axes, edge_order):
    f, *distances = [as_array(x) for x in promote_dtypes("gradient", f, *distances, inexact=True)]
    distances = distances * len(axes) if len(distances) == 1 else distances
    outs = []
    for i, axis in enumerate(axes):
        if f.shape[axis] <= edge_order:
            raise ValueError(f"gradient of {f.aval}: at least {edge_order + 1} samples are needed along axis {axis}")
        outs.append(_slopes(f, distances[i] if distances else None, axis, edge_order))
    return tuple(outs)


# With the distances h before and k behind a sample,
#   f' = (h / k (f_next - f) + k / h (f - f_before)) / (h + k),
# and at the start  f'_0 = (1 + h / (h + k)) s_0 - h / (h + k) s_1,  s the slopes between neighbours.
def _slopes(f, distance, axis, edge_order):
    n = f.shape[axis]
    steps = _steps(f, axis)
    first, last = _part(steps, axis, 0, 1), _part(steps, axis, n - 2, n - 1)
    if distance is None or distance.ndim == 0:
        inner = ew.mul(ew.sub(_part(f, axis, 2, n), _part(f, axis, 0, n - 2)), 0.5)
        if edge_order == 2:
            first = ew.sub(ew.mul(first, 1.5), ew.mul(_part(steps, axis, 1, 2), 0.5))
            last = ew.sub(ew.mul(last, 1.5), ew.mul(_part(steps, axis, n - 3, n - 2), 0.5))
        out = shaping.concatenate([first, inner, last], axis)
        return out if distance is None else ew.div(out, spread(distance, f.shape))
    if distance.shape != (n,):
        raise ValueError(
            f"gradient of {f.aval}: the distance along axis {axis} must be a number or {n} coordinates, got {distance.aval}"
        )
    gaps = _steps(distance, 0)
    between = ew.div(steps, ax.broadcast_in_dim(gaps, steps.shape, (axis,)))
    before, behind = _part(gaps, 0, 0, n - 2), _part(gaps, 0, 1, n - 1)
    share = ew.div(before, ew.add(before, behind))  # of the slope behind, in that at the sample
    slopes = _part(between, axis, 0, n - 2), _part(between, axis, 1, n - 1)
    wide = ax.broadcast_in_dim(share, slopes[0].shape, (axis,))
    inner = ew.add(ew.mul(slopes[0], ew.sub(1.0, wide)), ew.mul(slopes[1], wide))
    ends = [_part(between, axis, 0, 1), _part(between, axis, n - 2, n - 1)]
    if edge_order == 2:
        start, end = _part(wide, axis, 0, 1), ew.sub(1.0, _part(wide, axis, n - 3, n - 2))
        ends[0] = ew.add(ends[0], ew.mul(start, ew.sub(ends[0], _part(between, axis, 1, 2))))
        ends[1] = ew.add(ends[1], ew.mul(end, ew.sub(ends[1], _part(between, axis, n - 3, n - 2))))
    return shaping.concatenate([ends[0], inner, ends[1]], axis)


# ---- areas -------------------------------------------------------------------------------------------------------


def trapezoid(y, x=None, dx=1.0, axis: int = -1) -> Array:
    """The integral along an axis of the line through the samples `y` at the places `x`, or `dx` apart.

    >>> import numpy as np
    >>> trapezoid(np.array([1.0, 2.0, 3.0]))
    Array(4., dtype=float64)
    """
    y = to_inexact("trapezoid", y)
    if x is None:
        y, dx = settle("trapezoid", y, dx)
        return _trapezoid(y, None, dx, axis)
    return _trapezoid(*settle("trapezoid", y, to_inexact("trapezoid", x)), None, axis)


# sum over i of d_i (y_i + y_{i+1}) / 2
@fused(static=("axis",))
def _trapezoid(y, x, dx, axis):
    y, other = [as_array(v) for v in promote_dtypes("trapezoid", y, dx if x is None else x)]
    axis = axis_of("trapezoid", axis, y.ndim)
    n = y.shape[axis]
    if x is None:
        gaps = other
    elif other.ndim == 1:
        if other.shape[0] != n:
            raise ValueError(f"trapezoid: x {other.aval} must have the length of axis {axis} of y {y.aval}")
        gaps = _steps(other, 0)
        gaps = ax.reshape(gaps, [gaps.size if i == axis else 1 for i in range(y.ndim)])
    else:
        gaps = _steps(other, axis_of("trapezoid", axis - y.ndim, other.ndim))
    means = ew.mul(ew.add(_part(y, axis, 0, max(n - 1, 0)), _part(y, axis, min(1, n), n)), 0.5)
    gaps = ax.reshape(gaps, (1,) * (means.ndim - gaps.ndim) + gaps.shape)
    shape = broadcast_shapes(means.shape, gaps.shape)
    rank = len(shape) - means.ndim
    means = ax.reshape(means, (1,) * rank + means.shape)
    return ax.reduce_sum(ew.mul(spread(means, shape), spread(gaps, shape)), (axis + rank,))


# ---- values between samples --------------------------------------------------------------------------------------


def interp(x, xp, fp, left=None, right=None, period=None) -> Array:
    """The values at `x` of the line through the points (xp, fp), `xp` being in ascending order.

    Below and above all points it is `left` and `right`: the value of the point there, if None, or the line prolonged, if
    'extrapolate'. With a `period` the function repeats, and `xp` need not be in order.

    >>> import numpy as np
    >>> interp(2.5, np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 0.0]))
    Array(1., dtype=float64)
    """
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(f"interp: the only word for {name} is 'extrapolate', got {side!r}")
    prolonged = tuple([isinstance(side, str) for side in (left, right)])
    sides = [None if isinstance(side, str) else side for side in (left, right)]
    if period is not None and aval_of(as_array(period)).ndim:
        raise ValueError(f"interp: period must be a number, got {aval_of(as_array(period))}")
    x, xp, period = _settle("interp", x, xp, period)
    fp, *sides = _settle("interp", fp, *sides)
    return _interp(x, xp, fp, *sides, period, prolonged)


@fused(static=("prolonged",))
def _interp(x, xp, fp, left, right, period, prolonged):
    given = [v for v in (x, xp, period) if v is not None]
    x, xp, *rest = [as_array(v) for v in promote_dtypes("interp", *given, inexact=True)]
    fp = as_array(to_inexact("interp", fp))
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ValueError(f"interp expects vectors of one length, not 0, as xp and fp, got {xp.aval} and {fp.aval}")
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"interp expects real numbers as x and xp, got {x.aval} and {xp.aval}")
    if rest:
        x, xp, fp = _around(x, xp, fp, ew.abs(rest[0]))
    out = _on_lines(x, xp, fp)
    if rest:
        return out
    n = xp.size
    for side, stays, outside, end in ((left, prolonged[0], ew.lt, 0), (right, prolonged[1], ew.gt, n - 1)):
        if not stays:
            value = ax.squeeze(_part(fp, 0, end, end + 1), (0,)) if side is None else side
            value, out = [as_array(v) for v in promote_dtypes("interp", value, out)]
            limit = spread(ax.squeeze(_part(xp, 0, end, end + 1), (0,)), x.shape)
            out = ew.select(outside(x, limit), spread(value, x.shape), out)
    return out


def _around(x, xp, fp, period):
    """The points of one period in order, with those next to it on either side."""
    x, xp = [remainder(v, spread(period, v.shape)) for v in (x, xp)]
    xp, fp = sorting.sort((xp, fp), 0)
    n = xp.size
    first, last = [[_part(v, 0, i, i + 1) for v in (xp, fp)] for i in (0, n - 1)]
    period = ax.reshape(period, (1,))
    xp = shaping.concatenate([ew.sub(last[0], period), xp, ew.add(first[0], period)], 0)
    return x, xp, shaping.concatenate([last[1], fp, first[1]], 0)


# f = f_0 + s (f_1 - f_0) = f_1 - (1 - s) (f_1 - f_0),  s = (x - x_0) / (x_1 - x_0). The second form serves where f_0 is
# infinite; 0 times an infinite rise is 0, and points that share a place, or are a subnormal number apart, have no rise.
def _on_lines(x, xp, fp):
    n = xp.size
    low = ew.clamp(0, ew.sub(searchsorted(xp, x, side="right"), 1), max(n - 2, 0))
    high = ew.min(ew.add(low, 1), fill(low, n - 1))
    (x0, x1), (f0, f1) = [[take(v, i, mode="promise_in_bounds") for i in (low, high)] for v in (xp, fp)]
    gap, rise = ew.sub(x1, x0), ew.sub(f1, f0)
    one_place = ew.lt(ew.abs(gap), fill(gap, dtypes.finfo(gap.dtype).tiny))
    rise = ew.select(ew.or_(ew.eq(f0, f1), one_place), fill(rise, 0), rise)
    gap = ew.select(one_place, fill(gap, 1), gap)
    scale = stop_gradient(ew.div(1.0, ew.abs(gap)))  # else the derivative divides by gap^2, which underflows
    share = ew.div(ew.mul(ew.sub(x, x0), scale), ew.mul(gap, scale))
    share, rise, f0, f1 = [as_array(v) for v in promote_dtypes("interp", share, rise, f0, f1)]
    infinite = ew.ne(ew.sub(rise, rise), 0)
    before, behind = [ew.mul(part, ew.select(ew.and_(infinite, ew.eq(part, 0)), fill(rise, 0), rise))
                      for part in (share, ew.sub(share, 1.0))]
    return ew.select(ew.eq(ew.sub(f0, f0), 0), ew.add(f0, before), ew.add(f1, behind))


# ---- angles ------------------------------------------------------------------------------------------------------


def unwrap(p, discont=None, axis: int = -1, period=2 * math.pi) -> Array:
    """`p` with multiples of `period` added along an axis, so that no step is longer than half of it.

    Steps that are shorter than `discont` (and at least half a period) stay as they are.

    >>> import numpy as np
    >>> unwrap(np.array([0, 1, 2, -1, 0]), period=4)
    Array([0, 1, 2, 3, 4], dtype=int64)
    """
    return _unwrap(*_settle("unwrap", p, discont, period), axis)


@fused(static=("axis",))
def _unwrap(p, discont, period, axis):
    p, period = [as_array(x) for x in promote_dtypes("unwrap", p, period)]
    if dtypes.is_complex(p.dtype):
        raise ValueError(f"unwrap expects real numbers, got {p.aval}")
    axis = axis_of("unwrap", axis, p.ndim)
    if p.size == 0:
        return p
    steps = _steps(p, axis)
    whole = dtypes.is_integer(p.dtype)
    half = floor_divide(period, 2) if whole else ew.mul(period, 0.5)
    two_sided = ew.eq(ew.mul(half, 2), period)
    period, half, two_sided = [spread(v, steps.shape) for v in (period, half, two_sided)]
    short = ew.sub(remainder(ew.add(steps, half), period), half)
    upwards = ew.and_(two_sided, ew.and_(ew.eq(short, ew.neg(half)), ew.gt(steps, 0)))
    short = ew.select(upwards, half, short)
    limit = half if discont is None else spread(as_array(discont), steps.shape)
    size, limit = [as_array(v) for v in promote_dtypes("unwrap", ew.abs(steps), limit)]
    change = ew.select(ew.lt(size, limit), fill(steps, 0), ew.sub(short, steps))
    n = p.shape[axis]
    return shaping.concatenate([_part(p, axis, 0, 1), ew.add(_part(p, axis, 1, n), red.cumsum(change, axis))], axis)
