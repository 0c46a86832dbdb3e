"""insert, delete, put, place, choose, piecewise, block and pad, against NumPy; and what they refuse."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from tests.products import check_products

X = np.arange(12.0).reshape(3, 4)
OBJECTS = [1, -1, 0, 3, slice(0, 3, 2), slice(None), np.array([0, 2]), np.array([2, 0, 2]), [1], np.array([], int)]


@pytest.mark.parametrize("obj", OBJECTS, ids=str)
@pytest.mark.parametrize("axis", [None, 1, -1])
def test_delete(obj, axis):
    np.testing.assert_array_equal(jnp.delete(X, obj, axis), np.delete(X, obj, axis))


def test_delete_by_mask_and_under_jit():
    mask = np.array([True, False, True, False])
    np.testing.assert_array_equal(jnp.delete(X, mask, 1), np.delete(X, mask, 1))
    remove = fm.jit(lambda x, i: jnp.delete(x, i, 1, assume_unique_indices=True))
    for obj in ([0, 3], [-1, 1], [2, 1, 0]):
        np.testing.assert_array_equal(remove(X, np.array(obj)), np.delete(X, obj, 1))


PLACES = [1, -1, 4, slice(0, 3, 2), np.array([0, 2]), np.array([3, 1, 1]), [1], np.array([-1, 0])]


@pytest.mark.parametrize("obj", PLACES, ids=str)
@pytest.mark.parametrize("axis", [None, 1])
def test_insert(obj, axis):
    count = np.arange(4)[obj].size if isinstance(obj, slice) else np.size(obj)
    values = [9.0, np.arange(count) + 0.5] + ([np.arange(3.0)[:, None]] if axis else [])
    for v in values:
        if axis and isinstance(obj, int) and np.ndim(v) == 2:
            v = v.ravel()
        np.testing.assert_array_equal(jnp.insert(X, obj, v, axis), np.insert(X, obj, v, axis))


def test_insert_at_traced_places():
    f = fm.jit(lambda x, i, v: jnp.insert(x, i, v, 1))
    np.testing.assert_array_equal(f(X, np.array([3, 1]), np.array([5.0, 6.0])), np.insert(X, [3, 1], [5.0, 6.0], 1))
    np.testing.assert_array_equal(f(X, 2, 7.0), np.insert(X, 2, 7.0, 1))


@pytest.mark.parametrize("mode", [None, "clip", "wrap"])
def test_put(mode):
    ind = np.array([0, 5, -2]) if mode != "clip" else np.array([0, 5, 40])
    want = X.copy()
    np.put(want, ind, [1.5, 2.5], "raise" if mode is None else mode)
    np.testing.assert_array_equal(jnp.put(X, ind, np.array([1.5, 2.5]), mode, inplace=False), want)


def test_place():
    for mask in (X % 3 == 0, X < 0, np.ones_like(X, bool)):
        want = X.copy()
        np.place(want, mask, [10.0, 20.0, 30.0])
        place = fm.jit(lambda x, m: jnp.place(x, m, np.array([10.0, 20.0, 30.0]), inplace=False))
        np.testing.assert_array_equal(place(X, mask), want)


def test_put_along_axis():
    i = np.array([[1], [3], [0]])
    want = X.copy()
    np.put_along_axis(want, i, -1.0, 1)
    np.testing.assert_array_equal(jnp.put_along_axis(X, i, -1.0, 1, inplace=False), want)
    want = X.copy()
    np.put_along_axis(want, np.array([[2, 0, 1, 1]]), np.arange(4.0), 0)
    got = fm.jit(lambda x, i: jnp.put_along_axis(x, i, np.arange(4.0), 0, inplace=False))(X, np.array([[2, 0, 1, 1]]))
    np.testing.assert_array_equal(got, want)
    want = X.copy()
    np.put_along_axis(want, np.array([3, 11]), 5.0, None)
    np.testing.assert_array_equal(jnp.put_along_axis(X, np.array([3, 11]), 5.0, None, inplace=False), want)


def test_choose():
    a, choices = np.array([[0, 2, 1, 0]]), [X, X[0] * 10, -X[:, :1]]
    for mode, index in (("raise", a), ("wrap", a * 5 - 4), ("clip", a * 5 - 4)):
        np.testing.assert_array_equal(jnp.choose(index, choices, mode=mode), np.choose(index, choices, mode=mode))
    got = fm.jit(lambda a, x: jnp.choose(a, x, mode="clip"))(np.array([2, 0, 1, 7]), X)
    np.testing.assert_array_equal(got, np.choose([2, 0, 1, 7], X, mode="clip"))


def test_piecewise():
    x = np.linspace(-2, 2, 9)
    conditions, functions = [x < 0, x > 1, x == 2], [lambda v: -v, lambda v, k=1: v**2 * k, 7.0]
    np.testing.assert_array_equal(jnp.piecewise(x, conditions, functions), np.piecewise(x, conditions, functions))
    more = [*functions, lambda v: v + 10]
    np.testing.assert_array_equal(fm.jit(lambda x: jnp.piecewise(x, conditions, more))(x), np.piecewise(x, conditions, more))
    ints, halves = np.arange(4), [lambda v: v * 0.5]
    np.testing.assert_array_equal(jnp.piecewise(ints, [ints > 1], halves), np.piecewise(ints, [ints > 1], halves))


def test_piecewise_takes_the_derivative_of_the_piece():
    f = lambda x: jnp.piecewise(x, [x > 0], [jnp.sqrt, 0.0]).sum()
    np.testing.assert_array_equal(fm.grad(f)(np.array([4.0, -1.0, 0.0])), [0.25, 0, 0])


@pytest.mark.parametrize("arrays", [
    [X, X], [[X], [X]], [[X[:, :1], X], [np.zeros((1, 5))]], X, 3.0, [1.0, 2.0], [[[X]], [[X]]], [X[0], 5.0],
], ids=["row", "column", "table", "array", "number", "numbers", "deep", "mixed"])  # fmt: skip
def test_block(arrays):
    np.testing.assert_array_equal(jnp.block(arrays), np.block(arrays))


@pytest.mark.parametrize("width", [2, (1, 5), ((0, 3), (9, 1))], ids=str)
@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_odd_reflection(width, mode, dtype):
    x = (X * 7 % 5).astype(dtype)
    for a in (x, x[:1], x[:, :1]):
        np.testing.assert_array_equal(jnp.pad(a, width, mode, reflect_type="odd"), np.pad(a, width, mode, reflect_type="odd"))


def test_odd_reflection_leaves_infinities_alone():
    x = np.array([np.inf, 1.0, 2.0])
    np.testing.assert_array_equal(jnp.pad(x, (0, 2), "reflect", reflect_type="odd"), [np.inf, 1, 2, 3, -np.inf])


def test_pad_with_medians_and_functions():
    for length in (None, 2, ((1, 2), (3, 1))):
        want = np.pad(X, ((1, 2), (0, 3)), "median", **({} if length is None else {"stat_length": length}))
        np.testing.assert_array_equal(jnp.pad(X, ((1, 2), (0, 3)), "median", stat_length=length), want)

    def theirs(vector, widths, axis, kwargs):
        vector[: widths[0]] = kwargs["low"] + axis
        vector[-widths[1] :] = 2.0

    def ours(vector, widths, axis, kwargs):
        return vector.at[: widths[0]].set(kwargs["low"] + axis).at[-widths[1] :].set(2.0)

    np.testing.assert_array_equal(jnp.pad(X, 2, ours, low=5.0), np.pad(X, 2, theirs, low=5.0))


def test_products():
    i = np.array([2, 0])
    check_products(lambda x, v: jnp.insert(x, i, v, 1), X, np.array([5.0, 6.0]))
    check_products(lambda x: jnp.delete(x, i, 1) ** 2, X, products=("jvp", "vjp", "vmap"))
    check_products(lambda x, v: jnp.place(x, x > 3, v, inplace=False), X + 0.5, np.array([1.0, 2.0]), order=1)
    check_products(lambda x: jnp.pad(x, 3, "reflect", reflect_type="odd"), X[0], order=1)
    check_products(lambda x, y: jnp.block([[x, y], [y, x]]) ** 2, X, X + 1, order=1)
    check_products(lambda x, y: jnp.choose(np.array([0, 1, 1, 0]), [x, y]) ** 2, X, X[0] + 1, order=1)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.delete(X, 4, 1), IndexError, "delete: index 4 is out of bounds for an axis of length 4"),
    (lambda: jnp.delete(X, np.array([0.5]), 1), ValueError, "expects ints"),
    (lambda: jnp.delete(X, np.array([True]), 1), ValueError, "must be a vector of the length 4"),
    (lambda: fm.jit(lambda x, i: jnp.delete(x, i))(X, np.array([1])), TypeError, "assume_unique_indices=True"),
    (lambda: jnp.insert(X, 13, 0), IndexError, "insert: index 13 is out of bounds"),
    (lambda: jnp.insert(X, np.array([[1]]), 0), ValueError, "a vector of ints"),
    (lambda: jnp.insert(X, np.array([True]), 0), ValueError, "expects ints as obj"),
    (lambda: jnp.insert(X, [0, 1], np.ones((3, 3)), 1), ValueError, "do not broadcast"),
    (lambda: jnp.put(X, 0, 1), ValueError, "put: arrays are immutable.*inplace=False"),
    (lambda: jnp.put(X, 0, 1, "raise", inplace=False), NotImplementedError, "mode 'raise'"),
    (lambda: jnp.place(X, X[0] > 0, 1.0, inplace=False), ValueError, "same number of elements"),
    (lambda: jnp.place(X, X > 0, np.zeros(0), inplace=False), ValueError, "empty array"),
    (lambda: jnp.put_along_axis(X, np.array([0]), 1, 0, inplace=False), ValueError, "same number of axes"),
    (lambda: jnp.choose(np.array([3]), [X, X]), ValueError, "invalid entry in choice array: 3"),
    (lambda: jnp.choose(np.array([0.5]), [X, X]), ValueError, "expects integers"),
    (lambda: fm.jit(jnp.choose)(np.array([0]), [X, X]), TypeError, "'wrap' and 'clip' take traced ones"),
    (lambda: jnp.piecewise(X, [X > 0], [1, 2, 3]), ValueError, "either 1 or 2 functions are expected; got 3"),
    (lambda: jnp.block([[X], X]), ValueError, "nested equally deep"),
    (lambda: jnp.block([[X], []]), ValueError, "at least one array"),
    (lambda: jnp.block((X, X)), TypeError, "got a tuple"),
    (lambda: jnp.pad(X, 1, "reflect", reflect_type="other"), ValueError, "'even' or 'odd'"),
])  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()
