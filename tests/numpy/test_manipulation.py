"""Shapes, joining, cutting, padding, choosing and ordering, against NumPy."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml.core.config import numpy_rank_promotion
from tests.products import check_products

X = np.arange(24.0).reshape(2, 3, 4)
V = np.array([3.0, 1.0, 2.0, 1.0, 5.0])


def same(ours, want):
    if isinstance(want, tuple | list):
        assert len(ours) == len(want)
        for a, b in zip(ours, want, strict=True):
            same(a, b)
        return
    assert np.shape(ours) == np.shape(want)
    np.testing.assert_allclose(ours, want, rtol=1e-14)


CASES = {
    "reshape": lambda m: [m.reshape(X, (4, -1)), m.reshape(X, (6, 4), order="F"), m.ravel(X), m.ravel(X, order="F")],
    "axes": lambda m: [m.transpose(X), m.transpose(X, (1, 0, 2)), m.swapaxes(X, 0, -1), m.moveaxis(X, (0, 1), (-1, 0)),
                       m.rollaxis(X, 2, 1), m.matrix_transpose(X), m.permute_dims(X, (2, 0, 1))],
    "length 1": lambda m: [m.squeeze(X[:1]), m.squeeze(X[:, :1], 1), m.expand_dims(X, (0, -1)), m.expand_dims(V, 1)],
    "at least": lambda m: [m.atleast_1d(2.0), m.atleast_2d(V), m.atleast_3d(V), m.atleast_3d(X[0]), *m.atleast_2d(1.0, V)],
    "broadcast": lambda m: [m.broadcast_to(V, (2, 5)), *m.broadcast_arrays(V, V[:, None], 1.0)],
    "join": lambda m: [m.concatenate([X, 2 * X], 1), m.concatenate([X, V], None), m.stack([V, V], 1), m.concat([V, V]),
                       m.vstack([V, V]), m.hstack([V, V]), m.hstack([X, X]), m.dstack([V, V]),
                       m.column_stack([V, X[0].T[:5].ravel()[:5]]),
                       m.append(X, V), m.append(X, X, 0)],
    "cut": lambda m: [*m.split(X, 2, 2), *m.split(V, [1, 3]), *m.array_split(V, 3), *m.array_split(V, [1, 9, -1]),
                      *m.hsplit(X, 3), *m.vsplit(X, 2), *m.dsplit(X, 2), *m.split(V, [3, 1])],
    "turn": lambda m: [m.flip(X), m.flip(X, 1), m.fliplr(X), m.flipud(X), *[m.rot90(X, k, (0, 2)) for k in range(-1, 4)]],
    "roll": lambda m: [m.roll(V, 2), m.roll(X, 5), m.roll(X, -1, 1), m.roll(X, (1, 2), (0, 2)), m.roll(X, 1, (0, 1)),
                       m.roll(V, 12)],
    "tile": lambda m: [m.tile(V, 2), m.tile(V, (2, 1)), m.tile(X, (2, 1)), m.resize(V, (3, 4)), m.resize(V, 3), m.tile(2.0, 3)],
    "repeat": lambda m: [m.repeat(V, 2), m.repeat(X, 2, 1), m.repeat(V, [0, 1, 2, 0, 3]), m.repeat(X, [1, 2], 0)],
    "flat indices": lambda m: [*m.unravel_index(np.array([5, 23, 0]), (2, 3, 4)),
                               m.ravel_multi_index((np.array([1, 0]), np.array([2, 1])), (2, 3)),
                               m.ravel_multi_index((np.array([9, -1]), np.array([2, 1])), (2, 3), mode="wrap"),
                               m.ravel_multi_index((np.array([9, -1]), np.array([2, 1])), (2, 3), mode="clip")],
    "take": lambda m: [m.take(X, np.array([[1, -1], [0, 2]]), 1), m.take(X, np.array([3, 7])), m.take(V, 2),
                       m.take(V, np.array([9, -9]), mode="clip"), m.take(V, np.array([9, 7]), mode="wrap"),
                       m.take_along_axis(X, np.array([[[1]], [[2]]]), 1), m.compress(np.array([1, 0, 1]), X, 1)],
    "choose": lambda m: [m.where(X > 5, X, -1.0), m.where(V > 2), m.nonzero(X % 3), m.argwhere(X % 5 == 0), m.flatnonzero(V > 1),
                         m.select([V > 2, V > 1], [V, 2 * V], 7.0), m.extract(V > 1, V), m.argwhere(np.array(3.0))],
    "sort": lambda m: [m.sort(V), m.sort(X[:, ::-1], 1), m.sort(X, None), m.argsort(V, kind="stable"), m.lexsort((V, V % 2)),
                       m.sort(np.array([np.nan, 1, -np.nan, -np.inf])), m.partition(V, 2)[2], m.sort_complex(V)],
    "search": lambda m: [m.searchsorted(np.sort(V), np.array([0, 1, 1.5, 9]), side=s) for s in ("left", "right")]
    + [m.digitize(V, np.array([1.0, 2.0, 4.0]), r) for r in (False, True)] + [m.digitize(V, np.array([4.0, 2.0, 1.0]))],
    "unique": lambda m: [m.unique(V), *m.unique(V, True, True, True), m.unique(np.array([[1, 2], [1, 2]]), axis=0)],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy(name):
    same(CASES[name](jnp), CASES[name](np))


@pytest.mark.parametrize("mode, options", [
    ("constant", {}), ("constant", {"constant_values": ((1, 2), (3, 4))}), ("edge", {}), ("reflect", {}), ("symmetric", {}),
    ("wrap", {}), ("linear_ramp", {"end_values": 5}), ("maximum", {}), ("mean", {"stat_length": 2}), ("minimum", {}),
], ids=str)
def test_pad(mode, options):
    x = X[0]
    for width in ((2, 3), ((1, 0), (5, 7))):
        same(jnp.pad(x, width, mode, **options), np.pad(x, width, mode, **options))
    if mode in ("wrap", "mean", "linear_ramp"):
        check_products(lambda x: jnp.pad(x, ((1, 2), (0, 3)), mode, **options), x)


def test_bisection_finds_what_comparison_finds(rng):
    a = np.sort(np.concatenate([rng.normal(size=200), [np.nan] * 5, np.repeat(0.25, 20)]))
    v = np.concatenate([rng.normal(size=30), a[::17], [np.nan, np.inf, -np.inf, 0.25]])
    for side in ("left", "right"):
        same(jnp.searchsorted(a, v, side=side), np.searchsorted(a, v, side=side))
    same(jnp.searchsorted(np.array([1, 2, 3, np.nan, np.nan]), np.array([0, 2.5, 3])), [0, 2, 2])
    same(jnp.searchsorted(V, 2.0, sorter=np.argsort(V)), 2)


def test_descending_order_is_stable():
    same(jnp.argsort(np.array([1, 2, 1, 2]), descending=True), [1, 3, 0, 2])
    same(jnp.sort(V, descending=True), np.sort(V)[::-1])


def test_results_of_fixed_length_may_be_traced():
    def function(v, n, shift):
        return [
            *jnp.nonzero(v > 1.5, size=4, fill_value=-1), jnp.argwhere(v > 1.5, size=2),
            jnp.where(v < 0, size=1, fill_value=9)[0],
            *jnp.unique(v, True, True, True, size=5, fill_value=-1.0), jnp.unique(v, size=2),
            jnp.repeat(v, n, total_repeat_length=7), jnp.roll(v, shift), jnp.roll(X, shift, 2), jnp.compress(v > 1, v, size=4),
        ]  # fmt: skip

    ours = funcml.jit(function)(V, np.array([1, 0, 2, 1, 0]), 3)
    same(ours, [
        [0, 2, 4, -1], [[0], [2]], [9],
        [1, 2, 3, 5, -1], [1, 2, 0, 4, 1], [2, 0, 1, 0, 3], [2, 1, 1, 1, 0], [1, 2],
        [3, 2, 2, 1, 5, 5, 5], np.roll(V, 3), np.roll(X, 3, 2), [3, 2, 5, 0],
    ])  # fmt: skip


def test_out_of_bounds():
    with pytest.raises(IndexError, match="take: index 5 is out of bounds for an axis of length 5"):
        jnp.take(V, 5)
    same(funcml.jit(lambda i: jnp.take(V, i))(np.array([5, 0])), [np.nan, 3])
    same(jnp.take(V, np.array([5]), mode="fill", fill_value=-1), [-1])
    same(funcml.grad(lambda v: jnp.take(v, np.array([7]), mode="clip").sum())(V), [0, 0, 0, 0, 1])


@pytest.mark.parametrize("function", [
    lambda x, v: [jnp.concatenate([x[0], x[1]], 1), jnp.stack([v, v * v]), jnp.tile(v, 2), jnp.repeat(x, 2, 1), jnp.flip(x)],
    lambda x, v: [jnp.rot90(x), jnp.roll(x, 2, 1), jnp.reshape(x, (4, 6), order="F"), *jnp.split(v, [2]), *jnp.unstack(v)],
    lambda x, v: [jnp.sort(v), jnp.take(x, np.array([2, 0]), 1), jnp.where(x > 3.1, x, v[0]), jnp.select([v > 2.15], [v], 0.0)],
], ids=range(3))  # fmt: skip
def test_derivatives(function):
    check_products(function, X, V + 0.1 * np.arange(5))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.reshape(X, (5, -1)), ValueError, r"reshape of f64\[2,3,4\]: 24 elements do not fill the shape \(5, -1\)"),
    (lambda: jnp.reshape(X, (5, 5)), TypeError, "it has 24 elements"),
    (lambda: jnp.squeeze(X, 0), ValueError, "unless it has length 1"),
    (lambda: jnp.concatenate([X, V]), TypeError, "the shapes may differ along axis 0 only"),
    (lambda: jnp.concatenate([1.0, 2.0]), ValueError, "cannot be joined; use stack"),
    (lambda: jnp.stack([X, V]), ValueError, "stack expects arrays of one shape"),
    (lambda: jnp.stack([]), ValueError, "stack expects at least one array"),
    (lambda: jnp.split(V, 2), ValueError, "does not divide into 2 equal parts; try array_split"),
    (lambda: jnp.broadcast_to(V, (4,)), ValueError, "Incompatible shapes for broadcasting"),
    (lambda: jnp.transpose(X, (0, 0, 1)), ValueError, "repeated axis"),
    (lambda: jnp.moveaxis(X, 0, (1, 2)), ValueError, "must be as many"),
    (lambda: jnp.expand_dims(X, 7), ValueError, "axis 7 is out of bounds"),
    (lambda: jnp.pad(V, 1, "mirror"), NotImplementedError, "Unimplemented padding mode .* There are 'constant', 'linear_ramp'"),
    (lambda: jnp.pad(V, 1, "edge", constant_values=1), ValueError, "unsupported keyword arguments .* 'edge': constant_values"),
    (lambda: jnp.pad(V, ((1, 2), (3, 4))), ValueError, "must be a number, a pair, or 1 pairs"),
    (lambda: jnp.take(V, 0.5), TypeError, "take indices must be of integer type"),
    (lambda: jnp.where(V > 1, V), ValueError, "either the condition alone, or x and y too"),
    (lambda: funcml.jit(jnp.nonzero)(V), TypeError, "without `size`., which decides the shape of the result"),
    (lambda: funcml.jit(lambda v, n: jnp.repeat(v, n))(V, 2), TypeError, "repeats .without total_repeat_length."),
    (lambda: jnp.searchsorted(X, 1.0), ValueError, r"searchsorted expects a vector to search in, got f64\[2,3,4\]"),
    (lambda: jnp.sort(V, kind="bogo"), ValueError, "kind must be"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_unravel_index_of_a_traced_shape():
    index = np.array([0, 5, -1, 99])
    got = funcml.jit(jnp.unravel_index)(index, (2, 3))
    for g, w in zip(got, np.unravel_index([0, 5, 5, 5], (2, 3)), strict=True):
        np.testing.assert_array_equal(g, w)


def test_ravel_multi_index_dtype_and_modes():
    index = (jnp.array([1, 7], "int16"), jnp.array([2, -1], "int16"))
    for mode in ("clip", "wrap"):
        for order in ("C", "F"):
            want = np.ravel_multi_index(tuple(map(np.asarray, index)), (3, 4), mode, order)
            np.testing.assert_array_equal(jnp.ravel_multi_index(index, (3, 4), mode, order), want)
    assert jnp.ravel_multi_index(index, (3, 4), "ignore").tolist() == [6, 27]
    assert jnp.ravel_multi_index(index, (3, 4), "wrap").dtype == np.int16
    assert jnp.ravel_multi_index(index, (3, 4), "wrap", dtype="int64").dtype == np.int64
    with pytest.raises(ValueError, match="mode must be"):
        jnp.ravel_multi_index(index, (3, 4), "other")
    with pytest.raises(ValueError, match="order must be"):
        jnp.ravel_multi_index(index, (3, 4), "wrap", "A")


def test_take_along_axis_without_wrapping():
    x, i = jnp.array([10, 20, 30]), jnp.array([-1, -2])
    assert jnp.take_along_axis(x, i, 0, mode="clip").tolist() == [30, 20]
    assert jnp.take_along_axis(x, i, 0, mode="clip", wrap_negative_indices=False).tolist() == [10, 10]
    assert jnp.take_along_axis(x, jnp.array([1, 0]), 0, mode="one_hot").tolist() == [20, 10]
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        jnp.take_along_axis(x, i, 0, wrap_negative_indices=False)


def test_shapes_of_lists():
    assert jnp.shape([[1, 2]]) == (1, 2) and jnp.ndim([1]) == 1 and jnp.size([[1, 2]], 1) == 2


def test_lists_of_traced_numbers_are_joined():
    def f(x):
        joined = jnp.append(jnp.ones(2), [x, 2 * x]), jnp.concatenate([[x, x], [x]]), jnp.block([[x, 1.0], [x, x]])
        return sum(part.sum() for part in joined)

    assert funcml.grad(f)(1.0) == 9.0


def test_rank_promotion_concerns_arithmetic_only():
    x = np.ones((2, 3))
    with numpy_rank_promotion("raise"):
        assert jnp.where(x > 0, x[0], 0.0).shape == jnp.full((2, 3), x[0]).shape == jnp.broadcast_to(x[0], (2, 3)).shape
        with pytest.raises(ValueError, match="different ranks"):
            jnp.add(x, x[0])


def test_split_takes_whole_floats_as_numpy_does():
    assert [x.shape for x in jnp.split(np.ones(4), 2.0)] == [x.shape for x in np.split(np.ones(4), 2.0)] == [(2,), (2,)]
    with pytest.raises(TypeError, match="number of parts, got .*2.5"):
        jnp.split(np.ones(4), 2.5)


def test_split_at_traced_places_names_its_argument():
    with pytest.raises(TypeError, match="the split argument 'indices_or_sections'"):
        funcml.jit(lambda i: jnp.split(np.ones(4), [2, i]))(3)
