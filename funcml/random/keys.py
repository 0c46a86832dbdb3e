"""Keys: made from seeds, split, folded with data, and taken apart into words.

    key     : seed -> key<fry>[]            PRNGKey : seed -> u32[2]
    split   : key, shape -> keys[*shape]    fold_in : key, integer -> key

A function of keys takes both kinds and gives back the kind that it was given.
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.config import config
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import shape_of
from funcml.numpy.promotion import as_array, literal, operand
from funcml.primitives import shaping
from funcml.primitives.axes import broadcast_in_dim, reshape
from funcml.primitives.bits import shift_right_logical
from funcml.primitives.elementwise import add, convert
from funcml.primitives.identities import copy
from funcml.primitives.keys import random_unwrap, random_wrap
from funcml.random.implementations import IMPLEMENTATIONS, default_dtype, implementation_of

__all__ = [
    "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "one_key", "several", "split", "subkeys",
    "wrap_key_data",
]

_U32 = dtypes.uint32


# ---- reading keys --------------------------------------------------------------------------------------------


def _keys(name: str, key) -> Array:
    """An array of keys: typed, or words u32[..., n] of the default implementation; TypeError for anything else."""
    expected = default_dtype().key_shape
    if isinstance(key, Array | np.ndarray) or hasattr(key, "__array__") or hasattr(key, "__jax_array__"):
        aval = aval_of(key)
        if dtypes.is_key(aval.dtype) or (aval.dtype == _U32 and aval.shape[-1:] == expected):
            return as_array(key)
        came = str(aval)
    else:
        came = f"{key!r} of type {type(key).__name__}"
    raise TypeError(f"{name}: expected a key (`random.key(0)`) or u32[{expected[0]}], got {came}")


def one_key(name: str, key) -> Array:
    """A single key; ValueError for an array of them."""
    key = _keys(name, key)
    if key.ndim != (not dtypes.is_key(key.dtype)):
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {key.shape}: {key.aval}; "
            "use `vmap` for a batch of them"
        )
    return key


def _wrapped_like(key, words):
    """`words` as keys of the type of `key`: typed or not."""
    dtype = aval_of(key).dtype
    return random_wrap(words, dtype.impl) if dtypes.is_key(dtype) else words


# ---- making keys ---------------------------------------------------------------------------------------------


def key(seed, *, impl=None, dtype=None) -> Array:
    """A key for an integer seed, as an array of one key: `key<fry>[]` for threefry.

    `impl` (or `dtype`) names the implementation: "threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg" or
    "unsafe_rbg"; `config.default_prng_impl` otherwise. The words of the key are those of JAX for the same seed. A Python int
    outside 32 bits, and a 64-bit array, count with all their bits. Raises TypeError for a seed that is no scalar integer.

    >>> key_data(key(42))
    Array([ 0, 42], dtype=uint32)
    """
    return _from_seed(_seed("key", seed), _dtype_of("key", impl, dtype), True)


def PRNGKey(seed, *, impl=None) -> Array:
    """The words of `key(seed)`: an untyped key u32[2], which every function takes in place of a typed one.

    Words do not know their implementation; functions take them for those of `config.default_prng_impl`.

    >>> PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    return _from_seed(_seed("PRNGKey", seed), _dtype_of("PRNGKey", impl), False)


def _seed(name: str, seed):
    if isinstance(seed, int):
        wide = not -(2**31) <= seed < 2**31 or dtypes.default_int() == dtypes.int64
        return np.asarray(seed, np.uint64 if seed >= 2**63 else np.int64 if wide else np.int32)
    aval = aval_of(operand(name, seed))
    if dtypes.is_key(aval.dtype):
        raise TypeError(f"{name} accepts a scalar seed, an integer, got {aval}, which holds keys already")
    if aval.ndim:
        raise TypeError(f"{name} accepts a scalar seed, got {aval}; use `vmap` for a batch of seeds")
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"{name}: PRNG key seed must be an integer, got {aval}")
    return seed


@fused(static=("dtype", "typed"))
def _from_seed(seed, dtype, typed: bool):
    if config.random_seed_offset:
        seed = add(as_array(seed), literal(config.random_seed_offset, aval_of(seed).dtype))
    wide = dtypes.bit_width(aval_of(seed).dtype) == 64
    high = convert(shift_right_logical(seed, 32), _U32) if wide else np.uint32(0)
    words = IMPLEMENTATIONS[dtype.impl].seed(broadcast_in_dim(high, ()), broadcast_in_dim(convert(seed, _U32), ()))
    return random_wrap(words, dtype.impl) if typed else words


def key_dtype(impl=None):
    """The dtype of the keys of an implementation, or of the default one.

    >>> key_dtype("rbg")
    key<rbg>
    """
    return _dtype_of("key_dtype", impl)


def _dtype_of(name: str, impl, dtype=None) -> dtypes.KeyDtype:
    """The dtype of the keys that `impl` (or `dtype`) names; ValueError for both or an unknown one, TypeError for no name."""
    if impl is not None and dtype is not None:
        raise ValueError(f"{name}: Cannot specify both `impl` and `dtype`, which say the same; give one of them")
    which = impl if dtype is None else dtype
    if which is None:
        return default_dtype()
    if isinstance(which, dtypes.KeyDtype):
        return which
    if not isinstance(which, str):
        raise TypeError(
            f"{name}: unrecognized type {type(which).__name__} for a PRNG implementation, got {which!r}; "
            "expected its name or a dtype of keys"
        )
    for known in dtypes.KEYS:
        if which in (known.impl, known.name):
            return known
    raise ValueError(f"{name}: unrecognized PRNG implementation {which!r}; expected one of {', '.join(IMPLEMENTATIONS)}")


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
    return _wrapped_like(key, implementation_of(key).split(random_unwrap(key), shape))


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
    data = broadcast_in_dim(convert(data, _U32), ())
    return _wrapped_like(key, implementation_of(key).fold_in(random_unwrap(key), data))


def clone(key) -> Array:
    """The same key, in memory of its own."""
    return copy(_keys("clone", key))


# ---- words ---------------------------------------------------------------------------------------------------


def key_data(keys) -> Array:
    """The words of keys: key<fry>[...] -> u32[..., 2]; other implementations have 1 or 4."""
    return random_unwrap(_keys("key_data", keys))


def wrap_key_data(key_bits_array, *, impl=None, dtype=None) -> Array:
    """The keys with these words: u32[..., 2] -> key<fry>[...]; `impl` (or `dtype`) names another implementation."""
    dtype = _dtype_of("wrap_key_data", impl, dtype)
    bits = as_array(operand("wrap_key_data", key_bits_array))
    if bits.dtype != _U32 or bits.shape[-1:] != dtype.key_shape:
        raise TypeError(f"wrap_key_data: expected the words of keys, u32[..., {dtype.key_shape[0]}], got {bits.aval}")
    return random_wrap(bits, dtype.impl)


def key_impl(keys) -> str:
    """The name of the implementation that the keys belong to.

    >>> key_impl(key(0))
    'threefry2x32'
    """
    keys = _keys("key_impl", keys)
    return keys.dtype.impl if dtypes.is_key(keys.dtype) else default_dtype().impl
