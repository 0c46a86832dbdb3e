"""Polar factors of tall matrices by Halley's method with dynamic weights.

    x_{k+1} = x_k (a_k + b_k x_k^H x_k) (1 + c_k x_k^H x_k)^-1        x_0 = x / alpha, alpha >= |x|_2

With l_k a bound of the singular values of x_k from below, the weights are chosen for the best l_{k+1}; they depend on l_0 = eps
alone, so the steps are known beforehand: six bring every singular value to 1 in f64. A step is made by a QR factorisation while
c_k is large, then by a Cholesky factorisation.

Y. Nakatsukasa, Z. Bai and F. Gygi, Optimizing Halley's iteration for computing the matrix polar decomposition, 2010.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, reduce_sum
from funcml.primitives.linalg_cholesky import cholesky
from funcml.primitives.linalg_qr import qr
from funcml.primitives.linalg_solve import triangular_solve
from funcml.primitives.matrices import adjoint, eye, product
from funcml.primitives.powers import sqrt, square
from funcml.primitives.reductions import reduce_and, reduce_max
from funcml.primitives.shaping import concatenate, slice_in_dim
from funcml.primitives.tangents import scalar_of

__all__ = ["polar_factors"]


def _weights(eps: float, limit: int) -> list[tuple[float, float, float]]:
    """(a, b, c) of each step."""
    found: list[tuple[float, float, float]] = []
    low = eps
    while low + 5 * eps < 1 and len(found) < limit:
        square_of_low = low * low
        d = (4 * (1 / square_of_low - 1) / square_of_low) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(2 - d + 2 * (2 - square_of_low) / (square_of_low * root))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        low *= (a + b * square_of_low) / (1 + c * square_of_low)
        found.append((a, b, c))
    return found


def polar_factors(x, limit: int, eps: float):
    """(u, h, number of steps, converged): x = u h for x [.., m, n] with m >= n, by at most `limit` steps.

    `converged` (bool []): the last step changed each u by less than (5 eps)^(1/3).
    """
    weights = _weights(eps, limit)
    u = before = ew.mul(x, _spread(_inverse_bound(x), x))
    for a, b, c in weights:
        before, u = u, (_by_qr if c > 100 else _by_cholesky)(u, a, b, c)
    converged = _all_below(_norm(ew.sub(u, before)), (5 * eps) ** (1 / 3))
    # one step of Newton's method in the form of Schulz, for the last digits
    u = ew.sub(_times(u, 1.5), _times(product(u, product(adjoint(u), u)), 0.5))
    h = product(adjoint(u), x)
    return u, _times(ew.add(h, adjoint(h)), 0.5), len(weights), converged


def _times(x, factor: float):
    return ew.mul(x, scalar_of(aval_of(x), factor))


def _spread(s, x):
    """A number for each matrix, as wide as the matrices `x`, in their dtype."""
    aval = aval_of(x)
    s = ew.complex(s, 0.0) if dtypes.is_complex(aval.dtype) else s
    return broadcast_in_dim(s, aval.shape, tuple(range(aval.ndim - 2)))


def _inverse_bound(x):
    """1 / alpha with alpha^2 = |x|_1 |x|_inf, which is at least |x|_2^2; 1 where x is 0."""
    size, last = ew.abs(x), aval_of(x).ndim - 1
    aval = aval_of(size)
    if aval.size == 0:
        return broadcast_in_dim(scalar_of(aval, 1), aval.shape[:-2])
    columns = reduce_max(reduce_sum(size, (last - 1,)), (last - 1,))
    rows = reduce_max(reduce_sum(size, (last,)), (last - 1,))
    one = broadcast_in_dim(scalar_of(aval, 1), aval.shape[:-2])
    alpha = ew.mul(sqrt(columns), sqrt(rows))
    return ew.div(one, ew.select(ew.eq(alpha, 0), one, alpha))


def _norm(x):
    n = aval_of(x).ndim
    return sqrt(reduce_sum(square(ew.abs(x)), (n - 2, n - 1)))


def _all_below(s, limit: float):
    aval = aval_of(s)
    return reduce_and(ew.le(s, scalar_of(aval, limit)), tuple(range(aval.ndim)))


# [sqrt(c) x; 1] = [q1; q2] r:  x' = (b / c) x + (a - b / c) / sqrt(c) q1 q2^H
def _by_qr(x, a, b, c):
    aval = aval_of(x)
    *batch, m, n = aval.shape
    axis = len(batch)
    below = eye(aval.update(shape=(*batch, n, n)))
    q, _ = qr(concatenate([_times(x, math.sqrt(c)), below], axis), full_matrices=False)
    q1, q2 = slice_in_dim(q, 0, m, axis=axis), slice_in_dim(q, m, m + n, axis=axis)
    return ew.add(_times(x, b / c), _times(product(q1, adjoint(q2)), (a - b / c) / math.sqrt(c)))


# 1 + c x^H x = l l^H:  x' = (b / c) x + (a - b / c) x l^-H l^-1
def _by_cholesky(x, a, b, c):
    gram = product(adjoint(x), x)
    l = cholesky(ew.add(_times(gram, c), eye(aval_of(gram))))
    y = triangular_solve(l, x, lower=True, transpose_a=True, conjugate_a=True)
    y = triangular_solve(l, y, lower=True)
    return ew.add(_times(x, b / c), _times(y, a - b / c))
