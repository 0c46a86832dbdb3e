"""`grad` and its like on trees, with every option; JAX and closed forms as oracles."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp

X = np.array([0.5, 1.0, 2.0])


def test_grad_of_a_tree_has_its_tree():
    params = {"w": jnp.array([1.0, 2.0]), "b": (jnp.array(3.0), [jnp.array(4.0)])}
    g = fm.grad(lambda p: (p["w"] ** 2).sum() * p["b"][0] + p["b"][1][0])(params)
    assert g["w"].tolist() == [6.0, 12.0]
    assert float(g["b"][0]) == 5.0 and float(g["b"][1][0]) == 1.0


def test_argnums():
    f = lambda x, y: x * y**2
    assert float(fm.grad(f, 1)(2.0, 3.0)) == 12.0
    assert [float(g) for g in fm.grad(f, (1, 0))(2.0, 3.0)] == [12.0, 9.0]
    assert float(fm.grad(f, -1)(2.0, 3.0)) == 12.0


def test_value_and_grad_with_aux_of_any_kind():
    (value, aux), g = fm.value_and_grad(lambda x: (x**2, {"twice": 2 * x, "name": "x"}), has_aux=True)(3.0)
    assert float(value) == 9.0 and float(aux["twice"]) == 6.0 and aux["name"] == "x" and float(g) == 6.0
    g, aux = fm.grad(lambda x: (x**2, x), has_aux=True)(3.0)
    assert float(g) == 6.0 and float(aux) == 3.0


def test_other_arguments_may_be_anything():
    def f(x, n, scale, how, act):
        assert isinstance(n, int) and how == "sum"
        return act(x * scale).sum() * n

    assert fm.grad(f)(jnp.ones(2), 3, 2.0, "sum", jnp.sin).shape == (2,)


def test_keyword_arguments():
    assert float(fm.grad(lambda x, *, y: x * y)(2.0, y=5.0)) == 5.0


def test_holomorphic_and_complex():
    z = 1.0 + 2.0j
    np.testing.assert_allclose(fm.grad(lambda z: z**3, holomorphic=True)(z), 3 * z**2, rtol=1e-6)
    import jax

    want = jax.grad(lambda z: jax.numpy.abs(z) ** 2)(z)
    np.testing.assert_allclose(fm.grad(lambda z: jnp.abs(z) ** 2)(z), want, rtol=1e-6)


def test_allow_int_gives_float0():
    g = fm.grad(lambda x, n: x * n, argnums=(0, 1), allow_int=True)(2.0, 3)
    assert float(g[0]) == 3.0 and g[1].dtype == fm.dtypes.float0


def test_unused_and_constant():
    assert float(fm.grad(lambda x, y: y)(1.0, 2.0)) == 0.0
    assert fm.grad(lambda x: 3.0)(jnp.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_jvp_vjp_linearize_agree():
    f = lambda x, y: {"a": jnp.sin(x) * y, "b": (x * y).sum()}
    t = (X + 1, X - 1)
    y, dy = fm.jvp(f, (X, X), t)
    y2, push = fm.linearize(f, X, X)
    y3, pull = fm.vjp(f, X, X)
    for k in "ab":
        np.testing.assert_allclose(dy[k], push(*t)[k])
        np.testing.assert_allclose(y[k], y2[k])
        np.testing.assert_allclose(y[k], y3[k])
    ct = {"a": jnp.asarray(X), "b": jnp.asarray(2.0, "float64")}
    paired = sum(float((ct[k] * dy[k]).sum()) for k in "ab")
    np.testing.assert_allclose(paired, sum(float((g * d).sum()) for g, d in zip(pull(ct), t, strict=True)))


def test_aux_of_jvp_vjp_linearize():
    f = lambda x: (jnp.sin(x), {"n": x * 2})
    y, dy, aux = fm.jvp(f, (0.0,), (1.0,), has_aux=True)
    assert (float(y), float(dy), float(aux["n"])) == (0.0, 1.0, 0.0)
    y, pull, aux = fm.vjp(f, 0.0, has_aux=True)
    assert float(pull(1.0)[0]) == 1.0 and float(aux["n"]) == 0.0


def test_pullback_and_pushforward_are_trees():
    pull = fm.vjp(lambda x: x * x, jnp.asarray(3.0))[1]
    assert float(fm.jit(lambda p, ct: p(ct)[0])(pull, 2.0)) == 12.0
    assert len(fm.tree.leaves(pull)) >= 1
    cts = fm.vmap(lambda ct: pull(ct)[0])(jnp.arange(3.0))
    assert cts.tolist() == [0.0, 6.0, 12.0]


def test_linear_transpose():
    w = np.arange(6.0).reshape(2, 3)
    (ct,) = fm.linear_transpose(lambda x: w @ x, X)(np.ones(2))
    np.testing.assert_allclose(ct, w.T @ np.ones(2))


def test_jacobians_and_hessian_of_trees():
    f = lambda p, s: {"y": p["a"] * s, "z": p["b"].sum() * p["a"][:2]}
    p = {"a": jnp.asarray(X), "b": jnp.asarray(np.ones((2, 2)))}
    forward, reverse = fm.jacfwd(f)(p, 2.0), fm.jacrev(f)(p, 2.0)
    for jac in (forward, reverse):
        np.testing.assert_allclose(jac["y"]["a"], 2 * np.eye(3))
        np.testing.assert_allclose(jac["y"]["b"], np.zeros((3, 2, 2)))
        np.testing.assert_allclose(jac["z"]["b"], np.broadcast_to(X[:2, None, None], (2, 2, 2)))
        np.testing.assert_allclose(jac["z"]["a"], 4 * np.eye(3)[:2])
    both = fm.jacfwd(lambda x, y: x * y, argnums=(0, 1))(X, X + 1)
    np.testing.assert_allclose(both[0], np.diag(X + 1))
    np.testing.assert_allclose(both[1], np.diag(X))
    jac, aux = fm.jacrev(lambda x: (x**2, x.sum()), has_aux=True)(X)
    np.testing.assert_allclose(jac, np.diag(2 * X))
    np.testing.assert_allclose(aux, X.sum())
    h = fm.hessian(lambda p: p["a"].sum() ** 2 * p["b"].sum())(p)
    np.testing.assert_allclose(h["a"]["a"], 8 * np.ones((3, 3)))
    np.testing.assert_allclose(h["a"]["b"], 7 * np.ones((3, 2, 2)))


def test_nested_derivatives_and_closures():
    f = lambda x: x**4
    g = f
    for want in (32.0, 48.0, 48.0, 24.0):
        g = fm.grad(g)
        assert float(g(2.0)) == want
    # d/dx of x * d/dy (x + y): perturbations must not be confused
    assert float(fm.grad(lambda x: x * fm.grad(lambda y: x + y)(1.0))(1.0)) == 1.0
    assert float(fm.grad(lambda x: fm.jvp(lambda y: x * y, (2.0,), (x,))[1])(3.0)) == 6.0


def test_derivatives_work_as_decorators():
    @fm.grad
    def slope(x):
        """the slope"""
        return x**2

    assert slope.__name__ == "slope" and float(slope(3.0)) == 6.0


def test_float16_bfloat16_and_float64():
    for dtype in ("float16", "bfloat16", "float64"):
        g = fm.grad(lambda x: (x * x).sum())(jnp.ones(3, dtype))
        assert g.dtype == dtype and g.tolist() == [2.0, 2.0, 2.0]


# ---- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fm.grad(lambda x: x)(X), TypeError, r"grad of .* returns a scalar, got f64\[3\].*jacrev"),
        (lambda: fm.grad(lambda x: (x, x))(1.0), TypeError, "returns one scalar.*has_aux"),
        (lambda: fm.grad(lambda x: x)(1), TypeError, r"float.*`x` is i32\[\].*allow_int"),
        (lambda: fm.grad(lambda p: p["a"]["w"])({"a": {"w": 1}}), TypeError, r"`p\['a'\]\['w'\]` is i32"),
        (lambda: fm.grad(lambda x: x > 0)(1.0), TypeError, r"returns a float, got bool\[\]"),
        (lambda: fm.grad(lambda x: x * 1j)(1.0), TypeError, "holomorphic"),
        (lambda: fm.grad(lambda x: x, holomorphic=True)(1.0), TypeError, "complex inputs"),
        (lambda: fm.grad(lambda x: x, argnums=2)(1.0), ValueError, "names argument 2.*has 1 positional"),
        (lambda: fm.grad(lambda x: x, argnums="x")(1.0), TypeError, "argnums must be an int"),
        (lambda: fm.grad(lambda x: x)("a"), TypeError, "`x` is str"),
        (lambda: fm.grad(3), TypeError, "expects a function"),
        (lambda: fm.grad(lambda x: x, has_aux=True)(1.0), TypeError, "pair"),
        (lambda: fm.jvp(lambda x: x, 1.0, (1.0,)), TypeError, r"primals must be a tuple.*\(p,\)"),
        (lambda: fm.jvp(lambda x: x, (1.0,), (1.0, 2.0)), TypeError, "1 primals but 2 tangents"),
        (lambda: fm.jvp(lambda x: x, (X,), (X[:2],)), TypeError, r"tangent of `x` must be f64\[3\].*got f64\[2\]"),
        (lambda: fm.jvp(lambda x: x, (np.float32(1),), (np.float64(1),)), TypeError, r"must be f32\[\].*got f64"),
        (lambda: fm.jvp(lambda x: x, ({"a": 1.0},), ({"b": 1.0},)), TypeError, "same structure"),
        (lambda: fm.vjp(lambda x: x, X)[1](X[:2]), ValueError, r"f64\[3\], but is f64\[2\]"),
        (lambda: fm.vjp(lambda x: {"a": x}, X)[1](X), ValueError, "structure of the output"),
        (lambda: fm.vjp(lambda x: x, "a"), TypeError, "not an array"),
        (lambda: fm.linear_transpose(lambda x: x * x, 1.0)(1.0), NotImplementedError, r"not linear.*f32\[\]"),
        (lambda: fm.linear_transpose(jnp.sin, 1.0)(1.0), NotImplementedError, "`sin` has no transpose_rule"),
        (lambda: fm.jacrev(lambda x: x > 0)(X), TypeError, "float outputs"),
        (lambda: fm.jacfwd(lambda x: x)(1), TypeError, "jacfwd of .* float"),
    ],
)
def test_errors_say_what_was_expected_and_what_came(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_tracebacks_show_the_users_frames_only():
    def f(x):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError) as caught:
        fm.grad(f)(1.0)
    files = [str(entry.path) for entry in caught.traceback]
    assert files[-1] == __file__
    assert sum("/funcml/" in name and "/tests/" not in name for name in files) <= 1
