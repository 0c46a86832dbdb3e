"""Convolutions and correlations of vectors against NumPy."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from tests.products import check_products

LENGTHS = [(1, 1), (1, 4), (5, 2), (2, 5), (4, 4), (6, 3), (3, 6)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_values(rng, name, mode, dtype):
    f = getattr(jnp, name)
    pairs = [tuple((rng.normal(size=k) + 1j * rng.normal(size=k)).astype(dtype) for k in mn) if dtype == "complex128"
             else tuple(rng.normal(size=k) for k in mn) for mn in LENGTHS]
    found = fm.jit(lambda pairs: [f(a, v, mode) for a, v in pairs])(pairs)
    for (a, v), y in zip(pairs, found, strict=True):
        want = getattr(np, name)(a, v, mode)
        assert y.dtype == want.dtype
        np.testing.assert_allclose(y, want, atol=1e-13)


def test_the_usual_modes(rng):
    a, v = rng.normal(size=5), rng.normal(size=3)
    np.testing.assert_allclose(jnp.convolve(a, v), np.convolve(a, v))
    np.testing.assert_allclose(jnp.correlate(a, v), np.correlate(a, v))


@pytest.mark.parametrize("dtype, preferred, expected", [
    ("int32", None, "float32"), ("int64", None, "float64"), ("float16", None, "float16"), ("bfloat16", "float32", "float32"),
    ("int8", "int32", "int32"), ("int32", "int32", "int32"), ("float32", None, "float32"), ("bool", None, "float32"),
])
def test_dtypes(dtype, preferred, expected):
    x = jnp.array([1, 0, 1], dtype)
    found = jnp.convolve(x, x, preferred_element_type=preferred)
    assert found.dtype == expected
    np.testing.assert_array_equal(np.asarray(found, "float32"), [1, 0, 2, 0, 1])


def test_a_float64_operand_beside_a_narrower_one():
    assert jnp.convolve(np.ones(3, "float32"), np.ones(2)).dtype == "float64"


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_products(rng, mode):
    a, v = rng.normal(size=5), rng.normal(size=3)
    check_products(lambda a, v: jnp.convolve(a, v, mode), a, v)
    z = v + 1j * rng.normal(size=3)
    check_products(lambda z, a: jnp.correlate(z, a, mode), z, a.astype("complex128"))


def test_a_polynomial_that_is_infinite_at_its_end():
    x = np.array([1.0, np.inf])
    np.testing.assert_array_equal(jnp.convolve(x, np.array([1.0, 2.0])), [1, np.inf, np.inf])


@pytest.mark.parametrize("call, words", [
    (lambda x: jnp.convolve(x, x, "middle"), "mode must be one of 'full', 'same', 'valid', got 'middle'"),
    (lambda x: jnp.convolve(x[None], x), r"expects two vectors, got f32\[1,3\] and f32\[3\]; scipy.signal.convolve"),
    (lambda x: jnp.correlate(x, x[:0]), r"that are not empty, got f32\[3\] and f32\[0\]"),
])
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call(np.ones(3, "float32"))
