"""StableHLO of `primitives.bits`."""

from __future__ import annotations

from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.rules_elementwise import same_type
from funcml.primitives import bits

SAME_TYPE = {
    bits.population_count: "popcnt",
    bits.clz: "count_leading_zeros",
    bits.shift_left: "shift_left",
    bits.shift_right_logical: "shift_right_logical",
    bits.shift_right_arithmetic: "shift_right_arithmetic",
}
for _primitive, _operation in SAME_TYPE.items():
    lowers(_primitive)(same_type(f"stablehlo.{_operation}"))


@lowers(bits.bitcast_convert_p)
def _bitcast_convert(emit, eqn, operands):
    (x,), (out,) = eqn.invars, eqn.outvars
    return emit.op(f"stablehlo.bitcast_convert {operands[0]} : ({tensor_type(x.aval)}) -> {tensor_type(out.aval)}")


@lowers(bits.reduce_precision_p)
def _reduce_precision(emit, eqn, operands):
    form = f"e{eqn.params['exponent_bits']}m{eqn.params['mantissa_bits']}"
    return emit.op(f"stablehlo.reduce_precision {operands[0]}, format = {form} : {tensor_type(eqn.outvars[0].aval)}")
