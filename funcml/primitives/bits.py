"""Operations on the bits of each element; only `reduce_precision` has a derivative: it is taken as linear.

    population_count, clz, shifts : integers -> integers
    bitcast_convert               : the same bits as another dtype; the last axis absorbs a change of width
    reduce_precision              : floats rounded to fewer bits, of the same dtype
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import dtype_text, shaped
from funcml.core.ir import Primitive
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import moveaxis
from funcml.primitives.rows import FLOAT, INTEGER, binary, unary

__all__ = [
    "bitcast_convert",
    "bitcast_convert_p",
    "clz",
    "population_count",
    "reduce_precision",
    "reduce_precision_p",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
]

population_count = unary("population_count", INTEGER)
clz = unary("clz", INTEGER)
#: a shift by the width or more gives 0; the arithmetic one gives copies of the sign bit
shift_left = binary("shift_left", INTEGER)
shift_right_logical = binary("shift_right_logical", INTEGER)
shift_right_arithmetic = binary("shift_right_arithmetic", INTEGER)


class BitcastConvert(Primitive):
    """x [*shape] -> [*shape], or [*shape, n] when an element of x holds n of the new ones, or back."""

    def type_rule(self, x, *, dtype):
        if any(dtypes.is_key(d) or dtypes.is_bool(d) != dtypes.is_bool(x.dtype) for d in (x.dtype, dtype)):
            raise TypeError(f"bitcast_convert: {x} and {dtype_text(dtype)} do not share a layout of bits")
        if dtypes.is_complex(dtype) != dtypes.is_complex(x.dtype):
            raise TypeError(f"bitcast_convert: {x} cannot become {dtype_text(dtype)}; cast real and imag")
        old, new = dtypes.bit_width(x.dtype), dtypes.bit_width(dtype)
        if new == old:
            return shaped(x.shape, dtype)
        if new < old:
            return shaped((*x.shape, old // new), dtype)
        if not x.shape or x.shape[-1] != new // old:
            raise TypeError(
                f"bitcast_convert: {new // old} elements of {x} make one {dtype_text(dtype)}, so the last axis "
                f"must have that length"
            )
        return shaped(x.shape[:-1], dtype)

    def jvp_rule(self, primals, tangents, *, dtype):
        out = bind(self, primals, {"dtype": dtype})
        return out, Zero(aval_of(out).update(dtype=dtypes.tangent_dtype(dtype)))

    def batch_rule(self, axis, operands, dims, *, dtype):
        return bitcast_convert(moveaxis(operands[0], dims[0], 0), dtype), 0


bitcast_convert_p = BitcastConvert("bitcast_convert")


def bitcast_convert(x, dtype):
    """The bits of `x` read as `dtype`.

    A narrower dtype adds a last axis with the pieces of each element, lowest bits first; a wider one takes it away.
    """
    return x if aval_of(x).dtype == dtype else bind(bitcast_convert_p, (x,), {"dtype": dtype})


reduce_precision_p = unary(
    "reduce_precision",
    FLOAT,
    lambda t, ans, x, **bits: reduce_precision(t, **bits),
    lambda ct, x, **bits: reduce_precision(ct, **bits),
)


def reduce_precision(x, exponent_bits: int, mantissa_bits: int):
    """`x`, in its own dtype, rounded to what so many exponent and mantissa bits hold; its tangent is rounded too."""
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: expected exponent_bits >= 1 and mantissa_bits >= 0, "
            f"got {exponent_bits} and {mantissa_bits}"
        )
    return bind(reduce_precision_p, (x,), {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits})
