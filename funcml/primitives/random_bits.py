"""Random bits: the threefry block cipher, XLA's generator, and keys as a type of their own.

    threefry2x32      : k1, k2, x1, x2 [*shape] of u32 -> y1, y2 [*shape] of u32       20 rounds
    rng_bit_generator : state u32[4], shape, dtype -> new state u32[4], bits [*shape]
    random_wrap       : u32 [*shape, n] -> key [*shape]
    random_unwrap     : key [*shape] -> u32 [*shape, n]

Nothing here has a derivative. Source of the cipher: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
1, 2, 3" (2011).
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import moveaxis, reshape
from funcml.primitives.batching import spread_at_front
from funcml.primitives.rows import list_of
from funcml.primitives.shaping import concatenate, slice_in_dim
from funcml.primitives.tangents import zero_tangent, zeros

__all__ = [
    "KEY", "random_unwrap", "random_unwrap_p", "random_wrap", "random_wrap_p", "rng_bit_generator", "rng_bit_generator_p",
    "threefry2x32", "threefry2x32_p",
]

KEY = dtypes.KeyDtype("threefry2x32")
_U32 = np.dtype("uint32")


class _Constant(Primitive):
    """What has no derivative."""

    def jvp_rule(self, primals, tangents, **params):
        out = bind(self, primals, params)
        return out, [zero_tangent(y) for y in out] if self.multiple_results else zero_tangent(out)


# ---- ciphers and generators ------------------------------------------------------------------------------------


class Threefry2x32(_Constant):
    """y = E_k(x): the words (x1, x2) under the key (k1, k2), element by element."""

    multiple_results = True

    def type_rule(self, *avals):
        if len(avals) != 4 or any(a.dtype != _U32 or a.shape != avals[0].shape for a in avals):
            raise TypeError(f"threefry2x32 expects k1, k2, x1, x2 of dtype u32 and one shape, got {list_of(avals)}")
        return (shaped(avals[0].shape, _U32),) * 2

    def batch_rule(self, axis, operands, dims):
        if len(set(dims)) == 1:
            return bind(self, operands), [dims[0]] * 2
        return bind(self, [spread_at_front(axis, x, d) for x, d in zip(operands, dims, strict=True)]), [0, 0]


threefry2x32_p = Threefry2x32("threefry2x32")


def threefry2x32(k1, k2, x1, x2):
    """The two words of the cipher's result; all four operands are u32 of one shape."""
    return bind(threefry2x32_p, (k1, k2, x1, x2))


_ALGORITHMS = ("default", "three_fry", "philox")
_STATES = ((4,), np.dtype("uint32")), ((2,), np.dtype("uint64"))


class RngBitGenerator(_Constant):
    """XLA's generator of random bits: fast, and other bits on each platform unless `algorithm` names one."""

    multiple_results = True

    def type_rule(self, state, *, shape, dtype, algorithm):
        if (state.shape, state.dtype) not in _STATES:
            raise TypeError(f"rng_bit_generator expects a state u32[4] or u64[2], got {state}")
        if not dtypes.is_unsigned(dtype) or dtypes.bit_width(dtype) < 8:
            raise TypeError(f"rng_bit_generator gives unsigned integers of 8 to 64 bits, not {dtypes.short_name(dtype)}")
        if algorithm not in _ALGORITHMS:
            raise ValueError(f"rng_bit_generator: expected an algorithm among {', '.join(_ALGORITHMS)}, got {algorithm!r}")
        return shaped(state.shape, state.dtype), shaped(shape, dtype)

    # A batch of states would be one run for each; in place of that the first state generates the bits of all.
    def batch_rule(self, axis, operands, dims, *, shape, dtype, algorithm):
        states = moveaxis(operands[0], dims[0], 0)
        if not axis.size:
            return [states, zeros(shaped((0, *shape), dtype))], [0, 0]
        first = reshape(slice_in_dim(states, 0, 1), aval_of(states).shape[1:])
        new, bits = rng_bit_generator(first, (axis.size, *shape), dtype, algorithm)
        others = slice_in_dim(states, 1, axis.size)
        return [concatenate([reshape(new, (1, *aval_of(new).shape)), others], 0), bits], [0, 0]


rng_bit_generator_p = RngBitGenerator("rng_bit_generator")


def rng_bit_generator(state, shape, dtype=_U32, algorithm: str = "default"):
    """[the state u32[4] or u64[2] after the call, random bits of this shape and unsigned dtype]."""
    return bind(rng_bit_generator_p, (state,), {"shape": tuple(shape), "dtype": dtype, "algorithm": algorithm})


# ---- keys ------------------------------------------------------------------------------------------------------


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
