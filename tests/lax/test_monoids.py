"""Reductions by a function, over axes and windows: against NumPy and JAX, under every transform; what is recognised; errors."""

import jax.lax
import numpy as np
import pytest

import funcml as fm
from funcml import lax
from funcml import numpy as jnp
from tests.products import check_products

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.5, 1.5, (3, 5, 4)), RNG.uniform(0.5, 1.5, (3, 5, 4))


def log_add_exp(a, b):
    return lax.max(a, b) + lax.log1p(lax.exp(-lax.abs(a - b)))


def after(f, g):
    """x -> b (a x + c) + d: the affine maps (a, c) then (b, d), an associative function that does not commute."""
    return f[0] * g[0], g[0] * f[1] + g[1]


def later_greatest(f, g):
    return jnp.where(g[0] >= f[0], g[0], f[0]), jnp.where(g[0] >= f[0], g[1], f[1])


@pytest.mark.parametrize("axes", [(0,), (2, 0), (0, 1, 2), ()])
def test_one_operand_over_axes(axes):
    def f(x, start):
        return lax.reduce(x, start, log_add_exp, axes)

    want = np.log(np.exp(X).sum(axes) + np.exp(-0.5))
    np.testing.assert_allclose(f(X, np.float64(-0.5)), want, rtol=1e-12)
    check_products(f, X, np.float64(-0.5), order=2 if axes == (0,) else 1)


def test_operands_reduced_together_keep_their_order():
    def f(x, y):
        return lax.reduce((x, y), (1.0, 0.0), after, (1,))

    product, value = np.ones((3, 4)), np.zeros((3, 4))
    for i in range(5):
        product, value = product * X[:, i], X[:, i] * value + Y[:, i]
    found = f(X, Y)
    np.testing.assert_allclose(found[0], product, rtol=1e-12)
    np.testing.assert_allclose(found[1], value, rtol=1e-12)
    check_products(f, X, Y)


@pytest.mark.parametrize("window", [
    dict(window_dimensions=(1, 2, 3), window_strides=(1, 1, 2), padding="SAME"),
    dict(window_dimensions=(2, 2, 1), window_strides=(1, 2, 1), padding=((0, 1), (-1, 2), (0, 0)), base_dilation=(2, 1, 1)),
    dict(window_dimensions=(1, 3, 2), window_dilation=(1, 2, 1)),
])  # fmt: skip
def test_windows(window):
    def f(x, start):
        return lax.reduce_window(x, start, log_add_exp, **window)

    def in_jax(x, start):
        return jax.lax.reduce_window(x, start, lambda a, b: jax.lax.log(jax.lax.exp(a) + jax.lax.exp(b)), **window)

    found = f(X.astype("f4"), np.float32(-30))
    np.testing.assert_allclose(found, in_jax(X.astype("f4"), np.float32(-30)), rtol=1e-4, atol=1e-4)
    check_products(f, X, np.float64(-3), order=2 if "base_dilation" in window else 1)


def test_windows_of_several_operands():
    places = np.broadcast_to(np.arange(5, dtype=np.int32)[None, :, None], X.shape)

    def f(x):
        return lax.reduce_window((x, places), (-np.inf, -1), later_greatest, (1, 3, 1), (1, 2, 1))

    values, found = f(X)
    np.testing.assert_array_equal(values, np.maximum(np.maximum(X[:, 0:3:2], X[:, 1:4:2]), X[:, 2:5:2]))
    np.testing.assert_array_equal(np.take_along_axis(X, np.asarray(found), 1), values)
    check_products(lambda x: f(x)[0], X)


@pytest.mark.parametrize("name, numpy", [("add", np.sum), ("mul", np.prod), ("max", np.max), ("min", np.min)])
def test_known_functions_are_recognised(name, numpy):
    operation = getattr(lax, name)
    for function in (operation, lambda a, b: operation(b, a), fm.jit(operation)):
        text = str(fm.make_jaxpr(lambda x, f=function: lax.reduce(x, 1.25, f, (1,)))(X))
        assert "combine" not in text or function is not operation
        found = lax.reduce(X, 1.25, function, (1,))
        np.testing.assert_allclose(found, numpy(np.concatenate([X, np.full((3, 1, 4), 1.25)], 1), 1), rtol=1e-12)


@pytest.mark.parametrize("name, start, known", [
    ("add", 0.0, "reduce_window_sum"),
    ("max", -np.inf, "reduce_window_max"),
    ("min", np.float64(np.inf), "reduce_window_min"),
    ("add", 1.0, "reduce_window["),
    ("max", 0.0, "reduce_window["),
    ("mul", 1.0, "reduce_window["),
])  # fmt: skip
def test_known_windows_are_recognised(name, start, known):
    def f(x):
        return lax.reduce_window(x, start, getattr(lax, name), (1, 2, 1), padding="SAME")

    assert known in str(fm.make_jaxpr(f)(X))
    ufunc, neutral = {
        "add": (np.add, 0), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf), "mul": (np.multiply, 1)
    }[name]  # fmt: skip
    spread = np.concatenate([X, np.full((3, 1, 4), neutral)], 1)
    np.testing.assert_allclose(f(X), ufunc(ufunc(spread[:, :-1], spread[:, 1:]), start), rtol=1e-12)


@pytest.mark.parametrize("name, start", [("bitwise_and", True), ("bitwise_or", False), ("bitwise_xor", False)])
def test_bool(name, start):
    x = X > 1
    ufunc = {"bitwise_and": np.logical_and, "bitwise_or": np.logical_or, "bitwise_xor": np.logical_xor}[name]
    np.testing.assert_array_equal(lax.reduce(x, start, getattr(lax, name), (0, 1)), ufunc.reduce(ufunc.reduce(x, 0), 0))
    found = lax.reduce_window(x, start, getattr(lax, name), (1, 1, 2))
    np.testing.assert_array_equal(found, ufunc(x[..., :-1], x[..., 1:]))


def test_extremes_of_bool_and_integers_over_windows():
    x = RNG.integers(0, 9, (6,)).astype(np.uint8)
    np.testing.assert_array_equal(lax.reduce_window(x, np.uint8(0), lax.max, (2,)), np.maximum(x[1:], x[:-1]))
    np.testing.assert_array_equal(lax.reduce_window(x > 4, False, lax.max, (2,)), (x[1:] > 4) | (x[:-1] > 4))


def test_known_scalars_may_be_closed_over():
    two = jnp.float64(2)
    np.testing.assert_allclose(lax.reduce(X, 0.0, lambda a, b: a + b * two / two, (0,)), X.sum(0), rtol=1e-12)


def test_an_empty_axis_gives_the_initial_value():
    x = np.ones((3, 0, 2))
    np.testing.assert_array_equal(lax.reduce(x, 2.5, log_add_exp, (1,)), np.full((3, 2), 2.5))
    out, pullback = fm.vjp(lambda x, v: lax.reduce(x, v, log_add_exp, (1,)), x, np.float64(2.5))
    assert pullback(np.ones((3, 2)))[1] == 6
    assert lax.reduce(x, 2.5, log_add_exp, (0,)).shape == (0, 2)
    np.testing.assert_array_equal(lax.reduce_window(x, 2.5, log_add_exp, (1, 2, 1), padding="SAME"), x)
    found = lax.reduce_window(x, 2.5, lambda a, b: a * b / 2.5, (1, 2, 1), padding=((0, 0), (1, 1), (0, 0)))
    np.testing.assert_array_equal(found, np.full((3, 1, 2), 2.5))


def test_a_mapped_initial_value():
    starts = np.array([-1.0, 0.0, 1.0])
    found = fm.vmap(lambda v: lax.reduce(X, v, log_add_exp, (0, 1)))(starts)
    np.testing.assert_allclose(found, [lax.reduce(X, v, log_add_exp, (0, 1)) for v in starts], rtol=1e-12)


def test_reduce_window_shape_tuple():
    args = (5, 8), (2, 3), (1, 2), ((0, 1), (2, 0)), (1, 2), (2, 1)
    assert lax.reduce_window_shape_tuple(*args) == jax.lax.reduce_window_shape_tuple(*args)


@pytest.mark.parametrize("call, error, sentence", [
    (lambda: lax.reduce((), (), log_add_exp, ()), ValueError, "an initial value for each operand, got 0 for 0"),
    (lambda: lax.reduce((X, Y), [0.0, 0.0], after, (0,)), ValueError, "same tree structure as init_values"),
    (lambda: lax.reduce((X, Y[0]), (0.0, 0.0), after, (0,)), ValueError, "one shape, got f64[3,5,4], f64[5,4]"),
    (lambda: lax.reduce(X, np.float32(0), log_add_exp, (0,)), TypeError, "dtype of its operand f64[3,5,4], got f32[]"),
    (lambda: lax.reduce(X, X[0], log_add_exp, (0,)), ValueError, "non-scalar initial value f64[5,4]"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: (a, b), (0,)), ValueError, "output must have the same tree structure as"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: a < b, (0,)), TypeError, "these are f64[] and bool[]"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: jnp.stack([a, b]), (0,)), TypeError, "these are f64[] and f64[2]"),
    (lambda: lax.reduce(X, 0.0, log_add_exp, (3,)), ValueError, "axis 3 is out of bounds"),
    (lambda: fm.jit(lambda c: lax.reduce(X, 0.0, lambda a, b: a + b * c, (0,)))(2.0), NotImplementedError, "closes over f32[]"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: a + b * jnp.sum(jnp.array(Y)), (0,)), NotImplementedError, "closes over f64[3,5,4]"),
])  # fmt: skip
def test_errors(call, error, sentence):
    with pytest.raises(error) as caught:
        call()
    assert sentence in str(caught.value)
