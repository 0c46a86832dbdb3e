"""Factors of matrices under SciPy's names.

Arguments that ask for memory to be reused or for values to be checked have no effect. Leading axes are batch axes.
"""

from __future__ import annotations

from funcml import dtypes
from funcml import numpy as jnp
from funcml.core.values import Array
from funcml.lax import linalg as factors
from funcml.lowering.execute import fused
from funcml.scipy.linalg.operands import adjoint, batched_together, inexact_arrays, matrices, plainly, product, square

__all__ = [
    "cho_factor", "cholesky", "hessenberg", "lu", "lu_factor", "qr", "qr_multiply", "svd",
]


def cholesky(a, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The upper triangular R with R^H R = `a`, or, if `lower`, the lower triangular L with L L^H = `a` [.., n, n].

    One triangle of `a` is read, that of the result. A matrix that is not positive definite gives nan.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    (a,) = square("cholesky", a)
    return _cholesky(a, bool(lower))


@plainly
@fused(static=("lower",))
def _cholesky(a, lower):
    if lower:
        return factors.cholesky(a, symmetrize_input=False)
    return adjoint(factors.cholesky(adjoint(a), symmetrize_input=False))


def cho_factor(a, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, bool]:
    """(c, lower): a Cholesky factor of `a` and which one it is, for `cho_solve`."""
    return cholesky(a, lower), lower


def svd(
    a,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
):
    """(u, s, vh) with a = u diag(s) vh, or s alone; see `funcml.lax.linalg.svd`. `lapack_driver` has no effect.

    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    (a,) = matrices("svd", a)
    return factors.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


def lu_factor(a, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """(lu, piv): both factors of `a` [.., m, n] in one matrix, and with which row (int32 [.., k]) each was exchanged."""
    (a,) = matrices("lu_factor", a)
    packed, pivots, _ = factors.lu(a)
    return packed, pivots


def lu(a, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, ...]:
    """(p, l, u) with a = p l u: a permutation [.., m, m], a unit lower and an upper triangle; (p l, u) if `permute_l`.

    >>> lu(jnp.array([[0.0, 1.0], [2.0, 3.0]]))[2]
    Array([[2., 3.],
           [0., 1.]], dtype=float32)
    """
    (a,) = matrices("lu", a)
    return _lu(a, bool(permute_l))


@plainly
@fused(static=("permute_l",))
def _lu(a, permute_l):
    m, n = a.shape[-2:]
    k = min(m, n)
    packed, _, permutation = factors.lu(a)
    l = jnp.tril(packed[..., :k], -1) + jnp.eye(m, k, dtype=a.dtype)
    u = jnp.triu(packed[..., :k, :])
    p = permutation[..., None, :] == jnp.arange(m, dtype=permutation.dtype)[:, None]
    if permute_l:
        return product(p.astype(a.dtype), l), u
    return p.astype(dtypes.real_dtype(a.dtype)), l, u


_QR_MODES = ("full", "r", "economic")


def qr(
    a,
    overwrite_a: bool = False,
    lwork=None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """(q, r) with a = q r, q unitary and r upper triangular; with `pivoting`, (q, r, p) with a[:, p] = q r.

    For a [.., m, n], k = min(m, n): 'full' gives q [.., m, m] and r [.., m, n], 'economic' q [.., m, k] and r [.., k, n], 'r' the
    full r without q.
    """
    if mode not in _QR_MODES:
        raise ValueError(f"qr: mode must be one of {', '.join(map(repr, _QR_MODES))}, got {mode!r}")
    (a,) = matrices("qr", a)
    q, *rest = factors.qr(a, pivoting=bool(pivoting), full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


def qr_multiply(
    a,
    c,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """(q c, r) ('left') or (c q, r) ('right') for the economic factors a = q r, q never being made; with `pivoting` also p.

    a is [.., m, n], k = min(m, n); c is [.., k, p] or [k] ('left'), [.., p, m] or [m] ('right'). `conjugate` puts conj(q) for q.
    """
    if mode not in ("right", "left"):
        raise ValueError(f"qr_multiply: mode must be 'right' or 'left', got {mode!r}")
    a, c = inexact_arrays("qr_multiply", a, c)
    if a.ndim < 2 or c.ndim < 1:
        raise ValueError(f"qr_multiply expects a matrix and an array of at least 1 dimension, got {a.aval} and {c.aval}")
    m, n = a.shape[-2:]
    wanted = min(m, n) if mode == "left" else m
    given = c.shape[-1 if mode == "right" else max(c.ndim - 2, 0) - c.ndim]
    if given != wanted:
        of_q, of_c = ("columns", "rows") if mode == "left" else ("rows", "columns")
        raise ValueError(
            f"qr_multiply ({mode!r}): q of a = q r {a.aval} has {wanted} {of_q}, and c {c.aval} has {given} {of_c}"
        )
    return _qr_multiply(a, c, mode, bool(pivoting), bool(conjugate))


@plainly
@fused(static=("mode", "pivoting", "conjugate"))
def _qr_multiply(a, c, mode, pivoting, conjugate):
    is_vector, (m, n) = c.ndim == 1, a.shape[-2:]
    k, left = min(m, n), mode == "left"
    if is_vector:
        c = c[:, None] if left else c[None, :]
    a, c = batched_together(a, c)
    if pivoting:
        packed, places, taus = factors.geqp3(a, jnp.zeros((*a.shape[:-2], n), jnp.int32))
    else:
        packed, taus = factors.geqrf(a)
    if left and m > k:
        c = jnp.concatenate([c, jnp.zeros((*c.shape[:-2], m - k, c.shape[-1]), c.dtype)], axis=-2)
    c = jnp.conj(c) if conjugate else c  # conj(q) c = conj(q conj(c))
    out = factors.ormqr(packed, taus, c, left=left)
    out = jnp.conj(out) if conjugate else out
    out = out if left else out[..., :k]
    out = out.reshape(-1) if is_vector else out
    r = jnp.triu(packed[..., :k, :])
    return (out, r, places - 1) if pivoting else (out, r)


def hessenberg(a, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True):
    """h, or with `calc_q` (h, q), with a = q h q^H: q unitary, h zero below its first subdiagonal. On CPU only."""
    (a,) = square("hessenberg", a)
    return _hessenberg(a, bool(calc_q))


@plainly
@fused(static=("calc_q",))
def _hessenberg(a, calc_q):
    packed, taus = factors.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    n = a.shape[-1]
    if n < 2:
        return h, jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), a.shape)
    rest = factors.householder_product(packed[..., 1:, :-1], taus)
    around = [(0, 0)] * (a.ndim - 2) + [(1, 0), (1, 0)]
    corner = jnp.zeros((n, n), a.dtype).at[0, 0].set(1)
    return h, jnp.pad(rest, around) + corner
