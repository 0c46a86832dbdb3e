"""A loop of a known number of steps, for functions and lowerings that are written with primitives.

    repeat : (steps, body, carry) -> carry          body(step, *carry) -> carry
"""

from __future__ import annotations

import numpy as np

from funcml.control_flow import repeat as control
from funcml.core.avals import shaped
from funcml.core.ir import intern
from funcml.core.tracing import aval_of, trace
from funcml.dtypes import int32
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim

__all__ = ["repeat"]


def repeat(steps: int, body, carry, unroll: int = 4) -> list:
    """`carry` after body(0, *carry), body(1, *carry), ...; the step comes as a float of the type of the first of `carry`.

    `unroll` steps, of which `steps` is a multiple, make one turn of the loop.
    """
    like = aval_of(carry[0])

    def turn(start, *values):
        for k in range(unroll):
            step = broadcast_in_dim(ew.convert(ew.add(start, k), like.dtype), like.shape)
            values = body(step, *values)
        return [ew.add(start, unroll), *values]

    turns, rest = divmod(steps, unroll)
    if rest:
        raise ValueError(f"repeat: {steps} steps are no multiple of {unroll}")
    jaxpr, captured = trace(turn, [shaped((), int32), *map(aval_of, carry)], "repeat")
    return control.repeat(np.int32(turns), intern(jaxpr), captured, [np.int32(0), *carry])[1:]
