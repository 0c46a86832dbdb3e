"""Minima that are known, and those that SciPy finds."""

import numpy as np
import pytest
import scipy.optimize

import funcml as fm
import funcml.numpy as jnp
from funcml.scipy.optimize import minimize
from funcml.scipy.optimize.line_search import line_search


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def himmelblau(p):
    x, y = p
    return (x**2 + y - 11.0) ** 2 + (x + y**2 - 7.0) ** 2


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_curved_valley(method, dtype):
    tol = 1e-4 if dtype == "float32" else 1e-8
    result = fm.jit(lambda x: minimize(rosenbrock, x, method=method, tol=tol))(np.zeros(4, dtype))
    assert result.x.dtype == result.fun.dtype == result.jac.dtype == dtype
    np.testing.assert_allclose(result.x, 1, atol=1e-3)
    assert result.fun < 1e-6 and result.nfev == result.njev >= result.nit


@pytest.mark.parametrize("start", [(1.0, 1.0), (92.0, 0.001), (-3.0, 3.0)])
def test_one_of_four_minima_the_one_that_scipy_finds(start):
    x0 = np.array(start)
    result = minimize(himmelblau, x0, method="BFGS")
    want = scipy.optimize.minimize(himmelblau, x0, jac=fm.grad(himmelblau), method="BFGS")
    assert result.success and result.status == 0
    np.testing.assert_allclose(result.x, want.x, atol=1e-5)
    np.testing.assert_allclose(result.hess_inv, np.linalg.inv(fm.hessian(himmelblau)(result.x)), rtol=0.1)


def test_arguments_and_options():
    f = lambda x, a, b: ((x - a) ** 4).sum() + b
    for method in ("BFGS", "L-BFGS"):
        result = minimize(f, [0.0, 0.0], args=(jnp.array([1.0, 2.0]), 5.0), method=method, options={"maxiter": 2, "gtol": 1e-30})
        assert result.nit in (2, 3) and not result.success and result.status == 1
    result = minimize(f, np.zeros(2), args=(np.ones(2), 0.0), method="L-BFGS", options={"maxfun": 3, "ftol": -1.0, "gtol": 0.0})
    assert result.status == 2


def test_starting_at_the_minimum():
    result = minimize(lambda x: (x**2).sum(), np.zeros(3), method="BFGS")
    assert result.success and result.nit == 0 and result.nfev == 1


def test_a_function_without_a_minimum_and_one_that_is_not_a_number():
    assert not minimize(lambda x: x.sum(), np.zeros(2), method="BFGS").success
    result = minimize(lambda x: jnp.where(x < 1, (x - 0.9) ** 2, jnp.nan).sum(), np.zeros(1), method="BFGS")
    assert result.success
    np.testing.assert_allclose(result.x, 0.9, atol=1e-5)


def test_complex_variables():
    z0 = np.array([1.0, 2.0 - 3.0j, 4.0, -5.0j])
    f = lambda z: (jnp.abs(z - z0) ** 2 * np.arange(1.0, 5.0)).sum()
    result = minimize(f, np.zeros(4, complex), method="l-bfgs-experimental-do-not-rely-on-this")
    np.testing.assert_allclose(result.x, z0, atol=1e-5)
    with pytest.raises(ValueError, match="BFGS expects real variables"):
        minimize(f, np.zeros(4, complex), method="BFGS")


def test_many_starts_at_once():
    starts = np.array([[1.0, 1.0], [-3.0, 3.0]])
    found = fm.jit(fm.vmap(lambda x: minimize(himmelblau, x, method="BFGS").x))(starts)
    np.testing.assert_allclose(found, [minimize(himmelblau, x, method="BFGS").x for x in starts], atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_step_satisfies_the_strong_wolfe_conditions(scale):
    f = lambda x: himmelblau(scale * x)
    x = np.array([0.5, -1.0])
    value, g = fm.value_and_grad(f)(x)
    p = -g
    found = fm.jit(lambda x, p: line_search(f, x, p))(x, p)
    slope = float(np.dot(g, p))
    assert not found.failed and found.status == 0
    assert found.f_k <= value + 1e-4 * found.a_k * slope
    assert abs(np.dot(found.g_k, p)) <= 0.9 * abs(slope)
    np.testing.assert_allclose(found.f_k, f(x + found.a_k * p), rtol=1e-12)


def test_a_search_that_fails_says_so():
    found = line_search(lambda x: -x.sum(), np.zeros(2), np.ones(2), maxiter=3)
    assert found.failed and found.status == 3 and found.a_k == 4


@pytest.mark.parametrize("call, error, words", [
    (lambda f: minimize(f, np.ones(2), args=45, method="BFGS"), TypeError, "args argument to minimize must be a tuple, got 45"),
    (lambda f: minimize(f, np.ones((2, 2)), method="BFGS"), ValueError, r"a vector as x0, got f64\[2,2\]"),
    (lambda f: minimize(f, np.ones(2), method="Newton"), ValueError, "method must be one of 'bfgs'"),
    (lambda f: minimize(f, np.ones(2), method="BFGS", options={"maxcor": 3}), TypeError, "maxcor"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(himmelblau)
