"""What equations cost and values weigh, by their types alone: enough to tell a matrix product from a sum.

    bytes_of   : aval -> bytes
    operations : Eqn  -> arithmetic operations
    is_cheap   : Eqn  -> whether XLA fuses it into what uses it

An estimate to choose by, not a prediction of time.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.ir import Eqn, Jaxpr, Primitive, memoised, sub_programs
from funcml.primitives import bits, elementwise, polar, powers, transcendental
from funcml.primitives.axes import Reduction, broadcast_in_dim_p, reshape_p, transpose_p
from funcml.primitives.contraction import dot_general_p
from funcml.primitives.convolution import conv_general_dilated_p
from funcml.primitives.identities import copy_p, name_p, stop_gradient
from funcml.primitives.matrices import MatrixPrimitive
from funcml.primitives.shaping import iota_p
from funcml.primitives.special import erf, erfc

__all__ = ["OPERATIONS_PER_BYTE", "bytes_of", "is_cheap", "operations"]

#: how many operations a processor does in the time in which it writes a byte and reads it again
OPERATIONS_PER_BYTE = 20
_PER_FUNCTION = 10  # operations in exp, tanh and their like
_PER_SERIES = 200  # in a function that is computed by series and fractions
_STEPS_OF_A_LOOP = 32  # where the number is not known


def _primitives_of(module) -> frozenset[Primitive]:
    return frozenset(x for x in vars(module).values() if isinstance(x, Primitive))


_ARITHMETIC = _primitives_of(elementwise) | _primitives_of(bits) | {copy_p, name_p, polar.square, stop_gradient}
_FUNCTIONS = (_primitives_of(transcendental) | _primitives_of(polar) | _primitives_of(powers) | {erf, erfc}) - _ARITHMETIC
_FUSED = _ARITHMETIC | _FUNCTIONS | {broadcast_in_dim_p, reshape_p, transpose_p, iota_p}


def is_cheap(eqn: Eqn) -> bool:
    """Whether an equation is arithmetic or an elementary function of each element, or arranges elements."""
    return eqn.primitive in _FUSED


def bytes_of(aval) -> int:
    """The bytes of an array.

    >>> import numpy as np
    >>> from funcml.core.avals import shaped
    >>> bytes_of(shaped((3, 4), np.dtype("float32")))
    48
    """
    if dtypes.is_key(aval.dtype):
        return aval.size * aval.dtype.itemsize
    return math.ceil(aval.size * dtypes.bit_width(aval.dtype) / 8)


def operations(eqn: Eqn) -> int:
    """The operations of an equation, at least one."""
    primitive, params = eqn.primitive, eqn.params
    if primitive.holds_jaxpr:
        steps = _STEPS_OF_A_LOOP if primitive.length_varies else params.get("length", 1)
        return max(1, steps * sum(map(_operations_of, sub_programs(params))))
    size = max([a.aval.size for a in (*eqn.outvars, *eqn.invars)], default=1)
    if primitive is dot_general_p:
        lhs = eqn.invars[0].aval.shape
        return max(1, 2 * eqn.outvars[0].aval.size * math.prod(lhs[i] for i in params["dimension_numbers"].contract[0]))
    if primitive is conv_general_dilated_p:
        kernel = eqn.invars[1].aval
        features = max(1, kernel.shape[params["dimension_numbers"].rhs_spec[0]])
        return max(1, 2 * eqn.outvars[0].aval.size * kernel.size // features)
    if isinstance(primitive, MatrixPrimitive):
        return max(1, size * max(eqn.invars[0].aval.shape[-2:], default=1))
    if primitive in _FUNCTIONS:
        size *= _PER_FUNCTION
    elif primitive.elementwise and primitive not in _ARITHMETIC:
        size *= _PER_SERIES
    elif not (primitive.elementwise or primitive in _ARITHMETIC or isinstance(primitive, Reduction)):
        size *= 2  # moves data
    return max(1, size)


@memoised
def _operations_of(jaxpr: Jaxpr) -> int:
    return sum(map(operations, jaxpr.eqns))
