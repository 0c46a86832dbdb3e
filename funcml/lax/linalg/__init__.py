"""Factorisations of batches of matrices, as primitives give them: strict about dtypes and shapes."""

# isort: off
from funcml.lax.linalg.factorizations import (
    cholesky, cholesky_update, geqp3, geqrf, householder_product, lu, lu_pivots_to_permutation, ormqr, qr,
    symmetric_product, triangular_solve, tridiagonal_solve,
)
from funcml.lax.linalg.polar import qdwh
from funcml.lax.linalg.spectral import eig, eigh, hessenberg, schur, svd, tridiagonal
from funcml.primitives.linalg_eig import EigImplementation
from funcml.primitives.linalg_spectral import EighImplementation, SvdAlgorithm
# isort: on

__all__ = [
    # triangular and orthogonal factors, and systems
    "cholesky",
    "cholesky_update",
    "geqp3",
    "geqrf",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qr",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal_solve",
    # eigenvalues, singular values and the forms that lead to them
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "eig",
    "eigh",
    "hessenberg",
    "qdwh",
    "schur",
    "svd",
    "tridiagonal",
]
