"""Reductions against NumPy, with axes, masks and initial values; and their derivatives."""

import math

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml import dtypes
from tests.products import check_products

NAN, INF = math.nan, math.inf
X = np.array([[0.5, -1.2, 3.0, 0.1], [2.0, 2.0, -0.7, 1.1], [-0.3, 0.9, 0.4, -2.5]])
HOLES = np.array([[NAN, 1.0, 2.0], [3.0, NAN, NAN], [NAN, NAN, NAN]])
PLAIN = "sum prod max min mean var std all any argmax argmin ptp median count_nonzero".split()
SKIPPING = "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian".split()


def agree(name, function, oracle):
    with np.errstate(all="ignore"):
        want = oracle()
    ours = np.asarray(function())
    assert ours.shape == np.shape(want), name
    np.testing.assert_allclose(ours, want, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": -1, "keepdims": True}], ids=str)
def test_values_are_those_of_numpy(name, options):
    agree(name, lambda: getattr(jnp, name)(X, **options), lambda: getattr(np, name)(X, **options))


@pytest.mark.parametrize("name", ["sum", "max", "mean", "std", "median", "all"])
def test_several_axes(name):
    x = np.arange(24.0).reshape(2, 3, 4) % 7
    agree(name, lambda: getattr(jnp, name)(x, axis=(0, -1)), lambda: getattr(np, name)(x, axis=(0, -1)))


@pytest.mark.filterwarnings("ignore:.*(All-NaN|Mean of empty|Degrees of freedom).*:RuntimeWarning")
@pytest.mark.parametrize("name", SKIPPING)
def test_nan_is_left_out(name):
    agree(name, lambda: getattr(jnp, name)(HOLES, axis=1), lambda: getattr(np, name)(HOLES, axis=1))
    agree(name, lambda: getattr(jnp, name)(HOLES), lambda: getattr(np, name)(HOLES))


def test_indices_without_nan():
    np.testing.assert_array_equal(jnp.nanargmax(HOLES, axis=1), [2, 0, -1])
    np.testing.assert_array_equal(jnp.nanargmin(HOLES, axis=1), [1, 0, -1])
    assert jnp.argmax(np.array([1.0, NAN, 3.0])) == 1 and jnp.argmax(np.array([1 + 1j, 2.0, 1 + 5j])) == 1


def test_where_and_initial():
    mask = X > 0
    agree("sum", lambda: jnp.sum(X, where=mask, initial=2), lambda: np.sum(X, where=mask, initial=2))
    agree("max", lambda: jnp.max(X, axis=1, where=mask, initial=1.0), lambda: np.max(X, axis=1, where=mask, initial=1.0))
    agree("mean", lambda: jnp.mean(X, axis=0, where=mask), lambda: np.mean(X, axis=0, where=mask))
    agree("var", lambda: jnp.var(X, where=mask, ddof=1), lambda: np.var(X, where=mask, ddof=1))
    agree("std", lambda: jnp.std(X, axis=0, where=mask, keepdims=True), lambda: np.std(X, axis=0, where=mask, keepdims=True))
    agree("any", lambda: jnp.any(X > 2, axis=1, where=mask), lambda: np.any(X > 2, axis=1, where=mask))
    agree("prod", lambda: jnp.prod(X, axis=1, where=mask), lambda: np.prod(X, axis=1, where=mask))


def test_running():
    for name in ("cumsum", "cumprod"):
        for axis in (None, 0, 1):
            agree(name, lambda: getattr(jnp, name)(X, axis), lambda: getattr(np, name)(X, axis))  # noqa: B023
    agree("nancumsum", lambda: jnp.nancumsum(HOLES, 1), lambda: np.nancumsum(HOLES, 1))
    np.testing.assert_allclose(jnp.cumulative_sum(X, axis=1, include_initial=True)[:, 1:], np.cumsum(X, 1))
    np.testing.assert_allclose(jnp.cumulative_prod(X[0], include_initial=True)[0], 1)


def test_average():
    w = np.array([1.0, 2.0, 0.5, 0.5])
    agree("average", lambda: jnp.average(X, 1, w), lambda: np.average(X, 1, w))
    mean, total = jnp.average(X, weights=X**2, returned=True)
    np.testing.assert_allclose(mean, np.average(X, weights=X**2))
    np.testing.assert_allclose(total, (X**2).sum())


def test_complex_moments():
    z = X + 1j * X[::-1]
    for name in ("sum", "mean", "var", "std"):
        agree(name, lambda: getattr(jnp, name)(z, axis=0), lambda: getattr(np, name)(z, axis=0))  # noqa: B023


def test_narrow_floats_are_summed_in_float32():
    x = jnp.ones(4096, "float16")
    assert jnp.sum(x) == 4096 and jnp.sum(x).dtype == np.float16
    assert jnp.mean(jnp.full(5000, 0.1, "bfloat16")) == jnp.asarray(0.1, "bfloat16")
    assert jnp.var(x).dtype == np.float16
    assert jnp.sum(jnp.full(3, 100, "int8")) == 300


def test_empty_arrays():
    assert jnp.sum(jnp.zeros((0, 3))) == 0 and jnp.prod(jnp.zeros(0)) == 1 and bool(jnp.all(jnp.zeros(0)))
    assert jnp.isnan(jnp.mean(jnp.zeros(0))) and jnp.max(jnp.zeros((0, 3)), axis=1).shape == (0,)
    with pytest.raises(ValueError, match=r"max of f32\[0,3\]: there is no element over the axes \(0,\); give `initial`"):
        jnp.max(jnp.zeros((0, 3)), axis=0)


@pytest.mark.parametrize("q", [0.3, [0.0, 0.25, 1.0]], ids=str)
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantiles(q, method):
    agree("quantile", lambda: jnp.quantile(X, q, method=method), lambda: np.quantile(X, q, method=method))
    agree("percentile", lambda: jnp.percentile(X, 30, axis=1, method=method, keepdims=True),
          lambda: np.percentile(X, 30, axis=1, method=method, keepdims=True))


@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning")
def test_quantiles_and_nan():
    agree("nanquantile", lambda: jnp.nanquantile(HOLES, [0.2, 0.9], axis=1), lambda: np.nanquantile(HOLES, [0.2, 0.9], axis=1))
    agree("median", lambda: jnp.median(HOLES, axis=0), lambda: np.median(HOLES, axis=0))
    assert jnp.nanmedian(np.log(np.array([-1, math.e, -1]) + 0j).real * [NAN, 1, NAN]) == 1


# ---- derivatives -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [
    lambda x: [x.mean(0), x.var(1), x.std(), x.sum(1, keepdims=True), x.prod(0)],
    lambda x: [x.max(1), jnp.ptp(x, 0), jnp.median(x, 1), jnp.quantile(x, 0.3), jnp.cumsum(x, 1), jnp.cumprod(x[0])],
    lambda x: [jnp.nanmean(jnp.where(x > 2.5, NAN, x)), jnp.nanstd(jnp.where(x > 2.5, NAN, x), 0), jnp.average(x, 0, x[:, 0])],
    lambda x: [jnp.mean(x, where=X > 0), jnp.std(x, 1, where=X > -2)],
], ids=range(4))
def test_derivatives(function):
    check_products(function, X + 0.01 * np.arange(12).reshape(3, 4))


def test_nan_does_not_reach_the_derivative():
    x = jnp.array([NAN, 1, 2, 3, 4], "float64")
    np.testing.assert_allclose(funcml.grad(lambda x: jnp.nanmean(x**2))(x), [0, 0.5, 1, 1.5, 2])


def test_standard_deviation_of_equal_elements():
    def std(t):
        return jnp.std(jnp.stack([t, t + 0.0 * t]))

    assert funcml.grad(std)(1.0) == 0.0
    # std([a, b]) = |a - b| / 2, so cos(std) has the hessian -(1, -1)(1, -1)^T / 4 at a = b
    hessian = funcml.hessian(lambda x: jnp.cos(jnp.std(x)))(np.ones(2))
    np.testing.assert_allclose(hessian, [[-0.25, 0.25], [0.25, -0.25]], atol=1e-12)


@pytest.mark.parametrize("values, want", [([0, 2, 3], [9, 0, 0]), ([2, 0, 0, 3], [1, 2, 0, 0])], ids=str)
def test_running_product_at_zero(values, want):
    x = np.array(values, float)
    np.testing.assert_allclose(funcml.grad(lambda v: jnp.cumprod(v).sum())(x), want)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.sum(np.ones(3), axis=1), ValueError, "sum: axis 1 is out of bounds for an array of 1 dimensions"),
    (lambda: jnp.sum(np.ones((2, 3)), axis=(0, 0)), ValueError, "sum: repeated axis, duplicate value in"),
    (lambda: jnp.sum(np.ones(3), axis=0.5), TypeError, "float"),
    (lambda: jnp.max(np.ones(3), where=np.ones(3, bool)), ValueError, "max: with `where`, `initial` must be given"),
    (lambda: jnp.sum(np.ones(3), where=np.ones(3)), ValueError, r"where must be None or a boolean array, got f64\[3\]"),
    (lambda: jnp.median(1j), ValueError, "median expects real numbers"),
    (lambda: jnp.quantile(np.ones(3), 0.5, method="best"), ValueError, "method must be one of 'linear', 'lower'"),
    (lambda: jnp.average(np.ones((2, 3)), weights=np.ones(3)), TypeError, "average: weights .* must have the shape of f"),
    (lambda: jnp.std(np.ones(3), dtype=int), ValueError, "std: dtype must be a subclass of float or complex"),
])
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_bfloat16_extremes():
    x = jnp.asarray([1.5, -2.0, 3.0], dtypes.bfloat16)
    assert jnp.max(x) == 3 and jnp.min(x).dtype == dtypes.bfloat16 and jnp.argmax(x) == 2
