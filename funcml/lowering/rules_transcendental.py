"""StableHLO of `primitives.transcendental`."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.rules_elementwise import by_kind, chlo, full, full_operands, same_type, written
from funcml.primitives import elementwise as ew
from funcml.primitives import transcendental as tr

SAME_TYPE = {
    tr.exp: "exponential",
    tr.expm1: "exponential_minus_one",
    tr.log: "log",
    tr.log1p: "log_plus_one",
    tr.sin: "sine",
    tr.cos: "cosine",
    tr.tan: "tan",
    tr.tanh: "tanh",
    tr.atan2: "atan2",
}
for _primitive, _operation in SAME_TYPE.items():
    lowers(_primitive)(same_type(f"stablehlo.{_operation}"))

for _primitive in (tr.sinh, tr.cosh, tr.asinh, tr.acosh, tr.atanh, tr.asin, tr.acos, tr.atan):
    lowers(_primitive)(chlo(f"chlo.{_primitive.name}"))


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
    base, exponent = full_operands(emit, eqn, operands, out.shape)
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
