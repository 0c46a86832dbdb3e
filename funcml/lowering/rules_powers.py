"""StableHLO of `primitives.powers`."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.rules_elementwise import by_kind, same_type, with_sign
from funcml.primitives import elementwise as ew
from funcml.primitives import powers

_rsqrt = same_type("stablehlo.rsqrt")
lowers(powers.rsqrt)(by_kind(dtypes.is_complex, with_sign(_rsqrt, ew.imag, -1), _rsqrt))
lowers(powers.cbrt)(same_type("stablehlo.cbrt"))


@lowers(powers.square)
def _square(emit, eqn, operands):
    return emit.op(f"stablehlo.multiply {operands[0]}, {operands[0]} : {tensor_type(eqn.outvars[0].aval)}")


# dtype -> (bits of the mantissa, exponent of the smallest subnormal)
_SUBNORMAL = {dtypes.float32: (23, -149), dtypes.float64: (52, -1074)}


def _real_sqrt(emit, eqn, operands):
    out = eqn.outvars[0].aval
    root = same_type("stablehlo.sqrt")(emit, eqn, operands)
    if emit.platform == "cpu" and out.dtype in _SUBNORMAL:
        return _with_subnormals(emit, operands[0], root, out)
    return root


def _with_subnormals(emit, x, root, aval):
    """XLA:CPU takes subnormal numbers for 0. Such a number is n 2^e, where n is its bits as an integer, and its root is
    sqrt(n) 2^(e/2); for an odd e, sqrt(2n) 2^((e-1)/2).
    """
    mantissa, exponent = _SUBNORMAL[aval.dtype]
    odd = exponent % 2
    bits = shaped(aval.shape, dtypes.int32 if aval.dtype == dtypes.float32 else dtypes.int64)
    mask, t, b = tensor_type(aval.update(dtype=dtypes.bool_)), tensor_type(aval), tensor_type(bits)
    n = emit.op(f"stablehlo.bitcast_convert {x} : ({t}) -> {b}")
    positive = emit.op(f"stablehlo.compare GT, {n}, {emit.constant(0, bits)}, SIGNED : ({b}, {b}) -> {mask}")
    limit = emit.constant(1 << mantissa, bits)
    small = emit.op(f"stablehlo.compare LT, {n}, {limit}, SIGNED : ({b}, {b}) -> {mask}")
    subnormal = emit.op(f"stablehlo.and {positive}, {small} : {mask}")
    value = emit.convert(n, bits, aval)
    value = emit.op(f"stablehlo.multiply {value}, {emit.constant(2.0**odd, aval)} : {t}")
    value = emit.op(f"stablehlo.sqrt {value} : {t}")
    value = emit.op(f"stablehlo.multiply {value}, {emit.constant(2.0 ** ((exponent - odd) // 2), aval)} : {t}")
    return emit.op(f"stablehlo.select {subnormal}, {value}, {root} : {mask}, {t}")


lowers(powers.sqrt)(by_kind(dtypes.is_complex, with_sign(same_type("stablehlo.sqrt"), ew.imag), _real_sqrt))


@lowers(powers.integer_pow_p)
def _integer_pow(emit, eqn, operands):
    """x^n by squaring: x^n is the product of x^(2^k) over the binary digits of n; a negative n gives the inverse."""
    out = eqn.outvars[0].aval
    n, t = eqn.params["y"], tensor_type(out)
    power, product, rest = operands[0], None, abs(n)
    while rest:
        if rest & 1:
            product = power if product is None else emit.op(f"stablehlo.multiply {product}, {power} : {t}")
        rest >>= 1
        if rest:
            power = emit.op(f"stablehlo.multiply {power}, {power} : {t}")
    return product if n > 0 else emit.op(f"stablehlo.divide {emit.constant(1, out)}, {product} : {t}")
