"""StableHLO of `primitives.special`.

CHLO's lgamma and digamma lose their digits where they are zero; around the zeros at positive x they are replaced by
series. At negative x only the absolute error is small near their zeros, as in most libraries.
"""

from __future__ import annotations

from funcml.core.ir import Eqn
from funcml.core.tracing import aval_of
from funcml.lowering import series
from funcml.lowering.emit import lowers
from funcml.lowering.rules_elementwise import chlo, full, written
from funcml.primitives import elementwise as ew
from funcml.primitives import special
from funcml.primitives.powers import rsqrt
from funcml.primitives.transcendental import log

for _primitive in (
    special.erf, special.erfc, special.erf_inv, special.polygamma, special.zeta, special.bessel_i1e,
):
    lowers(_primitive)(chlo(f"chlo.{_primitive.name}"))


def _corrected(operation: str, correction):
    """The rule of a CHLO operation of which `correction(x, what CHLO gives)` is the final result."""
    correct = written(correction)

    def rule(emit, eqn, operands):
        raw = chlo(operation)(emit, eqn, operands)
        return correct(emit, Eqn(eqn.primitive, (eqn.invars[0], eqn.outvars[0]), eqn.outvars, {}, None), [*operands, raw])

    return rule



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
    """Around its zero x0 in (1, 2), the Taylor series in x - x0; x0 in two parts, so that the difference is exact."""
    high, low = series.DIGAMMA_ZERO[aval_of(x).dtype]
    d = ew.sub(ew.sub(x, high), low)
    near = ew.mul(d, series.polynomial(series.DIGAMMA_AT_ZERO, d, 0.25))
    return ew.select(ew.lt(ew.abs(d), 0.25), near, elsewhere)


lowers(special.lgamma)(_corrected("chlo.lgamma", _lgamma))
lowers(special.digamma)(_corrected("chlo.digamma", _digamma))


@lowers(special.bessel_i0e)
@written
def _bessel_i0e(x):
    x = ew.abs(x)
    small = series.chebyshev(series.BESSEL_I0E_SMALL, ew.sub(ew.mul(0.25, x), 1.0))
    large = ew.mul(series.chebyshev(series.BESSEL_I0E_LARGE, ew.sub(ew.div(16.0, x), 1.0)), rsqrt(x))
    return ew.select(ew.le(x, 8.0), small, large)
