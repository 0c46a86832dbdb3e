"""`custom_vmap`, `sequential_vmap`, `closure_convert`, `custom_gradient`, `fwd_and_bwd`."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from funcml.custom_batching import custom_vmap, sequential_vmap
from funcml.custom_derivatives import closure_convert, custom_gradient, fwd_and_bwd

X = np.array([0.3, 1.1, -0.4])


def marked(seen):
    """sin(x) * y, whose rule for batches notes how it was called and gives the same times 10."""

    @custom_vmap
    def f(x, y):
        return {"out": jnp.sin(x) * y}

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        seen.append((axis_size, in_batched, np.shape(x), np.shape(y)))
        return {"out": 10 * jnp.sin(x) * y}, {"out": True}

    return f


def test_the_rule_is_run_for_batches_only():
    seen = []
    f = marked(seen)
    np.testing.assert_allclose(fm.jit(f)(X[0], 2.0)["out"], 2 * np.sin(0.3), rtol=1e-6)
    assert not seen
    np.testing.assert_allclose(fm.vmap(f, (0, None))(X, 2.0)["out"], 20 * np.sin(X), rtol=1e-6)
    assert seen == [(3, [True, False], (3,), ())]
    np.testing.assert_allclose(fm.vmap(f, (0, None), axis_size=3)(X[:, None], 2.0)["out"][:, 0], 20 * np.sin(X), rtol=1e-6)


def test_derivatives_of_the_rule():
    f = marked([])
    g = lambda x: f(x, x)["out"]
    want = np.cos(X) * X + np.sin(X)
    np.testing.assert_allclose([float(fm.grad(g)(x)) for x in X], want, rtol=1e-6)
    np.testing.assert_allclose(fm.vmap(lambda x: fm.jvp(g, (x,), (1.0,))[1])(X), 10 * want, rtol=1e-6)
    np.testing.assert_allclose(fm.jvp(fm.vmap(g), (X,), (np.ones(3),))[1], 10 * want, rtol=1e-6)
    np.testing.assert_allclose(fm.grad(lambda x: fm.vmap(g)(x).sum())(X), 10 * want, rtol=1e-6)


def test_tangents_of_what_is_not_mapped():
    f = marked([])
    t = fm.jvp(lambda y: fm.vmap(lambda x: f(x, y)["out"])(X), (2.0,), (1.0,))[1]
    np.testing.assert_allclose(t, 10 * np.sin(X), rtol=1e-6)


def test_closed_over_values():
    def g(x, w):
        f = custom_vmap(lambda x: x * w)
        f.def_vmap(lambda n, batched, x: (x * w, True))
        return f(x)

    np.testing.assert_allclose(fm.vmap(lambda x: g(x, 3.0))(X), 3 * X)
    np.testing.assert_allclose(fm.grad(lambda w: g(X, w).sum())(3.0), X.sum(), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="closes over a mapped value"):
        fm.vmap(lambda w: g(2.0, w))(X)


@pytest.mark.parametrize(("rule", "words"), [
    (lambda n, b, x: x, "must return a pair"),
    (lambda n, b, x: ([x], [True]), "structure"),
    (lambda n, b, x: (x, False), r"must give f64\[\]"),
])  # fmt: skip
def test_rules_are_checked(rule, words):
    f = custom_vmap(lambda x: x)
    with pytest.raises(AttributeError, match="def_vmap"):
        f(1.0)
    f.def_vmap(rule)
    with pytest.raises(TypeError, match=words):
        fm.vmap(f)(X)


def test_sequential_vmap():
    shapes = []

    @sequential_vmap
    def f(x, w):
        shapes.append(x.shape)
        return {"y": x * w, "n": jnp.int32(1)}

    out = fm.vmap(f, (0, None))(X, 2.0)
    np.testing.assert_allclose(out["y"], 2 * X)
    assert out["n"].tolist() == [1, 1, 1] and set(shapes) == {()}
    np.testing.assert_allclose(fm.grad(lambda x: fm.vmap(f, (0, None))(x, 2.0)["y"].sum())(X), [2, 2, 2])


def test_closure_convert():
    def integrate(f, a):
        converted, consts = closure_convert(f, a)

        @fm.custom_vjp
        def total(a, *consts):
            return converted(a, *consts) * 3

        def bwd(residuals, ct):
            a, consts = residuals
            return fm.vjp(lambda a, *c: converted(a, *c) * 3, a, *consts)[1](ct)

        total.defvjp(lambda a, *c: (total(a, *c), (a, c)), bwd)
        return total(a, *consts)

    g = fm.grad(lambda w, a: integrate(lambda a: jnp.sin(w * a), a), (0, 1))
    np.testing.assert_allclose(g(0.5, 2.0), [6 * np.cos(1.0), 1.5 * np.cos(1.0)], rtol=1e-6)
    converted, consts = closure_convert(lambda x: x + 1, X)
    assert consts == []
    with pytest.raises(TypeError, match="takes 1 arguments and 0 consts, got 2"):
        converted(X, X)


def test_custom_gradient():
    @custom_gradient
    def clip(x, bound):
        return x * bound, lambda ct: (jnp.clip(ct, -bound, bound), jnp.zeros_like(bound))

    g = fm.grad(lambda x: (5 * clip(x, 2.0)).sum())
    np.testing.assert_allclose(g(X), [2, 2, 2])
    np.testing.assert_allclose(fm.jit(fm.vmap(fm.grad(lambda x: 5 * clip(x, 2.0))))(X), [2, 2, 2])
    assert float(fm.grad(custom_gradient(lambda x: (x**2, lambda ct: ct * 10)))(3.0)) == 10.0


def test_fwd_and_bwd():
    fwd, bwd = fwd_and_bwd(lambda x, w: (jnp.sin(x @ w), {"n": x.sum()}), argnums=(1, 0), has_aux=True)
    w = np.eye(3) * 2
    y, residuals, aux = fwd(X, w)
    np.testing.assert_allclose(y, np.sin(2 * X))
    np.testing.assert_allclose(aux["n"], X.sum())
    ct_w, ct_x = bwd(residuals, np.ones(3))
    np.testing.assert_allclose(ct_x, 2 * np.cos(2 * X), rtol=1e-12)
    np.testing.assert_allclose(ct_w, np.outer(X, np.cos(2 * X)), rtol=1e-12)
    fwd, bwd = fwd_and_bwd(lambda x: lax.sin(x), 0, jitted=False)
    assert float(bwd(fwd(0.0)[1], 1.0)) == 1.0


def test_a_literal_reaches_a_rule_as_an_array():
    """A Python number among the arguments stands in the program as a literal; a rule may ask for its shape and dtype."""
    @fm.custom_vjp
    def scaled(x, s):
        return x * s

    scaled.defvjp(lambda x, s: (x * s, (x, s, s.dtype.type(1))), lambda r, ct: (ct * r[1], (ct * r[0]).astype(r[1].dtype)))
    assert float(fm.grad(lambda x: scaled(x, 3.0))(2.0)) == 3.0

    @fm.custom_jvp
    def added(x, s):
        return x + s

    added.defjvp(lambda p, t: (added(*p), t[0].reshape(p[1].shape) + t[1]))
    assert float(fm.grad(lambda x: added(x, 3.0))(2.0)) == 1.0
