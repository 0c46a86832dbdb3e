"""Samples of distributions with parameters, each a function of uniform, exponential or normal ones.

For the same key they are those of JAX, bit for bit where XLA compiles both alike and JAX's formula does not cancel.
A sample is differentiable in its parameters, the key held fixed.
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import shape_of
from funcml.numpy.promotion import broadcast_shapes, operand, spread, to_inexact
from funcml.numpy.rows import fill
from funcml.primitives import elementwise as ew
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import reduce_sum
from funcml.primitives.powers import sqrt, square
from funcml.random.continuous import exponential_of, normal_of, uniform_of
from funcml.random.discrete import rademacher_of
from funcml.random.keys import one_key, several
from funcml.random.parameters import family, float_dtype, inexact_dtype, integer_dtype, shape_with

__all__ = [
    "double_sided_maxwell", "geometric", "lognormal", "maxwell", "pareto", "rayleigh", "triangular", "wald",
    "weibull_min",
]

# ---- of normal samples -----------------------------------------------------------------------------------------


def lognormal(key, sigma=1.0, shape=None, dtype=None) -> Array:
    """Samples of exp(sigma z), z standard normal (or complex normal); `sigma` broadcasts to `shape` or gives it."""
    return _lognormal(key, shape, dtype, sigma)


_lognormal = family(
    "lognormal", lambda key, shape, dtype, sigma: tr.exp(ew.mul(normal_of(key, shape, dtype), sigma)), inexact_dtype
)


def maxwell(key, shape=(), dtype=None) -> Array:
    """Samples of the Maxwell distribution with density proportional to x^2 exp(-x^2 / 2), x > 0: lengths of normal
    vectors of three."""
    return _maxwell(one_key("maxwell", key), shape_of("maxwell", shape), float_dtype("maxwell", dtype))


@fused(static=("shape", "dtype"))
def _maxwell(key, shape, dtype):
    return sqrt(reduce_sum(square(normal_of(key, (*shape, 3), dtype)), (len(shape),)))


def double_sided_maxwell(key, loc, scale, shape=(), dtype=None) -> Array:
    """Samples loc + scale s x, x of the Maxwell distribution and s -1 or 1.

    `shape` stands in front of the shape to which `loc` and `scale` broadcast.
    """
    return _double_sided_maxwell(key, shape, dtype, loc, scale)


def _in_front(name: str, shape, *parameters) -> tuple[int, ...]:
    return (*shape_of(name, shape), *shape_with(name, None, *parameters))


def _double_sided_maxwell_kernel(key, shape, dtype, loc, scale):
    key_size, key_sign = several(key, 2)
    size = _maxwell(key_size, shape, dtype)
    return ew.add(ew.mul(ew.mul(rademacher_of(key_sign, shape, dtype), size), scale), loc)


_double_sided_maxwell = family("double_sided_maxwell", _double_sided_maxwell_kernel, read_shape=_in_front)


def wald(key, mean, shape=None, dtype=None) -> Array:
    """Samples of the Wald distribution with density sqrt(1 / (2 pi x^3)) exp(-(x - m)^2 / (2 m^2 x)), m the mean.

    Source: Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots" (1976).
    """
    return _wald(key, shape, dtype, mean)


_CANCELS = 4.0


# With y the square of a normal sample and w = m y / 2 the smaller root is
#     x = m + m w - (m / 2) sqrt(4 m y + m^2 y^2) = m / (1 + w + sqrt(w (2 + w))),
# the first as JAX has it, the second for large w, where the first cancels, and for m whose squares overflow or underflow.
# The other root is m^2 / x.
def _wald_kernel(key, shape, dtype, mean):
    key_normal, key_uniform = several(key, 2)
    y = square(normal_of(key_normal, shape, dtype))
    z = uniform_of(key_uniform, shape, dtype, 0.0, 1.0)
    w = ew.mul(mean, ew.mul(0.5, y))
    limits = dtypes.finfo(dtype)
    moderate = ew.and_(ew.gt(mean, float(limits.tiny) ** 0.25), ew.lt(mean, float(limits.max) ** 0.25))
    far = ew.or_(ew.gt(w, _CANCELS), ew.not_(moderate))
    near_mean, far_w = ew.select(far, fill(mean, 1), mean), ew.select(far, w, fill(w, 1))
    near_y = ew.select(far, fill(y, 1), y)
    square_mean = square(near_mean)
    root = sqrt(ew.add(ew.mul(ew.mul(4.0, near_mean), near_y), ew.mul(square_mean, square(near_y))))
    near_x = ew.sub(ew.add(near_mean, ew.div(ew.mul(square_mean, near_y), 2.0)), ew.mul(ew.div(near_mean, 2.0), root))
    growth = ew.add(ew.add(1.0, far_w), ew.mul(sqrt(far_w), sqrt(ew.add(2.0, far_w))))
    x = ew.select(far, ew.div(mean, growth), near_x)
    other = ew.select(far, ew.mul(mean, growth), ew.div(square_mean, near_x))
    return ew.select(ew.le(z, ew.div(mean, ew.add(mean, x))), x, other)


_wald = family("wald", _wald_kernel)

# ---- of uniform and exponential samples ------------------------------------------------------------------------


def pareto(key, b, shape=None, dtype=None) -> Array:
    """Samples of the Pareto distribution with density b / x^(b + 1), x > 1; `b` broadcasts to `shape` or gives it."""
    return _pareto(key, shape, dtype, b)


_pareto = family("pareto", lambda key, shape, dtype, b: tr.exp(ew.div(exponential_of(key, shape, dtype), b)))


def rayleigh(key, scale, shape=None, dtype=None) -> Array:
    """Samples of the Rayleigh distribution with density x / s^2 exp(-x^2 / (2 s^2)), x > 0, s the `scale`."""
    return _rayleigh(key, shape, dtype, scale)


# s sqrt(-2 log u); a u that was rounded to 0 is put in the middle of what rounds to 0
def _rayleigh_kernel(key, shape, dtype, scale):
    u = uniform_of(key, shape, dtype, 0.0, 1.0)
    half_step = fill(u, 2.0 ** -(int(dtypes.finfo(dtype).nmant) + 1))
    log_u = tr.log(ew.select(ew.eq(u, 0.0), half_step, u))
    return ew.mul(scale, sqrt(ew.mul(log_u, -2.0)))


_rayleigh = family("rayleigh", _rayleigh_kernel)


def weibull_min(key, scale, concentration, shape=(), dtype=None) -> Array:
    """Samples of the Weibull distribution with density (c / s) (x / s)^(c - 1) exp(-(x / s)^c), x > 0.

    s is the `scale` and c the `concentration`; they and `shape` broadcast.
    """
    return _weibull_min(key, shape, dtype, scale, concentration)


def _together(name: str, shape, *parameters) -> tuple[int, ...]:
    return broadcast_shapes(shape_of(name, shape), shape_with(name, None, *parameters))


def _weibull_kernel(key, shape, dtype, scale, concentration):
    return ew.mul(tr.pow(exponential_of(key, shape, dtype), ew.div(1.0, concentration)), scale)


_weibull_min = family("weibull_min", _weibull_kernel, read_shape=_together)


def triangular(key, left, mode, right, shape=None, dtype=None) -> Array:
    """Samples of the distribution whose density is a triangle over (left, right) with its top at `mode`."""
    return _triangular(key, shape, dtype, left, mode, right)


def _triangular_kernel(key, shape, dtype, left, mode, right):
    u, width = uniform_of(key, shape, dtype, 0.0, 1.0), ew.sub(right, left)
    rising = ew.add(left, sqrt(ew.mul(ew.mul(u, width), ew.sub(mode, left))))
    falling = ew.sub(right, sqrt(ew.mul(ew.mul(ew.sub(1.0, u), width), ew.sub(right, mode))))
    return ew.select(ew.lt(u, ew.div(ew.sub(mode, left), width)), rising, falling)


_triangular = family("triangular", _triangular_kernel)


def geometric(key, p, shape=None, dtype=None) -> Array:
    """The number of trials, each of which succeeds with probability `p`, up to the first success; integers of `dtype`.

    Where it is more than the dtype holds, the greatest that it holds.
    """
    key, dtype = one_key("geometric", key), integer_dtype("geometric", dtype)
    p = operand("geometric", p)
    return _geometric(key, p, shape_with("geometric", shape, p), dtype)


# floor(log u / log(1 - p)) + 1
@fused(static=("shape", "dtype"))
def _geometric(key, p, shape, dtype):
    p = to_inexact("geometric", p)
    if not dtypes.is_float(aval_of(p).dtype):
        raise TypeError(f"geometric: expected real probabilities p, got {aval_of(p)}")
    u = uniform_of(key, shape, aval_of(p).dtype, 0.0, 1.0)
    log_u = tr.log(ew.select(ew.eq(u, 0.0), fill(u, 1), u))
    trials = ew.add(ew.floor(ew.div(log_u, spread(tr.log1p(ew.neg(p)), shape))), 1.0)
    return ew.convert(trials, dtype)
