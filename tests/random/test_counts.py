"""Numbers of events: JAX's samples, their distribution for small and large means, corner cases, and what is refused."""

import jax
import numpy as np
import pytest
import scipy.stats

import funcml as fm
from funcml import random
from tests.random.test_distributions import same

KEY, JAX_KEY = random.key(7), jax.random.key(7)
NAN, INF = np.nan, np.inf


def test_poisson_is_that_of_jax():
    lam = np.float32([0, 0.3, 5, 9.99, 10, 50, 1e4, 9e4, NAN, -1])
    found, want = (np.asarray(x) for x in (random.poisson(KEY, lam, (50, 10)), jax.random.poisson(JAX_KEY, lam, (50, 10))))
    assert found.dtype == want.dtype and np.mean(found != want) <= 0.01  # one rounding decides between two candidates
    same(random.poisson(KEY, lam[:6], dtype="int16"), jax.random.poisson(JAX_KEY, lam[:6], dtype="int16"))
    same(random.poisson(random.PRNGKey(7), 3), jax.random.poisson(JAX_KEY, 3))


def test_binomial_is_that_of_jax():
    pairs = [(10, 0.3), (10, 0.9), (100, 0.5), (1000, 0.37), (1e5, 0.7), (NAN, 0.3), (INF, 0.3), (INF, 0.7), (5, -0.1),
             (5, 1.1), (5, 0), (5, 1), (-3, 0.5), (5, NAN), (0, 0.5), (7.9, 1)]
    n, p = np.float32(pairs).T
    found, want = (np.asarray(r.binomial(k, n, p, (50, len(n)))) for r, k in ((random, KEY), (jax.random, JAX_KEY)))
    np.testing.assert_array_equal(found, want)
    assert found.dtype == want.dtype
    assert found[0].tolist()[9:12] == pytest.approx([NAN, 0, 5], nan_ok=True)
    half = random.binomial(KEY, np.float16(100), np.float16(0.25), (20,), "float16")
    same(half, jax.random.binomial(JAX_KEY, np.float16(100), np.float16(0.25), (20,), "float16"))


def fits(x, distribution, edges):
    """The number of samples up to each edge is that of the distribution, to four standard deviations."""
    cdf = distribution.cdf(edges)
    found = np.array([(x <= e).mean() for e in edges])
    np.testing.assert_array_less(np.abs(found - cdf), 4 * np.sqrt(cdf * (1 - cdf) / x.size) + 1e-12)


LEVELS = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)


def test_distributions_of_small_and_of_large_means():
    lam = np.array([0.5, 8, 40, 3e4, 3e6, 3e8])
    samples = np.asarray(random.poisson(KEY, lam.astype(np.float32), (20000, 6))).T
    for x, mean in zip(samples, lam, strict=True):
        fits(x, scipy.stats.poisson(mean), scipy.stats.poisson(mean).ppf(LEVELS))
    counts = np.array([(20, 0.2), (60, 0.8), (1000, 0.4), (1e7, 0.3), (1e10, 0.5)])
    n, p = counts.astype(np.float32).T
    samples = np.asarray(random.binomial(KEY, n, p, (20000, 5)), float).T
    for x, n_i, p_i in zip(samples, n.astype(float), p.astype(float), strict=True):
        # far out the samples of float32 have gaps, and means are those of the rounded p
        width = np.spacing(np.float32(n_i * p_i))
        edges = np.round(scipy.stats.binom(n_i, p_i).ppf(LEVELS) / width) * width + width / 2
        fits(x, scipy.stats.binom(n_i, p_i), edges)


def test_multinomial():
    p = np.float32([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0, 0, 1]])
    n = np.float32([10, 200, 7])
    found = random.multinomial(KEY, n, p)
    same(found, jax.random.multinomial(JAX_KEY, n, p))
    assert np.asarray(found).sum(-1).tolist() == n.tolist() and found[2].tolist() == [0, 0, 7]
    shape = (4, 3) if jax.__version_info__ < (0, 12) else (4,)  # JAX 0.12 leaves the axis of the categories out of it
    same(random.multinomial(KEY, n[0], p[0], shape=(4, 3), dtype="int32"),
         jax.random.multinomial(JAX_KEY, n[0], p[0], shape=shape, dtype="int32"))


def test_many_keys_and_jit():
    keys = random.split(KEY, 3)

    def f(key):
        return random.poisson(key, np.float32([3, 30])), random.binomial(key, np.float32([9, 90]), 0.4)

    mapped = fm.vmap(f)(keys)
    for i, key in enumerate(keys):
        for found, want in zip(mapped, fm.jit(f)(key), strict=True):
            np.testing.assert_array_equal(found[i], want)


def test_other_implementations_than_threefry():
    x = np.asarray(random.poisson(random.key(0, impl="rbg"), 4.0, (5000,)))
    fits(x, scipy.stats.poisson(4), np.array([1, 2, 3, 4, 6, 8]))


def test_corner_cases():
    assert random.poisson(KEY, INF).item() == 2**31 - 1 and random.poisson(KEY, np.ones(0)).shape == (0,)
    assert random.binomial(KEY, 3, 0.0).item() == 0 and np.isnan(random.binomial(KEY, 3, 1.5))


@pytest.mark.parametrize("call, error, words", [
    (lambda: random.poisson(KEY, 1.0, dtype="float32"), ValueError, "poisson: expected an integer dtype, got f32"),
    (lambda: random.poisson(KEY, 1j), TypeError, r"poisson: expected real numbers as lam, got c64\[\]"),
    (lambda: random.poisson(KEY, np.ones(3), (2,)), ValueError, r"poisson: parameters of shape \(3,\) do not broadcast"),
    (lambda: random.binomial(KEY, 1, 1j), TypeError, r"binomial: expected real numbers as p, got c64\[\]"),
    (lambda: random.binomial(KEY, 1, 0.5, dtype="int32"), ValueError, "binomial: expected a floating dtype, got i32"),
    (lambda: random.multinomial(KEY, 1, 0.5), ValueError, r"multinomial: expected real probabilities p \[.., k\], got f32\[\]"),
    (lambda: random.multinomial(KEY, 1, np.ones(3), shape=(2,)), ValueError, r"multinomial: parameters of shape \(3,\)"),
])  # fmt: skip
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
