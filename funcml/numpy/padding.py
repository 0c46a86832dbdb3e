"""`pad`: an array with more elements around it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.lowering.execute import fused
from funcml.numpy.arguments import concrete
from funcml.numpy.broadcasting import apply_along_axis
from funcml.numpy.creation import linspace
from funcml.numpy.promotion import as_array, operand, spread
from funcml.numpy.reductions import max as max_of
from funcml.numpy.reductions import mean as mean_of
from funcml.numpy.reductions import min as min_of
from funcml.numpy.selection import take
from funcml.numpy.statistics import median
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping

__all__ = ["pad"]

_OPTIONS = {
    "constant": ("constant_values",),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "edge": (),
    "empty": (),
    "wrap": (),
}
_STATISTICS: dict[str, Callable] = {"maximum": max_of, "mean": mean_of, "median": median, "minimum": min_of}


def pad(array, pad_width, mode="constant", **kwargs) -> Array:
    """`array` with `pad_width` more elements around it: a number, a pair (before, after), a pair for each axis, or a dict
    from axes to these.

    The new elements are `constant_values` (mode 'constant', 0), the edge ('edge'), the array mirrored with or without its
    edge ('symmetric', 'reflect'; with `reflect_type='odd'` as 2 edge - mirrored), repeated ('wrap'), a ramp to `end_values`
    ('linear_ramp'), a statistic of each line ('maximum', 'mean', 'median', 'minimum'), or zeros ('empty'). A function as mode
    is called as `mode(vector, (before, after), axis, kwargs)` on each line with zeros around it, and gives the new line.
    Raises ValueError for another mode or an option that it does not have.

    >>> pad(np.array([1, 2]), 1)
    Array([0, 1, 2, 0], dtype=int64)
    """
    array = as_array(operand("pad", array))
    out = _padded(array, pad_width, mode, kwargs)
    return ew.convert(out, out.dtype, True) if array.weak_type else out


def _padded(array, pad_width, mode, kwargs) -> Array:
    if callable(mode):
        return _by_function(array, _widths(array, pad_width), mode, kwargs)
    if mode not in _OPTIONS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad. There are {', '.join(map(repr, _OPTIONS))}")
    unknown = sorted(set(kwargs) - set(_OPTIONS[mode]))
    if unknown:
        raise ValueError(f"pad: unsupported keyword arguments for mode {mode!r}: {', '.join(unknown)}")
    widths = _widths(array, pad_width)
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"pad: pad_width must not be negative, got {widths}")
    if mode in ("constant", "empty"):
        return _constant(array, _ends(kwargs.get("constant_values", 0), array.ndim), widths)
    if mode == "linear_ramp":
        return _ramps(array, _ends(kwargs.get("end_values", 0), array.ndim), widths)
    if mode in _STATISTICS:
        return _statistics(array, widths, mode, _stat_lengths(array, kwargs.get("stat_length")))
    kind = kwargs.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")
    return _mirrored(array, widths, mode) if kind == "odd" else _copied(array, widths, mode)


def _by_function(array, widths, function, kwargs):
    out = _constant(array, _ends(0, array.ndim), widths)
    for axis, pair in enumerate(widths):
        out = apply_along_axis(function, axis, out, pair, axis, kwargs)
    return out


def _pairs(name: str, values, ndim: int) -> tuple:
    values = concrete("pad", name, values)
    try:
        pairs = np.broadcast_to(values, (ndim, 2))
    except ValueError:
        raise ValueError(f"pad: {name} must be a number, a pair, or {ndim} pairs, got {values.tolist()}") from None
    return tuple([(a, b) for a, b in pairs.tolist()])


def _widths(array, pad_width) -> tuple[tuple[int, int], ...]:
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * array.ndim
        for axis, width in pad_width.items():
            pairs[axis] = (width, width) if np.ndim(width) == 0 else tuple(width)
        pad_width = pairs if pairs else 0
    widths = concrete("pad", "pad_width", pad_width)
    if widths.dtype.kind not in "iub":
        raise TypeError(f"pad expects ints as pad_width, got {pad_width!r}")
    return _pairs("pad_width", widths, array.ndim)


def _ends(values, ndim: int):
    """For each axis the values before and after: static numbers where they are known, else one traced array for all."""
    if isinstance(values, Array):
        return [[as_array(values)] * 2] * ndim
    return [list(pair) for pair in np.broadcast_to(np.asarray(values), (ndim, 2))]


def _constant(array, values, widths):
    return _pad_constant(array, [v for pair in values for v in pair], widths)


@fused(static=("widths",))
def _pad_constant(array, values, widths):
    values = [ew.convert(as_array(v), array.dtype) for v in values]
    for axis, (before, after) in enumerate(widths):
        for place, value in (((before, 0, 0), values[2 * axis]), ((0, after, 0), values[2 * axis + 1])):
            array = shaping.pad(array, value, [place if i == axis else (0, 0, 0) for i in range(array.ndim)])
    return array


@fused(static=("widths", "mode"))
def _copied(array, widths, mode):
    for axis, pair in enumerate(widths):
        if pair == (0, 0):
            continue
        if array.shape[axis] == 0:
            raise ValueError(f"pad: mode {mode!r} finds no element along axis {axis} of {array.aval}")
        source = np.pad(np.arange(array.shape[axis], dtype=np.int32), pair, mode)
        array = take(array, asarray(source), axis, mode="promise_in_bounds")
    return array


# 2 edge - mirrored, again and again: out_i = s_i x[source_i] + f_i x[first] + l_i x[last]. What NumPy makes of indices and of
# vectors that are 1 at one edge only tells source, f and l; of ones it makes ones, so s = 1 - f - l away from the edges.
@fused(static=("widths", "mode"))
def _mirrored(array, widths, mode):
    for axis, pair in enumerate(widths):
        if pair == (0, 0):
            continue
        n = array.shape[axis]
        if n == 0:
            raise ValueError(f"pad: mode {mode!r} finds no element along axis {axis} of {array.aval}")
        source = np.pad(np.arange(n), pair, mode)
        first, last = (np.pad(_unit(n, i), pair, mode, reflect_type="odd") for i in (0, n - 1))
        last = last if n > 1 else np.zeros_like(last)
        inner = np.where((source == 0) | (source == n - 1), 0, 1 - first - last)
        parts = [_scaled(take(array, asarray(source), axis, mode="promise_in_bounds"), inner, axis)]
        for edge, factor in ((0, first), (n - 1, last)):
            line = _along(array, axis, edge, edge + 1)
            wide = spread(line, tuple([len(source) if i == axis else m for i, m in enumerate(array.shape)]))
            parts.append(_scaled(wide, factor, axis))
        array = ew.add(ew.add(*parts[:2]), parts[2])
    return array


def _unit(n: int, i: int) -> np.ndarray:
    out = np.zeros(n, int)
    out[i] = 1
    return out


def _scaled(x, factors: np.ndarray, axis: int):
    """`x` times a factor for each place of an axis; 0 where that is 0, whatever `x` is."""
    factor = ax.broadcast_in_dim(factors.astype(x.dtype), x.shape, (axis,))
    zero = ax.broadcast_in_dim(x.dtype.type(0), x.shape)
    return ew.select(ax.broadcast_in_dim(factors != 0, x.shape, (axis,)), ew.mul(x, factor), zero)


def _along(array, axis: int, start: int, stop: int):
    return shaping.slice_in_dim(array, start, stop, axis=axis)


def _ramps(array, values, widths):
    return _linear_ramps(array, [v for pair in values for v in pair], widths)


@fused(static=("widths",))
def _linear_ramps(array, values, widths):
    for axis, (before, after) in enumerate(widths):
        n = array.shape[axis]
        parts = [array]
        if before:
            first = ax.squeeze(_along(array, axis, 0, 1), (axis,))
            start = _wide(values[2 * axis], array)
            parts.insert(0, linspace(start, _wide(first, array), before, False, axis=axis, dtype=array.dtype))
        if after:
            last = ax.squeeze(_along(array, axis, n - 1, n), (axis,))
            start = _wide(values[2 * axis + 1], array)
            ramp = linspace(start, _wide(last, array), after, False, axis=axis, dtype=array.dtype)
            parts.append(shaping.rev(ramp, (axis,)))
        array = shaping.concatenate(parts, axis)
    return array


def _wide(x, like):
    """An end of a ramp in the dtype in which ramps like that are computed."""
    return ew.convert(as_array(x), dtypes.inexact_dtype(like.dtype))


def _stat_lengths(array, lengths):
    if lengths is None:
        return tuple([(n, n) for n in array.shape])
    pairs = _pairs("stat_length", lengths, array.ndim)
    return tuple([(min(a, n), min(b, n)) for (a, b), n in zip(pairs, array.shape, strict=True)])


@fused(static=("widths", "mode", "lengths"))
def _statistics(array, widths, mode, lengths):
    statistic = _STATISTICS[mode]
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, lengths, strict=True)):
        n = array.shape[axis]
        ends = []
        for width, part in ((before, _along(array, axis, 0, first)), (after, _along(array, axis, n - last, n))):
            value = statistic(part, axis=axis, keepdims=True)
            if dtypes.is_integer(array.dtype) and dtypes.is_inexact(value.dtype):
                value = ew.round(value, ew.RoundingMethod.TO_NEAREST_EVEN)
            value = ew.convert(value, array.dtype)
            ends.append(spread(value, tuple([width if i == axis else m for i, m in enumerate(value.shape)])))
        array = shaping.concatenate([ends[0], array, ends[1]], axis)
    return array
