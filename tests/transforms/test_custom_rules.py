"""`custom_jvp` and `custom_vjp`: every mode and order, closures, batching, and their errors."""

import functools

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from tests.products import check_products

X = np.array([0.5, 1.0, 2.0])


def make_jvp():
    @fm.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return f(x, y), jnp.cos(x) * y * tx + jnp.sin(x) * ty

    return f


def make_vjp():
    @fm.custom_vjp
    def f(x, y):
        return jnp.sin(x) * y

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, g: (jnp.cos(r[0]) * r[1] * g, jnp.sin(r[0]) * g))
    return f


@pytest.mark.parametrize("make", [make_jvp, make_vjp])
def test_products(make):
    f = make()
    check_products(f, X, X + 1.0)
    check_products(lambda x, y: f(f(x, y), x).sum(), X, X + 1.0)
    check_products(fm.jit(lambda x, y: f(x, y)), X, X + 1.0)


@pytest.mark.parametrize("make", [make_jvp, make_vjp])
def test_scaled_rules_are_what_is_used(make):
    base = make()
    g = fm.custom_jvp(lambda x: x**2) if make is make_jvp else fm.custom_vjp(lambda x: x**2)
    if make is make_jvp:
        g.defjvp(lambda p, t: (g(*p), 100.0 * p[0] * t[0]))
    else:
        g.defvjp(lambda x: (g(x), x), lambda x, ct: (100.0 * x * ct,))
    assert float(fm.grad(g)(3.0)) == 300.0
    assert float(fm.jvp(g, (3.0,), (1.0,))[1]) == 300.0
    assert float(fm.grad(fm.grad(g))(3.0)) == 100.0
    assert float(fm.jvp(fm.grad(g), (3.0,), (1.0,))[1]) == 100.0
    assert float(fm.grad(lambda x: fm.jvp(g, (x,), (1.0,))[1])(3.0)) == 100.0
    np.testing.assert_allclose(fm.vmap(fm.grad(g))(jnp.arange(3.0)), [0.0, 100.0, 200.0])
    np.testing.assert_allclose(fm.grad(lambda x: fm.vmap(g)(x).sum())(jnp.arange(3.0)), [0.0, 100.0, 200.0])
    np.testing.assert_allclose(fm.hessian(lambda x: g(x).sum())(jnp.arange(2.0)), 100.0 * np.eye(2))
    np.testing.assert_allclose(fm.jacrev(fm.jacrev(lambda x: g(x).sum()))(jnp.arange(2.0)), 100.0 * np.eye(2))
    assert float(base(0.0, 1.0)) == 0.0


def test_jax_refuses_hessian_of_custom_vjp_we_do_not():
    f = make_vjp()
    np.testing.assert_allclose(fm.hessian(f)(1.0, 2.0), -2 * np.sin(1.0), rtol=1e-6)


@pytest.mark.parametrize("transform", [lambda f: f, fm.jit])
def test_rules_that_close_over_arrays_and_tracers(transform):
    a = jnp.array([1.0, 2.0])

    def outer(s):
        @fm.custom_jvp
        def f(x):
            return a * x * s

        f.defjvp(lambda p, t: (a * p[0] * s, 10.0 * a * t[0] * s))

        @fm.custom_vjp
        def g(x):
            return a * x * s

        g.defvjp(lambda x: (a * x * s, None), lambda r, ct: (10.0 * (a * ct * s).sum(),))
        return transform(fm.grad(lambda x: f(x).sum()))(2.0), transform(fm.grad(lambda x: g(x).sum()))(2.0)

    assert [float(x) for x in outer(3.0)] == [90.0, 90.0]
    assert [float(x) for x in fm.jit(outer)(3.0)] == [90.0, 90.0]
    assert fm.vmap(outer)(jnp.array([1.0, 3.0]))[0].tolist() == [30.0, 90.0]


def test_a_function_defined_inside_a_trace_and_differentiated_outside():
    def outer(x, s):
        f = fm.custom_jvp(lambda x: x * s)
        f.defjvp(lambda p, t: (f(p[0]), 10.0 * s * t[0]))
        g = fm.custom_vjp(lambda x: x * s)
        g.defvjp(lambda x: (g(x), s), lambda s, ct: (10.0 * s * ct,))
        return f(x) + g(x)

    assert float(fm.grad(fm.jit(outer))(2.0, 3.0)) == 60.0
    assert float(fm.grad(outer)(2.0, 3.0)) == 60.0


def test_unbroadcast_and_shared_arguments_under_vmap():
    @fm.custom_vjp
    def mul(x, c):
        return x * c

    mul.defvjp(lambda x, c: (x * c, (x, c)), lambda r, g: (g * r[1], (r[0] * g).sum()))
    x = jnp.arange(6.0).reshape(3, 2)
    g = fm.grad(lambda c: fm.vmap(mul, (0, None))(x, c).sum())(1.5)
    assert g.shape == () and float(g) == 15.0


def test_nondiff_argnums():
    @functools.partial(fm.custom_jvp, nondiff_argnums=(0, 2))
    def app(f, x, how):
        return f(x)

    app.defjvp(lambda f, how, p, t: (f(p[0]), (10.0 if how == "ten" else 1.0) * t[0]))
    assert float(fm.grad(lambda x: app(jnp.sin, x, "ten"))(0.0)) == 10.0
    assert float(fm.jit(fm.grad(lambda x: app(jnp.sin, x, how="one")))(0.0)) == 1.0

    @functools.partial(fm.custom_vjp, nondiff_argnums=(0,))
    def app2(f, x):
        return f(x)

    app2.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (10.0 * fm.grad(f)(x) * ct,))
    assert float(fm.grad(lambda x: app2(jnp.sin, x))(0.0)) == 10.0


def test_nondiff_arrays_and_tracers():
    f = fm.custom_jvp(lambda a, m: a * m, nondiff_argnums=(1,))
    f.defjvp(lambda m, p, t: fm.jvp(lambda a: a * m, p, t))
    np.testing.assert_allclose(fm.grad(lambda x, m: f(x, m).sum())(jnp.ones(3), jnp.array([1.0, 0.0, 1.0])), [1, 0, 1])
    g = fm.jit(lambda x, m: f(x, m).sum())
    np.testing.assert_allclose(fm.grad(g)(jnp.ones(3), jnp.array([1.0, 0.0, 1.0])), [1, 0, 1])


def test_integer_and_tree_arguments():
    @fm.custom_jvp
    def f(p, n):
        return {"y": p["x"] * n}

    @f.defjvp
    def rule(primals, tangents):
        assert tangents[1].dtype == fm.dtypes.float0
        return f(*primals), {"y": 7.0 * tangents[0]["x"]}

    assert float(fm.grad(lambda x: f({"x": x}, 3)["y"])(2.0)) == 7.0

    @fm.custom_vjp
    def g(p, n):
        return p["x"] * n

    g.defvjp(lambda p, n: (g(p, n), None), lambda r, ct: ({"x": 7.0 * ct}, None))
    assert float(fm.grad(lambda x: g({"x": x}, 3))(2.0)) == 7.0


def test_defjvps_and_symbolic_zeros():
    f = fm.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, ans, x, y: 10.0 * t * y, None)
    assert [float(g) for g in fm.grad(f, (0, 1))(2.0, 3.0)] == [30.0, 0.0]
    seen = []
    g = fm.custom_jvp(lambda x, y: x * y)

    def rule(p, t):
        seen.append(type(t[1]).__name__)
        return g(*p), t[0] * p[1]

    g.defjvp(rule, symbolic_zeros=True)
    assert float(fm.grad(g)(2.0, 3.0)) == 3.0 and seen == ["Zero"]


def test_default_and_keyword_arguments():
    f = fm.custom_jvp(lambda x, y=2.0: x * y)
    f.defjvp(lambda p, t: (f(*p), 10.0 * t[0]))
    assert float(fm.grad(lambda x: f(x))(1.0)) == 10.0
    assert float(fm.grad(lambda x: f(x, y=3.0))(1.0)) == 10.0


def test_python_control_flow_inside():
    f = fm.custom_jvp(lambda x: x if x > 0 else -x)
    f.defjvp(lambda p, t: (abs(p[0]), 10.0 * t[0]))
    assert float(f(-2.0)) == 2.0 and float(fm.grad(f)(-2.0)) == 10.0


def test_a_bwd_that_is_not_linear_works_backward_and_says_so_forward():
    f = fm.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda r, ct: (jnp.clip(ct, -1.0, 1.0),))
    assert float(fm.grad(lambda x: 5.0 * f(x))(1.0)) == 1.0
    with pytest.raises(TypeError, match="forward mode through .* not linear in the cotangent"):
        fm.jvp(f, (1.0,), (1.0,))


def _bad_jvp(rule):
    f = fm.custom_jvp(lambda x: x * 2.0)
    f.defjvp(rule)
    return lambda: fm.grad(f)(1.0)


def _bad_vjp(fwd, bwd):
    f = fm.custom_vjp(lambda x: x * 2.0)
    f.defvjp(fwd, bwd)
    return lambda: fm.grad(f)(1.0)


def _closes_over_its_argument(y):
    f = fm.custom_jvp(lambda x: x * y)
    f.defjvp(lambda p, t: (p[0], t[0]))
    return f(1.0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fm.custom_jvp(lambda x: x)(1.0), AttributeError, "has no rule.*defjvp"),
        (lambda: fm.custom_vjp(lambda x: x)(1.0), AttributeError, "has no rule.*defvjp"),
        (_bad_jvp(lambda p, t: p[0]), TypeError, "pair"),
        (_bad_jvp(lambda p, t: (p[0], jnp.ones(3))), TypeError, r"tangent output.*expected f32\[\], got f32\[3\]"),
        (_bad_jvp(lambda p, t: (p[0], (t[0], t[0]))), TypeError, "tangent output.*structure"),
        (_bad_vjp(lambda x: x, lambda r, ct: (ct,)), TypeError, "fwd rule.*pair"),
        (_bad_vjp(lambda x: (x, None), lambda r, ct: ct), TypeError, "tuple of 1"),
        (_bad_vjp(lambda x: (x, None), lambda r, ct: (ct, ct)), TypeError, "tuple of 1 .*got a tuple of 2"),
        (_bad_vjp(lambda x: (x, None), lambda r, ct: (jnp.ones(3),)), TypeError, r"argument 0: expected f32\[\], got f32\[3\]"),
        (lambda: fm.grad(_closes_over_its_argument)(2.0), TypeError, "closes over a value with respect to which it is different"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_nondiff_arguments_by_name():
    @functools.partial(fm.custom_vjp, nondiff_argnames=("n",))
    def power(x, n):
        return x**n

    power.defvjp(lambda x, n: (power(x, n), x), lambda n, x, ct: (100.0 * ct * n,))
    assert float(fm.grad(power)(2.0, 3)) == 300.0 == float(fm.grad(lambda x: power(x, n=3))(2.0))
    with pytest.raises(ValueError, match=r"nondiff_argnames \['m'\]"):
        fm.custom_jvp(lambda x, n: x, nondiff_argnames="m")


def test_a_constant_output_whose_derivative_is_mapped():
    @fm.custom_jvp
    def f(x):
        return np.zeros(x.shape, x.dtype)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    x = jnp.arange(3.0)
    assert fm.vmap(fm.grad(f))(x).tolist() == fm.grad(lambda x: fm.vmap(f)(x).sum())(x).tolist() == [1.0, 1.0, 1.0]
    assert fm.jvp(fm.vmap(f), (x,), (x,))[1].tolist() == [0.0, 1.0, 2.0]


def test_a_symbolic_zero_tells_its_type():
    @fm.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        x, y = primals
        assert type(tangents[1]) is fm.custom_derivatives.SymbolicZero
        assert (tangents[1].shape, tangents[1].dtype) == ((2,), np.float64)
        return f(x, y), tangents[0] * y

    f.defjvp(rule, symbolic_zeros=True)
    assert fm.grad(lambda x: f(x, np.array([2.0, 3.0])).sum())(1.0) == 5.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_cotangents_of_another_width_are_converted(dtype):
    f = fm.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * np.float64(3),))
    gradient = fm.vjp(f, jnp.ones(2, dtype))[1](jnp.ones(2, dtype))[0]
    assert gradient.dtype == dtype and gradient.tolist() == [3.0, 3.0]


def test_cotangents_of_another_kind_are_refused():
    f = fm.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 1j,))
    with pytest.raises(TypeError, match=r"expected f32\[\], got c"):
        fm.grad(f)(np.float32(1))
