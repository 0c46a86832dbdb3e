"""Factors, systems, eigenvalues and functions of matrices under SciPy's names, against SciPy and under the transforms."""

import mpmath
import numpy as np
import pytest
import scipy.linalg

import funcml as fm
import funcml.numpy as jnp
from funcml.scipy import linalg
from tests.matrices import DTYPES, adjoint, close, matrix
from tests.products import check_products

# ---- factors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors(dtype, rng):
    a = matrix(rng, (4, 4), dtype)
    positive = a @ adjoint(a) + np.eye(4, dtype=dtype)
    for lower in (True, False):
        given = np.tril(positive) if lower else np.triu(positive)
        close(linalg.cholesky(given, lower=lower), scipy.linalg.cholesky(positive, lower=lower), dtype)
    for x in (a, a[:, :3], a[:3]):
        close(linalg.lu(x), scipy.linalg.lu(x), dtype)
        close(linalg.lu(x, permute_l=True), scipy.linalg.lu(x, permute_l=True), dtype)
    close(linalg.lu_factor(a), scipy.linalg.lu_factor(a), dtype)
    close(linalg.svd(a[:3], compute_uv=False), scipy.linalg.svd(a[:3], compute_uv=False), dtype)
    close(linalg.hessenberg(a, calc_q=True), scipy.linalg.hessenberg(a, calc_q=True), dtype)
    assert linalg.hessenberg(a[:1, :1], calc_q=True)[1].shape == (1, 1)
    t, z = map(np.asarray, linalg.schur(a, output="complex"))
    assert not np.any(np.tril(t, -1))
    close(z @ t @ adjoint(z), a, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4)], ids=str)
def test_qr_and_products_with_q(shape, dtype, rng):
    a = matrix(rng, shape, dtype)
    for mode in ("full", "r", "economic"):
        for pivoting in (False, True):
            close(linalg.qr(a, mode=mode, pivoting=pivoting), scipy.linalg.qr(a, mode=mode, pivoting=pivoting), dtype)
    for mode, c in (("left", (3, 2)), ("right", (2, shape[0])), ("left", (3,)), ("right", (shape[0],))):
        c = matrix(rng, c, dtype)
        for options in ({}, {"conjugate": True}, {"pivoting": True}):
            close(linalg.qr_multiply(a, c, mode, **options), scipy.linalg.qr_multiply(a, c, mode, **options), dtype)


def test_factors_of_a_batch(rng):
    a = rng.normal(size=(2, 4, 4))
    positive = a @ adjoint(a) + np.eye(4)
    for f, x in ((linalg.cholesky, positive), (linalg.lu, a), (linalg.qr, a), (linalg.schur, a), (linalg.polar, a),
                 (lambda x: linalg.hessenberg(x, calc_q=True), a), (linalg.expm, a), (linalg.sqrtm, positive)):
        found, each = fm.tree.leaves(f(x)), [fm.tree.leaves(f(y)) for y in x]
        for i, y in enumerate(found):
            np.testing.assert_allclose(y, np.stack([np.asarray(e[i]) for e in each]), atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rsf2csf(dtype, rng):
    t, z = scipy.linalg.schur(matrix(rng, (5, 5), dtype))
    close(linalg.rsf2csf(t, z), scipy.linalg.rsf2csf(t, z), dtype)
    close(linalg.rsf2csf(np.stack([t, 2 * t]), z)[0][1], scipy.linalg.rsf2csf(2 * t, z)[0], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)], ids=str)
def test_polar(shape, dtype, rng):
    a = matrix(rng, shape, dtype)
    for side in ("right", "left"):
        for method in ("qdwh", "svd"):
            close(linalg.polar(a, side, method=method), scipy.linalg.polar(a, side), dtype)


# ---- systems -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems(dtype, rng):
    a, b = matrix(rng, (4, 4), dtype) + 2 * np.eye(4, dtype=dtype), matrix(rng, (4, 2), dtype)
    hermitian, symmetric, positive = a + adjoint(a), a + a.T, a @ adjoint(a)
    for right in (b, b[:, 0]):
        close(linalg.solve(a, right), np.linalg.solve(a, right), dtype, 1e4)
        for name, full in (("her", hermitian), ("sym", symmetric), ("pos", positive)):
            for lower in (True, False):
                given = np.tril(full) if lower else np.triu(full)
                close(linalg.solve(given, right, lower=lower, assume_a=name), np.linalg.solve(full, right), dtype, 1e4)
        for trans in (0, 1, 2):
            want = scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), right, trans)
            close(linalg.lu_solve(linalg.lu_factor(a), right, trans), want, dtype)
            for lower in (True, False):
                for unit in (True, False):
                    options = {"trans": trans, "lower": lower, "unit_diagonal": unit}
                    close(linalg.solve_triangular(a, right, **options), scipy.linalg.solve_triangular(a, right, **options), dtype)
        for lower in (True, False):
            close(linalg.cho_solve(linalg.cho_factor(positive, lower), right), np.linalg.solve(positive, right), dtype, 1e4)


def test_systems_of_a_batch(rng):
    a, b = rng.normal(size=(3, 4, 4)) + 3 * np.eye(4), rng.normal(size=(4, 2))
    want = np.linalg.solve(a, np.broadcast_to(b, (3, 4, 2)))
    np.testing.assert_allclose(linalg.solve(a, b), want, atol=1e-12)
    np.testing.assert_allclose(linalg.lu_solve(linalg.lu_factor(a), b), want, atol=1e-12)
    np.testing.assert_allclose(linalg.solve(a, b[:, 0]), want[..., 0], atol=1e-12)
    vectors = rng.normal(size=(3, 4))
    np.testing.assert_allclose(linalg.solve(a, vectors), np.linalg.solve(a, vectors[..., None])[..., 0], atol=1e-12)


@pytest.mark.parametrize("call, sentence", [
    (lambda: linalg.solve(jnp.eye(3), jnp.ones(2)), r"the matrix f32\[3,3\] has 3 rows and the right-hand side f32\[2\] has 2"),
    (lambda: linalg.solve(jnp.eye(3), jnp.ones(3), assume_a="bad"), "Expected assume_a to be one of"),
    (lambda: linalg.solve_triangular(jnp.eye(3), jnp.ones(3), trans=3), "trans must be"),
    (lambda: linalg.lu_solve(linalg.lu_factor(jnp.eye(3)), jnp.ones(3), trans=3), "trans must be 0, 1 or 2, got 3"),
    (lambda: linalg.cholesky(jnp.ones((2, 3))), r"expected square matrices \[.., n, n\], got f32\[2,3\]"),
    (lambda: linalg.expm(jnp.ones(3)), r"expm expects matrices \[.., m, n\], got f32\[3\]"),
    (lambda: linalg.qr(jnp.eye(3), mode="raw"), "mode must be one of"),
    (lambda: linalg.qr_multiply(jnp.ones((4, 3)), jnp.ones((2, 2)), "left"), r"q of a = q r f32\[4,3\] has 3 columns"),
    (lambda: linalg.polar(jnp.eye(2), "up"), "must be either 'right' or 'left', got 'up'"),
    (lambda: linalg.solve_sylvester(jnp.eye(2), jnp.eye(2), jnp.ones((3, 2))), "Incompatible shapes"),
    (lambda: linalg.eigh(jnp.eye(2), type=4), "type must be 1, 2 or 3"),
    (lambda: linalg.eigh(jnp.eye(2), eigvals=(0, 2)), r"eigh of f32\[2,2\]: eigvals must be"),
    (lambda: linalg.eigh_tridiagonal(jnp.ones(3), jnp.ones(3)), r"got f32\[3\] and f32\[3\]"),
    (lambda: linalg.expm_frechet(jnp.eye(2), jnp.eye(3)), r"same shape, got f32\[2,2\] and f32\[3,3\]"),
    (lambda: linalg.rsf2csf(jnp.eye(2), jnp.eye(3)), "Input array shapes must match"),
    (lambda: linalg.schur(jnp.eye(2), output="bad"), "output must be"),
    (lambda: linalg.funm(jnp.ones((2, 2, 2)), jnp.exp), r"expected square matrix \[n, n\], got f32\[2,2,2\]"),
], ids=lambda x: x if isinstance(x, str) else "call")
def test_bad_input(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_determinants_and_inverses(rng):
    a = rng.normal(size=(2, 3, 3))
    np.testing.assert_allclose(linalg.det(a), np.linalg.det(a), rtol=1e-12)
    np.testing.assert_allclose(linalg.inv(a), np.linalg.inv(a), rtol=1e-9)


# ---- eigenvalues -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(dtype, rng):
    a, b = matrix(rng, (4, 4), dtype), matrix(rng, (4, 4), dtype)
    a, b = a + adjoint(a), b @ adjoint(b) + np.eye(4, dtype=dtype)
    for lower in (True, False):
        w, v = map(np.asarray, linalg.eigh(np.tril(a) if lower else np.triu(a), lower=lower))
        close(w, scipy.linalg.eigvalsh(a), dtype)
        close(a @ v, v * w, dtype)
    close(linalg.eigh(a, eigvals=(1, 2))[0], scipy.linalg.eigvalsh(a)[1:3], dtype)
    for kind in (1, 2, 3):
        w, v = map(np.asarray, linalg.eigh(a, b, type=kind))
        close(w, scipy.linalg.eigh(a, b, type=kind, eigvals_only=True), dtype, 1e4)
        close(linalg.eigh(a, b, type=kind, eigvals_only=True), w, dtype, 1e4)
        left = {1: a @ v, 2: a @ b @ v, 3: b @ a @ v}[kind]
        close(left, (b @ v if kind == 1 else v) * w, dtype, 1e5)
        metric = np.linalg.inv(b) if kind == 3 else b
        close(adjoint(v) @ metric @ v, np.eye(4), dtype, 1e4)


def test_eigh_tridiagonal(rng):
    d, e = rng.normal(size=5), rng.normal(size=4)
    full = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    w, v = map(np.asarray, linalg.eigh_tridiagonal(d, e))
    np.testing.assert_allclose(full @ v, v * w, atol=1e-12)
    np.testing.assert_allclose(w, scipy.linalg.eigvalsh_tridiagonal(d, e), atol=1e-12)
    part = linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 3))
    np.testing.assert_allclose(part, w[1:4], atol=1e-12)
    turned = np.diag(d) + np.diag(e * 1j, 1) + np.diag(-e * 1j, -1)
    w, v = map(np.asarray, linalg.eigh_tridiagonal(d, e * 1j))
    np.testing.assert_allclose(turned @ v, v * w, atol=1e-12)
    with pytest.raises(NotImplementedError, match="select must be 'a' or 'i'"):
        linalg.eigh_tridiagonal(d, e, select="v", select_range=(0, 1))


# ---- functions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_expm(dtype, rng):
    a = matrix(rng, (4, 4), dtype)
    for scale in (0, 1e-9, 1e-2, 0.3, 1, 3, 20):
        want = scipy.linalg.expm(np.asarray(scale * a, np.result_type(dtype, np.float64)))
        close(np.asarray(linalg.expm(dtype(scale) * a)) / np.max(np.abs(want)), want / np.max(np.abs(want)), dtype)
    triangle = np.triu(a)
    close(linalg.expm(triangle, upper_triangular=True), scipy.linalg.expm(triangle), dtype)
    e = matrix(rng, (4, 4), dtype)
    close(linalg.expm_frechet(a, e), scipy.linalg.expm_frechet(a, e), dtype, 1e4)


def test_expm_of_extremes():
    n = np.array([[0.0, 1e6], [0.0, 0.0]])
    np.testing.assert_allclose(linalg.expm(np.float64([[0, -np.pi], [np.pi, 0]])), -np.eye(2), atol=1e-14)
    np.testing.assert_allclose(linalg.expm(n, max_squarings=20), np.eye(2) + n, rtol=1e-9)
    assert np.all(np.isnan(linalg.expm(n, max_squarings=3)))
    assert np.all(np.isnan(linalg.expm(jnp.full((2, 2), jnp.inf)))) and linalg.expm(jnp.zeros((0, 0))).shape == (0, 0)
    assert linalg.expm(jnp.eye(2, dtype=int)).dtype == np.float32
    both = linalg.expm(np.stack([np.eye(2), 30 * np.eye(2)]))
    np.testing.assert_allclose(both, np.exp([1.0, 30.0])[:, None, None] * np.eye(2), rtol=1e-13)


def test_expm_is_accurate_to_rounding(rng):
    mpmath.mp.dps = 40
    a = rng.normal(size=(3, 3))
    for scale in (1e-6, 0.1, 2.0):
        want = np.array(mpmath.expm(mpmath.matrix(scale * a)).tolist(), float)
        np.testing.assert_allclose(linalg.expm(scale * a), want, rtol=0, atol=1e-14 * np.abs(want).max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_roots_and_functions(dtype, rng):
    a = matrix(rng, (5, 5), dtype)
    root = np.asarray(linalg.sqrtm(a))
    close(root @ root, a, dtype, 1e4)
    close(root, scipy.linalg.sqrtm(a), dtype, 1e5)
    for diagonal in ([1, 0, 0], [0, 0, 9, 0, 0, 4]):
        close(linalg.sqrtm(np.diag(diagonal).astype(dtype)), np.diag(np.sqrt(diagonal)), dtype)
    found, error = linalg.funm(a, lambda x: x**-2.718, disp=False)
    want, want_error = scipy.linalg.funm(a, lambda x: x**-2.718, disp=False)
    close(found, want, dtype, 1e6)
    assert abs(float(error) - want_error) < 1e-3
    close(linalg.funm(np.triu(a), jnp.exp), scipy.linalg.expm(np.triu(a)), dtype, 1e6)


@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_solve_sylvester(method, rng):
    for dtype in DTYPES:
        a, b, c = matrix(rng, (4, 4), dtype), matrix(rng, (3, 3), dtype), matrix(rng, (2, 4, 3), dtype)
        x = np.asarray(linalg.solve_sylvester(a, b, c, method=method))
        assert x.dtype == dtype
        close(a @ x + x @ b, c, dtype, 1e5)
    assert np.all(np.isnan(linalg.solve_sylvester(jnp.eye(2), -jnp.eye(2), jnp.ones((2, 2)), method=method)))


# ---- transforms --------------------------------------------------------------------------------------------------


def test_expm_under_the_transforms(rng):
    check_products(linalg.expm, 3 * rng.normal(size=(2, 2)), products=("jvp", "vjp", "order2"))
    a = rng.normal(size=(2, 3, 3)) * np.array([1.0, 40.0])[:, None, None]
    mapped = fm.jit(fm.vmap(fm.grad(lambda x: jnp.sum(linalg.expm(x) / jnp.max(jnp.abs(linalg.expm(x)))))))(a)
    assert np.all(np.isfinite(mapped))
    np.testing.assert_allclose(fm.grad(lambda x: jnp.sum(linalg.expm(x)))(jnp.zeros((2, 2))), np.ones((2, 2)), atol=1e-6)


def test_sqrtm_under_the_transforms(rng):
    a = rng.normal(size=(2, 2))
    check_products(linalg.sqrtm, a @ a.T + np.eye(2), products=("jvp", "vjp", "order2"))


def test_polar_under_the_transforms(rng):
    check_products(linalg.polar, matrix(rng, (3, 2), np.complex128), products=("jvp", "vjp", "order2"))
    (u, p), (du, dp) = fm.jvp(linalg.polar, (np.eye(3),), (np.eye(3)[::-1].copy(),))
    np.testing.assert_allclose(du, np.zeros((3, 3)), atol=1e-12)
    np.testing.assert_allclose(dp, np.eye(3)[::-1], atol=1e-12)


def test_systems_under_the_transforms(rng):
    a, b = rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=(3, 2))
    check_products(
        lambda a, b: linalg.solve(a @ a.T, b, assume_a="pos"), a, b, products=("jvp", "vjp", "order2"), rtol=1e-5
    )
    check_products(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, 1), a, b, products=("jvp", "vjp"))


def test_eigenvalues_under_the_transforms(rng):
    check_products(lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True), rng.normal(size=4), rng.normal(size=3), order=1)
    a = rng.normal(size=(3, 3))
    check_products(lambda a, b: linalg.eigh(a, b, eigvals_only=True), a, a @ a.T + np.eye(3), products=("jvp", "vjp"))
