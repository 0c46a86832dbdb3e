"""Resampling of images: each axis apart, as a product with a matrix of weights.

    resize              : [.., m, ..] -> [.., n, ..]        the same picture with another number of pixels
    scale_and_translate : point x of the input becomes point x scale + translation of the result

Pixel i covers the interval from i to i + 1, its centre being i + 1/2. A pixel of the result is a mean of pixels of the input,
weighted by a kernel of their distance in pixels of the input; where the image shrinks, `antialias` widens the kernel by the same
factor. Weights are divided by their sum, so that only what lies in the image counts. Everything is linear in the image, and has
derivatives in scale and translation.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lax.precision import Precision
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, shape_of
from funcml.numpy.creation import array
from funcml.numpy.promotion import as_array, operand, promote_dtypes, to_inexact
from funcml.numpy.rows import fill
from funcml.numpy.selection import take
from funcml.numpy.ufuncs import sinc
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives.contraction import canonical_precision, dot_general

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How pixels are weighted.

    NEAREST: the nearest pixel alone. LINEAR: linear interpolation. CUBIC: cubic convolution (Keys, 1981, a = -1/2). LANCZOS3 and
    LANCZOS5: windowed sinc functions of radius 3 and 5. AREA: by the part of the new pixel that the old one covers.
    CUBIC_PYTORCH: as CUBIC with antialias; without, a = -3/4 and pixels on the edge stand for those outside.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of this name; ValueError if there is none.

        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        if s not in _NAMES:
            raise ValueError(f"unknown resize method {s!r}; expected one of {', '.join(map(repr, _NAMES))}")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


# ---- kernels: of the distance d >= 0 in pixels ---------------------------------------------------------------------


def _triangle(d):
    return ew.max(ew.sub(fill(d, 1), d), fill(d, 0))


def _cubic(a: float) -> Callable:
    """1 - (a + 3) d^2 + (a + 2) d^3 up to 1, a (d^3 - 5 d^2 + 8 d - 4) up to 2."""

    def kernel(d):
        near = ew.add(ew.mul(ew.mul(ew.sub(ew.mul(d, a + 2), a + 3), d), d), 1)
        far = ew.mul(ew.sub(ew.mul(ew.add(ew.mul(ew.sub(d, 5), d), 8), d), 4), a)
        return ew.select(ew.lt(d, 1), near, ew.select(ew.lt(d, 2), far, fill(d, 0)))

    return kernel


def _lanczos(radius: int) -> Callable:
    """sinc(d) sinc(d / radius) up to the radius."""
    return lambda d: ew.select(ew.le(d, radius), ew.mul(sinc(d), sinc(ew.div(d, radius))), fill(d, 0))


# The length that [-w/2, w/2], a new pixel of w old ones, has in common with the old pixel [d - 1/2, d + 1/2].
def _overlap(d, w):
    half = ew.mul(w, 0.5)
    return ew.max(ew.sub(ew.min(half, ew.add(d, 0.5)), ew.max(ew.neg(half), ew.sub(d, 0.5))), fill(d, 0))


class _Kernel(NamedTuple):
    """A function of the distance, its radius, and whether pixels on the edge stand for those outside."""

    function: Callable | None
    radius: int = 0
    repeats_edge: bool = False


def _kernel(method: ResizeMethod, antialias: bool) -> _Kernel:
    match method:
        case ResizeMethod.LINEAR:
            return _Kernel(_triangle, 1)
        case ResizeMethod.LANCZOS3:
            return _Kernel(_lanczos(3), 3)
        case ResizeMethod.LANCZOS5:
            return _Kernel(_lanczos(5), 5)
        case ResizeMethod.CUBIC_PYTORCH if not antialias:
            return _Kernel(_cubic(-0.75), 2, True)
        case ResizeMethod.AREA:
            return _Kernel(None)
    return _Kernel(_cubic(-0.5), 2)


# ---- weights -------------------------------------------------------------------------------------------------------


class _Samples(NamedTuple):
    """Where the centres of new pixels lie, in old pixels less 1/2: `whole` + `part`; `width`: of a new pixel in old ones.

    Known positions are split, so that large images lose no digits.
    """

    whole: Array | None
    part: Array
    width: Array


# (i + 1/2) m / n - 1/2 = ((2 i + 1) m - n) / 2n
def _known_samples(m: int, n: int, dtype) -> _Samples:
    twice = (2 * np.arange(n, dtype=np.int64) + 1) * m - n
    whole = twice // (2 * n)
    part = (twice - 2 * n * whole) / (2 * n)
    return _Samples(as_array(whole.astype(dtype)), as_array(part.astype(dtype)), as_array(dtype.type(m / n)))


# (i + 1/2 - translation) / scale - 1/2
def _given_samples(n: int, scale, translation) -> _Samples:
    width = ew.div(scale.dtype.type(1), scale)
    centre = ew.sub(ew.add(shaping.iota(scale.dtype, (n,)), 0.5), ax.broadcast_in_dim(translation, (n,)))
    return _Samples(None, ew.sub(ew.mul(centre, ax.broadcast_in_dim(width, (n,))), 0.5), width)


def _weights(samples: _Samples, m: int, kernel: _Kernel, antialias: bool):
    """[m, n]: the part that old pixel j has in new pixel i."""
    n, dtype = samples.part.shape[0], samples.part.dtype
    k = kernel.radius if kernel.repeats_edge else 0
    shape = (m + 2 * k, n)
    place = ew.sub(shaping.iota(dtype, shape), dtype.type(k))
    if samples.whole is not None:
        place = ew.sub(place, ax.broadcast_in_dim(samples.whole, shape, (1,)))
    distance = ew.abs(ew.sub(ax.broadcast_in_dim(samples.part, shape, (1,)), place))
    width = ax.broadcast_in_dim(samples.width, shape)
    if kernel.function is None:
        weights = _overlap(distance, width)
    else:
        weights = kernel.function(ew.div(distance, ew.max(width, fill(width, 1))) if antialias else distance)
    weights = _without_outside(weights, m, k)
    total = ax.broadcast_in_dim(ax.reduce_sum(weights, (0,)), weights.shape, (1,))
    counts = ew.gt(ew.abs(total), 1e3 * float(np.finfo(np.float32).eps))
    weights = ew.select(counts, ew.div(weights, ew.select(counts, total, fill(total, 1))), fill(weights, 0))
    return weights if kernel.repeats_edge or samples.whole is not None else _zero_outside(weights, samples.part, m)


def _without_outside(weights, m: int, k: int):
    """The weights of the k pixels outside on either side given to the pixel on that edge."""
    if k == 0 or m == 0:
        return weights
    row = lambda start, stop: shaping.slice_in_dim(weights, start, stop, axis=0)
    total = lambda x: ax.expand_dims(ax.reduce_sum(x, (0,)), (0,))
    if m == 1:
        return total(weights)
    return shaping.concatenate([total(row(0, k + 1)), row(k + 1, m + k - 1), total(row(m + k - 1, m + 2 * k))], 0)


def _zero_outside(weights, sample, m: int):
    """The weights, but 0 for a new pixel whose centre lies outside the image."""
    inside = ew.and_(ew.ge(sample, -0.5), ew.le(sample, m - 0.5))
    return ew.select(ax.broadcast_in_dim(inside, weights.shape, (1,)), weights, fill(weights, 0))


# ---- resampling ----------------------------------------------------------------------------------------------------


def resize(image, shape, method, antialias: bool = True, precision=Precision.HIGHEST) -> Array:
    """`image` with `shape`, a length for each of its axes; axes that keep their length keep their pixels.

    `method` is a ResizeMethod or its name; integers become floats, except by 'nearest', which only moves pixels.
    `precision` is that of the products with the matrices of weights. Raises ValueError for another number of lengths.

    >>> resize(np.array([0.0, 1.0], "float32"), (4,), "linear")
    Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
    """
    image, shape, method = _arguments("resize", image, shape, method)
    for m, n in zip(image.shape, shape, strict=True):
        if n and not m:
            raise ValueError(f"resize of {image.aval} to {shape}: an axis of length 0 has no pixels to sample")
    if method is ResizeMethod.NEAREST:
        return _nearest(image, shape)
    return _resize(image, shape, method, bool(antialias), canonical_precision(precision))


def scale_and_translate(
    image, shape, spatial_dims, scale, translation, method, antialias: bool = True, precision=Precision.HIGHEST
) -> Array:
    """`image` scaled and moved along `spatial_dims`: point x of it is point x scale + translation of the result.

    `shape` has a length for each axis of the result; `scale` and `translation` are vectors, one element for each of
    `spatial_dims`. A new pixel whose centre lies outside the image is 0. `method` as in `resize`, without 'nearest'.

    >>> one = np.ones(1, "float32")
    >>> scale_and_translate(np.array([1.0, 2.0], "float32"), (3,), (0,), one, one, "linear")
    Array([0., 1., 2.], dtype=float32)
    """
    name = "scale_and_translate"
    image, shape, method = _arguments(name, image, shape, method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(f"{name} does not take the method 'nearest'; resize does")
    axes = axes_of(name, tuple(spatial_dims), image.ndim)
    scale, translation = (array(x) if isinstance(x, list | tuple) else operand(name, x) for x in (scale, translation))
    scale, translation = map(as_array, promote_dtypes(name, scale, translation, inexact=True))
    if scale.shape != (len(axes),) or translation.shape != (len(axes),):
        raise ValueError(
            f"{name} expects scale and translation of shape ({len(axes)},), an element for each of spatial_dims, got "
            f"{scale.aval} and {translation.aval}"
        )
    for d, (m, n) in enumerate(zip(image.shape, shape, strict=True)):
        if m != n and d not in axes:
            raise ValueError(f"{name} of {image.aval} to {shape}: axis {d} changes its length and is not among spatial_dims")
    return _scale_and_translate(image, scale, translation, shape, axes, method, bool(antialias), canonical_precision(precision))


def _arguments(name: str, image, shape, method):
    image, shape = as_array(operand(name, image)), shape_of(name, shape)
    if len(shape) != image.ndim:
        raise ValueError(f"{name} expects a length for each axis of {image.aval}, got the shape {shape}")
    if isinstance(method, str):
        method = ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise TypeError(f"{name} expects a ResizeMethod or its name as method, got {method!r}")
    return image, shape, method


# floor((i + 1/2) m / n), exactly
@fused(static=("shape",))
def _nearest(image, shape):
    for d, (m, n) in enumerate(zip(image.shape, shape, strict=True)):
        if m != n:
            index = (2 * np.arange(n, dtype=np.int64) + 1) * m // max(2 * n, 1)
            image = take(image, index.astype(np.int32), d, mode="promise_in_bounds")
    return image


@fused(static=("shape", "method", "antialias", "precision"))
def _resize(image, shape, method, antialias, precision):
    image = as_array(to_inexact("resize", image))
    changed = [d for d in range(image.ndim) if image.shape[d] != shape[d]]
    wide = _wide(dtypes.real_dtype(image.dtype))
    kernel = _kernel(method, antialias)
    samples = {d: _known_samples(image.shape[d], shape[d], wide) for d in changed if shape[d]}
    weights = {d: _weights(samples[d], image.shape[d], kernel, antialias) if d in samples
               else ax.broadcast_in_dim(wide.type(0), (image.shape[d], 0)) for d in changed}
    return _resampled(image, weights, precision)


@fused(static=("shape", "axes", "method", "antialias", "precision"))
def _scale_and_translate(image, scale, translation, shape, axes, method, antialias, precision):
    image = as_array(to_inexact("scale_and_translate", image))
    kernel = _kernel(method, antialias)
    wide = _wide(scale.dtype)
    weights = {}
    for k, d in enumerate(axes):
        one = [ew.convert(ax.reshape(shaping.slice_in_dim(x, k, k + 1), ()), wide) for x in (scale, translation)]
        weights[d] = _weights(_given_samples(shape[d], *one), image.shape[d], kernel, antialias)
    return _resampled(image, weights, precision)


def _wide(dtype):
    return dtype if dtype in (dtypes.float32, dtypes.float64) else dtypes.float32


def _resampled(image, weights: dict, precision):
    """The image with each axis d contracted with `weights[d]`; those that shrink most come first."""
    dtype = image.dtype
    wide = dtype if dtypes.is_complex(dtype) else _wide(dtype)
    out = ew.convert(image, wide)
    for d in sorted(weights, key=lambda d: weights[d].shape[1] / max(weights[d].shape[0], 1)):
        out = dot_general(out, ew.convert(weights[d], wide), (((d,), (0,)), ((), ())), precision)
        out = ax.moveaxis(out, out.ndim - 1, d)
    return ew.convert(out, dtype)
