"""Convolutions and correlations of arrays: over all axes by sums of products, or over some by Fourier transforms.

    convolve  : [m..] x [n..] -> [m + n - 1, ..]    y_k = sum over j of a_(k-j) b_j
    correlate : [m..] x [n..] -> [m + n - 1, ..]    y_k = sum over j of a_(j+k) conj(b_j)

Of this 'full' result, 'same' is the middle part of the shape of the first operand, and 'valid' that where one operand lies
wholly in the other. Integers become floats.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy import fft as fourier
from funcml.numpy.arguments import axes_of
from funcml.numpy.convolutions import MODES, windowed_sum
from funcml.numpy.padding import pad
from funcml.numpy.promotion import as_array, operand, promote_dtypes, settle
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives.contraction import canonical_precision
from funcml.scipy.signal.products import product

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]


def convolve(in1, in2, mode: str = "full", method: str = "auto", precision=None) -> Array:
    """The convolution of two arrays of one rank, directly ('direct', 'auto') or by Fourier transforms ('fft').

    Raises ValueError for other ranks, for empty arrays, for an unknown mode or method, and where with 'valid' neither operand
    contains the other.

    >>> import numpy as np
    >>> convolve(np.ones((1, 2), "float32"), np.ones((2, 1), "float32"))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _by_method("convolve", in1, in2, mode, method, precision)


def correlate(in1, in2, mode: str = "full", method: str = "auto", precision=None) -> Array:
    """The correlation of two arrays of one rank, the second one conjugated; arguments as for `convolve`."""
    return _by_method("correlate", in1, in2, mode, method, precision)


def _by_method(name: str, in1, in2, mode, method, precision) -> Array:
    in1, in2 = _pair(name, in1, in2, mode)
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{name}: method must be 'auto', 'direct' or 'fft', got {method!r}")
    if method == "fft":
        return _by_transforms(in1, in2, name, mode, tuple(range(in1.ndim)))
    return _direct(in1, in2, 0.0, name, mode, None, canonical_precision(precision))


def convolve2d(in1, in2, mode: str = "full", boundary: str = "fill", fillvalue=0, precision=None) -> Array:
    """The convolution of two matrices.

    Outside the first one lies `fillvalue` ('fill'), its continuation ('wrap') or its mirror image ('symm').
    """
    return _of_matrices("convolve2d", in1, in2, mode, boundary, fillvalue, precision)


def correlate2d(in1, in2, mode: str = "full", boundary: str = "fill", fillvalue=0, precision=None) -> Array:
    """The correlation of two matrices, the second one conjugated; arguments as for `convolve2d`.

    Where the second one has an even length, 'same' begins half an element later than that of `correlate`.
    """
    return _of_matrices("correlate2d", in1, in2, mode, boundary, fillvalue, precision)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _of_matrices(name: str, in1, in2, mode, boundary, fillvalue, precision) -> Array:
    in1, in2 = _pair(name, in1, in2, mode)
    if in1.ndim != 2:
        raise ValueError(f"{name} expects two matrices, got {in1.aval} and {in2.aval}")
    if boundary not in _BOUNDARIES:
        raise ValueError(f"{name}: boundary must be 'fill', 'wrap' or 'symm', got {boundary!r}")
    if boundary == "fill" and type(fillvalue) in (int, float) and fillvalue == 0:
        boundary = None
    return _direct(in1, in2, operand(name, fillvalue), name, mode, boundary, canonical_precision(precision))


def _pair(name: str, in1, in2, mode):
    if mode not in MODES:
        raise ValueError(f"{name}: mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    in1, in2 = map(as_array, settle(name, operand(name, in1), operand(name, in2)))
    if in1.ndim != in2.ndim:
        raise ValueError(f"{name} expects operands of one rank, got {in1.aval} and {in2.aval}")
    if not in1.size or not in2.size:
        raise ValueError(f"{name} expects operands that are not empty, got {in1.aval} and {in2.aval}")
    if mode == "valid":
        _contains(name, in1.aval, in2.aval, range(in1.ndim))
    return in1, in2


def _contains(name: str, first, second, axes) -> bool:
    """Whether the first operand contains the second along these axes; False the other way round, ValueError if neither."""
    if all(first.shape[i] >= second.shape[i] for i in axes):
        return True
    if all(first.shape[i] <= second.shape[i] for i in axes):
        return False
    raise ValueError(f"{name}: with mode 'valid' one operand must contain the other along every axis, got {first} and {second}")


def _reversed_second(name: str, b):
    """What a convolution takes for its second operand, where the correlation of `name` takes `b`."""
    if not name.startswith("correlate"):
        return b
    return shaping.rev(ew.conj(b) if dtypes.is_complex(b.dtype) else b, range(b.ndim))


@fused(static=("name", "mode", "boundary", "precision"))
def _direct(in1, in2, fillvalue, name, mode, boundary, precision):
    a, b = map(as_array, promote_dtypes(name, in1, in2, inexact=True))
    b = _reversed_second(name, b)
    if mode == "valid":
        if not _contains(name, a.aval, b.aval, range(a.ndim)):
            a, b = b, a
        starts, shape = [n - 1 for n in b.shape], [m - n + 1 for m, n in zip(a.shape, b.shape, strict=True)]
    elif mode == "same":
        later = name == "correlate2d"
        starts, shape = [(n - 1 + later) // 2 for n in b.shape], a.shape
    else:
        starts, shape = [0] * a.ndim, [m + n - 1 for m, n in zip(a.shape, b.shape, strict=True)]
    if mode != "valid" and boundary is not None:
        a, starts = _continued(a, b, starts, boundary, fillvalue)
    return windowed_sum(a, shaping.rev(b, range(b.ndim)), starts, shape, precision)


def _continued(a, b, starts, boundary, fillvalue):
    """`a` with as much around as `b` reaches, and the starts counted from there."""
    around = [(n - 1, n - 1) for n in b.shape]
    values = {"constant_values": fillvalue} if boundary == "fill" else {}
    return pad(a, around, _BOUNDARIES[boundary], **values), [s + n - 1 for s, n in zip(starts, b.shape, strict=True)]


def fftconvolve(in1, in2, mode: str = "full", axes=None) -> Array:
    """The convolution of two arrays of one rank by Fourier transforms, over the given axes (all, if None).

    Along the other axes, operands broadcast and are multiplied. For long operands this is faster than `convolve`; rounding errors
    are relative to the largest elements.

    >>> import numpy as np
    >>> fftconvolve(np.ones(2), np.ones(1))
    Array([1., 1.], dtype=float64)
    """
    in1, in2 = map(as_array, settle("fftconvolve", operand("fftconvolve", in1), operand("fftconvolve", in2)))
    if mode not in MODES:
        raise ValueError(f"fftconvolve: mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    if in1.ndim != in2.ndim:
        raise ValueError(f"fftconvolve expects operands of one rank, got {in1.aval} and {in2.aval}")
    if not in1.size or not in2.size:
        raise ValueError(f"fftconvolve expects operands that are not empty, got {in1.aval} and {in2.aval}")
    axes = axes_of("fftconvolve", axes, in1.ndim)
    for i in set(range(in1.ndim)).difference(axes):
        if in1.shape[i] != in2.shape[i] and 1 not in (in1.shape[i], in2.shape[i]):
            raise ValueError(f"fftconvolve: axis {i} is not among axes, and not of one length in {in1.aval} and {in2.aval}")
    return _by_transforms(in1, in2, "fftconvolve", mode, axes)


@fused(static=("name", "mode", "axes"))
def _by_transforms(in1, in2, name, mode, axes):
    a, b = map(as_array, promote_dtypes(name, in1, in2, inexact=True))
    dtype = a.dtype
    b = _reversed_second(name, b)
    if mode == "valid" and not _contains(name, a.aval, b.aval, axes):
        a, b = b, a
    full = [a.shape[i] + b.shape[i] - 1 for i in axes]
    parts = {"full": full, "same": [a.shape[i] for i in axes], "valid": [a.shape[i] - b.shape[i] + 1 for i in axes]}[mode]
    mixed = [i for i in axes if a.shape[i] != 1 and b.shape[i] != 1]
    if not mixed:
        whole = product(a, b)
    else:
        lengths = [_good_length(a.shape[i] + b.shape[i] - 1) for i in mixed]
        forward, backward = (fourier.fftn, fourier.ifftn) if dtypes.is_complex(dtype) else (fourier.rfftn, fourier.irfftn)
        spectra = [forward(x, lengths, mixed) for x in (a, b)]
        whole = ew.convert(backward(product(*spectra), lengths, mixed), dtype)
    starts, limits = [0] * whole.ndim, list(whole.shape)
    for i, n, part in zip(axes, full, parts, strict=True):
        starts[i] = (n - part) // 2
        limits[i] = starts[i] + part
    return shaping.slice_(whole, starts, limits)


def _good_length(n: int) -> int:
    """The least number from n on that has no prime factor above 5, for which Fourier transforms are fastest."""
    best = 2 ** math.ceil(math.log2(n)) if n > 1 else 1
    five = 1
    while five < best:
        odd = five
        while odd < best:
            best = min(best, odd * 2 ** max(math.ceil(math.log2(n / odd)), 0))
            odd *= 3
        five *= 5
    return best
