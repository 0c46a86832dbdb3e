"""Random bits: the threefry block cipher and XLA's generator.

    threefry2x32      : k1, k2, x1, x2 [*shape] of u32 -> y1, y2 [*shape] of u32       20 rounds
    rng_bit_generator : state u32[4], shape, dtype -> new state u32[4], bits [*shape]

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

__all__ = ["rng_bit_generator", "rng_bit_generator_p", "threefry2x32", "threefry2x32_p"]

_U32 = np.dtype("uint32")


class _Generator(Primitive):
    """What gives several results without a derivative."""

    multiple_results = True

    def jvp_rule(self, primals, tangents, **params):
        outs = bind(self, primals, params)
        return outs, [zero_tangent(y) for y in outs]


class Threefry2x32(_Generator):
    """y = E_k(x): the words (x1, x2) under the key (k1, k2), element by element."""

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


class RngBitGenerator(_Generator):
    """XLA's generator of random bits: fast, and other bits on each platform unless `algorithm` names one."""

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
