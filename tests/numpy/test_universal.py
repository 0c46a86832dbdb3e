"""Methods of ufuncs against NumPy's, their derivatives, and what they refuse."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from tests.products import check_products

FLOATS = ["add", "multiply", "subtract", "divide", "maximum", "minimum", "logaddexp", "logaddexp2", "fmax", "fmin"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "add", "maximum", "subtract"]
X = np.array([[1.0, 2.0, 3.0, 0.5], [4.0, 5.0, 6.0, -1.5], [0.25, -2.0, 7.0, 1.0]])
INTS = np.array([[5, 2, 3, 0], [4, 12, 6, 0], [0, 1, 7, 9]], np.int32)

CASES = [(name, X) for name in FLOATS] + [(name, INTS) for name in BITS] + [(name, INTS > 3) for name in BITS[:6]]
IDS = [f"{name}-{x.dtype}" for name, x in CASES]


def both(name):
    return getattr(jnp, name), getattr(np, name)


@pytest.mark.parametrize("name, x", CASES, ids=IDS)
def test_methods(name, x):
    ours, theirs = both(name)
    for axis in (0, 1):
        at = np.array([0, 2, 1, 1]) if axis else np.array([1, 0, 2])
        for method, args in (("reduce", ()), ("accumulate", ()), ("reduceat", (at,))):
            got, want = getattr(ours, method)(x, *args, axis=axis), getattr(theirs, method)(x, *args, axis=axis)
            np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=f"{method} along {axis}")
            assert (got.dtype == bool) == (want.dtype == bool)
    np.testing.assert_allclose(ours.outer(x, x[0]), theirs.outer(x, x[0]), rtol=1e-12)


@pytest.mark.parametrize("name", FLOATS)
def test_at(name):
    ours, theirs = both(name)
    where = (np.array([0, 0, 2]), np.array([1, 1, 3]))
    for index, b in (
        (where, np.array([2.0, 3.0, 4.0])), (1, 2.0), (np.array([0, 0]), X[0]), ((slice(None), np.array([1, 1])), X[:, :2]),
        ((..., np.array([[0], [0]])), 2.0), (X[:, 0] > 1, X[0]), ([0, 2, 0], 3.0),
    ):  # fmt: skip
        want = X.copy()
        theirs.at(want, index, b)
        np.testing.assert_allclose(ours.at(X, index, b, inplace=False), want, rtol=1e-12)


def test_at_with_one_operand():
    want = X.copy()
    np.negative.at(want, np.array([0, 0, 1]))
    np.testing.assert_array_equal(jnp.negative.at(X, np.array([0, 0, 1]), inplace=False), want)


@pytest.mark.parametrize("name", ["add", "multiply", "logaddexp", "logical_or", "bitwise_xor", "subtract"])
@pytest.mark.parametrize("options", [{"axis": None}, {"keepdims": True}, {"axis": None, "keepdims": True}, {"axis": -1}])
def test_options_of_reduce(name, options):
    ours, theirs = both(name)
    x = INTS if name in ("logical_or", "bitwise_xor") else X
    if name == "subtract" and options.get("axis", 0) is None:
        return  # NumPy refuses what is not reorderable
    np.testing.assert_allclose(ours.reduce(x, **options), theirs.reduce(x, **options), rtol=1e-12)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logaddexp", "logical_and", "bitwise_or", "bitwise_and"])
def test_where_and_initial(name):
    ours, theirs = both(name)
    x = INTS if name in ("logical_and", "bitwise_or", "bitwise_and") else X
    marks = np.array([[True, False, True, False]] * 2 + [[False, False, True, True]])
    np.testing.assert_allclose(ours.reduce(x, where=marks, initial=3), theirs.reduce(x, where=marks, initial=3), rtol=1e-12)


def test_dtype():
    assert jnp.add.reduce(INTS.astype(np.int8), dtype="float32").dtype == np.float32
    assert jnp.add.accumulate(INTS, dtype="float64").dtype == np.float64
    assert jnp.bitwise_or.reduce(INTS, dtype="int64").dtype == np.int64


def test_empty():
    empty = np.zeros((0, 3))
    np.testing.assert_array_equal(jnp.add.reduce(empty), np.zeros(3))
    np.testing.assert_array_equal(jnp.logaddexp.reduce(empty), np.full(3, -np.inf))
    assert jnp.logaddexp2.accumulate(empty).shape == (0, 3) and jnp.subtract.accumulate(empty).shape == (0, 3)
    assert jnp.add.reduceat(X, np.zeros(0, int)).shape == jnp.subtract.reduceat(X, np.zeros(0, int)).shape == (0, 4)
    with pytest.raises(ValueError, match="zero-size array to reduction operation subtract which has no identity"):
        jnp.subtract.reduce(empty)


def test_frompyfunc():
    f = jnp.frompyfunc(lambda x, y: x + 10 * y, 2, 1, identity=0)
    x = np.array([1, 2, 3])
    assert (f.nin, f.nout, f.nargs, f.identity) == (2, 1, 2, 0)
    assert isinstance(f, jnp.ufunc) and f.reduce(x) == 60 and f.accumulate(x).tolist() == [1, 21, 51]
    assert f.outer(x, x).shape == (3, 3) and f(x[:, None], x).tolist() == f.outer(x, x).tolist()
    assert f.at(x, np.array([0, 0]), 1, inplace=False).tolist() == [21, 2, 3]
    assert f.reduceat(x, np.array([0, 2])).tolist() == [21, 3]
    two = jnp.frompyfunc(lambda x: (x, -x), 1, 2)
    assert [part.tolist() for part in two(x)] == [[1, 2, 3], [-1, -2, -3]]


@pytest.mark.parametrize("f", [
    lambda x: jnp.multiply.reduce(x), lambda x: jnp.subtract.reduce(x, axis=1), lambda x: jnp.divide.accumulate(x),
    lambda x: jnp.multiply.reduceat(x, np.array([0, 2])), lambda x: jnp.subtract.outer(x, x[0]),
    lambda x: jnp.divide.at(x, (np.array([0, 0]), np.array([1, 1])), x[1, 1], inplace=False),
    lambda x: jnp.frompyfunc(lambda a, b: a * jnp.sin(b), 2, 1).reduce(x),
], ids=["prod", "subtract", "accumulate", "reduceat", "outer", "at", "frompyfunc"])  # fmt: skip
def test_products(f):
    check_products(lambda x: f(jnp.array(x)), X[:, :3] + 0.1, products=("jit", "jvp", "vjp", "order2", "vmap"))


def test_a_ufunc_is_its_function():
    assert repr(jnp.add) == "<jnp.ufunc 'add'>" and jnp.add.__name__ == "add" and "x + y" in jnp.add.__doc__
    assert list(inspect.signature(jnp.add).parameters)[:2] == ["x1", "x2"]
    assert pickle.loads(pickle.dumps(jnp.add)) is jnp.add and copy.deepcopy(jnp.multiply) is jnp.multiply
    assert jnp.add == jnp.add and jnp.add != jnp.multiply and len({jnp.add, jnp.add, jnp.multiply}) == 2
    assert fm.jit(jnp.add)(1.0, 2.0) == 3.0 and fm.grad(jnp.multiply)(2.0, 3.0) == 3.0
    assert lax.reduce(np.arange(3.0), 0.0, jnp.add, (0,)) == 3.0
    with pytest.raises(AttributeError):
        jnp.add.nin = 3


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.add(1, 2, where=True), NotImplementedError, "add: there is no `where`.*jnp.where"),
    (lambda: jnp.add(1, 2, out=X), NotImplementedError, "add: arrays are immutable"),
    (lambda: jnp.add.reduce(X, out=X), NotImplementedError, "add.reduce: arrays are immutable"),
    (lambda: jnp.add.at(X, 0, 1.0), NotImplementedError, "add.at: arrays are immutable.*inplace=False"),
    (lambda: jnp.negative.reduce(X), ValueError, "only supported for binary ufuncs"),
    (lambda: jnp.frompyfunc(lambda x, y: (x, y), 2, 2).outer(X, X), ValueError, "returning a single value"),
    (lambda: jnp.subtract.reduce(X, where=X > 0), ValueError, "does not have an identity.*'initial'"),
    (lambda: jnp.add.reduce(X, where=INTS), ValueError, r"where must be bool, got i32\[3,4\]"),
    (lambda: jnp.add.accumulate(X, axis=(0, 1)), ValueError, "does not allow multiple axes"),
    (lambda: jnp.add.reduceat(X, INTS), ValueError, r"a vector of indices, got f64\[3,4\], i32\[3,4\]"),
    (lambda: jnp.add.reduceat(X, np.array([0]), axis=None), ValueError, "requires a single integer axis"),
    (lambda: jnp.add.reduce(X, axis=5), ValueError, "axis 5 is out of bounds"),
])  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()
