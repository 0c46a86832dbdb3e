"""The passes, one by one, on small programs."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.core.check import check_jaxpr
from funcml.core.ir import MappedAxis, intern
from funcml.core.tracing import eval_jaxpr
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.linearize import grad_jaxpr, linearize_jaxpr
from funcml.transforms.partial_eval import partial_eval
from funcml.transforms.simplify import cse, dce, fold, simplify
from funcml.transforms.transpose import transpose_jaxpr
from funcml.transforms.vmap import vmap_jaxpr
from tests.products import check_products


def run(jaxpr, *values):
    check_jaxpr(jaxpr)
    return [np.asarray(x) for x in eval_jaxpr(jaxpr, [jnp.asarray(v) for v in values])]


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


X = np.array([0.5, 1.0, 2.0])


def test_jvp_gives_value_and_derivative():
    jaxpr = fm.make_jaxpr(lambda x, y: jnp.sin(x) * y)(X, X)
    new, captured, has_tangent = jvp_jaxpr(jaxpr, (True, False))
    assert captured == () and has_tangent == (True,)
    y, t = run(new, X, X, np.ones(3))
    np.testing.assert_allclose(y, np.sin(X) * X)
    np.testing.assert_allclose(t, np.cos(X) * X)


def test_jvp_copies_what_does_not_move():
    jaxpr = fm.make_jaxpr(lambda x, y: (jnp.exp(y), x))(X, X)
    new, _, has_tangent = jvp_jaxpr(jaxpr, (True, False))
    assert names(new) == ["exp"] and has_tangent == (False, True)


def test_passes_are_remembered_on_the_program():
    jaxpr = fm.make_jaxpr(jnp.sin)(X)
    assert jvp_jaxpr(jaxpr, (True,)) is jvp_jaxpr(jaxpr, (True,))
    assert intern(fm.make_jaxpr(jnp.sin)(X)) is intern(jaxpr)


def test_vmap_moves_the_axis_where_it_is_wanted():
    jaxpr = fm.make_jaxpr(lambda x, y: x @ y)(np.ones((2, 3)), np.ones((3, 4)))
    axis = MappedAxis(5, None)
    new, _, dims = vmap_jaxpr(jaxpr, axis, (None, 2), (1,))
    assert dims == (1,)
    a, b = np.random.rand(2, 3), np.random.rand(3, 4, 5)
    (y,) = run(new, a, b)
    np.testing.assert_allclose(y, np.einsum("ij,jkn->ink", a, b))


def test_partial_eval_deals_equations_out():
    jaxpr = fm.make_jaxpr(lambda x, t: (jnp.sin(x), jnp.cos(x) * t))(X, X)
    split = partial_eval(jaxpr, (False, True))
    assert names(split.known) == ["sin", "cos"] and names(split.unknown) == ["mul"]
    assert split.out_unknown == (False, True) and split.residuals == 1
    s, c = run(split.known, X)
    (y,) = run(split.unknown, c, X)
    np.testing.assert_allclose(y, np.cos(X) * X)


def test_partial_eval_through_a_call():
    inner = fm.jit(lambda x, t: (jnp.sin(x), jnp.cos(x) * t))
    jaxpr = fm.make_jaxpr(lambda x, t: inner(x, t))(X, X)
    split = partial_eval(jaxpr, (False, True))
    known = run(split.known, X)
    np.testing.assert_allclose(known[0], np.sin(X))
    (y,) = run(split.unknown, *known[1:], X)
    np.testing.assert_allclose(y, np.cos(X) * X)


def test_linearize_computes_nothing_twice():
    jaxpr = fm.make_jaxpr(lambda x: jnp.sin(jnp.exp(x)))(X)
    lin = linearize_jaxpr(jaxpr, (True,))
    assert names(lin.linear) == ["mul", "mul"]
    *out, first, second = run(lin.known, X)
    (t,) = run(lin.linear, first, second, np.ones(3))
    np.testing.assert_allclose(t, np.cos(np.exp(X)) * np.exp(X))


def test_transpose_of_a_linear_program():
    w = np.random.rand(3, 4)
    jaxpr = fm.make_jaxpr(lambda w, x: 2.0 * (x @ w))(w, X)
    new, _, (has_ct, _) = transpose_jaxpr(jaxpr, (False, True), (True,))
    assert has_ct == (True,)
    ct = np.random.rand(4)
    np.testing.assert_allclose(run(new, w, ct)[0], 2.0 * w @ ct)


def test_grad_program_of_a_scalar():
    jaxpr = fm.make_jaxpr(lambda x: jnp.sum(x * x))(X)
    new, _, _ = grad_jaxpr(jaxpr, (True,))
    value, g = run(new, X)
    np.testing.assert_allclose(value, (X * X).sum())
    np.testing.assert_allclose(g, 2 * X)


def test_dce_cse_and_fold():
    def f(x):
        jnp.exp(x)
        return jnp.sin(x) * 1.0 + jnp.sin(x)

    jaxpr = fm.make_jaxpr(f)(X)
    assert "exp" not in names(dce(jaxpr))
    assert names(cse(jaxpr)).count("sin") == 1
    assert "mul" not in names(fold(jaxpr))
    small = simplify(jaxpr)
    assert names(small) == ["sin", "add"]
    np.testing.assert_allclose(run(small, X)[0], 2 * np.sin(X))


def test_fold_keeps_signed_zeros():
    jaxpr = fm.make_jaxpr(lambda x: (x + 0.0, x - 0.0, x * 1.0))(np.float32(-0.0))
    outs = run(fold(jaxpr), np.float32(-0.0))
    assert [bool(np.signbit(y)) for y in outs] == [False, True, True]


# ---- no NaN from branches not taken ------------------------------------------------------------------------------


def test_where_sqrt():
    f = lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)
    assert float(fm.grad(f)(0.0)) == 0.0
    assert float(fm.grad(f)(4.0)) == 0.25
    assert float(fm.grad(fm.jit(f))(0.0)) == 0.0
    assert float(fm.jit(fm.grad(f))(0.0)) == 0.0


def test_the_mask_goes_through_calls_movements_and_joins():
    x = jnp.array([0.0, 4.0, -1.0])

    @fm.jit
    def root(x):
        return jnp.sqrt(x)

    def joined(x):
        s = root(x).reshape(3, 1).T
        return jnp.where((x > 0)[None], s * s + s, 0.0).sum()

    np.testing.assert_allclose(fm.grad(joined)(x), [0.0, 1.25, 0.0])
    np.testing.assert_allclose(fm.vmap(fm.grad(lambda x: jnp.where(x > 0, root(x), 0.0)))(x), [0.0, 0.25, 0.0])


def test_the_mask_through_a_reduction():
    x = jnp.array([[3.0, 4.0], [0.0, 0.0]])

    def f(x):
        r = jnp.sqrt((x**2).sum(1))
        return jnp.where(r > 0.5, r, 1.0).sum()

    np.testing.assert_allclose(fm.grad(f)(x), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_a_true_nan_stays():
    f = lambda x: jnp.where(x > -1, jnp.sqrt(x), 0.0)
    assert np.isinf(fm.grad(f)(0.0))
    assert np.isnan(fm.grad(lambda x: jnp.where(x < 5, x * jnp.nan, 0.0))(1.0))


def test_second_order_through_a_mask():
    f = lambda x: jnp.where(x > 0, x * jnp.sqrt(x), 0.0)
    assert float(fm.grad(fm.grad(f))(0.0)) == 0.0
    np.testing.assert_allclose(fm.grad(fm.grad(f))(4.0), 0.75 / 2.0)


# ---- calls -----------------------------------------------------------------------------------------------------------


def test_products_through_nested_calls():
    inner = fm.jit(lambda x, y: jnp.sin(x) * y)
    outer = fm.jit(lambda x, y: inner(inner(x, y), x) + y)
    check_products(outer, X, X + 1.0)


def test_a_call_with_captured_tracers():
    def f(x, y):
        g = fm.jit(lambda z: z * x)
        return g(y) + g(x)

    check_products(f, X, X + 1.0)


def test_one_inner_function_is_written_once():
    inner = fm.jit(lambda x: jnp.sin(x))
    text = fm.jit(lambda x: inner(inner(inner(x)))).lower(1.0).as_text()
    assert text.count("func.func private") == 1 and text.count("call @") == 3


@pytest.mark.parametrize("inline", [False, True])
def test_inline(inline):
    inner = fm.jit(lambda x: jnp.sin(x), inline=inline)
    found = names(fm.make_jaxpr(lambda x: inner(x))(1.0))
    assert found == (["sin"] if inline else ["call"])
