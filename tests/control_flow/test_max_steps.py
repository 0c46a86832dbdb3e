"""`while_loop(max_steps=)`, `fori_loop(max_steps=)`: values and derivatives of the plain loop, with fewer steps and with more."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from tests.products import check_products


def grow(x, limit, max_steps=None):
    """A different number of steps for each x."""
    return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] * 1.5 + jnp.sin(c[1]), c[1] * 0.9), (x, x), max_steps=max_steps)


def power(x, n, max_steps=None):
    return lax.fori_loop(0, n, lambda i, v: v * jnp.cos(v) + i, x, max_steps=max_steps)


def loss(x, limit, max_steps):
    a, b = grow(x, limit, max_steps)
    return a * b + b


@pytest.mark.parametrize("max_steps", [1, 5])
def test_derivatives_are_right_below_and_beyond(max_steps):
    for derivative in (fm.grad, lambda f: fm.grad(fm.grad(f))):
        found, plain = (fm.jit(derivative(lambda x, limit, m=m: loss(x, limit, m))) for m in (max_steps, None))
        for limit in (0.5, 2.0, 100.0):
            np.testing.assert_allclose(found(np.float64(1.3), limit), plain(np.float64(1.3), limit), rtol=1e-10)


def test_products():
    check_products(lambda x: grow(x, 20.0, 4), np.float64(1.3), products=("jit", "jvp", "vjp", "vmap"))


def test_batches_whose_examples_end_at_different_steps():
    x = np.array([0.7, 1.3, 5.0, 300.0])
    f = lambda x, m: grow(x, 100.0, m)[0]
    want = [float(fm.grad(lambda x: f(x, None))(v)) for v in x]
    np.testing.assert_allclose(fm.vmap(fm.grad(lambda x: f(x, 6)))(x), want, rtol=1e-10)
    np.testing.assert_allclose(fm.grad(lambda x: fm.vmap(lambda v: f(v, 6))(x).sum())(x), want, rtol=1e-10)


@pytest.mark.parametrize("n", [0, 1, 5, 9])
def test_loops_with_traced_bounds(n):
    d = fm.jit(fm.grad(lambda x, n: power(x, n, 5)))
    np.testing.assert_allclose(d(np.float64(0.4), n), fm.grad(lambda x: power(x, n))(np.float64(0.4)), rtol=1e-10)
    assert float(fm.jit(lambda x, n: power(x, n, 5))(0.4, n)) == float(fm.jit(power)(0.4, n))


def test_inside_a_scan_and_a_checkpoint():
    def f(x, m):
        return lax.scan(lambda c, t: (grow(c, t, m)[0], c), x, np.array([2.0, 9.0]))[0]

    want = fm.grad(lambda x: f(x, None))(np.float64(1.3))
    np.testing.assert_allclose(fm.grad(lambda x: f(x, 2))(np.float64(1.3)), want, rtol=1e-10)
    np.testing.assert_allclose(fm.grad(fm.checkpoint(lambda x: f(x, 8)))(np.float64(1.3)), want, rtol=1e-10)


def test_only_reverse_mode_stores():
    """The loop itself, and forward mode, are a `while` that ends when it ends."""
    for f in (lambda x: grow(x, 9.0, 50), lambda x: fm.jvp(lambda x: grow(x, 9.0, 50), (x,), (x,))):
        names = [eqn.primitive.name for eqn in fm.make_jaxpr(f)(1.0).eqns]
        assert "while" in names and "scan" not in names
    text = fm.jit(fm.grad(lambda x: grow(x, 9.0, 50)[0])).lower(1.0).as_text()
    assert "tensor<50xf32>" in text


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: grow(1.0, 2.0, 0), "max_steps must be positive, got 0"),
        (lambda: grow(1.0, 2.0, 2.5), "max_steps must be an int"),
        (lambda: power(1.0, 3, True), "max_steps must be an int"),
    ],
)
def test_errors(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("max_steps", [None, 2, 10])
@pytest.mark.parametrize("loop", ["while", "fori"])
def test_effects_happen_once_in_reverse_mode(loop, max_steps):
    seen = []

    def turn(x):
        fm.debug.callback(lambda v: seen.append(float(v)), x)
        return jnp.sin(x) * 1.2

    def f(x, n):
        if loop == "while":
            return lax.while_loop(lambda c: c[1] < n, lambda c: (turn(c[0]), c[1] + 1), (x, 0), max_steps=max_steps)[0]
        return lax.fori_loop(0, n, lambda i, x: turn(x), x, max_steps=max_steps)

    for gradient in (fm.grad(f), fm.jit(fm.grad(f))):
        seen.clear()
        gradient(0.5, 4)
        fm.effects_barrier()
        assert len(seen) == 4
