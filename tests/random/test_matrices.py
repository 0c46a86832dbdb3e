"""Normal vectors and orthogonal matrices: those of JAX, and what they promise."""

import jax
import numpy as np
import pytest

from funcml import random

KEY, JAX_KEY = random.key(7), jax.random.key(7)
A = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
COV, MEAN = A @ A.T, np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method):
    for mean, cov, shape in ((MEAN, COV, (5, 3)), (MEAN, np.stack([COV, 2 * COV]), None), (np.stack([MEAN] * 2), COV, (3, 2))):
        found = random.multivariate_normal(KEY, mean, cov, shape, method=method)
        want = jax.random.multivariate_normal(JAX_KEY, mean, cov, shape, method=method)
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, 2e-4, 2e-5)
    x = np.asarray(random.multivariate_normal(KEY, MEAN.astype(float), COV.astype(float), (20000,), method=method))
    assert x.dtype == np.float64
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.3)
    np.testing.assert_allclose(x.mean(0), MEAN, atol=0.1)


def test_a_singular_covariance():
    vector = np.float32([[1], [2]])
    for method in ("eigh", "svd"):
        x = np.asarray(random.multivariate_normal(KEY, np.zeros(2, np.float32), vector @ vector.T, (10,), method=method))
        np.testing.assert_allclose(x[:, 1], 2 * x[:, 0], 1e-3, 5e-3)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
def test_orthogonal(dtype):
    for n, m in ((4, None), (3, 5), (5, 3), (0, 3)):
        found = random.orthogonal(KEY, n, (2,), dtype, m)
        m = n if m is None else m
        assert found.shape == (2, n, m) and found.dtype == random.normal(KEY, (), dtype).dtype
        q = np.asarray(found).astype(np.complex64)
        product = np.einsum("bij,bkj->bik", q, q.conj()) if n <= m else np.einsum("bji,bjk->bik", q.conj(), q)
        np.testing.assert_allclose(product, np.stack([np.eye(min(n, m))] * 2), atol=1e-5 if dtype != "bfloat16" else 0.05)
        if dtype != "bfloat16":
            np.testing.assert_allclose(found, jax.random.orthogonal(JAX_KEY, n, (2,), dtype, m), 1e-5, 1e-6)


@pytest.mark.parametrize("call, words", [
    (lambda: random.multivariate_normal(KEY, MEAN, COV, method="qr"), "expected the method 'cholesky', 'eigh', 'svd', got 'qr'"),
    (lambda: random.multivariate_normal(KEY, MEAN, COV[:3]), r"expected a mean \[.., n\] and cov .*, got f32\[4\] and f32\[3"),
    (lambda: random.multivariate_normal(KEY, 1.0, COV), r"got f32\[\] and f32\[4,4\]"),
    (lambda: random.multivariate_normal(KEY, np.zeros((3, 4), "f"), COV, (2,)), r"do not broadcast to the shape \(2,\)"),
    (lambda: random.multivariate_normal(KEY, MEAN, COV, dtype="int32"), "expected a floating dtype, got i32"),
    (lambda: random.orthogonal(KEY, -1), "lengths that are not negative, got n=-1, m=-1"),
    (lambda: random.orthogonal(KEY, 2, dtype="int32"), "dtype argument to orthogonal must be a floating .*, got i32"),
])  # fmt: skip
def test_bad_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()
