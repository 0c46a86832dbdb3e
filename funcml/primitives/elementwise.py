"""Arithmetic, complex parts, comparison, logic, selection, rounding and conversion, element by element.

    x, y -> x + y, x * y, x / y, x % y, -x          complex numbers: real, imag, conj, |x|, sign
    x, y -> x < y, ...                              bits: and, or, xor, not
    which, cases -> cases[which]                    max, min, clamp and |x| choose by value

What chooses by value hands its tangent through `taken`: in the lanes not taken the derivative is structurally
zero, so that an infinite derivative further up does not turn it into nan. Ties are shared: the weights sum to 1.
"""

from __future__ import annotations

import enum

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, expand_dims
from funcml.primitives.batching import spread_at_front
from funcml.primitives.rows import (
    ALL,
    ANY,
    BITS,
    COMPLEX,
    FLOAT,
    NUMERIC,
    PYTHON_SCALARS,
    REAL,
    Accepts,
    Elementwise,
    add,
    binary,
    is_constant,
    list_of,
    ternary,
    unary,
)
from funcml.primitives.tangents import filled

# ---- arithmetic --------------------------------------------------------------------------------------------

#: the sum of two tangents or cotangents
add_any = add
#: sub: z' = x' - y'
sub = binary(
    "sub",
    NUMERIC,
    (lambda t, ans, x, y: t, lambda t, ans, x, y: neg(t)),
    (lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
)
neg = unary("neg", NUMERIC, lambda t, ans, x: neg(t), lambda ct, x: neg(ct))


class Product(Elementwise):
    """z = x y, where x and y may be one value."""

    # z' = x' y + x y';  of x x: u + u with u = x' x
    def jvp_rule(self, primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        if x is not y or tx is not ty or type(tx) is Zero:
            return super().jvp_rule(primals, tangents)
        half = mul(tx, x)
        return bind(self, primals), add(half, half)


class Quotient(Elementwise):
    """z = x / y; integers are divided towards zero."""

    # z' = (x' - z y') / y. XLA would make x / (y y) of (x / y) / y, which leaves the range of floats where y is small or large.
    def jvp_rule(self, primals, tangents):
        tx, ty = tangents
        if type(tx) is Zero or type(ty) is Zero:
            return super().jvp_rule(primals, tangents)
        ans = bind(self, primals)
        return ans, div(sub(tx, mul(ty, ans)), primals[1])


#: mul: z' = x' y + x y'
mul = Product(
    "mul",
    2,
    NUMERIC,
    tangents=(lambda t, ans, x, y: mul(t, y), lambda t, ans, x, y: mul(x, t)),
    transposes=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
)
#: div: z' = x' / y - (y' z) / y
div = Quotient(
    "div",
    2,
    NUMERIC,
    tangents=(lambda t, ans, x, y: div(t, y), lambda t, ans, x, y: neg(div(mul(t, ans), y))),
    transposes=(lambda ct, x, y: div(ct, y), None),
)
#: rem: z = x - n y with n = trunc(x / y), of the sign of x;  z' = x' - n y'.
#: n is found as (x - z) / y, which is whole but for rounding; trunc(x / y) may be one off.
rem = binary(
    "rem",
    Accepts("real numbers", lambda d: dtypes.is_integer(d) or dtypes.is_float(d)),
    (lambda t, ans, x, y: t, lambda t, ans, x, y: neg(mul(t, _nearest(div(sub(x, ans), y))))),
)

# ---- complex numbers ---------------------------------------------------------------------------------------
# A function of complex numbers is differentiated as one of their parts; transposition does not conjugate:
# the cotangent of z = x + iy is ct_x - i ct_y.

#: real: y' = Re z'
real = unary(
    "real", COMPLEX, lambda t, ans, z: real(t), lambda ct, z: complex(ct, 0.0), result=dtypes.real_dtype
)
#: imag: y' = Im z'
imag = unary(
    "imag", COMPLEX, lambda t, ans, z: imag(t), lambda ct, z: complex(0.0, neg(ct)), result=dtypes.real_dtype
)
#: complex: z = x + iy
complex = binary(
    "complex",
    Accepts("f32 or f64 operands", lambda d: d in (dtypes.float32, dtypes.float64)),
    (lambda t, ans, x, y: complex(t, 0.0), lambda t, ans, x, y: complex(0.0, t)),
    (lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))),
    result=dtypes.complex_dtype,
)
conj_p = unary("conj", COMPLEX, lambda t, ans, z: conj(t), lambda ct, z: conj(ct))


def conj(x):
    """The complex conjugate of `x`; the result is complex even for floats (f32 or f64)."""
    return conj_p(x) if dtypes.is_complex(aval_of(x).dtype) else complex(x, 0.0)


# ---- comparison --------------------------------------------------------------------------------------------


def _to_bool(dtype):
    return dtypes.bool_


#: for complex numbers too; x = x is false for nan
eq = binary("eq", ALL, result=_to_bool)
ne = binary("ne", ALL, result=_to_bool)
lt = binary("lt", REAL, result=_to_bool)
le = binary("le", REAL, result=_to_bool)
gt = binary("gt", REAL, result=_to_bool)
ge = binary("ge", REAL, result=_to_bool)
#: comparison in the total order -nan < -inf < ... < -0 < 0 < ... < inf < nan of IEEE 754
eq_to = binary("eq_to", REAL, result=_to_bool)
lt_to = binary("lt_to", REAL, result=_to_bool)
le_to = binary("le_to", REAL, result=_to_bool)
is_finite = unary("is_finite", FLOAT, result=_to_bool)

# ---- logic on bits -----------------------------------------------------------------------------------------

and_ = binary("and", BITS)
or_ = binary("or", BITS)
xor = binary("xor", BITS)
not_ = unary("not", BITS)

# ---- selection ---------------------------------------------------------------------------------------------


class SelectN(Primitive):
    """select_n(which, *cases): the elements of `cases[which]`; which is bool or i32, a scalar or of their shape."""

    makes_masks = True

    def type_rule(self, which, *cases):
        first = cases[0]
        if any(c.dtype != first.dtype or c.shape != first.shape for c in cases):
            raise TypeError(f"select_n expects cases of one type, got {list_of(cases)}")
        if which.shape not in ((), first.shape):
            raise TypeError(f"select_n: the selector {which} must be a scalar or have the shape of {first}")
        limit = 2 if dtypes.is_bool(which.dtype) else None
        if limit is None and which.dtype != np.dtype("int32"):
            raise TypeError(f"select_n: the selector must be bool or i32, got {which}")
        if limit is not None and len(cases) > limit:
            raise TypeError(f"select_n: a bool selector chooses between 2 cases, got {len(cases)}; use i32")
        return shaped(first.shape, first.dtype, all(c.weak_type for c in cases))

    # out' = select(which, *cases')
    def jvp_rule(self, primals, tangents):
        which, *cases = primals
        out = bind(self, primals)
        if all(type(t) is Zero for t in tangents[1:]):
            return out, Zero(tangents[1].aval)
        some = next(aval_of(t) for t in tangents[1:] if type(t) is not Zero)
        moved = [filled(some, 0) if type(t) is Zero else t for t in tangents[1:]]
        return out, bind(self, (which, *moved))

    # ct_i = ct where i is selected, structurally zero elsewhere
    def transpose_rule(self, ct, which, *cases):
        zero = filled(aval_of(ct), 0)
        cts = [None]
        for i, case in enumerate(cases):
            chosen = [ct if j == i else zero for j in range(len(cases))]
            cts.append(bind(self, (which, *chosen)) if is_undefined(case) else None)
        return cts

    def transpose_mask(self, mask, index, operands):
        which, *cases = operands
        shape = aval_of(cases[0]).shape
        if dtypes.is_bool(aval_of(which).dtype):
            chosen = which if index == 2 else not_(which)
        else:
            chosen = eq(which, np.int32(index - 1))
        chosen = broadcast_in_dim(chosen, shape, tuple(range(aval_of(chosen).ndim)))
        return chosen if mask is None else and_(mask, chosen)

    def batch_rule(self, axis, operands, dims):
        which, *cases = operands
        spread = [spread_at_front(axis, c, d) for c, d in zip(cases, dims[1:], strict=True)]
        if dims[0] is None and aval_of(which).ndim == 0:
            return bind(self, (which, *spread)), 0
        which = spread_at_front(axis, which, dims[0])
        missing = aval_of(spread[0]).ndim - aval_of(which).ndim
        if missing:
            axes = tuple(range(1, 1 + missing))
            shape = aval_of(spread[0]).shape
            which = broadcast_in_dim(expand_dims(which, axes), shape, tuple(range(len(shape))))
        return bind(self, (which, *spread)), 0


select_n_p = SelectN("select_n")


def select_n(which, *cases):
    """`cases[which]` element by element; `which` is bool (two cases: false first) or i32."""
    return bind(select_n_p, (which, *cases))


def select(condition, on_true, on_false):
    """`on_true` where `condition`, else `on_false`; all of one shape (`condition` may be a scalar)."""
    return bind(select_n_p, (condition, on_false, on_true))


def taken(condition, t):
    """`t` where `condition`, structurally zero elsewhere."""
    return select(condition, t, filled(aval_of(t), 0))


# ---- choice by value ---------------------------------------------------------------------------------------


def _share(t, ans, mine, other):
    """What of the tangent of `mine` passes to ans = max or min of `mine` and `other`: all, half (a tie), nothing."""
    weight = select(eq(mine, other), filled(aval_of(t), 0.5), filled(aval_of(t), 1.0))
    return mul(taken(eq(mine, ans), t), weight)


#: max, min: z' = x' where z = x, y' where z = y, their mean where both. nan wins; complex numbers are ordered
#: by real part, then imaginary part.
max = binary(
    "max",
    ANY,
    (lambda t, ans, x, y: _share(t, ans, x, y), lambda t, ans, x, y: _share(t, ans, y, x)),
)
min = binary(
    "min",
    ANY,
    (lambda t, ans, x, y: _share(t, ans, x, y), lambda t, ans, x, y: _share(t, ans, y, x)),
)

#: clamp(lo, x, hi) = min(m, hi) with m = max(x, lo), and has the derivative of that
clamp_p = ternary(
    "clamp",
    REAL,
    (
        lambda t, ans, lo, x, hi: _share(_share(t, max(x, lo), lo, x), ans, max(x, lo), hi),
        lambda t, ans, lo, x, hi: _share(_share(t, max(x, lo), x, lo), ans, max(x, lo), hi),
        lambda t, ans, lo, x, hi: _share(t, ans, hi, max(x, lo)),
    ),
)


def clamp(min, x, max):
    """`x` limited to [min, max]; the bounds are scalars or have the shape of `x`. Where min > max, max wins."""
    shape = aval_of(x).shape
    bounds = []
    for name, bound in (("min", min), ("max", max)):
        aval = aval_of(bound)
        if aval.shape not in ((), shape):
            raise TypeError(f"clamp: {name} must be a scalar or have the shape of x {aval_of(x)}, got {aval}")
        bounds.append(bound if is_constant(bound) else broadcast_in_dim(bound, shape))
    return clamp_p(bounds[0], x, bounds[1])


def _abs_tangent(t, ans, x):
    direction = mul(taken(ne(x, 0), t), conj_p(sign(x)) if dtypes.is_complex(aval_of(x).dtype) else sign(x))
    return real(direction) if dtypes.is_complex(aval_of(x).dtype) else direction


def _sign_tangent(t, ans, z):
    if not dtypes.is_complex(aval_of(z).dtype):
        return Zero(aval_of(t))
    size = abs(z)
    at_zero = eq(size, 0)
    across = imag(mul(conj_p(ans), taken(not_(at_zero), t)))
    turn = div(across, select(at_zero, filled(aval_of(size), 1), size))
    return mul(ans, complex(0.0, turn))


#: abs: y' = Re(conj(sign z) z'), and 0 at 0; the absolute value of a complex number is real
abs = unary("abs", NUMERIC, _abs_tangent, result=dtypes.real_dtype)


#: sign: z / |z|, and 0 at 0;  s' = i s Im(conj(s) z') / |z|, which is 0 for real numbers
sign = unary("sign", NUMERIC, _sign_tangent)

# ---- rounding: no derivative, that is, zero ----------------------------------------------------------------

floor = unary("floor", FLOAT)
ceil = unary("ceil", FLOAT)
round_p = unary("round", FLOAT)


class RoundingMethod(enum.IntEnum):
    """Where `round` sends halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The integer nearest to `x`, as a float; halves go away from zero, or to the even neighbour."""
    return bind(round_p, (x,), {"rounding_method": RoundingMethod(rounding_method)})


def _nearest(x):
    return round(x, RoundingMethod.TO_NEAREST_EVEN)


#: nextafter: the float next to x in the direction of y;  z' = x'
nextafter = binary("nextafter", FLOAT, (lambda t, ans, x, y: t, None), (lambda ct, x, y: ct, None))

# ---- conversion --------------------------------------------------------------------------------------------


class Convert(Primitive):
    """x as another dtype. Linear between inexact dtypes; everything else has no derivative."""

    elementwise = True

    def type_rule(self, x, *, dtype, weak_type):
        if dtypes.is_key(x.dtype) or dtypes.is_key(dtype):
            raise TypeError(f"convert of {x}: keys are no numbers; use random.key_data, random.wrap_key_data")
        return shaped(x.shape, dtype, weak_type)

    def jvp_rule(self, primals, tangents, *, dtype, weak_type):
        (x,), (t,) = primals, tangents
        out = convert(x, dtype, weak_type)
        if type(t) is Zero or not dtypes.is_inexact(dtype):
            return out, Zero(aval_of(out).update(dtype=dtypes.tangent_dtype(dtype)))
        return out, convert(t, dtype, weak_type)

    def transpose_rule(self, ct, x, *, dtype, weak_type):
        return [convert(ct, x.aval.dtype, x.aval.weak_type)]

    def transpose_mask(self, mask, index, operands, **params):
        return mask

    def batch_rule(self, axis, operands, dims, **params):
        return bind(self, operands, params), dims[0]


convert_p = Convert("convert")


def convert(x, dtype, weak_type: bool = False):
    """`x` as `dtype` (an `np.dtype`); complex to real drops the imaginary part. Nothing is recorded for no change."""
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type and type(x) not in PYTHON_SCALARS:
        return x
    return bind(convert_p, (x,), {"dtype": dtype, "weak_type": weak_type})
