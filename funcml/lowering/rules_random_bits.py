"""StableHLO of `primitives.random_bits`.

A key is one ui64, whose low half is word 0. The cipher is one private function for each shape, unrolled: XLA fuses its
hundred operations into one loop, which takes less time to compile and to run than a loop over the rounds.
"""

from __future__ import annotations

import functools

from funcml.core.avals import shaped
from funcml.core.ir import Jaxpr, intern
from funcml.core.tracing import trace
from funcml.dtypes import uint32
from funcml.lowering.emit import lowers, tensor_type
from funcml.primitives import random_bits
from funcml.primitives.bits import shift_left, shift_right_logical
from funcml.primitives.elementwise import add, or_, xor

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _rotate_left(x, n: int):
    return or_(shift_left(x, n), shift_right_logical(x, 32 - n))


# Four rounds (y1 += y2; y2 = (y2 <<< r) ^ y1), then two of the three key words and the number of the group; five groups.
def _threefry2x32(k1, k2, x1, x2):
    keys = (k1, k2, xor(xor(k1, k2), _PARITY))
    y1, y2 = add(x1, k1), add(x2, k2)
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            y1 = add(y1, y2)
            y2 = xor(_rotate_left(y2, r), y1)
        y1 = add(y1, keys[(group + 1) % 3])
        y2 = add(add(y2, keys[(group + 2) % 3]), group + 1)
    return [y1, y2]


@functools.lru_cache(maxsize=256)
def _cipher(shape: tuple[int, ...]) -> Jaxpr:
    return intern(trace(_threefry2x32, (shaped(shape, uint32),) * 4, "threefry2x32")[0])


@lowers(random_bits.threefry2x32_p)
def _threefry(emit, eqn, operands):
    return emit.call(_cipher(eqn.outvars[0].aval.shape), operands, "threefry2x32")


@lowers(random_bits.random_wrap_p, random_bits.random_unwrap_p)
def _bitcast(emit, eqn, operands):
    (x,), (out,) = eqn.invars, eqn.outvars
    return emit.op(f"stablehlo.bitcast_convert {operands[0]} : ({tensor_type(x.aval)}) -> {tensor_type(out.aval)}")
