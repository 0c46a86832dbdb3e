"""Roots, and powers whose exponent is known.

    x -> sqrt x, 1 / sqrt x, cbrt x, x^2, x^n
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.elementwise import div, mul
from funcml.primitives.rows import FLOAT, INEXACT, NUMERIC, Elementwise, unary
from funcml.primitives.tangents import scalar_of

__all__ = ["cbrt", "integer_pow", "integer_pow_p", "rsqrt", "sqrt", "square"]

#: sqrt: y' = x' / (2 y)
sqrt = unary("sqrt", INEXACT, lambda t, ans, x: mul(t, div(0.5, ans)))
#: rsqrt: y' = -x' y / (2 x)
rsqrt = unary("rsqrt", INEXACT, lambda t, ans, x: mul(t, mul(-0.5, div(ans, x))))
#: cbrt: y' = x' / (3 y^2)
cbrt = unary("cbrt", FLOAT, lambda t, ans, x: div(t, mul(3.0, square(ans))))
#: square: y' = 2 x x'
square = unary("square", NUMERIC, lambda t, ans, x: mul(t, mul(2.0, x)))


class IntegerPow(Elementwise):
    """integer_pow(x, y): x^y by repeated multiplication, y a static int; integers take y >= 0."""

    def __init__(self):
        super().__init__("integer_pow", 1, NUMERIC, tangents=(_integer_pow_tangent,))

    def type_rule(self, x, *, y):
        if y < 0 and not dtypes.is_inexact(x.dtype):
            raise TypeError(f"integer_pow of {x}: integers take no negative power, got {y}; convert to a float dtype")
        return super().type_rule(x)


# (x^n)' = n x^(n-1) x'
def _integer_pow_tangent(t, ans, x, *, y):
    return mul(t, mul(float(y), integer_pow(x, y - 1)))


integer_pow_p = IntegerPow()


def integer_pow(x, y: int):
    """`x` to the power `y`, a Python int; 0^0 is 1."""
    if y == 1:
        return x
    if y == 2:
        return square(x)
    if y == 0:
        aval = aval_of(x)
        return broadcast_in_dim(scalar_of(aval, 1), aval.shape)
    return bind(integer_pow_p, (x,), {"y": int(y)})
