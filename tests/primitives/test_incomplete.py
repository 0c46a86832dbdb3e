"""The incomplete gamma and beta functions and hypergeometric functions against mpmath, SciPy and their own limits."""

import mpmath
import numpy as np
import pytest
import scipy.special

import funcml as fm
from funcml import lax
from funcml.primitives import hypergeometric, incomplete
from tests.products import check_products

inf, nan = np.inf, np.nan


def spread_shapes(rng, count, high):
    a = 10 ** rng.uniform(-4, high, count)
    x = np.where(rng.uniform(size=count) < 0.3, 10 ** rng.uniform(-4, high, count), a + 4 * np.sqrt(a) * rng.normal(size=count))
    return a, np.maximum(x, 1e-3 * a)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-5)], ids=["f64", "f32"])
def test_incomplete_gamma_is_scipys(dtype, rtol, rng):
    a, x = (v.astype(dtype) for v in spread_shapes(rng, 400, 4))
    wide = a.astype(float), x.astype(float)
    tiny = np.finfo(dtype).tiny * 1e3
    for ours, theirs in ((incomplete.igamma, scipy.special.gammainc), (incomplete.igammac, scipy.special.gammaincc)):
        want = theirs(*wide)
        found = np.asarray(ours(a, x)).astype(float)
        np.testing.assert_allclose(found[want > tiny], want[want > tiny], rtol=rtol)


def test_incomplete_gamma_at_a_large_parameter():
    # the series of P, term by term; SciPy is 1 % off here
    a, x = 5579607.859075059, 5568941.1294097565
    with mpmath.workdps(30):
        term = total = mpmath.mpf(1)
        n = 0
        while term > total * mpmath.mpf(10) ** -25:
            n += 1
            term *= mpmath.mpf(x) / (mpmath.mpf(a) + n)
            total += term
        want = float(mpmath.exp(mpmath.mpf(a) * mpmath.log(x) - x - mpmath.loggamma(mpmath.mpf(a) + 1)) * total)
    np.testing.assert_allclose(incomplete.igamma(np.float64(a), np.float64(x)), want, rtol=1e-12)


EDGE_A = np.array([0, 0, 0, 1, nan, 1, 0, 1, 1, -1, inf, inf, 1e-20, 0.5])
EDGE_X = np.array([0, 1, inf, 0, 1, nan, inf, inf, -1, 1, 1, inf, 0.25, 0])


def test_limits_of_the_incomplete_gamma_function():
    for ours, theirs in ((incomplete.igamma, scipy.special.gammainc), (incomplete.igammac, scipy.special.gammaincc)):
        np.testing.assert_allclose(ours(EDGE_A, EDGE_X), theirs(EDGE_A, EDGE_X), rtol=1e-12)


def test_small_complement_keeps_its_digits():
    a, x = np.array([1e-20, 1e-8, 1e-3]), np.array([0.3, 1e-3, 1.2])
    np.testing.assert_allclose(incomplete.igammac(a, x), scipy.special.gammaincc(a, x), rtol=1e-13)


def test_logarithms_of_tails_do_not_underflow():
    a, x = np.array([2.0, 0.5, 100.0, 1e4]), np.array([1e4, 5e3, 1e-3, 2.0])
    with mpmath.workdps(40):
        upper = [mpmath.log(mpmath.gammainc(u, v, regularized=True)) for u, v in zip(a[:2], x[:2], strict=True)]
        lower = [
            u * mpmath.log(v) - v - mpmath.loggamma(u + 1) + mpmath.log(mpmath.hyp1f1(1, u + 1, v))
            for u, v in zip(map(mpmath.mpf, a[2:]), map(mpmath.mpf, x[2:]), strict=True)
        ]
    np.testing.assert_allclose(incomplete.log_igamma(a[:2], x[:2], upper=True), np.array(upper, float), rtol=1e-13)
    np.testing.assert_allclose(incomplete.log_igamma(a[2:], x[2:], upper=False), np.array(lower, float), rtol=1e-13)


STEP = mpmath.mpf(10) ** -12


def differentiated(f, x, index, order):
    """The first or second central difference of f by one argument, in the digits of mpmath's context."""
    values = [f(*x[:index], x[index] + k * STEP, *x[index + 1 :]) for k in (-1, 0, 1)]
    if order == 1:
        return float((values[2] - values[0]) / (2 * STEP))
    return float((values[2] - 2 * values[1] + values[0]) / STEP**2)


def test_derivatives_of_the_incomplete_gamma_function_by_its_parameter():
    points = [(0.3, 0.2), (0.9, 1.4), (2.5, 1.0), (10.0, 9.0), (35.0, 50.0), (45.0, 40.0), (90.0, 85.0), (3.0, 25.0)]
    a, x = np.array(points).T
    with mpmath.workdps(50):
        for upper in (False, True):

            def exact(a, x, upper=upper):
                q = mpmath.gammainc(a, x, mpmath.inf, regularized=True)
                return q if upper else 1 - q

            for order in (1, 2):
                found = incomplete.igamma_p(a, x, orders=(order, 0), upper=upper, log=False)
                want = [differentiated(exact, tuple(map(mpmath.mpf, p)), 0, order) for p in points]
                np.testing.assert_allclose(found, want, rtol=1e-11)


def test_derivatives_of_the_incomplete_functions_agree_with_differences():
    a, x = np.array([0.4, 2.5, 7.0, 50.0]), np.array([0.7, 1.9, 11.0, 47.0])
    check_products(lambda a, x: incomplete.log_igamma(a, x, upper=True), a, x, products=("jvp", "vjp"), order=1, rtol=1e-6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("log", [False, True])
def test_products_of_the_incomplete_functions(log):
    a, b, x = np.array([0.7, 3.0, 50.0]), np.array([1.6, 9.0, 30.0]), np.array([0.4, 0.2, 0.6])
    options = {"upper": False, "log": log}
    check_products(lambda a, x: incomplete.igamma_p(a, x, orders=(0, 0), **options), a, 40 * x, rtol=1e-5)
    check_products(lambda a, b, x: incomplete.betainc_p(a, b, x, orders=(0, 0, 0), **options), a, b, x, rtol=1e-5)


def test_derivatives_at_the_ends():
    by_x = fm.vmap(fm.grad(incomplete.igamma, 1))
    found = by_x(np.array([0.5, 1.0, 2.0, 1.0]), np.array([0.0, 0.0, 0.0, inf]))
    np.testing.assert_array_equal(found, [inf, 1, 0, 0])


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-11), (np.float32, 2e-4)], ids=["f64", "f32"])
def test_incomplete_beta_is_scipys(dtype, rtol, rng):
    a, b = 10 ** rng.uniform(-2, 3.5, 300), 10 ** rng.uniform(-0.5, 3.5, 300)
    mean = a / (a + b)
    x = np.clip(mean + 3 * rng.normal(size=300) * np.sqrt(mean * (1 - mean) / (a + b + 1)), 1e-3, 0.999)
    a, b, x = (v.astype(dtype) for v in (a, b, x))
    want = scipy.special.betainc(*(v.astype(float) for v in (a, b, x)))
    found = np.asarray(incomplete.betainc(a, b, x)).astype(float)
    clear = want > np.sqrt(np.finfo(dtype).tiny)
    np.testing.assert_allclose(found[clear], want[clear], rtol=rtol, atol=np.finfo(dtype).eps)


def test_limits_of_the_incomplete_beta_function():
    values = [nan, -0.5, inf, 0, 1e-16, 1]
    a, b, x = (v.ravel() for v in np.meshgrid(values, values, [nan, -0.5, 0, 0.5, 1, 1.5]))
    np.testing.assert_allclose(incomplete.betainc(a, b, x), scipy.special.betainc(a, b, x), rtol=1e-12)
    assert incomplete.betainc(np.float64(1e-20), np.float64(1), np.float64(0.25)) == 1


@pytest.mark.parametrize("orders", [(1, 0, 0), (0, 1, 0), (1, 1, 0)], ids=str)
def test_derivatives_of_the_incomplete_beta_function_by_its_parameters(orders):
    points = [(0.5, 0.5, 0.3), (2, 3, 0.4), (20, 30, 0.5), (300, 200, 0.62), (1500, 800, 0.65)]
    found = incomplete.betainc_p(*np.array(points).T, orders=orders, upper=False, log=False)
    with mpmath.workdps(60):
        f = lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)  # noqa: E731
        if orders == (1, 1, 0):
            by_b = lambda a, b, x: (f(a, b + STEP, x) - f(a, b - STEP, x)) / (2 * STEP)  # noqa: E731
            want = [differentiated(by_b, p, 0, 1) for p in mp_rows(points)]
        else:
            want = [differentiated(f, p, orders.index(1), 1) for p in mp_rows(points)]
    np.testing.assert_allclose(found, want, rtol=1e-10)


def mp_rows(points):
    return [tuple(map(mpmath.mpf, p)) for p in points]


def test_derivatives_of_the_incomplete_beta_function_agree_with_differences():
    a, b, x = np.array([0.7, 3.0]), np.array([1.6, 9.0]), np.array([0.4, 0.2])
    check_products(incomplete.betainc, a, b, x, products=("jvp",), order=1, rtol=1e-5)


def test_random_gamma_grad_is_implicit_differentiation():
    a, x = np.array([0.1, 1.0, 20.0, 500.0]), np.array([1e-4, 2.0, 23.0, 430.0])
    p_a, p_x = incomplete.igamma_grad_a(a, x), fm.vmap(fm.grad(incomplete.igamma, 1))(a, x)
    np.testing.assert_allclose(lax.random_gamma_grad(a, x), -np.asarray(p_a) / np.asarray(p_x), rtol=1e-11)


def test_log_poisson_keeps_its_digits_at_large_means():
    k, mean = np.array([1e6, 1e9, 3.0, 0.0, 12.0]), np.array([1e6 + 700, 1e9 - 4e4, 2.0, 5.0, 0.5])
    with mpmath.workdps(40):
        want = [float(a * mpmath.log(x) - x - mpmath.loggamma(a + 1)) for a, x in mp_rows(zip(k, mean, strict=True))]
    np.testing.assert_allclose(incomplete.log_poisson(k, mean), want, rtol=1e-13)
    found = incomplete.log_poisson(k.astype(np.float32), mean.astype(np.float32))
    with mpmath.workdps(40):
        rounded = mp_rows(zip(map(float, k.astype(np.float32)), map(float, mean.astype(np.float32)), strict=True))
        want = [float(a * mpmath.log(x) - x - mpmath.loggamma(a + 1)) for a, x in rounded]
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_hypergeometric_functions_are_mpmaths(rng):
    a, b, c = rng.uniform(0.1, 3, (3, 60))
    x = rng.uniform(-20, 60, 60)
    want = [float(mpmath.hyp1f1(*p)) for p in zip(a, b, x, strict=True)]
    np.testing.assert_allclose(hypergeometric.hyp1f1(a, b, x), want, rtol=1e-10)
    x = np.concatenate([rng.uniform(-3, 0.99, 50), rng.uniform(-50, -3, 10)])
    want = [float(mpmath.hyp2f1(*p)) for p in zip(a, b, c, x, strict=True)]
    np.testing.assert_allclose(hypergeometric.hyp2f1(a, b, c, x), want, rtol=1e-10)


def test_hypergeometric_functions_at_special_points():
    a = np.array([0, 1, 1, 1, 1, 5, 5, 0.245, 0.45, 2, 0.4, 0.32, 4, 4])
    b = np.array([1, 0, 1, 1, 1, 1, 1, 3, 0.7, 1, 0.7, 0.76, 2, 3])
    c = np.array([1, 1, 0, 1, -1, 3, 3, 3, 0.45, 5, 0.3, 0.11, 7, 7])
    x = np.array([1, 1, 1, 0, 1, 0.5, 1, 0.35, 1.5, 1, 0.4, 0.95, 0.95, 0.95])
    np.testing.assert_allclose(hypergeometric.hyp2f1(a, b, c, x), scipy.special.hyp2f1(a, b, c, x), rtol=1e-7)


def test_derivatives_of_hyp1f1_by_its_parameters():
    a, b, x = 1.3, 0.8, 1.2
    with mpmath.workdps(40):
        want = [differentiated(mpmath.hyp1f1, tuple(map(mpmath.mpf, (a, b, x))), i, 1) for i in range(3)]
    for i, w in enumerate(want):
        orders = tuple(int(i == j) for j in range(3))
        found = hypergeometric.hyp1f1_p(*map(np.float64, (a, b, x)), orders=orders)
        np.testing.assert_allclose(found, w, rtol=1e-12)


@pytest.mark.exhaustive
def test_products_of_hypergeometric_functions():
    a, b, c, x = (np.array([v]) for v in (1.3, 0.8, 2.1, 0.4))
    check_products(hypergeometric.hyp2f1, a, b, c, x, products=("jvp", "vjp"), order=1, rtol=1e-5)
    check_products(hypergeometric.hyp1f1, a, b, 3 * x, products=("jvp", "vjp"), order=1, rtol=1e-5)


def test_functions_of_lax_check_their_operands():
    with pytest.raises(TypeError, match=r"igamma requires arguments to have the same dtypes, got f32\[1\], f64\[1\]"):
        lax.igamma(np.float32([1]), np.float64([1]))
    with pytest.raises(TypeError, match=r"betainc expects floats, got i32\[\], i32\[\], i32\[\]"):
        lax.betainc(np.int32(1), np.int32(1), np.int32(1))
