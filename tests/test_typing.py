"""jaxtyping annotations hold for arrays and for tracers."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.typing import Array, Bool, Float, Float32, Int, Key, Scalar


@pytest.mark.parametrize("through", [lambda f, x: f(x), lambda f, x: fm.jit(lambda y: jnp.asarray(f(y)))(x)])
def test_shapes_and_dtypes_are_checked(through):
    x = jnp.ones((3, 4))
    assert through(lambda y: isinstance(y, Float[Array, "a b"]), x)
    assert through(lambda y: isinstance(y, Float32[Array, "3 4"]), x)
    assert not through(lambda y: isinstance(y, Float[Array, "a"]), x)
    assert not through(lambda y: isinstance(y, Int[Array, "a b"]), x)
    assert not through(lambda y: isinstance(y, Bool[Array, "a b"]), x)
    assert through(lambda y: isinstance(y, Scalar), jnp.asarray(1.0))
    assert through(lambda y: isinstance(y, Float[Array, "n"]), jnp.ones(2, "bfloat16"))


def test_numpy_is_not_our_array():
    assert not isinstance(np.ones(3), Float[Array, "n"])


def test_keys():
    assert isinstance(fm.random.split(fm.random.key(0), 3), Key[Array, "3"])
