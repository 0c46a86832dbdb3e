"""`lax`: JAX's names, strict operands, and values against NumPy."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml import lax
from tests.products import check_products

X = np.arange(24.0).reshape(2, 3, 4) / 7 - 1


def same(ours, want):
    if isinstance(want, tuple | list):
        for a, b in zip(ours, want, strict=True):
            same(a, b)
        return
    assert np.shape(ours) == np.shape(want)
    np.testing.assert_allclose(ours, want, rtol=1e-13)


def test_elementwise():
    x = X.ravel()
    with np.errstate(all="ignore"):
        pairs = [
            (lax.add(x, 2.0), x + 2), (lax.sub(1.0, x), 1 - x), (lax.rem(x, 0.3), np.fmod(x, 0.3)), (lax.max(x, 0.0),
            np.maximum(x, 0)),
            (lax.integer_pow(x, 3), x**3), (lax.pow(lax.abs(x), 0.5), abs(x) ** 0.5), (lax.pow(x, 2), x**2),
            (lax.rsqrt(lax.exp(x)), np.exp(-x / 2)), (lax.logistic(x), 1 / (1 + np.exp(-x))), (lax.reciprocal(x + 5),
            1 / (x + 5)),
            (lax.clamp(-0.5, x, 0.5), np.clip(x, -0.5, 0.5)), (lax.round(x), np.trunc(x + np.copysign(0.5, x))), (lax.eq(x, x),
            x == x),
            (lax.select(x > 0, x, -x), abs(x)), (lax.select_n(x > 0, -x, x), abs(x)), (lax.complex(x, x), x + 1j * x),
            (lax.square(x), x * x), (lax.div(np.int32(-7), np.int32(2)), -3), (lax.bitwise_and(np.int32(6), 3), 2),
            (lax.convert_element_type(x, int), x.astype(int)), (lax.is_finite(x), np.isfinite(x)), (lax.conj(x), x + 0j),
            (lax.add(np.ones((2, 1)), np.ones((1, 3))), np.full((2, 3), 2)), (lax.add(x, jnp.float64(1)), x + 1),
            (lax.shift_right_logical(np.int32(-1), 31), 1), (lax.population_count(np.uint8(7)), 3),
            (lax.reduce_precision(x, 11, 52), x),
        ]  # fmt: skip
    for ours, want in pairs:
        assert isinstance(ours, funcml.Array)
        same(ours, want)


def test_shapes():
    i = np.arange(6)
    for ours, want in [
        (lax.broadcast(X, (2,)), np.broadcast_to(X, (2, *X.shape))), (lax.reshape(X, (6, 4)), X.reshape(6, 4)),
        (lax.reshape(X, (4, 6), (2, 0, 1)), X.transpose(2, 0, 1).reshape(4, 6)), (lax.transpose(X, (2, 1, 0)), X.T),
        (lax.expand_dims(X, (0, 2)), X[None, :, None]), (lax.squeeze(X[:1], (0,)), X[0]), (lax.collapse(X, 1), X.reshape(2, 12)),
        (lax.collapse(X, 0, 2), X.reshape(6, 4)), (lax.rev(X, (0, 2)), X[::-1, :, ::-1]),
        (lax.broadcast_in_dim(i, (2, 6), (1,)), np.broadcast_to(i, (2, 6))), (lax.broadcast_to_rank(i, 3), i[None, None]),
        (lax.pad(i, 9, ((1, 1, 1),)), [9, 0, 9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9]), (lax.concatenate([X, X], 1),
        np.concatenate([X, X], 1)),
        (lax.slice(X, (0, 1, 0), (2, 3, 4), (1, 1, 2)), X[:, 1:3, ::2]), (lax.slice_in_dim(X, -2, None, axis=1), X[:, -2:]),
        (lax.index_in_dim(X, -1, 2), X[..., -1:]), (lax.index_in_dim(X, 1, 0, keepdims=False), X[1]),
        (lax.iota("int32", 3), [0, 1, 2]), (lax.broadcasted_iota("float32", (2, 3), 1), [[0, 1, 2]] * 2), (lax.full((2,), 7),
        [7, 7]),
        (lax.full_like(X, 1.5), np.full_like(X, 1.5)), (lax.zeros_like_array(i), i * 0), (lax.split(X, (1, 2), 1), [X[:, :1],
        X[:, 1:]]),
        (lax.stack([i, i], 1), np.stack([i, i], 1)), (lax.unstack(X, 1), [X[:, k] for k in range(3)]), (lax.tile(X[0], (2, 1)),
        np.tile(X[0], (2, 1))),
    ]:  # fmt: skip
        same(ours, want)
    assert lax.broadcast_shapes((2, 1), (1, 3)) == (2, 3)


def test_windows_at_run_time():
    def function(x, i):
        return [
            lax.dynamic_slice(x, (0, i, 0), (2, 2, 1)), lax.dynamic_slice_in_dim(x, i, 2, 1), lax.dynamic_index_in_dim(x, i, 1),
            lax.dynamic_index_in_dim(x, i, 1, keepdims=False), lax.dynamic_update_slice(x, x[:, :1] * 0, (0, i, 0)),
            lax.dynamic_update_slice_in_dim(x, x[:, :1] * 0, i, 1), lax.dynamic_update_index_in_dim(x, x[:, 0] * 0, i, 1),
            lax.index_take(x, (np.array([1, 0]), np.array([2, 2])), (0, 1)),
        ]  # fmt: skip

    zeroed = X.copy()
    zeroed[:, 1] = 0
    want = [X[:, 1:3, :1], X[:, 1:3], X[:, 1:2], X[:, 1], zeroed, zeroed, zeroed, X[[1, 0], [2, 2]]]
    same(function(jnp.asarray(X), 1), want)
    same(funcml.jit(function)(X, 1), want)
    same(lax.dynamic_slice(np.arange(10), (9,), (4,)), [6, 7, 8, 9])
    check_products(lambda x: function(x, 1), X, products=("jit", "jvp", "vjp"))


def test_gather_and_scatter():
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    same(lax.gather(X[0], np.array([[2], [0]]), numbers, (1, 4), mode=lax.GatherScatterMode.CLIP), X[0][[2, 0]])
    updates = lax.ScatterDimensionNumbers((), (0,), (0,))
    same(lax.scatter_add(np.zeros(3), np.array([[1], [1]]), np.array([2.0, 3.0]), updates), [0, 5, 0])
    same(lax.scatter(np.zeros(3), np.array([[2], [9]]), np.array([2.0, 3.0]), updates), [0, 0, 2])


def test_reductions():
    for name, want in [("sum", X.sum((0, 2))), ("prod", X.prod((0, 2))), ("max", X.max((0, 2))), ("min", X.min((0, 2)))]:
        same(getattr(lax, f"reduce_{name}")(X, (0, 2)), want)
    bits = np.array([[6, 3], [5, 7]])
    for name, ufunc in [("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)]:
        same(getattr(lax, f"reduce_{name}")(bits, (1,)), ufunc.reduce(bits, 1))
    assert lax.reduce_sum(np.ones(3, np.int8), (0,)).dtype == np.int8
    same(lax.argmax(X, 1, "int32"), X.argmax(1))
    same([lax.cumsum(X, 1), lax.cumprod(X, 2, reverse=True)], [X.cumsum(1), X[..., ::-1].cumprod(2)[..., ::-1]])
    same([lax.cummax(X, 1), lax.cummin(X)], [np.maximum.accumulate(X, 1), np.minimum.accumulate(X, 0)])
    same(lax.cumlogsumexp(X, 2), np.logaddexp.accumulate(X, 2))


def test_reduce_by_any_associative_function():
    same(lax.reduce(X, 0.0, lax.add, (0, 2)), X.sum((0, 2)))
    same(lax.reduce(X, 0.0, lambda a, b: a + b, (0, 1, 2)), X.sum())
    same(lax.reduce(X, 1.0, lambda a, b: a * b, (1,)), X.prod(1))
    index = np.broadcast_to(np.arange(4), X.shape)

    def first_greatest(a, b):
        (x, i), (y, j) = a, b
        left = (x > y) | ((x == y) & (i < j))
        return jnp.where(left, x, y), jnp.where(left, i, j)

    value, place = lax.reduce((X % 1.1, index), (-np.inf, 99), first_greatest, (2,))
    same([value, place], [(X % 1.1).max(2), (X % 1.1).argmax(2)])
    check_products(lambda x: lax.reduce(x, 0.5, jnp.logaddexp, (0,)), X[:, 0, 0], products=("jit", "jvp", "vjp"))


def test_sorting():
    keys, values = np.array([3, 1, 2]), np.array([0.0, 1.0, 2.0])
    same(lax.sort_key_val(keys, values), ([1, 2, 3], [1, 2, 0]))
    same(lax.sort((keys % 2, keys, values), num_keys=2), ([0, 1, 1], [2, 1, 3], [2, 1, 0]))
    same(lax.sort(X, 1), np.sort(X, 1))
    same(lax.top_k(values, 2), ([2, 1], [2, 1]))


def test_products():
    a, b = X, X.transpose(0, 2, 1)
    same(lax.batch_matmul(a, b), a @ b)
    same(lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), precision=lax.Precision.HIGHEST), a @ b)
    same([lax.dot(a[0], b[0]), lax.dot(a[0, 0], a[1, 0])], [a[0] @ b[0], a[0, 0] @ a[1, 0]])
    assert lax.dot(np.ones(2, np.int8), np.ones(2, np.int8), preferred_element_type=np.int32).dtype == np.int32


def test_identities():
    assert funcml.grad(lambda x: x * lax.stop_gradient({"a": x})["a"])(3.0) == 3.0
    assert lax.stop_gradient((1, 2.0))[0] == 1
    same(lax.optimization_barrier((X, 2.0))[0], X)


LONG = funcml.ShapeDtypeStruct((2**31,), np.int8)


@pytest.mark.parametrize("call, error, words", [
    (lambda: lax.add(jnp.arange(3), 1.5), TypeError, "to have the same dtypes, got i32, f32; convert them, or use"),
    (lambda: lax.add(1, 1.0), TypeError, "lax.add requires arguments to have the same dtypes, got i32, f32"),
    (lambda: lax.add(np.ones(3), np.ones(3, np.float32)), TypeError, "add requires arguments to have the same dtypes"),
    (lambda: lax.add(X, X[0]), TypeError, r"of one rank, and of equal lengths or length 1, got f64\[2,3,4\]"),
    (lambda: lax.sin(1), TypeError, r"sin expects floats or complex numbers, got i32\[\]"),
    (lambda: lax.sin([1.0]), TypeError, "lax.sin expects arrays or numbers, got .* of type list"),
    (lambda: lax.clamp(0, X, 2j), TypeError, "lax.clamp: max must have the dtype of x"),
    (lambda: lax.transpose(X, (0, 1)), TypeError, "permutation must order its 3 axes"),
    (lambda: lax.broadcast_in_dim(np.ones((2, 2)), (2, 2), (0, 0)), TypeError, "must not contain duplicates"),
    (lambda: lax.dot(X, X), TypeError, "lax.dot expects vectors or matrices"),
    (lambda: lax.pad(np.arange(3), np.float32(1), ((1, 1, 0),)), TypeError, r"of the dtype of i64\[3\], got f32\[\]"),
    (lambda: lax.reduce(X, (0.0, 1.0), lax.add, (0,)), ValueError, "an initial value for each operand, got 2 for 1"),
    (lambda: lax.index_in_dim(X, 5), IndexError, "index 5 is out of bounds for axis 0"),
    (lambda: lax.dynamic_update_slice(X, np.ones((1, 1, 1), int), (0, 0, 0)), TypeError, "an update of the dtype of"),
    (lambda: lax.concatenate([], 0), ValueError, "a sequence of at least one array"),
    (lambda: lax.pad(np.ones(3), np.ones(3), ((0, 0, 0),)), ValueError, r"padding_value must be a scalar, got f64\[3\]"),
    (lambda: lax.pad(np.ones(3), 0.0, ((0, 0, 0),) * 2), ValueError, "for each of its 1 axes"),
    (lambda: lax.pad(np.ones(3), 0.0, ((0, 0, -1),)), ValueError, "interior padding in padding_config must be nonnegative"),
    (lambda: lax.pad(np.ones(3), 0.0, ((-4, 0, 0),)), ValueError, "Dimension size after padding is not at least 0"),
    (lambda: lax.split(np.ones(3), (4, -1)), ValueError, "Sizes passed to split must be nonnegative"),
    (lambda: lax.split(np.ones(3), (2,)), ValueError, "Sum of sizes 2 must be equal to the length 3 of axis 0"),
    (lambda: funcml.eval_shape(lambda x: lax.top_k(x, 1), LONG), ValueError, "int32 indices, which will overflow along axis 0"),
    (lambda: lax.collapse(X, 2, 1), ValueError, "the axes 2 to 1 are none"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_broadcast_in_dim_may_exchange_axes():
    x = np.arange(3.0).reshape(3, 1)
    np.testing.assert_array_equal(lax.broadcast_in_dim(x, (2, 3), (1, 0)), np.broadcast_to(x.T, (2, 3)))


def test_dtype_of_values_and_of_dtypes():
    for x in (np.int32, "int32", np.dtype("int32"), np.ones(2, np.int32), 3):
        assert lax.dtype(x) == np.int32
    with pytest.raises(TypeError, match="lax.dtype expects arrays or numbers"):
        lax.dtype(None)
