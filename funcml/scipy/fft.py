"""Discrete cosine transforms: the Fourier transforms of signals that are continued evenly at their ends.

    type 1: y_k = x_0 + (-1)^k x_(N-1) + 2 sum over n from 1 to N - 2 of x_n cos(pi k n / (N - 1))
    type 2: y_k = 2 sum of x_n cos(pi k (2 n + 1) / (2 N))
    type 3: y_k = x_0 + 2 sum over n from 1 of x_n cos(pi (2 k + 1) n / (2 N))
    type 4: y_k = 2 sum of x_n cos(pi (2 k + 1) (2 n + 1) / (4 N))

Type 1 and 4 are their own inverses, 2 and 3 each other's, up to the factor M = 2 N (type 1: 2 (N - 1)). `norm` says where 1/M
stands: 'backward' (None) in the inverse, 'forward' in the other, 'ortho' as 1/sqrt(M) in both, where the elements at the ends
are scaled too, so that the matrix is orthogonal. The real and the imaginary part are transformed each for itself.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, axis_of, index_of
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives.fft import FftType
from funcml.primitives.fft import fft as fourier

__all__ = ["dct", "dctn", "idct", "idctn"]

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def dct(x, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The cosine transform along one axis, cut or padded with zeros to length `n`.

    >>> dct(np.array([1.0], "float32"))
    Array([2.], dtype=float32)
    """
    return _along("dct", x, type, None if n is None else (n,), (axis,), norm, False)


def idct(x, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `dct`."""
    return _along("idct", x, type, None if n is None else (n,), (axis,), norm, True)


def dctn(x, type: int = 2, s=None, axes=None, norm: str | None = None) -> Array:
    """`dct` along several axes: all of them, or the last ones if only `s`, their lengths, is given."""
    return _along("dctn", x, type, s, axes, norm, False)


def idctn(x, type: int = 2, s=None, axes=None, norm: str | None = None) -> Array:
    """The inverse of `dctn`."""
    return _along("idctn", x, type, s, axes, norm, True)


def _along(name: str, x, type, s, axes, norm, inverse: bool) -> Array:
    x = as_array(operand(name, x))
    if type not in _INVERSE:
        raise NotImplementedError(f"{name}: type must be 1, 2, 3 or 4, got {type!r}")
    norm = "backward" if norm is None else norm
    if norm not in _SWAPPED:
        raise ValueError(f"{name}: norm must be None or one of {', '.join(map(repr, _SWAPPED))}, got {norm!r}")
    lengths = None if s is None else tuple([_length(name, n) for n in s])
    if lengths is not None and len(lengths) > x.ndim:
        raise ValueError(f"{name}: s must have at most x.ndim ({x.ndim}) elements, got {len(lengths)}: {lengths} for {x.aval}")
    if axes is None:
        axes = range(-(x.ndim if lengths is None else len(lengths)), 0)
    axes = axes_of(name, tuple(axes), x.ndim) if len(axes) != 1 else (axis_of(name, axes[0], x.ndim),)
    lengths = tuple([x.shape[i] for i in axes]) if lengths is None else lengths
    if len(lengths) != len(axes):
        raise ValueError(f"{name}: s has {len(lengths)} lengths for {len(axes)} axes: {lengths} and {axes}")
    for n in lengths:
        if n < (2 if type == 1 else 1):
            raise ValueError(f"{name}: type {type} needs at least {2 if type == 1 else 1} elements along an axis, got {x.aval}")
    if inverse:
        return _transform(x, name, _INVERSE[type], lengths, axes, _SWAPPED[norm])
    return _transform(x, name, type, lengths, axes, norm)


def _length(name: str, n) -> int:
    length = index_of(name, "a length", n)
    if length < 1:
        raise ValueError(f"{name}: a length must be positive, got {length}")
    return length


@fused(static=("name", "type", "lengths", "axes", "norm"))
def _transform(x, name, type, lengths, axes, norm):
    x = as_array(to_inexact(name, x))
    wide = dtypes.complex_dtype(x.dtype)
    if dtypes.is_complex(x.dtype):
        return ew.complex(*[_real(part(x), type, lengths, axes, norm) for part in (ew.real, ew.imag)])
    return _real(ew.convert(x, dtypes.real_dtype(wide)), type, lengths, axes, norm)


def _real(x, type, lengths, axes, norm):
    for n, axis in zip(lengths, axes, strict=True):
        x = ax.moveaxis(x, axis, x.ndim - 1)
        if n < x.shape[-1]:
            x = shaping.slice_in_dim(x, 0, n, axis=-1)
        x = shaping.pad(x, 0, [(0, 0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1], 0)])
        if x.size:
            x = _scaled(_KERNELS[type], x, type, n, norm)
        x = ax.moveaxis(x, x.ndim - 1, axis)
    return x


def _scaled(kernel, x, type: int, n: int, norm: str):
    period = 2 * (n - 1) if type == 1 else 2 * n
    if norm == "backward":
        return kernel(x, n)
    if norm == "forward":
        return ew.mul(kernel(x, n), x.dtype.type(1 / period))
    root, before, after = math.sqrt(period), np.ones(n), np.full(n, 1 / math.sqrt(period))
    if type == 1:
        before[[0, -1]] = math.sqrt(2)
        after[[0, -1]] = 1 / (root * math.sqrt(2))
    elif type == 2:
        after[0] = 1 / (root * math.sqrt(2))
    elif type == 3:
        before[0] = math.sqrt(2)
    return _times(kernel(_times(x, before), n), after)


def _times(x, weights):
    """`x` times a constant vector along its last axis."""
    if np.all(weights == 1):
        return x
    return ew.mul(x, ax.broadcast_in_dim(as_array(weights.astype(x.dtype)), x.shape, (x.ndim - 1,)))


def _cut(x, start: int, stop: int, step: int = 1):
    return shaping.slice_in_dim(x, start, stop, step, axis=-1)


def _reversed(x):
    return shaping.rev(x, (x.ndim - 1,))


def _joined(*parts):
    return shaping.concatenate(parts, parts[0].ndim - 1)


# Type 1 is the Fourier transform of x_0, .., x_(N-1), .., x_1.
def _first(x, n: int):
    even = _joined(x, _reversed(_cut(x, 1, n - 1)))
    return ew.real(fourier(even, FftType.RFFT, (2 * n - 2,)))


# v = x_0, x_2, .., x_3, x_1 has the transform V, and with z_k = 2 exp(-pi i k / 2N) V_k:  y_k = Re z_k, y_(N-k) = -Im z_k
# (J. Makhoul, A fast cosine transform in one and two dimensions, 1980).
def _second(x, n: int):
    v = _joined(_cut(x, 0, n, 2), _reversed(_cut(x, 1, n, 2)))
    z = fourier(v, FftType.RFFT, (n,))
    z = _times(z, 2 * np.exp(-0.5j * np.pi * np.arange(n // 2 + 1) / n))
    return _joined(ew.real(z), ew.neg(_reversed(ew.imag(_cut(z, 1, (n + 1) // 2)))))


# The same steps backward.
def _third(x, n: int):
    half = n // 2 + 1
    upper = _reversed(_cut(x, n - half + 1, n))
    z = ew.complex(_cut(x, 0, half), ew.neg(shaping.pad(upper, 0, [(0, 0, 0)] * (x.ndim - 1) + [(1, 0, 0)])))
    v = fourier(_times(z, n * np.exp(0.5j * np.pi * np.arange(half) / n)), FftType.IRFFT, (n,))
    odd = n // 2
    evens, odds = _cut(v, 0, n - odd), _reversed(_cut(v, n - odd, n))
    if not odd:
        return v
    between = [(0, 1 - n % 2, 1), (1, n % 2, 1)]
    return ew.add(*[shaping.pad(p, 0, [*[(0, 0, 0)] * (x.ndim - 1), b]) for p, b in zip((evens, odds), between, strict=True)])


# y_k = 2 Re exp(-pi i (2 k + 1) / 4N) sum of x_n exp(-pi i n / 2N) exp(-2 pi i k n / 2N)
def _fourth(x, n: int):
    turned = _times(ew.complex(x, ax.broadcast_in_dim(x.dtype.type(0), x.shape)), np.exp(-0.5j * np.pi * np.arange(n) / n))
    whole = fourier(shaping.pad(turned, 0, [(0, 0, 0)] * (x.ndim - 1) + [(0, n, 0)]), FftType.FFT, (2 * n,))
    return ew.real(_times(_cut(whole, 0, n), 2 * np.exp(-0.25j * np.pi * (2 * np.arange(n) + 1) / n)))


_KERNELS = {1: _first, 2: _second, 3: _third, 4: _fourth}
