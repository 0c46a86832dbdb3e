"""Solutions of A x = b by products with A alone.

    cg       : A Hermitian and positive definite      conjugate gradients
    bicgstab : any A                                  stabilised biconjugate gradients
    gmres    : any A                                  the least residual in spaces b, A b, A^2 b, ..

A is a matrix, or a linear function of trees like b, which may close over anything. Iterations stop when |b - A x| is not
greater than max(tol |b|, atol). Derivatives come from the equation, by another solution of such a system, so they are as good as
that one: x' = A^-1 (b' - A' x). Vectors below are all leaves of a tree in one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from funcml import dtypes, tree
from funcml.core.values import Array
from funcml.flatten_util import ravel_pytree
from funcml.lax.implicit import custom_linear_solve
from funcml.lax.loops import fori_loop, while_loop
from funcml.numpy.creation import array, zeros
from funcml.numpy.diagonals import eye
from funcml.numpy.linalg import norm, qr
from funcml.numpy.linear import dot, vdot
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.numpy.reductions import any as any_of
from funcml.numpy.selection import where
from funcml.numpy.ufuncs import abs as absolute
from funcml.numpy.ufuncs import conj, maximum, minimum, real, sqrt
from funcml.primitives import elementwise as ew
from funcml.primitives.indexing import dynamic_update_slice
from funcml.scipy.linalg import solve_triangular

__all__ = ["bicgstab", "cg", "gmres"]


def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter: int | None = None, M=None) -> tuple[Any, None]:
    """(x, None) with A x = b for a Hermitian positive definite A, by conjugate gradients.

    `x0` is where to start (0), `maxiter` the greatest number of products (10 times the number of unknowns), and `M`, a matrix or
    a function, an approximation of the inverse of A. Raises ValueError for a matrix that is not square, and for another tree or
    shapes of `x0` than of `b`.

    >>> import numpy as np
    >>> cg(np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]))[0].round(4)
    Array([0.0909, 0.6364], dtype=float64)
    """
    return _solved("cg", _cg, A, b, x0, M, maxiter, {"tol": tol, "atol": atol}, True), None


def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter: int | None = None, M=None) -> tuple[Any, None]:
    """(x, None) with A x = b for any A, by stabilised biconjugate gradients; arguments as for `cg`."""
    return _solved("bicgstab", _bicgstab, A, b, x0, M, maxiter, {"tol": tol, "atol": atol}, False), None


def gmres(
    A, b, x0=None, *, tol=1e-5, atol=0.0, restart: int = 20, maxiter: int | None = None, M=None, solve_method: str = "batched"
) -> tuple[Any, Array]:
    """(x, info) with A x = b for any A, by least residuals in spaces of dimension `restart`, built up to `maxiter` times.

    `solve_method` 'incremental' stops within a space when the residual is small, 'batched' builds it whole. `info` is 0, or -1
    where x is no number; other arguments as for `cg`.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}")
    options = {"tol": tol, "atol": atol, "restart": restart, "incremental": solve_method == "incremental"}
    x = _solved("gmres", _gmres, A, b, x0, M, maxiter, options, False)
    return x, where(any_of(ravel_pytree(x)[0] != ravel_pytree(x)[0]), -1, 0)


def _solved(name: str, solver: Callable, A, b, x0, M, maxiter, options, symmetric: bool):
    """The solution as a tree like `b`."""
    A, M = _operator(name, A), _operator(name, _same if M is None else M)
    matrix = A.args[0] if isinstance(A, functools.partial) and A.func is dot else None
    b = tree.map(lambda x: as_array(to_inexact(name, operand(name, x))), b)
    if matrix is not None:
        b = tree.map(lambda x: ew.convert(x, dtypes.result_type(x.dtype, matrix.dtype)), b)
    x0 = tree.map(lambda x: x * 0, b) if x0 is None else _like(name, x0, b)
    weak = tree.map(lambda x: x.weak_type, b)
    flat, unravel = ravel_pytree(b)
    limit = 10 * flat.size if maxiter is None else maxiter
    start = ravel_pytree(x0)[0]

    def solve(start, matvec, b):
        flat, unravel = ravel_pytree(b)
        product = lambda v: ravel_pytree(matvec(unravel(v)))[0]
        precondition = (lambda v: v) if M is _same else lambda v: ravel_pytree(M(unravel(v)))[0]
        return unravel(solver(product, flat, start, precondition, limit, **options))

    symmetric = symmetric and not dtypes.is_complex(flat.dtype)
    back = functools.partial(solve, start * 0)
    x = custom_linear_solve(A, b, functools.partial(solve, start), back, symmetric=symmetric)
    return tree.map(lambda x, is_weak: ew.convert(x, x.dtype, is_weak), x, weak)


def _same(x):
    return x


def _operator(name: str, A) -> Callable:
    """The linear function that a matrix is, an object that multiplies by `@`, or a function."""
    if callable(A):
        return A
    multiplies = hasattr(A, "__matmul__") and not isinstance(A, np.ndarray | Array)
    A = A if multiplies else as_array(to_inexact(name, operand(name, A)))
    shape = tuple(getattr(A, "shape", (0, 0)))
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name} expects a square matrix or a linear function, got one of shape {shape}")
    return functools.partial(operator.matmul, A) if multiplies else functools.partial(dot, A, precision="highest")


def _like(name: str, x0, b):
    given, wanted = tree.structure(x0), tree.structure(b)
    if given != wanted:
        raise ValueError(f"{name}: x0 and b must be of one tree structure; {tree.explain_difference(given, wanted)}")
    leaves = [as_array(operand(name, x)) for x in tree.leaves(x0)]
    for x, y in zip(leaves, tree.leaves(b), strict=True):
        if x.shape != y.shape:
            raise ValueError(f"{name}: arrays of x0 and b must have the same shapes, got {x.aval} and {y.aval}")
    return tree.unflatten(wanted, [ew.convert(x, y.dtype) for x, y in zip(leaves, tree.leaves(b), strict=True)])


def _square_norm(v):
    return real(vdot(v, v, precision="highest"))


def _least(b, tol, atol):
    """The square of the residual that is small enough."""
    return maximum(tol * tol * _square_norm(b), atol * atol)


# ---- conjugate gradients -----------------------------------------------------------------------------------------------


# M. R. Hestenes, E. Stiefel, 1952, with preconditioner: z = M r, g = r.z, step g / p.Ap along p, p' = z' + (g' / g) p.
def _cg(product, b, x0, precondition, maxiter, tol, atol):
    least = _least(b, tol, atol)

    def turn(carry):
        x, r, z, p, k = carry
        g, q = real(vdot(r, z, precision="highest")), product(p)
        step = ew.convert(g / real(vdot(p, q, precision="highest")), p.dtype)
        x, r = x + step * p, r - step * q
        z = precondition(r)
        ratio = ew.convert(real(vdot(r, z, precision="highest")) / g, p.dtype)
        return x, r, z, z + ratio * p, k + 1

    r = b - product(x0)
    z = precondition(r)
    more = lambda carry: (_square_norm(carry[1]) > least) & (carry[4] < maxiter)
    return while_loop(more, turn, (x0, r, z, z, array(0, dtypes.int32)))[0]


# H. A. van der Vorst, 1992. k < 0 marks a breakdown: a direction that is orthogonal to all that is left.
def _bicgstab(product, b, x0, precondition, maxiter, tol, atol):
    least = _least(b, tol, atol)
    pair = lambda u, v: vdot(u, v, precision="highest")

    def turn(carry):
        x, r, p, q, rho, alpha, omega, k = carry
        rho_new = pair(r0, r)
        p = r + rho_new / rho * alpha / omega * (p - omega * q)
        p_hat = precondition(p)
        q = product(p_hat)
        alpha = rho_new / pair(r0, q)
        s = r - alpha * q
        done = _square_norm(s) <= least
        s_hat = precondition(s)
        t = product(s_hat)
        omega = pair(t, s) / pair(t, t)
        x = x + alpha * p_hat + where(done, 0 * s_hat, omega * s_hat)
        r = where(done, s, s - omega * t)
        broken = ~done & ((omega == 0) | (alpha == 0)) | (rho_new == 0)
        return x, r, p, q, rho_new, alpha, omega, where(broken, -1, k + 1)

    r0 = b - product(x0)
    one = array(1, b.dtype)
    more = lambda carry: (_square_norm(carry[1]) > least) & (carry[7] < maxiter) & (carry[7] >= 0)
    return while_loop(more, turn, (x0, r0, 0 * r0, 0 * r0, one, one, one, array(0, dtypes.int32)))[0]


# ---- least residuals ---------------------------------------------------------------------------------------------------


# Y. Saad, M. H. Schultz, 1986, for M A x = M b. Rows of V [m + 1, n] are an orthonormal basis, M A V[k] = sum of H[k, i] V[i].
def _gmres(product, b, x0, precondition, maxiter, tol, atol, restart, incremental):
    least = maximum(tol * norm(b), atol)
    m = min(restart, b.size)
    inner_tol = norm(precondition(b)) * minimum(1.0, least / norm(b))
    grow = functools.partial(_rotated_space if incremental else _space, lambda v: precondition(product(v)))

    def turn(carry):
        x, r, size, k = carry
        basis, y = grow(r, size, m, inner_tol)
        x = x + dot(y, basis[:-1], precision="highest")
        r = precondition(b - product(x))
        return x, r, norm(r), k + 1

    r = precondition(b - product(x0))
    more = lambda carry: (carry[2] > least) & (carry[3] < maxiter)
    return while_loop(more, turn, (x0, r, norm(r), array(0, dtypes.int32)))[0]


def _row(x, row, k):
    return dynamic_update_slice(x, row[None], (k, 0))


def _start(r, size, m: int):
    usable = size > 0
    first = where(usable, r / ew.convert(where(usable, size, 1), r.dtype), 0 * r)
    return _row(zeros((m + 1, r.size), r.dtype), first, 0), eye(m, m + 1, dtype=r.dtype)


def _next(times, basis, k):
    """The basis with one more vector, its coefficients H[k], and whether there was none: by Gram-Schmidt, twice."""
    v = times(basis[k])
    before = norm(v)
    h = zeros(basis.shape[0], basis.dtype)
    for _ in range(2):
        part = dot(conj(basis), v, precision="highest")
        v, h = v - dot(part, basis, precision="highest"), h + part
    after = norm(v)
    broken = ~(after > float(np.finfo(after.dtype).eps) * before)
    after = where(broken, 0, after)
    unit = where(broken, 0 * v, v / ew.convert(where(broken, 1, after), v.dtype))
    h = where(_numbers(h) == k + 1, ew.convert(after, h.dtype), h)
    return _row(basis, unit, k + 1), h, broken


def _numbers(h):
    return as_array(np.arange(h.shape[0], dtype=np.int32))


def _space(times, r, size, m: int, inner_tol):
    """The whole space, and the coefficients of the least residual by a QR decomposition."""
    def turn(carry):
        basis, h, _, k = carry
        basis, row, broken = _next(times, basis, k)
        return basis, _row(h, row, k), broken, k + 1

    basis, h = _start(r, size, m)
    more = lambda carry: ~carry[2] & (carry[3] < m)
    basis, h, _, _ = while_loop(more, turn, (basis, h, array(False), array(0, dtypes.int32)))
    q, upper = qr(h.T)
    return basis, solve_triangular(upper, conj(q[0]) * ew.convert(size, q.dtype))


def _rotated_space(times, r, size, m: int, inner_tol):
    """The space until the residual is small, which rotations of neighbouring rows of H tell at each step."""
    def turn(carry):
        basis, upper, rotations, right, _, k, _ = carry
        basis, h, broken = _next(times, basis, k)
        h = fori_loop(0, k, lambda i, h: _rotate(h, i, rotations[i]), h)
        rotation = _rotation(h[k], h[k + 1])
        right = _rotate(right, k, rotation)
        return (basis, _row(upper, _rotate(h, k, rotation), k), _row(rotations, rotation, k), right, absolute(right[k + 1]),
                k + 1, broken)

    basis, upper = _start(r, size, m)
    right = where(_numbers(basis[:, 0]) == 0, ew.convert(size, r.dtype), 0)
    more = lambda carry: (carry[4] > inner_tol) & (carry[5] < m) & ~carry[6]
    start = (basis, upper, zeros((m, 2), r.dtype), right, size, array(0, dtypes.int32), array(False))
    basis, upper, _, right, _, k, _ = while_loop(more, turn, start)
    known = where(_numbers(right)[:-1] < k, right[:-1], 0)
    return basis, solve_triangular(upper[:, :-1].T, known)


# [c, s; -s*, c] [a; b] = [a |(a, b)| / |a|; 0] for a real b >= 0
def _rotation(a, b):
    size = absolute(a)
    length = sqrt(size * size + absolute(b) ** 2)
    usable = length > 0
    length = where(usable, length, 1)
    phase = where(size > 0, a / ew.convert(where(size > 0, size, 1), a.dtype), 1)
    cosine = ew.convert(where(usable, size / length, 1), a.dtype)
    return _pair(cosine, phase * b / ew.convert(length, a.dtype))


def _pair(x, y):
    return where(as_array(np.array([True, False])), x, y)


def _rotate(h, i, rotation):
    c, s = rotation[0], rotation[1]
    a, b = h[i], h[i + 1]
    at = _numbers(h)
    return where(at == i, c * a + s * b, where(at == i + 1, c * b - conj(s) * a, h))
