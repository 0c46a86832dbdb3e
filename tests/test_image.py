"""Resampling against JAX, a sum written out, and closed forms."""

import jax.image
import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import image
from funcml.image import ResizeMethod
from tests.products import check_products

METHODS = ("nearest", "linear", "lanczos3", "lanczos5", "cubic", "cubic-pytorch", "area")


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_resize(rng, method, antialias):
    shapes = [((5, 7), (3, 11)), ((2, 3), (9, 4)), ((6, 1), (2, 3)), ((3, 4), (3, 4)), ((2, 5), (2, 0))]
    xs = [rng.normal(size=m).astype("float32") for m, _ in shapes]
    found = fm.jit(lambda xs: [image.resize(x, n, method, antialias) for x, (_, n) in zip(xs, shapes, strict=True)])(xs)
    for x, (_, n), y in zip(xs, shapes, found, strict=True):
        np.testing.assert_allclose(y, jax.image.resize(x, n, method, antialias), atol=1e-5)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS[1:])
def test_scale_and_translate(rng, method, antialias):
    x = rng.normal(size=(6, 7)).astype("float32")
    scale, translation = np.array([0.35, 1.7], "float32"), np.array([0.2, -0.8], "float32")
    want = jax.image.scale_and_translate(x, (5, 9), (0, 1), scale, translation, method, antialias)
    found = image.scale_and_translate(x, (5, 9), (0, 1), scale, translation, method, antialias)
    np.testing.assert_allclose(found, want, atol=1e-5)


def test_a_linear_ramp_stays_one_and_a_constant_too():
    ramp = np.arange(4000.0).astype("float32")
    new = np.asarray(image.resize(ramp, (5001,), "linear", False))
    exact = np.clip((np.arange(5001) + 0.5) * 4000 / 5001 - 0.5, 0, 3999)
    np.testing.assert_allclose(new, exact, rtol=3e-7, atol=1e-6)  # positions are exact to the last digit
    for method in METHODS:
        np.testing.assert_allclose(image.resize(np.ones((5, 4)), (3, 9), method), 1, rtol=1e-14)


def test_half_the_size_by_area_is_the_mean_of_four(rng):
    x = rng.normal(size=(4, 6))
    np.testing.assert_allclose(image.resize(x, (2, 3), "area"), x.reshape(2, 2, 3, 2).mean((1, 3)), rtol=1e-14)
    np.testing.assert_allclose(image.resize(x, (8, 12), "area"), x.repeat(2, 0).repeat(2, 1), rtol=1e-14)


def test_nearest_moves_pixels_of_any_dtype():
    x = np.arange(6, dtype="int8").reshape(2, 3)
    found = image.resize(x, (4, 3), ResizeMethod.NEAREST)
    assert found.dtype == "int8"
    np.testing.assert_array_equal(found, x.repeat(2, 0))


@pytest.mark.parametrize("dtype, expected", [
    ("float16", "float16"), ("bfloat16", "bfloat16"), ("int32", "float32"), ("complex64", "complex64"), ("float64", "float64"),
])
def test_dtypes(dtype, expected):
    x = jnp.array([0, 4], dtype)
    found = image.resize(x, (4,), "linear")
    assert found.dtype == expected
    np.testing.assert_array_equal(np.asarray(found).astype(complex), [0, 1, 3, 4])


def test_negative_axes_and_lists():
    x = np.ones((3, 3))
    found = image.scale_and_translate(x, (5, 5), (-2, -1), [1.0, 1.0], [0.0, 0.0], "linear")
    np.testing.assert_array_equal(found, np.pad(x, ((0, 2), (0, 2))))


@pytest.mark.parametrize("method", METHODS)
def test_products_in_the_image(rng, method):
    check_products(lambda x: image.resize(x, (5, 3), method), rng.normal(size=(3, 4)), order=1)


@pytest.mark.parametrize("method", ["cubic", "lanczos3", "cubic-pytorch"])
def test_products_in_scale_and_translation(rng, method):
    def f(x, scale, translation):
        return image.scale_and_translate(x, (4, 3), (1,), scale, translation, method, method != "cubic-pytorch")

    x = rng.normal(size=(4, 5))
    if method == "lanczos3":  # its second derivative jumps at the distances 1, 2 and 3
        check_products(f, x, np.array([0.77]), np.array([0.123]), order=1)
    else:
        check_products(f, x, np.array([1.37]), np.array([0.123]))


def test_gradients_are_finite_where_pixels_meet():
    x = jnp.arange(42.0).reshape(6, 7)
    for method in METHODS[1:]:
        f = lambda s, t, method=method: image.scale_and_translate(x, (3, 3), (0, 1), s, t, method).sum()
        grads = fm.grad(f, (0, 1))(jnp.ones(2), jnp.zeros(2))
        assert np.all(np.isfinite(np.asarray(grads)))


@pytest.mark.parametrize("call, error, words", [
    (lambda x: image.resize(x, (2,), "linear"), ValueError, r"a length for each axis of f32\[2,3\], got the shape \(2,\)"),
    (lambda x: image.resize(x, (2.5, 3), "linear"), TypeError, "Shapes must be 1D sequences of concrete values of integer type"),
    (lambda x: image.resize(x, (2, 3), "sharp"), ValueError, "unknown resize method 'sharp'"),
    (lambda x: image.resize(x, (2, 3), 4), TypeError, "a ResizeMethod or its name as method, got 4"),
    (lambda x: image.resize(x[:0], (2, 3), "linear"), ValueError, "an axis of length 0 has no pixels"),
    (lambda x: image.scale_and_translate(x, (2, 3), (0,), [1.0], [0.0], "nearest"), ValueError, "does not take the method"),
    (lambda x: image.scale_and_translate(x, (2, 3), (0,), [1.0, 2.0], [0.0], "linear"), ValueError, r"of shape \(1,\)"),
    (lambda x: image.scale_and_translate(x, (2, 4), (0,), [1.0], [0.0], "linear"), ValueError, "axis 1 changes its length"),
    (lambda x: image.scale_and_translate(x, (2, 3), (0, 0), [1.0, 1.0], [0.0, 0.0], "linear"), ValueError, "repeated axis"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones((2, 3), "float32"))
