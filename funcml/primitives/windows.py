"""Sums and extremes over windows that move along the axes of an array: pooling.

    reduce_window_sum             : [W..] -> [V..]      linear; its transpose is itself, strides and holes exchanged
    reduce_window_max, .. _min    : [W..] -> [V..]

Elements that a window covers outside the array play no part. At a tie the derivative of an extreme is shared equally among the
elements that attain it.
"""

from __future__ import annotations

import builtins
import functools

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.linear import is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import AxisPrimitive, broadcast_in_dim
from funcml.primitives.elementwise import add_any, convert, div, eq, max, min, select
from funcml.primitives.patches import Window, dilated_length, padded, views
from funcml.primitives.shaping import pad, slice_in_dim
from funcml.primitives.tangents import scalar_of, zero_tangent, zeros

__all__ = ["check_window", "reduce_window_max", "reduce_window_min", "reduce_window_sum"]


def check_window(name: str, x, window: Window) -> None:
    """Raises for a window that does not fit an array of type `x`."""
    for field, values in window._asdict().items():
        if len(values) != x.ndim:
            raise TypeError(f"{name} of {x}: {field} of the window must have {x.ndim} values, one an axis, got {values}")
    for field in ("dimensions", "strides", "base_dilation", "window_dilation"):
        if any(v < 1 for v in getattr(window, field)):
            raise TypeError(f"{name} of {x}: {field} must have every element be positive, got {getattr(window, field)}")
    for n, (low, high), base in zip(x.shape, window.padding, window.base_dilation, strict=True):
        if dilated_length(n, base) + low + high < 0:
            raise TypeError(f"{name} of {x}: the padding {window.padding} takes away more than there is")


class ReduceWindowSum(AxisPrimitive):
    """out = the sum of what each window covers."""

    def type_rule(self, x, *, window):
        if not dtypes.is_numeric(x.dtype):
            raise TypeError(f"reduce_window_sum expects numbers, got {x}; convert it first")
        check_window("reduce_window_sum", x, window)
        return shaped(window.result_shape(x.shape), x.dtype, x.weak_type)

    # ct_w = the sum of ct_v over the windows v that cover w: those lie a stride apart, and seen from w in reversed order
    def transpose_rule(self, ct, x, *, window):
        if 0 in (x.aval.size, aval_of(ct).size):
            return [zeros(aval_of(ct).update(shape=x.aval.shape))]
        config = []
        for n, v, k, stride, (low, _), base, dilation in zip(x.aval.shape, aval_of(ct).shape, *window, strict=True):
            reach = dilated_length(k, dilation) - 1
            before, needed = reach - low, dilated_length(n, base) + reach
            config.append((before, needed - before - dilated_length(v, stride), stride - 1))
        ones = (1,) * len(config)
        moves = Window(window.dimensions, window.base_dilation, ((0, 0),) * len(config), ones, window.window_dilation)
        return [reduce_window_sum(pad(ct, scalar_of(aval_of(ct), 0), config), moves)]

    def batch_rule(self, axis, operands, dims, *, window):
        return reduce_window_sum(operands[0], window.at(dims[0])), dims[0]


#: the derivative of windows of more elements goes along one axis after the other
_FEW = 9


class ReduceWindowExtreme(Primitive):
    """out = the greatest (least) of what each window covers, nan if there is one; the least (greatest) value if it is nothing."""

    def type_rule(self, x, *, window):
        if dtypes.is_complex(x.dtype) or dtypes.is_key(x.dtype):
            raise TypeError(f"{self.name} expects real numbers or bool, got {x}")
        check_window(self.name, x, window)
        return shaped(window.result_shape(x.shape), x.dtype, x.weak_type)

    # out' = mean of x' over the elements of the window that are equal to out
    def jvp_rule(self, primals, tangents, *, window):
        (x,), (t,) = primals, tangents
        out = bind(self, primals, {"window": window})
        if is_zero(t):
            return out, zero_tangent(out)
        nowhere, nothing = scalar_of(aval_of(x), np.nan), scalar_of(aval_of(t), 0)
        if window.size > _FEW:
            return out, _mean(*_along_axes(self, x, t, window))
        total = count = None
        for x_k, t_k in zip(views(x, nowhere, window), views(t, nothing, window), strict=True):
            attained = eq(x_k, out)
            part, one = select(attained, t_k, zeros(aval_of(t_k))), convert(attained, dtypes.int32)
            total = part if total is None else add_any(total, part)
            count = one if count is None else add_any(count, one)
        return out, _mean(total, count)

    def batch_rule(self, axis, operands, dims, *, window):
        return bind(self, operands, {"window": window.at(dims[0])}), dims[0]


# ---- sums and counts over the elements that attain the extreme -----------------------------------------------
# (extreme, total, count) of a set of elements; of two sets together: the extreme of both extremes, and the totals and counts of
# those that attain it. So long windows are made of short ones, and windows along several axes of windows along one.


def _along_axes(primitive, x, t, window):
    """(total of `t`, count) over the elements of each window where `x` is extreme."""
    counts = window.result_shape(aval_of(x).shape)
    if 0 in counts:
        return zeros(aval_of(t).update(shape=counts)), zeros(aval_of(t).update(shape=counts, dtype=dtypes.int32))
    ones = broadcast_in_dim(np.int32(1), aval_of(x).shape)
    fills = _outermost(primitive, aval_of(x).dtype), scalar_of(aval_of(t), 0), np.int32(0)
    rows = [padded(v, fill, window) for v, fill in zip((x, t, ones), fills, strict=True)]
    choose = max if primitive is reduce_window_max_p else min
    for axis in range(len(counts)):
        rows = _along(choose, rows, axis, window, counts[axis])
    return rows[1:]


def _outermost(primitive, dtype):
    """The value that any other is ahead of."""
    sign = -1 if primitive is reduce_window_max_p else 1
    infinite = dtype.type(sign * np.inf)
    return infinite if np.isinf(infinite) else dtype.type(sign * float(dtypes.finfo(dtype).max))


def _along(choose, rows, axis, window, count):
    """The windows along one axis: doubled where they overlap, else element by element."""
    k, stride, step = window.dimensions[axis], window.strides[axis], window.window_dilation[axis]
    reach = (count - 1) * stride + 1
    if 4 * stride > k:
        parts = [_part(rows, axis, i * step, reach, stride) for i in range(k)]
        return functools.reduce(functools.partial(_together, choose), parts)
    found, covered, size = None, 0, 1
    while covered < k:
        if k & size:
            found = rows if found is None else _behind(choose, found, rows, axis, covered * step)
            covered += size
        if covered < k:
            rows, size = _behind(choose, rows, rows, axis, size * step), 2 * size
    return _part(found, axis, 0, reach, stride)


def _part(rows, axis, start, reach, stride=1):
    return [slice_in_dim(v, start, start + reach, stride, axis) for v in rows]


def _behind(choose, left, right, axis, start):
    """What `left` covers together with what `right` covers from `start` on."""
    n = builtins.min(aval_of(left[0]).shape[axis], aval_of(right[0]).shape[axis] - start)
    return _together(choose, _part(left, axis, 0, n), _part(right, axis, start, n))


def _together(choose, left, right):
    extreme = choose(left[0], right[0])
    sums = [
        [select(eq(rows[0], extreme), v, zeros(aval_of(v))) for v in rows[1:]] for rows in (left, right)
    ]
    return [extreme, *[add_any(u, v) for u, v in zip(*sums, strict=True)]]


def _mean(total, count):
    """A window that covers nothing has no element that counts: its mean is 0."""
    return div(total, convert(max(count, 1), aval_of(total).dtype))


reduce_window_sum_p = ReduceWindowSum("reduce_window_sum")
reduce_window_max_p = ReduceWindowExtreme("reduce_window_max")
reduce_window_min_p = ReduceWindowExtreme("reduce_window_min")


def reduce_window_sum(x, window: Window):
    """The sum of what each window covers of `x`."""
    return bind(reduce_window_sum_p, (x,), {"window": window})


def reduce_window_max(x, window: Window):
    """The greatest of what each window covers of `x`, nan if there is one; the least value of the dtype if it is nothing."""
    return bind(reduce_window_max_p, (x,), {"window": window})


def reduce_window_min(x, window: Window):
    """The least of what each window covers of `x`, nan if there is one; the greatest value of the dtype if it is nothing."""
    return bind(reduce_window_min_p, (x,), {"window": window})
