"""Triangular and orthogonal factors of matrices, and the systems that they solve."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.lax.operands import array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import linalg_cholesky, linalg_lu, linalg_qr, linalg_solve
from funcml.primitives.matrices import adjoint, lower, product, transposed
from funcml.primitives.tangents import scalar_of

__all__ = [
    "cholesky", "cholesky_update", "geqp3", "geqrf", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qr",
    "symmetric_product", "triangular_solve", "tridiagonal_solve",
]


def _filled(x, value):
    return ax.broadcast_in_dim(scalar_of(x.aval, value), x.shape)


# ---- positive definite matrices ----------------------------------------------------------------------------------


def cholesky(x, *, symmetrize_input: bool = True) -> Array:
    """l, lower triangular with x = l l^H, of positive definite matrices [.., n, n]; nan for those that are not.

    With `symmetrize_input`, (x + x^H) / 2 is factored; else the lower triangle is read, and the derivative is with respect to
    it. Raises TypeError for dtypes other than f32, f64, c64 and c128, ValueError for matrices that are not square.

    >>> import numpy as np
    >>> cholesky(np.float32([[4, 2], [2, 5]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return _cholesky(array("linalg.cholesky", x), bool(symmetrize_input))


@fused(static=("symmetrize",))
def _cholesky(x, symmetrize):
    if symmetrize and x.ndim > 1 and x.shape[-1] == x.shape[-2] and dtypes.is_inexact(x.dtype):
        x = ew.mul(ew.add(x, adjoint(x)), _filled(x, 0.5))
    return linalg_cholesky.cholesky(x)


def cholesky_update(r_matrix, w_vector) -> Array:
    """s, upper triangular with s^T s = r^T r + w w^T, for an upper triangular r [.., n, n] and w [.., n]; real numbers."""
    return linalg_cholesky.cholesky_update(
        array("linalg.cholesky_update", r_matrix), array("linalg.cholesky_update", w_vector)
    )


def symmetric_product(
    a_matrix, c_matrix, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """alpha a a^T + beta c, for a [.., m, n] and a symmetric c [.., m, m].

    With `symmetrize_output` the upper triangle is the lower one's mirror image, in every bit.
    """
    a, c = array("linalg.symmetric_product", a_matrix), array("linalg.symmetric_product", c_matrix)
    if a.ndim < 2 or c.shape != (*a.shape[:-1], a.shape[-2]) or a.dtype != c.dtype:
        raise ValueError(
            f"lax.linalg.symmetric_product expects a [.., m, n] and c [.., m, m] of one dtype, got {a.aval} and {c.aval}"
        )
    return _symmetric_product(a, c, float(alpha), float(beta), bool(symmetrize_output))


@fused(static=("alpha", "beta", "symmetrize"))
def _symmetric_product(a, c, alpha, beta, symmetrize):
    out = product(a, transposed(a))
    out = ew.mul(out, _filled(out, alpha))
    if beta:
        out = ew.add(out, ew.mul(c, _filled(c, beta)))
    return ew.add(lower(out), transposed(lower(out, -1))) if symmetrize else out


# ---- elimination -------------------------------------------------------------------------------------------------


def lu(x) -> tuple[Array, Array, Array]:
    """(lu, pivots, permutation) of matrices [.., m, n]: x[permutation] = l u.

    l stands below the diagonal of `lu` (its own has ones), u on and above it. Row i was exchanged with row `pivots[i]`. A zero
    on the diagonal of u shows a singular matrix.
    """
    return linalg_lu.lu(array("linalg.lu", x))


def lu_pivots_to_permutation(pivots, permutation_size: int) -> Array:
    """The permutation (i32 [.., permutation_size]) of rows that exchanging row i with row `pivots[i]` makes."""
    size = index_of("lax.linalg.lu_pivots_to_permutation", "permutation_size", permutation_size)
    return linalg_lu.lu_pivots_to_permutation(array("linalg.lu_pivots_to_permutation", pivots), size)


# ---- reflections -------------------------------------------------------------------------------------------------


def geqrf(a) -> tuple[Array, Array]:
    """(packed, taus) of matrices [.., m, n]: r on and above the diagonal, the reflections of q below it and in `taus`."""
    return linalg_qr.geqrf(array("linalg.geqrf", a))


def geqp3(a, jpvt, *, use_magma: bool | None = None) -> tuple[Array, Array, Array]:
    """(packed, jpvt, taus) with a[:, jpvt - 1] = q r, the greatest column first; columns whose given `jpvt` is not 0 lead."""
    return linalg_qr.geqp3(array("linalg.geqp3", a), array("linalg.geqp3", jpvt), use_magma=use_magma)


def householder_product(a, taus) -> Array:
    """The first n columns of q, the product of the reflections that `geqrf` gives as a [.., m, n] and taus [.., k]."""
    return linalg_qr.householder_product(
        array("linalg.householder_product", a), array("linalg.householder_product", taus)
    )


def ormqr(a, taus, c, *, left: bool = True, transpose: bool = False) -> Array:
    """q c, or c q (not `left`), with q^H in place of q for `transpose`; q as for `householder_product`, but square."""
    a, taus, c = (array("linalg.ormqr", x) for x in (a, taus, c))
    return linalg_qr.ormqr(a, taus, c, left=left, transpose=transpose)


def qr(x, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple[Array, ...]:
    """(q, r) of matrices [.., m, n], and with `pivoting` the permutation of columns for which x[:, permutation] = q r.

    q is [.., m, m] and r [.., m, n] with `full_matrices`; else min(m, n) columns and rows of them.
    """
    return linalg_qr.qr(array("linalg.qr", x), pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)


# ---- systems -----------------------------------------------------------------------------------------------------


def triangular_solve(
    a,
    b,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """x with op(a) x = b (`left_side`) or x op(a) = b, for triangular a [.., n, n] and b of matrices, or of vectors [.., n].

    One triangle of `a` is read, and its diagonal taken as ones with `unit_diagonal`. op transposes and conjugates as asked.
    """
    a, b = array("linalg.triangular_solve", a), array("linalg.triangular_solve", b)
    how = (bool(left_side), bool(lower), bool(transpose_a), bool(conjugate_a), bool(unit_diagonal))
    return _triangular_solve(a, b, how)


@fused(static=("how",))
def _triangular_solve(a, b, how):
    left_side, lower, transpose_a, conjugate_a, unit_diagonal = how
    options = {"lower": lower, "transpose_a": transpose_a, "conjugate_a": conjugate_a, "unit_diagonal": unit_diagonal}
    if b.ndim != a.ndim - 1:
        return linalg_solve.triangular_solve(a, b, left_side=left_side, **options)
    place = b.ndim if left_side else b.ndim - 1
    out = linalg_solve.triangular_solve(a, ax.expand_dims(b, (place,)), left_side=left_side, **options)
    return ax.squeeze(out, (place,))


def tridiagonal_solve(dl, d, du, b, *, perturb_singular: bool = False) -> Array:
    """x with dl_i x_{i-1} + d_i x_i + du_i x_{i+1} = b_i: three diagonals [.., n] and a right-hand side [.., n, m].

    The first of `dl` and the last of `du` are not read. With `perturb_singular`, pivots that are nearly zero are enlarged.
    """
    dl, d, du, b = (array("linalg.tridiagonal_solve", x) for x in (dl, d, du, b))
    return linalg_solve.tridiagonal_solve(dl, d, du, b, perturb_singular=perturb_singular)
