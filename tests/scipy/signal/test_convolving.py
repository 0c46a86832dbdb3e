"""Convolutions of arrays against SciPy."""

import numpy as np
import pytest
import scipy.signal

import funcml as fm
from funcml.scipy import signal
from tests.products import check_products

SHAPES = [
    ((5,), (3,)), ((3,), (5,)), ((4, 5), (2, 3)), ((2, 2), (3, 4)), ((4, 4), (4, 4)), ((3, 4, 2), (2, 2, 2)), ((1, 5), (1, 2)),
]


def pairs(rng, shapes, dtype="float64"):
    def sample(shape):
        x = rng.normal(size=shape)
        return (x + 1j * rng.normal(size=shape)) if dtype == "complex128" else x

    return [(sample(m), sample(n)) for m, n in shapes]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("method", ["direct", "fft"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_values(rng, name, method, dtype):
    given = pairs(rng, SHAPES, dtype)
    modes = ("full", "same", "valid")
    f = getattr(signal, name)
    found = fm.jit(lambda given: [[f(a, b, mode, method) for a, b in given] for mode in modes])(given)
    for mode, ys in zip(modes, found, strict=True):
        for (a, b), y in zip(given, ys, strict=True):
            np.testing.assert_allclose(y, getattr(scipy.signal, name)(a, b, mode, method), atol=1e-12)


def test_neither_operand_need_contain_the_other(rng):
    a, b = rng.normal(size=(5, 2)), rng.normal(size=(3, 4))
    for mode in ("full", "same"):
        np.testing.assert_allclose(signal.convolve(a, b, mode), scipy.signal.convolve(a, b, mode), atol=1e-13)


@pytest.mark.parametrize("boundary, fillvalue", [("fill", 0), ("fill", 1.5), ("wrap", 0), ("symm", 0)])
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_matrices(rng, name, boundary, fillvalue):
    given = pairs(rng, [((4, 5), (2, 3)), ((4, 5), (2, 2)), ((2, 3), (3, 4)), ((4, 4), (1, 1))])
    modes = ("full", "same", "valid")
    f = getattr(signal, name)
    found = fm.jit(lambda given: [[f(a, b, mode, boundary, fillvalue) for a, b in given] for mode in modes])(given)
    for mode, ys in zip(modes, found, strict=True):
        for (a, b), y in zip(given, ys, strict=True):
            np.testing.assert_allclose(y, getattr(scipy.signal, name)(a, b, mode, boundary, fillvalue), atol=1e-12)


@pytest.mark.parametrize("axes", [None, 0, -1, (1,), (0, 2), (0, 1, 2)])
def test_transforms_over_some_axes(rng, axes):
    a, b = rng.normal(size=(4, 3, 5)), rng.normal(size=(4, 3, 5))
    wide = np.concatenate([b, b], 2)[..., :7] if axes in (-1, None) else b
    for mode in ("full", "same", "valid"):
        want = scipy.signal.fftconvolve(a, wide, mode, axes)
        np.testing.assert_allclose(signal.fftconvolve(a, wide, mode, axes), want, atol=1e-12)
    np.testing.assert_allclose(signal.fftconvolve(a, b[:1], axes=2), scipy.signal.fftconvolve(a, b[:1], axes=2), atol=1e-12)


@pytest.mark.parametrize("dtype, expected", [
    ("int32", "float32"), ("float16", "float16"), ("float32", "float32"), ("complex64", "complex64"), ("bool", "float32"),
])
def test_dtypes(dtype, expected):
    x = np.array([1, 0, 1]).astype(dtype)
    for found in (signal.convolve(x, x), signal.fftconvolve(x, x), signal.correlate(x, x)):
        assert found.dtype == expected
        np.testing.assert_allclose(np.asarray(found).astype(complex), [1, 0, 2, 0, 1], atol=1e-6)


def test_products(rng):
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(2, 2))
    check_products(lambda a, b: signal.convolve(a, b, "same"), a, b)
    check_products(lambda a, b: signal.correlate(a, b, method="fft"), a, b)
    check_products(lambda a, b: signal.correlate2d(a, b, "same", "symm"), a, b, order=1)
    z = a + 1j * rng.normal(size=(4, 3))
    check_products(lambda z: signal.fftconvolve(z, z, axes=0), z)


@pytest.mark.parametrize("call, words", [
    (lambda x: signal.convolve(x, x, "middle"), "mode must be one of"),
    (lambda x: signal.convolve(x, x[0]), r"operands of one rank, got f32\[2,3\] and f32\[3\]"),
    (lambda x: signal.convolve(x, x, method="slow"), "method must be 'auto', 'direct' or 'fft'"),
    (lambda x: signal.convolve(x, x[:0]), "that are not empty"),
    (lambda x: signal.convolve(x, x.T, "valid"), r"one operand must contain the other along every axis, got f32\[2,3\]"),
    (lambda x: signal.convolve2d(x[0], x[0]), r"two matrices, got f32\[3\]"),
    (lambda x: signal.convolve2d(x, x, boundary="reflect"), "boundary must be 'fill', 'wrap' or 'symm'"),
    (lambda x: signal.fftconvolve(x, x[:, :2], axes=0), "axis 1 is not among axes"),
    (lambda x: signal.fftconvolve(x, x[:0]), "that are not empty"),
])
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call(np.ones((2, 3), "float32"))
