"""XLA's own generator of random bits."""

from __future__ import annotations

import enum

from funcml import dtypes
from funcml.core.values import Array
from funcml.lax.operands import array, unsharded
from funcml.numpy.arguments import shape_of
from funcml.primitives import random_bits

__all__ = ["RandomAlgorithm", "rng_bit_generator"]


class RandomAlgorithm(enum.IntEnum):
    """The generators that `rng_bit_generator` knows; the default one is what a platform likes best."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key, shape, dtype=dtypes.uint32, algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT, *, out_sharding=None
) -> tuple[Array, Array]:
    """(the next key, random bits of a shape), from a key u32[4] or u64[2]; u64[2] or u32[4] for Threefry.

    Bits are unsigned integers. What they are depends on platform and version: use `funcml.random` for numbers that stay.
    """
    unsharded("rng_bit_generator", out_sharding)
    name = RandomAlgorithm(algorithm).name.removeprefix("RNG_").lower()
    shape = shape_of("lax.rng_bit_generator", shape)
    new, bits = random_bits.rng_bit_generator(array("rng_bit_generator", key), shape, dtypes.canonical(dtype), name)
    return new, bits
