"""Exponentials, logarithms, trigonometric and hyperbolic functions and their inverses, element by element.

Each derivative is written so that it neither cancels nor overflows where its value does not: sech^2 is not
1 - tanh^2, and 1 / sqrt(1 + x^2) is not made of an x^2 that may be inf.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Literal
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.elementwise import (
    abs,
    add,
    and_,
    convert,
    div,
    eq,
    gt,
    is_finite,
    max,
    min,
    mul,
    neg,
    not_,
    select,
    sub,
    taken,
)
from funcml.primitives.identities import stop_gradient
from funcml.primitives.powers import rsqrt
from funcml.primitives.rows import FLOAT, INEXACT, PYTHON_SCALARS, Elementwise, binary, is_constant, unary
from funcml.primitives.tangents import scalar_of

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp", "exp2", "expm1", "log",
    "log1p", "logistic", "pow", "sin", "sinh", "tan", "tanh",
]


def _is_complex(x) -> bool:
    return dtypes.is_complex(aval_of(x).dtype)


# ---- exp and log -------------------------------------------------------------------------------------------

exp = unary("exp", INEXACT, lambda t, ans, x: mul(t, ans))
exp2 = unary("exp2", INEXACT, lambda t, ans, x: mul(t, mul(ans, math.log(2))))
#: expm1' = exp x, not expm1 x + 1, which has no digits left for x << 0
expm1 = unary("expm1", INEXACT, lambda t, ans, x: mul(t, exp(x)))
log = unary("log", INEXACT, lambda t, ans, x: div(t, x))
log1p = unary("log1p", INEXACT, lambda t, ans, x: div(t, add(1.0, x)))
#: s(x) = 1 / (1 + exp(-x));  s'(x) = s(x) s(-x), where s(-x) = 1 - s(x) without cancellation
logistic = unary("logistic", INEXACT, lambda t, ans, x: mul(t, mul(ans, logistic(neg(x)))))

# ---- pow ---------------------------------------------------------------------------------------------------


class Pow(Elementwise):
    """pow(x, y): x^y for floats and complex numbers; y has the dtype of x or an integer one. 0^0 is 1."""

    def __init__(self):
        super().__init__("pow", 2, INEXACT, tangents=(_pow_base_tangent, _pow_exponent_tangent))

    def __call__(self, x, y):
        if type(x) in PYTHON_SCALARS and dtypes.is_integer(aval_of(y).dtype):
            x = dtypes.scalar_dtype(complex if type(x) is complex else float).type(x)
        return super().__call__(x, y)

    def type_rule(self, x, y):
        y_as_x = shaped(y.shape, x.dtype, y.weak_type) if dtypes.is_integer(y.dtype) else y
        return super().type_rule(x, y_as_x)

    def jvp_rule(self, primals, tangents):
        if dtypes.is_integer(aval_of(primals[1]).dtype):
            tangents = [tangents[0], Zero(tangents[1].aval)]
        return super().jvp_rule(primals, tangents)


# d/dx x^y = y x^(y-1), and 0 for y = 0 whatever x is: where x^-1 is no number that is 0 structurally, elsewhere as a product,
# whose derivative by y is not
def _pow_base_tangent(t, ans, x, y):
    dtype = aval_of(t).dtype
    if is_constant(y):
        value = y.value if type(y) is Literal else y
        return mul(t, mul(pow(x, aval_of(y).dtype.type(value - 1)), dtype.type(value))) if value != 0 else Zero(aval_of(t))
    size = abs(_spread(x, ans))
    flat = and_(eq(y, 0), not_(and_(is_finite(size), is_finite(div(1.0, size)))))
    slope = mul(pow(x, sub(select(flat, _spread(1, y), y), 1)), convert(y, dtype))
    return mul(taken(not_(flat), t), slope)


# d/dy x^y = x^y log x, and 0 for x = 0, y > 0
def _pow_exponent_tangent(t, ans, x, y):
    x = _spread(x, ans)
    stays = eq(x, 0) if dtypes.is_complex(aval_of(y).dtype) else and_(eq(x, 0), gt(y, 0))
    return mul(t, mul(ans, log(select(stays, _spread(1, ans), x))))


def _spread(x, like):
    """`x`, which may be a scalar constant, with the shape and dtype of `like`."""
    aval = aval_of(like)
    x = scalar_of(aval, x) if type(x) in PYTHON_SCALARS else x
    return broadcast_in_dim(x, aval.shape)


pow = Pow()

# ---- hyperbolic --------------------------------------------------------------------------------------------


#: sech^2, which 1 - tanh^2 is only for small x;  (sech^2)' = -2 sech^2 tanh
sech2_p = unary("sech2", FLOAT, lambda t, ans, x: mul(t, mul(-2.0, mul(ans, tanh(x)))))


def _sech2(x):
    """sech^2 x; for complex numbers 4 s(2x) s(-2x), s the logistic function."""
    if not _is_complex(x):
        return sech2_p(x)
    return mul(4.0, mul(logistic(mul(2.0, x)), logistic(mul(-2.0, x))))


sinh = unary("sinh", INEXACT, lambda t, ans, x: mul(t, cosh(x)))
cosh = unary("cosh", INEXACT, lambda t, ans, x: mul(t, sinh(x)))
tanh = unary("tanh", INEXACT, lambda t, ans, x: mul(t, _sech2(x)))


def _rsqrt_one_plus_square(x):
    """1 / sqrt(1 + x^2) = r / sqrt(r^2 + (r x)^2) for every r; 1 / max(1, |x|) is taken, as a constant."""
    if _is_complex(x):
        return mul(rsqrt(add(1.0, mul(1j, x))), rsqrt(sub(1.0, mul(1j, x))))
    r = stop_gradient(div(1.0, max(1.0, _below_overflow(abs(x)))))
    scaled = mul(r, x)
    return mul(r, rsqrt(add(mul(r, r), mul(scaled, scaled))))


def _below_overflow(x):
    """The smaller of x and the largest power of two whose inverse is a normal number."""
    return min(x, 1 / float(dtypes.finfo(aval_of(x).dtype).tiny))


#: asinh' = 1 / sqrt(1 + x^2)
asinh = unary("asinh", INEXACT, lambda t, ans, x: mul(t, _rsqrt_one_plus_square(x)))
#: acosh' = 1 / (sqrt(x - 1) sqrt(x + 1)), on the branch of acosh
acosh = unary("acosh", INEXACT, lambda t, ans, x: mul(t, mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))))
#: atanh' = 1 / ((1 - x) (1 + x))
atanh = unary("atanh", INEXACT, lambda t, ans, x: div(div(t, sub(1.0, x)), add(1.0, x)))

# ---- trigonometric -----------------------------------------------------------------------------------------

sin = unary("sin", INEXACT, lambda t, ans, x: mul(t, cos(x)))
cos = unary("cos", INEXACT, lambda t, ans, x: neg(mul(t, sin(x))))


#: tan' = 1 + tan^2, for complex numbers sech^2(ix)
def _tan_tangent(t, ans, x):
    return mul(t, _sech2(mul(1j, x)) if _is_complex(x) else add(1.0, mul(ans, ans)))


tan = unary("tan", INEXACT, _tan_tangent)


def _rsqrt_one_minus_square(x):
    return mul(rsqrt(sub(1.0, x)), rsqrt(add(1.0, x)))


#: asin' = 1 / sqrt((1 - x) (1 + x))
asin = unary("asin", INEXACT, lambda t, ans, x: mul(t, _rsqrt_one_minus_square(x)))
#: acos' = -asin'
acos = unary("acos", INEXACT, lambda t, ans, x: neg(mul(t, _rsqrt_one_minus_square(x))))


#: atan' = 1 / (1 + x^2), for complex numbers 1 / ((x - i) (x + i))
def _atan_tangent(t, ans, x):
    if _is_complex(x):
        return div(div(t, sub(x, 1j)), add(x, 1j))
    return div(t, add(1.0, mul(x, x)))


atan = unary("atan", INEXACT, _atan_tangent)


def _over_square_norm(a, y, x):
    """a / (x^2 + y^2) = (a r) r / ((x r)^2 + (y r)^2) for every r; 1 / max(|x|, |y|) is taken, as a constant."""
    r = stop_gradient(div(1.0, _below_overflow(max(abs(x), abs(y)))))
    x, y = mul(x, r), mul(y, r)
    return mul(div(mul(a, r), add(mul(x, x), mul(y, y))), r)


def _atan2_by_y(t, ans, y, x):
    y, x = _spread(y, ans), _spread(x, ans)
    return mul(t, _over_square_norm(x, y, x))


def _atan2_by_x(t, ans, y, x):
    y, x = _spread(y, ans), _spread(x, ans)
    return neg(mul(t, _over_square_norm(y, y, x)))


#: atan2(y, x): z' = (x y' - y x') / (x^2 + y^2)
atan2 = binary("atan2", FLOAT, (_atan2_by_y, _atan2_by_x))
