"""Eigenvalues of Hermitian matrices and singular values.

    eigh : [.., n, n] -> (v [.., n, n], w [.., n])                    A v_j = w_j v_j, w ascending and real
    svd  : [.., m, n] -> (u [.., m, k], s [.., k], vh [.., k, n])     A = u diag(s) vh, s descending, k = min(m, n)

Where vectors are not asked for, the results are `w` or `s` alone. Derivatives at equal values: see `spectra`.
"""

from __future__ import annotations

import enum

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.linear import is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives import elementwise as ew
from funcml.primitives.matrices import MatrixPrimitive, adjoint, diagonal_mask, lower, product, upper
from funcml.primitives.shaping import concatenate, slice_in_dim
from funcml.primitives.spectra import (
    along_columns,
    along_rows,
    apart,
    diagonal,
    inverse_or_zero,
    real_diagonal,
    widened,
)
from funcml.primitives.tangents import zero_tangent, zeros

__all__ = ["EighImplementation", "SvdAlgorithm", "eigh", "eigh_p", "eigvalsh", "svd", "svd_p", "svdvals"]


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are found."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """How singular values are found."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


# ---- eigh --------------------------------------------------------------------------------------------------------


class Eigh(MatrixPrimitive):
    """Eigenvectors and eigenvalues, read from the lower or upper triangle; the diagonal counts as real.

    `order` is that of the derivative in which the values are used: see `spectra.apart`.
    """

    multiple_results = True

    def type_rule(self, x, *, lower, sort_eigenvalues, algorithm, vectors, order):
        self.batch_of(x)
        self.square(x)
        values = shaped(x.shape[:-1], dtypes.real_dtype(x.dtype))
        return (x.strong(), values) if vectors else (values,)

    # P = V^H A' V:   w' = diag P    V' = V (F * P),  F_ij = 1 / (w_j - w_i)
    # (M. Giles, An extended collection of matrix derivative results, 2008, section 3.1)
    def jvp_rule(self, primals, tangents, *, vectors, order, **params):
        (t,) = tangents
        if is_zero(t):
            outs = bind(self, primals, {**params, "vectors": vectors, "order": order})
            return outs, list(map(zero_tangent, outs))
        v, w = bind(self, primals, {**params, "vectors": True, "order": order + vectors})
        p = product(product(adjoint(v), _hermitian(t, params["lower"])), v)
        if not vectors:
            return [w], [real_diagonal(p)]
        w = apart(w, order + 1)
        square = aval_of(p).shape
        f = inverse_or_zero(ew.sub(along_columns(w, square), along_rows(w, square)))
        turn = ew.mul(widened(f, aval_of(p).dtype), p)
        return [v, w], [product(v, turn), real_diagonal(p)]


def _hermitian(x, is_lower):
    """The Hermitian matrix with this triangle, its diagonal made real."""
    triangle = lower(x, -1) if is_lower else upper(x, 1)
    aval = aval_of(x)
    flat = ew.complex(ew.real(x), 0.0) if dtypes.is_complex(aval.dtype) else x
    return ew.add(ew.add(triangle, adjoint(triangle)), ew.select(diagonal_mask(aval.shape), flat, zeros(aval)))


eigh_p = Eigh("eigh", (2,))


def eigh(x, *, lower: bool = True, sort_eigenvalues: bool = True, algorithm: EighImplementation | None = None):
    """(v, w) of the Hermitian matrices with this triangle of `x`."""
    return tuple(bind(eigh_p, (x,), _eigh_params(lower, sort_eigenvalues, algorithm, True)))


def eigvalsh(x, *, lower: bool = True, sort_eigenvalues: bool = True, algorithm: EighImplementation | None = None):
    """The eigenvalues of the Hermitian matrices with this triangle of `x`."""
    return bind(eigh_p, (x,), _eigh_params(lower, sort_eigenvalues, algorithm, False))[0]


def _eigh_params(is_lower, sort_eigenvalues, algorithm, vectors) -> dict:
    return {
        "lower": bool(is_lower),
        "sort_eigenvalues": bool(sort_eigenvalues),
        "algorithm": algorithm,
        "vectors": vectors,
        "order": 0,
    }


# ---- svd ---------------------------------------------------------------------------------------------------------


class Svd(MatrixPrimitive):
    """Singular values, and the vectors that belong to them; all of an orthonormal basis, if `full_matrices`.

    `order` is that of the derivative in which the values are used: see `spectra.apart`.
    """

    multiple_results = True

    def type_rule(self, x, *, full_matrices, vectors, algorithm, order):
        batch = self.batch_of(x)
        m, n = x.shape[-2:]
        k = min(m, n)
        values = shaped((*batch, k), dtypes.real_dtype(x.dtype))
        if not vectors:
            return (values,)
        left = shaped((*batch, m, m if full_matrices else k), x.dtype)
        right = shaped((*batch, n if full_matrices else k, n), x.dtype)
        return left, values, right

    def jvp_rule(self, primals, tangents, *, full_matrices, vectors, algorithm, order):
        (x,), (t,) = primals, tangents
        params = {"full_matrices": full_matrices, "vectors": vectors, "algorithm": algorithm, "order": order}
        if is_zero(t) or 0 in aval_of(x).shape[-2:]:
            outs = bind(self, primals, params)
            return outs, list(map(zero_tangent, outs))
        if not vectors:
            u, s, vh = bind(self, primals, {**params, "full_matrices": False, "vectors": True})
            return [s], [real_diagonal(product(product(adjoint(u), t), adjoint(vh)))]
        u, s, vh = bind(self, primals, {**params, "order": order + 1})
        s = apart(s, order + 1, descending=True)
        du, ds, dvh = _svd_tangents(u, s, vh, t)
        return [u, s, vh], [du, ds, dvh]


# P = U^H A' V over the first k vectors, S = diag s:
#   s'  = Re diag P
#   U'  = U K + what leaves the span of U,   K_ij = F_ij (P S + S P^H)_ij,   K_ii = i Im P_ii / s_i
#   V'  = V L + what leaves the span of V,   L_ij = F_ij (S P + P^H S)_ij,   F_ij = 1 / (s_j^2 - s_i^2)
# Beyond the first k, A = U S V^H gives U_0^H U' = U_0^H A' V / s, and U_0' = -U U'^H U_0 keeps the basis orthonormal.
# (M. Giles, An extended collection of matrix derivative results, 2008, section 3.2)
def _svd_tangents(u, s, vh, t):
    k = aval_of(s).shape[-1]
    v = adjoint(vh)
    u, u_rest = _first(u, k)
    v, v_rest = _first(v, k)
    tv, tu = product(t, v), product(adjoint(t), u)
    p = product(adjoint(u), tv)
    square, dtype = aval_of(p).shape, aval_of(p).dtype
    by_column, by_row = along_columns(s, square), along_rows(s, square)
    f = inverse_or_zero(ew.mul(ew.sub(by_column, by_row), ew.add(by_column, by_row)))
    f, by_column, by_row = (widened(x, dtype) for x in (f, by_column, by_row))
    ps, sp = ew.mul(p, by_column), ew.mul(by_row, p)
    left = ew.mul(f, ew.add(ps, adjoint(ps)))
    right = ew.mul(f, ew.add(sp, adjoint(sp)))
    if dtypes.is_complex(dtype):
        phase = ew.mul(ew.imag(diagonal(p)), inverse_or_zero(s))
        phase = ew.complex(zeros(aval_of(phase)), phase)
        left = ew.add(left, ew.select(diagonal_mask(square), along_rows(phase, square), zeros(aval_of(p))))
    inverse = widened(inverse_or_zero(s), dtype)
    du, du_rest = _moved(u, u_rest, left, tv, inverse)
    dv, dv_rest = _moved(v, v_rest, right, tu, inverse)
    return _joined(du, du_rest), real_diagonal(p), adjoint(_joined(dv, dv_rest))


def _first(u, k):
    """The first k columns, and the others (None, if there are none)."""
    aval = aval_of(u)
    columns = aval.shape[-1]
    if columns == k:
        return u, None
    axis = aval.ndim - 1
    return slice_in_dim(u, 0, k, axis=axis), slice_in_dim(u, k, columns, axis=axis)


def _joined(u, rest):
    return u if rest is None else concatenate([u, rest], aval_of(u).ndim - 1)


def _moved(u, rest, turn, leaving, inverse):
    """U' and the tangent of the rest of the basis: U turns in its span, and leaves it by `leaving` / s."""
    du, shape = product(u, turn), aval_of(u).shape
    if shape[-2] == shape[-1]:
        return du, None
    if rest is None:
        outside = ew.sub(leaving, product(u, product(adjoint(u), leaving)))
        return ew.add(du, ew.mul(outside, along_columns(inverse, shape))), None
    towards = product(adjoint(rest), leaving)
    towards = ew.mul(towards, along_columns(inverse, aval_of(towards).shape))
    return ew.add(du, product(rest, towards)), ew.neg(product(u, adjoint(towards)))


svd_p = Svd("svd", (2,))


def svd(x, *, full_matrices: bool = True, algorithm: SvdAlgorithm | None = None):
    """(u, s, vh) with x = u diag(s) vh."""
    params = {"full_matrices": bool(full_matrices), "vectors": True, "algorithm": algorithm, "order": 0}
    return tuple(bind(svd_p, (x,), params))


def svdvals(x, *, algorithm: SvdAlgorithm | None = None):
    """The singular values of `x`, in descending order."""
    params = {"full_matrices": False, "vectors": False, "algorithm": algorithm, "order": 0}
    return bind(svd_p, (x,), params)[0]
