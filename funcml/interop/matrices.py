"""Factorisations and systems of JAX in funcml's. The rules stand in the table of `translations`."""

from __future__ import annotations

from funcml.interop.translations import rule
from funcml.primitives import linalg_cholesky, linalg_lu, linalg_qr, linalg_solve, linalg_spectral

__all__: list[str] = []


@rule("cholesky")
def _cholesky(eqn, a, **params):
    return linalg_cholesky.cholesky(a)


@rule("lu")
def _lu(eqn, a, **params):
    return linalg_lu.lu(a)


@rule("lu_pivots_to_permutation")
def _lu_pivots_to_permutation(eqn, pivots, *, permutation_size):
    return linalg_lu.lu_pivots_to_permutation(pivots, permutation_size)


@rule("qr")
def _qr(eqn, a, *, pivoting, full_matrices, **params):
    return linalg_qr.qr(a, pivoting=pivoting, full_matrices=full_matrices)


@rule("geqrf")
def _geqrf(eqn, a):
    return linalg_qr.geqrf(a)


@rule("householder_product")
def _householder_product(eqn, a, taus):
    return linalg_qr.householder_product(a, taus)


@rule("eigh")
def _eigh(eqn, a, *, lower, sort_eigenvalues, **params):
    return linalg_spectral.eigh(a, lower=lower, sort_eigenvalues=sort_eigenvalues)


# JAX: (s, u, vh) or (s,)
@rule("svd")
def _svd(eqn, a, *, full_matrices, compute_uv, **params):
    if not compute_uv:
        return [linalg_spectral.svdvals(a)]
    u, s, vh = linalg_spectral.svd(a, full_matrices=full_matrices)
    return [s, u, vh]


@rule("triangular_solve")
def _triangular_solve(eqn, a, b, **params):
    return linalg_solve.triangular_solve(a, b, **params)
