"""`extend.Primitive`: rules in one place, a loop for want of a batch rule, and errors that say what to write."""

import warnings

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import extend, lax
from funcml.control_flow import lanes
from funcml.errors import MissingRuleError
from tests.products import check_products

X = np.float32([0.3, -1.2, 2.0])


def elementwise_text(emit, eqn, operands):
    """x * x * x as text."""
    t = extend.tensor_type(eqn.outvars[0].aval)
    square = emit.op(f"stablehlo.multiply {operands[0]}, {operands[0]} : {t}")
    return emit.op(f"stablehlo.multiply {square}, {operands[0]} : {t}")


def cube_by(**how):
    cube = extend.Primitive("cube", type_rule=lambda x: x, **how)
    cube.def_jvp(lambda primals, tangents: (cube.bind(*primals), 3.0 * primals[0] ** 2 * tangents[0]))
    cube.def_batch(lambda size, operands, dims: (cube.bind(*operands), dims[0]))
    return cube


WAYS = {"impl": {"impl": lambda x: x**3}, "program": {"program": lambda x: x * x * x}, "lowering": {"lowering": elementwise_text}}


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_one_primitive_computed_in_three_ways(how):
    cube = cube_by(**how)
    np.testing.assert_allclose(cube.bind(X), X**3, rtol=1e-6)
    np.testing.assert_allclose(fm.jit(cube.bind)(X), X**3, rtol=1e-6)
    check_products(cube.bind, X.astype(np.float64))


@pytest.mark.parametrize("how", [WAYS["impl"], WAYS["lowering"]], ids=["impl", "lowering"])
def test_in_loops_and_branches(how):
    cube = cube_by(**how)
    f = lambda x: lax.scan(lambda c, _: (cube.bind(jnp.sin(c)), None), x, None, length=3)[0]
    want = X
    for _ in range(3):
        want = np.sin(want) ** 3
    np.testing.assert_allclose(f(X), want, rtol=1e-5)
    plain = lambda x: lax.fori_loop(0, 3, lambda _, c: jnp.sin(c) ** 3, x)
    np.testing.assert_allclose(fm.grad(lambda x: f(x).sum())(X), fm.grad(lambda x: plain(x).sum())(X), rtol=1e-4)


def test_rules_come_from_the_program_where_they_are_missing():
    p = extend.Primitive("swish", program=lambda x, y: x * jnp.tanh(y) + jnp.sin(x))
    check_products(p.bind, np.float64([0.5, 1.0]), np.float64([-0.3, 2.0]))
    assert "swish" in str(fm.make_jaxpr(p.bind)(X, X))
    assert p.bind(X[0], X[1]).shape == ()


def test_a_batch_without_a_rule_runs_example_by_example_and_warns_once():
    lanes._warned.clear()
    norm = extend.Primitive("norm", type_rule=lambda x, y: fm.ShapeDtypeStruct((), x.dtype), impl=lambda x, y: (x * y).sum())
    xs = np.arange(12, dtype=np.float32).reshape(3, 4)
    with pytest.warns(extend.LoopedBatchWarning, match="the primitive `norm`.*def_batch") as seen:
        got = fm.vmap(norm.bind, (1, None))(xs, X)
        nested = fm.vmap(fm.vmap(norm.bind, (0, None)), (None, 0))(xs.T, np.stack([X, X + 1]))
    assert len(seen) == 1
    np.testing.assert_allclose(got, xs.T @ X, rtol=1e-5)
    np.testing.assert_allclose(nested, np.stack([xs.T @ X, xs.T @ (X + 1)]), rtol=1e-5)


def test_multiple_results_parameters_and_a_transpose():
    scaled = extend.Primitive("scaled", multiple_results=True)
    scaled.def_abstract_eval(lambda x, *, by: (x, x))
    scaled.def_impl(lambda x, *, by: (x * by[0], x * by[1]))
    scaled.def_jvp(lambda primals, tangents, *, by: (scaled.bind(*primals, by=by), scaled.bind(*tangents, by=by)))
    scaled.def_transpose(lambda cts, x, *, by: [cts[0] * by[0] + cts[1] * by[1]])
    scaled.def_batch(lambda size, xs, dims, *, by: (scaled.bind(*xs, by=by), [dims[0]] * 2))
    f = lambda x: scaled.bind(x, by=(2, 3))
    check_products(lambda x: tuple(f(x)), X.astype(np.float64))
    np.testing.assert_allclose(fm.grad(lambda x: (f(x)[1] ** 2).sum())(X), 18 * X, rtol=1e-5)


def test_integers_have_no_tangent():
    seen = []
    take = extend.Primitive("take", type_rule=lambda x, i: fm.ShapeDtypeStruct((), x.dtype), program=lambda x, i: x[i])

    @take.def_jvp
    def jvp(primals, tangents):
        seen.append(tangents[1])
        return take.bind(*primals), take.bind(tangents[0], primals[1])

    out, tangent = fm.jvp(lambda x: take.bind(x, 1), (X,), (2 * X,))
    assert (float(out), float(tangent), seen) == (X[1], 2 * X[1], [None])


def test_effects_stay():
    seen = []

    def note(x):
        seen.append(float(x))
        return x

    p = extend.Primitive("note", has_effect=True, type_rule=lambda x: x, impl=note)

    def unused(x):
        p.bind(x)
        return x

    assert float(fm.jit(unused)(2.0)) == 2.0 and seen == [2.0]


def no(**how):
    return extend.Primitive("nothing", type_rule=lambda x: x, **how)


HELD = jnp.float32([1, 2, 3])
IMPL = {"impl": lambda x: x}
ERRORS = {
    "no type rule": (lambda: extend.Primitive("p").bind(X), MissingRuleError, r"`p` has no type_rule.*def_abstract_eval"),
    "no way to compute": (lambda: no().bind(X), MissingRuleError, "does not say how it is computed.*impl="),
    "no jvp": (lambda: fm.jvp(no(**IMPL).bind, (X,), (X,)), MissingRuleError, r"has no jvp.*`@def_jvp`"),
    "no transpose": (
        lambda: fm.linear_transpose(no(**IMPL).bind, X)(X), MissingRuleError, r"has no transpose.*a cotangent or None for each"
    ),
    "not an array": (lambda: no(**IMPL).bind("x"), TypeError, "operand 0 is 'x' of type str"),
    "not hashable": (lambda: no(**IMPL).bind(X, p=[1]), TypeError, r"parameter p is \[1\], which is not hashable"),
    "type rule": (lambda: extend.Primitive("p", type_rule=lambda x: 3, **IMPL).bind(X), TypeError, "such as `funcml.Shape"),
    "jvp form": (lambda: fm.jvp(no(jvp=lambda p, t: p[0], **IMPL).bind, (X,), (X,)), TypeError, "must give a pair"),
    "rule": (lambda: no(jvp=3), TypeError, "jvp must be a function, got 3"),
    "captured": (lambda: no(program=lambda x: x + HELD).bind(X), TypeError, "closes over arrays"),
    "result of impl": (lambda: np.asarray(no(impl=lambda x: x[:1]).bind(X)), TypeError, r"declared as f32\[3\]"),
}


@pytest.mark.parametrize(("make", "error", "words"), ERRORS.values(), ids=ERRORS)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_no_warning_with_a_rule():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fm.vmap(cube_by(impl=lambda x: x**3).bind)(X)
