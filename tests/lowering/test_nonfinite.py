"""`config.debug_nans` and `debug_infs`: a NaN, or an infinity, among results is an error that names what made it."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml import lax
from funcml.core.config import config, debug_infs, debug_nans


@pytest.fixture(autouse=True)
def on():
    with debug_nans(True):
        yield


def divide(x):
    return (x - 1.0) / (x - x)


@pytest.mark.parametrize("f", [
    divide, funcml.jit(divide), funcml.jit(lambda x: lax.scan(lambda c, y: (c, divide(y)), 0.0, x[None])[1]),
    funcml.vmap(divide),
])  # fmt: skip
def test_the_operation_and_the_line_are_named(f):
    for _ in range(2):
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in div \(.*test_nonfinite"):
            f(jnp.ones(2))


def test_the_backward_pass():
    with pytest.raises(FloatingPointError, match="encountered in mul"):
        funcml.grad(lambda x: jnp.sqrt(x * 0.0).sum())(jnp.zeros(3))


def test_a_nan_that_reaches_no_output_is_no_error():
    f = funcml.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))
    np.testing.assert_allclose(f(jnp.array([-1.0, 1.0])), [0.0, 0.0])


def test_an_input_that_holds_one():
    with debug_nans(False):
        x = jnp.array([jnp.nan])
    with pytest.raises(FloatingPointError, match=r"input 0 of the program, f32\[1\]"):
        funcml.jit(lambda x: x + 1.0)(x)


def test_off_again():
    with debug_nans(False):
        f = funcml.jit(divide)
        assert np.isnan(f(jnp.ones(2))).all() and np.isnan(divide(jnp.ones(2))).all()
    assert config.debug_nans
    with pytest.raises(FloatingPointError):
        f(jnp.ones(2))
    with debug_nans(False):
        assert np.isnan(f(jnp.ones(2))).all()


@pytest.mark.parametrize("f", [
    lambda x: 1.0 / (x - x), funcml.jit(lambda x: 1.0 / (x - x)),
    funcml.jit(lambda x: lax.scan(lambda c, y: (c, c / (y - y)), 1.0, x[None])[1]),
])  # fmt: skip
def test_infinities(f):
    x = jnp.ones(2)
    assert np.isinf(np.asarray(f(x))).all()
    with debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(inf\) encountered in div \(.*test_nonfinite"):
            f(x)


def test_an_infinite_input_and_one_that_reaches_no_output():
    x = jnp.array([1.0, np.inf])
    with debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"\(inf\) encountered in input 0 of the program, f32\[2\]"):
            funcml.jit(lambda x: x * 2.0)(x)
        np.testing.assert_array_equal(funcml.jit(lambda x: 1.0 / x)(x), [1.0, 0.0])


def test_constants_of_library_functions_are_no_fault():
    x = jnp.ones((2, 3))
    with debug_infs(True):
        np.testing.assert_allclose(funcml.nn.logsumexp(x, axis=1), 1.0 + np.log(3.0), rtol=1e-6)
        np.testing.assert_allclose(jnp.max(x), 1.0)


def test_complex_infinities():
    x = jnp.array([1e38 + 0.0j])
    with debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\)"):
        funcml.jit(lambda x: x * 10.0)(x).block_until_ready()
