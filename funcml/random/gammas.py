"""Samples of the gamma distribution, and of those that are functions of it.

For the same key they are those of JAX, bit for bit where XLA compiles both alike and nothing underflows.

Source: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). With d = a - 1/3 and c = 1 / (3 sqrt d),
x normal and v = (1 + c x)^3, d v is accepted if log u < x^2 / 2 + d (1 - v + log v), u uniform. For a < 1 the sample is one
for a + 1 times u^(1/a), in logarithms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lax.loops import map as map_each
from funcml.lax.loops import while_loop
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of, shape_of
from funcml.numpy.promotion import operand
from funcml.numpy.rows import fill
from funcml.primitives import elementwise as ew
from funcml.primitives import special
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import broadcast_in_dim, reduce_sum, reshape
from funcml.primitives.identities import stop_gradient
from funcml.primitives.incomplete import random_gamma_grad
from funcml.primitives.powers import sqrt, square
from funcml.primitives.reductions import reduce_max
from funcml.random.continuous import exponential_of, normal_of, uniform_of
from funcml.random.discrete import rademacher_of
from funcml.random.implementations import implementation_of
from funcml.random.keys import one_key, several, subkeys
from funcml.random.parameters import exact, family, float_dtype, parameter, shape_with
from funcml.transforms.custom_jvp import custom_jvp
from funcml.vectorise import vmap

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"]

# ---- one sample ------------------------------------------------------------------------------------------------


class _Draw(NamedTuple):
    """What a gamma sample is made of: d v, and a uniform number for the power by which it is multiplied if a < 1."""

    a: Array
    d: Array
    v: Array
    u: Array


def _one(key, a):
    """(d, v, u) of one sample, from a key of its own."""
    dtype = aval_of(a).dtype
    d = ew.sub(ew.select(ew.ge(a, 1.0), a, ew.add(a, 1.0)), 1 / 3)
    c = ew.div(fill(d, 1 / 3), sqrt(d))

    def is_rejected(state):
        _, x2, v, u = state
        beyond_squeeze = ew.ge(u, ew.sub(1.0, ew.mul(0.0331, square(x2))))
        bound = ew.add(ew.mul(x2, 0.5), ew.mul(d, ew.add(ew.sub(1.0, v), tr.log(v))))
        return ew.and_(beyond_squeeze, ew.ge(tr.log(u), bound))

    def again(state):
        key, key_x, key_u = several(state[0], 3)
        _, x, v = while_loop(lambda s: ew.le(s[2], 0.0), next_normal, (key_x, fill(d, 0), fill(d, -1)))
        return key, square(x), ew.mul(square(v), v), uniform_of(key_u, (), dtype, 0.0, 1.0)

    def next_normal(state):
        key, subkey = several(state[0], 2)
        x = normal_of(subkey, (), dtype)
        return key, x, ew.add(1.0, ew.mul(x, c))

    key, subkey = several(key, 2)
    _, _, v, _ = while_loop(is_rejected, again, (key, fill(d, 0), fill(d, 1), fill(d, 2)))
    return d, v, uniform_of(subkey, (), dtype, 0.0, 1.0)


def _drawn(key, a) -> _Draw:
    """The parts of a sample for each element of `a`, each from its own key."""
    shape, a = aval_of(a).shape, stop_gradient(a)
    count = math.prod(shape)
    if not count:
        return _Draw(a, a, a, a)
    flat = reshape(a, (count,))
    keys = subkeys(key, (count,))
    if implementation_of(key).exact_vmap:
        parts = vmap(_one)(keys, flat)
    else:
        parts = map_each(lambda pair: _one(*pair), (keys, flat))
    return _Draw(a, *[reshape(x, shape) for x in parts])


def _value(draw: _Draw):
    power = tr.pow(ew.sub(1.0, draw.u), ew.div(1.0, draw.a))
    return ew.mul(ew.mul(draw.d, draw.v), ew.select(ew.ge(draw.a, 1.0), fill(power, 1), power))


def _logarithm(draw: _Draw):
    log_u = tr.log1p(ew.neg(draw.u))
    whole = ew.or_(ew.ge(draw.a, 1.0), ew.eq(log_u, 0.0))
    log_power = ew.select(whole, fill(log_u, 0), ew.mul(log_u, ew.div(1.0, draw.a)))
    return ew.add(ew.add(tr.log(draw.d), tr.log(draw.v)), log_power)


# ---- derivatives -----------------------------------------------------------------------------------------------


# x' = -P_a(a, x) / P_x(a, x) a', P the distribution function; the key is held
@custom_jvp
def _moving(x, a):
    """The sample x as a function of a."""
    return x


_moving.defjvps(None, lambda t, ans, x, a: ew.mul(t, random_gamma_grad(a, x)))


@custom_jvp
def _moving_logarithm(log_x, a):
    """The logarithm of a sample as a function of a."""
    return log_x


# Where x = exp(log x) underflows, P(a, x) = x^a / gamma(a + 1), so that (log x)' = (digamma(a + 1) - log x) / a a'.
def _logarithm_tangent(t, ans, log_x, a):
    least = 2 * math.log(float(dtypes.finfo(aval_of(a).dtype).tiny)) / 3
    tiny = ew.lt(log_x, least)
    x = tr.exp(ew.select(tiny, fill(log_x, 0), log_x))
    near_zero = ew.div(ew.sub(special.digamma(ew.add(a, 1.0)), log_x), a)
    return ew.mul(t, ew.select(tiny, near_zero, ew.div(random_gamma_grad(a, x), x)))


_moving_logarithm.defjvps(None, _logarithm_tangent)


def gamma_of(key, a):
    """`gamma` inside a program, one sample for each element of `a`."""
    return _moving(_value(_drawn(key, a)), a)


def loggamma_of(key, a):
    """`loggamma` inside a program."""
    return _moving_logarithm(_logarithm(_drawn(key, a)), a)


# ---- gamma -----------------------------------------------------------------------------------------------------


def gamma(key, a, shape=None, dtype=None) -> Array:
    """Samples of the gamma distribution with density x^(a - 1) exp(-x) / gamma(a), x > 0; `a` broadcasts to `shape` or gives
    it.

    A sample is differentiable in `a`, the key held fixed. For small `a` samples underflow: see `loggamma`.

    >>> from funcml import random
    >>> random.gamma(random.key(0), 1.0, (2,)).shape
    (2,)
    """
    return _gamma(key, shape, dtype, a)


def loggamma(key, a, shape=None, dtype=None) -> Array:
    """Logarithms of samples of the gamma distribution: those of `gamma` for the same key, without underflow."""
    return _loggamma(key, shape, dtype, a)


_gamma = family("gamma", lambda key, shape, dtype, a: gamma_of(key, a))
_loggamma = family("loggamma", lambda key, shape, dtype, a: loggamma_of(key, a))


# ---- functions of gamma samples --------------------------------------------------------------------------------


def beta(key, a, b, shape=None, dtype=None) -> Array:
    """Samples of the beta distribution with density proportional to x^(a - 1) (1 - x)^(b - 1), 0 < x < 1."""
    return _beta(key, shape, dtype, a, b)


# x / (x + y) with x and y gamma samples for a and b, of which the greater is made 1
def _beta_kernel(key, shape, dtype, a, b):
    key_a, key_b = several(key, 2)
    log_x, log_y = loggamma_of(key_a, a), loggamma_of(key_b, b)
    greatest = ew.max(log_x, log_y)
    x, y = (tr.exp(ew.sub(z, greatest)) for z in (log_x, log_y))
    return ew.div(x, ew.add(x, y))


_beta = family("beta", _beta_kernel)


def dirichlet(key, alpha, shape=None, dtype=None) -> Array:
    """Samples [.., n] of the Dirichlet distribution with density proportional to the product of the x_i^(alpha_i - 1).

    `alpha` [.., n]; `shape` is that of the samples without the last axis, and gives it where it is left out.
    """
    key, dtype = one_key("dirichlet", key), float_dtype("dirichlet", dtype)
    alpha = operand("dirichlet", alpha)
    aval = aval_of(alpha)
    if not aval.ndim:
        raise ValueError(f"dirichlet: expected alpha [.., n] with an axis, got {aval}")
    batch = shape_with("dirichlet", shape, np.empty(aval.shape[:-1], bool))
    return _dirichlet(key, alpha, (*batch, aval.shape[-1]), dtype)


@fused(static=("shape", "dtype"))
def _dirichlet(key, alpha, shape, dtype):
    log_x, last = loggamma_of(key, parameter("dirichlet", alpha, dtype, shape)), (len(shape) - 1,)
    greatest = stop_gradient(reduce_max(log_x, last))
    x = tr.exp(ew.sub(log_x, broadcast_in_dim(greatest, shape, tuple(range(len(shape) - 1)))))
    return ew.div(x, broadcast_in_dim(reduce_sum(x, last), shape, tuple(range(len(shape) - 1))))


def chisquare(key, df, shape=None, dtype=None) -> Array:
    """Samples of the chi-square distribution with `df` degrees of freedom, df > 0."""
    return _chisquare(key, shape, dtype, df)


def _log_chisquare(key, df):
    """The logarithm of half a sample."""
    return loggamma_of(key, ew.div(df, 2.0))


_chisquare = family("chisquare", lambda key, shape, dtype, df: ew.mul(tr.exp(_log_chisquare(key, df)), 2.0))


def f(key, dfnum, dfden, shape=None, dtype=None) -> Array:
    """Samples of the F distribution with `dfnum` and `dfden` degrees of freedom."""
    return _f(key, shape, dtype, dfnum, dfden)


# (x / m) / (y / n); in logarithms where x or y underflows
def _f_kernel(key, shape, dtype, dfnum, dfden):
    key_den, key_num = several(key, 2)
    log_num, log_den = _log_chisquare(key_num, dfnum), _log_chisquare(key_den, dfden)
    least = math.log(float(dtypes.finfo(dtype).tiny)) + 1
    low = ew.or_(ew.lt(log_num, least), ew.lt(log_den, least))
    num, den = (ew.div(ew.mul(tr.exp(x), 2.0), df) for x, df in ((log_num, dfnum), (log_den, dfden)))
    ratio = ew.div(num, ew.select(low, fill(den, 1), den))
    log_ratio = ew.sub(ew.sub(log_num, tr.log(dfnum)), ew.sub(log_den, tr.log(dfden)))
    return ew.select(low, tr.exp(log_ratio), ratio)


_f = family("f", _f_kernel)


def t(key, df, shape=None, dtype=None) -> Array:
    """Samples of Student's t distribution with `df` degrees of freedom, df > 0."""
    return _t(key, shape, dtype, df)


# z sqrt((n / 2) / x), z normal and x a gamma sample for n / 2; by the logarithm of x where x underflows
def _t_kernel(key, shape, dtype, df):
    key_normal, key_gamma = several(key, 2)
    half, z = ew.div(df, 2.0), normal_of(key_normal, shape, dtype)
    draw = _drawn(key_gamma, half)
    x, log_x = _moving(_value(draw), half), _moving_logarithm(_logarithm(draw), half)
    low = ew.lt(log_x, math.log(float(dtypes.finfo(dtype).tiny)) + 1)
    factor = sqrt(ew.div(half, ew.select(low, fill(x, 1), x)))
    far = tr.exp(ew.mul(0.5, ew.sub(tr.log(half), ew.select(low, log_x, fill(x, 0)))))
    return ew.mul(z, ew.select(low, far, factor))


_t = family("t", _t_kernel)


def generalized_normal(key, p, shape=(), dtype=None) -> Array:
    """Samples of the distribution with density proportional to exp(-|x|^p), p > 0."""
    key, dtype = one_key("generalized_normal", key), float_dtype("generalized_normal", dtype)
    p = exact(operand("generalized_normal", p), dtype)
    return _generalized_normal(key, p, shape_with("generalized_normal", shape_of("generalized_normal", shape), p), dtype)


@fused(static=("shape", "dtype"))
def _generalized_normal(key, p, shape, dtype):
    return _generalized_normal_of(key, parameter("generalized_normal", p, dtype, shape))


# s x^(1/p), s -1 or 1 and x a gamma sample for 1 / p
def _generalized_normal_of(key, p):
    shape, dtype = aval_of(p).shape, aval_of(p).dtype
    key_gamma, key_sign = several(key, 2)
    inverse = ew.div(1.0, p)
    size = gamma_of(key_gamma, inverse)
    return ew.mul(rademacher_of(key_sign, shape, dtype), tr.pow(size, inverse))


def ball(key, d: int, p=2, shape=(), dtype=None) -> Array:
    """Uniform samples [*shape, d] of the unit ball of `d` dimensions in the p-norm.

    Source: Barthe, Guedon, Mendelson and Naor, "A probabilistic approach to the geometry of the l_p^n ball" (2005).
    """
    key, dtype = one_key("ball", key), float_dtype("ball", dtype)
    p, count = exact(operand("ball", p), dtype), index_of("ball", "d", d)
    if aval_of(p).ndim:
        raise ValueError(f"ball: expected one number p, got {aval_of(p)}")
    return _ball(key, p, (*shape_of("ball", shape), *shape_of("ball", count)), dtype)


# x / (sum |x_i|^p + e)^(1/p), x generalised normal and e exponential
@fused(static=("shape", "dtype"))
def _ball(key, p, shape, dtype):
    key_x, key_e = several(key, 2)
    p = parameter("ball", p, dtype, shape)
    x = _generalized_normal_of(key_x, p)
    powers = reduce_sum(tr.pow(ew.abs(x), p), (len(shape) - 1,))
    total = ew.add(powers, exponential_of(key_e, shape[:-1], dtype))
    total = broadcast_in_dim(total, shape, tuple(range(len(shape) - 1)))
    return ew.div(x, tr.pow(total, ew.div(1.0, p)))
