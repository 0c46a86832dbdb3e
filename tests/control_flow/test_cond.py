"""`cond` and `switch`: values, derivatives, batches, what is not taken, types, errors."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from funcml.lowering.emit import to_stablehlo
from tests.products import check_products

X = np.array([0.4, -1.2, 0.9])


def choose(i, x, w):
    return lax.switch(i, [lambda x: jnp.sin(x) * w, lambda x: x * x, lambda x: jnp.exp(x @ jnp.ones(3)) + w * x], x)


@pytest.mark.parametrize("i", [-3, 0, 1, 2, 9])
def test_switch_products(i):
    want = [np.sin(X) * 0.3, X * X, np.exp(X.sum()) + 0.3 * X][min(max(i, 0), 2)]
    np.testing.assert_allclose(choose(i, X, np.float64(0.3)), want, rtol=1e-12)
    check_products(lambda x, w: choose(i, x, w), X, np.float64(0.3))


def test_products_of_a_traced_predicate():
    check_products(lambda x: lax.cond(x.sum() > 0, lambda x: jnp.cos(x), lambda x: x**3, x), X)


def test_an_index_for_each_example():
    i = np.array([0, 2, 1, 1])
    x = np.random.default_rng(0).normal(size=(4, 3))
    got = fm.vmap(lambda i, x: choose(i, x, np.float64(0.3)))(i, x)
    want = np.stack([np.asarray(choose(int(k), v, np.float64(0.3))) for k, v in zip(i, x)])
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_what_is_not_taken_leaves_no_nan():
    f = lambda x: lax.cond(x > 0, jnp.sqrt, lambda x: 0.0 * x, x)
    assert float(fm.grad(f)(0.0)) == 0.0
    assert fm.vmap(fm.grad(f))(jnp.array([0.0, 4.0])).tolist() == [0.0, 0.25]
    assert fm.grad(lambda x: fm.vmap(f)(x).sum())(jnp.array([0.0, 4.0])).tolist() == [0.0, 0.25]


def test_a_mask_goes_into_the_branches():
    f = lambda x: jnp.where(x > 0, lax.cond(True, jnp.sqrt, lambda x: x, x), 0.0)
    assert float(fm.grad(f)(0.0)) == 0.0


def test_a_loop_in_a_branch_ends_for_examples_that_did_not_choose_it():
    def halve(x):  # does not end for x = inf
        return lax.while_loop(lambda v: v > 1.0, lambda v: v / 2, x)

    f = fm.vmap(lambda x: lax.cond(x < 1e6, halve, lambda x: -x, x))
    assert f(jnp.array([8.0, np.inf, 3.0])).tolist() == [1.0, -np.inf, 0.75]
    assert f(jnp.array([np.inf, np.inf])).tolist() == [-np.inf, -np.inf]


def test_only_one_branch_is_compiled_to_run():
    text = fm.jit(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)).lower(1.0).as_text()
    assert "stablehlo.case" in text


def test_weak_results_take_the_dtype_of_the_others():
    assert lax.cond(True, lambda: 1.0, lambda: np.float64(2.0)).dtype == np.float64
    assert lax.cond(True, lambda: 1, lambda: 2.0).dtype == np.float32


def test_predicates_that_are_numbers():
    assert float(lax.cond(2, lambda: 1.0, lambda: 0.0)) == 1.0
    assert float(lax.cond(np.float32(0.0), lambda: 1.0, lambda: 0.0)) == 0.0


def test_a_tree_of_residuals_of_different_types():
    def f(p, x):
        return lax.cond(p, lambda x: jnp.sin(x).sum() * x[0], lambda x: (x @ x) ** 2, x)

    check_products(lambda x: f(True, x), X)
    check_products(lambda x: f(False, x), X)


def test_the_platform_chooses():
    def f(x):
        return lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos, default=jnp.exp)

    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-12)
    check_products(f, X)
    jaxpr = fm.make_jaxpr(f)(X)
    for platform, operation in (("cpu", "sine"), ("cuda", "cosine"), ("tpu", "exponential")):
        text = to_stablehlo(jaxpr, platform=platform)
        assert f"stablehlo.{operation} " in text and "case" not in text and text.count("stablehlo.") == 2
    with pytest.raises(NotImplementedError, match="for tpu and no default=, but this is for cpu"):
        lax.platform_dependent(X, tpu=jnp.sin)
    with pytest.raises(TypeError, match="cpu=f"):
        lax.platform_dependent(X)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lax.cond(True, lambda: jnp.ones(2), lambda: jnp.ones(3)), r"f32\[2\]|f32\[3\]"),
        (lambda: lax.cond(True, lambda: {"a": 1.0}, lambda: 1.0), "same structure"),
        (lambda: lax.cond(jnp.ones(2), lambda: 1.0, lambda: 2.0), "scalar pred"),
        (lambda: lax.cond(True, 1.0, lambda: 2.0), "true_fun"),
        (lambda: lax.cond(True, lambda x: "a", lambda x: x, 1.0), "array or a number"),
        (lambda: lax.cond(True, lambda x: x, lambda x: x, "a"), "operands"),
        (lambda: lax.switch(0.5, [lambda: 1.0, lambda: 2.0]), "integer index"),
        (lambda: lax.switch(0, []), "at least one"),
        (lambda: lax.cond(True, lambda: np.float64(1), lambda: np.float32(1)), "same types"),
    ],
)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_what_every_branch_passes_on_is_not_mapped():
    def f(x, y, z):
        return lax.cond(x < 3, lambda x, y, z: (x * 2, y, z), lambda x, y, z: (x * 3, y, z + 1), x, y, z)

    out = fm.vmap(f, in_axes=(0, None, None), out_axes=(0, None, 0))(jnp.arange(5), 3.0, 1)
    for found, wanted in zip(out, ([0, 2, 4, 9, 12], 3.0, [1, 1, 1, 2, 2]), strict=True):
        np.testing.assert_array_equal(found, wanted)
