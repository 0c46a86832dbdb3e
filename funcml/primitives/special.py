"""Special functions, element by element: error functions, gamma and its relatives, Bessel functions.

Formulas: NIST Digital Library of Mathematical Functions (DLMF), chapters 5, 7, 10, 25.
"""

from __future__ import annotations

import math

from funcml.core.errors import MissingRuleError
from funcml.core.tracing import aval_of
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.elementwise import abs, add, div, lt, mul, neg, select, sign, sub
from funcml.primitives.powers import square
from funcml.primitives.rows import FLOAT, binary, unary
from funcml.primitives.smooth import Smooth
from funcml.primitives.tangents import scalar_of
from funcml.primitives.transcendental import exp

__all__ = [
    "bessel_i0e", "bessel_i1e", "bessel_i1e_over_x", "digamma", "erf", "erf_inv", "erf_inv_fast", "erfc", "lgamma", "polygamma",
    "zeta", "zeta_by_x_p",
]


def _none_by(function: str, operand: str):
    """The row entry of an operand by which there is no derivative here."""

    def refuse(t, ans, *operands):
        raise MissingRuleError(
            f"{function} has no derivative with respect to {operand}; pass `stop_gradient({operand})` to treat it as "
            f"a constant"
        )

    return refuse


# ---- error functions ---------------------------------------------------------------------------------------

#: erf' = 2 / sqrt(pi) exp(-x^2)                                                          DLMF 7.2.1
erf = unary("erf", FLOAT, lambda t, ans, x: mul(t, mul(2 / math.sqrt(math.pi), exp(neg(square(x))))))
#: erfc' = -erf'
erfc = unary("erfc", FLOAT, lambda t, ans, x: mul(t, mul(-2 / math.sqrt(math.pi), exp(neg(square(x))))))
#: erf_inv' = sqrt(pi) / 2 exp(y^2), y = erf_inv x
def _erf_inv_tangent(t, ans, x):
    return mul(t, mul(math.sqrt(math.pi) / 2, exp(square(ans))))


erf_inv = unary("erf_inv", FLOAT, _erf_inv_tangent)
#: erf_inv as the backend has it, to some 1e-6 in float32: of which samples are made, that they be the same everywhere
erf_inv_fast = unary("erf_inv_fast", FLOAT, _erf_inv_tangent)

# ---- gamma and relatives -----------------------------------------------------------------------------------

#: lgamma = log |gamma|;  lgamma' = digamma                                               DLMF 5.2.2
lgamma = unary("lgamma", FLOAT, lambda t, ans, x: mul(t, digamma(x)))
#: digamma' = polygamma(1, .)
digamma = unary("digamma", FLOAT, lambda t, ans, x: mul(t, polygamma(_like(x, 1), x)))
#: polygamma(m, x), the m-th derivative of digamma (m a whole float);  d/dx = polygamma(m + 1, x)
polygamma = binary(
    "polygamma", FLOAT, (_none_by("polygamma", "m"), lambda t, ans, m, x: mul(t, polygamma(add(m, 1.0), x)))
)
#: the derivatives of zeta by x, where x > 1 and q > 0
zeta_by_x_p = Smooth("zeta_by_x", 2)
#: zeta(x, q) = sum over k >= 0 of (k + q)^-x;  d/dq = -x zeta(x + 1, q)                   DLMF 25.11.17
zeta = binary(
    "zeta",
    FLOAT,
    (
        lambda t, ans, x, q: mul(t, zeta_by_x_p(x, q, orders=(1, 0))),
        lambda t, ans, x, q: neg(mul(t, mul(x, zeta(add(x, 1.0), q)))),
    ),
)


def _like(x, value):
    aval = aval_of(x)
    return broadcast_in_dim(scalar_of(aval, value), aval.shape)


# ---- Bessel functions --------------------------------------------------------------------------------------
# i0e x = exp(-|x|) I0(x), i1e x = exp(-|x|) I1(x);  I0' = I1, I1' = I0 - I1 / x             DLMF 10.29.3


def bessel_i1e_over_x(x):
    """i1e(x) / x = exp(-|x|) (1/2 + x^2 / 16 (1 + x^2 / 24 (1 + x^2 / 48 (1 + ...)))), by this series near 0; DLMF 10.25.2."""
    near = lt(abs(x), 0.05)
    q = square(x)
    inner = add(1.0, mul(q, div(add(1.0, div(q, 48.0)), 24.0)))
    series = mul(exp(neg(abs(x))), add(0.5, mul(div(q, 16.0), inner)))
    return select(near, series, div(bessel_i1e(x), select(near, _like(x, 1), x)))


#: i1e' = i0e - (sign x + 1 / x) i1e
def _bessel_i1e_tangent(t, ans, x):
    return mul(t, sub(sub(bessel_i0e(x), mul(sign(x), ans)), bessel_i1e_over_x(x)))


#: i0e' = i1e - sign x i0e
bessel_i0e = unary("bessel_i0e", FLOAT, lambda t, ans, x: mul(t, sub(bessel_i1e(x), mul(sign(x), ans))))
bessel_i1e = unary("bessel_i1e", FLOAT, _bessel_i1e_tangent)
