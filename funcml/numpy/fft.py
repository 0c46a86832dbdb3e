"""Discrete Fourier transforms: of one axis, of two, of any number.

`norm` says which way carries the factor 1/N: 'backward' (None) the inverse transforms, 'forward' the others, 'ortho' both, as
1/sqrt(N). Lengths that are asked for (`n`, `s`) cut or pad with zeros at the end. Results are complex64 or float32, and
complex128 or float64 for float64, complex128 and 64-bit integers. All transforms are linear, and differentiable to any order.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering import array as device_array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, axis_of, dtype_or, index_of
from funcml.numpy.manipulation import roll
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.numpy.ufuncs import conj, true_divide
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import fft as primitive
from funcml.primitives import shaping
from funcml.primitives.fft import FftType

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]

_NORMS = ("backward", "ortho", "forward")


# ---- one axis ----------------------------------------------------------------------------------------------------


def fft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform along one axis, y_k = sum over m of a_m exp(-2 pi i k m / n).

    >>> fft(np.array([1.0, 0.0, 0.0, 0.0], "float32"))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _one("fft", FftType.FFT, a, n, axis, norm)


def ifft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`."""
    return _one("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """`fft` of real numbers, [n] -> [n // 2 + 1]: the other half of the spectrum is the conjugate of this one.

    Raises ValueError for complex numbers.
    """
    return _one("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`, [n // 2 + 1] -> real [n], n being even if it is not given.

    The imaginary parts at the frequencies 0 and n / 2 count for nothing.
    """
    return _one("irfft", FftType.IRFFT, a, n, axis, norm)


def hfft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real spectrum [n] of a signal of which the first n // 2 + 1 elements are given, the others being their conjugates."""
    return _one("hfft", FftType.IRFFT, conj(operand("hfft", a)), n, axis, _SWAPPED[_norm("hfft", norm)])


def ihfft(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: real [n] -> [n // 2 + 1]."""
    return conj(_one("ihfft", FftType.RFFT, a, n, axis, _SWAPPED[_norm("ihfft", norm)]))


_SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _one(name: str, fft_type, a, n, axis, norm) -> Array:
    if isinstance(axis, list | tuple):
        raise ValueError(f"{name} takes one axis, got {axis!r}; fftn and its like take several")
    a = _array(name, a)
    lengths = None if n is None else (_length(name, n),)
    return _transform(a, name, fft_type, lengths, (axis_of(name, axis, a.ndim),), _norm(name, norm))


# ---- several axes ------------------------------------------------------------------------------------------------


def fftn(a, s=None, axes=None, norm: str | None = None) -> Array:
    """`fft` over several axes: all of them, or the last ones if only `s`, their lengths, is given.

    >>> fftn(np.ones((2, 2), "float32"))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _several("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a, s=None, axes=None, norm: str | None = None) -> Array:
    """The inverse of `fftn`."""
    return _several("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(a, s=None, axes=None, norm: str | None = None) -> Array:
    """`fftn` of real numbers; the last of the axes has the n // 2 + 1 elements of `rfft`."""
    return _several("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a, s=None, axes=None, norm: str | None = None) -> Array:
    """The inverse of `rfftn`; the last of the axes has an even length if `s` does not say otherwise."""
    return _several("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(a, s=None, axes=(-2, -1), norm: str | None = None) -> Array:
    """`fftn` over two axes."""
    return _two("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a, s=None, axes=(-2, -1), norm: str | None = None) -> Array:
    """`ifftn` over two axes."""
    return _two("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(a, s=None, axes=(-2, -1), norm: str | None = None) -> Array:
    """`rfftn` over two axes."""
    return _two("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a, s=None, axes=(-2, -1), norm: str | None = None) -> Array:
    """`irfftn` over two axes."""
    return _two("irfft2", FftType.IRFFT, a, s, axes, norm)


def _two(name: str, fft_type, a, s, axes, norm) -> Array:
    if axes is None or len(axes) != 2:
        raise ValueError(f"{name} takes two axes, got {axes!r}; use {name[:-1]}n for another number")
    return _several(name, fft_type, a, s, axes, norm)


def _several(name: str, fft_type, a, s, axes, norm) -> Array:
    a = _array(name, a)
    lengths = None if s is None else tuple([_length(name, n) for n in s])
    if axes is None:
        axes = range(-len(lengths) if lengths is not None else -a.ndim, 0)
    axes = axes_of(name, tuple(axes), a.ndim)
    if lengths is not None and len(lengths) != len(axes):
        raise ValueError(f"{name}: s has {len(lengths)} lengths for {len(axes)} axes: {lengths} and {axes}")
    return _transform(a, name, fft_type, lengths, axes, _norm(name, norm))


# ---- what they share ---------------------------------------------------------------------------------------------


def _array(name: str, a) -> Array:
    return as_array(operand(name, a))


def _length(name: str, n) -> int:
    length = index_of(name, "a length", n)
    if length <= 0:
        raise ValueError(f"{name}: a length must be positive, got {length}")
    return length


def _norm(name: str, norm) -> str:
    norm = "backward" if norm is None else norm
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm must be None or one of {', '.join(map(repr, _NORMS))}, got {norm!r}")
    return norm


@fused(static=("name", "fft_type", "lengths", "axes", "norm"))
def _transform(a, name, fft_type, lengths, axes, norm):
    a = _in_domain(name, a, fft_type)
    if not axes:
        return a
    first = a.ndim - len(axes)
    order = (*[i for i in range(a.ndim) if i not in axes], *axes)
    a = ax.transpose(a, order)
    if lengths is None:
        lengths = (*a.shape[first:-1], _signal_length(name, a) if fft_type is FftType.IRFFT else a.shape[-1])
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    a = _cut_or_pad(a, (*a.shape[:first], *(half if fft_type is FftType.IRFFT else lengths)))
    out = primitive.fft(a, fft_type, lengths)
    scale = _scale(fft_type, math.prod(lengths), norm)
    out = out if scale == 1 else ew.mul(out, out.dtype.type(scale))
    return ax.transpose(out, sorted(range(a.ndim), key=order.__getitem__))


def _in_domain(name: str, a, fft_type):
    if fft_type is FftType.RFFT and dtypes.is_complex(a.dtype):
        raise ValueError(f"{name} takes real numbers, got {a.aval}; use fft, or the real part")
    a = to_inexact(name, a)
    wide = dtypes.complex_dtype(a.dtype)
    return ew.convert(a, dtypes.real_dtype(wide) if fft_type is FftType.RFFT else wide)


def _signal_length(name: str, a) -> int:
    n = 2 * (a.shape[-1] - 1)
    if n <= 0:
        raise ValueError(
            f"{name}: {a.shape[-1]} elements along the last of the axes of {a.aval} would be those of a signal of length {n}; "
            "give the length that is wanted"
        )
    return n


def _cut_or_pad(a, shape):
    cut = tuple([min(n, m) for n, m in zip(a.shape, shape, strict=True)])
    if cut != a.shape:
        a = shaping.slice_(a, (0,) * a.ndim, cut)
    return shaping.pad(a, 0, [(0, m - n, 0) for n, m in zip(cut, shape, strict=True)])


def _scale(fft_type, count: int, norm: str) -> float:
    inverse = fft_type in (FftType.IFFT, FftType.IRFFT)
    if norm == "backward" or not count:
        return 1
    if norm == "ortho":
        return math.sqrt(count) if inverse else 1 / math.sqrt(count)
    return count if inverse else 1 / count


# ---- frequencies and their order ---------------------------------------------------------------------------------


def fftfreq(n: int, d=1.0, *, dtype=None, device=None) -> Array:
    """The frequencies of the elements of `fft`: [0, 1, .., (n - 1) // 2, -(n // 2), .., -1] / (d n).

    >>> fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = _count("fftfreq", n)
    return _frequencies("fftfreq", np.roll(np.arange(-(n // 2), n - n // 2), -(n // 2)), n, d, dtype, device)


def rfftfreq(n: int, d=1.0, *, dtype=None, device=None) -> Array:
    """The frequencies of the elements of `rfft`: [0, 1, .., n // 2] / (d n)."""
    n = _count("rfftfreq", n)
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device)


def _count(name: str, n) -> int:
    if isinstance(n, list | tuple) or np.ndim(n):
        raise ValueError(f"{name} takes one int as n, got {n!r}")
    return _length(name, n)


def _frequencies(name: str, k, n: int, d, dtype, device) -> Array:
    if isinstance(d, list | tuple) or np.ndim(d):
        raise ValueError(f"{name} takes one number as d, got {d!r}")
    dtype = dtype_or(dtype, dtypes.default_float())
    if isinstance(d, Array):
        cycles = ew.convert(as_array(k), dtype)
        return true_divide(cycles, ew.convert(as_array(operand(name, d)) * n, dtype))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (k / (np.float64(d) * n)).astype(dtype)
    return device_array.asarray(found, device=device)


def fftshift(x, axes=None) -> Array:
    """`x` with frequency 0 in the middle of the given axes (all, if None).

    >>> fftshift(fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x, axes=None) -> Array:
    """The inverse of `fftshift`."""
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


def _shifted(name: str, x, axes, shift) -> Array:
    x = _array(name, x)
    axes = axes_of(name, axes, x.ndim)
    return roll(x, tuple([shift(x.shape[i]) for i in axes]), axes) if axes else x
