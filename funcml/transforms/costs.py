"""What equations cost and values weigh, by their types alone: enough to tell a matrix product from a sum.

    bytes_of   : aval -> bytes
    operations : Eqn  -> arithmetic operations

An estimate to choose by, not a prediction of time.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.ir import Eqn, Jaxpr, Primitive, memoised, sub_programs
from funcml.primitives import elementwise
from funcml.primitives.axes import Reduction
from funcml.primitives.contraction import dot_general_p
from funcml.primitives.convolution import conv_general_dilated_p
from funcml.primitives.matrices import MatrixPrimitive

__all__ = ["OPERATIONS_PER_BYTE", "bytes_of", "operations"]

#: how many operations a processor does in the time in which it writes a byte and reads it again
OPERATIONS_PER_BYTE = 20
_PER_FUNCTION = 10  # operations in exp, tanh and their like
_STEPS_OF_A_LOOP = 32  # where the number is not known
_ARITHMETIC = frozenset(x for x in vars(elementwise).values() if isinstance(x, Primitive))


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
    if primitive.elementwise and primitive not in _ARITHMETIC:
        size *= _PER_FUNCTION
    elif not (primitive.elementwise or primitive in _ARITHMETIC or isinstance(primitive, Reduction)):
        size *= 2  # moves data
    return max(1, size)


@memoised
def _operations_of(jaxpr: Jaxpr) -> int:
    return sum(map(operations, jaxpr.eqns))
