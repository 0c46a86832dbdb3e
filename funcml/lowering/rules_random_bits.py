"""StableHLO of `primitives.random_bits`.

The cipher is one private function for each shape, unrolled: XLA fuses its hundred operations into one
loop, which takes less time to compile and to run than a loop over the rounds.
"""

from __future__ import annotations

import functools

from funcml.core.avals import shaped
from funcml.core.ir import Jaxpr, intern
from funcml.core.tracing import trace
from funcml.dtypes import uint32, uint64
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


@lowers(random_bits.rng_bit_generator_p)
def _generator(emit, eqn, operands):
    (state,), (new, bits) = (a.aval for a in eqn.invars), (v.aval for v in eqn.outvars)
    pair = shaped((2,), uint64)
    given = operands[0] if state.dtype == uint64 else _halves_joined(emit, operands[0])
    algorithm = eqn.params["algorithm"].upper()
    t = tensor_type(pair)
    after, drawn = emit.ops(
        f"stablehlo.rng_bit_generator {given}, algorithm = {algorithm} : ({t}) -> ({t}, {tensor_type(bits)})", 2
    )
    if state.dtype != uint64:
        after = bitcast(emit, after, pair, shaped((2, 2), uint32))
        after = reshaped(emit, after, shaped((2, 2), uint32), new)
    return [after, drawn]


def _halves_joined(emit, words: str) -> str:
    """u32[4] as u64[2]."""
    halves = reshaped(emit, words, shaped((4,), uint32), shaped((2, 2), uint32))
    return bitcast(emit, halves, shaped((2, 2), uint32), shaped((2,), uint64))


def reshaped(emit, x: str, source, target) -> str:
    """`x` under the shape of another type."""
    return emit.op(f"stablehlo.reshape {x} : ({tensor_type(source)}) -> {tensor_type(target)}")


def bitcast(emit, x: str, source, target) -> str:
    """The bits of `x` as another type."""
    return emit.op(f"stablehlo.bitcast_convert {x} : ({tensor_type(source)}) -> {tensor_type(target)}")
