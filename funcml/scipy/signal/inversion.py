"""The signal of a short-time Fourier transform: overlapping pieces added up again.

    istft : complex [.., f, .., s] -> times [t], signal [.., t, ..]
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy import fft as fourier
from funcml.numpy.arguments import axis_of, index_of
from funcml.numpy.promotion import as_array, exact, operand, to_inexact
from funcml.numpy.rows import fill
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.scipy.signal.products import product, together
from funcml.scipy.signal.spectra import Pieces, pieces_of

__all__ = ["istft"]


def istft(
    Zxx, fs=1.0, window="hann", nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
    input_onesided: bool = True, boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Times, and the signal of which `stft` with the same arguments gives `Zxx`: real, if `input_onesided`.

    Pieces are weighted with the window once more and divided by the sum of its squares (D. W. Griffin, J. S. Lim, 1984), which is
    exact where that sum is not 0. With `boundary`, half a piece is cut off at both ends.

    >>> from funcml.scipy.signal import stft
    >>> x = np.arange(8.0)
    >>> bool(np.allclose(istft(stft(x, nperseg=4)[2], nperseg=4)[1], x))
    True
    """
    z = as_array(operand("istft", Zxx))
    if z.ndim < 2:
        raise ValueError(f"istft expects at least 2 dimensions, got {z.aval}")
    frequency, time = axis_of("istft", freq_axis, z.ndim), axis_of("istft", time_axis, z.ndim)
    if frequency == time:
        raise ValueError(f"istft: time_axis and freq_axis must differ, both are {time}")
    full = 2 * (z.shape[frequency] - 1) if input_onesided else z.shape[frequency]
    length = full if nperseg is None else index_of("istft", "nperseg", nperseg)
    if nfft is None:
        nfft = full + (input_onesided and length == full + 1)
    window, pieces = pieces_of("istft", window, length, noverlap, nfft, None)
    return _inverted(z, window, operand("istft", exact(fs)), pieces, bool(input_onesided), bool(boundary), time, frequency)


@fused(static=("pieces", "onesided", "boundary", "time", "frequency"))
def _inverted(z, window, fs, pieces: Pieces, onesided, boundary, time, frequency):
    z = as_array(to_inexact("istft", z))
    order = (*[i for i in range(z.ndim) if i not in (time, frequency)], time, frequency)
    z = ax.transpose(z, order)
    parts = (fourier.irfft if onesided else fourier.ifft)(z, pieces.transform)
    parts = shaping.slice_in_dim(parts, 0, pieces.length, axis=-1)
    real = dtypes.real_dtype(parts.dtype)
    window, fs = as_array(window), ew.convert(as_array(fs), real)
    window = ew.convert(window, dtypes.complex_dtype(real) if dtypes.is_complex(window.dtype) else real)
    total = ew.mul(window, ax.broadcast_in_dim(ax.reduce_sum(window, (0,)), window.shape))
    step = pieces.length - pieces.shared
    x = _added(product(parts, ax.expand_dims(total, range(parts.ndim - 1))), step)
    square = ax.broadcast_in_dim(ew.mul(window, window), (*(1,) * (z.ndim - 2), z.shape[-2], pieces.length), (z.ndim - 1,))
    norm = _added(square, step)
    if boundary and pieces.length > 1:
        ends = pieces.length // 2
        if x.shape[-1] < 2 * ends:
            raise ValueError(f"istft: boundary cuts {ends} elements off both ends, more than the signal of {x.shape[-1]} has")
        x, norm = (shaping.slice_in_dim(v, ends, v.shape[-1] - ends, axis=-1) for v in (x, norm))
    counts = ew.gt(ew.abs(norm), 1e-10)
    x = ew.div(*together(x, ew.select(counts, norm, fill(norm, 1))))
    place = time - (frequency < time)
    times = as_array(np.arange(x.shape[-1]).astype(real))
    return ew.div(times, ax.broadcast_in_dim(fs, times.shape)), ax.moveaxis(x, x.ndim - 1, place)


# y_t = sum over s of parts_(s, t - s step): each piece in blocks of `step`, block b of piece s stands at block s + b.
def _added(parts, step: int):
    """[.., pieces, length] -> [.., step (pieces - 1) + length]."""
    *outer, count, length = parts.shape
    blocks = -(-length // step)
    spread = [(0, 0, 0)] * len(outer)
    parts = shaping.pad(parts, 0, [*spread, (0, 0, 0), (0, blocks * step - length, 0)])
    out = None
    for b in range(blocks):
        block = shaping.slice_in_dim(parts, b * step, (b + 1) * step, axis=-1)
        row = ax.reshape(block, (*outer, count * step))
        row = shaping.pad(row, 0, [*spread, (b * step, (blocks - 1 - b) * step, 0)])
        out = row if out is None else ew.add(out, row)
    return shaping.slice_in_dim(out, 0, step * (count - 1) + length, axis=-1)
