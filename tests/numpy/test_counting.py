"""Histograms, counts, covariances, windows and packed bits against NumPy."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from tests.numpy.test_sampled import check
from tests.products import check_products

RNG = np.random.default_rng(1)
A, P, X = RNG.normal(size=(4, 5)), RNG.normal(size=(60, 3)), RNG.integers(0, 9, 50)


def test_counts():
    weights = RNG.normal(size=50)
    found = [
        (jnp.bincount(X), np.bincount(X)), (jnp.bincount(X, weights), np.bincount(X, weights)),
        (jnp.bincount(X, minlength=20), np.bincount(X, minlength=20)), (jnp.bincount(np.zeros(0, int)), np.zeros(0)),
        (jnp.bincount(np.zeros(0, int), minlength=3), np.zeros(3)),
        (funcml.jit(lambda x: jnp.bincount(x, length=4))(X), np.bincount(X)[:4]),
        (jnp.bincount(np.array([-1, 1])), [1, 1]),
    ]  # fmt: skip
    for ours, want in found:
        np.testing.assert_allclose(ours, want, rtol=1e-12)


SAMPLES = [A, X, np.zeros(3), np.zeros(0), np.array([0.1, np.nan, 0.3])]


@pytest.mark.parametrize("density", [False, True])
def test_histogram(density):
    for a in SAMPLES:
        known = a[a == a]
        calls = [(np.array([-1, 0, 0.5, 2]), None), (10, (-1, 1.5)), (4, (1.0, 1.0))]
        for bins, limits in calls + [(3, None), (10, None)] * (known.size == a.size):
            counts, edges = jnp.histogram(a, bins, limits, density=density)
            with np.errstate(invalid="ignore"):
                want, want_edges = np.histogram(a, bins, limits, density=density)
            np.testing.assert_allclose(counts, want, rtol=1e-9, err_msg=str((a, bins)))
            np.testing.assert_allclose(edges, want_edges, rtol=1e-12, atol=1e-15)
    weighted = jnp.histogram(A, 4, weights=np.abs(A), density=density)[0]
    np.testing.assert_allclose(weighted, np.histogram(A, 4, weights=np.abs(A), density=density)[0])
    np.testing.assert_allclose(jnp.histogram_bin_edges(A, "auto"), np.histogram_bin_edges(A, "auto"))


def test_histograms_of_several_axes():
    for density in (False, True):
        for bins, limits in ((5, None), ([2, 3, np.array([-1, 0, 2.0])], [(-1, 1), None, None])):
            weights = np.abs(P[:, 0])
            ours = jnp.histogramdd(P, bins, limits, weights, density)
            want = np.histogramdd(P, bins, limits, density=density, weights=weights)
            for x, y in zip([ours[0], *ours[1]], [want[0], *want[1]], strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-14)
        for bins in (10, [3, 4], [0, 1, 2, 3], np.array([0.0, 1, 3]), [3, np.array([0, 1.0])]):
            ours = jnp.histogram2d(P[:, 0], P[:, 1], bins, density=density)
            for x, y in zip(ours, np.histogram2d(P[:, 0], P[:, 1], bins, density=density), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-14)
    traced = funcml.jit(lambda p: jnp.histogramdd(p, 4)[0])(P)
    np.testing.assert_array_equal(traced, np.histogramdd(P, 4)[0])


def test_weights_of_a_histogram_are_summed_with_derivatives():
    check_products(lambda w: jnp.histogram(A, np.array([-1.0, 0.0, 1.0]), weights=w)[0], np.abs(A), order=1)


def test_covariances():
    z = A + 1j * RNG.normal(size=A.shape)
    calls = []
    for m in (A, z, A[0], X):
        n = m.shape[-1]
        f, w = np.arange(n), np.arange(n) + 0.5
        calls += [
            lambda k, m=m: k.cov(m), lambda k, m=m: k.cov(m, bias=True), lambda k, m=m: k.cov(m, ddof=0),
            lambda k, m=m: k.corrcoef(m), lambda k, m=m: k.cov(m, m * 2 + 1), lambda k, m=m: k.corrcoef(m, m[::-1]),
            lambda k, m=m, f=f: k.cov(m, fweights=f), lambda k, m=m, w=w: k.cov(m, aweights=w),
            lambda k, m=m, f=f, w=w: k.cov(m, aweights=w, fweights=f),
            lambda k, m=m, f=f, w=w: k.cov(m, aweights=w, fweights=f, ddof=0),
        ]  # fmt: skip
    calls += [lambda k: k.cov(A, rowvar=False), lambda k: k.cov(A, A[:, 0], rowvar=False), lambda k: k.cov(np.zeros((0, 2)))]
    check(calls, 1e-11)
    assert np.isnan(jnp.cov(np.zeros((2, 0)))).all() and np.isnan(jnp.cov(3.0))
    assert jnp.cov(A, dtype=np.float32).dtype == np.float32
    check_products(lambda m: jnp.cov(m, aweights=np.arange(5) + 1.0), A, products=("jit", "jvp", "vjp", "vmap", "order2"))
    check_products(lambda m: jnp.corrcoef(m)[np.triu_indices(4, 1)], A, products=("jvp", "vjp"))


def test_windows():
    for count in (0, 1, 2, 5, 12):
        for name in ("bartlett", "blackman", "hamming", "hanning"):
            np.testing.assert_allclose(getattr(jnp, name)(count), getattr(np, name)(count), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(jnp.kaiser(count, 3.5), np.kaiser(count, 3.5), rtol=1e-6)
        np.testing.assert_allclose(jnp.kaiser(count, jnp.float32(3.5)), np.kaiser(count, 3.5), rtol=1e-5)
    check_products(lambda beta: jnp.kaiser(6, beta), np.float64(1.5), products=("jvp", "vjp"), rtol=1e-5)
    with pytest.raises(ValueError, match="hanning: the number of samples must not be negative"):
        jnp.hanning(-1)


def test_packed_bits():
    bits, codes = RNG.integers(0, 2, (11, 9)), RNG.integers(0, 256, (3, 2)).astype(np.uint8)
    calls = []
    for axis in (None, 0, 1):
        for order in ("big", "little"):
            calls.append(lambda m, axis=axis, order=order: m.packbits(bits, axis, order))
            for count in (None, 0, 5, 40, -3):
                calls.append(lambda m, axis=axis, order=order, count=count: m.unpackbits(codes, axis, count, order))
    check([*calls, lambda m: m.packbits(np.zeros((0, 3), int), 1)])


def test_divisors():
    for dtype in (np.int8, np.int32, np.int64, np.uint8, np.uint64):
        limits = np.iinfo(dtype)
        a, b = RNG.integers(limits.min, limits.max, (2, 50), dtype=dtype)
        a[:3], b[2:5], a[6] = 0, 0, 1
        check([lambda m, a=a, b=b: m.gcd(a, b), lambda m, a=a, b=b: m.lcm(a // 16, b // 16)])
    check([lambda m: m.gcd(np.arange(6)[:, None], np.arange(7)), lambda m: m.lcm(4, np.int32(6))])
    np.testing.assert_array_equal(funcml.vmap(jnp.gcd)(np.array([4, 9]), np.array([6, 6])), [2, 3])


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.bincount(np.ones(2)), TypeError, r"bincount expects integers, got f64\[2\]"),
    (lambda: jnp.bincount(np.ones((2, 2), int)), ValueError, r"expects a vector, got i64\[2,2\]"),
    (lambda: jnp.bincount(X, np.ones(2)), ValueError, r"x i64\[50\] and weights f64\[2\] must have one shape"),
    (lambda: funcml.jit(jnp.bincount)(X), TypeError, r"the array \(without `length`\)"),
    (lambda: jnp.histogram(A, 0), ValueError, "at least one bin, got bins=0"),
    (lambda: jnp.histogram(A, 3, (1, 2, 3)), ValueError, "range must be a pair"),
    (lambda: jnp.histogram(A, weights=A[0]), ValueError, r"a f64\[4,5\] and weights f64\[5\]"),
    (lambda: jnp.histogramdd(P, [2, 3]), ValueError, "bins for each of the 3 axes expected, got 2"),
    (lambda: jnp.histogramdd(P, 2, [None]), ValueError, "range must be a list of 3 pairs"),
    (lambda: jnp.cov(np.ones((2, 2, 2))), ValueError, r"more than 2 dimensions.*f64\[2,2,2\]"),
    (lambda: jnp.cov(A, fweights=np.ones(5)), TypeError, "fweights must be integers, got float64"),
    (lambda: jnp.cov(A, aweights=np.ones(4)), RuntimeError, "incompatible numbers of samples and weights, 5 and 4"),
    (lambda: jnp.cov(A, dtype=int), ValueError, "dtype must be a subclass of float or complex"),
    (lambda: jnp.packbits(A), TypeError, r"packbits expects integers or bool, got f64\[4,5\]"),
    (lambda: jnp.unpackbits(X), TypeError, r"unpackbits expects uint8, got i64\[50\]"),
    (lambda: jnp.gcd(1.5, 2), ValueError, r"gcd expects integers, got f32\[\]"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
