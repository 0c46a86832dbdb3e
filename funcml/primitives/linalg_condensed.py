"""Unitary similarity of square matrices to a form with few diagonals.

    schur       : [.., n, n] -> (t [.., n, n], q [.., n, n])                    A = q t q^H, t upper (quasi-)triangular
    hessenberg  : [.., n, n] -> (a [.., n, n], taus [.., n - 1])                zero below the first subdiagonal
    tridiagonal : [.., n, n] -> (a [.., n, n], d [.., n], e [.., n - 1], taus [.., n - 1])    of a Hermitian matrix

Of the last two, `a` holds the form and, beyond it, the vectors of the reflections that lead there; see `householder_product`.
They have no derivatives: which of many such forms is found is decided by pivots and signs along the way.
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.linear import is_zero
from funcml.core.tracing import bind
from funcml.primitives.matrices import MatrixPrimitive
from funcml.primitives.tangents import zero_tangent

__all__ = ["hessenberg", "hessenberg_p", "schur", "schur_p", "tridiagonal", "tridiagonal_p"]


class Condensation(MatrixPrimitive):
    """A similarity to a condensed form; `instead` says what has a derivative."""

    multiple_results = True
    instead = ""

    def __init__(self, name: str):
        super().__init__(name, (2,))

    def jvp_rule(self, primals, tangents, **params):
        if not all(map(is_zero, tangents)):
            raise NotImplementedError(f"{self.name} has no derivative: its form is not determined by the matrix; {self.instead}")
        outs = bind(self, primals, params)
        return outs, list(map(zero_tangent, outs))


class Schur(Condensation):
    """t, and q if `vectors`. A real matrix has a real t, with a block of two rows for each pair of complex eigenvalues."""

    instead = "differentiate `eig` or `eigh`, or a function of the matrix such as `expm` and `sqrtm`"

    def type_rule(self, x, *, vectors):
        self.batch_of(x)
        self.square(x)
        return (x.strong(), x.strong()) if vectors else (x.strong(),)


class Hessenberg(Condensation):
    """The form, and below it the reflections."""

    instead = "differentiate a function of the matrix itself"

    def type_rule(self, x):
        batch = self.batch_of(x)
        self.square(x)
        return x.strong(), x.strong().update(shape=(*batch, max(x.shape[-1] - 1, 0)))


class Tridiagonal(Condensation):
    """The form, and beyond it the reflections; its diagonal; its first off-diagonal. One triangle is read."""

    instead = "differentiate `eigh`"

    def type_rule(self, x, *, lower):
        batch = self.batch_of(x)
        self.square(x)
        n = x.shape[-1]
        if n == 0:
            raise ValueError(f"tridiagonal expects matrices with at least one row, got {x}")
        taus = x.strong().update(shape=(*batch, n - 1))
        real = dtypes.real_dtype(x.dtype)
        return x.strong(), taus.update(shape=(*batch, n), dtype=real), taus.update(dtype=real), taus


schur_p = Schur("schur")
hessenberg_p = Hessenberg("hessenberg")
tridiagonal_p = Tridiagonal("tridiagonal")


def schur(x, *, vectors: bool = True):
    """(t, q) with x = q t q^H, or (t,)."""
    return tuple(bind(schur_p, (x,), {"vectors": bool(vectors)}))


def hessenberg(x):
    """(a, taus): the Hessenberg form of `x`, with the reflections below it."""
    return tuple(bind(hessenberg_p, (x,)))


def tridiagonal(x, *, lower: bool = True):
    """(a, d, e, taus): the tridiagonal form of the Hermitian matrices with this triangle of `x`."""
    return tuple(bind(tridiagonal_p, (x,), {"lower": bool(lower)}))
