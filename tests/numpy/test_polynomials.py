"""Polynomials against NumPy and their own laws; derivatives by coefficients and places."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from tests.numpy.test_sampled import check
from tests.products import check_products

RNG = np.random.default_rng(0)
LONG, SHORT = RNG.normal(size=6), RNG.normal(size=3)
PAIRS = [(RNG.normal(size=n), RNG.normal(size=m)) for n, m in ((1, 1), (3, 2), (2, 5), (6, 6))]


def test_sums_products_and_values():
    calls = []
    for p, q in PAIRS:
        calls += [lambda m, f=f, p=p, q=q: getattr(m, f)(p, q) for f in ("polyadd", "polysub", "polymul", "polyval")]
    ints = np.array([1, -2, 3])
    check([
        *calls, lambda m: m.polyval(np.arange(40) * 0.01, RNG.normal(size=(2, 3)) * 0 + 0.5), lambda m: m.polyval(ints, ints),
        lambda m: m.polyadd(ints, SHORT), lambda m: m.polymul(SHORT * 1j, LONG), lambda m: m.polyval(ints, 2.5),
        lambda m: m.polyadd(np.zeros(0), SHORT),
    ])  # fmt: skip
    assert jnp.polyval(RNG.normal(size=(20, 3)), RNG.normal(size=(4, 1))).shape == (4, 3)
    np.testing.assert_allclose(jnp.polymul(np.array([0.0, 1, 1]), np.array([0.0, 2]), trim_leading_zeros=True), [2, 2])


def test_division():
    for p, q in PAIRS:
        quotient, rest = jnp.polydiv(p, q)
        np.testing.assert_allclose(quotient, np.polydiv(p, q)[0], rtol=1e-11, atol=1e-13)
        assert rest.shape == p.shape
        np.testing.assert_allclose(np.polyadd(np.polymul(quotient, q), rest)[-p.size:], p, rtol=1e-11, atol=1e-12)
    rest = jnp.polydiv(np.array([1.0, 0, 0, 2]), np.array([1.0, 1.0]), trim_leading_zeros=True)[1]
    np.testing.assert_allclose(rest, [1.0], rtol=1e-12)


def test_slopes_integrals_and_powers():
    names = ("polyder", "polyint")
    calls = [lambda m, f=f, k=k, p=p: getattr(m, f)(p, k) for p in (LONG, SHORT) for k in range(5) for f in names]
    check([
        *calls, lambda m: m.polyint(SHORT, 2, [1.0, 2.0]), lambda m: m.polyint(SHORT, 3, 4.0),
        lambda m: m.poly(SHORT), lambda m: m.poly(np.array([1 + 1j, 1 - 2j])), lambda m: m.poly(np.zeros(0)),
        lambda m: m.vander(SHORT), lambda m: m.vander(SHORT, 6), lambda m: m.vander(np.array([0.0, 2, -1]), 3, True),
        lambda m: m.vander(np.array([2, 3]), 0), lambda m: m.vander(np.array([2, 3]), 4),
    ])  # fmt: skip


def ordered(z):
    return np.sort_complex(np.round(np.asarray(z), 7))


COEFFICIENTS = [[1.0, -3, 2], [0, 0, 1.0, -3, 2], [1.0, -3, 2, 0, 0], [0, 0, 2, 1.0, 0], [0.0, 0], [5.0], [1, 2j, 3], [2.0, 1]]


@pytest.mark.parametrize("coefficients", COEFFICIENTS, ids=str)
def test_roots(coefficients):
    p = np.array(coefficients)
    want = np.roots(p)
    np.testing.assert_allclose(ordered(jnp.roots(p)), ordered(want))
    found = np.asarray(funcml.jit(lambda p: jnp.roots(p, strip_zeros=False))(p))
    assert found.shape == (max(p.size - 1, 0),)
    np.testing.assert_allclose(ordered(found[~np.isnan(found)]), ordered(want))


def test_derivatives_of_roots():
    check_products(lambda p: jnp.roots(p, strip_zeros=False), np.array([1.0, -6, 11, -6.5]), rtol=1e-5)
    slopes = funcml.jacfwd(lambda p: jnp.roots(p, strip_zeros=False).real)(np.array([1.0, 0.0, -4.0]))
    np.testing.assert_allclose(np.sort(slopes[:, 1]), [-0.5, -0.5], rtol=1e-9)  # x^2 + b x - 4: x = -b/2 +- 2


def test_fits():
    x, y, w = RNG.normal(size=12), RNG.normal(size=(12, 2)), RNG.uniform(0.5, 1, 12)
    for values in (y[:, 0], y):
        np.testing.assert_allclose(jnp.polyfit(x, values, 3, w=w), np.polyfit(x, values, 3, w=w), rtol=1e-8)
        for cov in (True, "unscaled"):
            ours, want = jnp.polyfit(x, values, 2, cov=cov), np.polyfit(x, values, 2, cov=cov)
            for a, b in zip(ours, want, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)
        for a, b in zip(jnp.polyfit(x, values, 2, full=True), np.polyfit(x, values, 2, full=True), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8)
    assert jnp.polyfit(np.arange(4, dtype=np.int32), np.arange(4, dtype=np.int32), 1).dtype == np.float32
    matrix = np.array([[1.0, 2], [3, 4]])
    np.testing.assert_allclose(jnp.poly(matrix), np.poly(matrix), rtol=1e-9)
    check_products(lambda x, y: jnp.polyfit(x, y, 2), x[:5], y[:5, 0], rtol=1e-4, products=("jit", "jvp", "vjp", "vmap"))


def test_trimmed_zeros():
    x, grid = np.array([0, 0, 1, 0, 2, 0]), np.diag([0, 1, 1, 0])
    for args in ((x,), (x, "f"), (x, "B"), (np.zeros(3),), (np.zeros(3), "b"), (grid,), (grid, "fb", 1)):
        np.testing.assert_array_equal(jnp.trim_zeros(*args), np.trim_zeros(*args))


@pytest.mark.parametrize("fn, args", [
    (jnp.polyval, (LONG, np.array([0.3, -1.2]))), (jnp.polyval, (RNG.normal(size=20), np.float64(0.7))),
    (jnp.polymul, (LONG, SHORT)), (jnp.polydiv, (LONG, SHORT + 2.0)), (jnp.poly, (SHORT,)),
    (lambda p: jnp.vander(p, 4), (SHORT,)),
], ids=["polyval", "long polyval", "polymul", "polydiv", "poly", "vander"])  # fmt: skip
def test_products(fn, args):
    check_products(fn, *args, rtol=1e-5)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.polyadd(np.ones((2, 2)), SHORT), ValueError, r"vectors of coefficients, got f64\[2,2\]"),
    (lambda: jnp.polyder(SHORT, -1), ValueError, "order of derivative must be positive, got m=-1"),
    (lambda: jnp.polyint(SHORT, 2, np.ones(3)), ValueError, r"a vector of length 1 or 2, got f64\[3\]"),
    (lambda: jnp.polydiv(SHORT, np.zeros(0)), ValueError, r"no coefficients, got f64\[0\]"),
    (lambda: jnp.vander(np.ones((2, 2))), ValueError, r"vander expects a vector, got f64\[2,2\]"),
    (lambda: jnp.vander(SHORT, -1), ValueError, "N must be nonnegative, got -1"),
    (lambda: funcml.jit(jnp.roots)(SHORT), TypeError, r"in p \(without strip_zeros=False\)"),
    (lambda: jnp.roots(np.ones((2, 2))), ValueError, r"roots expects a vector of coefficients, got f64\[2,2\]"),
    (lambda: jnp.poly(np.ones((2, 3))), ValueError, r"a vector of roots or a square matrix, got f64\[2,3\]"),
    (lambda: jnp.polyfit(SHORT, SHORT, -1), ValueError, "deg must not be negative, got -1"),
    (lambda: jnp.polyfit(SHORT, LONG, 1), TypeError, r"as many values as the places f64\[3\], .* got f64\[6\]"),
    (lambda: jnp.polyfit(SHORT, SHORT, 2, cov=True), ValueError, "there must be more than 3 points, got 3"),
    (lambda: jnp.polyfit(SHORT, SHORT, 1, w=LONG), TypeError, "one weight for each place"),
    (lambda: jnp.polyval(1.0, 2.0), ValueError, "polyval expects a vector"),
    (lambda: funcml.jit(jnp.trim_zeros)(SHORT), TypeError, "trim_zeros: .* in the array"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
