"""`checkpoint`: the same derivatives, other residuals."""

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.core.ir import sub_programs
from funcml.transforms.linearize import linearize_jaxpr
from tests.products import check_products

X = np.array([0.5, 1.0, 2.0])
W = np.random.default_rng(0).normal(size=(3, 3))
policies = fm.checkpoint_policies


def net(x):
    y = jnp.sin(x @ W)
    return jnp.sin(fm.checkpoint_name(y @ W, "hidden")).sum()


def residuals(f):
    jaxpr = fm.make_jaxpr(f)(X)
    n = len(jaxpr.invars)
    return linearize_jaxpr(jaxpr, (False,) * (n - 1) + (True,)).residuals


def test_derivatives_are_the_same_to_second_order():
    check_products(fm.checkpoint(net), X)
    check_products(lambda x: fm.checkpoint(lambda y: jnp.sin(fm.checkpoint(jnp.exp)(y)))(x) * x, X)


def test_the_default_saves_inputs_only_and_policies_more():
    counts = {
        name: residuals(fm.checkpoint(net, policy=policy))
        for name, policy in {
            "nothing": policies.nothing_saveable,
            "named": policies.save_only_these_names("hidden"),
            "dots": policies.dots_saveable,
            "everything": policies.everything_saveable,
        }.items()
    }
    assert counts["nothing"] < counts["named"] <= counts["dots"] <= counts["everything"]


@pytest.mark.parametrize(
    "policy",
    [
        policies.everything_saveable,
        policies.dots_saveable,
        policies.dots_with_no_batch_dims_saveable,
        policies.save_only_these_names("hidden"),
        policies.save_anything_except_these_names("hidden"),
        policies.save_any_names_but_these("other"),
        policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("hidden")),
        policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"], offload_src="device", offload_dst="pinned_host"
        ),
        "auto",
    ],
)
def test_every_policy_gives_the_gradient(policy):
    want = fm.grad(net)(X)
    np.testing.assert_allclose(fm.grad(fm.checkpoint(net, policy=policy))(X), want)
    np.testing.assert_allclose(fm.jit(fm.grad(fm.checkpoint(net, policy=policy)))(X), want)


def test_the_forward_half_is_computed_again_behind_a_barrier():
    again, plain = (fm.jit(fm.value_and_grad(f)).lower(X) for f in (fm.checkpoint(net), net))
    assert "optimization_barrier" in again.as_text() and "optimization_barrier" not in plain.as_text()
    counts = [lowered.as_text().count("stablehlo.sine") for lowered in (again, plain)]
    assert counts == [3, 2]


def test_less_memory():
    def deep(x):
        for _ in range(20):
            x = jnp.sin(x)
        return x.sum()

    def remat(x):
        for _ in range(4):
            x = fm.checkpoint(lambda y: jnp.sin(jnp.sin(jnp.sin(jnp.sin(jnp.sin(y))))))(x)
        return x.sum()

    jaxpr, again = (fm.make_jaxpr(f)(X) for f in (deep, remat))
    assert linearize_jaxpr(jaxpr, (True,)).residuals == 20
    assert linearize_jaxpr(again, (True,)).residuals == 4


def test_static_arguments_kwargs_and_decorator():
    @fm.checkpoint(static_argnums=(1,))
    def f(x, n, *, scale):
        for _ in range(n):
            x = jnp.sin(x)
        return x * scale

    want = fm.grad(lambda x: jnp.sin(jnp.sin(x)) * 2.0)(0.5)
    np.testing.assert_allclose(fm.grad(lambda x: f(x, 2, scale=2.0))(0.5), want, rtol=1e-6)
    np.testing.assert_allclose(float(f(0.5, 2, scale=2.0)), np.sin(np.sin(0.5)) * 2.0, rtol=1e-6)


def test_every_name_of_jax_is_there():
    theirs = {n for n in dir(jax.checkpoint_policies) if not n.startswith("_")}
    assert theirs <= set(dir(policies))
    inner = {"checkpoint_name_fwd", "name_p"}  # of jax 0.12: parts of its own machinery
    assert {n for n in dir(jax.ad_checkpoint) if not n.startswith("_")} - inner <= set(dir(fm.ad_checkpoint))


def test_policies_compare_by_what_they_do():
    make = [
        lambda: policies.save_only_these_names("a", "b"),
        lambda: policies.save_any_names_but_these("a", "b"),
        lambda: policies.save_anything_except_these_names("a", "b"),
        lambda: policies.offload_dot_with_no_batch_dims("device", "host"),
        lambda: policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("a")),
    ]
    made = [m() for m in make]
    assert [m() for m in make] == made and len(set(made)) == len(made)


def test_a_name_is_saved_or_offloaded():
    with pytest.raises(ValueError, match="'b' is to be both"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a", "b"], names_which_can_be_offloaded=["b"], offload_src="a", offload_dst="b"
        )


def test_verdicts_in_the_place_of_booleans():
    for yes, no in (
        (fm.ad_checkpoint.Saveable, fm.ad_checkpoint.Recompute),
        (fm.ad_checkpoint.Offloadable("device", "pinned_host"), None),
        (np.True_, np.False_),
    ):
        f = fm.checkpoint(net, policy=lambda p, *_, yes=yes, no=no, **__: yes if p.name == "dot_general" else no)
        found = [r.equation for r in fm.ad_checkpoint.saved_residuals(f, X) if r.equation]
        assert found == ["dot_general", "dot_general"]


def test_what_is_not_used_is_not_saved():
    f = fm.checkpoint(lambda x: jnp.sum(3.0 * (jnp.cos(x) * 0.0 + x)), policy=policies.nothing_saveable)
    assert fm.ad_checkpoint.saved_residuals(f, X)[0].reason == "from the argument x"
    linear = fm.checkpoint(lambda x: fm.checkpoint_name(jnp.sum(x), "a") * 3.0, policy=policies.everything_saveable)
    assert fm.ad_checkpoint.saved_residuals(linear, X) == []


def test_calls_do_not_give_back_their_inputs():
    inner = fm.jit(lambda x, w: jnp.sin(x * w))
    jaxpr = fm.make_jaxpr(lambda x, w: inner(x, w))(X, X)
    known = linearize_jaxpr(jaxpr, (True, True)).known
    assert set(known.outs) >= set(known.invars)  # residuals are the inputs themselves
    assert len(known.eqns[0].outvars) == 2  # the sine and the cosine


def products_inside(f, *args) -> int:
    """The matrix products in the program of a gradient, those of each loop and branch once."""

    def count(jaxpr):
        inner = [p for eqn in jaxpr.eqns for p in sub_programs(eqn.params)]
        return sum(eqn.primitive.name == "dot_general" for eqn in jaxpr.eqns) + sum(map(count, inner))

    return count(fm.make_jaxpr(fm.value_and_grad(f))(*args))


@pytest.mark.parametrize("inside", ["scan", "cond"])
def test_policies_look_into_loops_and_branches(inside):
    def step(x):
        return jnp.sin(jnp.sin(x @ W) @ W)

    def scanned(x):
        return fm.lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0].sum()

    def branched(x):
        return fm.lax.cond(x.sum() > 0, step, jnp.cos, x).sum()

    f = scanned if inside == "scan" else branched
    policed = fm.checkpoint(f, policy=policies.dots_saveable)
    assert products_inside(policed, X) == products_inside(f, X) == 4
    assert products_inside(fm.checkpoint(f), X) > 4
    for g in (fm.grad, lambda f: fm.grad(lambda x: fm.grad(f)(x).sum())):
        np.testing.assert_allclose(g(policed)(X), g(f)(X), rtol=1e-9)
    unasked = fm.checkpoint(f, policy=policies.save_only_these_names("nowhere"))
    assert [r for r in fm.ad_checkpoint.saved_residuals(unasked, X) if r.equation] == []
