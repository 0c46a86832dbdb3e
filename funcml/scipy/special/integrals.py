"""Exponential, sine, cosine and Fresnel integrals, and the dilogarithm. Formulas: DLMF chapters 6, 7, 8, 25."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.lowering import series
from funcml.lowering.expansions import small_deviance
from funcml.lowering.loops import repeat
from funcml.primitives import special
from funcml.scipy.elementwise import elementwise
from funcml.scipy.special import coefficients
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["exp1", "expi", "expn", "fresnel", "sici", "spence"]

_EULER_GAMMA = 0.5772156649015329

# ---- exponential integrals -------------------------------------------------------------------------------------


@elementwise
def expi(x):
    """Ei(x), the principal value of the integral of exp(t) / t from -inf to x. DLMF 6.2.5.

    >>> expi(1.0)
    Array(1.8951178, dtype=float32, weak_type=True)
    """
    return _expi(x)


# Ei' = exp(x) / x
@custom_jvp
def _expi(x):
    negative = x < 0
    left = -_expn(jnp.ones_like(x), jnp.where(negative, -x, 1.0))
    size = jnp.where(negative, 1.0, x)
    value = jnp.where(size < 40, _expi_series(jnp.minimum(size, 40.0)), _expi_large(jnp.maximum(size, 40.0)))
    at_0, d = _distance_to_zero(size)
    taylor = series.polynomial(coefficients.EI_AT_ZERO, d, 0.2)
    zero = coefficients.EI_ZERO[size.dtype][0]
    near = at_0 + d * taylor + jnp.log1p(d / zero)
    value = jnp.where(jnp.abs(size - zero) < 0.2, near, value)
    value = jnp.where(size == 0, -math.inf, jnp.where(size == math.inf, size, value))
    return jnp.where(x != x, x, jnp.where(negative, left, value))


_expi.defjvps(lambda t, ans, x: t * (jnp.exp(x) / x))


def _distance_to_zero(x):
    zero, value = coefficients.EI_ZERO[x.dtype]
    near = jnp.abs(x - zero) < 0.2
    return value, jnp.where(near, x - zero, 0.0)


# gamma + log x + x (1 + x / 2 (1/2 + x / 3 (1/3 + ...)))                                          DLMF 6.6.2
def _expi_series(x):
    steps = 128

    def body(k, total):
        n = steps - k
        return (x / n * (1 / n + total),)

    return repeat(steps, body, [jnp.zeros_like(x)])[0] + jnp.log(x) + _EULER_GAMMA


# exp(x) / x (1 + 1 / x (1 + 2 / x (1 + ...)))                                                      DLMF 6.12.2
def _expi_large(x):
    steps = 36

    def body(k, total):
        return (1 + (steps - k) / x * total,)

    half = jnp.exp(0.5 * x)
    return half * (repeat(steps, body, [jnp.ones_like(x)])[0] / x * half)


@elementwise
def exp1(x):
    """E_1(x), the integral of exp(-t) / t from x to inf, for x >= 0; nan below. DLMF 6.2.1.

    >>> exp1(1.0)
    Array(0.21938394, dtype=float32, weak_type=True)
    """
    return _expn(jnp.ones_like(x), x)


@elementwise
def expn(n, x):
    """E_n(x), the integral of exp(-x t) / t^n from 1 to inf, for whole n >= 0 and x >= 0. DLMF 8.19.2.

    >>> expn(2, 1.0)
    Array(0.14849551, dtype=float32, weak_type=True)
    """
    return _expn(n, x)


# by x: E_n' = -E_(n - 1), and E_0 = exp(-x) / x                                                   DLMF 8.19.13
@custom_jvp
def _expn(n, x):
    usual = (n > 0) & (x > 0) & (x < math.inf) & (n < math.inf)
    m, z = jnp.where(usual, n, 1.0), jnp.where(usual, x, 2.0)
    large = z >= 1
    value = jnp.where(large, _expn_fraction(m, jnp.where(large, z, 2.0)), _expn_series(m, jnp.where(large, 0.5, z)))
    at_0 = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1.0), math.inf)
    value = jnp.where(x == 0, at_0, value)
    value = jnp.where((x == math.inf) | (n == math.inf), 0.0, value)
    value = jnp.where(n == 0, _exp_over(x), value)
    return jnp.where((n >= 0) & (x >= 0) & (n == jnp.floor(n)), value, math.nan)


def _exp_over(x):
    return jnp.exp(-x) / x


@_expn.defjvp
def _expn_jvp(primals, tangents):
    (n, x), (_, t) = primals, tangents
    first = n == 0
    slope = jnp.where(first, _exp_over(x) * (1 + 1 / x), _expn(jnp.where(first, 1.0, n) - 1, x))
    return _expn(n, x), -t * slope


# exp(-x) / (x + n - n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - ...)))                              DLMF 8.19.17
def _expn_fraction(n, x):
    steps = 100
    last = x + n + 2 * steps

    def body(k, f):
        j = steps - k
        return (x + n + 2 * (j - 1) - j * (n + (j - 1)) / f,)

    return jnp.exp(-x) / repeat(steps, body, [last])[0]


# (-x)^(n - 1) / (n - 1)! (digamma(n) - log x) - sum over m != n - 1 of (-x)^m / ((m - n + 1) m!)   DLMF 8.19.8
def _expn_series(n, x):
    steps = 24

    def body(k, total):
        m = steps - 1 - k
        away = jnp.where(m == n - 1, 1.0, m - n + 1)
        term = jnp.where(m == n - 1, 0.0, 1 / away)
        return (term - x / (m + 1) * total,)

    rest = repeat(steps, body, [jnp.zeros_like(x)])[0]
    odd = jnp.where(n == 2 * jnp.floor(n / 2), -1.0, 1.0)
    power = jnp.exp((n - 1) * jnp.log(x) - special.lgamma(n))
    return odd * power * (special.digamma(n) - jnp.log(x)) - rest


# ---- sine and cosine integrals ---------------------------------------------------------------------------------


@elementwise
def sici(x):
    """(Si(x), Ci(x)), the integrals of sin t / t from 0 to x and of -cos t / t from |x| to inf. DLMF 6.2.9, 6.2.11.

    >>> sici(1.0)
    (Array(0.94608307, dtype=float32, weak_type=True), Array(0.33740392, dtype=float32, weak_type=True))
    """
    return _sici(x)


# Si' = sin x / x, Ci' = cos x / x
@custom_jvp
def _sici(x):
    size = jnp.abs(x)
    near = size <= 4
    small = jnp.where(near, size, 1.0)
    t = small * small / 8 - 1
    si_small = small * series.chebyshev(coefficients.SI_SMALL, t)
    ci_small = _EULER_GAMMA + jnp.log(small) + small * small * series.chebyshev(coefficients.CI_SMALL, t)
    large = jnp.where(near | (size == math.inf), 4.0, size)
    t = 32 / (large * large) - 1
    f = series.chebyshev(coefficients.SICI_F, t) / large
    g = series.chebyshev(coefficients.SICI_G, t) / large / large
    sin, cos = jnp.sin(large), jnp.cos(large)
    infinite = size == math.inf
    si = jnp.where(near, si_small, jnp.where(infinite, math.pi / 2, math.pi / 2 - f * cos - g * sin))
    ci = jnp.where(near, ci_small, jnp.where(infinite, 0.0, f * sin - g * cos))
    ci = jnp.where(x == -math.inf, math.nan, ci)
    return jnp.where(x != x, x, jnp.where(x < 0, -si, si)), jnp.where(x != x, x, ci)


@_sici.defjvp
def _sici_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    finite = jnp.abs(x) < math.inf
    y = jnp.where(finite, x, 1.0)
    slopes = jnp.sinc(y / math.pi), jnp.cos(y) / y
    return _sici(x), tuple(t * jnp.where(finite, s, 0.0) for s in slopes)


@elementwise
def fresnel(x):
    """(S(x), C(x)), the integrals of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to x. DLMF 7.2.7, 7.2.8.

    >>> fresnel(1.0)
    (Array(0.43825912, dtype=float32, weak_type=True), Array(0.7798934, dtype=float32, weak_type=True))
    """
    return _fresnel(x)


@custom_jvp
def _fresnel(x):
    size = jnp.abs(x)
    near = size <= 1.6
    small = jnp.where(near, size, 1.0)
    t = 2 * (small / 1.6) ** 4 - 1
    s_small = small**3 * series.chebyshev(coefficients.FRESNEL_S, t)
    c_small = small * series.chebyshev(coefficients.FRESNEL_C, t)
    far = size > 1e17
    large = jnp.where(near | far, 1.6, size)
    t = 2 * (1.6 / large) ** 4 - 1
    f = series.chebyshev(coefficients.FRESNEL_F, t) / (math.pi * large)
    g = series.chebyshev(coefficients.FRESNEL_G, t) / (math.pi**2) / large / large / large
    sin, cos = _sin_cos_quarter_turns(large)
    s = jnp.where(near, s_small, jnp.where(far, 0.5, 0.5 - f * cos - g * sin))
    c = jnp.where(near, c_small, jnp.where(far, 0.5, 0.5 + f * sin - g * cos))
    sign = jnp.where(x < 0, -1.0, 1.0)
    return jnp.where(x != x, x, sign * s), jnp.where(x != x, x, sign * c)


def _sin_cos_quarter_turns(x):
    """sin and cos of pi x^2 / 2, of x^2 reduced by whole turns: with x = n + r, x^2 is n^2 + 2 n r + r^2, n^2 mod 4 known."""
    n = jnp.round(x)
    r = x - n
    odd = n != 2 * jnp.round(n / 2)
    turns = jnp.where(odd, 1.0, 0.0) + _modulo_4(2 * n * r) + r * r
    angle = math.pi / 2 * turns
    return jnp.sin(angle), jnp.cos(angle)


def _modulo_4(x):
    return x - 4 * jnp.round(x / 4)


@_fresnel.defjvp
def _fresnel_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    finite = jnp.abs(x) < math.inf
    sin, cos = _sin_cos_quarter_turns(jnp.where(finite, x, 0.0))
    return _fresnel(x), (t * sin, t * cos)


# ---- the dilogarithm -------------------------------------------------------------------------------------------


@elementwise
def spence(z):
    """The integral of log t / (1 - t) from 1 to z, which is Li_2(1 - z), for z >= 0; nan below. DLMF 25.12.2.

    >>> spence(2.0)
    Array(-0.822467, dtype=float32, weak_type=True)
    """
    return _spence(z)


# spence' = log z / (1 - z)
@custom_jvp
def _spence(z):
    turned = z > 2
    w = jnp.where(turned, 1 / z, z)
    low = w < 0.5
    core = _spence_near_1(jnp.where(low, 1 - w, w))
    logs = jnp.where(w == 0, 0.0, jnp.log(jnp.where(w == 0, 1.0, w)) * jnp.log1p(-jnp.where(low, w, 0.0)))
    inner = jnp.where(low, math.pi**2 / 6 - logs - core, core)
    log = jnp.log(jnp.where(turned, z, 1.0))
    value = jnp.where(turned, -0.5 * log * log - inner, inner)
    return jnp.where(z >= 0, value, math.nan)


# with u = -log z:  u - u^2 / 4 + sum over k of B_2k u^(2k + 1) / (2k + 1)!
_DEBYE = (
    0.027777777777777776, -0.0002777777777777778, 4.72411186696901e-06, -9.185773074661964e-08, 1.8978869988970999e-09,
    -4.0647616451442256e-11, 8.921691020459453e-13, -1.9939295860721074e-14, 4.518980029619918e-16, -1.0356517612182471e-17,
)


def _spence_near_1(z):
    u = -jnp.log(z)
    square = u * u
    return u * (1 - u / 4 + square * series.polynomial(_DEBYE, square, 0.5))


# log z / (1 - z) = m D(m) - 1, where m = z - 1 and log(1 + m) = m - m^2 D(m)
@_spence.defjvp
def _spence_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    m = z - 1
    near = jnp.abs(m) < 0.5
    small, large = jnp.where(near, m, 0.0), jnp.where(near, 2.0, z)
    slope = jnp.where(near, small * small_deviance(small) - 1, jnp.log(large) / (1 - large))
    return _spence(z), t * slope
