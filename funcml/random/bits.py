"""Uniform bits, on which every other sample is built.

    bits        : key, shape, dtype -> unsigned integers
    random_bits : key, shape, width -> the same, inside a program
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import shape_of
from funcml.primitives.keys import random_unwrap
from funcml.random.implementations import UNSIGNED_OF_WIDTH, implementation_of
from funcml.random.keys import one_key

__all__ = ["bits", "random_bits"]


def bits(key, shape=(), dtype=None) -> Array:
    """Uniform random bits as integers of an unsigned dtype, uint32 by default.

    >>> from funcml import random
    >>> random.bits(random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    default = UNSIGNED_OF_WIDTH[dtypes.bit_width(dtypes.default_int())]
    dtype = default if dtype is None else dtypes.canonical(dtype)
    if dtype not in UNSIGNED_OF_WIDTH.values():
        raise ValueError(f"dtype argument to bits must be an unsigned int dtype of 8 to 64 bits, got {dtypes.short_name(dtype)}")
    return _bits(one_key("bits", key), shape_of("bits", shape), dtypes.bit_width(dtype))


@fused(static=("shape", "width"))
def _bits(key, shape, width):
    return random_bits(key, shape, width)


def random_bits(key, shape: tuple[int, ...], width: int):
    """`bits` inside a program."""
    return implementation_of(key).bits(random_unwrap(key), width, shape)
