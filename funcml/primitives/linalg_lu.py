"""Factors by elimination with row exchanges.

    lu : a [.., m, n] -> (lu [.., m, n], pivots [.., k], permutation [.., m])    k = min(m, n), a[permutation] = l u
    lu_pivots_to_permutation : pivots [.., k] -> permutation [.., m]

l has ones on its diagonal and stands below that of `lu`, u on and above it.
"""

from __future__ import annotations

import operator

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.linear import is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.elementwise import add, select
from funcml.primitives.indexing import take_along_axis
from funcml.primitives.linalg_solve import triangular_solve
from funcml.primitives.matrices import MatrixPrimitive, diagonal_mask, eye, lower, product, upper
from funcml.primitives.shaping import pad, slice_in_dim
from funcml.primitives.tangents import zero_tangent

__all__ = ["lu", "lu_pivots_to_permutation", "rows_taken"]


class Lu(MatrixPrimitive):
    """(lu, pivots, permutation): row i was exchanged with row `pivots[i]` (i32), which makes `permutation` (i32)."""

    multiple_results = True

    def type_rule(self, a):
        batch = self.batch_of(a)
        m, n = a.shape[-2:]
        return (
            a.update(weak_type=False),
            shaped((*batch, min(m, n)), dtypes.int32),
            shaped((*batch, m), dtypes.int32),
        )

    # p a = l u  =>  l^-1 p a' u^-1 = l^-1 l' + u' u^-1, of which the first is strictly lower, the second upper triangular
    def jvp_rule(self, primals, tangents):
        outs = bind(self, primals)
        packed, pivots, permutation = outs
        (t,) = tangents
        if is_zero(t):
            return outs, list(map(zero_tangent, outs))
        l, u = _square_factors(packed)
        changed = triangular_solve(l, rows_taken(t, permutation), left_side=True, lower=True, unit_diagonal=True)
        changed = triangular_solve(u, changed)
        moved = add(product(l, lower(changed, -1)), product(upper(changed), u))
        return outs, [moved, zero_tangent(pivots), zero_tangent(permutation)]


def _square_factors(packed):
    """l [.., m, m] and u [.., n, n], filled up with ones on the diagonal."""
    m, n = aval_of(packed).shape[-2:]
    k = min(m, n)
    l = lower(slice_in_dim(packed, 0, k, axis=aval_of(packed).ndim - 1), -1)
    l = _filled(l, m)
    l = select(diagonal_mask(aval_of(l).shape), eye(aval_of(l)), l)
    u = _filled(upper(slice_in_dim(packed, 0, k, axis=aval_of(packed).ndim - 2)), n)
    if n > k:
        more = eye(aval_of(u).update(shape=(*aval_of(u).shape[:-2], n - k, n - k)))
        u = add(u, pad(more, 0.0, [*[(0, 0, 0)] * (aval_of(u).ndim - 2), (k, 0, 0), (k, 0, 0)]))
    return l, u


def _filled(x, n):
    """`x` with zeros around, [.., n, n]."""
    *batch, rows, columns = aval_of(x).shape
    return pad(x, 0.0, [*[(0, 0, 0)] * len(batch), (0, n - rows, 0), (0, n - columns, 0)])


lu_p = Lu("lu", (2,))


def lu(a):
    """(lu, pivots, permutation) of `a` [.., m, n], with a[permutation] = l u."""
    return tuple(bind(lu_p, (a,)))


def rows_taken(x, permutation):
    """`x[permutation]` for each of a batch of matrices."""
    aval = aval_of(x)
    places = broadcast_in_dim(permutation, (*aval_of(permutation).shape, aval.shape[-1]), tuple(range(aval.ndim - 1)))
    return take_along_axis(x, places, aval.ndim - 2)


class LuPivotsToPermutation(MatrixPrimitive):
    """The permutation of `permutation_size` rows that exchanging row i with row `pivots[i]`, i = 0, 1, .., makes."""

    def type_rule(self, pivots, *, permutation_size):
        if pivots.dtype != dtypes.int32 or not pivots.ndim:
            raise TypeError(f"{self.name} expects pivots i32[.., k], got {pivots}; convert them with `.astype`")
        if pivots.shape[-1] > permutation_size:
            raise ValueError(
                f"{self.name}: {pivots} exchanges {pivots.shape[-1]} rows, so permutation_size must be at least that, got "
                f"{permutation_size}"
            )
        return shaped((*pivots.shape[:-1], permutation_size), dtypes.int32)

    def jvp_rule(self, primals, tangents, **params):
        out = bind(self, primals, params)
        return out, zero_tangent(out)


lu_pivots_to_permutation_p = LuPivotsToPermutation("lu_pivots_to_permutation", (1,), indices=(0,))


def lu_pivots_to_permutation(pivots, permutation_size: int):
    """The permutation (i32 [.., permutation_size]) of rows that exchanges by `pivots` (i32 [.., k]) make."""
    return bind(lu_pivots_to_permutation_p, (pivots,), {"permutation_size": operator.index(permutation_size)})
