"""Eigenvalues of Hermitian and of tridiagonal matrices under SciPy's names."""

from __future__ import annotations

from funcml import dtypes
from funcml import numpy as jnp
from funcml.lax import linalg as factors
from funcml.lowering.execute import fused
from funcml.primitives import linalg_spectral
from funcml.scipy.linalg.operands import adjoint, batched_together, inexact_arrays, plainly, square

__all__ = ["eigh", "eigh_tridiagonal"]


def eigh(
    a,
    b=None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals=None,
    type: int = 1,
    check_finite: bool = True,
):
    """(w, v): ascending eigenvalues [.., n] and eigenvectors in columns [.., n, n] of Hermitian `a`; w alone if `eigvals_only`.

    With a positive definite `b`: a v = w b v (type 1), a b v = w v (2) or b a v = w v (3), v being normalised so that v^H b v is
    the identity (1, 2) or v^H b^-1 v is (3). One triangle of each is read, the lower one if `lower`. `eigvals=(i, j)` gives the
    eigenvalues i to j alone.

    >>> eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2 or 3, got {type!r}")
    a, *b = square("eigh", a, *(() if b is None else (b,)))
    n = a.shape[-1]
    if eigvals is not None:
        low, high = map(int, eigvals)
        if not 0 <= low <= high < n:
            raise ValueError(f"eigh of {a.aval}: eigvals must be (i, j) with 0 <= i <= j < {n}, got {eigvals!r}")
        eigvals = (low, high + 1)
    if not b:
        return _eigh(a, bool(lower), bool(eigvals_only), eigvals)
    return _eigh_general(*batched_together(a, *b), bool(lower), bool(eigvals_only), eigvals, int(type))


@plainly
@fused(static=("lower", "eigvals_only", "subset"))
def _eigh(a, lower, eigvals_only, subset):
    part = slice(*subset) if subset else slice(None)
    if eigvals_only:
        return linalg_spectral.eigvalsh(a, lower=lower)[..., part]
    v, w = factors.eigh(a, lower=lower, symmetrize_input=False)
    return w[..., part], v[..., part]


# b = l l^H.  1: (l^-1 a l^-H) y = w y, v = l^-H y.   2: (l^H a l) y = w y, v = l^-H y.   3: the same y, v = l y.
@plainly
@fused(static=("lower", "eigvals_only", "subset", "kind"))
def _eigh_general(a, b, lower, eigvals_only, subset, kind):
    a, b = (_hermitian(x, lower) for x in (a, b))
    l = factors.cholesky(b, symmetrize_input=False)
    if kind == 1:
        half = factors.triangular_solve(l, a, left_side=True, lower=True)
        a = factors.triangular_solve(l, half, lower=True, transpose_a=True, conjugate_a=True)
    else:
        a = jnp.matmul(adjoint(l), jnp.matmul(a, l, precision="highest"), precision="highest")
    out = _eigh(a, True, eigvals_only, subset)
    if eigvals_only:
        return out
    w, y = out
    if kind == 3:
        return w, jnp.matmul(l, y, precision="highest")
    return w, factors.triangular_solve(l, y, left_side=True, lower=True, transpose_a=True, conjugate_a=True)


def _hermitian(x, lower):
    strict = jnp.tril(x, -1) if lower else jnp.triu(x, 1)
    return strict + adjoint(strict) + jnp.real(x) * jnp.eye(x.shape[-1], dtype=dtypes.real_dtype(x.dtype))


def eigh_tridiagonal(
    d, e, *, eigvals_only: bool = False, select: str = "a", select_range=None, tol: float | None = None, key=None
):
    """(w, v): ascending eigenvalues and eigenvectors of the Hermitian matrix with diagonal `d` [n] and first off-diagonal `e`
    [n - 1]; w [n] alone if `eigvals_only`.

    select 'a' gives all, 'i' the eigenvalues i to j for `select_range=(i, j)`. `e` may be complex; it stands above the diagonal,
    its conjugate below. `tol` and `key` have no effect.

    >>> eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    d, e = inexact_arrays("eigh_tridiagonal", d, e)
    if d.ndim != 1 or e.ndim != 1 or e.shape[0] != d.shape[0] - 1:
        raise ValueError(f"eigh_tridiagonal expects a diagonal [n] and an off-diagonal [n - 1], got {d.aval} and {e.aval}")
    return _eigh_tridiagonal(d, e, bool(eigvals_only), _selected(d, select, select_range))


def _selected(d, select, select_range) -> tuple[int, int] | None:
    if select not in ("a", "i"):
        raise NotImplementedError(f"eigh_tridiagonal: select must be 'a' or 'i', got {select!r}; for values, select all and mask")
    if select == "a":
        return None
    if select_range is None or len(select_range) != 2:
        raise ValueError(f"eigh_tridiagonal: select='i' needs select_range=(i, j), got {select_range!r}")
    low, high = map(int, select_range)
    if not 0 <= low <= high < d.shape[0]:
        raise ValueError(f"eigh_tridiagonal of {d.aval}: select_range must be (i, j) with 0 <= i <= j < n, got {select_range!r}")
    return low, high + 1


@plainly
@fused(static=("eigvals_only", "subset"))
def _eigh_tridiagonal(d, e, eigvals_only, subset):
    return _eigh(jnp.diag(d) + jnp.diag(jnp.conj(e), -1), True, eigvals_only, subset)
