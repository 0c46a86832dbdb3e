"""StableHLO of `primitives.incomplete`.

A probability comes as (E, M, upper): exp(E) M is the tail in which the point lies, so that neither it nor its logarithm
loses digits; the other tail is what is left of 1. Derivatives by the parameters are forward derivatives of these programs.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.lowering import series
from funcml.lowering.emit import lowers
from funcml.lowering.expansions import deviance, erfcx_positive, small_deviance, stirling_error, temme
from funcml.lowering.loops import repeat
from funcml.lowering.rules_elementwise import full
from funcml.lowering.smooth import cases, smooth
from funcml.lowering.tables import table
from funcml.primitives import elementwise as ew
from funcml.primitives import incomplete, special
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import broadcast_in_dim, reduce_sum
from funcml.primitives.identities import stop_gradient
from funcml.primitives.powers import sqrt, square


def _all(*masks):
    return functools.reduce(ew.and_, masks)


def _any(*masks):
    return functools.reduce(ew.or_, masks)


def _is_nan(x):
    return ew.ne(x, x)


def _is_wide(x) -> bool:
    return aval_of(x).dtype == dtypes.float64


def _tail(exponent, factor, is_upper, upper: bool, log: bool):
    """The probability that is wanted, from exp(E) M in the tail `is_upper`."""
    value = ew.mul(tr.exp(exponent), factor)
    wanted = is_upper if upper else ew.not_(is_upper)
    if log:
        return cases((wanted, ew.add(exponent, tr.log(factor))), tr.log1p(ew.neg(value)))
    return cases((wanted, value), ew.sub(1.0, value))


# ---- the Poisson probability ---------------------------------------------------------------------------------

_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


def _log_poisson(a, x):
    """-a D((x - a) / a) - stirling(a) - log(2 pi a) / 2 for a >= 10, D the deviance: Loader, Fast and accurate computation
    of binomial probabilities (2000). Below, as it stands.
    """
    large = ew.ge(a, 10.0)
    a_large = cases((large, a), full(10, a))
    distance = ew.mul(a_large, deviance(x, a_large))
    rest = ew.add(stirling_error(a_large), ew.add(ew.mul(0.5, tr.log(a_large)), _HALF_LOG_2_PI))
    a_small = cases((large, 1), a)
    power = cases((ew.eq(a_small, 0.0), 0), ew.mul(a_small, tr.log(x)))
    direct = ew.sub(ew.sub(power, x), special.lgamma(ew.add(a_small, 1.0)))
    infinite = ew.and_(ew.eq(x, math.inf), ew.lt(a, math.inf))
    return cases((infinite, -math.inf), (large, ew.neg(ew.add(distance, rest))), direct)


lowers(incomplete.log_poisson_p)(smooth(_log_poisson))


# ---- the incomplete gamma function ---------------------------------------------------------------------------


def _igamma(a, x, *, upper, log):
    a_in, x_in = a, x
    usual = _all(ew.gt(a, 0.0), ew.gt(x, 0.0), ew.lt(a, math.inf), ew.lt(x, math.inf))
    a, x = (cases((usual, v), full(1, v)) for v in (a, x))
    m = ew.div(ew.sub(x, a), a)
    uniform = ew.and_(ew.ge(a, 40.0), ew.lt(ew.abs(m), 0.3))
    far = ew.and_(ew.not_(uniform), ew.ge(x, ew.add(a, 1.5)))
    scale = _log_poisson(a, x)
    exponent = cases((uniform, ew.neg(ew.mul(a, deviance(x, a)))), scale)
    a_cf, x_cf = cases((far, a), full(1, a)), cases((far, x), full(3, x))
    a_ps, x_ps = (cases((ew.or_(far, uniform), full(1, v)), v) for v in (a, x))
    factor = cases((uniform, _uniform_tail(a, m, uniform)), (far, ew.div(a, _fraction(a_cf, x_cf))), _power_series(a_ps, x_ps))
    is_upper = cases((uniform, ew.ge(m, 0.0)), far)
    if upper:
        small = _all(usual, ew.lt(a, 1.0), ew.le(x, 1.5))
        safe = [cases((small, v), full(0.5, v)) for v in (a, x)]
        exponent = cases((small, 0), exponent)
        factor = cases((small, _small_complement(*safe)), factor)
        is_upper = ew.or_(is_upper, small)
    value = _tail(exponent, factor, is_upper, upper, log)
    return _igamma_limits(value, a_in, x_in, usual, upper, log)


def _igamma_limits(value, a, x, usual, upper, log):
    zero, one = (-math.inf, 0.0) if log else (0.0, 1.0)
    outside = _any(_is_nan(a), _is_nan(x), ew.lt(a, 0.0), ew.lt(x, 0.0), ew.and_(ew.eq(a, 0.0), ew.eq(x, 0.0)))
    outside = ew.or_(outside, ew.and_(ew.eq(a, math.inf), ew.eq(x, math.inf)))
    all_below = ew.or_(ew.eq(a, 0.0), ew.eq(x, math.inf))
    low, high = (one, zero) if upper else (zero, one)
    return cases((usual, value), (outside, math.nan), (all_below, high), full(low, value))


# P = exp(log_poisson) (1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)))                           DLMF 8.7.1
def _power_series(a, x):
    steps = 100 if _is_wide(a) else 48

    def body(k, total):
        return (ew.add(1.0, ew.mul(ew.div(x, ew.add(a, ew.sub(float(steps), k))), total)),)

    return repeat(steps, body, [full(1, a)])[0]


# Q = a exp(log_poisson) / f, f = x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))    DLMF 8.9.2
def _fraction(a, x):
    steps = 64 if _is_wide(a) else 24
    distance = ew.sub(x, a)

    def body(k, f):
        n = ew.sub(float(steps), k)
        constant = ew.add(distance, ew.sub(ew.mul(2.0, n), 1.0))
        return (ew.sub(constant, ew.div(ew.mul(n, ew.sub(n, a)), f)),)

    return repeat(steps, body, [ew.add(distance, float(2 * steps + 1))])[0]


# The tail is exp(-a eta^2 / 2) (erfcx(|eta| sqrt(a / 2)) / 2 + sign(eta) T(a, eta) / sqrt(2 pi a)), where
# eta^2 / 2 = m - log(1 + m)                                                                    DLMF 8.12.3
def _uniform_tail(a, m, where):
    a, m = cases((where, a), full(50, a)), cases((where, m), full(0, m))
    eta = ew.mul(m, sqrt(ew.mul(2.0, small_deviance(m))))
    right = ew.ge(m, 0.0)
    size = cases((right, eta), ew.neg(eta))
    expansion = ew.div(temme(a, eta), sqrt(ew.mul(2 * math.pi, a)))
    half = ew.mul(0.5, erfcx_positive(ew.mul(size, sqrt(ew.mul(0.5, a)))))
    return ew.add(half, cases((right, expansion), ew.neg(expansion)))


# Q = -expm1(L) - exp(L) sum over n >= 1 of a (-x)^n / ((a + n) n!), L = a log x - lgamma(a + 1)   DLMF 8.7.1
def _small_complement(a, x):
    logarithm = ew.sub(ew.mul(a, tr.log(x)), _lgamma_one_plus(a))
    total = full(0, x)
    for n in range(26 if _is_wide(a) else 14, 0, -1):
        total = ew.add(ew.div(a, ew.add(a, float(n))), total)
        total = ew.mul(ew.div(ew.neg(x), float(n)), total)
    return ew.neg(ew.add(tr.expm1(logarithm), ew.mul(tr.exp(logarithm), total)))


# lgamma(2 + w) = S(w):  lgamma(1 + a) = S(a) - log(1 + a) for a < 1/2, S(a - 1) above
def _lgamma_one_plus(a):
    low = ew.lt(a, 0.5)
    w = cases((low, a), ew.sub(a, 1.0))
    coefficients = (series.ONE_MINUS_EULER_GAMMA, *series.LGAMMA_AT_2)
    at_2 = ew.mul(w, series.polynomial(coefficients, w, 0.5))
    return cases((low, ew.sub(at_2, tr.log1p(a))), at_2)


lowers(incomplete.igamma_p)(smooth(_igamma))


# ---- the incomplete beta function ----------------------------------------------------------------------------


def _betainc(a, b, x, *, upper, log):
    given = a, b, x
    usual = _all(*[ew.and_(ew.gt(v, 0.0), ew.lt(v, math.inf)) for v in (a, b)], ew.gt(x, 0.0), ew.lt(x, 1.0))
    a, b, x = (cases((usual, v), full(c, v)) for v, c in ((a, 1), (b, 1), (x, 0.5)))
    y, n = ew.sub(1.0, x), ew.add(a, b)
    exponent = ew.sub(ew.add(_log_poisson(a, ew.mul(n, x)), _log_poisson(b, ew.mul(n, y))), _log_poisson(n, n))
    many = ew.gt(ew.min(a, b), 500.0)
    by_x = ew.gt(ew.mul(x, ew.add(n, 2.0)), ew.add(a, 1.0))
    swapped = ew.select(ew.lt(x, 0.5), by_x, ew.lt(ew.mul(y, ew.add(n, 2.0)), ew.add(b, 1.0)))
    p, q = cases((swapped, b), a), cases((swapped, a), b)
    z = cases((swapped, y), x)
    fraction = ew.div(q, ew.mul(n, _beta_fraction(*[cases((many, full(c, v)), v) for v, c in ((p, 1), (q, 1), (z, 0.5))])))
    integral, above = _beta_integral(*[cases((many, v), full(c, v)) for v, c in ((a, 600), (b, 600), (x, 0.5))])
    integral = ew.mul(ew.div(ew.mul(ew.div(a, n), b), ew.mul(x, y)), integral)
    value = _tail(exponent, cases((many, integral), fraction), cases((many, above), swapped), upper, log)
    return _betainc_limits(value, *given, usual, upper, log)


def _betainc_limits(value, a, b, x, usual, upper, log):
    zero, one = (-math.inf, 0.0) if log else (0.0, 1.0)
    outside = _any(*map(_is_nan, (a, b, x)), *[ew.lt(v, 0.0) for v in (a, b, x)], ew.gt(x, 1.0))
    for bound in (0.0, math.inf):
        outside = ew.or_(outside, ew.and_(ew.eq(a, bound), ew.eq(b, bound)))
    all_below = _any(ew.eq(x, 1.0), _all(ew.or_(ew.eq(a, 0.0), ew.eq(b, math.inf)), ew.gt(x, 0.0)))
    low, high = (one, zero) if upper else (zero, one)
    return cases((usual, value), (outside, math.nan), (all_below, high), full(low, value))


# I = x^a y^b / (a B(a, b)) / (1 + d_1 / (1 + d_2 / (1 + ...))), d_2m = m (b - m) x / ((a + 2m - 1) (a + 2m)),
# d_(2m + 1) = -(a + m) (a + b + m) x / ((a + 2m) (a + 2m + 1))                                 DLMF 8.17.22
def _beta_fraction(a, b, x):
    steps = 100 if _is_wide(a) else 36
    n = ew.add(a, b)

    def body(k, f):
        m = ew.sub(float(steps), k)
        at = ew.add(a, ew.mul(2.0, m))
        odd = ew.div(ew.mul(ew.div(ew.mul(ew.neg(ew.add(a, m)), x), at), ew.add(n, m)), ew.add(at, 1.0))
        even = ew.div(ew.mul(ew.div(ew.mul(m, x), ew.sub(at, 1.0)), ew.sub(b, m)), at)
        return (ew.add(1.0, ew.div(even, ew.add(1.0, ew.div(odd, f)))),)

    f = repeat(steps, body, [full(1, a)])[0]
    return ew.sub(1.0, ew.div(ew.mul(ew.div(n, ew.add(a, 1.0)), x), f))


# For large a and b the tail is the density at x times the integral over d of
# exp((a - 1) log(1 -+ d / x) + (b - 1) log(1 +- d / y)), by the rule of Gauss and Legendre up to where it has fallen by exp(-50).
def _beta_integral(a, b, x):
    nodes, weights = np.polynomial.legendre.leggauss(32 if _is_wide(a) else 16)
    y, a, b = ew.sub(1.0, x), ew.sub(a, 1.0), ew.sub(b, 1.0)
    slope = ew.sub(ew.div(a, x), ew.div(b, y))
    above = ew.lt(slope, 0.0)
    steepness, curvature = ew.abs(slope), ew.add(ew.div(ew.div(a, x), x), ew.div(ew.div(b, y), y))
    reach = ew.div(100.0, ew.add(steepness, sqrt(ew.add(square(steepness), ew.mul(100.0, curvature)))))
    reach = stop_gradient(ew.min(reach, cases((above, y), x)))
    sign = cases((above, 1), full(-1, x))
    shape = (*aval_of(x).shape, len(nodes))
    axes = tuple(range(len(shape) - 1))
    a, b, x, y, far, sign = (broadcast_in_dim(v, shape, axes) for v in (a, b, x, y, reach, sign))
    d = ew.mul(ew.mul(sign, far), _row((nodes + 1) / 2, shape, x))
    height = ew.add(ew.mul(a, tr.log1p(ew.div(d, x))), ew.mul(b, tr.log1p(ew.neg(ew.div(d, y)))))
    total = reduce_sum(ew.mul(tr.exp(height), _row(weights / 2, shape, x)), (len(shape) - 1,))
    return ew.mul(reach, total), above


def _row(numbers, shape, like):
    """The numbers along the last axis of `shape`."""
    return broadcast_in_dim(table(numbers, aval_of(like).dtype), shape, (len(shape) - 1,))


lowers(incomplete.betainc_p)(smooth(_betainc))
