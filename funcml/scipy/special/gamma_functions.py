"""Gamma and beta functions, their logarithms, and what counts with them. Formulas: DLMF chapters 5, 8, 24, 25, 26."""

from __future__ import annotations

import fractions
import math

import numpy as np

from funcml import dtypes
from funcml import numpy as jnp
from funcml.lowering.expansions import stirling_error
from funcml.numpy.arguments import index_of
from funcml.primitives import incomplete, special
from funcml.scipy.elementwise import elementwise
from funcml.transforms.custom_jvp import custom_jvp

__all__ = [
    "bernoulli", "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc", "gammaincc", "gammaln",
    "gammasgn", "loggamma", "multigammaln", "poch", "polygamma", "zeta",
]

_LOG_2_PI = math.log(2 * math.pi)

# ---- gamma and its logarithm -----------------------------------------------------------------------------------


@elementwise
def gammaln(x):
    """log |gamma(x)|; inf at the poles 0, -1, -2, ...

    >>> gammaln(5.0)
    Array(3.1780548, dtype=float32, weak_type=True)
    """
    return special.lgamma(x)


@elementwise
def digamma(x):
    """The derivative of log gamma(x).

    >>> digamma(1.0)
    Array(-0.5772154, dtype=float32, weak_type=True)
    """
    return special.digamma(x)


@elementwise
def gammasgn(x):
    """The sign of gamma(x): 1 or -1; nan at the poles -1, -2, ..., and that of the zero at +-0.

    >>> gammasgn(-0.5)
    Array(-1., dtype=float32, weak_type=True)
    """
    return _sign_of_gamma(x)


def _sign_of_gamma(x):
    whole = jnp.floor(x)
    negative = jnp.where(whole == 2 * jnp.floor(whole / 2), 1.0, -1.0)
    sign = jnp.where(x > 0, 1.0, jnp.where(x == whole, math.nan, negative))
    sign = jnp.where(x == 0, jnp.copysign(1.0, x), sign)
    return jnp.where((x == -math.inf) | (x != x), math.nan, sign).astype(x.dtype)


@elementwise(takes_complex=True)
def gamma(x):
    """The gamma function of real or complex numbers; nan at its poles, but +-inf at +-0.

    >>> gamma(5.0)
    Array(24., dtype=float32, weak_type=True)
    """
    if not dtypes.is_complex(x.dtype):
        return _real_gamma(x)
    pole = (x.imag == 0) & (x.real <= 0) & (x.real == jnp.floor(x.real))
    return jnp.where(pole, complex(math.nan, math.nan), jnp.exp(_complex_loggamma(jnp.where(pole, 1.0, x))))


# gamma' = gamma digamma                                                                          DLMF 5.2.2
@custom_jvp
def _real_gamma(x):
    mirrored = x < 0.5
    z = jnp.where(mirrored, 1 - x, x)
    size = _gamma_of_positive(z)
    # gamma(x) = pi / (sin(pi x) gamma(1 - x))                                                    DLMF 5.5.3
    reflected = math.pi / (_sin_pi(x) * size)
    value = jnp.where(mirrored, jnp.where(x == 0, 1 / x, reflected), size)
    pole = (x < 0) & (x == jnp.floor(x))
    return jnp.where(pole, math.nan, value)


_real_gamma.defjvps(lambda t, ans, x: t * (ans * special.digamma(x)))


def _sin_pi(x):
    """sin(pi x), with x reduced to [-1/2, 1/2] first."""
    nearest = jnp.round(x)
    odd = nearest != 2 * jnp.round(nearest / 2)
    size = jnp.sin(math.pi * (x - nearest))
    return jnp.where(odd, -size, size)


def _gamma_of_positive(z):
    """gamma(z) for z >= 1/2: by Stirling's formula from 10 on, and below by gamma(z + 1) = z gamma(z) from [1, 2]."""
    large = z >= 10
    z_large = jnp.where(large, jnp.minimum(z, 200.0 if z.dtype == dtypes.float64 else 40.0), 10.0)
    root = z_large ** (0.5 * z_large - 0.25)
    stirling = math.sqrt(2 * math.pi) * root * (jnp.exp(stirling_error(z_large) - z_large) * root)
    z_small = jnp.where(large, 1.0, z)
    steps = jnp.maximum(jnp.floor(z_small) - 1, 0)
    base = z_small - steps
    product = jnp.ones_like(z)
    for k in range(8):
        product = jnp.where(steps > k, product * (base + float(k)), product)
    return jnp.where(z != z, z, jnp.where(large, stirling, jnp.exp(special.lgamma(base)) * product))


@elementwise(takes_complex=True)
def loggamma(x):
    """The principal branch of log gamma: analytic but for a cut along x <= 0; for real numbers nan where x < 0.

    >>> loggamma(3.0)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    if dtypes.is_complex(x.dtype):
        return _complex_loggamma(x)
    return jnp.where(x < 0, math.nan, special.lgamma(jnp.where(x < 0, 1.0, x)))


# log gamma(z) = (z - 1/2) log z - z + log(2 pi) / 2 + stirling_error(z), and sums of logarithms below Re z = 10; for
# Re z < 1/2 by reflection, with the branch that log sin(pi z) has where it is continued from the real axis   DLMF 5.11.1, 5.5.3
def _complex_loggamma(z):
    left = z.real < 0.5
    w = jnp.where(left, 1 - z, z)
    shifts, shifted = jnp.zeros_like(z), w
    for _ in range(10):
        low = shifted.real < 10
        shifts = jnp.where(low, shifts + jnp.log(jnp.where(low, shifted, 1.0)), shifts)
        shifted = jnp.where(low, shifted + 1, shifted)
    right = (shifted - 0.5) * jnp.log(shifted) - shifted + 0.5 * _LOG_2_PI + _complex_stirling(shifted) - shifts
    return jnp.where(left, math.log(math.pi) - _log_sin_pi(z) - right, right)


def _complex_stirling(z):
    inverse = 1 / z
    square = inverse * inverse
    total = jnp.zeros_like(z)
    for b in (0.00641025641025641, -0.0019175269175269176, 0.0008417508417508417, -0.0005952380952380953,
              0.0007936507936507937, -0.002777777777777778, 0.08333333333333333):  # fmt: skip
        total = total * square + b
    return total * inverse


# for Im z >= 0: log sin(pi z) = -i pi (z - 1/2) - log 2 + log(1 - exp(2 i pi z)), which is continuous there; else the conjugate
def _log_sin_pi(z):
    below = jnp.signbit(z.imag)
    u = jnp.where(below, z.conj(), z)
    turn = jnp.exp(2j * math.pi * (u - jnp.floor(u.real)))
    value = -1j * math.pi * (u - 0.5) - math.log(2) + jnp.log1p(-turn)
    return jnp.where(below, value.conj(), value)


# ---- the incomplete gamma and beta functions -------------------------------------------------------------------


@elementwise
def gammainc(a, x):
    """The lower incomplete gamma function over gamma(a), P(a, x); nan where a or x is negative. DLMF 8.2.4.

    >>> gammainc(1.0, 2.0)
    Array(0.86466473, dtype=float32, weak_type=True)
    """
    return incomplete.igamma(a, x)


@elementwise
def gammaincc(a, x):
    """The upper incomplete gamma function over gamma(a), Q(a, x) = 1 - P(a, x), exact where it is small. DLMF 8.2.4.

    >>> gammaincc(1.0, 20.0)
    Array(2.0611517e-09, dtype=float32, weak_type=True)
    """
    return incomplete.igammac(a, x)


@elementwise
def betainc(a, b, x):
    """The incomplete beta function over beta(a, b), I_x(a, b), for 0 <= x <= 1. DLMF 8.17.2.

    >>> betainc(2.0, 2.0, 0.25)
    Array(0.15625015, dtype=float32, weak_type=True)
    """
    return incomplete.betainc(a, b, x)


# ---- beta ------------------------------------------------------------------------------------------------------


@elementwise(wide=True)
def betaln(a, b):
    """log |B(a, b)|, exact where one of the parameters is much larger than the other. DLMF 5.12.1.

    >>> betaln(2.0, 3.0)
    Array(-2.4849067, dtype=float32, weak_type=True)
    """
    return log_beta(a, b)


# by a: digamma(a) - digamma(a + b)
@custom_jvp
def log_beta(a, b):
    small, large = jnp.minimum(a, b), jnp.maximum(a, b)
    log_small = special.lgamma(small)
    direct = log_small + special.lgamma(large) - special.lgamma(a + b)
    big = (large >= 10) & (small > 0) & (large < math.inf)
    p, q = jnp.where(big, small, 1.0), jnp.where(big, large, 10.0)
    n = p + q
    # gamma(z) = sqrt(2 pi) z^(z - 1/2) exp(stirling_error(z) - z) for q and n
    errors = stirling_error(q) - stirling_error(n)
    one = log_small + errors - (q - 0.5) * jnp.log1p(p / q) - p * (jnp.log(n) - 1)
    both = jnp.where(big & (small >= 10), small, 10.0)
    r = both / q
    two = 0.5 * (_LOG_2_PI - jnp.log(q)) + stirling_error(both) + errors
    two = two + (both - 0.5) * (jnp.log(r) - jnp.log1p(r)) - q * jnp.log1p(r)
    value = jnp.where(big, jnp.where(small >= 10, two, one), direct)
    both_infinite = (large == math.inf) & (small > 0)
    value = jnp.where(both_infinite, -math.inf, jnp.where(small == 0, math.inf, value))
    pole = (small <= 0) & (small == jnp.floor(small)) & (value != value)
    return jnp.where((a != a) | (b != b), math.nan, jnp.where(pole, math.inf, value))


log_beta.defjvps(
    lambda t, ans, a, b: t * (special.digamma(a) - special.digamma(a + b)),
    lambda t, ans, a, b: t * (special.digamma(b) - special.digamma(a + b)),
)


@elementwise(wide=True)
def beta(a, b):
    """B(a, b) = gamma(a) gamma(b) / gamma(a + b), with its limits where one of these has a pole. DLMF 5.12.1.

    >>> beta(2.0, 3.0)
    Array(0.08333334, dtype=float32, weak_type=True)
    """
    return _beta(a, b)


@custom_jvp
def _beta(a, b):
    usual = jnp.exp(log_beta(a, b)) * _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b)
    # for a = -m, whole, and whole b from 1 to m:  B = (-1)^b B(1 - a - b, b)
    for p, q in ((a, b), (b, a)):
        pole = (p <= 0) & (p == jnp.floor(p)) & (p > -math.inf)
        whole = (q > 0) & (q == jnp.floor(q)) & (1 - p - q > 0)
        safe_p, safe_q = jnp.where(pole & whole, p, -1.0), jnp.where(pole & whole, q, 1.0)
        even = safe_q == 2 * jnp.floor(safe_q / 2)
        turned = jnp.exp(log_beta(1 - safe_p - safe_q, safe_q)) * jnp.where(even, 1.0, -1.0)
        usual = jnp.where(pole, jnp.where(whole, turned, math.inf), usual)
    infinite = (jnp.maximum(a, b) == math.inf) & (jnp.minimum(a, b) > 0)
    return jnp.where((a != a) | (b != b), math.nan, jnp.where(infinite, 0.0, usual))


_beta.defjvps(
    lambda t, ans, a, b: t * (ans * (special.digamma(a) - special.digamma(a + b))),
    lambda t, ans, a, b: t * (ans * (special.digamma(b) - special.digamma(a + b))),
)

# ---- what counts with gamma --------------------------------------------------------------------------------------


def factorial(n, exact: bool = False):
    """n! = gamma(n + 1); 0 where n is negative. `exact` would need integers without bound and must be False.

    >>> factorial(4.0)
    Array(24., dtype=float32, weak_type=True)
    """
    if exact:
        raise NotImplementedError("factorial: exact=True needs integers of any size; use math.factorial on Python ints")
    return _factorial(n)


@elementwise(name="factorial")
def _factorial(n):
    return jnp.where(n < 0, 0.0, _real_gamma(jnp.where(n < 0, 0.0, n) + 1))


def comb(N, k, *, repetition: bool = False):
    """The ways to choose k of N things, in any order: N! / (k! (N - k)!); 0 where k > N or one is negative.

    With `repetition`, a thing may be chosen several times.

    >>> comb(5.0, 2.0)
    Array(10., dtype=float32, weak_type=True)
    """
    return _comb(N, k, repetition=bool(repetition))


@elementwise(name="comb", static=("repetition",), wide=True)
def _comb(N, k, repetition):
    if repetition:
        none = (N == 0) & (k == 0)
        ways = _choose(jnp.where(none, 1.0, N + k - 1), k)
        return jnp.where(none, 1.0, jnp.where((N < 0) | (k < 0), 0.0, ways))
    return _choose(N, k)


# binomial(n, k) = 1 / ((n + 1) B(n - k + 1, k + 1))                                                DLMF 5.12.1
def _choose(n, k):
    possible = (n >= 0) & (k >= 0) & (k <= n)
    infinite = (n == math.inf) & possible
    usual = possible & ~infinite
    m, j = jnp.where(usual, n, 1.0), jnp.where(usual, k, 0.0)
    ways = jnp.exp(-log_beta(m - j + 1, j + 1) - jnp.log1p(m))
    limit = jnp.where(k == 0, 1.0, jnp.where(k == math.inf, math.nan, math.inf))
    value = jnp.where(usual, ways, jnp.where(infinite, limit, 0.0))
    return jnp.where((n != n) | (k != k), math.nan, value)


@elementwise(wide=True)
def poch(z, m):
    """Pochhammer's symbol, gamma(z + m) / gamma(z). DLMF 5.2.5.

    >>> poch(2.0, 3.0)
    Array(24., dtype=float32, weak_type=True)
    """
    return _poch(z, m)


@custom_jvp
def _poch(z, m):
    sign = _sign_of_gamma(z) * _sign_of_gamma(z + m)
    value = jnp.exp(special.lgamma(z + m) - special.lgamma(z)) * sign
    negative_z = jnp.floor(z) == z
    at_pole = (z <= 0) & negative_z
    sum_at_pole = (z + m <= 0) & (jnp.floor(z + m) == z + m)
    # both at a pole:  (z)_m = (-1)^m gamma(1 - z) / gamma(1 - z - m)
    safe_z, safe_m = (jnp.where(at_pole & sum_at_pole, v, 0.0) for v in (z, m))
    even = safe_m == 2 * jnp.floor(safe_m / 2)
    turned = jnp.exp(special.lgamma(1 - safe_z) - special.lgamma(1 - safe_z - safe_m)) * jnp.where(even, 1.0, -1.0)
    value = jnp.where(at_pole, jnp.where(sum_at_pole, turned, 0.0), value)
    return jnp.where(m == 0, 1.0, value)


_poch.defjvps(
    lambda t, ans, z, m: t * (ans * (special.digamma(z + m) - special.digamma(z))),
    lambda t, ans, z, m: t * (ans * special.digamma(z + m)),
)


def multigammaln(a, d):
    """log of the multivariate gamma function of dimension d, a static int >= 1, for a > (d - 1) / 2. DLMF 35.3.4.

    >>> multigammaln(3.0, 2)
    Array(1.550195, dtype=float32, weak_type=True)
    """
    d = index_of("multigammaln", "d", d)
    if d < 1:
        raise ValueError(f"multigammaln expects d >= 1, got {d}")
    return _multigammaln(a, d=d)


# d (d - 1) / 4 log pi + the sum of log gamma(a - j / 2) over j < d
@elementwise(name="multigammaln", static=("d",))
def _multigammaln(a, d):
    terms = [special.lgamma(a - 0.5 * j) for j in range(d)]
    return sum(terms[1:], terms[0]) + d * (d - 1) / 4 * math.log(math.pi)


# ---- polygamma, zeta and Bernoulli's numbers ---------------------------------------------------------------------


@elementwise
def polygamma(n, x):
    """The n-th derivative of digamma at x, n >= 0 a whole number. DLMF 5.15.

    >>> polygamma(1, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    return special.polygamma(n, x)


def zeta(x, q=None):
    """Hurwitz' zeta function, the sum of (k + q)^-x over k >= 0; Riemann's if `q` is not given. DLMF 25.11.1.

    >>> zeta(2.0, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    return _zeta(x, 1 if q is None else q)


@elementwise(name="zeta")
def _zeta(x, q):
    return special.zeta(x, q)


def bernoulli(n: int):
    """Bernoulli's numbers B_0 to B_n, with B_1 = -1/2, for a static n >= 0; inf where they overflow. DLMF 24.2.1.

    >>> bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],
          dtype=float32)
    """
    n = index_of("bernoulli", "n", n)
    if n < 0:
        raise ValueError(f"bernoulli expects n >= 0, got {n}")
    with np.errstate(over="ignore"):
        return jnp.asarray(_bernoulli_numbers(n).astype(dtypes.default_float()))


# from the tangent numbers: B_2k = (-1)^(k-1) 2k T_k / (4^k (4^k - 1))                                 DLMF 24.15.4
def _bernoulli_numbers(n: int) -> np.ndarray:
    out = np.zeros(n + 1)
    out[: min(n, 1) + 1] = [1, -0.5][: min(n, 1) + 1]
    count = min(n // 2, 129)  # B_260 is beyond float64
    tangent = [0, 1]
    for k in range(2, count + 1):
        tangent.append((k - 1) * tangent[k - 1])
    for k in range(2, count + 1):
        for j in range(k, count + 1):
            tangent[j] = (j - k) * tangent[j - 1] + (j - k + 2) * tangent[j]
    for k in range(1, n // 2 + 1):
        sign = 1 if k % 2 else -1
        if k > count:
            out[2 * k] = sign * math.inf
        else:
            out[2 * k] = float(fractions.Fraction(sign * 2 * k * tangent[k], 4**k * (4**k - 1)))
    return out
