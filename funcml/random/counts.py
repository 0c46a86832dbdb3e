"""Samples of numbers of events: Poisson, binomial, multinomial.

For the same key they are those of JAX, bit for bit where XLA compiles both alike and JAX's formula keeps its digits.

Sources: Hoermann, "The transformed rejection method for generating Poisson random variables" (1993); "The generation of binomial
random variates" (1993). Small means: Knuth, "The Art of Computer Programming" vol. 2, 3.4.1; Devroye, "Non-uniform random variate
generation" (1986), ch. X.4.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lax.loops import scan, while_loop
from funcml.lowering.execute import fused
from funcml.numpy.arguments import dtype_or, shape_of
from funcml.numpy.promotion import as_array, operand, promote_dtypes, spread, to_inexact
from funcml.numpy.rows import fill
from funcml.primitives import elementwise as ew
from funcml.primitives import special
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import broadcast_in_dim, moveaxis, reduce_or
from funcml.primitives.identities import stop_gradient
from funcml.primitives.powers import sqrt, square
from funcml.primitives.reductions import cumsum
from funcml.random.continuous import uniform_of
from funcml.random.keys import one_key, several, subkeys
from funcml.random.parameters import float_dtype, integer_dtype, shape_with

__all__ = ["binomial", "multinomial", "poisson"]

_MANY = 2**31 - 1  # steps after which a loop gives up
_LARGE = 1e5  # mean from which on the terms of a logarithm of a probability are greater than a float32 can tell


# ---- logarithms of probabilities -------------------------------------------------------------------------------

_SERIES = 8


# D(x) = (1 + x) log(1 + x) - x = sum over n >= 2 of (-x)^n / (n (n - 1)), by which near 0 nothing cancels
def _deviance(x):
    """D(x) for x > -1."""
    small = ew.lt(ew.abs(x), 0.1)
    near = ew.select(small, x, fill(x, 0))
    series = fill(x, 0)
    for n in range(_SERIES, 1, -1):
        series = ew.add(ew.mul(series, ew.neg(near)), 1.0 / (n * (n - 1)))
    y = ew.add(1.0, x)
    log_y = tr.log1p(ew.select(ew.gt(y, 0.0), x, fill(x, 0)))
    return ew.select(small, ew.mul(square(near), series), ew.sub(ew.mul(y, log_y), x))


# log k! = log sqrt(2 pi k) + k log k - k + tail(k), so that the probability of k for the mean m is
#     log p = -m D((k - m) / m) - log(2 pi k) / 2 - tail(k)
def _log_poisson_of_many(k, mean):
    """The logarithm of the probability of k for a large mean, with the tail of Stirling's formula left out."""
    x = ew.div(ew.sub(k, mean), mean)
    return ew.neg(ew.add(ew.mul(mean, _deviance(x)), ew.mul(0.5, tr.log(ew.mul(2 * math.pi, ew.max(k, 1.0))))))


# ---- the poisson distribution ----------------------------------------------------------------------------------


def poisson(key, lam, shape=None, dtype=None) -> Array:
    """Numbers of events with the mean `lam`, as integers of `dtype` (int32 by default); `lam` broadcasts to `shape` or gives it.

    Where `lam` is nan or negative the sample is -1; where it is infinite, the greatest integer of the dtype.

    >>> from funcml import random
    >>> random.poisson(random.key(0), 0.0, (3,)).tolist()
    [0, 0, 0]
    """
    key, dtype, lam = one_key("poisson", key), integer_dtype("poisson", dtype), operand("poisson", lam)
    if not dtypes.is_numeric(aval_of(lam).dtype) or dtypes.is_complex(aval_of(lam).dtype):
        raise TypeError(f"poisson: expected real numbers as lam, got {aval_of(lam)}")
    return _poisson(key, lam, shape_with("poisson", shape, lam), dtype)


@fused(static=("shape", "dtype"))
def _poisson(key, lam, shape, dtype):
    lam = spread(ew.convert(as_array(lam), dtypes.float32), shape)
    few, infinite = ew.or_(ew.ne(lam, lam), ew.lt(lam, 10.0)), ew.eq(lam, math.inf)
    limit = min(int(dtypes.iinfo(dtype).max), _MANY)
    by_product = _poisson_by_product(key, ew.select(few, lam, fill(lam, 0)), limit)
    by_rejection = _poisson_by_rejection(key, ew.select(ew.or_(few, infinite), fill(lam, _LARGE), lam), limit)
    found = ew.select(few, ew.convert(by_product, dtype), ew.convert(by_rejection, dtype))
    found = ew.select(infinite, fill(found, int(dtypes.iinfo(dtype).max)), found)
    return ew.select(ew.eq(lam, 0.0), fill(found, 0), found)


def _some(flags):
    return reduce_or(flags, tuple(range(aval_of(flags).ndim)))


# The number of uniform factors whose product is above exp(-lam), less the last.
def _poisson_by_product(key, lam, limit):
    shape = aval_of(lam).shape

    def goes_on(state):
        i, _, _, log_product = state
        return ew.and_(_some(ew.gt(log_product, ew.neg(lam))), ew.lt(i, limit))

    def step(state):
        i, k, key, log_product = state
        key, subkey = several(key, 2)
        k = ew.select(ew.gt(log_product, ew.neg(lam)), ew.add(k, 1), k)
        u = uniform_of(subkey, shape, dtypes.float32, 0.0, 1.0)
        return ew.add(i, 1), k, key, ew.add(log_product, tr.log(u))

    zero = broadcast_in_dim(np.int32(0), shape)
    k = while_loop(goes_on, step, (np.int32(0), zero, key, fill(lam, 0)))[1]
    return ew.sub(k, 1)


def _poisson_by_rejection(key, lam, limit):
    b = ew.add(0.931, ew.mul(2.53, sqrt(lam)))
    a = ew.add(-0.059, ew.mul(0.02483, b))
    inverse_alpha = ew.add(1.1239, ew.div(1.1328, ew.sub(b, 3.4)))
    certain = ew.sub(0.9277, ew.div(3.6224, ew.sub(b, 2.0)))
    log_lam, large = tr.log(lam), ew.gt(lam, _LARGE)

    def log_probability(k):
        plain = ew.sub(ew.add(ew.neg(lam), ew.mul(k, log_lam)), special.lgamma(ew.add(k, 1.0)))
        return ew.select(large, _log_poisson_of_many(k, lam), plain)

    def propose(u, v):
        near = ew.sub(0.5, ew.abs(u))
        slope = ew.add(ew.div(ew.mul(2.0, a), near), b)
        k = ew.floor(ew.add(ew.add(ew.mul(slope, u), lam), 0.43))
        height = tr.log(ew.div(ew.mul(v, inverse_alpha), ew.add(ew.div(a, ew.mul(near, near)), b)))
        inside = ew.and_(ew.ge(near, 0.07), ew.le(v, certain))
        outside = ew.or_(ew.lt(k, 0.0), ew.and_(ew.lt(near, 0.013), ew.gt(v, near)))
        return k, ew.or_(inside, ew.and_(ew.not_(outside), ew.le(height, log_probability(k))))

    return _rejection(key, lam, propose, limit)


def _rejection(key, like, propose, limit):
    """The first proposal that is accepted for each element; `propose(u, v) -> (k, accepted)`, u from (-1/2, 1/2)."""
    shape, dtype = aval_of(like).shape, aval_of(like).dtype

    def goes_on(state):
        i, _, accepted, _ = state
        return ew.and_(_some(ew.not_(accepted)), ew.lt(i, limit))

    def step(state):
        i, found, accepted, key = state
        key, key_u, key_v = several(key, 3)
        u = ew.sub(uniform_of(key_u, shape, dtype, 0.0, 1.0), 0.5)
        k, accept = propose(u, uniform_of(key_v, shape, dtype, 0.0, 1.0))
        return ew.add(i, 1), ew.select(accept, k, found), ew.or_(accepted, accept), key

    false = broadcast_in_dim(np.bool_(False), shape)
    return while_loop(goes_on, step, (np.int32(0), fill(like, -1), false, key))[1]


# ---- the binomial distribution ---------------------------------------------------------------------------------


def binomial(key, n, p, shape=None, dtype=None) -> Array:
    """Numbers of successes among `n` trials of probability `p`, as floats of `dtype`.

    `n` and `p` broadcast to `shape` or give it. Where `n` or `p` is nan or negative, or `p` above 1, the sample is nan; where
    `n` is infinite, inf.

    >>> from funcml import random
    >>> random.binomial(random.key(0), 7, 1.0, (2,)).tolist()
    [7.0, 7.0]
    """
    key, dtype = one_key("binomial", key), float_dtype("binomial", dtype)
    n, p = operand("binomial", n), operand("binomial", p)
    for what, x in (("n", n), ("p", p)):
        if dtypes.is_complex(aval_of(x).dtype) or dtypes.is_key(aval_of(x).dtype):
            raise TypeError(f"binomial: expected real numbers as {what}, got {aval_of(x)}")
    return _binomial(key, n, p, shape_with("binomial", shape, n, p), dtype)


@fused(static=("shape", "dtype"))
def _binomial(key, n, p, shape, dtype):
    return _binomial_of(key, n, p, shape, dtype)


# The rarer of both outcomes is counted: q = min(p, 1 - p).
def _binomial_of(key, n, p, shape, dtype):
    p = stop_gradient(spread(as_array(to_inexact("binomial", p)), shape))
    n = stop_gradient(spread(ew.convert(as_array(n), aval_of(p).dtype), shape))
    rare = ew.lt(p, 0.5)
    q = ew.select(rare, p, ew.sub(1.0, p))
    no_count, no_chance = ew.or_(ew.ne(n, n), ew.lt(n, 0.0)), ew.or_(ew.ne(q, q), ew.lt(q, 0.0))
    q = ew.select(no_chance, fill(q, 0.01), q)
    few = ew.or_(no_count, ew.le(ew.mul(n, q), 10.0))
    n = ew.floor(n)
    infinite = ew.eq(ew.abs(n), math.inf)
    rejected = ew.or_(few, infinite)
    by_waiting = _binomial_by_waiting(key, ew.select(few, n, fill(n, 0)), q)
    many, chance = ew.select(rejected, fill(n, 1e4), n), ew.select(rejected, fill(q, 0.5), q)
    found = ew.select(few, by_waiting, _binomial_by_rejection(key, many, chance))
    found = ew.select(infinite, fill(found, math.inf), found)
    found = ew.select(ew.or_(no_count, no_chance), fill(found, math.nan), found)
    mirrored = ew.and_(ew.not_(rare), ew.not_(ew.or_(infinite, ew.or_(no_count, no_chance))))
    return ew.convert(ew.select(mirrored, ew.sub(n, found), found), dtype)


# How many geometric waiting times fit into n trials.
def _binomial_by_waiting(key, n, q):
    shape, dtype, log_failure = aval_of(q).shape, aval_of(q).dtype, tr.log1p(ew.neg(q))

    def goes_on(state):
        i, _, waited, _ = state
        return ew.and_(_some(ew.le(waited, n)), ew.lt(i, _MANY))

    def step(state):
        i, count, waited, key = state
        subkey, key = several(key, 2)
        count = ew.select(ew.le(waited, n), ew.add(count, 1.0), count)
        u = uniform_of(subkey, shape, dtype, 0.0, 1.0)
        return ew.add(i, 1), count, ew.add(waited, ew.ceil(ew.div(tr.log(u), log_failure))), key

    return ew.sub(while_loop(goes_on, step, (np.int32(0), fill(q, 0), fill(q, 0), key))[1], 1.0)


def _binomial_by_rejection(key, n, q):
    deviation = sqrt(ew.mul(ew.mul(n, q), ew.sub(1.0, q)))
    b = ew.add(1.15, ew.mul(2.53, deviation))
    a = ew.add(ew.add(-0.0873, ew.mul(0.0248, b)), ew.mul(0.01, q))
    centre = ew.add(ew.mul(n, q), 0.5)
    certain = ew.sub(0.92, ew.div(4.2, b))
    alpha = ew.mul(ew.add(2.83, ew.div(5.1, b)), deviation)
    log_ratio = _binomial_log_ratio(n, q)

    def propose(u, v):
        near = ew.sub(0.5, ew.abs(u))
        k = ew.floor(ew.add(ew.mul(ew.add(ew.div(ew.mul(2.0, a), near), b), u), centre))
        height = tr.log(ew.div(ew.mul(v, alpha), ew.add(ew.div(a, ew.mul(near, near)), b)))
        inside = ew.and_(ew.ge(near, 0.07), ew.le(v, certain))
        possible = ew.and_(ew.ge(k, 0.0), ew.le(k, n))
        return k, ew.or_(inside, ew.and_(possible, ew.le(height, log_ratio(k))))

    return _rejection(key, n, propose, _MANY)


# With the mode m, r = q / (1 - q) and the tails of Stirling's formula,
#     log p(k) / p(m) = (m + 1/2) log((m + 1) / (r (n - m + 1))) + (n + 1) log((n - m + 1) / (n - k + 1))
#                     + (k + 1/2) log(r (n - k + 1) / (k + 1)) + tail(m) + tail(n - m) - tail(k) - tail(n - k);
# and where the mean is large, by deviances of the numbers of successes and of failures from their means.
def _binomial_log_ratio(n, q):
    mode, odds = ew.floor(ew.mul(ew.add(n, 1.0), q)), ew.div(q, ew.sub(1.0, q))
    left = ew.add(ew.sub(n, mode), 1.0)
    at_mode = ew.mul(ew.add(mode, 0.5), tr.log(ew.div(ew.add(mode, 1.0), ew.mul(odds, left))))
    tails = ew.add(_stirling_tail(mode), _stirling_tail(ew.sub(n, mode)))
    means = ew.mul(n, q), ew.mul(n, ew.sub(1.0, q))
    large = ew.gt(means[0], min(_LARGE, float(dtypes.finfo(aval_of(n).dtype).max)))

    def of_many(k):
        return ew.add(_log_poisson_of_many(k, means[0]), _log_poisson_of_many(ew.sub(n, k), means[1]))

    def log_ratio(k):
        rest = ew.add(ew.sub(n, k), 1.0)
        between = ew.mul(ew.add(n, 1.0), tr.log(ew.div(left, rest)))
        at_k = ew.mul(ew.add(k, 0.5), tr.log(ew.div(ew.mul(odds, rest), ew.add(k, 1.0))))
        plain = ew.add(ew.add(ew.add(at_mode, between), at_k), tails)
        plain = ew.sub(ew.sub(plain, _stirling_tail(k)), _stirling_tail(ew.sub(n, k)))
        return ew.select(large, ew.sub(of_many(k), of_many(mode)), plain)

    return log_ratio


_TAILS = [math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + (k + 1) - math.log(2 * math.pi) / 2 for k in range(10)]


# log k! = log sqrt(2 pi) + (k + 1/2) log(k + 1) - (k + 1) + tail(k)
def _stirling_tail(k):
    """The tail of Stirling's formula: known for k <= 9, else its asymptotic series."""
    k1 = ew.add(ew.clamp(fill(k, 0), k, fill(k, float(dtypes.finfo(aval_of(k).dtype).max) / 2)), 1.0)
    inverse_square = ew.div(1.0, square(k1))
    series = ew.sub(1 / 360, ew.mul(1 / 1260, inverse_square))
    tail = ew.div(ew.sub(1 / 12, ew.mul(series, inverse_square)), k1)
    for i, known in enumerate(_TAILS):
        tail = ew.select(ew.eq(ew.floor(k), float(i)), fill(k, known), tail)
    return tail


# ---- the multinomial distribution ------------------------------------------------------------------------------


def multinomial(key, n, p, *, shape=None, dtype=None, unroll: int | bool = 1) -> Array:
    """How often each of the k outcomes with probabilities `p` [.., k] occurs in `n` [..] trials, as floats [.., k] of `dtype`.

    `shape` is that of the result; `p` broadcasts to it, and `n` to it without the last axis. `unroll` is that of `lax.scan`.

    >>> import numpy as np
    >>> from funcml import random
    >>> random.multinomial(random.key(0), 10, np.float32([0.2, 0.3, 0.5])).sum().item()
    10.0
    """
    key = one_key("multinomial", key)
    n, p = (as_array(x) for x in promote_dtypes("multinomial", n, p, inexact=True))
    if not p.ndim or not dtypes.is_float(p.dtype):
        raise ValueError(f"multinomial: expected real probabilities p [.., k], got {p.aval}")
    shape = p.shape if shape is None else shape_of("multinomial", shape)
    if not shape:
        raise ValueError("multinomial: expected the shape [.., k] of the result, got ()")
    shape_with("multinomial", shape, p)
    shape_with("multinomial", shape[:-1], n)
    return _multinomial(key, n, p, shape, dtype_or(dtype, p.dtype), unroll)


# One outcome after the other: given those before, the number of outcome i is binomial with p_i / (p_i + p_{i+1} + ...).
@fused(static=("shape", "dtype", "unroll"))
def _multinomial(key, n, p, shape, dtype, unroll):
    n, p = spread(n, shape[:-1]), moveaxis(spread(p, shape), len(shape) - 1, 0)
    remaining = cumsum(p, 0, reverse=True)
    shares = ew.div(p, ew.select(ew.eq(remaining, 0.0), fill(remaining, 1), remaining))

    def step(left, share_and_key):
        share, key = share_and_key
        share = ew.clamp(fill(share, 0), share, fill(share, 1))
        count = _binomial_of(key, left, share, shape[:-1], aval_of(left).dtype)
        return ew.sub(left, count), count

    _, counts = scan(step, n, (shares, subkeys(key, shape[-1:])), unroll=unroll)
    return ew.convert(moveaxis(counts, 0, len(shape) - 1), dtype)
