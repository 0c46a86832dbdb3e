"""What a scan keeps for its backward pass, and `scan(checkpoint=)`: against the plain scan, and in bytes."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from funcml.ad_checkpoint import saved_residuals
from funcml.lax.segments import _near_root
from tests.products import check_products

rng = np.random.default_rng(0)
W = rng.normal(size=(3, 3))


def label(choice) -> str:
    return getattr(choice, "__name__", str(choice))


CHOICES = ["sqrt", 1, 3, 100, "auto", fm.checkpoint_policies.dots_saveable, fm.checkpoint_policies.nothing_saveable]


def step(c, x):
    a, b = c
    a = jnp.tanh(a @ W + x["u"])
    return (a, b * jnp.sin(x["v"])), {"y": a * b, "z": x["v"] * 2.0}


def operands(n: int):
    xs = {"u": rng.normal(size=(n, 3)), "v": rng.normal(size=n)}
    return (np.array([0.3, -0.2, 0.5]), np.array(1.5)), xs


def agree(found, want):
    fm.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), found, want)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("choice", CHOICES, ids=label)
@pytest.mark.parametrize("length", [0, 1, 7, 12])
def test_values_and_gradients_are_those_of_the_plain_scan(choice, reverse, length):
    c, xs = operands(length)

    def loss(c, xs, choice):
        (a, b), ys = lax.scan(step, c, xs, length=length, reverse=reverse, checkpoint=choice)
        return (a * b).sum() + (ys["y"] ** 2).sum() + ys["z"].sum(), (a, b, ys)

    both = fm.jit(fm.value_and_grad(loss, (0, 1), has_aux=True), static_argnums=2)
    agree(both(c, xs, choice), both(c, xs, None))


@pytest.mark.parametrize("choice", ["sqrt", 2, fm.checkpoint_policies.nothing_saveable], ids=label)
def test_products(choice):
    c, xs = operands(5)

    def f(a, b, u, v):
        return lax.scan(step, (a, b), {"u": u, "v": v}, reverse=True, checkpoint=choice)

    check_products(f, *c, xs["u"], xs["v"])


def test_closed_over_tracers_unroll_and_no_xs():
    def loss(w, choice):
        def step(c, _):
            return jnp.sin(c @ w), None

        return lax.scan(step, np.ones(3), None, length=7, unroll=2, checkpoint=choice)[0].sum()

    agree(fm.hessian(lambda w: loss(w, "sqrt"))(W), fm.hessian(lambda w: loss(w, None))(W))
    agree(fm.vmap(fm.grad(lambda w: loss(w, 3)))(np.stack([W, 2 * W])), [fm.grad(lambda w: loss(w, None))(w) for w in (W, 2 * W)])


def test_disable_jit_takes_it():
    with fm.disable_jit():
        assert float(lax.scan(lambda c, x: (c + x, None), 0.0, np.arange(4.0), checkpoint="sqrt")[0]) == 6.0


@pytest.mark.parametrize(
    "choice, words",
    [
        ("cube", 'checkpoint must be "sqrt", a number of steps'),
        (True, 'checkpoint must be "sqrt", a number of steps'),
        (2.0, 'checkpoint must be "sqrt", a number of steps'),
        (0, "a segment has at least one step"),
    ],
)
def test_errors(choice, words):
    with pytest.raises((TypeError, ValueError), match=words):
        lax.scan(step, *operands(3), checkpoint=choice)


def test_roots():
    assert [_near_root(n) for n in (0, 1, 2, 100, 500, 7, 97)] == [1, 1, 2, 10, 20, 3, 10]


# ---- bytes -----------------------------------------------------------------------------------------------------------


def stacked(f, *args) -> list:
    """Types of what is kept that is neither argument nor constant."""
    return sorted(str(r.aval) for r in saved_residuals(f, *args) if r.equation)


def test_cheap_functions_are_computed_again():
    def f(c, xs):
        return lax.scan(lambda c, x: (jnp.tanh(jnp.sin(c) * jnp.exp(x)), None), c, xs)[0]

    assert stacked(f, np.ones(4), np.ones((9, 4))) == ["f64[9,4]"]  # the carry; four arrays without recomputation


def test_products_are_stacked():
    w = np.ones((128, 128), np.float32)

    def f(c, w):
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), c, None, length=9)[0]

    assert stacked(f, np.ones(128, np.float32), w) == ["f32[9,128]"] * 2  # the carry and the product


def test_what_a_step_leaves_as_it_is_is_not_stacked():
    def f(c, w):
        return lax.scan(lambda s, _: ((jnp.sin(s[0] @ s[1]), s[1]), None), (c, w), None, length=9)[0][0]

    w = np.ones((16, 16), np.float32)
    assert all("16,16" not in t for t in stacked(lambda c: f(c, w), np.ones(16, np.float32)))


def test_effects_in_a_step_happen_once():
    seen = []

    def step(c, x):
        fm.debug.callback(lambda v: seen.append(float(v)), x)
        return jnp.sin(c) * x, None

    fm.grad(lambda c: lax.scan(step, c, np.arange(3, dtype=np.float32))[0])(1.0)
    fm.effects_barrier()
    assert seen == [0.0, 1.0, 2.0]


def memory(choice, n: int) -> int:
    w = np.zeros((64, 64), np.float32)
    x = np.zeros((128, 64), np.float32)

    def loss(w, x):
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=n, checkpoint=choice)[0].sum()

    return fm.jit(fm.grad(loss)).lower(w, x).compile().memory_analysis()["temp_size_in_bytes"]


def test_memory_of_the_compiled_program():
    plain, two_levels = memory(None, 400), memory("sqrt", 400)
    carry = 128 * 64 * 4
    assert plain > 400 * carry
    assert two_levels < 100 * carry
