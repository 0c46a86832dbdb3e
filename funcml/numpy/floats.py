"""What floats are made of: signs, exponents, mantissas, neighbours; and which are nan or infinite."""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.lowering.execute import fused
from funcml.numpy.arguments import no_out
from funcml.numpy.promotion import as_array, broadcast_shapes, exact, operand, spread, to_inexact
from funcml.numpy.rows import binary, fill, unary
from funcml.primitives import bits
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim


def _dtype(x):
    return aval_of(x).dtype


def _is_complex(x) -> bool:
    return dtypes.is_complex(_dtype(x))


def _is_float(x) -> bool:
    return dtypes.is_float(_dtype(x))


# ---- signs, exponents and neighbours of floats -------------------------------------------------------------------

_INTEGER_OF_WIDTH = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def _bits_of(x):
    return bits.bitcast_convert(x, _INTEGER_OF_WIDTH[dtypes.bit_width(_dtype(x))])


def _signbit(x):
    if _is_complex(x):
        raise TypeError(f"signbit expects real numbers, got {aval_of(x)}")
    if _is_float(x):
        return ew.lt(_bits_of(ew.convert(x, _dtype(x))), 0)
    return ew.lt(x, 0) if dtypes.is_signed(_dtype(x)) else _false(x)


signbit = unary("signbit", _signbit, "Whether x has a minus sign; true for -0.0.")
copysign = binary(
    "copysign",
    lambda x, y: ew.select(_signbit(y), ew.neg(ew.abs(x)), ew.abs(x)),
    "|x| with the sign of y.",
    inexact=True,
)
nextafter = binary("nextafter", ew.nextafter, "The float next to x in the direction of y.", inexact=True)
heaviside = binary(
    "heaviside",
    lambda x, y: ew.select(
        ew.eq(x, 0), y, ew.select(ew.ne(x, x), x, ew.convert(ew.gt(x, 0), _dtype(x)))
    ),
    "0 where x < 0, y where x = 0, 1 where x > 0.",
    inexact=True,
)


def _layout(dtype):
    """(bits of the mantissa, bias of the exponent) of a float dtype."""
    return int(dtypes.finfo(dtype).nmant), 1 - int(dtypes.finfo(dtype).minexp)


def _power_of_two(k, dtype):
    """2^k as a normal number, from its bits; k integers of the width of `dtype`."""
    mantissa, bias = _layout(dtype)
    return bits.bitcast_convert(bits.shift_left(ew.add(k, bias), mantissa), dtype)


# x 2^n = x 2^q 2^q 2^q 2^(n - 3q), q = n / 4: no factor overflows before the product does.
def _ldexp(x, n):
    dtype = _dtype(x)
    _, bias = _layout(dtype)
    n = ew.clamp(-4 * bias + 8, n, 4 * bias - 8)
    quarter = bits.shift_right_arithmetic(n, 2)
    factor, rest = _power_of_two(quarter, dtype), _power_of_two(ew.sub(n, ew.mul(quarter, 3)), dtype)
    return ew.mul(ew.mul(ew.mul(ew.mul(x, factor), factor), factor), rest)


def _wide(x):
    """A narrow float as float32."""
    return ew.convert(x, dtypes.float32) if dtypes.bit_width(_dtype(x)) < 32 else x


# Of a number with the exponent field E and m bits of mantissa the last bit counts 2^(E - bias - m): as a float, the field E - m,
# or, where that is below 1, the bit E - 1 alone. All is done on bits, since arithmetic may take subnormal numbers for 0.
def _spacing(x):
    if _is_complex(x):
        raise TypeError(f"spacing expects real numbers, got {aval_of(x)}")
    dtype = _dtype(x)
    mantissa, bias = _layout(dtype)
    code = _bits_of(ew.convert(x, dtype))
    size = ew.and_(code, dtypes.iinfo(_dtype(code)).max)
    field = bits.shift_right_logical(size, mantissa)
    last = ew.sub(field, mantissa)
    subnormal = bits.shift_left(fill(size, 1), ew.max(ew.min(ew.sub(field, 1), fill(field, mantissa)), 0))
    found = ew.select(ew.gt(last, 0), bits.shift_left(ew.max(last, 0), mantissa), subnormal)
    infinite = (2 * bias + 1) << mantissa
    found = ew.select(ew.eq(size, infinite - 1), fill(found, infinite), found)
    found = ew.select(ew.ge(size, infinite), fill(found, infinite + 1), found)
    negative = ew.and_(ew.lt(code, 0), ew.gt(size, 0))
    return bits.bitcast_convert(ew.select(negative, ew.or_(found, fill(found, dtypes.iinfo(_dtype(code)).min)), found), dtype)


spacing = unary(
    "spacing", _spacing, "The distance from x to the float next to it that is further from 0, with the sign of x.", inexact=True
)


def ldexp(x1, x2, /):
    """x1 times 2 ** x2; x2 are integers."""
    return _ldexp_of(operand("ldexp", x1), operand("ldexp", x2))


@fused
def _ldexp_of(x, n):
    if not (dtypes.is_integer(dtypes.dtype_of(n)[0]) or dtypes.is_bool(dtypes.dtype_of(n)[0])):
        raise TypeError(f"ldexp expects integers as x2, got {aval_of(n)}")
    x = to_inexact("ldexp", x)
    dtype = _dtype(x)
    if _is_complex(x):
        raise TypeError(f"ldexp expects real numbers as x1, got {aval_of(x)}")
    shape = broadcast_shapes(aval_of(x).shape, aval_of(n).shape)
    x, n = spread(_wide(as_array(x)), shape), spread(as_array(n), shape)
    return ew.convert(_ldexp(x, ew.convert(n, _INTEGER_OF_WIDTH[dtypes.bit_width(_dtype(x))])), dtype)


def frexp(x, /):
    """Mantissa m and exponent n with x = m 2 ** n and 1/2 <= |m| < 1; m = x and n = 0 for 0, inf and nan."""
    return _frexp(operand("frexp", x))


@fused
def _frexp(x):
    x = to_inexact("frexp", x)
    dtype = _dtype(x)
    if _is_complex(x):
        raise TypeError(f"frexp expects real numbers, got {aval_of(x)}")
    x = _wide(ew.convert(x, dtype))
    mantissa, bias = _layout(_dtype(x))
    field = ew.and_(bits.shift_right_logical(_bits_of(x), mantissa), 2 * bias + 1)
    special = ew.or_(ew.eq(field, 2 * bias + 1), ew.eq(x, 0))
    n = ew.select(special, fill(field, 0), ew.sub(field, bias - 1))
    return ew.convert(_ldexp(x, ew.neg(n)), dtype), ew.convert(n, dtypes.int32)


def nan_to_num(x, copy: bool = True, nan=0.0, posinf=None, neginf=None):
    """`x` with nan replaced by `nan`, and the infinities by the largest floats or by `posinf` and `neginf`."""
    return _nan_to_num(operand("nan_to_num", x), exact(nan), exact(posinf), exact(neginf))


@fused
def _nan_to_num(x, nan, posinf, neginf):
    dtype = _dtype(x)
    if not dtypes.is_inexact(dtype):
        return as_array(x)
    if _is_complex(x):
        return ew.complex(_nan_to_num(ew.real(x), nan, posinf, neginf), _nan_to_num(ew.imag(x), nan, posinf, neginf))
    limits = dtypes.finfo(dtype)
    x = ew.convert(x, dtype)
    for place, value in (
        (ew.ne(x, x), nan),
        (ew.eq(x, math.inf), dtype.type(limits.max) if posinf is None else posinf),
        (ew.eq(x, -math.inf), dtype.type(limits.min) if neginf is None else neginf),
    ):
        x = ew.select(place, spread(ew.convert(as_array(value), dtype), aval_of(x).shape), x)
    return x


# ---- classes of floats -------------------------------------------------------------------------------------------


def _false(x):
    return broadcast_in_dim(np.False_, aval_of(x).shape) if aval_of(x).ndim else as_array(np.False_)


def _isinf(x):
    if _is_complex(x):
        return ew.or_(_isinf(ew.real(x)), _isinf(ew.imag(x)))
    return ew.eq(ew.abs(x), math.inf) if _is_float(x) else _false(x)


def _isfinite(x):
    if _is_complex(x):
        return ew.and_(ew.is_finite(ew.real(x)), ew.is_finite(ew.imag(x)))
    return ew.is_finite(x) if _is_float(x) else ew.not_(_false(x))


isnan = unary("isnan", lambda x: ew.ne(x, x) if dtypes.is_inexact(_dtype(x)) else _false(x), "Whether x is nan.")
isinf = unary("isinf", _isinf, "Whether x is inf or -inf.")
isfinite = unary("isfinite", _isfinite, "Whether x is neither infinite nor nan.")


def isposinf(x, /, out=None):
    """Whether x is inf."""
    no_out("isposinf", out)
    return _is_value(operand("isposinf", x), math.inf)


def isneginf(x, /, out=None):
    """Whether x is -inf."""
    no_out("isneginf", out)
    return _is_value(operand("isneginf", x), -math.inf)


@fused(static=("value",))
def _is_value(x, value):
    if _is_complex(x):
        raise TypeError(f"isposinf and isneginf expect real numbers, got {aval_of(x)}")
    return ew.eq(x, value) if _is_float(x) else _false(x)


