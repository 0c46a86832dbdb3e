"""Roots and functions of upper triangular matrices, column by column, each by one triangular solve.

    root     : T [.., n, n] -> U                     U U = T
    function : T [.., n, n], f [.., n] -> F          F T = T F, f on the diagonal
"""

from __future__ import annotations

from funcml import dtypes, lax
from funcml import numpy as jnp
from funcml.lax import linalg as factors

__all__ = ["diagonal", "function", "root"]


def diagonal(t):
    """The diagonal [.., n] of square matrices."""
    return jnp.diagonal(t, axis1=-2, axis2=-1)


def _solved(t, b):
    """x with t x = b, for an upper triangle `t` and one column `b` [.., n]."""
    return factors.triangular_solve(t, b[..., None], left_side=True, lower=False)[..., 0]


def _by_columns(step, like, *xs):
    """The matrix whose columns step(j, those before (zeros from j on), *columns j of xs) gives, j = 0, 1, .."""

    def turn(found, given):
        j, *columns = given
        column = step(j, found, *columns)
        return jnp.where(jnp.arange(like.shape[-1]) == j, column[..., None], found), None

    columns = [jnp.moveaxis(x, -1, 0) for x in xs]
    return lax.scan(turn, jnp.zeros_like(like), (jnp.arange(like.shape[-1]), *columns))[0]


def _or_tiny(x):
    """`x`, and where it is 0 a number so small that only 0 divided by it is not large."""
    tiny = jnp.asarray(dtypes.finfo(x.dtype).tiny, x.dtype)
    return jnp.where(x == 0, tiny, x)


def _leading(t, j, shift, rest):
    """The first j rows and columns of `t` plus `shift` times the identity; ones on the diagonal beyond."""
    n = t.shape[-1]
    place = jnp.arange(n)
    new = jnp.where(place < j, rest(diagonal(t) + shift[..., None]), jnp.ones((), t.dtype))
    inside = (place[:, None] < place) & (place < j)
    return jnp.where(inside, t, 0) + new[..., None] * jnp.eye(n, dtype=t.dtype)


# column j, rows above: (U + u_jj) u_j = t_j;  u_jj = sqrt t_jj
# (A. Bjorck and S. Hammarling, A Schur method for the square root of a matrix, 1983)
def root(t):
    """U with U U = T, both upper triangles; the diagonal has the principal roots."""

    def step(j, u, t_j, u_jj):
        place = jnp.arange(t.shape[-1])
        above = _solved(_leading(u, j, u_jj, _or_tiny), jnp.where(place < j, t_j, 0))
        return jnp.where(place < j, above, jnp.where(place == j, u_jj[..., None], 0))

    return _by_columns(step, t, t, jnp.sqrt(diagonal(t)))


# column j, rows above: (T - t_jj) f_j = F t_j - f_jj t_j
# (B. Parlett, A recurrence among the elements of functions of triangular matrices, 1976)
def function(t, values):
    """F with F T = T F, both upper triangles; equal t_ii give what the numerator alone is."""

    def step(j, f, t_j, t_jj, f_jj):
        place = jnp.arange(t.shape[-1])
        t_j = jnp.where(place < j, t_j, 0)
        known = jnp.matmul(f, t_j[..., None], precision="highest")[..., 0] - f_jj[..., None] * t_j
        above = _solved(_leading(t, j, -t_jj, lambda d: jnp.where(d == 0, 1, d)), known)
        return jnp.where(place < j, above, jnp.where(place == j, f_jj[..., None], 0))

    return _by_columns(step, t, t, diagonal(t), values)
