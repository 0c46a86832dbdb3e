"""Random order, and random choice from what is there.

For the same key the results are those of JAX; where probabilities are given, up to rounding in their running sum.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, concrete, shape_of
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import broadcast_in_dim, expand_dims, reshape
from funcml.primitives.gather_scatter import GatherDimensionNumbers, gather
from funcml.primitives.reductions import cumsum
from funcml.primitives.sorting import sort, top_k
from funcml.random.bits import random_bits
from funcml.random.continuous import uniform_of
from funcml.random.discrete import randint_of
from funcml.random.extremes import checked_mode, gumbel_of
from funcml.random.keys import one_key, several

__all__ = ["choice", "permutation"]

# ---- order ---------------------------------------------------------------------------------------------------


def permutation(key, x, axis: int = 0, independent: bool = False) -> Array:
    """`x` (or 0, ..., x - 1 for an int) in random order along `axis`; with `independent`, each line in an order of its own.

    >>> from funcml import random
    >>> sorted(random.permutation(random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """
    key, (x, count) = one_key("permutation", key), _population("permutation", x)
    axis = axis_of("permutation", axis, 1 if count is not None else x.ndim)
    return _permutation(key, x, count, axis, bool(independent))


def _population(name: str, x):
    """(array, None), or (None, n) where a scalar n stands for 0, ..., n - 1."""
    x = operand(name, x)
    if aval_of(x).ndim:
        return as_array(x), None
    if not dtypes.is_integer(aval_of(x).dtype):
        raise TypeError(f"{name}: expected an int or an array with an axis, got {aval_of(x)}")
    return None, int(concrete(name, "the number of elements", x))


@fused(static=("count", "axis", "independent"))
def _permutation(key, x, count, axis, independent):
    if count is not None:
        return _shuffled(key, _range(count), 0)
    if independent or x.ndim == 1:
        return _shuffled(key, x, axis)
    return take(x, _shuffled(key, _range(x.shape[axis]), 0), axis)


def _range(n: int):
    return shaping.iota(dtypes.default_int(), (n,))


# Sorting by random words of 32 bits. Words may be equal; with k rounds, elements that are ordered by 32 k bits are not
# ordered fairly with probability below size^-1 for k = 3 log size / log 2^32.
def _shuffled(key, x, axis):
    size = math.prod(aval_of(x).shape)
    for _ in range(math.ceil(3 * math.log(max(1, size)) / math.log(2**32 - 1))):
        key, subkey = several(key, 2)
        words = random_bits(subkey, aval_of(x).shape, 32)
        _, x = sort((words, x), axis)
    return x


def take(x, indices, axis: int):
    """`x` at `indices` along `axis`, inside a program; the indices are in bounds."""
    shape, rank = aval_of(x).shape, aval_of(indices).ndim
    window = tuple([i if i < axis else i + rank - 1 for i in range(len(shape)) if i != axis])
    numbers = GatherDimensionNumbers(window, (axis,), (axis,))
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    return gather(x, expand_dims(indices, (rank,)), numbers, sizes, mode="promise_in_bounds")


# ---- choice --------------------------------------------------------------------------------------------------


def choice(key, a, shape=(), replace: bool = True, p=None, axis: int = 0, mode: str | None = None) -> Array:
    """Samples of shape `shape` from the elements of `a` along `axis`, or from 0, ..., a - 1 for an int.

    `p` are the probabilities of the elements, equal by default. Without `replace` no element comes twice. Raises ValueError
    for an empty `a`, for more samples than elements without `replace`, and for `p` of another length.
    """
    mode = checked_mode("choice", mode)
    key, (array, count) = one_key("choice", key), _population("choice", a)
    axis = 0 if array is None else axis_of("choice", axis, array.ndim)
    n, shape = count if array is None else array.shape[axis], shape_of("choice", shape)
    draws = math.prod(shape)
    if draws and n <= 0:
        raise ValueError("choice: expected at least one element to choose from, got none")
    if not replace and draws > n:
        raise ValueError(f"choice: {draws} samples were asked for, but there are {n} elements and replace=False")
    if p is not None and aval_of(operand("choice", p)).shape != (n,):
        raise ValueError(f"choice: expected probabilities p of the shape ({n},), got {aval_of(p)}")
    return _choice(key, array, p, n, shape, bool(replace), axis, mode)


@fused(static=("n", "shape", "replace", "axis", "mode"))
def _choice(key, array, p, n, shape, replace, axis, mode):
    draws = math.prod(shape)
    if not draws:
        indices = broadcast_in_dim(np.int32(0), shape)
    elif p is None:
        if not replace:
            return _some_in_order(key, array, n, shape, axis)
        indices = randint_of(key, np.int32(0), dtypes.default_int().type(n), shape, dtypes.default_int())
    else:
        p = to_inexact("choice", p)
        indices = _weighted(key, p, shape) if replace else _weighted_distinct(key, p, shape, mode)
    return ew.convert(indices, dtypes.default_int()) if array is None else take(array, indices, axis)


def _some_in_order(key, array, n, shape, axis):
    """The first elements of a permutation."""
    ordered = _permutation(key, array, n if array is None else None, axis, False)
    some = shaping.slice_in_dim(ordered, 0, math.prod(shape), axis=axis)
    whole = aval_of(ordered).shape
    return reshape(some, (*whole[:axis], *shape, *whole[axis + 1 :]))


# With c the running sum of p and r uniform in (0, c_n]: the first i with c_i >= r.
def _weighted(key, p, shape):
    total = cumsum(p)
    n, dtype = aval_of(p).shape[0], aval_of(p).dtype
    last = broadcast_in_dim(reshape(shaping.slice_in_dim(total, n - 1, n), ()), shape)
    threshold = ew.mul(last, ew.sub(1.0, uniform_of(key, shape, dtype, 0.0, 1.0)))
    return _first_not_below(total, threshold)


# Bisection: the answer lies in [low, low + 2^k) before step k, counted from the last.
def _first_not_below(ascending, x):
    n, shape = aval_of(ascending).shape[0], aval_of(x).shape
    low = broadcast_in_dim(np.int32(0), shape)
    for k in reversed(range(n.bit_length())):
        middle = ew.add(low, 2**k)
        below = ew.lt(take(ascending, ew.min(ew.sub(middle, 1), n - 1), 0), x)
        low = ew.select(ew.and_(below, ew.le(middle, n)), middle, low)
    return ew.min(low, n - 1)


def _weighted_distinct(key, p, shape, mode):
    """The indices of the greatest log p + Gumbel samples (Gumbel-top-k)."""
    aval = aval_of(p)
    noisy = ew.add(gumbel_of(key, aval.shape, aval.dtype, mode), tr.log(p))
    return reshape(top_k(noisy, math.prod(shape))[1], shape)
