"""Discrete Fourier transforms over the last axes, without a factor forward and with 1/N backward.

    fft   : complex [.., N1, .., Nr]       -> complex [.., N1, .., Nr]          y_k = sum over n of x_n w^(k.n)
    ifft  : complex [.., N1, .., Nr]       -> complex [.., N1, .., Nr]          x_n = 1/N sum over k of y_k w^(-k.n)
    rfft  : real    [.., N1, .., Nr]       -> complex [.., N1, .., Nr/2 + 1]    the first half of `fft` of real numbers
    irfft : complex [.., N1, .., Nr/2 + 1] -> real    [.., N1, .., Nr]          `ifft` of the half that `rfft` gives

with w^(k.n) = exp(-2 pi i (k1 n1 / N1 + .. + kr nr / Nr)) and N = N1 .. Nr. `irfft` is linear over the reals only: of the
elements that stand for themselves (last index 0, and Nr/2 where Nr is even) it uses what is symmetric under conjugation.
"""

from __future__ import annotations

import enum
import math

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import AxisPrimitive, broadcast_in_dim, moveaxis, transpose
from funcml.primitives.elementwise import conj, div, mul
from funcml.primitives.shaping import pad
from funcml.primitives.tangents import scalar_of

__all__ = ["FftType", "fft"]

_MAX_RANK = 3  # how many axes one operation of the backend takes


class FftType(enum.IntEnum):
    """Which of the four transforms."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3

    def __str__(self) -> str:
        return self.name


class Fft(AxisPrimitive):
    """The transform `fft_type` over the last one to three axes, whose lengths on the longer side are `fft_lengths`."""

    def type_rule(self, x, *, fft_type, fft_lengths):
        rank = len(fft_lengths)
        name = fft_type.name
        if x.ndim < rank:
            raise ValueError(
                f"{name} input shape {x.shape} must have at least as many input dimensions as "
                f"fft_lengths {tuple(fft_lengths)}, got {x}"
            )
        wanted = (dtypes.float32, dtypes.float64) if fft_type is FftType.RFFT else (dtypes.complex64, dtypes.complex128)
        if x.dtype not in wanted:
            raise ValueError(f"{name} expects {wanted[0]} or {wanted[1]}, got {x}; convert it with `.astype`")
        batch, half = x.shape[: x.ndim - rank], (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
        expected = half if fft_type is FftType.IRFFT else fft_lengths
        if x.shape[x.ndim - rank :] != expected:
            lengths = f"to {expected}, for" if fft_type is FftType.IRFFT else "to"
            raise ValueError(
                f"{name} input shape {x.shape} minor dimensions must be equal {lengths} fft_lengths {fft_lengths}, got {x}; "
                "cut or pad it first"
            )
        if fft_type is FftType.RFFT:
            return shaped((*batch, *half), dtypes.complex_dtype(x.dtype))
        return shaped((*batch, *fft_lengths), dtypes.real_dtype(x.dtype) if fft_type is FftType.IRFFT else x.dtype)

    # The matrices w^(k.n) of fft and ifft are symmetric. Weights c_k: how many elements of the whole spectrum k stands for,
    # 1 for those that stand for themselves and 2 for the others.
    # rfft:  ct_n = Re sum over k of ct_k w^(k.n) = N irfft(conj(ct) / c)_n
    # irfft: x_n = 1/N Re sum over k of c_k z_k w^(-k.n)  =>  ct_k = c_k / N conj(rfft(ct))_k
    def transpose_rule(self, ct, x, *, fft_type, fft_lengths):
        if fft_type is FftType.RFFT:
            halved = div(conj(ct), _weights(ct, fft_lengths[-1]))
            whole = _bind(halved, FftType.IRFFT, fft_lengths)
            return [mul(whole, aval_of(whole).dtype.type(math.prod(fft_lengths)))]
        if fft_type is FftType.IRFFT:
            half = conj(_bind(ct, FftType.RFFT, fft_lengths))
            return [mul(half, _weights(half, fft_lengths[-1], math.prod(fft_lengths)))]
        return [_bind(ct, fft_type, fft_lengths)]

    def batch_rule(self, axis, operands, dims, *, fft_type, fft_lengths):
        (x,), (d,) = operands, dims
        if d >= aval_of(x).ndim - len(fft_lengths):
            x, d = moveaxis(x, d, 0), 0
        return _bind(x, fft_type, fft_lengths), d


def _weights(z, n: int, over: int = 1):
    """c_k / `over` for k in range(n // 2 + 1), along the last axis of an array like `z`."""
    aval = aval_of(z)
    one, two = (scalar_of(aval, c / over) for c in (1, 2))
    ends_alone = int(n % 2 == 0 and n > 0)
    doubled = broadcast_in_dim(two, (n // 2 - ends_alone,))
    return broadcast_in_dim(pad(doubled, one, ((1, ends_alone, 0),)), aval.shape, (aval.ndim - 1,))


fft_p = Fft("fft")


def _bind(x, fft_type, fft_lengths):
    return bind(fft_p, (x,), {"fft_type": fft_type, "fft_lengths": tuple(fft_lengths)})


def fft(x, fft_type: FftType, fft_lengths):
    """The transform of `x` over its last `len(fft_lengths)` axes, any number of them.

    `fft_lengths` are the lengths of the input (of the result, for IRFFT). Raises ValueError for other lengths, and for a dtype
    that is not float32 or float64 (RFFT), or complex64 or complex128 (the others).
    """
    lengths = tuple(fft_lengths)
    if len(lengths) <= _MAX_RANK:
        return _bind(x, fft_type, lengths) if lengths else x
    outer, inner = lengths[:-_MAX_RANK], lengths[-_MAX_RANK:]
    if fft_type is FftType.IRFFT or fft_type is FftType.IFFT:
        return _bind(_over_outer(x, FftType.IFFT, outer), fft_type, inner)
    return _over_outer(_bind(x, fft_type, inner), FftType.FFT, outer)


def _over_outer(x, fft_type, lengths):
    """A complex transform over the axes that stand before the last three."""
    first = aval_of(x).ndim - _MAX_RANK - len(lengths)
    order = [*range(first), *range(first + len(lengths), aval_of(x).ndim), *range(first, first + len(lengths))]
    out = fft(transpose(x, order), fft_type, lengths)
    return transpose(out, sorted(range(len(order)), key=order.__getitem__))
