"""Linear algebra under SciPy's names; leading axes are batch axes."""

# isort: off
from funcml.scipy.linalg.constant_matrices import dft, hadamard, helmert, hilbert, invhilbert, invpascal, pascal
from funcml.scipy.linalg.exponential import expm, expm_frechet
from funcml.scipy.linalg.factorizations import (
    cho_factor, cholesky, hessenberg, lu, lu_factor, qr, qr_multiply, svd,
)
from funcml.scipy.linalg.polar_forms import polar
from funcml.scipy.linalg.schur_forms import funm, rsf2csf, schur, solve_sylvester, sqrtm
from funcml.scipy.linalg.spectral import eigh, eigh_tridiagonal
from funcml.scipy.linalg.structured_matrices import (
    block_diag, circulant, companion, convolution_matrix, fiedler, fiedler_companion, hankel, leslie, toeplitz,
)
from funcml.scipy.linalg.systems import cho_solve, det, inv, lu_solve, solve, solve_triangular
# isort: on

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]
