"""Factors of positive definite matrices.

    cholesky        : a [.., n, n] -> l [.., n, n]             a = l l^H, l lower triangular with a positive diagonal
    cholesky_update : (r [.., n, n], w [.., n]) -> [.., n, n]  upper triangular s with s^T s = r^T r + w w^T
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.linear import is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, expand_dims
from funcml.primitives.elementwise import add, add_any, mul, select
from funcml.primitives.linalg_solve import triangular_solve
from funcml.primitives.matrices import (
    MatrixPrimitive,
    adjoint,
    diagonal_mask,
    lower,
    product,
    real_part,
    transposed,
    upper,
)
from funcml.primitives.tangents import instantiate, scalar_of, zero_tangent

__all__ = ["cholesky", "cholesky_update"]


def half_below(x):
    """phi(x): the lower triangle of `x` with half of its diagonal; phi(x) + phi(x)^H = x for hermitian x."""
    aval = aval_of(x)
    half = mul(x, broadcast_in_dim(scalar_of(aval, 0.5), aval.shape))
    return select(diagonal_mask(aval.shape), half, lower(x))


class Cholesky(MatrixPrimitive):
    """l with a = l l^H, read from the lower triangle of `a`; nan (in that triangle) if `a` is not positive definite."""

    def type_rule(self, a):
        self.batch_of(a)
        self.square(a)
        return a.update(weak_type=False)

    # a' = l' l^H + l l'^H  =>  l^-1 l' = phi(l^-1 a' l^-H)
    def jvp_rule(self, primals, tangents):
        l = bind(self, primals)
        (t,) = tangents
        if is_zero(t):
            return l, zero_tangent(l)
        below = lower(t, -1)
        t = add(select(diagonal_mask(aval_of(t).shape), real_part(t), below), adjoint(below))
        right = triangular_solve(l, t, lower=True, transpose_a=True, conjugate_a=True)
        return l, product(l, half_below(triangular_solve(l, right, left_side=True, lower=True)))


cholesky_p = Cholesky("cholesky", (2,))


def cholesky(a):
    """l [.., n, n], lower triangular with a = l l^H, of positive definite matrices of which the lower triangle is read."""
    return bind(cholesky_p, (a,))


class CholeskyUpdate(MatrixPrimitive):
    """s, upper triangular, with s^T s = r^T r + w w^T, r being the upper triangle of its operand; real numbers only."""

    def type_rule(self, r, w):
        self.batch_of(r, w)
        self.square(r)
        if dtypes.is_complex(r.dtype):
            raise TypeError(f"{self.name} expects real numbers, got {r} and {w}")
        if w.shape[-1] != r.shape[-1]:
            raise ValueError(f"{self.name} of {r} expects a vector of {r.shape[-1]} elements, got {w}")
        return r.update(weak_type=False)

    # a' = r'^T r + r^T r' + w' w^T + w w'^T  =>  s' = phi(s^-T a' s^-1)^T s
    def jvp_rule(self, primals, tangents):
        s = bind(self, primals)
        if all(map(is_zero, tangents)):
            return s, zero_tangent(s)
        (r, w), (tr, tw) = primals, map(instantiate, tangents)
        half = add_any(product(transposed(upper(r)), upper(tr)), _outer(w, tw))
        t = add_any(half, transposed(half))
        left = triangular_solve(s, t, left_side=True, transpose_a=True)
        return s, product(transposed(half_below(triangular_solve(s, left))), s)


def _outer(x, y):
    n = aval_of(x).ndim
    return product(expand_dims(x, (n,)), expand_dims(y, (n - 1,)))


cholesky_update_p = CholeskyUpdate("cholesky_update", (2, 1))


def cholesky_update(r, w):
    """s [.., n, n], upper triangular with s^T s = r^T r + w w^T."""
    return bind(cholesky_update_p, (r, w))
