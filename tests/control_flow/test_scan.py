"""`scan`, `map` and `fori_loop` with known bounds: values against Python loops, derivatives, batches, types, errors."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from tests.products import check_products

X = np.linspace(0.2, 1.1, 5)
C = np.array([0.3, -0.7])


def python_scan(f, carry, xs, reverse=False):
    ys = [None] * len(xs)
    for i in reversed(range(len(xs))) if reverse else range(len(xs)):
        carry, ys[i] = f(carry, xs[i])
    return carry, np.stack(ys)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 5, 9, 0, True])
def test_values_are_those_of_a_loop(reverse, unroll):
    want = python_scan(lambda c, x: (np.sin(c) + x, c * x), 0.5, X, reverse)
    got = lax.scan(lambda c, x: (jnp.sin(c) + x, c * x), np.float64(0.5), X, reverse=reverse, unroll=unroll)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_products(reverse):
    def f(c, xs, w):
        def step(carry, x):
            a, n = carry
            a = jnp.tanh(a @ w + x)
            return (a, n + 1), (a * x, n)

        (a, n), (ys, _) = lax.scan(step, (c, 0), xs, reverse=reverse)
        return a, ys

    w = np.random.default_rng(0).normal(size=(2, 2))
    check_products(f, C, X, w)


def test_products_where_only_the_outputs_move():
    check_products(lambda xs, w: lax.scan(lambda c, x: (c, w * x**2), None, xs)[1], X, np.float64(0.3))


def test_nested_scans():
    def f(c, xs):
        def outer(c, x):
            inner, ys = lax.scan(lambda d, y: (d * jnp.cos(y) + x, d), c, xs)
            return inner, ys.sum()

        return lax.scan(outer, c, xs)

    check_products(f, np.float64(0.4), X[:3])


def test_residuals_that_no_step_changes_are_not_stacked():
    def f(w, xs):
        return lax.scan(lambda c, x: (jnp.tanh(c @ jnp.exp(w)) + x, None), jnp.zeros(2, "float64"), xs)[0].sum()

    jaxpr = fm.make_jaxpr(fm.grad(f))(np.eye(2), np.ones((7, 2)))
    forward = next(e for e in jaxpr.eqns if e.primitive.name == "scan")
    assert sorted(v.aval.shape for v in forward.outvars) == [(2,), (7, 2), (7, 2)]  # carry; carry and tanh of each step


def test_a_carry_settles_its_types():
    total, _ = lax.scan(lambda c, x: (c + x, None), 0, np.arange(3.0))
    assert total.dtype == np.float64 and float(total) == 3.0
    n, _ = lax.scan(lambda c, x: (c + 1, None), np.int16(0), None, length=4)
    assert n.dtype == np.int16 and int(n) == 4


def test_no_steps():
    c, ys = lax.scan(lambda c, x: (c + x, jnp.stack([c, x])), 1.5, jnp.zeros((0,)))
    assert float(c) == 1.5 and ys.shape == (0, 2)


def test_trees_and_keys_go_through():
    key = fm.random.key(3)

    def step(carry, x):
        key, sub = fm.random.split(carry["key"])
        return {"key": key}, {"x": x["a"], "u": fm.random.uniform(sub)}

    _, ys = lax.scan(step, {"key": key}, {"a": jnp.arange(3.0)})
    want = []
    for _ in range(3):
        key, sub = fm.random.split(key)
        want.append(float(fm.random.uniform(sub)))
    np.testing.assert_array_equal(np.asarray(ys["u"]), np.float32(want))


def test_closed_over_tracers_of_each_level():
    def f(a, b):
        return fm.jit(lambda a: lax.scan(lambda c, x: (c * a + b, None), a, None, length=3)[0])(a)

    check_products(f, np.float64(0.7), np.float64(0.2))


def test_disable_jit_runs_python():
    seen = []
    with fm.disable_jit():
        c, ys = lax.scan(lambda c, x: (seen.append(float(x)) or c + x, c), 0.0, jnp.arange(3.0))
    assert seen == [0.0, 1.0, 2.0] and float(c) == 3.0 and ys.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 10])
def test_map(batch_size):
    got = lax.map(lambda x: {"y": x["a"] * 2 + x["b"]}, {"a": jnp.arange(7.0), "b": jnp.ones(7)}, batch_size=batch_size)
    np.testing.assert_array_equal(got["y"], np.arange(7.0) * 2 + 1)


@pytest.mark.parametrize("bounds", [(0, 5), (3, 3), (4, 1), (-2, 3)])
def test_fori_loop_is_range(bounds):
    want = 1.0
    for i in range(*bounds):
        want = want * 0.5 + i
    assert float(lax.fori_loop(*bounds, lambda i, x: x * 0.5 + i, 1.0)) == pytest.approx(want)
    assert float(fm.jit(lambda a, b: lax.fori_loop(a, b, lambda i, x: x * 0.5 + i, 1.0))(*bounds)) == pytest.approx(want)


def test_fori_loop_products():
    check_products(lambda x: lax.fori_loop(0, 4, lambda i, x: jnp.sin(x) + i, x), C)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lax.scan(lambda c, x: (c + 1.5, x), jnp.int32(0), X), "`carry` enters as i32\\[\\] and leaves as f32\\[\\]"),
        (lambda: lax.scan(lambda c, x: ({"a": c}, x), 0.0, X), "structure"),
        (lambda: lax.scan(lambda c, x: c, 0.0, X), "must return a pair"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, {"a": np.ones(3), "b": np.ones(4)}), "xs\\['a'\\] has 3, xs\\['b'\\] has 4"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, X, length=4), "length=4"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, None), "length="),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, 1.0), "scalar"),
        (lambda: lax.scan(lambda c, x: (c, x), "a", X), "neither|array or a number"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, X, unroll=-1), "unroll"),
        (lambda: lax.scan(3, 0.0, X), "expects a callable"),
        (lambda: lax.fori_loop(0, 1.5j, lambda i, x: x, 0.0), "real scalars"),
        (lambda: fm.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x, 0.0, unroll=2))(3), "unroll"),
        (lambda: lax.map(lambda x: x, X, batch_size=0), "batch_size"),
        (
            lambda: fm.jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, None, length=n))(3),
            "The `length` argument to `scan` expects a concrete `int` value, got Traced",
        ),
        (
            lambda: fm.jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, X, unroll=n))(3),
            "The `unroll` argument to `scan` expects a concrete `int` or `bool` value, got Traced",
        ),
    ],
)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_masks_of_outputs_go_through_the_steps():
    """where(m, scan(..), 0): the steps of lanes that are not taken leave no nan."""
    x = np.array([0.0, 4.0, 9.0])

    def carried(x):  # sqrt in each step, on the carry
        return jnp.where(x > 0, lax.scan(lambda c, _: (jnp.sqrt(c), None), x, None, length=3)[0], 0.0).sum()

    def stacked(x):  # sqrt of each slice
        ys = lax.scan(lambda c, x: (c, jnp.sqrt(x) * c), np.float64(2.0), x)[1]
        return jnp.where(x > 0, ys, 0.0).sum()

    def of_a_carry(x):  # the carry has no cotangent of its own
        ys = lax.scan(lambda c, _: (jnp.sqrt(c), c), x, None, length=3)[1]
        return jnp.where(x > 0, ys[1:], 0.0).sum()

    np.testing.assert_allclose(fm.grad(carried)(x), np.where(x > 0, x ** (-7 / 8 * (x > 0)) / 8, 0), rtol=1e-12)
    np.testing.assert_allclose(fm.grad(stacked)(x), [0.0, 0.5, 1 / 3], rtol=1e-12)
    want = np.where(x > 0, 0.5 * x ** (-0.5 * (x > 0)) + 0.25 * x ** (-0.75 * (x > 0)), 0)
    np.testing.assert_allclose(fm.grad(of_a_carry)(x), want, rtol=1e-12)
