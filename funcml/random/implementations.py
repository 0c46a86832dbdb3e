"""What a kind of keys can do: one `Implementation` for each, in the table `IMPLEMENTATIONS`.

    seed    : the halves of a seed -> words
    split   : words, shape -> words [*shape, n]
    fold_in : words, a number of 32 bits -> words
    bits    : words, width, shape -> unsigned integers of that width

The words of a key are u32[n], n what its `KeyDtype` says. A further kind is a line in `KeyDtype` and one in the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.config import config
from funcml.core.tracing import aval_of
from funcml.primitives import shaping
from funcml.primitives.axes import broadcast_in_dim, expand_dims, reshape
from funcml.primitives.bits import shift_left, shift_right_logical
from funcml.primitives.elementwise import convert, or_, xor
from funcml.primitives.random_bits import rng_bit_generator
from funcml.primitives.random_bits import threefry2x32 as threefry2x32_words
from funcml.random import ciphers

__all__ = ["IMPLEMENTATIONS", "UNSIGNED_OF_WIDTH", "Implementation", "default_dtype", "implementation_of"]

UNSIGNED_OF_WIDTH = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
_U32 = dtypes.uint32


class Implementation(NamedTuple):
    """How keys of one kind are made, divided and turned into bits; `exact_vmap` says that a batch of keys gives the bits
    that each gives by itself."""

    seed: Callable
    split: Callable
    fold_in: Callable
    bits: Callable
    exact_vmap: bool = True


# ---- words -----------------------------------------------------------------------------------------------------


def _each(words) -> list:
    """The words of a key, as scalars."""
    return [reshape(w, ()) for w in shaping.split(words, (1,) * aval_of(words).shape[0])]


def _joined(words):
    axis = aval_of(words[0]).ndim
    return shaping.concatenate([expand_dims(w, (axis,)) for w in words], axis)


def _zeros(shape):
    return broadcast_in_dim(np.uint32(0), shape)


def _numbers(shape: tuple[int, ...]):
    """The high and the low half of the numbers 0, 1, ... of the elements of `shape`, in row-major order."""
    size = math.prod(shape)
    if size <= 2**32:
        return _zeros(shape), reshape(shaping.iota(_U32, (size,)), shape)
    count = reshape(shaping.iota(dtypes.uint64, (size,)), shape)
    return convert(shift_right_logical(count, 32), _U32), convert(count, _U32)


# ---- by a cipher -----------------------------------------------------------------------------------------------


# The counter of an element is its number. Its two words are the last of a block where keys are made, the first where bits
# are, so that keys and bits differ.
def _of_cipher(block: Callable, size: int, key_size: int, seed: Callable, fold: Callable) -> Implementation:
    """The implementation by a cipher with blocks of `size` words and keys of `key_size`; `fold` makes a block the pair of
    words from which bits of 64 are made."""
    rest = size - 2

    def encrypted(words, high, low, at_end: bool) -> list:
        shape = aval_of(low).shape
        key = [broadcast_in_dim(w, shape) for w in _each(words)]
        zeros = [_zeros(shape)] * rest
        return block(key, [*zeros, high, low] if at_end else [high, low, *zeros])

    def split(words, shape):
        high, low = _numbers(shape)
        return _joined(encrypted(words, high, low, True)[:key_size])

    def fold_in(words, data):
        return _joined(encrypted(words, _zeros(()), data, True)[:key_size])

    def bits(words, width: int, shape):
        high, low = _numbers(shape)
        out = encrypted(words, high, low, False)
        dtype = UNSIGNED_OF_WIDTH[width]
        if width == 64:
            first, second = fold(out)
            return or_(shift_left(convert(first, dtype), 32), convert(second, dtype))
        mixed = out[0]
        for word in out[1:]:
            mixed = xor(mixed, word)
        return convert(mixed, dtype)

    return Implementation(seed, split, fold_in, bits)


def _first_two(out):
    return out[0], out[1]


def _seed_by(block: Callable, key_size: int, as_key: bool) -> Callable:
    """Seeds as the result of the cipher, the halves of the number being its key or its counter."""

    def seed(high, low):
        zero = _zeros(())
        halves, zeros = [high, low], [zero] * 4
        if as_key:
            return _joined(block([*halves, zero, zero], zeros))
        return _joined(block(zeros[:key_size], [*halves, *zeros[: 2 * key_size - 2]])[:key_size])

    return seed


def _threefry2x32_block(key, counter) -> list:
    return threefry2x32_words(*key, *counter)


_THREEFRY = _of_cipher(_threefry2x32_block, 2, 2, lambda high, low: _joined([high, low]), _first_two)
_THREEFRY4 = _of_cipher(
    ciphers.threefry4x32, 4, 4, _seed_by(ciphers.threefry4x32, 4, True), lambda out: (xor(out[0], out[2]), xor(out[1], out[3]))
)
_PHILOX2 = _of_cipher(ciphers.philox2x32, 2, 1, _seed_by(ciphers.philox2x32, 1, False), _first_two)
_PHILOX4 = _of_cipher(ciphers.philox4x32, 4, 2, _seed_by(ciphers.philox4x32, 2, False), _first_two)


# ---- by XLA's generator ----------------------------------------------------------------------------------------


def _seed_twice(high, low):
    return _joined([high, low, high, low])


def _generated(words, width: int, shape):
    return rng_bit_generator(words, shape, UNSIGNED_OF_WIDTH[width])[1]


def _both_halves(operation: Callable) -> Callable:
    """An operation on keys of threefry for keys of two of them."""

    def double(words, argument):
        return shaping.concatenate([operation(h, argument) for h in shaping.split(words, (2, 2))], -1)

    return double


_RBG = Implementation(_seed_twice, _both_halves(_THREEFRY.split), _both_halves(_THREEFRY.fold_in), _generated, False)

_RUNS = 10  # rows that the generator makes for one key


def _unsafe_split(words, shape):
    rows = _generated(words, 32, (_RUNS * math.prod(shape), 4))
    return reshape(shaping.slice_in_dim(rows, 0, aval_of(rows).shape[0], _RUNS), (*shape, 4))


def _unsafe_fold_in(words, data):
    rows = _generated(_seed_twice(_zeros(()), data), 32, (_RUNS, 4))
    return xor(words, reshape(shaping.slice_in_dim(rows, _RUNS - 1, _RUNS), (4,)))


_UNSAFE_RBG = Implementation(_seed_twice, _unsafe_split, _unsafe_fold_in, _generated, False)


# ---- which -----------------------------------------------------------------------------------------------------

IMPLEMENTATIONS: dict[str, Implementation] = {
    "threefry2x32": _THREEFRY, "threefry4x32": _THREEFRY4, "philox2x32": _PHILOX2, "philox4x32": _PHILOX4,
    "rbg": _RBG, "unsafe_rbg": _UNSAFE_RBG,
}


def default_dtype() -> dtypes.KeyDtype:
    """The dtype of keys for which no implementation is named, and to which untyped words belong."""
    return dtypes.KeyDtype(config.default_prng_impl)


def implementation_of(key) -> Implementation:
    """The implementation to which a key belongs, typed or not."""
    dtype = aval_of(key).dtype
    return IMPLEMENTATIONS[dtype.impl if dtypes.is_key(dtype) else config.default_prng_impl]
