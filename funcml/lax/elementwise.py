"""Elementwise operations, a row each: the primitive of that name, on operands that `lax` has checked."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.tracing import aval_of, bind
from funcml.core.values import Array
from funcml.lax.operands import array, matched
from funcml.lax.precision import check_accuracy
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.numpy.promotion import PYTHON_SCALARS, as_array, match_scalar, operand, operands, spread
from funcml.primitives import bits, powers, special
from funcml.primitives import elementwise as ew
from funcml.primitives import transcendental as tr
from funcml.primitives.elementwise import RoundingMethod

_PYTHON_COMPLEX = complex


def _named(function, name: str, doc: str):
    function.__name__ = function.__qualname__ = name
    function.__module__ = "funcml.lax"
    function.__doc__ = doc
    return function


def _unary(name: str, primitive, doc: str):
    def function(x):
        return bind(primitive, (operand(f"lax.{name}", x),))

    return _named(function, name, doc)


def _accurate(name: str, primitive, doc: str):
    def function(x, *, accuracy=None):
        if accuracy is not None:
            check_accuracy(name, accuracy)
        return bind(primitive, (operand(f"lax.{name}", x),))

    return _named(function, name, doc)


def _binary(name: str, primitive, doc: str):
    def whole(x, y):
        return bind(primitive, matched(name, x, y))

    whole = fused(_named(whole, name, doc))

    def function(x, y):
        if isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval:
            return bind(primitive, (x, y))
        if type(x) in PYTHON_SCALARS or type(y) in PYTHON_SCALARS:
            return bind(primitive, matched(name, x, y))
        return whole(operand(f"lax.{name}", x), operand(f"lax.{name}", y))

    return _named(function, name, doc)


# ---- arithmetic --------------------------------------------------------------------------------------------------

add = _binary("add", ew.add, "x + y.")
sub = _binary("sub", ew.sub, "x - y.")
_mul = _binary("mul", ew.mul, "x y.")


def mul(x, y, *, out_dtype=None):
    """x y; in the dtype `out_dtype`, to which the operands are then converted first."""
    if out_dtype is None:
        return _mul(x, y)
    return _mul(*[ew.convert(array("mul", v), dtypes.canonical(out_dtype)) for v in (x, y)])


div = _binary("div", ew.div, "x / y; integers are divided towards zero.")
rem = _binary("rem", ew.rem, "x - y trunc(x / y), of the sign of x.")
max = _binary("max", ew.max, "The larger of x and y; nan where either is.")
min = _binary("min", ew.min, "The smaller of x and y; nan where either is.")
neg = _unary("neg", ew.neg, "-x.")
abs = _unary("abs", ew.abs, "|x|, real also for complex numbers.")
sign = _unary("sign", ew.sign, "-1, 0 or 1; x / |x| for complex numbers.")
floor = _unary("floor", ew.floor, "The largest whole number not above x.")
ceil = _unary("ceil", ew.ceil, "The smallest whole number not below x.")
_nextafter = _binary("nextafter", ew.nextafter, "The float next to x in the direction of y.")


def nextafter(x1, x2):
    """The float next to x1 in the direction of x2."""
    return _nextafter(x1, x2)


is_finite = _unary("is_finite", ew.is_finite, "Whether x is neither infinite nor nan.")


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The whole number nearest to x; halves go away from zero, or to the even neighbour."""
    return ew.round(operand("lax.round", x), rounding_method)


def clamp(min, x, max):
    """x limited to [min, max]; the bounds have the dtype of x, and its shape or none."""
    x = array("clamp", x)
    bounds = []
    for name, bound in (("min", min), ("max", max)):
        bound = operand("lax.clamp", bound)
        if not hasattr(bound, "dtype"):
            bound = match_scalar(x.aval, bound)
        if bound is None or aval_of(bound).dtype != x.dtype:
            raise TypeError(f"lax.clamp: {name} must have the dtype of x {x.aval}, got {_type_text(bound)}")
        bounds.append(bound)
    return ew.clamp(bounds[0], x, bounds[1])


def _type_text(x) -> str:
    return "a number that does not fit" if x is None else str(aval_of(x))


# ---- powers and roots --------------------------------------------------------------------------------------------

sqrt = _accurate("sqrt", powers.sqrt, "The square root.")
rsqrt = _accurate("rsqrt", powers.rsqrt, "1 / sqrt(x).")
cbrt = _accurate("cbrt", powers.cbrt, "The cube root.")
square = _unary("square", powers.square, "x times x.")


def reciprocal(x):
    """1 / x."""
    return powers.integer_pow(array("reciprocal", x), -1)


def integer_pow(x, y: int):
    """x to the power of a static int, by repeated multiplication; integers take y >= 0."""
    return powers.integer_pow(array("integer_pow", x), index_of("lax.integer_pow", "y", y))


def pow(x, y):
    """x ** y for floats and complex numbers; y has the dtype of x, or an integer one."""
    x, y = operands("lax.pow", (x, y))
    integer_exponent = type(y) is int or (hasattr(y, "dtype") and dtypes.is_integer(y.dtype))
    if integer_exponent and dtypes.is_inexact(dtypes.dtype_of(x)[0]):
        return _pow_integer(x, y)
    return _pow(x, y)


_pow = _binary("pow", tr.pow, "x ** y.")


@fused
def _pow_integer(x, y):
    x, y = as_array(x), as_array(y)
    shape = x.shape or y.shape
    return tr.pow(spread(x, shape), spread(y, shape))


# ---- exp, log, trigonometric and hyperbolic ----------------------------------------------------------------------

exp = _accurate("exp", tr.exp, "e to the power x.")
exp2 = _accurate("exp2", tr.exp2, "2 to the power x.")
expm1 = _accurate("expm1", tr.expm1, "exp(x) - 1, exact near 0.")
log = _accurate("log", tr.log, "The natural logarithm.")
log1p = _accurate("log1p", tr.log1p, "log(1 + x), exact near 0.")
logistic = _accurate("logistic", tr.logistic, "1 / (1 + exp(-x)).")
sin = _accurate("sin", tr.sin, "The sine.")
cos = _accurate("cos", tr.cos, "The cosine.")
tan = _accurate("tan", tr.tan, "The tangent.")
asin = _unary("asin", tr.asin, "The inverse of the sine.")
acos = _unary("acos", tr.acos, "The inverse of the cosine.")
atan = _unary("atan", tr.atan, "The inverse of the tangent.")
atan2 = _binary("atan2", tr.atan2, "The angle of the point (y, x), in [-pi, pi]; the first operand is y.")
sinh = _unary("sinh", tr.sinh, "The hyperbolic sine.")
cosh = _unary("cosh", tr.cosh, "The hyperbolic cosine.")
tanh = _accurate("tanh", tr.tanh, "The hyperbolic tangent.")
asinh = _unary("asinh", tr.asinh, "The inverse of the hyperbolic sine.")
acosh = _unary("acosh", tr.acosh, "The inverse of the hyperbolic cosine.")
atanh = _unary("atanh", tr.atanh, "The inverse of the hyperbolic tangent.")

# ---- special functions -------------------------------------------------------------------------------------------

erf = _unary("erf", special.erf, "The error function.")
erfc = _accurate("erfc", special.erfc, "1 - erf(x), exact for large x.")
erf_inv = _unary("erf_inv", special.erf_inv, "The inverse of the error function.")
lgamma = _unary("lgamma", special.lgamma, "log |gamma(x)|.")
digamma = _unary("digamma", special.digamma, "The derivative of log gamma(x).")
_polygamma = _binary("polygamma", special.polygamma, "The derivative of order x (a whole float) of digamma, at y.")
_zeta = _binary("zeta", special.zeta, "The Hurwitz zeta function.")
bessel_i0e = _unary("bessel_i0e", special.bessel_i0e, "exp(-|x|) times the modified Bessel function I0.")
bessel_i1e = _unary("bessel_i1e", special.bessel_i1e, "exp(-|x|) times the modified Bessel function I1.")


def polygamma(m, x):
    """The derivative of order m (a whole float) of digamma, at x."""
    return _polygamma(m, x)


def zeta(x, q):
    """The Hurwitz zeta function, the sum over k >= 0 of (k + q) ** -x."""
    return _zeta(x, q)


# ---- complex numbers ---------------------------------------------------------------------------------------------

real = _unary("real", ew.real, "The real part of complex numbers.")
imag = _unary("imag", ew.imag, "The imaginary part of complex numbers.")
complex = _binary("complex", ew.complex, "The complex number x + iy.")


def conj(x):
    """The complex conjugate; the result is complex even for floats."""
    return ew.conj(array("conj", x))


# ---- comparison and choice ---------------------------------------------------------------------------------------

eq = _binary("eq", ew.eq, "Whether x = y.")
ne = _binary("ne", ew.ne, "Whether x and y differ; true where one is nan.")
lt = _binary("lt", ew.lt, "Whether x < y.")
le = _binary("le", ew.le, "Whether x <= y.")
gt = _binary("gt", ew.gt, "Whether x > y.")
ge = _binary("ge", ew.ge, "Whether x >= y.")


def select_n(which, *cases):
    """The element of `cases[which]`; `which` is bool (two cases, false first) or int32, of their shape or a scalar."""
    if not cases:
        raise ValueError("lax.select_n expects at least one case, got none")
    return ew.select_n(array("select_n", which), *[array("select_n", c) for c in cases])


def select(pred, on_true, on_false):
    """`on_true` where `pred`, else `on_false`, which have one type; `pred` is bool, of their shape or a scalar."""
    return select_n(pred, on_false, on_true)


# ---- bits --------------------------------------------------------------------------------------------------------

bitwise_and = _binary("bitwise_and", ew.and_, "The bits that both integers (or bools) have.")
bitwise_or = _binary("bitwise_or", ew.or_, "The bits that one of the integers (or bools) has.")
bitwise_xor = _binary("bitwise_xor", ew.xor, "The bits in which integers (or bools) differ.")
bitwise_not = _unary("bitwise_not", ew.not_, "Every bit turned.")
shift_left = _binary("shift_left", bits.shift_left, "The bits of x moved up by y places.")
shift_right_logical = _binary("shift_right_logical", bits.shift_right_logical, "The bits of x moved down; zeros come in.")
shift_right_arithmetic = _binary(
    "shift_right_arithmetic", bits.shift_right_arithmetic, "The bits of x moved down; the sign stays."
)
population_count = _unary("population_count", bits.population_count, "How many bits are set.")
clz = _unary("clz", bits.clz, "How many leading bits are not set.")


@fused
def mulhi(x, y):
    """The upper half of the bits of the product of integers, which has twice as many bits as they have.

    >>> from funcml import numpy as jnp
    >>> mulhi(jnp.int32(2**30), jnp.int32(8))
    Array(2, dtype=int32)
    """
    x, y = matched("mulhi", x, y)
    dtype = aval_of(x).dtype
    if not dtypes.is_integer(dtype):
        raise TypeError(f"lax.mulhi expects integers, got {aval_of(x)} and {aval_of(y)}")
    width = dtypes.bit_width(dtype)
    if width < 64:
        wide = dtypes.int64 if dtypes.is_signed(dtype) else dtypes.uint64
        product = ew.mul(ew.convert(x, wide), ew.convert(y, wide))
        return ew.convert(bits.shift_right_arithmetic(product, width), dtype)
    high = _high_of_unsigned(ew.convert(x, dtypes.uint64), ew.convert(y, dtypes.uint64))
    if not dtypes.is_signed(dtype):
        return high
    taken = [ew.select(ew.lt(a, 0), b, ew.mul(b, 0)) for a, b in ((x, y), (y, x))]
    return ew.sub(ew.convert(high, dtype), ew.add(*taken))


# (2^32 a + b) (2^32 c + d) = 2^64 a c + 2^32 (a d + b c) + b d
def _high_of_unsigned(x, y):
    half = 2**32 - 1
    (a, b), (c, d) = [(bits.shift_right_logical(v, 32), ew.and_(v, half)) for v in (x, y)]
    ad, bc = ew.mul(a, d), ew.mul(b, c)
    carried = ew.add(bits.shift_right_logical(ew.mul(b, d), 32), ew.add(ew.and_(ad, half), ew.and_(bc, half)))
    above = ew.add(bits.shift_right_logical(ad, 32), bits.shift_right_logical(bc, 32))
    return ew.add(ew.mul(a, c), ew.add(above, bits.shift_right_logical(carried, 32)))


def bitcast_convert_type(operand, new_dtype):
    """The bits read as another dtype; a narrower one adds a last axis, a wider one takes it away."""
    return bits.bitcast_convert(array("bitcast_convert_type", operand), dtypes.canonical(new_dtype))


def reduce_precision(operand, exponent_bits: int, mantissa_bits: int):
    """Floats rounded to fewer bits of exponent and mantissa, in their own dtype."""
    return bits.reduce_precision(array("reduce_precision", operand), exponent_bits, mantissa_bits)


def convert_element_type(operand, new_dtype):
    """The operand as another dtype; from complex to real the imaginary part is dropped."""
    x = array("convert_element_type", operand)
    if new_dtype in (int, float, _PYTHON_COMPLEX):
        return ew.convert(x, dtypes.canonical(new_dtype), True)
    return ew.convert(x, dtypes.canonical(new_dtype))
