"""`while_loop` and `fori_loop` with traced bounds: values, both modes, batches, many steps, types, errors."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from funcml.control_flow import repeat
from tests.products import check_products


def square_up(x):
    return lax.while_loop(lambda v: jnp.all(v < 100.0), lambda v: v * v, x)


def newton(a):
    def step(carry):
        x, n = carry
        return x - (x * x - a) / (2 * x), n + 1

    return lax.while_loop(lambda c: c[1] < 6, step, (a, 0))[0]


def test_values_and_both_modes():
    assert float(square_up(3.0)) == 6561.0
    assert float(fm.grad(square_up)(3.0)) == 8 * 3.0**7
    assert float(fm.grad(fm.grad(square_up))(3.0)) == 56 * 3.0**6
    assert float(fm.jvp(square_up, (3.0,), (1.0,))[1]) == 8 * 3.0**7
    assert float(fm.hessian(square_up)(3.0)) == 56 * 3.0**6


def test_products_of_a_while():
    check_products(newton, np.float64(2.5), products=("jit", "jvp", "vjp", "vmap"))
    got = [float(d(newton)(np.float64(2.5))) for d in (fm.grad, fm.hessian)]
    np.testing.assert_allclose(got, [0.5 * 2.5**-0.5, -0.25 * 2.5**-1.5], rtol=1e-9)


def test_examples_that_are_done_stay():
    got = fm.vmap(square_up)(jnp.array([3.0, 4.0, 11.0, 200.0]))
    assert got.tolist() == [6561.0, 256.0, 121.0, 200.0]
    assert fm.vmap(fm.grad(square_up))(jnp.array([3.0, 4.0, 200.0])).tolist() == [17496.0, 256.0, 1.0]


def test_a_loop_in_the_body_sees_live_examples_only():
    def inner(x):  # does not end for x <= 0
        return lax.while_loop(lambda v: v < 1.0, lambda v: v * 2, x)

    def f(n):  # the second carry is 0 once an example is done
        return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, inner(c[1]) - 1.5 * (c[0] == 1)), (n, 0.75))[1]

    assert fm.vmap(f)(jnp.array([1, 3, 2])).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("steps", [0, 1, 2, repeat.SLOTS, repeat.SLOTS + 1, 1500])
def test_reverse_mode_of_many_steps(steps):
    f = lambda x, n: lax.fori_loop(0, n, lambda i, v: v + 1e-3 * jnp.sin(v), x)
    x, d = 0.5, 1.0
    for _ in range(steps):
        x, d = x + 1e-3 * np.sin(x), d * (1 + 1e-3 * np.cos(x))
    value, slope = fm.jit(fm.value_and_grad(f))(np.float64(0.5), steps)
    np.testing.assert_allclose([value, slope], [x, d], rtol=1e-11)


def test_reverse_mode_beyond_the_slots(monkeypatch):
    monkeypatch.setattr(repeat, "SLOTS", 3)
    monkeypatch.setattr(repeat, "LEVELS", 2)

    def f(x, w, n):
        return lax.fori_loop(0, n, lambda i, v: jnp.tanh(v @ w) + i * 0.125, x).sum()

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=3), rng.normal(size=(3, 3))
    for n in (1, 2, 3, 4, 8, 9, 10, 23):
        got = fm.jit(fm.grad(f, (0, 1)))(x, w, n)
        want = fm.grad(lambda x, w, n=n: f(x, w, n), (0, 1))(x, w)  # known bounds: a scan
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-10)


def test_memory_does_not_grow_with_the_steps():
    f = fm.jit(fm.grad(lambda x, n: lax.fori_loop(0, n, lambda i, v: jnp.sin(v) + i, x).sum()))
    jaxpr = fm.make_jaxpr(f)(jnp.ones(1000), 10**6)
    assert "1000000" not in str(jaxpr)


def test_linear_loops_keep_no_state():
    f = lambda x, n: lax.fori_loop(0, n, lambda i, v: v * 1.5, x)
    text = str(fm.make_jaxpr(fm.grad(f))(1.0, 5))
    assert "dynamic_update_slice" not in text


def test_a_count_for_each_example():
    f = lambda x, n: lax.fori_loop(0, n, lambda i, v: v * 2 + i, x)
    n, x = jnp.array([0, 3, 5]), jnp.array([1.0, 2.0, 3.0])
    want = [float(f(float(a), int(b))) for a, b in zip(x, n)]
    assert fm.vmap(f)(x, n).tolist() == want
    assert fm.vmap(fm.grad(f))(x, n).tolist() == [1.0, 8.0, 32.0]


def test_integers_of_64_bits_count():
    assert int(lax.while_loop(lambda v: v < 2**40, lambda v: v * 2, np.int64(1))) == 2**40


def test_types_settle():
    assert lax.while_loop(lambda c: c < 3, lambda c: c + np.float64(1), 0).dtype == np.float64


def test_a_predicate_on_what_is_linear_is_not_linear():
    with pytest.raises(Exception, match="linear"):
        fm.linear_transpose(square_up, jnp.float32(1.0))(1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0), r"bool\[\]"),
        (lambda: lax.while_loop(lambda c: (True, True), lambda c: c, 1.0), r"bool\[\]"),
        (lambda: lax.while_loop(lambda c: True, lambda c: (c, c), 1.0), "structure"),
        (lambda: lax.while_loop(lambda c: True, lambda c: jnp.ones(2), jnp.ones(3)), r"f32\[3\] and leaves as f32\[2\]"),
        (lambda: lax.while_loop(lambda c: True, 3, 1.0), "two callables"),
    ],
)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_a_batch_of_no_examples():
    inner = lambda v: lax.while_loop(lambda v: v < 10.0, lambda v: v * 2, v)
    f = lambda x: lax.while_loop(lambda v: v < 100.0, inner, lax.cond(x > 0, inner, lambda x: x, x))
    assert fm.vmap(f)(jnp.zeros((0,))).shape == (0,)


def test_reverse_mode_of_a_batch_of_whiles():
    x = np.array([3.0, 4.0, 11.0, 200.0])
    found = fm.grad(lambda x: fm.vmap(square_up)(x).sum())(x)
    assert found.tolist() == [8 * 3.0**7, 4 * 4.0**3, 2 * 11.0, 1.0]


def test_values_are_arrays_without_jit():
    """`x += 1` in a body makes a new array, also where the initial value is one of NumPy's."""

    def step(carry):
        x, total = carry
        x += 1
        return x, total + x

    start = np.array(1.0)
    with fm.disable_jit():
        assert float(lax.while_loop(lambda c: c[0] < 10, step, (start, start))[1]) == 55.0
        assert float(lax.fori_loop(0, 9, lambda _, c: step(c), (start, start))[1]) == 55.0
    assert start == 1.0


def test_what_every_step_gives_back_is_not_mapped():
    def f(w, x, most):
        _, x, w = lax.while_loop(lambda v: v[0] < most, lambda v: (v[0] + 1, v[1] @ v[2], v[2]), (0, x, w))
        return w, x

    w, xs, most = 2 * np.eye(2), np.ones((4, 2)), jnp.arange(4)
    kept, found = fm.vmap(f, in_axes=(None, 0, 0), out_axes=(None, 0))(w, xs, most)
    np.testing.assert_array_equal(kept, w)
    np.testing.assert_array_equal(found, 2.0 ** np.arange(4)[:, None] * xs)
    every, found = fm.vmap(f)(np.stack([w] * 4), xs, most)
    np.testing.assert_array_equal(every, np.stack([w] * 4))
    np.testing.assert_array_equal(found, 2.0 ** np.arange(4)[:, None] * xs)
