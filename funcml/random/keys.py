"""Keys: made from seeds, split, folded with data, and taken apart into words.

    key     : seed -> key<fry>[]            PRNGKey : seed -> u32[2]
    split   : key, shape -> keys[*shape]    fold_in : key, integer -> key

A function of keys takes both kinds and gives back the kind that it was given.
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import shape_of
from funcml.numpy.promotion import as_array, operand
from funcml.primitives import shaping
from funcml.primitives.axes import broadcast_in_dim, expand_dims, reshape
from funcml.primitives.bits import shift_right_logical
from funcml.primitives.elementwise import convert
from funcml.primitives.identities import copy
from funcml.primitives.random_bits import KEY, random_unwrap, random_wrap, threefry2x32

__all__ = [
    "PRNGKey", "cipher", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "one_key", "several", "split",
    "subkeys", "wrap_key_data",
]

_U32 = dtypes.uint32


# ---- reading keys --------------------------------------------------------------------------------------------


def _keys(name: str, key) -> Array:
    """An array of keys: typed, or words u32[..., 2]; TypeError for anything else."""
    if isinstance(key, Array | np.ndarray) or hasattr(key, "__array__") or hasattr(key, "__jax_array__"):
        aval = aval_of(key)
        if aval.dtype is KEY or (aval.dtype == _U32 and aval.shape[-1:] == KEY.key_shape):
            return as_array(key)
        came = str(aval)
    else:
        came = f"{key!r} of type {type(key).__name__}"
    raise TypeError(f"{name}: expected a key (`random.key(0)`) or u32[2], got {came}")


def one_key(name: str, key) -> Array:
    """A single key; ValueError for an array of them."""
    key = _keys(name, key)
    if key.ndim != (key.dtype is not KEY):
        raise ValueError(f"{name}: expected one key, got an array of keys {key.aval}; use `vmap` for a batch of them")
    return key


def words(key) -> list:
    """The two words of a key, as scalars."""
    return [reshape(w, ()) for w in shaping.split(random_unwrap(key), (1, 1))]


def cipher(key, shape: tuple[int, ...]) -> list:
    """The two words of the cipher for each number 0, 1, ... of the elements of `shape`, in row-major order."""
    size = int(np.prod(shape, dtype=object))
    if size <= 2**32:
        high, low = np.uint32(0), reshape(shaping.iota(_U32, (size,)), shape)
    else:
        count = reshape(shaping.iota(dtypes.uint64, (size,)), shape)
        high, low = convert(shift_right_logical(count, 32), _U32), convert(count, _U32)
    k1, k2 = words(key)
    k1, k2, high = (broadcast_in_dim(w, shape) for w in (k1, k2, high))
    return threefry2x32(k1, k2, high, low)


def _from_words(first, second, typed: bool):
    axis = (aval_of(first).ndim,)
    pairs = shaping.concatenate([expand_dims(first, axis), expand_dims(second, axis)], axis[0])
    return random_wrap(pairs) if typed else pairs


def _is_typed(key) -> bool:
    return dtypes.is_key(aval_of(key).dtype)


# ---- making keys ---------------------------------------------------------------------------------------------


def key(seed, *, impl=None, dtype=None) -> Array:
    """A key for an integer seed, as an array `key<fry>[]`.

    The words of the key are the high and the low half of the seed: those of JAX for the same seed. A Python int outside
    32 bits, and a 64-bit array, count with all their bits. Raises TypeError for a seed that is no scalar integer.

    >>> key_data(key(42))
    Array([ 0, 42], dtype=uint32)
    """
    _check_impl("key", impl if dtype is None else dtype)
    return _from_seed(_seed("key", seed), True)


def PRNGKey(seed, *, impl=None) -> Array:
    """The words of `key(seed)`: an untyped key u32[2], which every function takes in place of a typed one.

    >>> PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    _check_impl("PRNGKey", impl)
    return _from_seed(_seed("PRNGKey", seed), False)


def _seed(name: str, seed):
    if isinstance(seed, int):
        wide = not -(2**31) <= seed < 2**31 or dtypes.default_int() == dtypes.int64
        return np.asarray(seed, np.uint64 if seed >= 2**63 else np.int64 if wide else np.int32)
    aval = aval_of(operand(name, seed))
    if not dtypes.is_integer(aval.dtype) or aval.ndim:
        advice = "; use `vmap` for a batch of seeds" if aval.ndim else ""
        raise TypeError(f"{name}: expected an integer seed without axes, got {aval}{advice}")
    return seed


@fused(static=("typed",))
def _from_seed(seed, typed: bool):
    wide = dtypes.bit_width(aval_of(seed).dtype) == 64
    high = convert(shift_right_logical(seed, 32), _U32) if wide else np.uint32(0)
    return _from_words(broadcast_in_dim(high, ()), convert(seed, _U32), typed)


def key_dtype(impl=None):
    """The dtype of keys of an implementation; there is one, "threefry2x32"."""
    _check_impl("key_dtype", impl)
    return KEY


def _check_impl(name: str, impl) -> None:
    if impl not in (None, KEY, KEY.impl):
        raise ValueError(f"{name}: expected the implementation {KEY.impl!r}, got {impl!r}")


# ---- keys from keys ------------------------------------------------------------------------------------------


def split(key, num: int | tuple[int, ...] = 2) -> Array:
    """`num` new keys from one; `num` is an int or a shape.

    >>> split(key(0), 3).shape
    (3,)
    """
    return _split(one_key("split", key), shape_of("split", num))


@fused(static=("shape",))
def _split(key, shape):
    return subkeys(key, shape)


def subkeys(key, shape):
    """`split` inside a program."""
    return _from_words(*cipher(key, shape), _is_typed(key))


def several(key, count: int) -> list:
    """`count` new keys, each by itself, inside a program."""
    shape = aval_of(key).shape
    return [reshape(k, shape) for k in shaping.split(subkeys(key, (count,)), (1,) * count)]


def fold_in(key, data) -> Array:
    """A new key from one and an integer of 32 bits, such as the number of a step.

    Raises TypeError for data that is no scalar integer, OverflowError for a Python int outside 0, ..., 2**32 - 1.
    """
    key, data = one_key("fold_in", key), operand("fold_in", data)
    aval = aval_of(data) if type(data) is not int else None
    if aval is not None and (aval.ndim or not dtypes.is_integer(aval.dtype)):
        advice = "; use `vmap` for a batch of them" if aval.ndim else ""
        raise TypeError(f"fold_in: expected an integer without axes as data, got {aval}{advice}")
    if aval is None:
        dtypes.check_int_range(data, _U32)
        data = np.uint32(data)
    return _fold_in(key, data)


@fused
def _fold_in(key, data):
    data = convert(data, _U32)
    return _from_words(*threefry2x32(*words(key), broadcast_in_dim(np.uint32(0), ()), data), _is_typed(key))


def clone(key) -> Array:
    """The same key, in memory of its own."""
    return copy(_keys("clone", key))


# ---- words ---------------------------------------------------------------------------------------------------


def key_data(keys) -> Array:
    """The words of keys: key<fry>[...] -> u32[..., 2]."""
    return random_unwrap(_keys("key_data", keys))


def wrap_key_data(key_bits_array, *, impl=None, dtype=None) -> Array:
    """The keys with these words: u32[..., 2] -> key<fry>[...]."""
    _check_impl("wrap_key_data", impl if dtype is None else dtype)
    bits = as_array(operand("wrap_key_data", key_bits_array))
    if bits.dtype != _U32 or bits.shape[-1:] != KEY.key_shape:
        raise TypeError(f"wrap_key_data: expected the words of keys, u32[..., 2], got {bits.aval}")
    return random_wrap(bits)


def key_impl(keys) -> str:
    """The name of the implementation that the keys belong to.

    >>> key_impl(key(0))
    'threefry2x32'
    """
    _keys("key_impl", keys)
    return KEY.impl
