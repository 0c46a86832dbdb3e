"""Factorisations under NumPy's names."""

from __future__ import annotations

from typing import NamedTuple

from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.linalg.operands import check_square, matrix_of, narrow, wide
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import linalg_cholesky, linalg_eig, linalg_qr
from funcml.primitives import linalg_spectral as spectral
from funcml.primitives.indexing import take_along_axis
from funcml.primitives.matrices import adjoint, transposed
from funcml.primitives.shaping import iota, rev, slice_in_dim
from funcml.primitives.sorting import sort
from funcml.primitives.spectra import along_columns, widened
from funcml.primitives.tangents import scalar_of

__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals",
]


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Ascending eigenvalues, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A unitary and an upper triangular factor."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors in columns, descending singular values, right singular vectors in conjugated rows."""

    U: Array
    S: Array
    Vh: Array


def _symmetrized(x):
    return ew.mul(ew.add(x, adjoint(x)), ax.broadcast_in_dim(scalar_of(x.aval, 0.5), x.shape))


@fused(static=("upper", "symmetrize_input"))
def cholesky(a, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """l, lower triangular with a = l l^H, of positive definite matrices [.., n, n]; with `upper`, l^H.

    nan for matrices that are not positive definite. With `symmetrize_input`, (a + a^H) / 2 is factored; else the lower triangle
    is read.

    >>> import numpy as np
    >>> cholesky(np.float32([[4, 2], [2, 5]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    a = check_square("cholesky", matrix_of("cholesky", a))
    x = _symmetrized(wide(a)) if symmetrize_input else wide(a)
    l = linalg_cholesky.cholesky(x)
    return narrow(adjoint(l) if upper else l, a.dtype)


def qr(a, mode: str = "reduced") -> Array | QRResult:
    """(Q, R) with a = Q R, for matrices [.., m, n]: Q with orthonormal columns, R upper triangular; k = min(m, n).

    `mode` 'reduced': Q [.., m, k] and R [.., k, n]. 'complete': [.., m, m] and [.., m, n]. 'r': the R of 'reduced' alone. 'raw':
    the reflections as LAPACK has them, by columns, [.., n, m], and their factors [.., k].
    """
    if mode not in ("reduced", "full", "complete", "r", "raw"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}")
    out = _qr(a, mode)
    return QRResult(*out) if isinstance(out, tuple | list) else out


@fused(static=("mode",))
def _qr(a, mode):
    a = matrix_of("qr", a)
    if mode == "raw":
        packed, taus = linalg_qr.geqrf(wide(a))
        return narrow(transposed(packed), a.dtype), narrow(taus, a.dtype)
    q, r = linalg_qr.qr(wide(a), full_matrices=mode == "complete")
    return narrow(r, a.dtype) if mode == "r" else (narrow(q, a.dtype), narrow(r, a.dtype))


# ---- eigenvalues and singular values -----------------------------------------------------------------------------


def _is_lower(name: str, uplo) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO must be 'L' or 'U', got {uplo!r}")
    return uplo != "U"


def eigh(a, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """(eigenvalues [.., n], eigenvectors [.., n, n]) of Hermitian matrices, in ascending order, vectors in columns.

    With `symmetrize_input`, (a + a^H) / 2 is taken; else the triangle that `UPLO`, 'L' or 'U', names.

    >>> import numpy as np
    >>> eigh(np.float32([[2, 1], [1, 2]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    return EighResult(*_eigh(a, _is_lower("eigh", UPLO), bool(symmetrize_input)))


@fused(static=("lower", "symmetrize"))
def _eigh(a, lower, symmetrize):
    a = check_square("eigh", matrix_of("eigh", a))
    x = _symmetrized(wide(a)) if symmetrize else wide(a)
    v, w = spectral.eigh(x, lower=lower)
    return narrow(w, a.dtype), narrow(v, a.dtype)


def eigvalsh(a, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues that `eigh` gives."""
    return _eigvalsh(a, _is_lower("eigvalsh", UPLO), bool(symmetrize_input))


@fused(static=("lower", "symmetrize"))
def _eigvalsh(a, lower, symmetrize):
    a = check_square("eigvalsh", matrix_of("eigvalsh", a))
    x = _symmetrized(wide(a)) if symmetrize else wide(a)
    return narrow(spectral.eigvalsh(x, lower=lower), a.dtype)


def eig(a) -> EigResult:
    """(eigenvalues [.., n], eigenvectors [.., n, n]) of matrices, complex also for real ones, vectors in columns.

    Vectors have length 1, and derivatives keep it. On CPU and CUDA.

    >>> import numpy as np
    >>> eig(np.float32([[0, 1], [-1, 0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*_eig(a))


@fused
def _eig(a):
    return linalg_eig.eig(wide(check_square("eig", matrix_of("eig", a))))


@fused
def eigvals(a) -> Array:
    """The eigenvalues that `eig` gives."""
    return linalg_eig.eig(wide(check_square("eigvals", matrix_of("eigvals", a))), right=False)[0]


def svd(
    a,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """(U, S, Vh) with a = U diag(S) Vh, for matrices [.., m, n]; S [.., k] alone, if not `compute_uv`. k = min(m, n).

    S descends. U is [.., m, m] and Vh [.., n, n], or without `full_matrices` [.., m, k] and [.., k, n]. Of a `hermitian` matrix
    the eigenvalues are taken. `subset_by_index=(i, j)` gives the singular values i to j - 1 alone, with their vectors.
    """
    subset = None if subset_by_index is None else (int(subset_by_index[0]), int(subset_by_index[1]))
    if hermitian:
        out = _svd_of_hermitian(a, bool(compute_uv), subset)
    else:
        out = _svd(a, bool(full_matrices), bool(compute_uv), subset)
    return SVDResult(*out) if compute_uv else out[0]


def svdvals(x, /) -> Array:
    """The singular values [.., k] of matrices [.., m, n], descending; k = min(m, n).

    >>> import numpy as np
    >>> svdvals(np.float32([[3, 0], [0, 4]]))
    Array([4., 3.], dtype=float32)
    """
    return _svd(x, False, False, None)[0]


def _subset(a, subset, full_matrices):
    """`subset`, checked; None for all."""
    k = min(a.shape[-2:])
    if subset is None or subset == (0, k):
        return None
    if not 0 <= subset[0] < subset[1] <= k:
        raise ValueError(f"svd of {a.aval}: subset_by_index must be (i, j) with 0 <= i < j <= {k}, got {subset}")
    if full_matrices:
        raise ValueError(f"svd of {a.aval}: subset_by_index takes a part of U and Vh, so full_matrices must be False")
    return subset


@fused(static=("full_matrices", "compute_uv", "subset"))
def _svd(a, full_matrices, compute_uv, subset):
    a = matrix_of("svd", a)
    subset = _subset(a, subset, full_matrices and compute_uv)
    if not compute_uv:
        s = spectral.svdvals(wide(a))
        return [narrow(s if subset is None else slice_in_dim(s, *subset, axis=s.ndim - 1), a.dtype)]
    return _parts(*spectral.svd(wide(a), full_matrices=full_matrices), subset, a.dtype)


def _parts(u, s, vh, subset, dtype):
    if subset is not None:
        u = slice_in_dim(u, *subset, axis=u.ndim - 1)
        s, vh = (slice_in_dim(x, *subset, axis=s.ndim - 1) for x in (s, vh))
    return [narrow(x, dtype) for x in (u, s, vh)]


# a = v diag(w) v^H  =>  s = |w|, u = v, vh = (v sign(w))^H, in descending order of s
@fused(static=("compute_uv", "subset"))
def _svd_of_hermitian(a, compute_uv, subset):
    a = check_square("svd", matrix_of("svd", a))
    subset = _subset(a, subset, False)
    if not compute_uv:
        s = sort(ew.abs(spectral.eigvalsh(_symmetrized(wide(a)))), -1)
        s = rev(s, (s.ndim - 1,))
        return [narrow(s if subset is None else slice_in_dim(s, *subset, axis=s.ndim - 1), a.dtype)]
    v, w = spectral.eigh(_symmetrized(wide(a)))
    last = w.ndim - 1
    size, places = sort((ew.neg(ew.abs(w)), iota("int32", w.shape, last)), last)
    u = _columns_at(v, places)
    signed = _columns_at(ew.mul(v, along_columns(widened(ew.sign(w), v.dtype), v.shape)), places)
    return _parts(u, ew.neg(size), adjoint(signed), subset, a.dtype)


def _columns_at(x, places):
    return take_along_axis(x, along_columns(places, x.shape), x.ndim - 1)
