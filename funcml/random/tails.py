"""The normal distribution far from its mean, where its distribution function is 1 to rounding.

    may_be_far     : (lower, upper) -> bool, decided before tracing
    in_far_tail    : (lower, upper) -> where the interval lies so far out that erf has lost half of its digits
    truncated_tail : (u, lower, upper) -> samples of that interval
    mills          : x -> R(x), for x that lie in a far tail

Notation: S(x) the upper tail probability, p(x) the density, R = S / p Mills' ratio.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.primitives import elementwise as ew
from funcml.primitives import special
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.powers import sqrt, square
from funcml.primitives.tangents import scalar_of
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["in_far_tail", "may_be_far", "mills", "truncated_tail"]

_NEAREST = 1.7  # no dtype's far tail begins before: bfloat16's at 1.71, float16's at 2.15, float32's at 3.6, float64's at 5.7
_CONVERGENT = {dtypes.float32: 13, dtypes.float64: 21}  # exact to rounding from there on
_NEWTON_STEPS = 3
_NEGLIGIBLE = 40.0  # further out than this from where a tail begins there is no probability left


def may_be_far(lower, upper) -> bool:
    """Whether some interval may lie in a far tail; false only for bounds that are known and near."""
    if isinstance(lower, Array) or isinstance(upper, Array):
        return True
    return bool(np.any(np.maximum(lower, np.negative(upper)) > _NEAREST))


def _wide(x):
    return ew.convert(x, dtypes.float32) if dtypes.bit_width(aval_of(x).dtype) < 32 else x


def in_far_tail(lower, upper):
    """Where the probability of being as far out as the interval is below the root of the machine epsilon."""
    distance = _wide(ew.max(lower, ew.neg(upper)))
    limit = math.sqrt(float(dtypes.finfo(aval_of(lower).dtype).eps))
    return ew.lt(special.erfc(ew.mul(distance, math.sqrt(0.5))), limit)


# R(x) = (1 / x) / (1 + t / (1 + 2t / (1 + 3t / ...))), t = 1 / x^2                           DLMF 7.9.3
# Its k-th convergent is A_k / B_k with A_{k+1} = A_k + k t A_{k-1}, and B likewise.
def mills(x):
    """R(x) for x that lie in a far tail: from 3.6 (float32) or 5.7 (float64) on."""
    inverse = ew.div(1.0, x)
    t, one = square(inverse), broadcast_in_dim(scalar_of(aval_of(x), 1), aval_of(x).shape)
    a_before, a, b_before, b = one, one, one, ew.add(t, 1.0)
    for k in range(2, _CONVERGENT[aval_of(x).dtype]):
        step = ew.mul(float(k), t)
        a_before, a = a, ew.add(a, ew.mul(step, a_before))
        b_before, b = b, ew.add(b, ew.mul(step, b_before))
    return ew.mul(inverse, ew.div(a, b))


# In the right tail a < X < b the sample solves S(X) = S(a) - u (S(a) - S(b)), u uniform; that is S(X) = v S(a) with
# v = 1 - u (1 - S(b) / S(a)). With S = R p and X = a + d it is
#     G(X) = d (a + X) / 2 - log R(X) + log R(a) + log v = 0,      G' = 1 / R,
# for Newton's method from the X at which G without the ratio of the R's is 0.
@custom_jvp
def _solution(u, a, b):
    log_mills = tr.log(mills(a))
    log_share = ew.sub(ew.sub(tr.log(mills(b)), log_mills), _half_difference_of_squares(b, a))
    log_v = tr.log1p(ew.mul(u, tr.expm1(log_share)))
    start = ew.mul(-2.0, log_v)
    x = ew.add(a, ew.div(start, ew.add(a, sqrt(ew.add(square(a), start)))))
    for _ in range(_NEWTON_STEPS):
        ratio = mills(x)
        residual = ew.sub(ew.add(_half_difference_of_squares(x, a), log_v), ew.sub(tr.log(ratio), log_mills))
        x = ew.sub(x, ew.mul(ratio, residual))
    return x


def _half_difference_of_squares(x, y):
    return ew.mul(0.5, ew.mul(ew.sub(x, y), ew.add(x, y)))


# p(X) X' = (1 - u) p(a) a' + u p(b) b';  u is made of bits and does not move
@_solution.defjvp
def _solution_jvp(primals, tangents):
    (u, a, b), (_, ta, tb) = primals, tangents
    x = _solution(u, a, b)
    from_a = ew.mul(ew.sub(1.0, u), tr.exp(_half_difference_of_squares(x, a)))
    from_b = ew.mul(u, tr.exp(_half_difference_of_squares(x, b)))
    return x, ew.add(ew.mul(from_a, ta), ew.mul(from_b, tb))


def truncated_tail(u, lower, upper):
    """Samples in intervals that lie in a far tail, from u uniform in [0, 1); elsewhere some finite numbers."""
    dtype = aval_of(u).dtype
    far = in_far_tail(lower, upper)
    u, lower, upper = (_wide(x) for x in (u, lower, upper))
    right = ew.gt(lower, 0.0)
    near = broadcast_in_dim(scalar_of(aval_of(u), 8), aval_of(u).shape)
    a = ew.select(far, ew.select(right, lower, ew.neg(upper)), near)
    b = ew.min(ew.select(far, ew.select(right, upper, ew.neg(lower)), near), ew.add(a, _NEGLIGIBLE))
    x = _solution(u, a, b)
    return ew.convert(ew.select(right, x, ew.neg(x)), dtype)
