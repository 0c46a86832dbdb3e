"""The checks of derivatives pass for right ones and fail for wrong ones."""

import functools

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.test_util import check_grads, check_jvp, check_vjp


@pytest.mark.parametrize("f, args", [
    (lambda x: jnp.sin(x) * x, (np.linspace(0.1, 1, 3),)),
    (lambda x, y: {"a": x @ y, "b": [jnp.exp(x)]}, (np.ones((2, 3)), np.full((3, 2), 0.5))),
    (lambda z: z * z * jnp.conj(z), (np.array([1 + 2j, 0.5 - 1j]),)),
    (lambda x, i: x[i] ** 2, (np.arange(1.0, 4.0), np.int32(1))),
    (lambda x: x**3, (2.0,)),
    (lambda tree: tree["x"] * tree["y"], ({"x": np.float64(2), "y": np.float64(3)},)),
])
def test_right_derivatives_pass(f, args):
    check_grads(f, args, order=2)
    check_grads(f, args, order=1, modes=["lin"])


def test_narrow_dtypes_pass():
    check_grads(lambda x: x * x, (np.ones(3, "float32"),), order=2)
    check_grads(lambda x: x * x, (jnp.ones(3, "bfloat16"),), order=1)
    check_grads(jnp.sin, (np.ones(3, "float32"),), order=1, eps=1e-2)


@fm.custom_jvp
def wrong(x):
    return jnp.sin(x)


wrong.defjvp(lambda primals, tangents: (wrong(primals[0]), 1.01 * jnp.cos(primals[0]) * tangents[0]))


@fm.custom_jvp
def wrong_at_second_order(x):
    return x * x


wrong_at_second_order.defjvp(
    lambda primals, tangents: (wrong_at_second_order(primals[0]), 2 * fm.lax.stop_gradient(primals[0]) * tangents[0])
)


@pytest.mark.parametrize("mode", ["fwd", "rev", "lin"])
def test_wrong_derivatives_fail(mode):
    x = np.linspace(0.1, 1, 3)
    with pytest.raises(AssertionError, match=mode):
        check_grads(wrong, (x,), order=1, modes=[mode])
    check_grads(wrong, (x,), order=1, modes=[mode], rtol=0.1, atol=0.1)
    check_grads(wrong, (x,), order=1, modes=[mode], rtol={"float64": 0.1}, atol={"float64": 0.1})
    check_grads(wrong_at_second_order, (x,), order=1, modes=[mode])
    with pytest.raises(AssertionError, match=f"{mode} of {mode}"):
        check_grads(wrong_at_second_order, (x,), order=2, modes=[mode])


def test_one_derivative():
    x = np.linspace(0.1, 1, 3)
    check_jvp(jnp.sin, functools.partial(fm.jvp, jnp.sin), (x,))
    check_vjp(jnp.sin, functools.partial(fm.vjp, jnp.sin), (x,))
    with pytest.raises(AssertionError, match="sine value"):
        check_jvp(jnp.sin, functools.partial(fm.jvp, jnp.cos), (x,), err_msg="sine")
    with pytest.raises(AssertionError, match="cotangent"):
        check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda ct: (ct,)), (x,))


def test_infinite_values_that_do_not_move_pass():
    check_grads(lambda x: jnp.where(x > 0, jnp.inf, x), (np.array([1.0, -1.0]),), order=1)


def test_unknown_modes():
    with pytest.raises(ValueError, match="modes must be among 'fwd', 'rev', 'lin', got 'forward'"):
        check_grads(jnp.sin, (1.0,), order=1, modes=["forward"])
