"""The gamma distribution and its functions: JAX's samples, their distribution, derivatives, extremes, and what is refused."""

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats

import funcml as fm
from funcml import random
from tests.random.test_distributions import same

KEY, JAX_KEY = random.key(7), jax.random.key(7)
SHAPE = (501,)
A = np.float32([1e-3, 0.3, 1, 2.5, 300])

FAMILIES = {
    "gamma": ((2.5,), scipy.stats.gamma(2.5)),
    "loggamma": ((0.3,), scipy.stats.loggamma(0.3)),
    "beta": ((0.5, 2.0), scipy.stats.beta(0.5, 2)),
    "chisquare": ((3.0,), scipy.stats.chi2(3)),
    "f": ((3.0, 5.0), scipy.stats.f(3, 5)),
    "t": ((4.0,), scipy.stats.t(4)),
    "generalized_normal": ((1.5,), scipy.stats.gennorm(1.5)),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_are_those_of_jax_and_have_the_distribution(name):
    parameters, distribution = FAMILIES[name]
    found = np.asarray(getattr(random, name)(KEY, *parameters, shape=(5000,)))
    want = np.asarray(getattr(jax.random, name)(JAX_KEY, *parameters, shape=(5000,)))
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found, want, 2e-5)  # the last multiplications may be contracted otherwise
    assert scipy.stats.kstest(found.astype(float), distribution.cdf).pvalue > 0.01


def test_gamma_over_parameters_and_dtypes():
    for name in ("gamma", "loggamma"):
        for dtype in ("float32", "float16"):
            a = A[:4].astype(dtype)
            found, want = (np.asarray(getattr(r, name)(k, a, (100, 4), dtype)) for r, k in ((random, KEY), (jax.random, JAX_KEY)))
            assert found.dtype == want.dtype
            np.testing.assert_allclose(found.astype(float), want.astype(float), 5e-5 if dtype == "float32" else 2e-3)
    np.testing.assert_allclose(np.exp(random.loggamma(KEY, A)), random.gamma(KEY, A), 1e-4)


@pytest.mark.parametrize("impl", ["rbg", "philox4x32"])
def test_other_implementations(impl):
    key, theirs = random.key(3, impl=impl), jax.random.key(3, impl=impl)
    np.testing.assert_allclose(random.gamma(key, A, (20, 5)), jax.random.gamma(theirs, A, (20, 5)), 1e-6)


def test_vectors():
    alpha = np.float32([[0.5, 0.6, 0.7], [1e-3, 1e-2, 5]])
    for shape in (None, (100, 2)):
        found, want = (np.asarray(r.dirichlet(k, alpha, shape)) for r, k in ((random, KEY), (jax.random, JAX_KEY)))
        np.testing.assert_allclose(found, want, 1e-4, 1e-7)
        np.testing.assert_allclose(np.asarray(found).sum(-1), 1, 1e-6)
    for p in (1.0, 2):
        found = np.asarray(random.ball(KEY, 3, p, SHAPE))
        np.testing.assert_allclose(found, jax.random.ball(JAX_KEY, 3, p, SHAPE), 1e-5)
        radius = (np.abs(found) ** p).sum(-1) ** (1 / p)
        assert scipy.stats.kstest(radius**3, scipy.stats.uniform.cdf).pvalue > 0.01
    assert random.ball(KEY, 0).shape == (0,)


def test_extremes():
    tiny = np.asarray(random.t(KEY, np.float32(0.05), (20000,)), float)
    finite = np.isfinite(tiny)
    quantiles = scipy.stats.t(0.05).ppf([0.2, 0.35, 0.65, 0.8])
    np.testing.assert_allclose([(tiny < q).mean() for q in quantiles], [0.2, 0.35, 0.65, 0.8], atol=0.015)
    assert not np.isnan(tiny).any() and np.abs(tiny[finite]).max() > 1e30
    ratio = np.asarray(random.f(KEY, np.float32(0.02), np.float32(0.03), SHAPE))
    assert not np.isnan(ratio).any()
    assert np.isnan(random.gamma(KEY, np.nan)) and random.gamma(KEY, 0.0) == 0 and random.gamma(KEY, np.inf) == np.inf
    assert random.loggamma(KEY, 0.0) == -np.inf
    big = np.asarray(random.gamma(KEY, np.float32(1e10), (100,)), float)
    assert abs(big.mean() / 1e10 - 1) < 1e-5


def test_many_keys():
    keys = random.split(KEY, 3)
    mapped = fm.vmap(lambda k: random.gamma(k, A[:2]))(keys)
    for found, key in zip(mapped, keys, strict=True):
        np.testing.assert_allclose(found, random.gamma(key, A[:2]), 1e-6)
    same(random.gamma(random.PRNGKey(7), A), random.gamma(KEY, A))


# ---- derivatives -----------------------------------------------------------------------------------------------


def test_derivative_of_gamma_holds_the_quantile():
    a = np.array([0.05, 0.3, 1.0, 2.5, 40.0])
    x, slope = fm.jvp(lambda a: random.gamma(KEY, a, dtype="float64"), (a,), (np.ones(5),))
    step = 1e-6 * a
    quantile = scipy.special.gammainc(a, x)
    want = (scipy.special.gammaincinv(a + step, quantile) - scipy.special.gammaincinv(a - step, quantile)) / (2 * step)
    np.testing.assert_allclose(slope, want, 1e-5)
    _, log_slope = fm.jvp(lambda a: random.loggamma(KEY, a, dtype="float64"), (a,), (np.ones(5),))
    np.testing.assert_allclose(log_slope, slope / x, 1e-8)
    np.testing.assert_allclose(fm.grad(lambda a: random.gamma(KEY, a, dtype="float64").sum())(a), slope, 1e-12)


def test_derivative_of_a_logarithm_whose_exponential_underflows():
    a = np.float64(1e-4)
    log_x = np.asarray(random.loggamma(KEY, a, SHAPE, "float64"))
    assert (log_x < -800).sum() > 100
    # log x = (log u + log gamma(a + 1)) / a for the quantile u
    u = a * log_x - scipy.special.gammaln(a + 1)
    want = -(u + scipy.special.gammaln(a + 1)) / a**2 + scipy.special.digamma(a + 1) / a
    _, slope = fm.jvp(lambda a: random.loggamma(KEY, a, SHAPE, "float64"), (a,), (1.0,))
    np.testing.assert_allclose(np.asarray(slope)[log_x < -800], want[log_x < -800], 1e-10)


@pytest.mark.exhaustive
def test_derivatives_of_functions_of_gamma():
    samplers = {
        "beta": (lambda a: random.beta(KEY, a, 2 * a, (4,), "float64"), 0.7),
        "t": (lambda a: random.t(KEY, a, (4,), "float64"), 3.0),
        "f": (lambda a: random.f(KEY, a, 3 * a, (4,), "float64"), 2.0),
        "dirichlet": (lambda a: random.dirichlet(KEY, a * np.array([0.5, 1.0, 2.0]), dtype="float64"), 1.3),
        "generalized_normal": (lambda p: random.generalized_normal(KEY, p, (4,), "float64"), 1.7),
        "ball": (lambda p: random.ball(KEY, 3, p, dtype="float64"), 1.7),
    }
    for name, (f, a) in samplers.items():
        a = np.float64(a)
        forward, reverse = fm.jacfwd(f)(a), fm.jacrev(f)(a)
        np.testing.assert_allclose(forward, reverse, 1e-8, err_msg=name)
        assert np.isfinite(forward).all() and np.abs(forward).max() > 1e-3, name
    # the mean of the samples moves as the mean of the distribution
    many = fm.jvp(lambda a: random.beta(KEY, a, 2.0, (4000,), "float64").mean(), (np.float64(1.0),), (1.0,))[1]
    np.testing.assert_allclose(many, 2 / 9, 0.05)


# ---- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, error, words", [
    (lambda: random.gamma(KEY, 1.0, (2,), "int32"), ValueError, "gamma: expected a floating dtype, got i32"),
    (lambda: random.gamma(KEY, np.ones(3), (2,)), ValueError, r"gamma: parameters of shape \(3,\) do not broadcast"),
    (lambda: random.beta(KEY, 1j, 1.0), TypeError, r"beta: expected real numbers as parameter, got c64\[\]"),
    (lambda: random.dirichlet(KEY, 1.0), ValueError, r"dirichlet: expected alpha \[.., n\] with an axis, got f32\[\]"),
    (lambda: random.dirichlet(KEY, np.ones((3, 2)), (2,)), ValueError, r"dirichlet: parameters of shape \(3,\) do not broadcast"),
    (lambda: random.ball(KEY, 3, np.ones(2)), ValueError, r"ball: expected one number p, got f64\[2\]"),
    (lambda: random.ball(KEY, 2.5), TypeError, "ball expects an int as d, got 2.5"),
])  # fmt: skip
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
