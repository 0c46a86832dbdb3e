"""Samples of discrete distributions.

For the same key they are those of JAX, bit for bit where XLA compiles both alike.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, shape_of
from funcml.numpy.promotion import as_array, operand, spread
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import moveaxis, reshape
from funcml.primitives.reductions import argmax
from funcml.primitives.sorting import top_k
from funcml.random.bits import random_bits
from funcml.random.continuous import uniform_of, uniform_of_pair
from funcml.random.extremes import checked_mode, gumbel_of
from funcml.random.implementations import UNSIGNED_OF_WIDTH
from funcml.random.keys import one_key, several
from funcml.random.parameters import parameter, shape_with

__all__ = ["bernoulli", "bernoulli_of", "categorical", "rademacher", "rademacher_of", "randint", "randint_of"]

# ---- integers ------------------------------------------------------------------------------------------------


def randint(key, shape, minval, maxval, dtype=None) -> Array:
    """Uniform integers in [minval, maxval); the bounds broadcast to `shape`. Where maxval <= minval they are minval.

    Twice the bits of the dtype (of int32 at least) are drawn and divided with rest, so that the bias is below one part
    in 2**32. Bounds are limited to what the dtype holds; one above its maximum stands for all that it holds.

    >>> from funcml import random
    >>> random.randint(random.key(0), (3,), 0, 10)
    Array([9, 0, 2], dtype=int32)
    """
    key = one_key("randint", key)
    dtype = dtypes.default_int() if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_integer(dtype):
        raise TypeError(f"randint: expected an integer dtype, got {dtypes.short_name(dtype)}")
    low, high = (_bound(what, x) for what, x in (("minval", minval), ("maxval", maxval)))
    return _randint(key, low, high, shape_with("randint", shape_of("randint", shape), low, high), dtype)


def _bound(what: str, x):
    """A bound as an integer array or scalar of a dtype that holds it."""
    if type(x) is int:
        holding = (d for d in (dtypes.int32, dtypes.int64, dtypes.uint64) if dtypes.iinfo(d).min <= x <= dtypes.iinfo(d).max)
        return np.asarray(x, next(holding, dtypes.int64))
    x = operand("randint", x)
    if not dtypes.is_integer(aval_of(x).dtype):
        raise TypeError(f"randint: expected integers as {what}, got {aval_of(x)}; round and convert it first")
    return x


@fused(static=("shape", "dtype"))
def _randint(key, minval, maxval, shape, dtype):
    return randint_of(key, minval, maxval, shape, dtype)


def randint_of(key, minval, maxval, shape, dtype):
    """`randint` inside a program."""
    limits = dtypes.iinfo(dtype)
    low, high = as_array(minval), as_array(maxval)
    if limits.bits < 32:
        low, high = _clipped(low, int(limits.min), int(limits.max)), _clipped(high, int(limits.min), int(limits.max) + 1)
        sample = _randint_wide(key, ew.convert(low, dtypes.int32), ew.convert(high, dtypes.int32), shape, dtypes.int32)
        return ew.convert(sample, dtype)
    return _randint_wide(key, low, high, shape, dtype)


def _clipped(x, least: int, greatest: int):
    limits = dtypes.iinfo(aval_of(x).dtype)
    bounds = (max(least, int(limits.min)), min(greatest, int(limits.max)))
    return ew.min(ew.max(x, bounds[0]), bounds[1])


# With n bits, span = maxval - minval and random words h, l of n bits each:  minval + (2^n h + l) mod span, where
# 2^n mod span = (2^(n/2) mod span)^2 mod span. A span of 2^n wraps to 0, by which XLA divides with rest x.
def _randint_wide(key, low, high, shape, dtype):
    limits = dtypes.iinfo(dtype)
    least, greatest, width = int(limits.min), int(limits.max), int(limits.bits)
    unsigned = UNSIGNED_OF_WIDTH[width]
    reaches_end = ew.gt(high, min(greatest, int(dtypes.iinfo(aval_of(high).dtype).max)))
    low, high = (spread(ew.convert(_clipped(x, least, greatest), dtype), shape) for x in (low, high))
    reaches_end = spread(reaches_end, shape)
    span = ew.convert(ew.sub(high, low), unsigned)
    span = ew.select(ew.le(high, low), parameter("randint", 1, unsigned, shape), span)
    span = ew.select(ew.and_(reaches_end, ew.gt(high, low)), ew.add(span, 1), span)
    higher, lower = (random_bits(k, shape, width) for k in several(key, 2))
    root = ew.rem(parameter("randint", 2 ** (width // 2), unsigned, shape), span)
    factor = ew.rem(ew.mul(root, root), span)
    offset = ew.rem(ew.add(ew.mul(ew.rem(higher, span), factor), ew.rem(lower, span)), span)
    return ew.add(low, ew.convert(offset, dtype))


# ---- two values ----------------------------------------------------------------------------------------------


def bernoulli(key, p=0.5, shape=None, mode: str | None = "low") -> Array:
    """True with probability `p`, which broadcasts to `shape` or gives it.

    `mode="high"` draws twice as many bits, for probabilities below 1e-7 in float32.

    >>> from funcml import random
    >>> random.bernoulli(random.key(0), 0.5, (3,))
    Array([False, False,  True], dtype=bool)
    """
    mode = checked_mode("bernoulli", mode, ("low", "high"))
    key, p = one_key("bernoulli", key), operand("bernoulli", p)
    if not dtypes.is_float(aval_of(p).dtype):
        raise TypeError(f"bernoulli: expected floating probabilities p, got {aval_of(p)}")
    return _bernoulli(key, p, shape_with("bernoulli", shape, p), mode)


@fused(static=("shape", "mode"))
def _bernoulli(key, p, shape, mode):
    return bernoulli_of(key, p, shape, mode)


# u < p;  in mode "high" u = u_1 + 2^-m u_2, compared without rounding the sum
def bernoulli_of(key, p, shape, mode):
    """`bernoulli` inside a program."""
    dtype = aval_of(p).dtype
    p = parameter("bernoulli", p, dtype, shape)
    if mode == "low":
        return ew.lt(uniform_of(key, shape, dtype, 0.0, 1.0), p)
    first, second = uniform_of_pair(key, shape, dtype)
    return ew.lt(ew.mul(second, 2.0 ** -int(dtypes.finfo(dtype).nmant)), ew.sub(p, first))


def rademacher(key, shape=(), dtype=None) -> Array:
    """Values -1 and 1 with equal probability, as integers or as numbers of any dtype."""
    dtype = dtypes.default_int() if dtype is None else dtypes.canonical(dtype)
    return _rademacher(one_key("rademacher", key), shape_of("rademacher", shape), dtype)


@fused(static=("shape", "dtype"))
def _rademacher(key, shape, dtype):
    return rademacher_of(key, shape, dtype)


def rademacher_of(key, shape, dtype):
    """`rademacher` inside a program."""
    heads = bernoulli_of(key, dtypes.default_float().type(0.5), shape, "low")
    return ew.sub(ew.mul(ew.convert(heads, dtype), 2), 1)


# ---- one of several ------------------------------------------------------------------------------------------


def categorical(key, logits, axis: int = -1, shape=None, replace: bool = True, mode: str | None = None) -> Array:
    """Indices i along `axis` with probabilities softmax(logits)_i.

    The other axes of `logits` are a batch; `shape` is its shape, or that with more axes in front. Without `replace` the
    samples along these front axes are distinct. `mode` is that of `gumbel`.

    Source: the index of the greatest logit + Gumbel sample (Gumbel-max), or of the k greatest (Kool et al. 2019).
    """
    mode = checked_mode("categorical", mode)
    key, logits = one_key("categorical", key), operand("categorical", logits)
    aval = aval_of(logits)
    if not dtypes.is_float(aval.dtype) or not aval.ndim:
        raise TypeError(f"categorical: expected floating logits with an axis, got {aval}")
    axis = axis_of("categorical", axis, aval.ndim)
    batch = (*aval.shape[:axis], *aval.shape[axis + 1 :])
    shape = batch if shape is None else _with_batch(shape_of("categorical", shape), batch)
    front = shape[: len(shape) - len(batch)]
    if not replace and math.prod(front) > aval.shape[axis]:
        raise ValueError(
            f"categorical: Number of samples without replacement, {math.prod(front)}, exceeds the "
            f"{aval.shape[axis]} categories of {aval} on axis {axis}"
        )
    return _categorical(key, logits, axis, shape, front, bool(replace), mode)


def _with_batch(shape, batch):
    placeholder = np.broadcast_to(np.float32(0), batch)
    return shape_with("categorical", shape, placeholder)


@fused(static=("axis", "shape", "front", "replace", "mode"))
def _categorical(key, logits, axis, shape, front, replace, mode):
    aval = aval_of(logits)
    if replace:
        batch = shape[len(front) :]
        noise = gumbel_of(key, (*front, *batch[:axis], aval.shape[axis], *batch[axis:]), aval.dtype, mode)
        return argmax(ew.add(noise, spread(logits, aval_of(noise).shape)), len(front) + axis, dtypes.default_int())
    noisy = moveaxis(ew.add(logits, gumbel_of(key, aval.shape, aval.dtype, mode)), axis, aval.ndim - 1)
    _, indices = top_k(noisy, math.prod(front))
    return ew.convert(reshape(moveaxis(indices, aval.ndim - 1, 0), shape), dtypes.int32)
