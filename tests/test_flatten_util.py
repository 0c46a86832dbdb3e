"""Trees as vectors and back."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import tree
from funcml.flatten_util import ravel_pytree
from tests.products import check_products


@pytest.mark.parametrize("pytree, dtype", [
    ({"a": np.ones((2, 3), "float32"), "b": [np.zeros(2, "float32"), np.float32(4)]}, "float32"),
    ([np.arange(3, dtype="int32"), np.array([[1.5]], "float32")], "float32"),
    ([np.array([True, False]), np.arange(3, dtype="int32")], "int32"),
    ([np.ones(1, "float32"), np.array([2 + 3j], "complex64")], "complex64"),
    ([np.ones((0, 3)), np.ones(2)], "float64"),
])
def test_there_and_back(pytree, dtype):
    vector, unravel = ravel_pytree(pytree)
    leaves = tree.leaves(pytree)
    assert vector.dtype == dtype
    np.testing.assert_array_equal(vector, np.concatenate([np.ravel(x) for x in leaves]))
    back = unravel(vector)
    assert tree.structure(back) == tree.structure(pytree)
    for x, y in zip(leaves, tree.leaves(back), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_no_leaves():
    vector, unravel = ravel_pytree([])
    assert vector.shape == (0,) and vector.dtype == "float32" and unravel(vector) == []


def test_numbers():
    vector, unravel = ravel_pytree((1.0, 2))
    np.testing.assert_array_equal(vector, [1, 2])
    assert vector.dtype == "float32" and unravel(vector)[1].dtype == "int32"


def test_equal_trees_have_equal_functions():
    first, second = (ravel_pytree((np.zeros(2), np.ones(3)))[1] for _ in range(2))
    assert first == second and hash(first) == hash(second)
    assert first != ravel_pytree((np.zeros(3), np.ones(2)))[1]


def test_products(rng):
    def f(a, b):
        vector, unravel = ravel_pytree({"a": a, "b": b})
        out = unravel(vector * vector)
        return out["a"] * out["b"][0], vector

    check_products(f, rng.normal(size=(2, 3)), rng.normal(size=2))


def test_the_gradient_of_a_model():
    params = {"w": jnp.ones((2, 2)), "b": jnp.zeros(2)}
    vector, unravel = ravel_pytree(params)
    found = fm.grad(lambda v: jnp.sum(unravel(v)["w"] * 3.0) + unravel(v)["b"][1])(vector)
    np.testing.assert_array_equal(found, [0, 1, 3, 3, 3, 3])


def test_errors():
    vector, unravel = ravel_pytree([np.ones(2, "float32"), np.ones(2, "int32")])
    with pytest.raises(ValueError, match=r"a vector of 4 elements, got f32\[3\]"):
        unravel(vector[:3])
    with pytest.raises(TypeError, match=r"got bool\[4\], but expected dtype f32"):
        unravel(vector > 1)
    assert ravel_pytree(np.ones(3))[1](np.ones(3, bool)).dtype == bool
    with pytest.raises(TypeError, match="expects arrays or numbers"):
        ravel_pytree({"a": "text"})
