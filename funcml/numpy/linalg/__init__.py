"""Linear algebra under NumPy's names, on batches of matrices in the last two axes."""

# isort: off
from funcml.numpy.linalg.determinants import det, slogdet
from funcml.numpy.linalg.factors import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from funcml.numpy.linalg.norms import cond, matrix_norm, norm, vector_norm
from funcml.numpy.linalg.products import (
    cross, diagonal, matmul, matrix_power, matrix_transpose, multi_dot, outer, tensordot, trace, vecdot,
)
from funcml.numpy.linalg.systems import inv, lstsq, matrix_rank, pinv, solve, tensorinv, tensorsolve
# isort: on

__all__ = [
    # determinants
    "det",
    "slogdet",
    # factors
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "qr",
    "svd",
    "svdvals",
    # norms
    "cond",
    "matrix_norm",
    "norm",
    "vector_norm",
    # products and parts
    "cross",
    "diagonal",
    "matmul",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    # systems
    "inv",
    "lstsq",
    "matrix_rank",
    "pinv",
    "solve",
    "tensorinv",
    "tensorsolve",
]
