"""StableHLO of `primitives.transcendental`."""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.lowering import series
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.rules_elementwise import (
    by_kind,
    chlo,
    corrected,
    full,
    same_type,
    with_sign,
    written,
)
from funcml.primitives import elementwise as ew
from funcml.primitives import transcendental as tr
from funcml.primitives.powers import square

SAME_TYPE = {
    tr.exp: "exponential",
    tr.expm1: "exponential_minus_one",
    tr.log: "log",
    tr.tan: "tan",
    tr.tanh: "tanh",
    tr.atan2: "atan2",
}
for _primitive, _operation in SAME_TYPE.items():
    lowers(_primitive)(same_type(f"stablehlo.{_operation}"))


@lowers(tr.sech2_p)
@written
def _sech2(x):
    """4 e / (1 + e)^2 with e = exp(-2 |x|) <= 1"""
    e = tr.exp(ew.mul(-2.0, ew.abs(x)))
    return ew.div(ew.mul(4.0, e), square(ew.add(1.0, e)))


# ---- log1p and atanh in f64, where XLA and CHLO lose two digits


def _is_f64(dtype) -> bool:
    return dtype == dtypes.float64


def _log1p(x, elsewhere):
    """log(1 + x) = 2 atanh s with s = x / (2 + x); for |x| < 1/2, where s^2 < 1/9, by the series s + s^3 / 3 + s^5 / 5 + ..."""
    s = ew.div(x, ew.add(2.0, x))
    odd = [1 / (2 * k + 1) for k in range(20)]
    near = ew.mul(ew.mul(2.0, s), series.polynomial(odd, ew.mul(s, s), 1 / 9))
    return ew.select(ew.lt(ew.abs(x), 0.5), near, elsewhere)


_xla_log1p = same_type("stablehlo.log_plus_one")
lowers(tr.log1p)(by_kind(_is_f64, corrected(_xla_log1p, _log1p), _xla_log1p))


@written
def _atanh(x):
    """sign x log(1 + 2 |x| / (1 - |x|)) / 2"""
    size = ew.abs(x)
    return ew.mul(ew.mul(0.5, ew.sign(x)), tr.log1p(ew.div(ew.mul(2.0, size), ew.sub(1.0, size))))


# ---- inverse functions of complex numbers: what C99 says of nan, for which XLA gives numbers here and there


def _inverse(name: str):
    """nan + nan i where a part of z is nan, but for what the other part settles if it is 0; infinities are XLA's, mostly."""

    def correct(z, r):
        x, y = ew.real(z), ew.imag(z)
        nan, zero, half_pi = full(math.nan, x), full(0, x), full(math.pi / 2, x)
        without_x, without_y = ew.ne(x, x), ew.ne(y, y)
        real, imag = nan, nan
        if name in ("asin", "atanh", "acos"):
            real = ew.select(ew.eq(x, 0.0), half_pi if name == "acos" else x, nan)
        if name == "acosh":
            imag = ew.select(ew.eq(x, 0.0), half_pi, nan)
        if name in ("asinh", "atan"):
            imag = ew.select(ew.eq(y, 0.0), y, nan)
        infinite = ew.or_(ew.eq(ew.abs(x), math.inf), ew.eq(ew.abs(y), math.inf))
        unknown = ew.and_(ew.or_(without_x, without_y), ew.not_(infinite))
        if name == "atan":
            r = ew.select(without_x, ew.complex(nan, ew.mul(zero, ew.sign(y))), r)
        if name == "atanh":
            r = ew.select(without_y, ew.complex(ew.mul(zero, ew.sign(x)), nan), r)
        return ew.select(unknown, ew.complex(real, imag), r)

    return corrected(chlo(f"chlo.{name}"), correct)


# ---- inverse functions with a cut along an axis: the sign of that part tells the side, even if it is 0

for _primitive, _part, _side in (
    (tr.asin, ew.imag, 1), (tr.acos, ew.imag, -1), (tr.acosh, ew.imag, 1), (tr.asinh, ew.real, 1), (tr.atan, ew.real, 1),
    (tr.atanh, ew.imag, 1),
):
    _on_reals = chlo(f"chlo.{_primitive.name}")
    if _primitive is tr.atanh:
        _on_reals = by_kind(_is_f64, _atanh, _on_reals)
    lowers(_primitive)(by_kind(dtypes.is_complex, with_sign(_inverse(_primitive.name), _part, _side), _on_reals))

# ---- sinh, cosh, sin, cos


def _halves(x):
    """exp(|x|) / 2 and exp(-|x|) / 2, the first without overflow before its time."""
    e = tr.exp(ew.mul(0.5, ew.abs(x)))
    return ew.mul(ew.mul(0.5, e), e), ew.div(ew.div(0.5, e), e)


def _sinh(x, small):
    """CHLO loses digits for large x, where it adds log(1/2) to x."""
    up, down = _halves(x)
    large = ew.mul(ew.sign(x), ew.sub(up, down))
    return ew.select(ew.lt(ew.abs(x), 1.0), small, large)


@written
def _cosh(x):
    return ew.add(*_halves(x))


def _times(factor, x):
    """factor x, where a factor of 0 counts more than an infinite x."""
    return ew.select(ew.eq(factor, 0.0), factor, ew.mul(factor, x))


@written
def _complex_sinh(z):
    """sinh(x + iy) = sinh x cos y + i cosh x sin y"""
    x, y = ew.real(z), ew.imag(z)
    return ew.complex(_times(tr.cos(y), tr.sinh(x)), _times(tr.sin(y), tr.cosh(x)))


@written
def _complex_cosh(z):
    """cosh(x + iy) = cosh x cos y + i sinh x sin y"""
    x, y = ew.real(z), ew.imag(z)
    return ew.complex(_times(tr.cos(y), tr.cosh(x)), _times(tr.sin(y), tr.sinh(x)))


@written
def _complex_sin(z):
    """sin(x + iy) = sin x cosh y + i cos x sinh y"""
    x, y = ew.real(z), ew.imag(z)
    return ew.complex(_times(tr.sin(x), tr.cosh(y)), _times(tr.cos(x), tr.sinh(y)))


@written
def _complex_cos(z):
    """cos(x + iy) = cos x cosh y - i sin x sinh y"""
    x, y = ew.real(z), ew.imag(z)
    return ew.complex(_times(tr.cos(x), tr.cosh(y)), ew.neg(_times(tr.sin(x), tr.sinh(y))))


lowers(tr.sinh)(by_kind(dtypes.is_complex, _complex_sinh, corrected(chlo("chlo.sinh"), _sinh)))
lowers(tr.cosh)(by_kind(dtypes.is_complex, _complex_cosh, _cosh))
lowers(tr.sin)(by_kind(dtypes.is_complex, _complex_sin, same_type("stablehlo.sine")))
lowers(tr.cos)(by_kind(dtypes.is_complex, _complex_cos, same_type("stablehlo.cosine")))

# ---- exp2, logistic, pow


@lowers(tr.exp2)
@written
def _exp2(x):
    """2^x: `pow` rounds once, where exp(x log 2) would round x log 2 first."""
    return tr.pow(full(2, x), x)


@written
def _complex_logistic(z):
    """1 / (1 + e) for Re z >= 0, e / (1 + e) for Re z < 0, where e = exp(-z) or exp(z) does not overflow."""
    right = ew.ge(ew.real(z), 0.0)
    e = tr.exp(ew.select(right, ew.neg(z), z))
    return ew.div(ew.select(right, full(1, z), e), ew.add(1.0, e))


lowers(tr.logistic)(by_kind(dtypes.is_complex, _complex_logistic, same_type("stablehlo.logistic")))


@lowers(tr.pow)
def _pow(emit, eqn, operands):
    x, y = eqn.invars
    out = eqn.outvars[0].aval
    base, exponent = operands
    if y.aval.dtype != out.dtype:
        exponent = emit.convert(exponent, shaped(out.shape, y.aval.dtype), out)
    t = tensor_type(out)
    power = emit.op(f"stablehlo.power {base}, {exponent} : {t}")
    return _complex_pow(emit, power, exponent, out) if dtypes.is_complex(out.dtype) else power


def _complex_pow(emit, power, exponent, aval):
    """XLA finds x^y as exp(y log x); where y = 0 it is 1 even if log x is not finite."""
    t, mask = tensor_type(aval), tensor_type(aval.update(dtype=dtypes.bool_))
    at_zero = emit.op(f"stablehlo.compare EQ, {exponent}, {emit.constant(0, aval)}, FLOAT : ({t}, {t}) -> {mask}")
    return emit.op(f"stablehlo.select {at_zero}, {emit.constant(1, aval)}, {power} : {mask}, {t}")
