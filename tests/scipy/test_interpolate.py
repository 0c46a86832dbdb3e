"""Interpolation on grids against SciPy."""

import numpy as np
import pytest
import scipy.interpolate

import funcml as fm
from funcml import tree
from funcml.scipy.interpolate import RegularGridInterpolator
from tests.products import check_products

GRIDS = {1: (np.array([0.0, 1.0, 2.5, 4.0]),), 2: (np.array([0.0, 1.0, 2.5]), np.array([3.0, 2.0, -1.0, -1.5]))}


@pytest.mark.parametrize("rest", [(), (2,)])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_values(rng, method, count, rest):
    grid = GRIDS[count]
    values = rng.normal(size=(*[g.size for g in grid], *rest))
    xi = np.stack([rng.uniform(-2, 5, (3, 4)) for _ in grid], -1)
    xi[0, 0] = [g[1] for g in grid]
    for fill_value in (np.nan, 7.0, None):
        want = scipy.interpolate.RegularGridInterpolator(grid, values, method, False, fill_value)(xi)
        f = RegularGridInterpolator(grid, values, method, fill_value=fill_value)
        np.testing.assert_allclose(f(xi), want, atol=1e-12)
        np.testing.assert_allclose(fm.jit(lambda f, xi: f(xi))(f, xi), want, atol=1e-12)


def test_forms_of_points(rng):
    grid = GRIDS[2]
    f = RegularGridInterpolator(grid, rng.normal(size=(3, 4)))
    x, y = rng.uniform(0, 2, 5), rng.uniform(-1, 2, 5)
    want = f(np.stack([x, y], -1))
    np.testing.assert_array_equal(f((x, y)), want)
    np.testing.assert_array_equal(f((x[:, None], y))[np.arange(5), np.arange(5)], want)
    np.testing.assert_allclose(f([[a, b] for a, b in zip(x, y, strict=True)]), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(f(np.array([x[0], y[0]])), want[:1])
    assert not np.array_equal(f((x, y), method="nearest"), want)


def test_unknown_points_are_unknown():
    f = RegularGridInterpolator(GRIDS[1], np.arange(4.0), "nearest", fill_value=None)
    np.testing.assert_array_equal(f(np.array([np.nan, 0.2])), [np.nan, 0])
    np.testing.assert_array_equal(f(np.array([np.nan, 0.0]), method="linear"), [np.nan, 0])


def test_dtypes():
    grid, xi = (np.array([0, 1, 2]),), np.array([0.5], "float32")
    assert RegularGridInterpolator(grid, np.arange(3, dtype="int32"))(xi).dtype == "float64"  # the grid is of 64 bits
    narrow = (np.array([0, 1, 2], "int32"),)
    assert RegularGridInterpolator(narrow, np.arange(3, dtype="int32"))(xi).dtype == "float32"
    found = RegularGridInterpolator(narrow, np.array([0, 1j, 2], "complex64"))(xi)
    assert found.dtype == "complex64" and found[0] == 0.5j


def test_it_is_a_tree(rng):
    f = RegularGridInterpolator(GRIDS[1], np.arange(4.0), fill_value=0.0)
    doubled = tree.map(lambda x: 2 * x, f)
    np.testing.assert_array_equal(doubled(np.array([2.0])), 2 * f(np.array([1.0])))
    grads = fm.grad(lambda f: f(np.array([0.25])).sum())(f)
    np.testing.assert_array_equal(grads.values, [0.75, 0.25, 0, 0])


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_products(rng, method):
    grid = (np.array([0.0, 1.0, 2.5]), np.array([-1.5, -1.0, 2.0, 3.0]))
    xi = np.stack([rng.uniform(-0.5, 3, 5), rng.uniform(-2, 3.5, 5)], -1)

    def f(g, h, values, xi):
        return RegularGridInterpolator((g, h), values, method, fill_value=None)(xi)

    products = ("jit", "jvp", "vjp", "order2")
    check_products(f, *grid, rng.normal(size=(3, 4)), xi, products=products, order=2 if method == "linear" else 1)


@pytest.mark.parametrize("call, words", [
    (lambda: RegularGridInterpolator(([0.0, 1.0],), np.ones(2), "cubic"), "method must be 'linear' or 'nearest', got 'cubic'"),
    (lambda: RegularGridInterpolator(([0.0, 1.0],), np.ones(3)), r"expects 3 real points along axis 0 of f64\[3\], got f32\[2\]"),
    (lambda: RegularGridInterpolator(([0.0],), np.ones(1)), "expects 2 real points"),
    (lambda: RegularGridInterpolator(([0.0, 1.0],) * 2, np.ones(2)), "2 vectors of points for the axes of"),
    (lambda: RegularGridInterpolator(([0.0, 1.0, 1.0],), np.ones(3)), "strictly increasing or decreasing"),
    (lambda: RegularGridInterpolator(([0.0, 1.0],), np.ones(2), fill_value=1j), "is not of the kind of the values"),
    (lambda: RegularGridInterpolator(([0.0, 1.0],) * 2, np.ones((2, 2)))(np.ones((2, 3))), r"\[.., 2\], got f64\[2,3\]"),
])
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_bounds_are_not_checked():
    with pytest.raises(NotImplementedError, match="bounds_error must be False"):
        RegularGridInterpolator(([0.0, 1.0],), np.ones(2), bounds_error=True)
