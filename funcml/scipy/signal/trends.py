"""Trends of signals: constants and lines, taken away by least squares."""

from __future__ import annotations

import numpy as np

from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, concrete
from funcml.numpy.creation import array
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping

__all__ = ["detrend"]


def detrend(data, axis: int = -1, type: str = "linear", bp=0, overwrite_data=None) -> Array:
    """`data` less its mean ('constant') or the line through it ('linear') along `axis`, by least squares.

    Before each break point of `bp` one line ends and another one begins. Integers become floats.

    >>> detrend(np.array([1.0, 2.0, 3.0]), type="constant")
    Array([-1.,  0.,  1.], dtype=float64)
    """
    if overwrite_data:
        raise NotImplementedError("detrend: arrays are immutable, so overwrite_data must be None")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: type must be 'constant' or 'linear', got {type!r}")
    data = as_array(array(data) if isinstance(data, list | tuple) else operand("detrend", data))
    axis = axis_of("detrend", axis, data.ndim)
    breaks = [0, data.shape[axis]]
    if type == "linear":
        breaks = np.unique([0, *np.atleast_1d(concrete("detrend", "bp", bp)).tolist(), data.shape[axis]]).tolist()
        if breaks[0] < 0 or breaks[-1] > data.shape[axis]:
            raise ValueError(f"detrend: break points must be from 0 to {data.shape[axis]}, the length of axis {axis}, got {bp}")
    return _detrended(data, axis, type, tuple(breaks))


@fused(static=("axis", "type", "breaks"))
def _detrended(data, axis, type, breaks):
    x = ax.moveaxis(as_array(to_inexact("detrend", data)), axis, data.ndim - 1)
    x = ew.convert(x, x.dtype)
    sizes = tuple([b - a for a, b in zip(breaks, breaks[1:], strict=False)])
    parts = [without_trend(part, type) for part in (shaping.split(x, sizes, x.ndim - 1) if len(sizes) > 1 else [x])]
    out = parts[0] if len(parts) == 1 else shaping.concatenate(parts, x.ndim - 1)
    return ax.moveaxis(out, x.ndim - 1, axis)


# With t counted from the middle, sum t = 0: the line is mean(x) + t (sum t x) / (sum t^2).
def without_trend(x, type: str):
    """`x` less its mean, or the line through it, along its last axis."""
    n, last = x.shape[-1], x.ndim - 1
    if n == 0:
        return x
    over = lambda y: ax.broadcast_in_dim(ax.reduce_sum(y, (last,)), x.shape, tuple(range(last)))
    x = ew.sub(x, ew.div(over(x), float(n)))
    if type == "constant" or n == 1:
        return x
    t = np.arange(n) - (n - 1) / 2
    line = lambda values: ax.broadcast_in_dim(as_array(values.astype(x.dtype)), x.shape, (last,))
    return ew.sub(x, ew.mul(over(ew.mul(x, line(t / np.sum(t * t)))), line(t)))
