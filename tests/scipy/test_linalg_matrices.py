"""Matrices with a name, and matrices made of given elements, against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import funcml.numpy as jnp
from funcml.scipy import linalg
from tests.products import check_products


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8])
def test_matrices_with_a_size(n):
    for name in ("hilbert", "invhilbert"):
        np.testing.assert_allclose(getattr(linalg, name)(n), getattr(scipy.linalg, name)(n), rtol=2e-7)
    for kind in ("symmetric", "lower", "upper"):
        pascal = scipy.linalg.pascal(n, kind, exact=True)
        np.testing.assert_array_equal(linalg.pascal(n, kind), pascal)
        np.testing.assert_array_equal(np.float64(linalg.invpascal(n, kind)) @ np.float64(pascal), np.eye(n))
    for scale in (None, "sqrtn", "n"):
        np.testing.assert_allclose(linalg.dft(n, scale), scipy.linalg.dft(n, scale), atol=1e-6)
    if n:
        for full in (False, True):
            np.testing.assert_allclose(linalg.helmert(n, full), scipy.linalg.helmert(n, full), atol=1e-7)


def test_large_elements_are_rounded_once():
    want = scipy.linalg.pascal(40, exact=True)
    np.testing.assert_array_equal(linalg.pascal(40), want.astype(np.float64).astype(np.float32))
    assert np.all(np.isfinite(linalg.pascal(30))) and np.isinf(linalg.pascal(600)[-1, -1]) and linalg.invhilbert(300)[0, 0] > 0
    assert complex(linalg.dft(4, dtype=np.complex128)[1, 1]) == -1j


def test_hadamard():
    for n in (1, 2, 8):
        for dtype in (np.int8, np.float32, np.complex64):
            found = linalg.hadamard(n, dtype)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, scipy.linalg.hadamard(n))


@pytest.mark.parametrize("call, sentence", [
    (lambda: linalg.hadamard(3), "positive power of 2, got 3"),
    (lambda: linalg.helmert(0), "n must be a positive integer, got 0"),
    (lambda: linalg.hilbert(-1), "n must be a non-negative integer, got -1"),
    (lambda: linalg.pascal(3, "bad"), "Expected kind to be one of"),
    (lambda: linalg.dft(3, "bad"), "scale must be None, 'sqrtn' or 'n', got 'bad'"),
    (lambda: linalg.dft(3, dtype=np.float32), "dtype must be a complex one"),
    (lambda: linalg.hankel(1.0), r"c must be at least 1-dimensional, got the scalar f32\[\]"),
    (lambda: linalg.leslie(jnp.ones(1), jnp.ones(0)), r"at least 2, got f32\[1\]"),
    (lambda: linalg.leslie(jnp.ones(3), jnp.ones(3)), "Incorrect lengths for f and s"),
    (lambda: linalg.companion(jnp.ones((2, 1))), r"at least 2, got f32\[2,1\]"),
    (lambda: linalg.fiedler_companion(jnp.ones(0)), r"nonzero length, got f32\[0\]"),
    (lambda: linalg.convolution_matrix(jnp.ones(2), 0), "n must be a positive integer, got 0"),
    (lambda: linalg.convolution_matrix(jnp.ones(2), 2, "bad"), "mode must be one of"),
    (lambda: linalg.convolution_matrix(jnp.ones(0), 2), r"len\(a\) must be at least 1, got f32\[0\]"),
    (lambda: linalg.block_diag(jnp.ones((1, 1, 1))), r"at most 2 dimensions, got f32\[1,1,1\] as argument 0"),
], ids=lambda x: x if isinstance(x, str) else "call")
def test_bad_input(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def batches(f, *signature):
    """`f` of SciPy for each of a batch."""
    return np.vectorize(f, signature=signature[0])


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.complex128])
@pytest.mark.parametrize("c, r", [((4,), (3,)), ((2, 4), (2, 3)), ((2, 1, 4), (3, 5)), ((1,), (1,))], ids=str)
def test_toeplitz_and_its_kin(c, r, dtype, rng):
    c, r = (rng.integers(-5, 5, s).astype(dtype) * dtype(1 + 1j if dtype == np.complex128 else 1) for s in (c, r))
    np.testing.assert_array_equal(linalg.toeplitz(c, r), batches(scipy.linalg.toeplitz, "(m),(n)->(m,n)")(c, r))
    np.testing.assert_array_equal(linalg.toeplitz(c), batches(scipy.linalg.toeplitz, "(m)->(m,m)")(c))
    np.testing.assert_array_equal(linalg.hankel(c, r), batches(scipy.linalg.hankel, "(m),(n)->(m,n)")(c, r))
    np.testing.assert_array_equal(linalg.hankel(c), batches(scipy.linalg.hankel, "(m)->(m,m)")(c))
    np.testing.assert_array_equal(linalg.circulant(c), batches(scipy.linalg.circulant, "(m)->(m,m)")(c))
    assert linalg.toeplitz(c, r).dtype == linalg.hankel(c, r).dtype == linalg.circulant(c).dtype == dtype
    if dtype != np.complex128:
        np.testing.assert_array_equal(linalg.fiedler(c), np.abs(c[..., :, None] - c[..., None, :]))


def test_empty_toeplitz_and_hankel():
    assert linalg.toeplitz(jnp.ones(3), jnp.ones(0)).shape == linalg.hankel(jnp.ones(3), jnp.ones(0)).shape == (3, 0)
    assert linalg.toeplitz(2.0).shape == (1, 1) and linalg.circulant(jnp.ones(0)).shape == (0, 0)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_polynomials(n, rng):
    a = rng.normal(size=(2, n)) + 3
    for name in ("companion", "fiedler_companion"):
        found = getattr(linalg, name)(a)
        for i in range(2):
            np.testing.assert_allclose(found[i], getattr(scipy.linalg, name)(a[i]), rtol=1e-12)
    np.testing.assert_array_equal(linalg.leslie(a[0], a[1, 1:]), scipy.linalg.leslie(a[0], a[1, 1:]))
    assert linalg.fiedler_companion(np.ones((3, 1))).shape == (3, 0, 0)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution_matrix(mode, rng):
    for m, n in [(1, 1), (3, 2), (2, 5), (5, 5)]:
        a = rng.normal(size=(2, m))
        found = linalg.convolution_matrix(a, n, mode)
        for i in range(2):
            np.testing.assert_array_equal(found[i], scipy.linalg.convolution_matrix(a[i], n, mode))


def test_block_diag(rng):
    for blocks in [(), (1,), (3, 4.0, 5), (np.ones((3, 4)), 5, rng.normal(size=(5, 2)))]:
        np.testing.assert_array_equal(linalg.block_diag(*blocks), scipy.linalg.block_diag(*blocks))


def test_under_the_transforms(rng):
    check_products(linalg.toeplitz, rng.normal(size=3), rng.normal(size=2), order=1)
    check_products(linalg.fiedler_companion, rng.normal(size=4) + 3, order=1)
    check_products(linalg.block_diag, rng.normal(size=(2, 2)), rng.normal(size=2), order=1, products=("jit", "jvp", "vjp"))
