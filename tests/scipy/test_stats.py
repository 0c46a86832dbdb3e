"""Distributions against SciPy over their whole line; tails, gradients, parameters that are no good; statistics of samples."""

import inspect

import mpmath
import numpy as np
import pytest
import scipy.stats

import funcml as fm
from funcml import random
from funcml.core import config
from funcml.scipy import stats

inf, nan = np.inf, np.nan
X = np.array([-1e3, -30, -3.3, -1, -0.4, -0.0, 0, 1e-10, 0.25, 0.5, 0.9, 1, 1.7, 2, 5.5, 6.28, 30, 500, inf, -inf, nan])
Q = np.array([0, 1e-200, 1e-10, 0.1, 0.4, 0.5, 0.73, 1 - 1e-10, 1, -0.1, 1.1, nan])
K = np.array([-2, -1, 0, 1, 2, 3, 7, 10, 11, 0.5, 100, 940, nan])

# distribution -> shape parameters; where they have a location, it is 0.5 (1 for whole numbers), and the scale 2
DISTRIBUTIONS = {
    "beta": (0.5, 3.0), "betabinom": (10.0, 2.0, 3.0), "bernoulli": (0.3,), "binom": (10.0, 0.3), "cauchy": (), "chi2": (7.0,),
    "expon": (), "gamma": (2.5,), "gennorm": (1.5,), "geom": (0.3,), "gumbel_l": (), "gumbel_r": (), "laplace": (),
    "logistic": (), "nbinom": (2.5, 0.2), "norm": (), "pareto": (3.0,), "poisson": (3.0,), "t": (3.0,),
    "truncnorm": (-1.0, 2.0), "uniform": (), "vonmises": (4.0,), "wrapcauchy": (0.9,),
}  # fmt: skip


def kinds_of(name):
    return [kind for kind in getattr(stats, name).__all__ if kind != "entropy"]


def arguments(name, kind, dtype):
    names = list(inspect.signature(getattr(getattr(stats, name), kind)).parameters)
    first = Q if kind in ("ppf", "isf") else K if names[0] == "k" else X
    where = [0.5, 2.0] if "scale" in names else [1.0] if "loc" in names else []
    return [np.asarray(v, dtype) for v in (first, *DISTRIBUTIONS[name], *where)]


def everything(name, given):
    return {kind: getattr(getattr(stats, name), kind)(*xs) for kind, xs in given.items()}


def check_against_scipy(name, dtype, rtol):
    given = {kind: arguments(name, kind, dtype) for kind in kinds_of(name)}
    for kind, y in fm.jit(lambda given: everything(name, given))(given).items():
        with np.errstate(all="ignore"):
            want = getattr(getattr(scipy.stats, name), kind)(*[v.astype(float) for v in given[kind]])
        assert y.dtype == dtype
        y, x = np.asarray(y).astype(float), given[kind][0]
        # where SciPy underflows to log 0, and where it makes a nan of an infinite x
        known = ~((want == -inf) & np.isfinite(x) | np.isnan(want) & np.isinf(x))
        np.testing.assert_allclose(y[known], want[known], rtol=rtol, atol=1e-30, err_msg=f"{name}.{kind}")


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_scipys(name):
    check_against_scipy(name, np.float64, 1e-11)


@pytest.mark.parametrize("name", ["norm", "gamma", "binom"])
def test_distributions_in_float32(name):
    check_against_scipy(name, np.float32, 3e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_all_distributions_in_float32(name):
    check_against_scipy(name, np.float32, 1e-4)


def test_names_and_defaults_of_arguments():
    np.testing.assert_allclose(stats.norm.logpdf(1.0, scale=2.0), scipy.stats.norm.logpdf(1.0, scale=2.0), rtol=1e-6)
    np.testing.assert_allclose(stats.norm.cdf(x=1, loc=np.zeros(3)), scipy.stats.norm.cdf([1, 1, 1]), rtol=1e-6)
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        stats.gamma.pdf(1.0)
    with pytest.raises(TypeError, match="norm.pdf expects real numbers"):
        stats.norm.pdf(np.complex64(1))


def test_logarithms_of_tails_do_not_underflow():
    np.testing.assert_allclose(stats.norm.logsf(np.float64(1e4)), -5e7 - np.log(1e4) - 0.5 * np.log(2 * np.pi), rtol=1e-13)
    np.testing.assert_allclose(stats.gumbel_r.logsf(np.float64(1e4)), -1e4)
    np.testing.assert_allclose(stats.gennorm.logcdf(np.float64(-500), np.float64(1)), -500 - np.log(2), rtol=1e-13)
    with mpmath.workdps(30):
        want = float(mpmath.log(mpmath.gammainc(2, 1e4, regularized=True)))
        between = float(mpmath.log(mpmath.erfc(30 / mpmath.sqrt(2)) / 2 - mpmath.erfc(40 / mpmath.sqrt(2)) / 2))
        density = float(-mpmath.mpf(35) ** 2 / 2 - mpmath.log(2 * mpmath.pi) / 2) - between
    np.testing.assert_allclose(stats.gamma.logsf(np.float64(1e4), 2.0), want, rtol=1e-13)
    np.testing.assert_allclose(stats.truncnorm.logpdf(np.float64(35), 30.0, 40.0), density, rtol=1e-13)


def test_large_counts_keep_their_digits():
    k, mean = np.array([1e6 + 1000.0]), np.array([1e6])
    with mpmath.workdps(40):
        a, x = mpmath.mpf(k[0]), mpmath.mpf(mean[0])
        want = float(a * mpmath.log(x) - x - mpmath.loggamma(a + 1))
    np.testing.assert_allclose(stats.poisson.logpmf(k, mean), want, rtol=1e-13)
    np.testing.assert_allclose(stats.poisson.logpmf(k.astype("float32"), mean.astype("float32")), want, rtol=1e-6)


def test_derivatives_outside_of_the_support_are_zero():
    for f, x in ((stats.gamma.logpdf, -1.0), (stats.beta.logpdf, 2.0), (stats.pareto.cdf, 0.5), (stats.expon.logsf, -1.0)):
        shapes = {stats.gamma.logpdf: (2.0,), stats.beta.logpdf: (2.0, 3.0), stats.pareto.cdf: (2.0,)}.get(f, ())
        by_all = fm.grad(f, tuple(range(len(shapes) + 3)))(x, *shapes, 0.0, 1.0)
        assert all(np.isfinite(g) for g in by_all)
        assert by_all[0] == 0
    assert fm.grad(stats.binom.logpmf, 2)(0.0, 10.0, 0.0) == -10


@pytest.mark.parametrize("name", ["norm", "gamma", "t", "poisson"])
def test_derivatives_by_every_parameter(name):
    density = getattr(stats, name).logpmf if name == "poisson" else getattr(stats, name).logpdf
    args = [np.float64(v) for v in (3.0, *DISTRIBUTIONS[name], *(() if name == "poisson" else (0.5, 2.0)))]
    first = 1 if name == "poisson" else 0
    exact = fm.grad(density, tuple(range(first, len(args))))(*args)
    for i, g in enumerate(exact, first):
        ahead, behind = ([v + s * 1e-6 * (j == i) for j, v in enumerate(args)] for s in (1, -1))
        np.testing.assert_allclose(g, (density(*ahead) - density(*behind)) / 2e-6, rtol=1e-6, atol=1e-8)


def test_entropy_of_poisson():
    mu = np.array([0.01, 1, 3, 20, 90, 100.5])
    np.testing.assert_allclose(stats.poisson.entropy(mu), scipy.stats.poisson.entropy(mu), rtol=1e-9)
    np.testing.assert_array_equal(stats.poisson.entropy(np.array([0.0, -1])), [0, nan])


def test_multivariate_distributions(rng):
    x, alpha = rng.dirichlet([1, 2, 3], 4).T, np.array([1.5, 2, 0.7])
    want = scipy.stats.dirichlet.logpdf(x, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), want, rtol=1e-12)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:-1], alpha), np.exp(want), rtol=1e-12)
    assert stats.dirichlet.logpdf(np.array([0.5, 0.6, 0.1]), alpha) == -inf
    counts = np.array([[1, 2, 3], [0, 6, 0], [1, 1, 1]])
    p = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(stats.multinomial.logpmf(counts, 6, p), scipy.stats.multinomial.logpmf(counts, 6, p), rtol=1e-12)
    with config.numpy_dtype_promotion("strict"):
        got = stats.multinomial.logpmf(counts.astype("int32"), np.int32(6), p.astype("float32"))
    np.testing.assert_allclose(got, scipy.stats.multinomial.logpmf(counts, 6, p), rtol=1e-5)
    root = rng.normal(size=(2, 3, 3))
    cov, mean, y = root @ root.transpose(0, 2, 1) + np.eye(3), rng.normal(size=3), rng.normal(size=(2, 3))
    want = [scipy.stats.multivariate_normal.logpdf(v, mean, c) for v, c in zip(y, cov, strict=True)]
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(y, mean, cov), want, rtol=1e-12)
    one = stats.multivariate_normal.pdf(np.array([0.3, 1]), np.float64(0.5), np.float64(2))
    np.testing.assert_allclose(one, scipy.stats.multivariate_normal.pdf([0.3, 1], 0.5, 2), rtol=1e-12)


def test_errors_of_multivariate_distributions():
    with pytest.raises(ValueError, match=r"dirichlet.logpdf expects a vector as alpha, got f32\[2,2\]"):
        stats.dirichlet.logpdf(np.ones(2, "float32"), np.ones((2, 2), "float32"))
    with pytest.raises(ValueError, match=r"or one less, got f32\[4\]"):
        stats.dirichlet.logpdf(np.ones(4, "float32"), np.ones(2, "float32"))
    with pytest.raises(ValueError, match=r"expects x\[..., 3\] and cov\[..., 3, 3\]"):
        stats.multivariate_normal.logpdf(np.ones(3), np.ones(3), np.ones((2, 2)))
    with pytest.raises(NotImplementedError, match="allow_singular must be None"):
        stats.multivariate_normal.logpdf(np.ones(3), np.ones(3), np.eye(3), True)


SAMPLE = np.array([[3, 1, 2, 3, 1, 1], [5, 5, 5, 2, 2, 0]])


def test_mode():
    for axis in (0, 1, None):
        found, want = stats.mode(SAMPLE, axis=axis), scipy.stats.mode(SAMPLE, axis=axis)
        np.testing.assert_array_equal(found.mode, want.mode)
        np.testing.assert_array_equal(found.count, want.count)
    assert stats.mode(SAMPLE, axis=1, keepdims=True).mode.shape == (2, 1)
    empty = stats.mode(np.zeros((0, 2), "float32"))
    assert np.isnan(empty.mode).all() and empty.count.shape == (2,)


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_rankdata(method):
    for axis in (None, 0, 1):
        want = scipy.stats.rankdata(SAMPLE, method, axis=axis)
        np.testing.assert_array_equal(stats.rankdata(SAMPLE, method, axis=axis), want)
    assert np.isnan(stats.rankdata(np.array([1.0, nan, 2]), method)).all()


def test_standard_error_of_the_mean():
    x = np.array([[1.0, 2, 4, nan], [3, 5, 9, 1]])
    np.testing.assert_allclose(stats.sem(x, axis=1), scipy.stats.sem(x, axis=1), rtol=1e-12)
    want = scipy.stats.sem(x, None, nan_policy="omit")
    np.testing.assert_allclose(stats.sem(x, axis=None, nan_policy="omit"), want, rtol=1e-12)
    assert stats.sem(x, keepdims=True).shape == (1, 4)


def test_errors_of_statistics():
    with pytest.raises(ValueError, match="nan_policy must be one of 'propagate', 'omit', 'raise', got 'skip'"):
        stats.mode(SAMPLE, nan_policy="skip")
    with pytest.raises(NotImplementedError, match="look for nan with jnp.isnan first"):
        stats.rankdata(SAMPLE, nan_policy="raise")
    with pytest.raises(ValueError, match="method must be 'average'"):
        stats.rankdata(SAMPLE, "first")


@pytest.mark.parametrize("bw_method", [None, "silverman", 0.4])
def test_gaussian_kde(bw_method, rng):
    data, points, weights = rng.normal(size=(2, 30)), rng.normal(size=(2, 5)), rng.uniform(size=30)
    ours = stats.gaussian_kde(data, bw_method, weights)
    theirs = scipy.stats.gaussian_kde(data, bw_method, weights)
    np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-11)
    if bw_method is None:
        np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), rtol=1e-11)
        mean, cov = np.array([0.1, 0.2]), np.array([[1.0, 0.2], [0.2, 2]])
        np.testing.assert_allclose(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov), rtol=1e-11)
        np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs), rtol=1e-11)
        assert ours.resample(random.key(0), (3,)).shape == (2, 3)
        np.testing.assert_allclose(fm.jit(lambda kde: kde(points))(ours), theirs(points), rtol=1e-11)


def test_gaussian_kde_in_one_dimension(rng):
    data = rng.normal(size=20)
    ours, theirs = stats.gaussian_kde(data), scipy.stats.gaussian_kde(data)
    np.testing.assert_allclose(ours.integrate_box_1d(-1.0, 2.0), theirs.integrate_box_1d(-1.0, 2.0), rtol=1e-12)
    with pytest.raises(ValueError, match="points have dimension 3, the dataset has dimension 1"):
        ours(np.ones((3, 2)))
    with pytest.raises(ValueError, match="should have multiple elements"):
        stats.gaussian_kde(np.ones(1))
    with pytest.raises(ValueError, match="bw_method should be"):
        stats.gaussian_kde(data, "best")
