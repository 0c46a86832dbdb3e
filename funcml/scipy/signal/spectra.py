"""Spectra of pieces of a signal that follow one another: short-time Fourier transforms and densities of power.

    stft  : real [.., t, ..] -> frequencies [f], times [s], complex [.., f, .., s]
    csd   : [.., t, ..] x [.., t, ..] -> frequencies [f], cross-spectrum [.., f, ..]
    welch : [.., t, ..] -> frequencies [f], spectrum [.., f, ..]        the mean over pieces (P. D. Welch, 1967)

A piece has `nperseg` elements, of which it shares `noverlap` with the next one; it is freed from its trend, weighted with a
window, padded with zeros to `nfft` elements and transformed. `fs` is the number of elements in a unit of time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy import fft as fourier
from funcml.numpy.arguments import axis_of, index_of
from funcml.numpy.creation import array, zeros
from funcml.numpy.padding import pad
from funcml.numpy.promotion import as_array, broadcast_shapes, exact, operand, promote_dtypes, settle
from funcml.numpy.reductions import mean
from funcml.numpy.selection import take
from funcml.numpy.statistics import median
from funcml.numpy.ufuncs import conj
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import powers, shaping
from funcml.scipy.signal.products import product
from funcml.scipy.signal.trends import without_trend
from funcml.scipy.signal.windows import window_values

__all__ = ["Pieces", "csd", "pieces_of", "stft", "welch"]


class Pieces(NamedTuple):
    """The lengths of a piece, of what it shares with the next one, and of its Fourier transform."""

    length: int
    shared: int
    transform: int


def stft(
    x, fs=1.0, window="hann", nperseg: int = 256, noverlap: int | None = None, nfft: int | None = None, detrend: Any = False,
    return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True, axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform of `x` along `axis`: frequencies, times, and the transform, its last axis being time.

    `window` is a name for `get_window` or a vector. Before the pieces are cut, `x` is continued by half a piece at both ends
    ('zeros', 'constant', 'even', 'odd' or None) and, if `padded`, filled up with zeros to a whole number of pieces. Half of the
    pieces overlap by default. Of real signals only frequencies from 0 on are given, unless `return_onesided` is False.

    >>> f, t, z = stft(np.ones(16, "float32"), nperseg=8)
    >>> f.shape, t.shape, z.shape
    ((5,), (5,), (5, 5))
    """
    how = {"scaling": "spectrum", "kind": "stft", "boundary": boundary, "padded": bool(padded), "average": None}
    return _spectra("stft", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis, how)


def csd(
    x, y, fs=1.0, window="hann", nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
    detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:
    """Frequencies, and the cross-spectrum conj(X) Y of two signals, the mean or median over pieces.

    'density' gives power per frequency, 'spectrum' power. The shorter signal is filled up with zeros; other axes broadcast.
    Without `y`, the result is the real spectrum of `x`.
    """
    how = {"scaling": scaling, "kind": "power", "boundary": None, "padded": False, "average": average}
    frequencies, _, power = _spectra("csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis, how)
    return frequencies, power


def welch(
    x, fs=1.0, window="hann", nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
    detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:
    """Frequencies, and the real spectrum |X|^2 of a signal: `csd` with itself.

    >>> f, p = welch(np.sin(np.arange(64.0)), nperseg=16)
    >>> float(f[np.argmax(p)])
    0.1875
    """
    how = {"scaling": scaling, "kind": "power", "boundary": None, "padded": False, "average": average}
    frequencies, _, power = _spectra("welch", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis, how)
    return frequencies, power


# ---- arguments -----------------------------------------------------------------------------------------------------

_CHOICES = {
    "scaling": ("density", "spectrum"),
    "boundary": ("zeros", "constant", "even", "odd", None),
    "average": ("mean", "median", None),
}


def _spectra(name: str, x, y, fs, window, nperseg, noverlap, nfft, detrend, onesided, axis, how):
    signals = [operand(name, v) for v in (x, y) if v is not None]
    signals = [as_array(v) for v in settle(name, *signals)]
    if len({v.ndim for v in signals}) > 1:
        raise ValueError(f"{name} expects two signals of one rank, got {signals[0].aval} and {signals[1].aval}")
    axis = axis_of(name, axis, signals[0].ndim)
    for key, choices in _CHOICES.items():
        if how[key] not in choices:
            raise ValueError(f"{name}: {key} must be one of {', '.join(map(repr, choices))}, got {how[key]!r}")
    if isinstance(detrend, str) and detrend not in ("constant", "linear"):
        raise ValueError(f"{name}: detrend must be 'constant', 'linear', a function or False, got {detrend!r}")
    wide = dtypes.real_dtype(dtypes.complex_dtype(dtypes.inexact_dtype(dtypes.result_type(*signals))))
    outer = broadcast_shapes(*[v.shape[:axis] + v.shape[axis + 1 :] for v in signals])
    if any(v.size == 0 for v in signals):
        shape = (*outer[:axis], min(v.shape[axis] for v in signals), *outer[axis:])
        return zeros(shape, wide), zeros(shape, wide), zeros(shape, dtypes.complex_dtype(wide))
    if onesided and any(dtypes.is_complex(v.dtype) for v in signals):
        warnings.warn(f"{name}: the signal is complex, so its spectrum has two sides", stacklevel=3)
        onesided = False
    window, pieces = pieces_of(name, window, nperseg, noverlap, nfft, max(v.shape[axis] for v in signals))
    return _computed(
        signals, window, operand(name, exact(fs)), name, pieces, detrend or None, bool(onesided), axis,
        how["scaling"], how["kind"], how["boundary"], how["padded"], how["average"],
    )


def pieces_of(name: str, window, nperseg, noverlap, nfft, available: int | None):
    """The values of the window, and the lengths of pieces; a piece is not longer than what is `available`."""
    length = None if nperseg is None else index_of(name, "nperseg", nperseg)
    if length is not None and length < 1:
        raise ValueError(f"{name}: nperseg must be positive, got {length}")
    if isinstance(window, str | tuple | float):
        length = 256 if length is None else length
        if available is not None and length > available:
            warnings.warn(f"{name}: nperseg {length} is longer than the signal: pieces have {available} elements", stacklevel=4)
            length = available
        window = window_values(window, length)
    else:
        window = as_array(array(window) if isinstance(window, list) else operand(name, window))
        if window.ndim != 1:
            raise ValueError(f"{name}: a window is a vector, got {window.aval}")
        if length not in (None, window.size):
            raise ValueError(f"{name}: nperseg {length} differs from the length of the window {window.aval}")
        length = window.size
        if available is not None and length > available:
            raise ValueError(f"{name}: the window {window.aval} is longer than the signal, which has {available} elements")
    shared = length // 2 if noverlap is None else index_of(name, "noverlap", noverlap)
    if shared >= length:
        raise ValueError(f"{name}: noverlap must be less than nperseg, got {shared} and {length}")
    transform = length if nfft is None else index_of(name, "nfft", nfft)
    if transform < length:
        raise ValueError(f"{name}: nfft must not be less than nperseg, got {transform} and {length}")
    return window, Pieces(length, shared, transform)


# ---- computation ---------------------------------------------------------------------------------------------------


@fused(static=("name", "pieces", "detrend", "onesided", "axis", "scaling", "kind", "boundary", "padded", "average"))
def _computed(signals, window, fs, name, pieces, detrend, onesided, axis, scaling, kind, boundary, padded, average):
    signals = [ew.convert(as_array(v), v.dtype) for v in promote_dtypes(name, *signals, inexact=True)]
    complex_dtype = dtypes.complex_dtype(signals[0].dtype)
    dtype = dtypes.real_dtype(complex_dtype)
    signals = [ew.convert(v, complex_dtype if dtypes.is_complex(v.dtype) else dtype) for v in signals]
    signals = _of_one_length([ax.moveaxis(v, axis, v.ndim - 1) for v in signals])
    signals = [_prepared(v, name, pieces, boundary, padded) for v in signals]
    window, fs = as_array(window), ew.convert(as_array(fs), dtype)
    window = ew.convert(window, complex_dtype if dtypes.is_complex(window.dtype) else dtype)
    transforms = [_transformed(v, window, pieces, detrend, axis, onesided) for v in signals]
    scale = _scale(window, fs, scaling)
    if kind == "stft":
        out = product(transforms[0], powers.sqrt(scale))
    else:
        out = _power(transforms, scale, onesided, pieces.transform)
    step = ew.div(fs.dtype.type(1), fs)
    frequencies = (fourier.rfftfreq if onesided else fourier.fftfreq)(pieces.transform, step, dtype=dtype)
    length = signals[0].shape[-1]
    start = pieces.length / 2 - (0 if boundary is None else pieces.length // 2 + pieces.length % 2 / 2)
    count = (length - pieces.length) // (pieces.length - pieces.shared) + 1
    times = (np.arange(count) * (pieces.length - pieces.shared) + start).astype(dtype)
    out = ax.moveaxis(out, out.ndim - 1, axis)
    if average is not None:
        out = _averaged(out, average)
    return frequencies, ew.div(as_array(times), ax.broadcast_in_dim(fs, times.shape)), out


def _of_one_length(signals):
    longest = max(v.shape[-1] for v in signals)
    return [shaping.pad(v, 0, [(0, 0, 0)] * (v.ndim - 1) + [(0, longest - v.shape[-1], 0)]) for v in signals]


_CONTINUATIONS: dict[str, dict] = {
    "zeros": {"mode": "constant"}, "constant": {"mode": "edge"}, "even": {"mode": "reflect"},
}


def _prepared(x, name: str, pieces: Pieces, boundary, padded: bool):
    """`x` continued at both ends and filled up to whole pieces."""
    ends, last = pieces.length // 2, x.ndim - 1
    if boundary is not None and ends:
        if boundary in ("even", "odd") and ends > x.shape[-1] - 1:
            raise ValueError(f"{name}: boundary {boundary!r} adds {ends} elements, too many for a signal of {x.shape[-1]}")
        widths = [(0, 0)] * last + [(ends, ends)]
        x = _odd(x, ends) if boundary == "odd" else pad(x, widths, **_CONTINUATIONS[boundary])
    if padded:
        step = pieces.length - pieces.shared
        missing = (-(x.shape[-1] - pieces.length) % step) % pieces.length
        x = shaping.pad(x, 0, [(0, 0, 0)] * last + [(0, missing, 0)])
    return x


# Turned by half a turn about the first and the last element: 2 x_0 - x_k.
def _odd(x, ends: int):
    n, last = x.shape[-1], x.ndim - 1
    cut = lambda start, stop: shaping.slice_in_dim(x, start, stop, axis=last)

    def turned(end, part):
        spread = ax.broadcast_in_dim(end, part.shape, tuple(range(part.ndim)))
        return ew.sub(ew.add(spread, spread), shaping.rev(part, (last,)))

    return shaping.concatenate([turned(cut(0, 1), cut(1, ends + 1)), x, turned(cut(n - 1, n), cut(n - 1 - ends, n - 1))], last)


def _transformed(x, window, pieces: Pieces, detrend, axis: int, onesided: bool):
    """[.., t] -> [.., pieces, frequencies]."""
    step = pieces.length - pieces.shared
    count = (x.shape[-1] - pieces.length) // step + 1
    places = (np.arange(count, dtype=np.int32) * step)[:, None] + np.arange(pieces.length, dtype=np.int32)
    cut = take(x, places, x.ndim - 1, mode="promise_in_bounds")
    if isinstance(detrend, str):
        cut = without_trend(cut, detrend)
    elif detrend is not None:
        cut = _detrended_by(detrend, cut, axis)
    out = product(cut, ax.expand_dims(window, range(cut.ndim - 1)))
    return fourier.rfft(out, pieces.transform) if onesided and not dtypes.is_complex(out.dtype) else (
        fourier.rfft(ew.real(out), pieces.transform) if onesided else fourier.fft(out, pieces.transform)
    )


def _detrended_by(function: Callable, cut, axis: int):
    """The pieces after a function that takes them along the axis where the signal had them, counted from the right."""
    if axis == cut.ndim - 2:
        return as_array(function(cut))
    return ax.moveaxis(as_array(function(ax.moveaxis(cut, cut.ndim - 1, axis))), axis, cut.ndim - 1)


def _scale(window, fs, scaling: str):
    """1 / (fs sum w^2) for a density, 1 / (sum w)^2 for a spectrum."""
    if scaling == "density":
        total = ax.reduce_sum(ew.mul(window, window), (0,))
        total = product(total, fs)
    else:
        total = ax.reduce_sum(window, (0,))
        total = ew.mul(total, total)
    return ew.div(total.dtype.type(1), total)


def _power(transforms, scale, onesided: bool, n: int):
    """conj(X) Y, real if there is no Y; of one side only, it counts for both, save for the frequencies 0 and n / 2."""
    first = transforms[0]
    if len(transforms) == 2:
        out = product(conj(first), transforms[1])
    elif dtypes.is_complex(scale.dtype):
        out = ew.mul(conj(first), first)
    else:
        out = ew.add(*[ew.mul(part, part) for part in (ew.real(first), ew.imag(first))])
    out = product(out, scale)
    if onesided:
        twice = np.full(out.shape[-1], 2.0)
        twice[0] = 1
        if n % 2 == 0:
            twice[-1] = 1
        out = ew.mul(out, ax.broadcast_in_dim(as_array(twice.astype(out.dtype)), out.shape, (out.ndim - 1,)))
    return out if len(transforms) == 2 or not dtypes.is_complex(out.dtype) else ew.real(out)


# The median of n spectra of noise is that of their mean times 1 + sum of 1/(2k + 1) - 1/2k (B. Allen et al., 2005).
def _averaged(power, average: str):
    last = power.ndim - 1
    if average == "mean":
        return mean(power, last)
    n = power.shape[-1]
    even = np.arange(2, n, 2)
    bias = 1 + np.sum(1 / (even + 1) - 1 / even)
    if dtypes.is_complex(power.dtype):
        found = ew.complex(*[median(part(power), last) for part in (ew.real, ew.imag)])
    else:
        found = median(power, last)
    return ew.div(found, found.dtype.type(bias))
