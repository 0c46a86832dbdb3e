"""Bits, against NumPy."""

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes
from funcml.primitives import bits
from funcml.primitives.elementwise import mul
from tests.products import check_products

INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_counts_and_shifts(dtype):
    width, limits = 8 * np.dtype(dtype).itemsize, np.iinfo(dtype)
    x = np.array([0, 1, 5, limits.max, limits.min, limits.max - 3], dtype)
    x, k = (v.ravel() for v in np.meshgrid(x, np.array([0, 1, 3, width - 1, width, width + 1], dtype)))
    functions = [bits.shift_left, bits.shift_right_logical, bits.shift_right_arithmetic]
    counts, *shifts = fm.jit(lambda x, k: [(bits.population_count(x), bits.clz(x)), *[f(x, k) for f in functions]])(x, k)
    modulus = 1 << width
    raw = [int(v) % modulus for v in x]
    wrap = lambda values: np.array([v % modulus for v in values], f"uint{width}").view(dtype)
    np.testing.assert_array_equal(counts[0], [v.bit_count() for v in raw])
    np.testing.assert_array_equal(counts[1], [width - v.bit_length() for v in raw])
    np.testing.assert_array_equal(shifts[0], wrap([v << int(n) for v, n in zip(raw, k, strict=True)]))
    np.testing.assert_array_equal(shifts[1], wrap([v >> int(n) for v, n in zip(raw, k, strict=True)]))
    signed = [v - modulus if v >> (width - 1) else v for v in raw]
    np.testing.assert_array_equal(shifts[2], wrap([v >> int(n) for v, n in zip(signed, k, strict=True)]))


def test_bitcast_convert_is_numpys_view():
    x = np.array([[1.5, -2], [0, np.inf]], np.float32)
    for target in (np.int32, np.uint32, np.uint16, np.float16, dtypes.bfloat16, np.uint8):
        target = np.dtype(target)
        wide = x.view(target).reshape(*x.shape, -1) if target.itemsize < 4 else x.view(target)
        y = bits.bitcast_convert(x, target)
        np.testing.assert_array_equal(np.asarray(y), wide)
        np.testing.assert_array_equal(bits.bitcast_convert(y, np.dtype(np.float32)), x)
    np.testing.assert_array_equal(bits.bitcast_convert(x, np.dtype(np.float64)), x.view(np.float64)[:, 0])
    assert bits.bitcast_convert(x, x.dtype) is x


def test_products_of_bits(rng):
    x = rng.normal(size=(3, 2, 4))
    n = rng.integers(0, 100, (3, 2, 4)).astype(np.int32)
    check_products(lambda n: [bits.clz(n), bits.population_count(n), bits.shift_left(n, 2)], n)
    check_products(
        lambda x: [bits.bitcast_convert(x, dtypes.uint16), bits.bitcast_convert(x, dtypes.int64), mul(x, x)],
        x,
        products=("jit", "vmap", "vjp"),
    )
    check_products(lambda n: [bits.bitcast_convert(bits.bitcast_convert(n, dtypes.uint8), dtypes.int32)], n)
    check_products(lambda x: bits.reduce_precision(mul(x, x), 11, 52), x)


def test_reduce_precision_rounds():
    x = np.array([1.0, 1 + 2**-12, 65504 * 1.1, 3.14159, -1e-9], np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(bits.reduce_precision(x, 5, 10), np.where(np.abs(x) < 6e-5, 0, x.astype(np.float16)))
    np.testing.assert_array_equal(bits.reduce_precision(x, 8, 7), x.astype(dtypes.bfloat16).astype(np.float32))
    y, t = fm.jvp(lambda x: bits.reduce_precision(x, 8, 7), (x,), (x,))
    np.testing.assert_array_equal(t, y)


def test_errors_say_what_came():
    x = np.ones((2, 3), np.float32)
    for call, error, words in [
        (lambda: bits.clz(x), TypeError, r"clz expects integers, got f32\[2,3\]"),
        (lambda: bits.bitcast_convert(x, dtypes.float64), TypeError, r"2 elements of f32\[2,3\] make one f64, so the last"),
        (lambda: bits.bitcast_convert(x, dtypes.bool_), TypeError, r"f32\[2,3\] and bool do not share a layout of bits"),
        (lambda: bits.bitcast_convert(x, dtypes.complex64), TypeError, r"cannot become c64; cast real and imag"),
        (lambda: bits.reduce_precision(x, 0, 3), ValueError, r"expected exponent_bits >= 1 and mantissa_bits >= 0, got 0 and 3"),
    ]:
        with pytest.raises(error, match=words):
            call()
