"""Taylor mode against derivatives of derivatives, along curves, through control flow."""

import math

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from funcml.experimental.jet import fact, jet, zero_series

ORDER = 4
RNG = np.random.default_rng(0)


def nested(f, primals, series):
    """The same derivatives by `jacfwd`, nested, along the curve that the series is of."""

    def along(t):
        curve = [p + sum(s[k] * t ** (k + 1) / math.factorial(k + 1) for k in range(len(s))) for p, s in zip(primals, series)]
        return f(*curve)

    found, g = [], along
    for _ in series[0]:
        g = fm.jacfwd(g)
        found.append(np.asarray(fm.jit(g)(np.float64(0.0))))
    return found


def check(f, *primals, order=ORDER):
    primals = [np.asarray(p, np.float64) for p in primals]
    series = [[RNG.normal(size=p.shape) for _ in range(order)] for p in primals]
    value, derivatives = fm.jit(lambda p, s: jet(f, p, s))(primals, series)
    np.testing.assert_allclose(value, f(*primals), rtol=1e-10)
    for got, want in zip(derivatives, nested(f, primals, series), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


X = np.array([0.3, 0.7, 1.2])


@pytest.mark.parametrize("f", [
    jnp.sin, jnp.exp, jnp.tanh, jnp.log, jnp.sqrt, jnp.arctan, jnp.log1p, jnp.expm1, lax.logistic, lax.erf, jnp.cbrt,
    lambda x: x**3, lambda x: x**-2, lambda x: 1 / x, jnp.square, jnp.abs, lambda x: jnp.where(x > 0.5, jnp.sin(x), x),
    jnp.cumsum, jnp.sort, jnp.floor, lambda x: x.sum() * x, lambda x: jnp.maximum(x, 0.5), jnp.sinh,
], ids=lambda f: getattr(f, "__name__", "f"))  # fmt: skip
def test_one_operand(f):
    check(f, X)


@pytest.mark.parametrize("f", [
    lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x - y, jnp.power, jnp.arctan2, lambda x, y: jnp.outer(x, y) @ y,
    lambda x, y: jnp.logaddexp(x, y), lambda x, y: jnp.exp(x * y) / (1 + x**2), lambda x, y: lax.select(x > y, x * x, y),
], ids=range(9))  # fmt: skip
def test_two_operands(f):
    check(f, X, X[::-1] + 0.1, order=3)


def test_layers_of_a_network():
    def net(w1, w2):
        return jnp.tanh(jnp.tanh(X @ w1) @ w2).sum()

    check(net, RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2)), order=3)


def test_control_flow():
    def loop(x):
        return lax.scan(lambda c, a: (jnp.sin(c) * a, c * x), x, jnp.arange(3.0))

    check(lambda x: loop(x)[0] + loop(x)[1].sum(0), X, order=3)
    check(lambda x: lax.fori_loop(0, jnp.int32(x.sum()), lambda i, c: jnp.sin(c) + i, x), X, order=3)
    check(lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * x, c[1] + 1), (x, 0))[0], X, order=3)
    check(lambda x: lax.cond(x[0] > 0, jnp.exp, jnp.cos, x), X, order=3)
    check(fm.jit(fm.checkpoint(jnp.sin)), X, order=3)


def test_custom_rules():
    @fm.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), 2 * jnp.cos(p[0]) * t[0]))
    _, (d1, d2) = jet(f, (0.5,), ((1.0, 0.0),))
    np.testing.assert_allclose([d1, d2], [2 * np.cos(0.5), -2 * np.sin(0.5)], rtol=1e-6)


def test_trees_and_constants():
    f = lambda a, b: {"p": a["x"] * b, "q": jnp.int32(3)}
    y, d = jet(f, ({"x": 2.0}, 3.0), ({"x": [1.0, 0.5]}, zero_series))
    assert float(y["p"]) == 6.0 and [float(v) for v in d["p"]] == [3.0, 1.5] and int(y["q"]) == 3
    y, d = jet(f, ({"x": 2.0}, 3.0), ([{"x": 1.0}, {"x": 0.5}], [1.0, 0.0]))
    assert [float(v) for v in d["p"]] == [5.0, 3.5]


def test_the_number_of_operations_grows_with_the_square_of_the_order():
    def size(n):
        return len(fm.make_jaxpr(lambda x: jet(jnp.tanh, (x,), ((1.0,) + (0.0,) * (n - 1),)))(np.float64(0.3)).eqns)

    assert size(20) < 4.5 * size(10) and size(40) < 4.5 * size(20)


def test_derivatives_of_a_jet():
    f = lambda x: jet(lambda x: jnp.sin(x) ** 2, (x,), ((1.0, 0.0),))[1][1]
    assert float(fm.grad(f)(0.3)) == pytest.approx(-4 * np.sin(0.6), rel=1e-5)
    np.testing.assert_allclose(fm.vmap(f)(X), 2 * np.cos(2 * X), rtol=1e-5)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jet(jnp.sin, (1.0,), ((1.0,), (1.0,))), "one series for each primal"),
    (lambda: jet(jnp.add, (1.0, 1.0), ((1.0,), (1.0, 1.0))), "one length"),
    (lambda: jet(jnp.sin, (1.0,), ((np.ones(2),),)), "same shape"),
    (lambda: jet(lambda d: d["a"], ({"a": 1.0},), ({"b": [1.0]},)), "structure"),
])  # fmt: skip
def test_errors(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_fact():
    assert fact(5) == 120.0
