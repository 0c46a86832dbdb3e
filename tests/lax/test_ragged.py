"""Products of groups of rows against loops over the groups, under every transform; scaled products; errors."""

import numpy as np
import pytest

import funcml as fm
from funcml import lax
from tests.products import check_products

RNG = np.random.default_rng(0)
SIZES = np.array([2, 0, 3], np.int32)


def parts(sizes):
    ends = np.cumsum(sizes)
    return [slice(e - n, e) for e, n in zip(ends, sizes)]


def test_rows():
    x, w = RNG.normal(size=(6, 4)), RNG.normal(size=(3, 4, 2))
    want = np.zeros((6, 2))
    for i, rows in enumerate(parts(SIZES)):
        want[rows] = x[rows] @ w[i]
    np.testing.assert_allclose(lax.ragged_dot(x, w, SIZES), want, rtol=1e-12)
    check_products(lambda x, w: lax.ragged_dot(x, w, SIZES), x, w)
    sizes = np.array([[1, 1, 1], [6, 0, 0]], np.int32)
    found = fm.vmap(lambda n: lax.ragged_dot(x, w, n))(sizes)
    np.testing.assert_allclose(found, [lax.ragged_dot(x, w, n) for n in sizes], rtol=1e-12)


def test_summands():
    x, w = RNG.normal(size=(4, 6)), RNG.normal(size=(6, 2))
    numbers = lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
    want = [x[:, part] @ w[part] for part in parts(SIZES)]
    np.testing.assert_allclose(lax.ragged_dot_general(x, w, SIZES, numbers), want, rtol=1e-12)
    check_products(lambda x, w: lax.ragged_dot_general(x, w, SIZES, numbers), x, w, order=1)


def test_batches():
    x, w = RNG.normal(size=(3, 2, 4)), RNG.normal(size=(3, 4, 5))
    numbers = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())
    np.testing.assert_allclose(lax.ragged_dot_general(x, w, np.array([1, 2]), numbers), x @ w, rtol=1e-12)


@pytest.mark.parametrize("each", [False, True], ids=["sizes for all", "sizes for each"])
def test_a_batch_and_an_axis_before_the_ragged_one(each):
    numbers = lax.RaggedDotDimensionNumbers((((2,), (0,)), ((0,), (1,))), (3,), (2,))
    x, w = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(4, 2, 3))
    sizes = np.broadcast_to(np.array([1, 0, 4], np.int32), (2, 3, 3)).copy() if each else np.array([1, 0, 4], np.int32)
    if each:
        sizes[1, 2] = [2, 2, 0]
    found = lax.ragged_dot_general(x, w, sizes, numbers)
    want = np.zeros((2, 3, 5))
    for b in range(2):
        for a in range(3):
            for i, part in enumerate(parts(sizes[b, a] if each else sizes)):
                want[b, a, part] = x[b, a, :, part].T @ w[:, b, i]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_preferred_element_type():
    x, w = np.full((3, 4), 100, np.int8), np.full((1, 4, 2), 100, np.int8)
    found = lax.ragged_dot(x, w, np.array([2]), preferred_element_type=np.int32)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [[40000] * 2, [40000] * 2, [0, 0]])


def test_scaled_dot():
    x, w = RNG.normal(size=(2, 3, 8)).astype("f4"), RNG.normal(size=(2, 8, 5)).astype("f4")
    a, b = RNG.uniform(1, 2, (2, 3, 2)).astype("f4"), RNG.uniform(1, 2, (2, 4, 1)).astype("f4")
    want = (x * np.repeat(a, 4, 2)) @ (w * np.repeat(b, 2, 1))
    found = lax.scaled_dot(x, w, lhs_scale=a, rhs_scale=b, preferred_element_type=np.float32)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    assert lax.scaled_dot(x, w).dtype == fm.dtypes.bfloat16
    numbers = (((1,), (1,)), ((), ()))
    found = lax.scaled_dot(x[0], w[0].T, rhs_scale=b[0].T, dimension_numbers=numbers, preferred_element_type="f4")
    np.testing.assert_allclose(found, x[0] @ (w[0] * np.repeat(b[0], 2, 0)), rtol=1e-5, atol=1e-5)


X, W, ROWS = np.ones((6, 4)), np.ones((3, 4, 2)), (((1,), (1,)), ((), ()))


def general(ragged, group):
    return lax.ragged_dot_general(X, W, SIZES, lax.RaggedDotDimensionNumbers(ROWS, ragged, group))


@pytest.mark.parametrize("call, error, sentence", [
    (lambda: lax.ragged_dot(X, W, SIZES.astype(float)), TypeError, "group_sizes must be integers, got f64[3]"),
    (lambda: lax.ragged_dot(X, W, SIZES[:2]), TypeError, "expected group_sizes to have shape (3,), got (2,)"),
    (lambda: lax.ragged_dot(X, W[:, :3], SIZES), TypeError, "contracted axes of equal lengths"),
    (lambda: lax.ragged_dot(X, W, SIZES, group_offset=SIZES[:1]), NotImplementedError, "group_offset"),
    (lambda: lax.ragged_dot_general(X, W, SIZES, ROWS), TypeError, "expects RaggedDotDimensionNumbers"),
    (lambda: general((0, 1), (0,)), TypeError, "expects exactly one lhs ragged dimension"),
    (lambda: general((2,), (0,)), TypeError, "requires lhs ragged dimension numbers to be nonnegative"),
    (lambda: general((0,), ()), TypeError, "requires exactly one rhs group dimension"),
    (lambda: general((0,), (1,)), TypeError, "to be distinct from contracting and batch dimensions"),
    (lambda: lax.scaled_dot(X, W), TypeError, "two matrices, or two batches"),
    (lambda: lax.scaled_dot(X, X.T, lhs_scale=np.ones((6, 3))), TypeError, "must be multiples of its scale's, got f64[6,3]"),
])  # fmt: skip
def test_errors(call, error, sentence):
    with pytest.raises(error) as caught:
        call()
    assert sentence in str(caught.value)
