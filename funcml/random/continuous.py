"""Samples of continuous distributions, each a function of uniform ones.

    uniform : bits of the mantissa m -> minval + m (maxval - minval)
    others  : u uniform in (0, 1) -> F^-1(u), F the distribution function

For the same key they are those of JAX, bit for bit where XLA compiles both alike.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import shape_of
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping, special
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import reshape
from funcml.primitives.bits import bitcast_convert, shift_right_logical
from funcml.primitives.identities import stop_gradient
from funcml.random.bits import random_bits
from funcml.random.implementations import UNSIGNED_OF_WIDTH
from funcml.random.keys import one_key, several
from funcml.random.parameters import exact, float_dtype, inexact_dtype, parameter, shape_with
from funcml.random.tails import in_far_tail, may_be_far, truncated_tail

__all__ = [
    "cauchy", "exponential", "exponential_of", "laplace", "logistic", "normal", "normal_of", "truncated_normal", "uniform",
    "uniform_of", "uniform_of_pair",
]

# ---- uniform -------------------------------------------------------------------------------------------------


def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0) -> Array:
    """Uniform samples in [minval, maxval); the bounds broadcast to `shape`.

    >>> from funcml import random
    >>> random.uniform(random.key(0), (2,))
    Array([0.947667 , 0.9785799], dtype=float32)
    """
    key, dtype = one_key("uniform", key), float_dtype("uniform", dtype)
    minval, maxval = exact(minval, dtype), exact(maxval, dtype)
    return _uniform(key, minval, maxval, shape_with("uniform", shape_of("uniform", shape), minval, maxval), dtype)


@fused(static=("shape", "dtype"))
def _uniform(key, minval, maxval, shape, dtype):
    low, high = (parameter("uniform", x, dtype, shape) for x in (minval, maxval))
    return uniform_of(key, shape, dtype, low, high)


# The random bits are the mantissa of a number in [1, 2), from which 1 is taken away.
def _unit(key, shape, dtype):
    width, mantissa = dtypes.bit_width(dtype), int(dtypes.finfo(dtype).nmant)
    drawn = 8 if mantissa < 8 else width
    unsigned = UNSIGNED_OF_WIDTH[width]
    bits = ew.convert(random_bits(key, shape, drawn), unsigned)
    one = np.ones((), dtype).view(unsigned)[()]
    floats = bitcast_convert(ew.or_(shift_right_logical(bits, drawn - mantissa), one), dtype)
    return ew.sub(floats, 1.0)


def uniform_of(key, shape, dtype, low, high):
    """`uniform` inside a program; the bounds are arrays of this type, or numbers."""
    low, high = (parameter("uniform", x, dtype, shape) for x in (low, high))
    return ew.max(low, ew.add(ew.mul(_unit(key, shape, dtype), ew.sub(high, low)), low))


def uniform_of_pair(key, shape, dtype) -> list:
    """Two arrays of uniform samples in [0, 1), inside a program."""
    return [reshape(u, shape) for u in shaping.split(uniform_of(key, (2, *shape), dtype, 0.0, 1.0), (1, 1))]


# ---- normal --------------------------------------------------------------------------------------------------


def normal(key, shape=(), dtype=None) -> Array:
    """Samples of the standard normal distribution; complex ones have variance 1, half of it in each part.

    >>> from funcml import random
    >>> random.normal(random.key(0), (2,))
    Array([1.6226422, 2.0252647], dtype=float32)
    """
    return _normal(one_key("normal", key), shape_of("normal", shape), inexact_dtype("normal", dtype))


@fused(static=("shape", "dtype"))
def _normal(key, shape, dtype):
    return normal_of(key, shape, dtype)


# sqrt 2 erf^-1(u), u uniform in (-1, 1)
def normal_of(key, shape, dtype):
    """`normal` inside a program."""
    if dtypes.is_complex(dtype):
        real, imag = (normal_of(k, shape, dtypes.real_dtype(dtype)) for k in several(key, 2))
        return ew.div(ew.complex(real, imag), dtype.type(math.sqrt(2)))
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype))[()]
    u = uniform_of(key, shape, dtype, low, 1.0)
    return ew.mul(_sqrt2(dtype), special.erf_inv_fast(u))


def _sqrt2(dtype):
    return np.array(np.sqrt(2), dtype)[()]


def truncated_normal(key, lower, upper, shape=None, dtype=None) -> Array:
    """Samples of the standard normal distribution, given that they lie in the open interval (lower, upper).

    The bounds broadcast to `shape`, or to each other.
    """
    key, dtype = one_key("truncated_normal", key), float_dtype("truncated_normal", dtype)
    lower, upper, shape = exact(lower, dtype), exact(upper, dtype), shape_with("truncated_normal", shape, lower, upper)
    return _truncated_normal(key, lower, upper, shape, dtype, may_be_far(lower, upper))


@fused(static=("shape", "dtype", "far"))
def _truncated_normal(key, lower, upper, shape, dtype, far):
    lower, upper = (parameter("truncated_normal", x, dtype, shape) for x in (lower, upper))
    sqrt2 = _sqrt2(dtype)
    a, b = (special.erf(ew.div(x, sqrt2)) for x in (lower, upper))
    u = uniform_of(key, shape, dtype, a, b)
    sample = ew.mul(sqrt2, special.erf_inv_fast(u))
    if far:
        tail = truncated_tail(_unit(key, shape, dtype), lower, upper)
        sample = ew.select(in_far_tail(lower, upper), tail, sample)
    least = ew.nextafter(stop_gradient(lower), np.inf)
    greatest = ew.nextafter(stop_gradient(upper), -np.inf)
    return ew.min(ew.max(sample, least), greatest)


# ---- by the inverse of the distribution function -------------------------------------------------------------


def _sampler(name: str, doc: str, inverse):
    """The public function of a distribution without parameters; `inverse(key, shape, dtype)` is its program."""
    program = fused(static=("shape", "dtype"))(inverse)

    def sample(key, shape=(), dtype=None) -> Array:
        return program(one_key(name, key), shape_of(name, shape), float_dtype(name, dtype))

    sample.__name__ = sample.__qualname__ = name
    sample.__doc__ = doc
    return sample


# F^-1(u) = -log(1 - u)
def exponential_of(key, shape, dtype):
    """`exponential` inside a program."""
    u = uniform_of(key, shape, dtype, 0.0, 1.0)
    return ew.neg(tr.log1p(ew.neg(u)))


# F^-1 as a function of v = 2u - 1:  sign(v) log(1 - |v|)
def _laplace(key, shape, dtype):
    low = -1.0 + float(dtypes.finfo(dtype).epsneg)
    v = uniform_of(key, shape, dtype, low, 1.0)
    return ew.mul(ew.sign(v), tr.log1p(ew.neg(ew.abs(v))))


# F^-1(u) = log u - log(1 - u)
def _logistic(key, shape, dtype):
    u = uniform_of(key, shape, dtype, float(dtypes.finfo(dtype).tiny), 1.0)
    return ew.sub(tr.log(u), tr.log1p(ew.neg(u)))


# F^-1(u) = tan(pi (u - 1/2))
def _cauchy(key, shape, dtype):
    u = uniform_of(key, shape, dtype, float(dtypes.finfo(dtype).eps), 1.0)
    return tr.tan(ew.mul(dtype.type(math.pi), ew.sub(u, 0.5)))


exponential = _sampler("exponential", "Samples of the exponential distribution with density exp(-x), x > 0.", exponential_of)
laplace = _sampler("laplace", "Samples of the Laplace distribution with density exp(-|x|) / 2.", _laplace)
logistic = _sampler("logistic", "Samples of the logistic distribution, whose distribution function is the sigmoid.", _logistic)
cauchy = _sampler("cauchy", "Samples of the Cauchy distribution with density 1 / (pi (1 + x^2)).", _cauchy)

