"""Error functions and the normal distribution, real and complex. Formulas: DLMF chapter 7."""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml import numpy as jnp
from funcml.lowering import series
from funcml.lowering.expansions import erfcx_positive
from funcml.primitives import elementwise as ew
from funcml.primitives import special
from funcml.scipy.elementwise import elementwise
from funcml.scipy.special import coefficients
from funcml.transforms.custom_jvp import custom_jvp

__all__ = [
    "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri", "owens_t", "wofz",
]

_ROOT_PI = math.sqrt(math.pi)
_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)


@elementwise
def erf(x):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x. DLMF 7.2.1.

    >>> erf(0.5)
    Array(0.5204999, dtype=float32, weak_type=True)
    """
    return special.erf(x)


@elementwise
def erfc(x):
    """1 - erf(x), exact where it is small. DLMF 7.2.2.

    >>> erfc(3.0)
    Array(2.2090497e-05, dtype=float32, weak_type=True)
    """
    return special.erfc(x)


@elementwise
def erfinv(y):
    """The x with erf(x) = y; nan where |y| > 1.

    >>> erfinv(0.5)
    Array(0.47693634, dtype=float32, weak_type=True)
    """
    return special.erf_inv(y)


# ---- scaled and complex -----------------------------------------------------------------------------------------


@elementwise(takes_complex=True)
def erfcx(x):
    """exp(x^2) erfc(x), of real or complex numbers, without overflow where erfc is small. DLMF 7.2.

    >>> erfcx(100.0)
    Array(0.00564161, dtype=float32, weak_type=True)
    """
    return _wofz(1j * x) if dtypes.is_complex(x.dtype) else _erfcx(x)


def _erfcx(x):
    negative = x < 0
    right = erfcx_positive(jnp.abs(x))
    left = 2 * jnp.exp(jnp.where(negative, x, 0.0) ** 2) - jnp.where(negative, right, 1.0)
    return jnp.where(negative, left, right)


@elementwise(takes_complex=True)
def wofz(z):
    """Faddeeva's function, exp(-z^2) erfc(-i z), of complex numbers. DLMF 7.2.3.

    >>> import numpy as np
    >>> wofz(np.complex64(1j))
    Array(0.42758355+0.j, dtype=complex64)
    """
    return _wofz(z if dtypes.is_complex(z.dtype) else z + 0j)


_NODES = 11
_STEP = math.sqrt(math.pi / (_NODES + 1))


# w' = -2 z w + 2 i / sqrt(pi)                                                                    DLMF 7.10.2
@custom_jvp
def _wofz(z):
    x, y = jnp.abs(z.real), z.imag
    # w(-z*) = w(z)*;  w(z) = 2 exp(-z^2) - w(-z)                                                 DLMF 7.4.3
    lower = y < 0
    first = _in_first_quadrant(ew.complex(x, jnp.abs(y)))
    w = jnp.where((z.real < 0) != lower, first.conj(), first)
    return jnp.where(lower, 2 * jnp.exp(-jnp.where(lower, z, 0.0) ** 2) - w, w)


_wofz.defjvps(lambda t, ans, z: t * (2j / _ROOT_PI - 2 * z * ans))


# Midpoint and trapezoidal rules with their poles taken out: Al Azah and Chandler-Wilde, SIAM J. Numer. Anal. 59 (2021)
def _in_first_quadrant(z):
    x, y, h = z.real, z.imag, _STEP
    share = x / h - jnp.floor(x / h)
    by_trapezoids = (y < x) & (share >= 0.25) & (share <= 0.75)
    plain = y >= jnp.maximum(x, math.pi / h)
    far = (x > 1e15) | (y > 1e15)
    square = jnp.where(far, 1.0, z) ** 2
    total = jnp.zeros_like(z)
    for k in range(_NODES + 1):
        middle, edge = (jnp.full_like(x, ((k + half) * h) ** 2) for half in (0.5, 0))
        node = jnp.where(by_trapezoids, edge, middle)
        weight = jnp.exp(-node) * (jnp.where(by_trapezoids, 0.5, 1.0).astype(node.dtype) if k == 0 else 1.0)
        total = total + weight.astype(z.dtype) / (square - node.astype(z.dtype))
    total = 2j * h / math.pi * z * total
    turn = jnp.exp(-2j * math.pi / h * jnp.where(plain | far, 1.0, z))
    pole = 2 * jnp.exp(-square) / jnp.where(by_trapezoids, 1 - turn, 1 + turn)
    w = jnp.where(plain | far, total, total + pole)
    return jnp.where(far, 1j / _ROOT_PI / z, w)


@elementwise
def dawsn(x):
    """Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x. DLMF 7.2.5.

    >>> dawsn(1.0)
    Array(0.5380795, dtype=float32, weak_type=True)
    """
    return _dawsn(x)


def _dawsn(x):
    far = jnp.abs(x) > 1e9
    near = jnp.where(far, 1.0, x)
    square = near * near
    t = (square - 10) / (square + 10)
    inside = series.chebyshev(coefficients.DAWSON, t) * (near / (1 + 2 * square))
    return jnp.where(far, 0.5 / jnp.where(far, x, 1.0), inside)


# ---- the normal distribution ------------------------------------------------------------------------------------


@elementwise
def ndtr(x):
    """The probability that a standard normal variable is below x. DLMF 7.18.

    >>> ndtr(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return normal_cdf(x)


def normal_cdf(x):
    """ndtr(x) of floats."""
    return 0.5 * special.erfc(-_ROOT_HALF * x)


def log_ndtr(x, series_order: int = 3):
    """log(ndtr(x)), exact in both tails; `series_order` is taken for JAX's sake and has no effect.

    >>> log_ndtr(-30.0)
    Array(-454.32123, dtype=float32, weak_type=True)
    """
    return _log_ndtr(x)


def _log_density(x):
    return -0.5 * x * x - _LOG_ROOT_2_PI


# On the left by erfcx, which does not underflow; on the right as log(1 - Q).  (log P)' = p / P
@custom_jvp
def log_normal_cdf(x):
    """log(ndtr(x)) of floats."""
    left = x < 0
    z = _ROOT_HALF * jnp.abs(x)
    low = jnp.log(0.5 * erfcx_positive(jnp.where(left, z, 0.0))) - z * z
    high = jnp.log1p(-0.5 * special.erfc(jnp.where(left, 1.0, z)))
    return jnp.where(x == -math.inf, x, jnp.where(left, low, high))


def _inverse_mills_ratio(x, log_cdf):
    """p(x) / P(x), on the left by erfcx: the logarithms would cancel."""
    left = x < 0
    far = math.sqrt(2 / math.pi) / erfcx_positive(jnp.where(left, -_ROOT_HALF * x, 0.0))
    return jnp.where(left, far, jnp.exp(_log_density(x) - log_cdf))


log_normal_cdf.defjvps(lambda t, ans, x: t * _inverse_mills_ratio(x, ans))


@elementwise(name="log_ndtr")
def _log_ndtr(x):
    return log_normal_cdf(x)


@elementwise
def ndtri(p):
    """The x with ndtr(x) = p, exact in both tails; nan where p is no probability.

    >>> ndtri(0.975)
    Array(1.9599644, dtype=float32, weak_type=True)
    """
    return normal_quantile(p)


# x' = p' / density(x)
@custom_jvp
def normal_quantile(p):
    """ndtri(p) of floats."""
    upper = p > 0.5
    tail = jnp.where(upper, 1 - p, p)
    central = jnp.abs(p - 0.5) < 0.4
    x = jnp.where(central, _quantile_near_median(jnp.where(central, p - 0.5, 0.0)), 0.0)
    distance = _tail_quantile(jnp.log(jnp.where(central | ~(tail > 0), 0.1, tail)))
    far = jnp.where(tail == 0, math.inf, distance)
    x = jnp.where(central, x, jnp.where(upper, far, -far))
    return jnp.where((p >= 0) & (p <= 1), x, math.nan)


normal_quantile.defjvps(lambda t, ans, p: t * jnp.exp(0.5 * ans * ans + _LOG_ROOT_2_PI))


def _quantile_near_median(excess):
    """ndtri(1/2 + excess): one step of Newton's method from where erf_inv leads."""
    y = special.erf_inv(2 * excess)
    y = y - (special.erf(y) - 2 * excess) * (_ROOT_PI / 2) * jnp.exp(y * y)
    return math.sqrt(2) * y


# The upper tail is exp(-x^2 / 2) R / 2 with R = erfcx(x / sqrt 2): Newton's method for its logarithm, whose slope is
# -sqrt(2 / pi) / R
def _tail_quantile(log_tail):
    x = jnp.sqrt(-2 * log_tail - jnp.log(-4 * math.pi * log_tail))
    for _ in range(4):
        ratio = erfcx_positive(_ROOT_HALF * x)
        miss = jnp.log(0.5 * ratio) - 0.5 * x * x - log_tail
        x = x + miss * ratio * math.sqrt(math.pi / 2)
    return x


@elementwise
def erfcinv(y):
    """The x with erfc(x) = y, exact where y is small; nan where y is not in [0, 2].

    >>> erfcinv(0.5)
    Array(0.47693625, dtype=float32, weak_type=True)
    """
    return _erfcinv(y)


@custom_jvp
def _erfcinv(y):
    return -_ROOT_HALF * normal_quantile(0.5 * y)


_erfcinv.defjvps(lambda t, ans, y: t * (-_ROOT_PI / 2 * jnp.exp(ans * ans)))


@elementwise
def owens_t(h, a):
    """Owen's T, 1 / (2 pi) times the integral of exp(-h^2 (1 + x^2) / 2) / (1 + x^2) from 0 to a. Owen (1956).

    >>> owens_t(1.0, 0.5)
    Array(0.04306469, dtype=float32, weak_type=True)
    """
    return _owens_t(h, a)


# by h: -density(h) erf(a h / sqrt 2) / 2                 by a: exp(-h^2 (1 + a^2) / 2) / (2 pi (1 + a^2))
@custom_jvp
def _owens_t(h, a):
    sign = jnp.where(a < 0, -1.0, 1.0)
    h, a = jnp.abs(h), jnp.abs(a)
    steep = a > 1
    inner = _owens_integral(jnp.where(steep, jnp.where(h == 0, 0.0, a * h), h), jnp.where(steep, 1 / a, a))
    # for h, a >= 0:  T(h, a) = (Q(h) + Q(a h)) / 2 - Q(h) Q(a h) - T(a h, 1 / a), Q the upper tail
    q, r = normal_cdf(-h), normal_cdf(-jnp.where((h == 0) | (a == 0), 0.0, a * h))
    value = jnp.where(steep, 0.5 * (q + r) - q * r - inner, inner)
    value = jnp.where(h == math.inf, 0.0, jnp.where(a == math.inf, 0.5 * q, value))
    return sign * jnp.where((h != h) | (a != a), math.nan, value)


_owens_t.defjvps(
    lambda t, ans, h, a: t * (-0.5 * jnp.exp(_log_density(h)) * special.erf(_ROOT_HALF * a * h)),
    lambda t, ans, h, a: t * (jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))),
)


def _gauss_legendre(count: int) -> list[tuple[float, float]]:
    """(node, weight) of the integral over [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return [(float(x + 1) / 2, float(w) / 2) for x, w in zip(nodes, weights, strict=True)]


def _owens_integral(h, a):
    """T(h, a) for h >= 0 and 0 <= a <= 1, by the rule of Gauss and Legendre, up to where the integrand is negligible."""
    reach = jnp.minimum(a, 9 / jnp.maximum(h, 1.0))
    total = jnp.zeros_like(h)
    for node, weight in _gauss_legendre(32 if h.dtype == dtypes.float64 else 16):
        x = reach * node
        total = total + weight * jnp.exp(-0.5 * (h * x) ** 2) / (1 + x * x)
    return reach * total * jnp.exp(-0.5 * h * h) / (2 * math.pi)
