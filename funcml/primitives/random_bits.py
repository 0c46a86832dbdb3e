"""Random bits: the threefry block cipher, and keys as a type of their own.

    threefry2x32  : k1, k2, x1, x2 [*shape] of u32 -> y1, y2 [*shape] of u32       20 rounds
    random_wrap   : u32 [*shape, 2] -> key [*shape]
    random_unwrap : key [*shape] -> u32 [*shape, 2]

Nothing here has a derivative. Source of the cipher: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
1, 2, 3" (2011).
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import moveaxis
from funcml.primitives.batching import spread_at_front
from funcml.primitives.rows import list_of
from funcml.primitives.tangents import zero_tangent

__all__ = ["KEY", "random_unwrap", "random_unwrap_p", "random_wrap", "random_wrap_p", "threefry2x32", "threefry2x32_p"]

KEY = dtypes.KeyDtype("threefry2x32")
_U32 = np.dtype("uint32")


class Threefry2x32(Primitive):
    """y = E_k(x): the words (x1, x2) under the key (k1, k2), element by element."""

    multiple_results = True

    def type_rule(self, *avals):
        if len(avals) != 4 or any(a.dtype != _U32 or a.shape != avals[0].shape for a in avals):
            raise TypeError(f"threefry2x32 expects k1, k2, x1, x2 of dtype u32 and one shape, got {list_of(avals)}")
        return (shaped(avals[0].shape, _U32),) * 2

    def jvp_rule(self, primals, tangents):
        outs = bind(self, primals)
        return outs, [zero_tangent(y) for y in outs]

    def batch_rule(self, axis, operands, dims):
        if len(set(dims)) == 1:
            return bind(self, operands), [dims[0]] * 2
        return bind(self, [spread_at_front(axis, x, d) for x, d in zip(operands, dims, strict=True)]), [0, 0]


threefry2x32_p = Threefry2x32("threefry2x32")


def threefry2x32(k1, k2, x1, x2):
    """The two words of the cipher's result; all four operands are u32 of one shape."""
    return bind(threefry2x32_p, (k1, k2, x1, x2))


class RandomWrap(Primitive):
    """Pairs of words [*shape, 2] as keys [*shape]."""

    def type_rule(self, words):
        if words.dtype != _U32 or words.shape[-1:] != KEY.key_shape:
            raise TypeError(f"random_wrap expects the words of keys, u32[..., 2], got {words}")
        return shaped(words.shape[:-1], KEY)

    def jvp_rule(self, primals, tangents):
        out = bind(self, primals)
        return out, zero_tangent(out)

    def batch_rule(self, axis, operands, dims):
        return random_wrap(moveaxis(operands[0], dims[0], 0)), 0


class RandomUnwrap(Primitive):
    """Keys [*shape] as pairs of words [*shape, 2]."""

    def type_rule(self, key):
        if key.dtype is not KEY:
            raise TypeError(f"random_unwrap expects keys, key<fry>[...], got {key}")
        return shaped((*key.shape, *KEY.key_shape), _U32)

    def jvp_rule(self, primals, tangents):
        out = bind(self, primals)
        return out, zero_tangent(out)

    def batch_rule(self, axis, operands, dims):
        return random_unwrap(operands[0]), dims[0]


random_wrap_p = RandomWrap("random_wrap")
random_unwrap_p = RandomUnwrap("random_unwrap")


def random_wrap(words):
    """The keys made of these words: u32[..., 2] -> key[...]."""
    return bind(random_wrap_p, (words,))


def random_unwrap(key):
    """The words of keys: key[...] -> u32[..., 2]; of what are words already, themselves."""
    return bind(random_unwrap_p, (key,)) if dtypes.is_key(aval_of(key).dtype) else key
