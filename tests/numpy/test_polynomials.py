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
    (lambda: jnp.polyval(1.0, 2.0), ValueError, "polyval expects a vector"),
    (lambda: funcml.jit(jnp.trim_zeros)(SHORT), TypeError, "trim_zeros: the array"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
