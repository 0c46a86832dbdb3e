"""Factors and the systems that they solve: against NumPy, SciPy and what defines them; products of transforms."""

import numpy as np
import pytest

import funcml as fm
from funcml import lax
from funcml.lax import linalg
from funcml.primitives.linalg_solve import factored_solve
from tests.products import check_products

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
SHAPES = [(4, 4), (5, 3), (3, 5), (1, 1)]


def random(rng, dtype, *shape):
    x = rng.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def close(found, want, dtype, scale=1.0):
    tolerance = 100 * scale * np.finfo(dtype).eps
    found = np.asarray(found)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)


def unpacked(lu):
    k = min(lu.shape[-2:])
    return np.tril(lu[..., :, :k], -1) + np.eye(lu.shape[-2], k), np.triu(lu[..., :k, :])


# ---- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(rng, dtype):
    a = random(rng, dtype, 2, 4, 4)
    p = a @ a.conj().mT + np.eye(4, dtype=dtype)
    close(linalg.cholesky(p), np.linalg.cholesky(p), dtype)
    lower = np.tril(p) + np.triu(np.full_like(p, 7), 1)
    close(linalg.cholesky(lower, symmetrize_input=False), np.linalg.cholesky(p), dtype)


def test_cholesky_of_what_is_not_positive_definite_is_nan():
    good, bad = np.eye(2, dtype=np.float32), np.float32([[1, 2], [2, 1]])
    found = np.asarray(linalg.cholesky(np.stack([good, bad])))
    np.testing.assert_array_equal(found[0], good)
    np.testing.assert_array_equal(found[1], np.tril(np.full((2, 2), np.nan)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cholesky_update(rng, dtype):
    r, w = np.triu(random(rng, dtype, 2, 4, 4)), random(rng, dtype, 2, 4)
    w[1, 2] = 0
    s = np.asarray(linalg.cholesky_update(r, w))
    close(s.mT @ s, r.mT @ r + w[:, :, None] * w[:, None, :], dtype, 10)
    np.testing.assert_array_equal(np.tril(s, -1), 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(rng, dtype, shape):
    x = random(rng, dtype, 2, *shape)
    lu, pivots, permutation = map(np.asarray, linalg.lu(x))
    l, u = unpacked(lu)
    close((l @ u).astype(dtype), np.take_along_axis(x, permutation[..., None], 1), dtype)
    for i in range(2):
        order = np.arange(shape[0])
        for j, p in enumerate(pivots[i]):
            order[[j, p]] = order[[p, j]]
        np.testing.assert_array_equal(order, permutation[i])
    np.testing.assert_array_equal(linalg.lu_pivots_to_permutation(pivots, shape[0]), permutation)


def test_lu_of_a_singular_matrix_has_a_zero_on_the_diagonal():
    lu, _, _ = linalg.lu(np.ones((3, 3)))
    np.testing.assert_array_equal(lu, [[1, 1, 1], [1, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(rng, dtype, shape):
    x = random(rng, dtype, 2, *shape)
    for full in (True, False):
        q, r = linalg.qr(x, full_matrices=full)
        want_q, want_r = np.linalg.qr(x, mode="complete" if full else "reduced")
        close(q, want_q, dtype)
        close(r, want_r, dtype)
        q, r, p = map(np.asarray, linalg.qr(x, full_matrices=full, pivoting=True))
        close(q @ r, np.take_along_axis(x, p[:, None, :], 2), dtype)
        sizes = np.abs(np.diagonal(r, axis1=1, axis2=2))
        assert (np.diff(sizes) <= 1e-5).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections(rng, dtype):
    x, c = random(rng, dtype, 5, 3), random(rng, dtype, 5, 2)
    packed, taus = linalg.geqrf(x)
    q = np.linalg.qr(x, mode="complete")[0]
    close(linalg.householder_product(packed, taus), q[:, :3], dtype)
    close(linalg.ormqr(packed, taus, c), q @ c, dtype)
    close(linalg.ormqr(packed, taus, c, transpose=True), q.conj().T @ c, dtype)
    close(linalg.ormqr(packed, taus, c.T, left=False), c.T @ q, dtype)
    close(linalg.ormqr(packed, taus, c.T, left=False, transpose=True), c.T @ q.conj().T, dtype)


def test_geqp3_keeps_the_columns_that_are_marked_in_front(rng):
    x = random(rng, np.float64, 4, 3)
    packed, places, taus = map(np.asarray, linalg.geqp3(x, np.int32([0, 0, 1])))
    assert places[0] == 3
    q = np.asarray(linalg.householder_product(packed, taus))
    close(q @ np.triu(packed[:3]), x[:, places - 1], np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_solve(rng, dtype):
    a, b = random(rng, dtype, 2, 4, 4) + 2 * np.eye(4, dtype=dtype), random(rng, dtype, 2, 4, 3)
    for i in range(32):
        left, lower, transpose, conjugate, unit = (bool(i >> k & 1) for k in range(5))
        t = np.tril(a) if lower else np.triu(a)
        if unit:
            t[:, range(4), range(4)] = 1
        t = t.mT if transpose else t
        t = t.conj() if conjugate else t
        right = b if left else b.mT
        how = {"left_side": left, "lower": lower, "transpose_a": transpose, "conjugate_a": conjugate, "unit_diagonal": unit}
        x = np.asarray(linalg.triangular_solve(a, right, **how))
        close(t @ x if left else x @ t, right, dtype, 100)


def test_triangular_solve_of_vectors(rng):
    a, b = np.triu(random(rng, np.float64, 3, 3)), random(rng, np.float64, 3)
    close(linalg.triangular_solve(a, b, left_side=True), np.linalg.solve(a, b), np.float64, 100)
    close(linalg.triangular_solve(a, b), np.linalg.solve(a.T, b), np.float64, 100)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_solve(rng, dtype):
    dl, d, du = (random(rng, dtype, 2, 4) for _ in range(3))
    b = random(rng, dtype, 2, 4, 3)
    want = [
        np.linalg.solve(np.diag(d[i]) + np.diag(du[i][:-1], 1) + np.diag(dl[i][1:], -1), b[i]) for i in range(2)
    ]
    close(linalg.tridiagonal_solve(dl, d, du, b), want, dtype, 100)


def test_tridiagonal_solve_of_a_singular_matrix():
    zeros, b = np.zeros(2, np.float32), np.ones((2, 1), np.float32)
    assert np.isnan(linalg.tridiagonal_solve(zeros, zeros, zeros, b)).all()
    assert np.isfinite(linalg.tridiagonal_solve(zeros, np.float32([1, 0]), zeros, b, perturb_singular=True)).all()


def test_symmetric_product(rng):
    a, c = random(rng, np.float32, 2, 3, 4), random(rng, np.float32, 2, 3, 3)
    c = c + c.mT
    found = np.asarray(linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True))
    close(found, 2 * a @ a.mT + 0.5 * c, np.float32)
    np.testing.assert_array_equal(found, found.mT)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (0, 3, 3), (2, 0, 0)])
def test_empty_matrices(shape):
    x, k = np.zeros(shape, np.float32), min(shape[-2:])
    batch, (m, n) = shape[:-2], shape[-2:]
    lu, pivots, permutation = linalg.lu(x)
    assert (lu.shape, pivots.shape, permutation.shape) == (shape, (*batch, k), (*batch, m))
    np.testing.assert_array_equal(permutation, np.broadcast_to(np.arange(m), (*batch, m)))
    for pivoting in (False, True):
        for full in (True, False):
            q, r, *p = linalg.qr(x, full_matrices=full, pivoting=pivoting)
            size = m if full else k
            np.testing.assert_array_equal(q, np.broadcast_to(np.eye(m, size), (*batch, m, size)))
            assert r.shape == (*batch, size, n)
            assert [np.asarray(v).tolist() for v in p] == [np.broadcast_to(np.arange(n), (*batch, n)).tolist()][:pivoting]
    if m == n:
        assert linalg.cholesky(x).shape == linalg.triangular_solve(x, x).shape == shape


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, kind, words", [
    (lambda: linalg.cholesky(np.ones((2, 2), np.float16)), TypeError, "cholesky expects f32, f64, c64 or c128, got f16"),
    (lambda: linalg.cholesky(np.ones((2, 3), np.float32)), ValueError, r"square matrices \[.., n, n\], got f32\[2,3\]"),
    (lambda: linalg.cholesky(np.ones(3, np.float32)), TypeError, r"expects matrices \[.., m, n\], got f32\[3\]"),
    (lambda: linalg.lu(np.ones((2, 2), np.int32)), TypeError, r"lu expects f32, f64, c64 or c128, got i32\[2,2\]"),
    (lambda: linalg.lu_pivots_to_permutation(np.zeros(3, np.int32), 2), ValueError, "exchanges 3 rows"),
    (lambda: linalg.lu_pivots_to_permutation(np.zeros(3), 3), TypeError, r"pivots i32\[.., k\], got f64\[3\]"),
    (lambda: linalg.triangular_solve(np.eye(3), np.ones((2, 2))), ValueError, "a right-hand side of 3 columns"),
    (lambda: linalg.triangular_solve(np.eye(2), np.ones((2, 2), np.float32)), TypeError, "operands of one dtype"),
    (lambda: linalg.triangular_solve(np.ones((4, 2, 2)), np.ones((3, 2, 2))), ValueError, "the same batch axes"),
    (lambda: linalg.tridiagonal_solve(*[np.ones(3)] * 3, np.ones((2, 1))), ValueError, "three diagonals of one length"),
    (lambda: linalg.householder_product(np.ones((2, 3)), np.ones(2)), ValueError, "at least as many rows as columns"),
    (lambda: linalg.ormqr(np.ones((3, 2)), np.ones(2), np.ones((2, 2))), ValueError, "a matrix of 3 rows"),
    (lambda: linalg.ormqr(np.ones((3, 2)), np.ones(3), np.ones((3, 2))), ValueError, "at most 2 reflections"),
    (lambda: linalg.geqp3(np.ones((3, 2)), np.zeros(3, np.int32)), TypeError, r"places i32\[.., 2\]"),
    (lambda: linalg.cholesky_update(np.ones((3, 3)), np.ones(2)), ValueError, "a vector of 3 elements"),
    (lambda: linalg.symmetric_product(np.ones((3, 2)), np.ones((2, 2))), ValueError, r"c \[.., m, m\]"),
])
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


# ---- derivatives and vmap ----------------------------------------------------------------------------------------


def positive(rng, dtype):
    a = random(rng, dtype, 3, 3)
    return a @ a.conj().T + np.eye(3)


KINDS = pytest.mark.parametrize("dtype", [np.float64, np.complex128])


@KINDS
def test_products_of_cholesky(rng, dtype):
    p = positive(rng, dtype)
    check_products(linalg.cholesky, p, rtol=1e-5)
    check_products(lambda x: linalg.cholesky(x, symmetrize_input=False), p, rtol=1e-5, products=("jvp", "vjp"))


def test_products_of_cholesky_update(rng):
    check_products(linalg.cholesky_update, random(rng, np.float64, 3, 3) + 2 * np.eye(3), random(rng, np.float64, 3), rtol=1e-5)


@KINDS
@pytest.mark.parametrize("how", [
    {"left_side": True, "lower": True},
    {"lower": True, "transpose_a": True, "conjugate_a": True},
    {"left_side": True, "conjugate_a": True, "unit_diagonal": True},
])
def test_products_of_triangular_solve(rng, dtype, how):
    a, b = random(rng, dtype, 3, 3) + 3 * np.eye(3), random(rng, dtype, 3, 2)
    check_products(lambda a, b: linalg.triangular_solve(a, b, **how), a, b if how.get("left_side") else b.T)


@KINDS
@pytest.mark.parametrize("transpose", [False, True])
def test_products_of_factored_solve(rng, dtype, transpose):
    def solve(a, b):
        lu, _, permutation = linalg.lu(lax.stop_gradient(a))
        return factored_solve(a, lu, permutation, b, transpose_a=transpose)

    a, b = random(rng, dtype, 3, 3), random(rng, dtype, 3, 2)
    close(solve(a, b), np.linalg.solve(a.T if transpose else a, b), dtype, 100)
    check_products(solve, a, b, rtol=1e-5)


@KINDS
def test_products_of_tridiagonal_solve(rng, dtype):
    dl, d, du, b = (random(rng, dtype, *s) for s in ((3,), (3,), (3,), (3, 2)))
    check_products(linalg.tridiagonal_solve, dl, d + 4, du, b)


@KINDS
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_products_of_lu(rng, dtype, shape):
    check_products(lambda x: linalg.lu(x)[0], random(rng, dtype, *shape), rtol=1e-5)


@KINDS
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_products_of_qr(rng, dtype, shape):
    x = random(rng, dtype, *shape)
    check_products(lambda x: linalg.qr(x, full_matrices=False), x, rtol=1e-5)
    if shape[0] > shape[1]:
        check_products(lambda x: linalg.qr(x, pivoting=True)[:2], x, rtol=1e-5)


@pytest.mark.parametrize("dtype, shape", [(np.float64, (3, 3)), (np.complex128, (4, 2)), (np.float64, (2, 4))])
def test_products_of_geqrf(rng, dtype, shape):
    check_products(linalg.geqrf, random(rng, dtype, *shape), rtol=1e-5, products=("jit", "jvp", "vjp", "order2", "vmap"))


def test_products_of_geqp3(rng):
    places = np.zeros(2, np.int32)
    check_products(lambda x: linalg.geqp3(x, places), random(rng, np.float64, 4, 2), rtol=1e-5, products=("jvp", "vjp"))


@KINDS
def test_products_of_reflections(rng, dtype):
    packed, taus = map(np.asarray, linalg.geqrf(random(rng, dtype, 4, 3)))
    check_products(linalg.householder_product, packed, taus[:2])
    c = random(rng, dtype, 4, 2)
    check_products(linalg.ormqr, packed, taus, c)
    check_products(lambda p, t, c: linalg.ormqr(p, t, c, left=False, transpose=True), packed, taus, c.T, products=("jvp", "vjp"))


def test_one_matrix_for_a_mapped_right_side_stays_one(rng):
    a, b = np.triu(random(rng, np.float64, 3, 3)), random(rng, np.float64, 5, 3, 2)
    text = str(fm.make_jaxpr(fm.vmap(lambda b: linalg.triangular_solve(a, b, left_side=True)))(b))
    assert "f64[3,10]" in text and "f64[5,3,3]" not in text
