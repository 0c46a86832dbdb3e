"""Softmax and its relatives: values, masks, infinities, derivatives; standardisation; one-hot vectors."""

import jax
import numpy as np
import pytest
import scipy.special

import funcml as fm
import funcml.numpy as jnp
from funcml import dtypes, nn
from tests.products import check_products

INF = np.inf


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("axis", [-1, 0, (0, 2), None])
def test_values(rng, dtype, axis):
    dtype = dtypes.canonical(dtype)
    x = (8 * rng.normal(size=(3, 4, 5))).astype(dtype)
    exact = x.astype(float)
    eps = float(dtypes.finfo(dtype).eps)
    for found, want in (
        (nn.softmax(x, axis), scipy.special.softmax(exact, axis)),
        (nn.log_softmax(x, axis), scipy.special.log_softmax(exact, axis)),
        (nn.logsumexp(x, axis), scipy.special.logsumexp(exact, axis)),
        (nn.logsumexp(x, axis, keepdims=True), scipy.special.logsumexp(exact, axis, keepdims=True)),
        (nn.logmeanexp(x, axis), np.log(np.mean(np.exp(exact), axis))),
    ):
        assert found.dtype == dtype and found.shape == np.shape(want)
        np.testing.assert_allclose(np.asarray(found).astype(float), want, rtol=16 * eps, atol=16 * eps)


def test_where(rng):
    x, where = rng.normal(size=(4, 5)), rng.random((4, 5)) < 0.6
    where[0] = False
    with jax.enable_x64(True):
        for name in ("softmax", "log_softmax", "logsumexp", "logmeanexp"):
            want = np.asarray(getattr(jax.nn, name)(x, axis=-1, where=where))
            found = np.asarray(getattr(nn, name)(x, axis=-1, where=where))
            mean_of_nothing = name == "logmeanexp"
            np.testing.assert_allclose(found[mean_of_nothing:], want[mean_of_nothing:], rtol=1e-13, err_msg=name)
    assert (nn.softmax(x, where=where)[0] == 0).all() and (nn.log_softmax(x, where=where)[0] == -INF).all()
    with pytest.raises(TypeError, match=r"softmax: expected bool as `where`, got i64\[4,5\]"):
        nn.softmax(x, where=where.astype(int))


def test_logsumexp_with_factors_and_signs():
    a, b = np.array([1.0, 2.0, 1000.0]), np.array([1.0, -3.0, 0.0])
    want = scipy.special.logsumexp(a, b=b, return_sign=True)
    assert np.isnan(nn.logsumexp(a, b=b))
    np.testing.assert_allclose(nn.logsumexp(a, b=b, return_sign=True), want, rtol=1e-14)
    z = np.array([1 + 2j, 3 - 1j])
    np.testing.assert_allclose(nn.logsumexp(z), scipy.special.logsumexp(z), rtol=1e-14)
    slope = fm.grad(lambda b: nn.logsumexp(np.array([1.0, 2.0]), b=b))(np.array([1.0, 0.0]))
    np.testing.assert_allclose(slope, [1, np.e], rtol=1e-14)


@pytest.mark.parametrize("a, want", [
    ([-INF, -INF], -INF), ([INF, 1.0], INF), ([INF, -INF], INF), ([np.nan, 1.0], np.nan), ([], -INF), ([1e300, 1e300], 1e300),
])
def test_logsumexp_at_the_edges(a, want):
    np.testing.assert_equal(np.asarray(nn.logsumexp(np.array(a))), want)


def test_gradients_where_nothing_is_left():
    one = np.array([True, False])
    assert fm.grad(lambda x: nn.logsumexp(x, where=one))(np.array([0.0, 1000.0])).tolist() == [1, 0]
    assert fm.grad(lambda x: nn.logsumexp(jnp.stack([jnp.float64(-INF), -INF + x])))(1.0) == 0
    none = np.array([False, False])
    for f in (nn.softmax, nn.logsumexp, lambda x, where: jnp.where(where, nn.log_softmax(x, where=where), 0.0)):
        assert fm.grad(lambda x: f(x, where=none).sum())(np.array([1.0, 2.0])).tolist() == [0, 0]  # noqa: B023


def test_log_softmax_with_minus_infinity_has_finite_tangents():
    def f(x, w):
        return jnp.where(w == 0, 0.0, w * nn.log_softmax(x))

    x, w, zero = np.array([-INF, 0, 0]), np.array([0.0, 1, 0]), np.zeros(3)
    assert fm.jvp(f, (x, w), (zero, zero))[1].tolist() == [0, 0, 0]


def test_derivatives(rng):
    x, where = rng.normal(size=(2, 3)), np.array([[True, False, True], [True, True, True]])

    def everything(x, b):
        plain = [f(x, -1) for f in (nn.softmax, nn.log_softmax, nn.standardize)]
        kept = jnp.where(where, nn.log_softmax(x, where=where), 0.0)
        masked = [nn.softmax(x, where=where), kept, nn.logsumexp(x, -1, where=where)]
        return [*plain, *masked, nn.logsumexp(x, 0, b=b, return_sign=True)[0]]

    check_products(everything, x, rng.normal(size=(2, 3)))


def test_standardize():
    x = np.random.default_rng(0).normal(3, 2, (4, 50))
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.standardize(x), want, rtol=1e-12)
    np.testing.assert_allclose(nn.standardize(x, mean=0.0, variance=1.0, epsilon=3.0), x / 2, rtol=1e-12)
    assert np.isfinite(nn.standardize(np.full(3, -11.0 + 3e-6, np.float32))).all()


def test_one_hot():
    x = np.array([[0, 2], [5, -1]], np.int8)
    want = np.zeros((2, 2, 3), np.float32)
    want[0, 0, 0] = want[0, 1, 2] = 1
    np.testing.assert_array_equal(nn.one_hot(x, 3), want)
    np.testing.assert_array_equal(nn.one_hot(x, 3, axis=0, dtype="int32"), np.moveaxis(want, -1, 0).astype("int32"))
    assert nn.one_hot(np.uint8(255), 300).argmax() == 255 and nn.one_hot(np.uint8(4), 300).sum() == 1
    assert nn.one_hot(np.array([], int), 3).shape == (0, 3)
    with pytest.raises(TypeError, match=r"one_hot: expected integers, got f64\[2\]"):
        nn.one_hot(np.zeros(2), 3)


def test_moments_of_narrow_floats():
    x = (np.arange(200) * 4).astype(np.float16)  # their squares overflow
    want = (x.astype(float) - x.astype(float).mean()) / x.astype(float).std()
    np.testing.assert_allclose(np.asarray(nn.standardize(x)).astype(float), want, 2e-3, 1e-3)
    for algorithm in ("fast", "stable"):
        np.testing.assert_array_equal(nn.standardize(x, algorithm=algorithm), nn.standardize(x))
    with pytest.raises(ValueError, match="standardize: expected the algorithm 'fast' or 'stable', got 'quick'"):
        nn.standardize(x, algorithm="quick")


def test_one_hot_of_a_list():
    assert nn.one_hot([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]
