"""Passes over programs: rules for equations, in programs inside programs, and composed with the other transforms."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import extend, lax

X = np.float32([0.3, -1.2, 2.0])


def cosines(eqn, operands):
    """sin becomes cos."""
    return [jnp.cos(*operands)] if eqn.primitive.name == "sin" else None


def body(x):
    y, _ = lax.scan(lambda c, _: (jnp.sin(c) * 2.0, None), x, None, length=2)
    z = lax.cond(x.sum() > 0, lambda x: jnp.sin(x), lambda x: x, x)
    return y + fm.jit(jnp.sin)(z) + lax.while_loop(lambda v: (v < 1).any(), lambda v: v * v + jnp.sin(v) + 2.0, x)


def wanted(x):
    y = np.cos(np.cos(x) * 2) * 2
    z = np.cos(x) if x.sum() > 0 else x
    v = x
    while (v < 1).any():
        v = v * v + np.cos(v) + 2
    return y + np.cos(z) + v


def test_a_rule_reaches_every_program():
    f = extend.rewritten(body, cosines)
    np.testing.assert_allclose(f(X), wanted(X), rtol=1e-5)
    np.testing.assert_allclose(fm.jit(f)(X), wanted(X), rtol=1e-5)
    names = {eqn.primitive.name for eqn in extend.all_eqns(fm.make_jaxpr(f)(X))}
    assert "cos" in names and "sin" not in names


def test_it_composes():
    f = extend.rewritten(lambda x: jnp.sin(x).sum(), cosines)
    np.testing.assert_allclose(fm.grad(f)(X), -np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(fm.vmap(f)(np.stack([X, X])), [np.cos(X).sum()] * 2, rtol=1e-6)
    np.testing.assert_allclose(extend.rewritten(fm.grad(lambda x: -jnp.cos(x).sum()), cosines)(X), np.cos(X), rtol=1e-6)


def test_interpret_with_values_and_captured_arrays():
    w = jnp.float32([1.0, 2.0, 3.0])
    seen = []

    def spy(eqn, operands):
        seen.append((eqn.primitive.name, [float(np.sum(x)) for x in operands]))

    traced = fm.make_jaxpr(lambda x: (x * w).sum())(X)
    assert float(extend.interpret(traced, [w, X], spy)[0]) == pytest.approx(float((X * w).sum()), rel=1e-6)
    assert [name for name, _ in seen] == ["mul", "reduce_sum"]
    np.testing.assert_allclose(extend.rewritten(lambda x: jnp.sin(x * w), cosines)(X), np.cos(X * w), rtol=1e-6)


def test_bind_eqn_and_programs_as_functions():
    jaxpr = extend.make_jaxpr(lambda x, y: (jnp.sin(x) * y, 2.0))(X, X)
    env = dict(zip(jaxpr.invars, (X, X + 1), strict=True))
    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, extend.bind_eqn(eqn, [env[a] for a in eqn.invars]), strict=True))
    np.testing.assert_allclose(env[jaxpr.outs[0]], np.sin(X) * (X + 1), rtol=1e-6)
    y, two = extend.core.jaxpr_as_fun(jaxpr)(X, X + 1)
    np.testing.assert_allclose(y, np.sin(X) * (X + 1), rtol=1e-6)
    assert float(two) == 2.0


@pytest.mark.parametrize(("rule", "words"), [
    (lambda eqn, xs: xs[0], r"a list of the 1 results of `sin`.*write \[y\]"),
    (lambda eqn, xs: [xs[0][:2]], r"gave f32\[2\] for result 0 of `sin`, which is f32\[3\]"),
    (lambda eqn, xs: [jnp.float32([1, 2, 3])], "brought in arrays"),
])  # fmt: skip
def test_errors(rule, words):
    with pytest.raises(TypeError, match=words):
        extend.rewritten(jnp.sin, rule)(X)


def test_the_number_of_values_is_checked():
    with pytest.raises(TypeError, match="2 inputs was given 1 values"):
        extend.interpret(fm.make_jaxpr(jnp.add)(X, X), [X], cosines)
