"""Eigenvalues and singular values of batches of matrices, as primitives find them."""

from __future__ import annotations

import operator

from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.promotion import as_array, operand
from funcml.primitives import elementwise as ew
from funcml.primitives import linalg_spectral as spectral
from funcml.primitives.linalg_spectral import EighImplementation, SvdAlgorithm
from funcml.primitives.matrices import adjoint
from funcml.primitives.shaping import slice_in_dim

__all__ = ["eigh", "svd"]


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
    x = as_array(operand("eigh", x))
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
    x = as_array(operand("svd", x))
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
