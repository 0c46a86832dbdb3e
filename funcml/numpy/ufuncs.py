"""Functions that act on each element alone, a row each: name, kernel, meaning.

Operands are arrays and numbers of any dtype and of shapes that broadcast. Functions marked `inexact` take integers and
bool as floats. Derivatives are those of the primitives; where a formula would spoil one, the kernel says how it avoids it.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of, no_out
from funcml.numpy.promotion import as_array, operand, promote, promote_dtypes, settle, spread, to_inexact
from funcml.numpy.rows import binary, fill, unary
from funcml.numpy.selected import Selected, combine_selected
from funcml.primitives import bits, powers, special
from funcml.primitives import elementwise as ew
from funcml.primitives import transcendental as tr
from funcml.primitives.identities import stop_gradient
from funcml.transforms.custom_jvp import custom_jvp


def _dtype(x):
    return aval_of(x).dtype


def _is_complex(x) -> bool:
    return dtypes.is_complex(_dtype(x))


def _is_float(x) -> bool:
    return dtypes.is_float(_dtype(x))


# ---- arithmetic --------------------------------------------------------------------------------------------------

add = binary("add", ew.add, "x + y; the logical or of bools.", on_bool=ew.or_)
subtract = binary("subtract", ew.sub, "x - y. Raises TypeError for bools, which have no difference.")
multiply = binary("multiply", ew.mul, "x y; the logical and of bools.", on_bool=ew.and_)
divide = binary("divide", ew.div, "x / y, a float or complex number also for integers.", inexact=True)
true_divide = divide
negative = unary("negative", ew.neg, "-x. Raises TypeError for bools.")
positive = unary("positive", as_array, "x itself.")
maximum = binary("maximum", ew.max, "The larger of x and y; nan where either is. The derivative is shared at a tie.")
minimum = binary("minimum", ew.min, "The smaller of x and y; nan where either is. The derivative is shared at a tie.")


def _differ(a, b):
    return ew.xor(a, b)


# Dividing towards zero and rounding down differ by one where a remainder is left and the signs differ.
def _floor_divide_integers(x, y):
    by_zero = ew.eq(y, 0)
    y = ew.select(by_zero, fill(y, 1), y)
    quotient = ew.div(x, y)
    if dtypes.is_signed(_dtype(x)):
        inexact = ew.ne(ew.mul(quotient, y), x)
        below = ew.and_(inexact, _differ(ew.lt(x, 0), ew.lt(y, 0)))
        quotient = ew.sub(quotient, ew.convert(below, _dtype(x)))
    return ew.select(by_zero, fill(quotient, 0), quotient)


# (x - r) / y with r = rem(x, y) is whole but for rounding, and one more than the floor where r and y differ in sign.
def _floor_divide_floats(x, y):
    r = ew.rem(x, y)
    near = ew.div(ew.sub(x, r), y)
    near = ew.select(_is_off(r, y), ew.sub(near, 1), near)
    down = ew.floor(near)
    quotient = ew.select(ew.gt(ew.sub(near, down), 0.5), ew.add(down, 1), down)
    return ew.select(ew.eq(y, 0), ew.div(x, y), quotient)


def _floor_divide(x, y):
    if _is_complex(x):
        raise TypeError(f"floor_divide expects real numbers, got {aval_of(x)}")
    return _floor_divide_floats(x, y) if _is_float(x) else _floor_divide_integers(*_no_bools(x, y))


def _no_bools(x, y):
    if not dtypes.is_bool(_dtype(x)):
        return x, y
    return _integers(x), _integers(y)


def _remainder(x, y):
    if _is_complex(x):
        raise TypeError(f"remainder expects real numbers, got {aval_of(x)}")
    r = _fmod(*_no_bools(x, y))
    if dtypes.is_unsigned(_dtype(r)):
        return r
    x, y = _no_bools(x, y)
    return ew.select(_is_off(r, y), ew.add(r, y), r)


def _is_off(r, y):
    """Whether a remainder has the sign of the dividend, where that of the divisor is another."""
    return ew.and_(ew.ne(r, 0), _differ(ew.lt(r, 0), ew.lt(y, 0)))


def _fmod(x, y):
    if _is_float(x):
        return ew.rem(x, y)
    by_zero = ew.eq(y, 0)
    return ew.select(by_zero, fill(x, 0), ew.rem(x, ew.select(by_zero, fill(y, 1), y)))


floor_divide = binary("floor_divide", _floor_divide, "x / y rounded down. An integer divided by 0 gives 0.")
remainder = binary("remainder", _remainder, "x - y floor(x / y), of the sign of y. An integer modulo 0 is 0.")
mod = remainder
fmod = binary("fmod", lambda x, y: _fmod(*_no_bools(x, y)), "x - y trunc(x / y), of the sign of x.")


def divmod(x1, x2, /):
    """The pair (x // y, x mod y)."""
    return floor_divide(x1, x2), remainder(x1, x2)


reciprocal = unary("reciprocal", lambda x: ew.div(fill(x, 1), x), "1 / x, a float also for integers.", inexact=True)
absolute = unary("absolute", lambda x: x if dtypes.is_bool(_dtype(x)) else ew.abs(x), "|x|, real also for complex numbers.")
abs = absolute
fabs = unary("fabs", lambda x: ew.abs(_real_or_raise(x)), "|x| as a float.", inexact=True)
square = unary("square", lambda x: powers.square(_integers(x)), "x times x.")
sign = unary("sign", ew.sign, "-1, 0 or 1; x / |x| for complex numbers.")


def _integers(x):
    return ew.convert(x, dtypes.int32) if dtypes.is_bool(_dtype(x)) else x


# ---- powers and roots --------------------------------------------------------------------------------------------

float_power = binary("float_power", tr.pow, "x ** y as a float or complex number. 0 ** 0 is 1.", inexact=True)


def power(x1, x2, /):
    """x ** y. A Python int as exponent is static: x is multiplied with itself. 0 ** 0 is 1.

    Integers to a negative power are rounded towards zero; to a negative static int they raise TypeError.

    >>> power(2.0, 3)
    Array(8., dtype=float32, weak_type=True)
    """
    if type(x2) is int and isinstance(x1, Array) and not dtypes.is_bool(x1.dtype):
        return powers.integer_pow(x1, x2)
    if isinstance(x2, int | np.integer) and not isinstance(x2, bool) and type(x1) is not Selected:
        return _to_integer(operand("power", x1), int(x2), None if type(x2) is int else x2.dtype)
    if type(x2) is float and isinstance(x1, Array) and dtypes.is_inexact(x1.dtype):
        return float_power(x1, x2)
    if type(x1) is Selected or type(x2) is Selected:
        return combine_selected("power", power, x1, x2)
    return _power(*settle("power", x1, x2))


pow = power


@fused(static=("n", "dtype"))
def _to_integer(x, n: int, dtype):
    x, _ = promote_dtypes("power", _integers(as_array(x)), 0 if dtype is None else dtype.type(0))
    return powers.integer_pow(x, n)


@fused
def _power(x, y):
    base, exponent = promote("power", x, y, full=True)
    if dtypes.is_inexact(dtypes.dtype_of(x)[0]) and dtypes.is_integer(dtypes.dtype_of(y)[0]):
        return tr.pow(base, spread(as_array(y), aval_of(base).shape))
    if dtypes.is_inexact(_dtype(base)):
        return tr.pow(base, exponent)
    return _integer_power(_integers(base), _integers(exponent))


# x^y by the bits of y: x^(b0 + 2 b1 + ..) = x^b0 (x^2)^b1 ..; for y < 0 only 1 and -1 leave something.
def _integer_power(x, y):
    out, square = fill(x, 1), x
    odd = ew.eq(ew.and_(y, 1), 1)
    width = dtypes.bit_width(_dtype(y)) - dtypes.is_signed(_dtype(y))
    for bit in range(width):
        is_set = ew.ne(ew.and_(y, 1 << bit), 0)
        out = ew.select(is_set, ew.mul(out, square), out)
        square = ew.mul(square, square)
    if not dtypes.is_signed(_dtype(y)):
        return out
    unit = ew.or_(ew.eq(x, 1), ew.and_(ew.eq(ew.abs(x), 1), ew.not_(odd)))
    inverse = ew.select(unit, fill(x, 1), ew.select(ew.eq(ew.abs(x), 1), x, fill(x, 0)))
    return ew.select(ew.lt(y, 0), inverse, out)


sqrt = unary("sqrt", powers.sqrt, "The square root.", inexact=True)
cbrt = unary("cbrt", powers.cbrt, "The cube root.", inexact=True)

# ---- exp and log -------------------------------------------------------------------------------------------------

exp = unary("exp", tr.exp, "e to the power x.", inexact=True)
exp2 = unary("exp2", tr.exp2, "2 to the power x.", inexact=True)
expm1 = unary("expm1", tr.expm1, "exp(x) - 1, exact near 0.", inexact=True)
log = unary("log", tr.log, "The natural logarithm.", inexact=True)
log2 = unary("log2", lambda x: ew.div(tr.log(x), math.log(2)), "The logarithm to base 2.", inexact=True)
log10 = unary("log10", lambda x: ew.div(tr.log(x), math.log(10)), "The logarithm to base 10.", inexact=True)
log1p = unary("log1p", tr.log1p, "log(1 + x), exact near 0.", inexact=True)


# log(b^x + b^y) = m + log_b(1 + b^-|x - y|), m = max(x, y). Where x - y is nan, x and y are both inf, both -inf, or one is
# nan: then it is (x + y) / 2.
def _distance(x, y):
    """x - y, and where it is undefined (infinities of one sign), as 0."""
    distance = ew.sub(x, y)
    undefined = ew.ne(distance, distance)
    return ew.select(undefined, fill(x, 0), distance), undefined


def _log_of_sum(x, y, exp, log1p, scale):
    distance, undefined = _distance(x, y)
    if _is_complex(x):
        larger = ew.select(ew.gt(ew.real(x), ew.real(y)), x, y)
        gap = ew.select(ew.gt(ew.real(distance), 0), ew.neg(distance), distance)
    else:
        larger, gap = ew.max(x, y), ew.neg(ew.abs(distance))
    out = ew.select(undefined, ew.mul(ew.add(x, y), 0.5), ew.add(larger, log1p(exp(gap))))
    return ew.complex(ew.real(out), _turned_back(ew.imag(out), 2 * math.pi / scale)) if _is_complex(x) else out


def _turned_back(angle, period: float):
    """An angle in [-period / 2, period / 2], as it is where it lies there."""
    turns = ew.round(ew.div(angle, period), ew.RoundingMethod.TO_NEAREST_EVEN)
    return ew.select(ew.gt(ew.abs(angle), period / 2), ew.sub(angle, ew.mul(turns, period)), angle)


def _share_of_sum(x, y, scale):
    """exp(s x) / (exp(s x) + exp(s y)) = logistic(s (x - y))."""
    return tr.logistic(ew.mul(scale, _distance(x, y)[0]))


def _with_slopes(kernel, scale):
    """log_b(b^x + b^y) with its derivatives b^x / (b^x + b^y) and b^y / (b^x + b^y), b = exp(scale)."""
    kernel = custom_jvp(kernel)
    kernel.defjvps(
        lambda t, ans, x, y: ew.mul(t, _share_of_sum(x, y, scale)),
        lambda t, ans, x, y: ew.mul(t, _share_of_sum(y, x, scale)),
    )
    return kernel


def _log2_1p(z):
    return ew.div(tr.log1p(z), math.log(2))


logaddexp = binary(
    "logaddexp",
    _with_slopes(lambda x, y: _log_of_sum(x, y, tr.exp, tr.log1p, 1.0), 1.0),
    "log(exp(x) + exp(y)), without overflow.",
    inexact=True,
)
logaddexp2 = binary(
    "logaddexp2",
    _with_slopes(lambda x, y: _log_of_sum(x, y, tr.exp2, _log2_1p, math.log(2)), math.log(2)),
    "log2(2 ** x + 2 ** y), without overflow.",
    inexact=True,
)

# ---- trigonometric and hyperbolic --------------------------------------------------------------------------------

sin = unary("sin", tr.sin, "The sine.", inexact=True)
cos = unary("cos", tr.cos, "The cosine.", inexact=True)
tan = unary("tan", tr.tan, "The tangent.", inexact=True)
arcsin = unary("arcsin", tr.asin, "The inverse of the sine.", inexact=True)
arccos = unary("arccos", tr.acos, "The inverse of the cosine.", inexact=True)
arctan = unary("arctan", tr.atan, "The inverse of the tangent.", inexact=True)
arctan2 = binary("arctan2", tr.atan2, "The angle of the point (y, x), in [-pi, pi].", inexact=True)
sinh = unary("sinh", tr.sinh, "The hyperbolic sine.", inexact=True)
cosh = unary("cosh", tr.cosh, "The hyperbolic cosine.", inexact=True)
tanh = unary("tanh", tr.tanh, "The hyperbolic tangent.", inexact=True)
arcsinh = unary("arcsinh", tr.asinh, "The inverse of the hyperbolic sine.", inexact=True)
arccosh = unary("arccosh", tr.acosh, "The inverse of the hyperbolic cosine.", inexact=True)
arctanh = unary("arctanh", tr.atanh, "The inverse of the hyperbolic tangent.", inexact=True)
asin, acos, atan, atan2, asinh, acosh, atanh = arcsin, arccos, arctan, arctan2, arcsinh, arccosh, arctanh
deg2rad = unary("deg2rad", lambda x: ew.mul(x, math.pi / 180), "Degrees as radians.", inexact=True)
rad2deg = unary("rad2deg", lambda x: ew.mul(x, 180 / math.pi), "Radians as degrees.", inexact=True)
radians, degrees = deg2rad, rad2deg


# sqrt(x^2 + y^2) = m sqrt((x / m)^2 + (y / m)^2), m the larger of |x| and |y| as a constant: it cancels in every derivative.
# 0 and its derivative where m = 0.
def _hypot(x, y):
    if _is_complex(x):
        raise ValueError(f"jnp.hypot is not well defined for complex-valued inputs, got {aval_of(x)}; take abs(x) and abs(y)")
    larger = stop_gradient(ew.max(ew.abs(x), ew.abs(y)))
    infinite = ew.or_(ew.eq(ew.abs(x), math.inf), ew.eq(ew.abs(y), math.inf))
    zero = ew.eq(larger, 0)
    scale = ew.select(ew.or_(zero, infinite), fill(x, 1), larger)
    u, v = (ew.div(ew.select(infinite, fill(x, 1), side), scale) for side in (x, y))
    square = ew.select(zero, fill(x, 1), ew.add(ew.mul(u, u), ew.mul(v, v)))
    size = ew.mul(scale, powers.sqrt(square))
    return ew.select(infinite, fill(x, math.inf), ew.select(zero, fill(x, 0), size))


hypot = binary("hypot", _hypot, "sqrt(x ** 2 + y ** 2), without overflow; 0 at 0 with derivative 0.", inexact=True)

# sin z / z = sum_k (-1)^k z^2k / (2k + 1)!, whose first 14 terms are exact to rounding for |z| < 2
_SINC_TERMS = [(-1) ** k / math.factorial(2 * k + 1) for k in range(14)]
_SINC_LIMIT = 2.0


# Near 0 the series, so that derivatives of every order neither cancel nor divide by 0.
def _sinc(x):
    z = ew.mul(x, math.pi)
    near = ew.lt(ew.abs(z), _SINC_LIMIT)
    small, large = ew.select(near, z, fill(z, 0)), ew.select(near, fill(z, math.pi), z)
    square, series = ew.mul(small, small), fill(z, 0)
    for term in reversed(_SINC_TERMS):
        series = ew.add(ew.mul(series, square), term)
    return ew.select(near, series, ew.div(tr.sin(large), large))


sinc = unary("sinc", _sinc, "sin(pi x) / (pi x), and 1 at 0.", inexact=True)

i0 = unary(
    "i0",
    lambda x: ew.mul(tr.exp(ew.abs(x)), special.bessel_i0e(x)),
    "The modified Bessel function of order 0.",
    inexact=True,
)

# ---- rounding ----------------------------------------------------------------------------------------------------


def _on_floats(kernel):
    """The kernel on floats, and nothing to do on integers and bool."""
    return lambda x: kernel(x) if _is_float(x) else _real_or_raise(x)


def _real_or_raise(x):
    if _is_complex(x):
        raise TypeError(f"expected real numbers, got {aval_of(x)}")
    return as_array(x)


def _round_to_even(x):
    if _is_complex(x):
        return ew.complex(_round_to_even(ew.real(x)), _round_to_even(ew.imag(x)))
    return ew.round(x, ew.RoundingMethod.TO_NEAREST_EVEN)


def _truncate(x):
    return ew.select(ew.lt(x, 0), ew.ceil(x), ew.floor(x))


floor = unary("floor", _on_floats(ew.floor), "The largest whole number not above x.")
ceil = unary("ceil", _on_floats(ew.ceil), "The smallest whole number not below x.")
trunc = unary("trunc", _on_floats(_truncate), "The whole number next to x in the direction of 0.")
rint = unary("rint", _round_to_even, "The whole number nearest to x as a float; halves go to the even one.", inexact=True)


def round(a, decimals: int = 0, out=None):
    """`a` rounded to `decimals` places after the point (before it, if negative); halves go to the even neighbour."""
    no_out("round", out)
    return _round(operand("round", a), index_of("round", "decimals", decimals))


around = round


@fused(static=("decimals",))
def _round(x, decimals: int):
    if not dtypes.is_inexact(_dtype(x)):
        if decimals >= 0:
            return as_array(x)
        scaled = ew.div(ew.convert(x, dtypes.float64), 10.0**-decimals)
        return ew.convert(ew.mul(_round_to_even(scaled), 10.0**-decimals), _dtype(x))
    if decimals == 0:
        return _round_to_even(x)
    if decimals > 0:
        return ew.div(_round_to_even(ew.mul(x, 10.0**decimals)), 10.0**decimals)
    return ew.mul(_round_to_even(ew.div(x, 10.0**-decimals)), 10.0**-decimals)


def modf(x, /, out=None):
    """The fractional and the whole part of x, both of the sign of x."""
    no_out("modf", out)
    return _modf(operand("modf", x))


@fused
def _modf(x):
    x = to_inexact("modf", as_array(x))
    whole = _truncate(x)
    infinite = ew.eq(ew.abs(x), math.inf)
    return ew.select(infinite, fill(x, 0), ew.sub(x, whole)), whole


# ---- complex numbers ---------------------------------------------------------------------------------------------

real = unary("real", lambda x: ew.real(x) if _is_complex(x) else as_array(x), "The real part.")
imag = unary("imag", lambda x: ew.imag(x) if _is_complex(x) else fill(x, 0), "The imaginary part; 0 for real numbers.")
conjugate = unary("conjugate", lambda x: ew.conj(x) if _is_complex(x) else as_array(x), "The complex conjugate.")
conj = conjugate


def angle(z, deg: bool = False):
    """The argument of a complex number, in radians in [-pi, pi] or in degrees."""
    return _angle(operand("angle", z), bool(deg))


@fused(static=("deg",))
def _angle(z, deg):
    z = to_inexact("angle", z)
    z = ew.convert(z, _dtype(z))
    a = tr.atan2(ew.imag(z), ew.real(z)) if _is_complex(z) else tr.atan2(fill(z, 0), z)
    return ew.mul(a, 180 / math.pi) if deg else a


# ---- limits -------------------------------------------------------------------------------------------------------


def clip(arr=None, /, min=None, max=None):
    """`arr` limited to [min, max]; a bound may be None or an array, and where min > max the result is max."""
    if type(arr) is Selected:
        return arr.map(lambda x: clip(x, min, max))
    if any(x is not None and _is_complex(operand("clip", x)) for x in (arr, min, max)):
        raise ValueError("clip: Complex values have no ordering and cannot be clipped; clip real and imaginary part, or the size")
    given = iter(settle("clip", *[x for x in (arr, min, max) if x is not None]))
    return _clip(*[None if x is None else next(given) for x in (arr, min, max)])


@fused
def _clip(x, low, high):
    if low is not None:
        x = maximum(x, low)
    return as_array(x if high is None else minimum(x, high))


def _ignoring_nan(choose):
    def kernel(x, y):
        if not _is_float(x):
            return choose(x, y)
        return ew.select(ew.ne(x, x), y, ew.select(ew.ne(y, y), x, choose(x, y)))

    return kernel


fmax = binary("fmax", _ignoring_nan(ew.max), "The larger of x and y; nan only where both are.")
fmin = binary("fmin", _ignoring_nan(ew.min), "The smaller of x and y; nan only where both are.")

# ---- bits --------------------------------------------------------------------------------------------------------

bitwise_and = binary("bitwise_and", ew.and_, "The bits that both integers (or bools) have.")
bitwise_or = binary("bitwise_or", ew.or_, "The bits that one of the integers (or bools) has.")
bitwise_xor = binary("bitwise_xor", ew.xor, "The bits in which integers (or bools) differ.")
bitwise_not = unary("bitwise_not", ew.not_, "Every bit turned; the logical not of bools.")
bitwise_invert = invert = bitwise_not
left_shift = binary("left_shift", lambda x, n: bits.shift_left(*_no_bools(x, n)), "The bits of x moved up by n places.")
right_shift = binary(
    "right_shift",
    lambda x, n: _shift_right(*_no_bools(x, n)),
    "The bits of x moved down by n places; the sign of a signed integer stays.",
)
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def _shift_right(x, n):
    return bits.shift_right_arithmetic(x, n) if dtypes.is_signed(_dtype(x)) else bits.shift_right_logical(x, n)


def _count_bits(x):
    magnitude = ew.abs(x) if dtypes.is_signed(_dtype(x)) else x
    return ew.convert(bits.population_count(magnitude), dtypes.uint8)


bitwise_count = unary("bitwise_count", lambda x: _count_bits(_no_bools(x, x)[0]), "How many bits of |x| are set.")

# ---- comparison and logic ----------------------------------------------------------------------------------------


def _ordered(compare):
    """The comparison; complex numbers are ordered by real part, then by imaginary part."""

    def kernel(x, y):
        a, b = ew.real(x), ew.real(y)
        return ew.select(ew.eq(a, b), compare(ew.imag(x), ew.imag(y)), compare(a, b))

    return kernel


def _comparison(name, compare, doc):
    return binary(name, compare, doc, on_complex=_ordered(compare))


equal = binary("equal", ew.eq, "Whether x = y.")
not_equal = binary("not_equal", ew.ne, "Whether x and y differ; true where one is nan.")
less = _comparison("less", ew.lt, "Whether x < y.")
less_equal = _comparison("less_equal", ew.le, "Whether x <= y.")
greater = _comparison("greater", ew.gt, "Whether x > y.")
greater_equal = _comparison("greater_equal", ew.ge, "Whether x >= y.")


def _truth(x):
    return x if dtypes.is_bool(_dtype(x)) else ew.ne(x, 0)


logical_and = binary("logical_and", lambda x, y: ew.and_(_truth(x), _truth(y)), "Whether x and y are both not 0.")
logical_or = binary("logical_or", lambda x, y: ew.or_(_truth(x), _truth(y)), "Whether x or y is not 0.")
logical_xor = binary("logical_xor", lambda x, y: ew.xor(_truth(x), _truth(y)), "Whether exactly one of x and y is not 0.")
logical_not = unary("logical_not", lambda x: ew.not_(_truth(x)), "Whether x is 0.")
