"""Eigenvalues and singular values of batches of matrices, and the forms with few diagonals that lead to them."""

from __future__ import annotations

import operator

from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lax.operands import array
from funcml.lowering.execute import fused
from funcml.primitives import elementwise as ew
from funcml.primitives import linalg_condensed, linalg_eig
from funcml.primitives import linalg_spectral as spectral
from funcml.primitives.linalg_eig import EigImplementation
from funcml.primitives.linalg_spectral import EighImplementation, SvdAlgorithm
from funcml.primitives.matrices import adjoint
from funcml.primitives.shaping import slice_in_dim

__all__ = ["eig", "eigh", "hessenberg", "schur", "svd", "tridiagonal"]


def eigh(
    x,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """(v, w): eigenvectors [.., n, d] in columns and ascending eigenvalues [.., d] of Hermitian matrices `x` [.., n, n].

    `x` is f32, f64, c64 or c128; w is real. With `symmetrize_input` it is (x + x^H) / 2 that is decomposed, else the matrix that
    the lower (`lower`) or upper triangle stands for. `subset_by_index=(i, j)` gives the eigenvalues i to j - 1 alone, d = j - i.
    A matrix with nan or inf gives nan. Raises ValueError for matrices that are not square.

    >>> import funcml.numpy as jnp
    >>> eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))[1]
    Array([1., 3.], dtype=float32)
    """
    x = array("linalg.eigh", x)
    n = x.shape[-1] if x.ndim >= 2 else 0
    subset = subset_of("eigh", x, subset_by_index, n)
    return _eigh(x, bool(lower), bool(symmetrize_input), bool(sort_eigenvalues), subset, implementation)


@fused(static=("lower", "symmetrize_input", "sort_eigenvalues", "subset", "implementation"))
def _eigh(x, lower, symmetrize_input, sort_eigenvalues, subset, implementation):
    if symmetrize_input and x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
        x = symmetrized(x)
    v, w = spectral.eigh(x, lower=lower, sort_eigenvalues=sort_eigenvalues, algorithm=implementation)
    if subset is None:
        return v, w
    return slice_in_dim(v, *subset, axis=v.ndim - 1), slice_in_dim(w, *subset, axis=w.ndim - 1)


def symmetrized(x):
    """(x + x^H) / 2."""
    return ew.mul(ew.add(x, adjoint(x)), 0.5)


def subset_of(name: str, x, subset, count: int) -> tuple[int, int] | None:
    """`subset` as ints (start, end) with 0 <= start < end <= count; ValueError for anything else."""
    if subset is None:
        return None
    bounds = tuple(map(operator.index, subset))
    if len(bounds) != 2 or not 0 <= bounds[0] < bounds[1] <= count:
        raise ValueError(
            f"{name} of {aval_of(x)}: subset_by_index must be (start, end) with 0 <= start < end <= {count}, got {subset!r}"
        )
    return bounds


def svd(
    x,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """(u, s, vh) with x = u diag(s) vh, for matrices `x` [.., m, n] of f32, f64, c64 or c128; s alone unless `compute_uv`.

    s [.., k], k = min(m, n), is real and descending. u is [.., m, k] and vh [.., k, n], or, with `full_matrices`, [.., m, m] and
    [.., n, n]. `subset_by_index=(i, j)` gives the singular values i to j - 1 alone. A matrix with nan or inf gives nan.

    >>> import funcml.numpy as jnp
    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    x = array("linalg.svd", x)
    count = min(x.shape[-2:]) if x.ndim >= 2 else 0
    subset = subset_of("svd", x, subset_by_index, count)
    if subset == (0, count):
        subset = None
    if subset is not None and full_matrices and compute_uv:
        raise ValueError(
            f"svd of {x.aval}: subset_by_index {subset} gives parts of u and vh, so full_matrices must be False"
        )
    return _svd(x, bool(full_matrices), bool(compute_uv), subset, algorithm)


@fused(static=("full_matrices", "compute_uv", "subset", "algorithm"))
def _svd(x, full_matrices, compute_uv, subset, algorithm):
    if not compute_uv:
        s = spectral.svdvals(x, algorithm=algorithm)
        return s if subset is None else slice_in_dim(s, *subset, axis=s.ndim - 1)
    u, s, vh = spectral.svd(x, full_matrices=full_matrices, algorithm=algorithm)
    if subset is None:
        return u, s, vh
    last = x.ndim - 1
    return (
        slice_in_dim(u, *subset, axis=last),
        slice_in_dim(s, *subset, axis=last - 1),
        slice_in_dim(vh, *subset, axis=last - 1),
    )


def eig(
    x,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = True,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """[w, left, right], the vectors where asked for: right_j with x right_j = w_j right_j, left_j with left_j^H x = w_j left_j^H.

    `x` [.., n, n] is f32, f64, c64 or c128; results are complex. Vectors stand in columns, have length 1, and their component of
    greatest absolute value is real; derivatives keep them so, and are right where eigenvalues are distinct and that component
    is the only one as great. `enable_eigvec_derivs` has no effect. On CPU and CUDA.

    >>> import funcml.numpy as jnp
    >>> eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if use_magma is not None:
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    left, right = bool(compute_left_eigenvectors), bool(compute_right_eigenvectors)
    return list(linalg_eig.eig(array("linalg.eig", x), left=left, right=right, implementation=implementation))


def schur(
    x, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable=None
) -> tuple[Array, ...]:
    """(t, q) with x = q t q^H, q unitary and t upper triangular, or (t,) unless `compute_schur_vectors`; on CPU only.

    Of a real `x`, t is real too and has a block of two rows for each pair of complex eigenvalues. There is no derivative. Raises
    NotImplementedError for sorted eigenvalues.
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("lax.linalg.schur does not sort eigenvalues; leave out sort_eig_vals and select_callable")
    return linalg_condensed.schur(array("linalg.schur", x), vectors=compute_schur_vectors)


def hessenberg(a) -> tuple[Array, Array]:
    """(h, taus): the Hessenberg form of `a` [.., n, n], and below its first subdiagonal the vectors of the reflections that lead
    there, taus [.., n - 1] being their factors; on CPU only. There is no derivative."""
    return linalg_condensed.hessenberg(array("linalg.hessenberg", a))


def tridiagonal(a, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """(t, d, e, taus): the tridiagonal form of the Hermitian matrices with this triangle of `a` [.., n, n]; on CPU and CUDA.

    t holds the form and beyond it the vectors of the reflections that lead there, taus [.., n - 1] their factors; d [.., n] is
    the diagonal and e [.., n - 1] the first off-diagonal, both real. There is no derivative.
    """
    return linalg_condensed.tridiagonal(array("linalg.tridiagonal", a), lower=lower)
