"""StableHLO of `primitives.special`.

CHLO's lgamma and digamma lose their digits where they are zero; around the zeros at positive x they are replaced by
series. At negative x only the absolute error is small near their zeros, as in most libraries.
"""

from __future__ import annotations

import math

from funcml.core.tracing import aval_of
from funcml.lowering import series
from funcml.lowering.emit import lowers
from funcml.lowering.rules_elementwise import chlo, corrected, full, written
from funcml.lowering.smooth import smooth
from funcml.primitives import elementwise as ew
from funcml.primitives import special
from funcml.primitives.powers import rsqrt, square
from funcml.primitives.transcendental import exp, log

for _primitive in (
    special.erf, special.erfc, special.bessel_i1e,
):
    lowers(_primitive)(chlo(f"chlo.{_primitive.name}"))


def _lgamma(x, elsewhere):
    """S(w) = lgamma(2 + w) is a series for |w| <= 1/2, and for x in (0, 3.5) gamma(x + 1) = x gamma(x) leads there:

        x in      (0, .5)                    [.5, 1.5)            [1.5, 2.5)     [2.5, 3.5)
        lgamma x  S(x) - log(x (x + 1))      S(x - 1) - log x     S(x - 2)       S(x - 3) + log(x - 1)
    """
    first, second, fourth = ew.lt(x, 0.5), ew.lt(x, 1.5), ew.ge(x, 2.5)
    shift = ew.select(first, full(0, x), ew.select(second, full(1, x), ew.select(fourth, full(3, x), full(2, x))))
    factor = ew.select(
        first, ew.mul(x, ew.add(x, 1.0)), ew.select(second, x, ew.select(fourth, ew.sub(x, 1.0), full(1, x)))
    )
    w = ew.sub(x, shift)
    coefficients = (series.ONE_MINUS_EULER_GAMMA, *series.LGAMMA_AT_2)
    at_2 = ew.mul(w, series.polynomial(coefficients, w, 0.5))
    log_factor = log(factor)
    near = ew.add(at_2, ew.select(second, ew.neg(log_factor), log_factor))
    return ew.select(ew.and_(ew.gt(x, 0.0), ew.lt(x, 3.5)), near, elsewhere)


def _digamma(x, elsewhere):
    """Around its zero in (1, 2), the Taylor series at x0, the float next to the zero: x - x0 is exact there. The pole
    at 0 has the sign of -1 / x.
    """
    x0, at_x0 = series.DIGAMMA_ZERO[aval_of(x).dtype]
    d = ew.sub(x, x0)
    near = ew.add(ew.mul(d, series.polynomial(series.DIGAMMA_AT_ZERO, d, 0.25)), at_x0)
    with_zero = ew.select(ew.lt(ew.abs(d), 0.25), near, elsewhere)
    return ew.select(ew.eq(x, 0.0), ew.div(-1.0, x), with_zero)


def _erf_inv(x, y):
    """One step of Newton's method from where CHLO leads: erf(y) - x is known best as 1 - |x| - erfc |y| for large |x|."""
    inside = ew.lt(ew.abs(x), 1.0)
    z = ew.select(inside, y, full(0, y))
    near = ew.sub(special.erf(z), x)
    far = ew.mul(ew.sign(x), ew.sub(ew.sub(1.0, ew.abs(x)), special.erfc(ew.abs(z))))
    miss = ew.select(ew.lt(ew.abs(x), 0.5), near, far)
    step = ew.mul(ew.mul(0.5 * math.sqrt(math.pi), exp(square(z))), miss)
    return ew.select(ew.and_(inside, ew.ne(x, 0.0)), ew.sub(y, step), y)


def _polygamma(m, x, elsewhere):
    """digamma for m = 0; for m > 0 it goes to 0 at infinity, and has the sign of (-1)^(m + 1) at its pole 0."""
    even = ew.eq(m, ew.mul(2.0, ew.floor(ew.mul(0.5, m))))
    pole = ew.select(even, full(-math.inf, x), full(math.inf, x))
    value = ew.select(ew.eq(x, 0.0), pole, ew.select(ew.eq(x, math.inf), full(0, x), elsewhere))
    return ew.select(ew.eq(m, 0.0), special.digamma(x), value)


def _zeta(x, q, elsewhere):
    """It goes to 0 as q grows."""
    return ew.select(ew.and_(ew.eq(q, math.inf), ew.gt(x, 1.0)), full(0, x), elsewhere)


# Euler and Maclaurin: sum over k < N of (q + k)^-x, then with p = q + N
# p^(1 - x) / (x - 1) + p^-x / 2 + sum over j of B_2j / (2j)! x (x + 1) ... (x + 2j - 2) p^(1 - x - 2j)     DLMF 25.11.28
_EULER_MACLAURIN = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07, 2.08767569878681e-08,
    -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
)


def _zeta_series(x, q):
    total = None
    for k in range(12):
        term = exp(ew.neg(ew.mul(x, log(ew.add(q, float(k))))))
        total = term if total is None else ew.add(total, term)
    p = ew.add(q, 12.0)
    power = exp(ew.neg(ew.mul(x, log(p))))
    total = ew.add(total, ew.mul(power, ew.add(ew.div(p, ew.sub(x, 1.0)), 0.5)))
    factor = ew.mul(power, ew.div(x, p))
    for j, b in enumerate(_EULER_MACLAURIN, 1):
        total = ew.add(total, ew.mul(b, factor))
        factor = ew.mul(factor, ew.div(ew.mul(ew.add(x, 2.0 * j - 1), ew.add(x, 2.0 * j)), square(p)))
    usual = ew.and_(ew.gt(x, 1.0), ew.gt(q, 0.0))
    return ew.select(usual, total, full(math.nan, x))


lowers(special.zeta_by_x_p)(smooth(_zeta_series))
lowers(special.erf_inv_fast)(chlo("chlo.erf_inv"))
lowers(special.erf_inv)(corrected(chlo("chlo.erf_inv"), _erf_inv))
lowers(special.polygamma)(corrected(chlo("chlo.polygamma"), _polygamma))
lowers(special.zeta)(corrected(chlo("chlo.zeta"), _zeta))
lowers(special.lgamma)(corrected(chlo("chlo.lgamma"), _lgamma))
lowers(special.digamma)(corrected(chlo("chlo.digamma"), _digamma))


@lowers(special.bessel_i0e)
@written
def _bessel_i0e(x):
    x = ew.abs(x)
    small = series.chebyshev(series.BESSEL_I0E_SMALL, ew.sub(ew.mul(0.25, x), 1.0))
    large = ew.mul(series.chebyshev(series.BESSEL_I0E_LARGE, ew.sub(ew.div(16.0, x), 1.0)), rsqrt(x))
    return ew.select(ew.le(x, 8.0), small, large)
