"""Values between elements, against SciPy on arrays that were continued by NumPy."""

import numpy as np
import pytest
import scipy.ndimage

import funcml as fm
import funcml.numpy as jnp
from funcml.scipy.ndimage import map_coordinates
from tests.products import check_products

PADDED = {"constant": "constant", "nearest": "edge", "wrap": "wrap", "mirror": "reflect", "reflect": "symmetric"}


def reference(x, points, order, mode, cval):
    """SciPy inside an array that is wide enough."""
    around = 30
    values = {"constant_values": cval} if mode == "constant" else {}
    wide = np.pad(x, around, PADDED[mode], **values)
    return scipy.ndimage.map_coordinates(wide, [np.asarray(p) + around for p in points], order=order, mode="nearest")


@pytest.mark.parametrize("mode", PADDED)
@pytest.mark.parametrize("order", [0, 1])
def test_values(rng, order, mode):
    given, cval = [], -1.5
    for shape in ((5,), (3, 4), (2, 3, 2), (1, 2)):
        points = [rng.uniform(-1.7 * n - 2, 2.7 * n + 2, (2, 7)) for n in shape]
        x = rng.normal(size=shape)
        given += [(x, points), (x, [np.round(p).astype("int32") for p in points])]
    found = fm.jit(lambda given: [map_coordinates(x, points, order, mode, cval) for x, points in given])(given)
    for (x, points), y in zip(given, found, strict=True):
        np.testing.assert_allclose(y, reference(x, points, order, mode, cval), atol=1e-12)


def test_integers_are_rounded_and_halves_go_away_from_zero():
    x = np.arange(-3, 3, dtype="int32")
    found = map_coordinates(x, [np.array([0.5, 1.5, 2.5, 3.5])], order=1)
    assert found.dtype == "int32"
    np.testing.assert_array_equal(found, [-3, -2, -1, 1])
    np.testing.assert_array_equal(map_coordinates(x, [np.array([0.5, 1.5, 2.5])], order=0), [-2, -1, 0])
    big = np.array([2**53 + 1, 7])
    np.testing.assert_array_equal(map_coordinates(big, [np.array([0.2])], order=0), big[:1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "int8", "bool"])
def test_the_dtype_is_that_of_the_array(dtype):
    x = jnp.array([0, 1, 0], dtype)
    for order in (0, 1):
        found = map_coordinates(x, [np.array([1.0, 0.0])], order)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found).astype(complex), [1, 0])


@pytest.mark.parametrize("mode, far", [("constant", 9.0), ("nearest", 2.0), ("wrap", None), ("mirror", None), ("reflect", None)])
def test_far_positions(mode, far):
    x = np.arange(3.0)
    for order in (0, 1):
        found = np.asarray(map_coordinates(x, [np.array([1e30, 1e300])], order, mode, 9.0))
        assert np.all(found == far) if far is not None else np.all((0 <= found) & (found <= 2))


def test_unknown_positions_are_unknown():
    assert np.isnan(map_coordinates(np.arange(3.0), [np.array([np.nan])], 1)).all()


def test_positions_broadcast_and_empty_arrays():
    x = np.arange(12.0).reshape(3, 4)
    found = map_coordinates(x, [np.array([[0.5], [1.0]]), np.array([0.0, 2.0, 2.5])], 1)
    np.testing.assert_allclose(found, [[2, 4, 4.5], [4, 6, 6.5]])
    assert map_coordinates(x, [np.zeros((0, 2))] * 2, 1).shape == (0, 2)
    np.testing.assert_array_equal(map_coordinates(np.zeros(0), [np.array([0.0])], 1, cval=2.0), [2.0])


@pytest.mark.parametrize("mode", PADDED)
def test_products(rng, mode):
    x, p = rng.normal(size=(3, 4)), [rng.uniform(-2.4, 5.4, 5), rng.uniform(-2.4, 6.4, 5)]
    check_products(lambda x, p, q, c: map_coordinates(x, [p, q], 1, mode, c), x, *p, np.float64(0.3))


def test_the_gradient_between_elements_is_the_slope():
    x = np.arange(100.0)
    loss = lambda d: jnp.mean((map_coordinates(x, [np.arange(100.0) + d], 1) - x)[10:-10] ** 2)
    assert float(fm.grad(loss)(np.float64(0.5))) == pytest.approx(1.0)
    assert float(fm.grad(loss)(np.float64(1.0))) == pytest.approx(2.0)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: map_coordinates(x, [x], 2), NotImplementedError, "requires order<=1, that is 0 or 1, got 2"),
    (lambda x: map_coordinates(x, [x], 1, "grid-wrap"), NotImplementedError, "support mode 'grid-wrap'; it must be one of"),
    (lambda x: map_coordinates(x, [x, x], 1), ValueError, r"for each axis of f32\[3\], got 2"),
    (lambda x: map_coordinates(x, [x + 1j], 1), ValueError, r"real positions, got c64\[3\]"),
    (lambda x: map_coordinates(x[:0], [x], 1, "wrap"), ValueError, "has no element to continue"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones(3, "float32"))
