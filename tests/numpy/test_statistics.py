"""Quantiles by every method, with and without nan and weights, against NumPy."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml.numpy.statistics import _SHARES
from tests.products import check_products

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 5, 3))
N = A.copy()
N[0, 1, 2] = N[:, 2, 1] = np.nan
W = RNG.uniform(size=A.shape)
Q = np.array([0, 0.1, 0.2, 0.25, 0.3, 0.5, 0.75, 0.8, 0.9, 1])


def same(found, want):
    for i, (x, y) in enumerate(zip(found, want, strict=True)):
        assert np.shape(x) == np.shape(y), i
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12, err_msg=str(i))


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:invalid value")
@pytest.mark.parametrize("method", [m for m in _SHARES if m != "nearest"])
def test_methods(method):
    def calls(m):
        return [
            m.quantile(A, Q, method=method), m.quantile(N, Q, axis=1, method=method, keepdims=True),
            m.nanquantile(N, Q, axis=0, method=method), m.nanquantile(N, 0.3, axis=(0, 2), method=method, keepdims=True),
            m.percentile(A, 30, axis=1, method=method), m.quantile(np.arange(8), Q, method=method),
            m.quantile(np.arange(5.0), Q, method=method), m.quantile(np.array([1.0]), Q, method=method),
            m.quantile(np.array([1, 2, np.inf, np.inf]), Q[:5], method=method),
        ]  # fmt: skip

    same(funcml.jit(lambda: calls(jnp))(), calls(np))


def test_nearest_takes_the_lower_of_two():
    np.testing.assert_array_equal(jnp.quantile(np.arange(8.0), np.array([0.5, 0.6]), method="nearest"), [3, 4])


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:invalid value")
def test_weights():
    def calls(m):
        found = []
        for x in (A, N):
            found += [
                m.quantile(x, Q, weights=W, method="inverted_cdf"),
                m.quantile(x, Q, axis=1, weights=W, method="inverted_cdf"),
                m.quantile(x, 0.3, axis=1, weights=W[0, :, 0], method="inverted_cdf", keepdims=True),
                m.nanpercentile(x, Q * 100, weights=W, method="inverted_cdf"),
            ]
        return [*found, m.quantile(np.arange(4.0), [0, 0.5, 1], weights=np.array([0, 1, 0, 1.0]), method="inverted_cdf")]

    same(funcml.jit(lambda: calls(jnp))(), calls(np))
    assert np.isnan(jnp.quantile(np.arange(3.0), 0.5, weights=np.array([1, -1.0, 1]), method="inverted_cdf"))
    ours = jnp.quantile(A, 0.4, axis=(2, 0), weights=W[:, 0, :].T, method="inverted_cdf")
    want = [np.quantile(A[:, i].ravel(), 0.4, weights=W[:, 0].ravel(), method="inverted_cdf") for i in range(5)]
    np.testing.assert_array_equal(ours, want)


def test_derivatives():
    check_products(lambda a, q: jnp.quantile(a, q, axis=0), A[:, :, 0], np.array([0.3, 0.8]))
    check_products(lambda a: jnp.quantile(a, 0.4, axis=0, method="hazen"), A[:, :, 0], products=("jvp", "vjp"))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.quantile(A, 1.5), ValueError, r"q must lie in \[0, 1\], got 1.5"),
    (lambda: jnp.percentile(A, [50, 101]), ValueError, r"q must lie in \[0, 100\]"),
    (lambda: jnp.quantile(A, 0.5, method="guess"), ValueError, "method must be one of 'linear'"),
    (lambda: jnp.quantile(A, 0.5, weights=W), NotImplementedError, "weights go with method='inverted_cdf' only"),
    (lambda: jnp.quantile(A, 0.5, weights=W[0], method="inverted_cdf"), ValueError, r"weights f64\[5,3\] must have the shape"),
    (lambda: jnp.quantile(A * 1j, 0.5), ValueError, r"expects real numbers, got c128\[4,5,3\]"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
