"""Cosine transforms against SciPy's."""

import numpy as np
import pytest
import scipy.fft

import funcml as fm
import funcml.numpy as jnp
from funcml.scipy import fft
from tests.products import check_products

NORMS = (None, "backward", "ortho", "forward")


@pytest.mark.parametrize("n, axis", [(None, -1), (2, 0), (3, 1), (9, -2), (12, 1)])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "idct"])
def test_one_axis(rng, name, type, n, axis):
    x = rng.normal(size=(5, 6))
    found = fm.jit(lambda x: [getattr(fft, name)(x, type, n, axis, norm) for norm in NORMS])(x)
    for norm, y in zip(NORMS, found, strict=True):
        np.testing.assert_allclose(y, getattr(scipy.fft, name)(x, type, n, axis, norm), atol=1e-12)


@pytest.mark.parametrize("type", [2, 3, 4])
def test_lengths_from_one(rng, type):
    for n in range(1, 6):
        x = rng.normal(size=n)
        np.testing.assert_allclose(fft.dct(x, type), scipy.fft.dct(x, type), atol=1e-13)
        np.testing.assert_allclose(fft.idct(fft.dct(x, type), type), x, atol=1e-13)


@pytest.mark.parametrize("s, axes", [
    (None, None), ((4, 3), None), (None, (0, 2)), ((7,), (1,)), ((2, 3, 5), (2, 0, 1)), (None, ()),
])
@pytest.mark.parametrize("name", ["dctn", "idctn"])
def test_several_axes(rng, name, s, axes):
    x = rng.normal(size=(3, 4, 5))
    for norm in (None, "ortho"):
        want = getattr(scipy.fft, name)(x, 2, s, axes, norm)
        np.testing.assert_allclose(getattr(fft, name)(x, 2, s, axes, norm), want, atol=1e-12)


@pytest.mark.parametrize("dtype, expected", [
    ("float16", "float32"), ("float32", "float32"), ("int32", "float32"), ("bool", "float32"), ("float64", "float64"),
    ("complex64", "complex64"), ("complex128", "complex128"),
])
def test_dtypes(rng, dtype, expected):
    x = (10 * rng.normal(size=6) * (1 + 1j if "complex" in dtype else 1)).astype(dtype)
    found = fft.dct(x)
    assert found.dtype == expected
    np.testing.assert_allclose(found, scipy.fft.dct(x.astype(expected)), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_products(rng, type):
    check_products(lambda x: fft.dct(x, type, norm="ortho") ** 2, rng.normal(size=5))
    check_products(lambda x: fft.idctn(x, type, s=(4, 3)), rng.normal(size=(3, 5)), order=1)


def test_jit_is_eager_and_empty_batches(rng):
    x = rng.normal(size=(2, 8)).astype("float32")
    np.testing.assert_array_equal(fm.jit(fft.dct)(x), fft.dct(x))
    assert fft.dct(jnp.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: fft.dct(x, 5), NotImplementedError, "type must be 1, 2, 3 or 4, got 5"),
    (lambda x: fft.dct(x, norm="unit"), ValueError, "norm must be None or one of"),
    (lambda x: fft.dct(x, n=0), ValueError, "a length must be positive"),
    (lambda x: fft.dct(x, 1, n=1), ValueError, "type 1 needs at least 2 elements"),
    (lambda x: fft.dct(x, axis=2), ValueError, "out of bounds"),
    (lambda x: fft.dctn(x, s=(2, 3, 4)), ValueError, r"at most x.ndim \(2\) elements, got 3: \(2, 3, 4\) for f64\[2,3\]"),
    (lambda x: fft.dctn(x, s=(2,), axes=(0, 1)), ValueError, "s has 1 lengths for 2 axes"),
])
def test_errors(rng, call, error, words):
    with pytest.raises(error, match=words):
        call(rng.normal(size=(2, 3)))
