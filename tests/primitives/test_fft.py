"""The four transforms against NumPy, their transposes as matrices, and their products with the transforms of programs."""

import numpy as np
import pytest

import funcml as fm
from funcml import lax
from funcml.core.avals import shaped
from funcml.core.tracing import trace
from funcml.lowering.emit import to_stablehlo
from funcml.primitives.fft import FftType, fft
from tests.products import check_products

NUMPY = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}


def signal(rng, fft_type, shape, dtype):
    """An operand of which `shape` is the longer side."""
    if fft_type == "RFFT":
        return rng.normal(size=shape).astype(dtype)
    if fft_type == "IRFFT":
        shape = (*shape[:-1], shape[-1] // 2 + 1)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.result_type(dtype, np.complex64))


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("lengths", [(8,), (7,), (1,), (2,), (3, 4), (4, 3), (2, 3, 5), (2, 3, 2, 4), (2, 2, 3, 2, 3, 3)])
@pytest.mark.parametrize("fft_type", NUMPY)
def test_values(rng, fft_type, lengths, dtype, rtol):
    x = signal(rng, fft_type, (2, *lengths), dtype)
    axes = tuple(range(1, x.ndim))
    s = {"s": lengths} if fft_type == "IRFFT" else {}
    found = lax.fft(x, fft_type, lengths)
    want = NUMPY[fft_type](x, axes=axes, **s)
    assert found.shape == want.shape
    assert found.dtype == (np.dtype(dtype) if fft_type == "IRFFT" else np.result_type(dtype, np.complex64))
    np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol * np.abs(want).max())


@pytest.mark.parametrize("lengths", [(6,), (5,), (1,), (3, 4), (2, 3, 3), (2, 2, 2, 3)])
@pytest.mark.parametrize("fft_type", [FftType.RFFT, FftType.IRFFT, FftType.FFT])
def test_products(rng, fft_type, lengths):
    x = signal(rng, fft_type.name, (2, *lengths), "float64")
    check_products(lambda x: fft(x, fft_type, lengths), x, order=1)


def test_products_of_what_is_not_linear(rng):
    x = rng.normal(size=(3, 6))
    check_products(lambda x: lax.abs(fft(x, FftType.RFFT, (6,))) ** 2 * x[:, :4], x)
    z = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    check_products(lambda z: fft(z * z, FftType.IRFFT, (2, 7)) ** 2, z)


def as_matrix(f, x):
    """The matrix of a map that is linear over the reals, between real and imaginary parts."""
    def parts(z):
        return np.concatenate([np.real(z).ravel(), np.imag(z).ravel()])

    columns = []
    for unit in (1, 1j) if np.iscomplexobj(x) else (1,):
        for i in range(x.size):
            e = np.zeros(x.size, x.dtype)
            e[i] = unit
            columns.append(parts(np.asarray(f(e.reshape(x.shape)))))
    return np.stack(columns, 1)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("fft_type", FftType)
def test_the_transpose_is_that_of_the_matrix(rng, fft_type, n):
    x = signal(rng, fft_type.name, (n,), "float64")
    forward = lambda x: fft(x, fft_type, (n,))
    y = np.asarray(forward(x))
    backward = lambda ct: fm.linear_transpose(forward, x)(ct)[0]
    # a cotangent acts on a tangent by the real part of the product without conjugation: the imaginary parts change sign
    sign_in = np.repeat([1, -1], x.size)[: 2 * x.size if np.iscomplexobj(x) else x.size]
    sign_out = np.repeat([1, -1], y.size)[: 2 * y.size if np.iscomplexobj(y) else y.size]
    m = as_matrix(forward, x)[: len(sign_out)]
    mt = as_matrix(backward, y)[: len(sign_in)]
    np.testing.assert_allclose(mt, sign_in[:, None] * m.T * sign_out, atol=1e-14)


@pytest.mark.parametrize("fft_type, shape, lengths", [
    (FftType.FFT, (0,), (0,)), (FftType.FFT, (0, 4), (4,)), (FftType.RFFT, (0,), (0,)), (FftType.RFFT, (0, 3), (3,)),
    (FftType.IRFFT, (0, 3), (4,)), (FftType.IRFFT, (0, 3), (0, 4)), (FftType.IRFFT, (1,), (0,)),
])
def test_empty(fft_type, shape, lengths):
    out = fft(np.zeros(shape, "float32" if fft_type is FftType.RFFT else "complex64"), fft_type, lengths)
    last = lengths[-1] // 2 + 1 if fft_type is FftType.RFFT else lengths[-1]
    assert out.shape == (*shape[: len(shape) - len(lengths)], *lengths[:-1], last)
    assert not np.any(out)


def test_the_mapped_axis_may_stand_anywhere(rng):
    x = rng.normal(size=(3, 4, 5)).astype("complex128")
    for axis in range(3):
        found = fm.vmap(lambda x: fft(x, FftType.FFT, (x.shape[-1],)), axis)(x)
        np.testing.assert_allclose(found, np.fft.fft(np.moveaxis(x, axis, 0)), atol=1e-13)


def test_a_gpu_gets_the_half_transform_for_one_axis():
    jaxpr, _ = trace(lambda z: [fft(z, FftType.IRFFT, (5, 6))], [shaped((2, 5, 4), np.dtype("complex64"))], "f")
    assert "type = IRFFT, length = [5, 6]" in to_stablehlo(jaxpr)
    lines = [line.strip() for line in to_stablehlo(jaxpr, platform="cuda").splitlines() if "stablehlo" in line]
    assert lines == [
        "%1 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<2x5x4xcomplex<f32>>) -> tensor<2x4x5xcomplex<f32>>",
        "%2 = stablehlo.fft %1, type = IFFT, length = [5] : (tensor<2x4x5xcomplex<f32>>) -> tensor<2x4x5xcomplex<f32>>",
        "%3 = stablehlo.transpose %2, dims = [0, 2, 1] : (tensor<2x4x5xcomplex<f32>>) -> tensor<2x5x4xcomplex<f32>>",
        "%4 = stablehlo.fft %3, type = IRFFT, length = [6] : (tensor<2x5x4xcomplex<f32>>) -> tensor<2x5x6xf32>",
    ]


@pytest.mark.parametrize("call, words", [
    (lambda: lax.fft(np.ones((14, 15)), "FFT", (4, 5, 6)), r"as fft_lengths \(4, 5, 6\), got c128\[14,15\]"),
    (lambda: lax.fft(np.ones((14, 15)), "FFT", (17,)), r"must be equal to fft_lengths \(17,\), got c128\[14,15\]"),
    (lambda: lax.fft(np.ones((2, 14, 15)), "RFFT", (14, 12)), r"lengths \(14, 12\), got f64\[2,14,15\]"),
    (lambda: lax.fft(np.ones((2, 14, 15)), "IRFFT", (13, 15)), r"equal to \(13, 8\), for fft_lengths \(13, 15\), got c128"),
    (lambda: lax.fft(np.ones(4, "float16"), "RFFT", (4,)), r"float32 or float64, got f16\[4\]"),
    (lambda: lax.fft(np.ones(4, "complex64"), "RFFT", (4,)), r"RFFT takes real numbers only, got c64\[4\]; use FFT"),
    (lambda: lax.fft(np.ones(4), "DFT", (4,)), "must be one of FFT, IFFT, RFFT, IRFFT, got 'DFT'"),
])
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_fft_type_must_be_a_name():
    with pytest.raises(TypeError, match="FftType or its name"):
        lax.fft(np.ones(4), 3.5, (4,))
