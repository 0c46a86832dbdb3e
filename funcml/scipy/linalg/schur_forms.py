"""Schur forms of square matrices, and what is found by way of them: Sylvester's equation, roots, functions.

Schur forms exist on CPU only. They have no derivative; roots and solutions of equations have.
"""

from __future__ import annotations

from funcml import dtypes, lax
from funcml import numpy as jnp
from funcml.core.values import Array
from funcml.lax import linalg as factors
from funcml.lowering.execute import fused
from funcml.primitives.linalg_sylvester import sylvester
from funcml.scipy.linalg import triangles
from funcml.scipy.linalg.operands import adjoint, batched_together, complex_of, matrices, plainly, product, solved, square
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["funm", "rsf2csf", "schur", "solve_sylvester", "sqrtm"]


def schur(a, output: str = "real") -> tuple[Array, ...]:
    """(t, z) with a = z t z^H, z unitary and t upper triangular; for a real `a` and output 'real', t is real and has a block of
    two rows for each pair of complex eigenvalues.

    >>> schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex", "r", "c"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}")
    (a,) = square("schur", a)
    return factors.schur(complex_of(a) if output in ("complex", "c") else a)


# ---- from the real form to the complex one -----------------------------------------------------------------------


def rsf2csf(T, Z, check_finite: bool = True) -> tuple[Array, Array]:
    """(t, z), the complex Schur form that belongs to the real one, `T` and `Z` [.., n, n], by a rotation for each block."""
    t, z = square("rsf2csf", T, Z)
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"rsf2csf: Input array shapes must match, got T {t.aval} and Z {z.aval}")
    return _rsf2csf(t, z)


@plainly
@fused
def _rsf2csf(t, z):
    t, z = (complex_of(x) for x in batched_together(t, z))
    n = t.shape[-1]
    if n < 2:
        return t, z
    return lax.fori_loop(1, n, lambda i, carry: _without_block(n - i, *carry), (t, z))


def _without_block(m, t, z):
    """T and Z with element (m, m - 1) of T rotated away."""
    row, column = t.ndim - 2, t.ndim - 1
    n = t.shape[-1]
    block = lax.dynamic_slice_in_dim(lax.dynamic_slice_in_dim(t, m - 1, 2, row), m - 1, 2, column)
    turn, turn_back = _rotation(block)
    columns, rows = jnp.arange(n), jnp.arange(n)[:, None]
    pair = lax.dynamic_slice_in_dim(t, m - 1, 2, row)
    pair = jnp.where(columns >= m - 1, product(turn, pair), pair)
    t = lax.dynamic_update_slice_in_dim(t, pair, m - 1, row)
    pair = lax.dynamic_slice_in_dim(t, m - 1, 2, column)
    pair = jnp.where(rows <= m, product(pair, turn_back), pair)
    t = lax.dynamic_update_slice_in_dim(t, pair, m - 1, column)
    pair = lax.dynamic_slice_in_dim(z, m - 1, 2, column)
    z = lax.dynamic_update_slice_in_dim(z, product(pair, turn_back), m - 1, column)
    return jnp.where((rows == m) & (columns == m - 1), 0, t), z


def _rotation(block):
    """g and g^H for blocks [.., 2, 2]: g b g^H is upper triangular, or nothing happens if b is to rounding."""
    a, c, d = block[..., 0, 0], block[..., 1, 0], block[..., 1, 1]
    (w,) = factors.eig(block, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    mu = w[..., 0] - d
    length = jnp.sqrt(jnp.abs(mu) ** 2 + jnp.abs(c) ** 2)
    done = jnp.abs(c) <= dtypes.finfo(block.dtype).eps * (jnp.abs(a) + jnp.abs(d))
    length = jnp.where(done, 1, length)
    cosine, sine = jnp.where(done, 1, mu / length), jnp.where(done, 0, c / length)
    g = jnp.stack([jnp.stack([jnp.conj(cosine), sine], -1), jnp.stack([-sine, cosine], -1)], -2)
    return g, adjoint(g)


def _complex_schur(a):
    """The complex Schur form; of a real matrix by way of its real form, which keeps real eigenvalues real."""
    if jnp.iscomplexobj(a):
        return factors.schur(a)
    return _rsf2csf(*factors.schur(a))


# ---- Sylvester's equation ----------------------------------------------------------------------------------------


def solve_sylvester(A, B, C, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """X [.., m, n] with A X + X B = C, for A [.., m, m] and B [.., n, n].

    'schur' is accurate (R. Bartels and G. Stewart, 1972) and exists on CPU only; 'eigen' is for matrices whose eigenvectors are
    well conditioned. Where a sum of an eigenvalue of A and one of B is below `tol` in absolute value, the result is nan.

    >>> solve_sylvester(2.0 * jnp.eye(2), jnp.eye(2), 3.0 * jnp.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: method must be 'schur' or 'eigen', got {method!r}")
    a, b, c = matrices("solve_sylvester", A, B, C)
    m, n = c.shape[-2:]
    if a.shape[-2:] != (m, m) or b.shape[-2:] != (n, n):
        raise ValueError(
            f"solve_sylvester: Incompatible shapes {a.aval}, {b.aval}, {c.aval}; expected [.., m, m], [.., n, n], [.., m, n]"
        )
    return _solve_sylvester(a, b, c, method, float(tol))


@plainly
@fused(static=("method", "tol"))
def _solve_sylvester(a, b, c, method, tol):
    a, b, c = batched_together(a, b, c)
    return sylvester(a, b, c, tol=tol) if method == "schur" else _by_eig(a, b, c, tol)


def _by_eig(a, b, c, tol):
    (p, u), (q, v) = (factors.eig(x, compute_left_eigenvectors=False) for x in (a, b))
    sums = p[..., :, None] + q[..., None, :]
    singular = jnp.any(jnp.abs(sums) < tol, axis=(-2, -1), keepdims=True)
    y = solved(u, product(complex_of(c), v)) / sums
    x = jnp.matrix_transpose(solved(jnp.matrix_transpose(v), jnp.matrix_transpose(product(u, y))))
    return jnp.where(singular, jnp.nan, x if jnp.iscomplexobj(c) else x.real)


# ---- roots and functions -----------------------------------------------------------------------------------------


def sqrtm(A, blocksize: int = 1) -> Array:
    """The principal square root of `A` [.., n, n]: X with X X = A, in the complex dtype of its precision.

    Where there is none (a defective eigenvalue 0), elements are inf or nan. `blocksize` must be 1.

    >>> sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize > 1:
        raise NotImplementedError(f"sqrtm works column by column: blocksize must be 1, got {blocksize}")
    (a,) = square("sqrtm", A)
    return _sqrtm(a)


@custom_jvp
def _root(a):
    t, z = _complex_schur(a)
    return product(product(z, triangles.root(t)), adjoint(z))


# X X' + X' X = A'
@_root.defjvp
@plainly
def _root_jvp(primals, tangents):
    x = _root(primals[0])
    return x, sylvester(x, x, complex_of(tangents[0]))


@plainly
@fused
def _sqrtm(a):
    return _root(a)


def funm(A, func, disp: bool = True):
    """`func` of the square matrix `A` [n, n], in the complex dtype of its precision.

    With the Schur form A = Z T Z^H it is Z F Z^H, where F has func of the diagonal of T on its own and commutes with T.

    func: an array of eigenvalues -> an array. With `disp=False` also a bound of the relative error, which is large where
    eigenvalues are equal. There is no derivative.
    """
    (a,) = square("funm", A)
    if a.ndim != 2:
        raise ValueError(f"funm: expected square matrix [n, n], got {a.aval}")
    t, z = _complex_schur_of(a)
    found, error = _function_of_schur(t, z, func(triangles.diagonal(t)))
    return found if disp else (found, error)


_complex_schur_of = plainly(fused(_complex_schur))


@plainly
@fused
def _function_of_schur(t, z, values):
    f = triangles.function(t, values.astype(t.dtype))
    found = product(product(z, f), adjoint(z))
    n, eps = t.shape[-1], dtypes.finfo(t.dtype).eps
    if n == 0:
        return found, jnp.zeros((), dtypes.real_dtype(t.dtype))
    d = triangles.diagonal(t)
    gaps = jnp.where(jnp.triu(jnp.ones((n, n), bool), 1), jnp.abs(d[:, None] - d), jnp.inf)
    smallest = jnp.minimum(jnp.min(gaps), jnp.abs(d[0]))
    smallest = jnp.where(smallest == 0, eps, smallest)
    size = jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), axis=0))
    error = jnp.minimum(1, jnp.maximum(eps, eps / smallest * size))
    return found, jnp.where(jnp.any(jnp.isinf(jnp.abs(f))), jnp.inf, error)
