"""Linear systems under SciPy's names, and determinants and inverses.

Arguments that ask for memory to be reused or for values to be checked have no effect. Leading axes are batch axes: a right-hand
side is [n] or [.., n, m], or [.., n] where the matrix has one axis more and as many rows.
"""

from __future__ import annotations

import numpy as np

from funcml import numpy as jnp
from funcml.core.values import Array
from funcml.lax import linalg as factors
from funcml.lowering.execute import fused
from funcml.numpy.promotion import as_array
from funcml.scipy.linalg.factorizations import cholesky
from funcml.scipy.linalg.operands import inexact_arrays, plainly, solved

__all__ = ["cho_solve", "det", "inv", "lu_solve", "solve", "solve_triangular"]


def det(a, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of `a` [.., n, n].

    >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    return jnp.linalg.det(a)


def inv(a, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of `a` [.., n, n]; `solve` is faster and more accurate than a product with it."""
    return jnp.linalg.inv(a)


def _system(name: str, a, b) -> tuple[Array, Array, bool]:
    """The matrix [.., n, n] and the right-hand side [.., n, m] of one dtype and batch; whether it was of vectors."""
    a, b = inexact_arrays(name, a, b)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or b.ndim < 1:
        raise ValueError(
            f"{name} expects a square matrix [.., n, n] and a right-hand side [n] or [.., n, m], got {a.aval} and {b.aval}"
        )
    of_vectors = b.ndim == 1 or (a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1])
    given = b.shape[-1 if of_vectors else -2]
    if given != a.shape[-1]:
        raise ValueError(f"{name}: the matrix {a.aval} has {a.shape[-1]} rows and the right-hand side {b.aval} has {given}")
    return a, (b[..., None] if of_vectors else b), of_vectors


def _together(a, b, *more) -> list[Array]:
    """Operands [.., n, n], [.., n, m] and vectors [.., n] with one batch shape."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], *[x.shape[:-1] for x in more])
    out = [jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)]
    return out + [jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in more]


_TRANSPOSED = {0: (False, False), 1: (True, False), 2: (True, True), "N": (False, False), "T": (True, False), "C": (True, True)}


def solve_triangular(
    a,
    b,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug=None,
    check_finite: bool = True,
) -> Array:
    """x with op(a) x = b, of `a` [.., n, n] one triangle being read; op is the identity (`trans` 0, 'N'), the transpose (1, 'T')
    or the conjugate transpose (2, 'C'). With `unit_diagonal` the diagonal counts as ones.

    >>> solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    if trans not in _TRANSPOSED:
        raise ValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    a, b, of_vectors = _system("solve_triangular", a, b)
    return _solve_triangular(a, b, of_vectors, *_TRANSPOSED[trans], bool(lower), bool(unit_diagonal))


@plainly
@fused(static=("of_vectors", "transpose", "conjugate", "lower", "unit"))
def _solve_triangular(a, b, of_vectors, transpose, conjugate, lower, unit):
    x = _by_triangle(*_together(a, b), transpose, conjugate, lower, unit)
    return x[..., 0] if of_vectors else x


def _by_triangle(a, b, transpose, conjugate, lower, unit=False):
    return factors.triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit
    )


def cho_solve(c_and_lower, b, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """x with a x = b, `c_and_lower` being `cho_factor(a)`.

    >>> from funcml.scipy.linalg.factorizations import cho_factor
    >>> cho_solve(cho_factor(jnp.array([[4.0, 0.0], [0.0, 1.0]])), jnp.array([4.0, 1.0]))
    Array([1., 1.], dtype=float32)
    """
    c, lower = c_and_lower
    c, b, of_vectors = _system("cho_solve", c, b)
    return _cho_solve(c, b, of_vectors, bool(lower))


@plainly
@fused(static=("of_vectors", "lower"))
def _cho_solve(c, b, of_vectors, lower):
    c, b = _together(c, b)
    y = _by_triangle(c, b, not lower, not lower, lower)
    x = _by_triangle(c, y, lower, lower, lower)
    return x[..., 0] if of_vectors else x


def lu_solve(lu_and_piv, b, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """x with a x = b (`trans` 0), a^T x = b (1) or a^H x = b (2), `lu_and_piv` being `lu_factor(a)`."""
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}")
    packed, pivots = lu_and_piv
    packed, b, of_vectors = _system("lu_solve", packed, b)
    return _lu_solve(packed, b, as_array(pivots), of_vectors, int(trans))


# a[p] = l u:  l u x = b[p];  and for the transpose u^T l^T x[p] = b
@plainly
@fused(static=("of_vectors", "trans"))
def _lu_solve(packed, b, pivots, of_vectors, trans):
    packed, b, pivots = _together(packed, b, pivots)
    permutation = factors.lu_pivots_to_permutation(pivots, packed.shape[-1])
    transpose, conjugate = _TRANSPOSED[trans]
    if transpose:
        y = _by_triangle(packed, b, True, conjugate, False)
        x = _by_triangle(packed, y, True, conjugate, True, True)
        x = jnp.take_along_axis(x, jnp.argsort(permutation, axis=-1)[..., None], axis=-2)
    else:
        y = _by_triangle(packed, jnp.take_along_axis(b, permutation[..., None], axis=-2), False, False, True, True)
        x = _by_triangle(packed, y, False, False, False)
    return x[..., 0] if of_vectors else x


_STRUCTURES = ("gen", "sym", "her", "pos")


def solve(
    a,
    b,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """x with a x = b, for `a` [.., n, n] of which is known: nothing ('gen'), that it is symmetric ('sym'), Hermitian ('her') or
    positive definite ('pos'). Of the last three the upper triangle is read, or, if `lower`, the lower one.

    A singular matrix gives inf or nan.

    >>> solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    if assume_a not in _STRUCTURES:
        raise ValueError(f"solve: Expected assume_a to be one of {', '.join(map(repr, _STRUCTURES))}; got {assume_a!r}")
    a, b, of_vectors = _system("solve", a, b)
    if assume_a == "pos":
        return _cho_solve(cholesky(a, lower), b, of_vectors, bool(lower))
    if assume_a != "gen":
        a = _filled(a, bool(lower), assume_a == "her")
    return _solve(a, b, of_vectors)


@plainly
@fused(static=("of_vectors",))
def _solve(a, b, of_vectors):
    x = solved(*_together(a, b))
    return x[..., 0] if of_vectors else x


@plainly
@fused(static=("lower", "hermitian"))
def _filled(a, lower, hermitian):
    """The symmetric or Hermitian matrix with this triangle."""
    strict = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    other = jnp.matrix_transpose(strict)
    diagonal = a * jnp.eye(a.shape[-1], dtype=a.dtype)
    if hermitian and jnp.iscomplexobj(a):
        return strict + jnp.conj(other) + jnp.real(diagonal)
    return strict + other + diagonal
