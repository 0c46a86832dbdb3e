"""Products in few bits: the quantisation is that of JAX, products and cotangents are near the plain ones."""

import jax
import numpy as np
import pytest
from jax._src.cudnn import scaled_matmul_stablehlo as theirs

import funcml as fm
from funcml import dtypes, nn
from funcml.nn import block_scaling

RNG = np.random.default_rng(0)
MODES = ("mxfp8", "nvfp4")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_quantisation_is_that_of_jax(mode, dtype):
    x = (RNG.normal(size=(2, 5, 64)) * 10.0 ** RNG.integers(-3, 3, (2, 5, 64))).astype(dtypes.canonical(dtype))
    scale = np.float32([0.5]) if mode == "nvfp4" else None
    ours, other = (m.get_scaled_dot_general_config(mode, scale) for m in (nn, jax.nn))
    kind = block_scaling._Format(ours.mode, ours.block_size, ours.data_type, ours.scale_type)
    found = block_scaling._quantized(fm.numpy.asarray(x), kind, None if scale is None else fm.numpy.asarray(scale))
    want = theirs.quantize(jax.numpy.asarray(x), other)
    for a, b in zip(found, want, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        if dtype == "float32":
            np.testing.assert_array_equal(a.astype(float), b.astype(float))
        else:  # computed in float32 here
            np.testing.assert_allclose(a.astype(float), b.astype(float), 0.5, 0.5)


def test_scaled_matmul():
    a, b = RNG.normal(size=(2, 3, 12)), RNG.normal(size=(2, 5, 12))
    a_scales, b_scales = RNG.random((2, 3, 4)), RNG.random((2, 5, 4))
    want = np.einsum("bmk,bnk->bmn", a * a_scales.repeat(3, -1), b * b_scales.repeat(3, -1))
    found = nn.scaled_matmul(a, b, a_scales, b_scales, "float64")
    np.testing.assert_allclose(found, want, 1e-12)
    narrow = [x.astype(dtypes.float8_e4m3fn) for x in (a, b)]
    powers = [np.full(s.shape, 2.0, np.float32).astype(dtypes.float8_e8m0fnu) for s in (a_scales, b_scales)]
    found = nn.scaled_matmul(*narrow, *powers)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 4 * np.einsum("bmk,bnk->bmn", *[x.astype(np.float32) for x in narrow]), 1e-5)


LAYOUTS = [((3, 32), (5, 32), (((1,), (1,)), ((), ()))), ((2, 32, 4, 6), (6, 5, 2, 32), (((1, 3), (3, 0)), ((0,), (2,))))]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("left, right, numbers", LAYOUTS)
def test_scaled_dot_general(mode, left, right, numbers):
    x, y = RNG.normal(size=left).astype(np.float32), RNG.normal(size=right).astype(np.float32)
    configs = [nn.get_scaled_dot_general_config(mode)] * 3

    def quantised(x, y):
        return nn.scaled_dot_general(x, y, numbers, configs=configs)

    def plain(x, y):
        return nn.scaled_dot_general(x, y, numbers)

    want = np.asarray(plain(x, y))
    found = np.asarray(quantised(x, y))
    assert found.shape == want.shape and 0 < np.abs(found - want).max() < 0.4 * np.sqrt(x.size)
    assert np.corrcoef(found.ravel(), want.ravel())[0, 1] > 0.98


@pytest.mark.parametrize("mode", MODES)
def test_cotangents(mode):
    x, y = RNG.normal(size=(2, 64, 32, 3)).astype(np.float32), RNG.normal(size=(96, 2, 64)).astype(np.float32)
    numbers, configs = (((1,), (2,)), ((0,), (1,))), [nn.get_scaled_dot_general_config(mode)] * 3
    ct = RNG.normal(size=(2, 32, 3, 96)).astype(np.float32)
    found = fm.grad(lambda x, y: (nn.scaled_dot_general(x, y, numbers, configs=configs) * ct).sum(), (0, 1))(x, y)
    want = np.einsum("bmfn,nbk->bkmf", ct, y), np.einsum("bmfn,bkmf->nbk", ct, x)
    for a, b in zip(found, want, strict=True):
        if mode == "nvfp4":
            np.testing.assert_allclose(a, b, 1e-4, 1e-4)
        assert a.shape == b.shape and np.corrcoef(np.ravel(a), np.ravel(b))[0, 1] > 0.99


def test_no_derivative_out_of_range():
    configs = [nn.get_scaled_dot_general_config("nvfp4", np.float32([1e-3]))] * 3
    x = np.full((1, 16), 1.0, np.float32)
    x[0, 3] = 1e6
    ones, numbers = np.ones((1, 16), np.float32), (((1,), (1,)), ((), ()))
    gradient = fm.grad(lambda x: nn.scaled_dot_general(x, ones, numbers, configs=configs).sum())
    assert gradient(x).tolist() == [[1.0] * 3 + [0.0] + [1.0] * 12]


def test_blocks_of_zeros():
    configs = [nn.get_scaled_dot_general_config("nvfp4")] * 3
    zero = np.zeros((2, 16), np.float32)
    assert not nn.scaled_dot_general(zero, zero, (((1,), (1,)), ((), ())), configs=configs).any()


A = np.zeros((2, 3, 12), np.float32)


@pytest.mark.parametrize("call, error, words", [
    (lambda: nn.scaled_matmul(A[0], A, A, A), ValueError, "expected arrays of 3 axes"),
    (lambda: nn.scaled_matmul(A, A[:1], A, A), ValueError, r"operands \[B, M, K\] and \[B, N, K\] with equal B and K"),
    (lambda: nn.scaled_matmul(A, A, A[..., :4], A[..., :3]), ValueError, r"expected scales \[B, M, K / n\]"),
    (lambda: nn.scaled_matmul(A, A, A[..., :5], A[..., :5]), ValueError, "K is no multiple of the number of scales"),
    (lambda: nn.get_scaled_dot_general_config("int3"), ValueError, "expected the mode 'mxfp8' or 'nvfp4', got 'int3'"),
    (lambda: nn.scaled_dot_general(A[0], A[0], (((1,), (1,)), ((), ())), configs=[nn.get_scaled_dot_general_config("mxfp8")] * 3),
     ValueError, "the contracted length 12 is no multiple of the block size 32 of mxfp8"),
    (lambda: nn.scaled_dot_general(A[0], A[0], (((1,), (1,)), ((), ())), "float64", [None] * 3), TypeError,
     "expected float32, bfloat16 or float16 as result, got f64"),
    (lambda: nn.scaled_dot_general(A[0], A[0], (((1,), (1,)), ((), ())), configs=[]), ValueError, "got 0 of them"),
])  # fmt: skip
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
