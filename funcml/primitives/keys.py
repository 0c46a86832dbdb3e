"""Random keys as a type of their own, whose elements are groups of words.

    random_wrap   : u32 [*shape, n] -> key [*shape]
    random_unwrap : key [*shape] -> u32 [*shape, n]

Keys have no derivative.
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, moveaxis

__all__ = ["filled_keys", "random_unwrap", "random_unwrap_p", "random_wrap", "random_wrap_p"]

_U32 = np.dtype("uint32")


class _Constant(Primitive):
    """What has no derivative."""

    def jvp_rule(self, primals, tangents, **params):
        out = bind(self, primals, params)
        return out, Zero(aval_of(out).update(dtype=dtypes.float0))


class RandomWrap(_Constant):
    """Groups of words [*shape, n] as keys [*shape]."""

    def type_rule(self, words, *, impl):
        dtype = dtypes.KeyDtype(impl)
        if words.dtype != _U32 or words.shape[-1:] != dtype.key_shape:
            raise TypeError(f"random_wrap expects the words of keys, u32[..., {dtype.key_shape[0]}], got {words}")
        return shaped(words.shape[:-1], dtype)

    def batch_rule(self, axis, operands, dims, *, impl):
        return random_wrap(moveaxis(operands[0], dims[0], 0), impl), 0


class RandomUnwrap(_Constant):
    """Keys [*shape] as groups of words [*shape, n]."""

    def type_rule(self, key):
        if not dtypes.is_key(key.dtype):
            raise TypeError(f"random_unwrap expects keys, key<fry>[...], got {key}")
        return shaped((*key.shape, *key.dtype.key_shape), _U32)

    def batch_rule(self, axis, operands, dims):
        return random_unwrap(operands[0]), dims[0]


random_wrap_p = RandomWrap("random_wrap")
random_unwrap_p = RandomUnwrap("random_unwrap")


def random_wrap(words, impl: str = "threefry2x32"):
    """The keys made of these words: u32[..., n] -> key[...]."""
    return bind(random_wrap_p, (words,), {"impl": impl})


def random_unwrap(key):
    """The words of keys: key[...] -> u32[..., n]; of what are words already, themselves."""
    return bind(random_unwrap_p, (key,)) if dtypes.is_key(aval_of(key).dtype) else key


def filled_keys(shape: tuple[int, ...], dtype: dtypes.KeyDtype, word: int):
    """Keys of which each word is `word`."""
    return random_wrap(broadcast_in_dim(np.uint32(word), (*shape, *dtype.key_shape)), dtype.impl)
