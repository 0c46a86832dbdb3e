"""`from_jax`: functions of JAX on arrays of funcml give what JAX gives, under every transform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import funcml as fm
from funcml import interop
from funcml.core.ir import Jaxpr
from funcml.interop import UntranslatedPrimitiveError, from_jax, translations
from funcml.random import keys

X = np.float32([[0.5, -1.2, 2.0], [0.1, 0.9, -0.3]])
V = np.float32([0.3, 0.7, 1.1])
I = np.int32([[3, -2, 5], [7, 0, 1]])  # noqa: E741

# ---- primitives: one function of JAX a row, all in one program --------------------------------------------------------


def max_pool(x):
    return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "VALID")


SMOOTH = {
    "abs": lambda x: jnp.abs(x),
    "acosh": lambda x: jnp.arccosh(2 + x * x),
    "asinh": jnp.arcsinh,
    "atan2": lambda x: jnp.arctan2(x, 2.0),
    "broadcast": lambda x: x + x[:1],
    "cbrt": jnp.cbrt,
    "clamp": lambda x: lax.clamp(-0.4, x, 0.6),
    "concatenate": lambda x: jnp.concatenate([x, x * 2], 1),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, 1),
    "cummax": lambda x: lax.cummax(x, 1, reverse=True),
    "cumprod": lambda x: jnp.cumprod(x, 1),
    "cumsum": lambda x: jnp.cumsum(x, 0),
    "digamma": lambda x: jax.scipy.special.digamma(x * x + 1),
    "dot": lambda x: x @ x.T,
    "dot_bool": lambda x: (x > 0) @ x.T,
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (0, 1), (2, 2)),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:1] * 2, (1, 0)),
    "erf": jax.scipy.special.erf,
    "erf_inv": lambda x: jax.scipy.special.erfinv(x / 4),
    "exp2": jnp.exp2,
    "expm1": jnp.expm1,
    "gather": lambda x: x[jnp.array([1, 0, 1])],
    "integer_pow": lambda x: x**3 + x**-2,
    "lgamma": lambda x: jax.scipy.special.gammaln(x * x + 1),
    "log1p": lambda x: jnp.log1p(x * x),
    "log2": lambda x: jnp.log2(x * x + 1),
    "logistic": lambda x: lax.logistic(x),
    "max": lambda x: jnp.maximum(x, 0.2),
    "pad": lambda x: jnp.pad(x, 1),
    "polyval": lambda x: jnp.polyval(V, x),
    "pow": lambda x: (x * x) ** 1.5,
    "reduce_max": lambda x: x.max(1),
    "reduce_min": lambda x: x.min(),
    "reduce_prod": lambda x: x.prod(1),
    "reduce_sum": lambda x: x.sum(0),
    "rem": lambda x: lax.rem(x, 0.4 + 0 * x),
    "reshape": lambda x: x.reshape(3, 2),
    "rev": lambda x: x[::-1, ::-1],
    "rsqrt": lambda x: lax.rsqrt(x * x + 1),
    "scatter": lambda x: jnp.zeros(4).at[jnp.array([1, 3, 0])].set(x[0]),
    "scatter_add": lambda x: jnp.zeros(4).at[jnp.array([1, 3, 1])].add(x[0]),
    "scatter_max": lambda x: jnp.zeros(4).at[jnp.array([1, 3, 1])].max(x[0]),
    "scatter_min": lambda x: jnp.zeros(4).at[jnp.array([1, 3, 1])].min(x[0]),
    "scatter_mul": lambda x: jnp.ones(4).at[jnp.array([1, 3, 0])].mul(x[0], unique_indices=True),
    "select": lambda x: jnp.where(x > 0, x, x * 2),
    "sort": lambda x: jnp.sort(x, 1),
    "split": lambda x: jnp.split(x, [1], axis=1)[1],
    "square": jnp.square,
    "stack": lambda x: jnp.stack([x, x * 2], 1),
    "stop_gradient": lambda x: x * lax.stop_gradient(x),
    "strided": lambda x: x[:, ::2],
    "tan": jnp.tan,
    "tanh": jnp.tanh,
    "top_k": lambda x: lax.top_k(x, 2)[0],
    "transpose": lambda x: x.T,
    "trig": lambda x: jnp.sin(x) + jnp.cos(x) + jnp.arcsin(x / 3) + jnp.arccos(x / 3) + jnp.arctan(x),
    "hyperbolic": lambda x: jnp.sinh(x) + jnp.cosh(x) + jnp.arctanh(x / 3),
    "unstack": lambda x: jnp.unstack(x)[1],
    # windows and reductions by a function
    "conv": lambda x: lax.conv_general_dilated(x[None], x[:, :, None], (1,), "SAME", dimension_numbers=("NWC", "OIW", "NCW")),
    "reduce": lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (1,)),
    "reduce_window_max": lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "SAME"),
    "reduce_window_min": lambda x: lax.reduce_window(x, np.inf, lax.min, (1, 2), (1, 1), "VALID"),
    "reduce_window_sum": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "select_and_gather_add": lambda x: jax.jvp(max_pool, (x,), (x * x,))[1],
    "select_and_scatter_add": lambda x: jax.grad(lambda y: (max_pool(y) * x[:1, 1:]).sum())(x),
    # calls and rules
    "checkpoint": lambda x: jax.checkpoint(lambda y: jnp.sin(y) * y)(x),
    "jit": lambda x: jax.jit(jnp.sin)(x),
    "log_sigmoid": jax.nn.log_sigmoid,
    "logaddexp": lambda x: jnp.logaddexp(x, 0.5),
    "logsumexp": lambda x: jax.nn.logsumexp(x, 1),
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "silu": jax.nn.silu,
    "sinc": jnp.sinc,
    "softmax": lambda x: jax.nn.softmax(x, 1),
    # control flow
    "cond": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "cond_constant": lambda x: lax.cond(True, jnp.sin, jnp.cos, x),
    "fori": lambda x: lax.fori_loop(0, 4, lambda i, c: c * x + i, x),
    "scan": lambda x: lax.scan(lambda c, r: (c * r, c + r), jnp.ones(3), x),
    "scan_reversed": lambda x: lax.scan(lambda c, r: (c * r, c), jnp.ones(3), x, reverse=True),
    "scan_empty": lambda x: lax.scan(lambda c, r: (c * r, c), x[0], x[:0]),
    "switch": lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.tanh], x),
}

DISCRETE = {
    "reduce_window": lambda x, i: lax.reduce_window(x, np.float32(1), lax.mul, (1, 2), (1, 1), "VALID"),
    "argmax": lambda x, i: (jnp.argmax(x, 1), jnp.argmin(i, 0)),
    "bits": lambda x, i: (i & 5, i | 2, i ^ 3, ~i, i << 1, i >> 1, lax.population_count(i), lax.clz(i)),
    "bitcast": lambda x, i: lax.bitcast_convert_type(x, np.uint32),
    "compare": lambda x, i: (x == 0.5, x != 0.5, x < 0, x <= 0.1, x > 0, x >= 0.9),
    "convert": lambda x, i: (x.astype(jnp.bfloat16), i.astype(jnp.float16), x.astype(bool)),
    "finite": lambda x, i: jnp.isfinite(x / (x > 0)),
    "iota": lambda x, i: jnp.arange(4) + i[0, 0],
    "logic": lambda x, i: ((x > 0).any(), (x > 0).all(1), i // 2, i % 3),
    "nextafter": lambda x, i: jnp.nextafter(x, 2.0),
    "one_hot": lambda x, i: jax.nn.one_hot(i, 4),
    "rounding": lambda x, i: (jnp.round(x), jnp.floor(x), jnp.ceil(x), lax.round(x)),
    "sign": lambda x, i: jnp.sign(x),
    "sort_several": lambda x, i: lax.sort((i, x), num_keys=1),
    "argsort": lambda x, i: jnp.argsort(x, 1),
    "complex": lambda x, i: (lambda z: (z.real, z.imag, jnp.conj(z), abs(z), jnp.exp(z)))(lax.complex(x, x * 2)),
    "switch": lambda x, i: lax.switch(i[0, 0] - 1, [lambda: 10, lambda: 20, lambda: 30]),
    "reduce_precision": lambda x, i: lax.reduce_precision(x, 5, 3),
}


def all_of(table):
    return lambda *args: {name: f(*args) for name, f in table.items()}


def agree(got, want, rtol=2e-6, atol=2e-6):
    assert fm.tree.structure(got) == fm.tree.structure(want)
    for path, x in fm.tree.leaves_with_path(got):
        assert isinstance(x, fm.Array), path
    pairs = zip(fm.tree.leaves_with_path(got), fm.tree.leaves(want), strict=True)
    for (path, x), y in pairs:
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape), path
        wide = np.float64 if x.dtype.kind not in "c" else x.dtype
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol, atol, err_msg=fm.tree.keystr(path))


def test_values_and_derivatives_of_smooth_functions():
    f = all_of(SMOOTH)
    agree(fm.jit(from_jax(f))(X), jax.jit(f)(X))

    def weighted(x):
        ys = jax.tree.leaves(f(x))
        return sum(jnp.sum(y) * w for y, w in zip(ys, np.linspace(1, 2, len(ys)), strict=True))

    agree(fm.jit(fm.grad(from_jax(weighted)))(X), jax.jit(jax.grad(weighted))(X), rtol=2e-5, atol=2e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(SMOOTH))
def test_derivative_of(name):
    def f(x):
        return sum(jnp.sum(y) for y in jax.tree.leaves(SMOOTH[name](x)))

    agree(fm.grad(from_jax(f))(X), jax.grad(f)(X), rtol=2e-5, atol=2e-5)


def test_values_of_discrete_functions():
    f = all_of(DISCRETE)
    agree(from_jax(f)(X, I), jax.jit(f)(X, I))


def test_vmap_is_jaxs():
    names = ["cond", "scan", "relu", "logaddexp", "gather", "scatter_add", "sort", "cumsum", "softmax", "dot", "cummax"]
    f = all_of({name: SMOOTH[name] for name in names})
    batch = np.stack([X, X * 2, -X])
    agree(fm.vmap(from_jax(f))(batch), jax.jit(jax.vmap(f))(batch))


# ---- custom rules ----------------------------------------------------------------------------------------------------


@jax.custom_jvp
def tenfold(x):
    return jnp.sin(x)


@tenfold.defjvp
def _tenfold_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return tenfold(x), 10.0 * jnp.cos(x) * t


@jax.custom_vjp
def clipped(x, n):
    return x * n


clipped.defvjp(lambda x, n: (x * n, n), lambda n, ct: (jnp.clip(ct, -0.5, 0.5) * n, None))


def test_custom_jvp_keeps_its_rule_at_every_order():
    f = from_jax(tenfold)
    assert np.isclose(float(fm.grad(f)(0.3)), 10 * np.cos(0.3))
    assert np.isclose(float(fm.grad(fm.grad(f))(0.3)), float(jax.grad(jax.grad(tenfold))(0.3)))
    out, t = fm.jvp(f, (np.float32(0.3),), (np.float32(2.0),))
    assert np.isclose(float(out), np.sin(0.3)) and np.isclose(float(t), 20 * np.cos(0.3))
    agree(fm.vmap(fm.grad(f))(V), jax.vmap(jax.grad(tenfold))(V))


def test_custom_jvp_that_calls_itself_in_its_rule():
    f = from_jax(lambda x: tenfold(tenfold(x)))
    agree(fm.jit(fm.grad(fm.grad(f)))(V[0]), jax.grad(jax.grad(lambda x: tenfold(tenfold(x))))(V[0]), rtol=1e-5)


def test_custom_vjp_keeps_its_rule():
    def f(x):
        return (3 * clipped(x, jnp.int32(2))).sum()

    agree(fm.grad(from_jax(f))(V), jax.grad(f)(V))
    agree(fm.vmap(fm.grad(from_jax(f)))(X), jax.vmap(jax.grad(f))(X))
    np.testing.assert_array_equal(fm.grad(from_jax(f))(V), np.ones(3, np.float32))


def test_relu_has_the_derivative_of_jax_at_zero():
    assert float(fm.grad(from_jax(jax.nn.relu))(np.float32(0))) == float(jax.grad(jax.nn.relu)(0.0)) == 0


def test_equal_functions_share_one_program():
    def program(f):
        f(fm.device_put(V))
        (bridge,) = f._bridges.values()
        return bridge.program

    assert program(from_jax(lambda x: jnp.sin(x) * 2)) is program(from_jax(lambda x: jnp.sin(x) * 2))


# ---- control flow ----------------------------------------------------------------------------------------------------


def test_cond_has_no_nan_from_the_branch_not_taken():
    def f(x):
        return lax.cond(x > 0, jnp.sqrt, lambda y: y * 0, x)

    assert float(fm.grad(from_jax(f))(np.float32(0.0))) == 0.0
    assert float(fm.jit(fm.grad(from_jax(f)))(np.float32(0.0))) == 0.0


def test_loops():
    matrix = np.float32([[0.5, 0.1, 0], [0, 0.4, 0.2], [0.1, 0, 0.3]])

    def long(x):
        return lax.fori_loop(0, 40, lambda i, c: c * 1.01 + i * x, x)

    def until(x):
        return lax.while_loop(lambda c: jnp.sum(c[0]) < 100, lambda c: (c[0] * 2 + matrix @ x, c[1] + 1), (x, 0))

    def running(x):
        return lax.scan(lambda c, a: (c * a, c + jnp.sin(a)), x, jnp.stack([x, 2 * x, x - 1]), reverse=True)

    def chosen(x):
        return lax.switch((x[0] > 1).astype("int32") + 1, [jnp.sin, lambda v: v @ matrix, lambda v: jnp.exp(x) + v], x)

    for f in (long, until, running, chosen):
        agree(from_jax(f)(V), jax.jit(f)(V))
        agree(fm.jit(from_jax(f))(V), jax.jit(f)(V))
        batch = np.stack([V, V + 1])
        agree(fm.vmap(from_jax(f))(batch), jax.jit(jax.vmap(f))(batch))
    for f in (long, lambda x: running(x)[1], chosen):
        agree(fm.grad(lambda x, f=f: from_jax(f)(x).sum())(V), jax.jit(jax.grad(lambda x, f=f: f(x).sum()))(V))
    assert np.isfinite(fm.grad(lambda x: from_jax(until)(x)[0].sum())(V)).all()  # JAX has no reverse mode here


def test_matrices():
    a = np.float32([[3, 1, 0], [1, 4, 1], [0, 1, 5]])

    def f(a):
        u, s, vh = jnp.linalg.svd(a)
        w, v = jnp.linalg.eigh(a)
        q, r = jnp.linalg.qr(a)
        return jnp.abs(u), s, w, jnp.abs(v), q @ r, jnp.linalg.cholesky(a), jnp.linalg.solve(a, a[0]), jnp.linalg.det(a)

    agree(from_jax(f)(a), jax.jit(f)(a))
    agree(from_jax(lambda a: jnp.linalg.svd(a, compute_uv=False))(a), jax.jit(lambda a: jnp.linalg.svd(a, compute_uv=False))(a))


def test_gamma_samples_are_jaxs():
    def f(key, a):
        return jax.random.gamma(key, a), jax.random.loggamma(key, a), jax.random.poisson(key, 5.0, (3,))

    a = np.float32([0.5, 2, 10])
    agree(from_jax(f)(keys.key(5), a), jax.jit(f)(jax.random.key(5), a))

    def bits():
        return lax.rng_bit_generator(jnp.arange(4, dtype="uint32"), (3,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)

    agree(from_jax(bits)(), bits())


def test_a_branch_with_an_effect_is_refused():
    def f(x):
        return lax.cond(x > 0, lambda y: (jax.debug.print("{y}", y=y), y)[1], lambda y: y, x)

    with pytest.raises(UntranslatedPrimitiveError, match=r"has the effects .* in a part of lax.cond"):
        from_jax(f)(V[0])


def test_unknown_primitive_is_named():
    with pytest.raises(UntranslatedPrimitiveError) as caught:
        from_jax(lambda x: lax.rng_uniform(x[0], x[1], (2,)))(V)
    message = str(caught.value)
    for words in ("`rng_uniform` of f32[], f32[]", "shape=(2,)", "test_from_jax.py:", "funcml.numpy or funcml.lax"):
        assert words in message
    assert isinstance(caught.value, NotImplementedError)


def test_a_part_that_nothing_uses_need_not_be_known():
    def f(x):
        lax.rng_uniform(x[0], x[1], (2,))
        return x + 1

    np.testing.assert_array_equal(from_jax(f)(V), V + 1)


# ---- arguments and results -------------------------------------------------------------------------------------------


def test_trees_static_leaves_and_python_numbers():
    def f(x, *, mode, n, scale):
        assert mode == "double" and type(n) is int
        return {"y": x["a"] * scale, "n": n + 1, "text": mode, "none": None, "list": [x["b"]] * n}

    a, b = fm.device_put(V), fm.device_put(X)
    bridged = from_jax(f)
    for scale in (2.0, 3.0):
        got = bridged({"a": a, "b": b}, mode="double", n=2, scale=scale)
        np.testing.assert_array_equal(got["y"], V * np.float32(scale))
        assert got["n"] == 3 and type(got["n"]) is int and got["text"] == "double" and got["none"] is None
        assert len(got["list"]) == 2 and got["list"][0] is b
    assert len(bridged._bridges) == 1


def test_functions_are_recorded_once_for_each_type():
    calls = []

    def f(x):
        calls.append(x.shape)
        return x * 2

    bridged = from_jax(f)
    for _ in range(3):
        bridged(V), bridged(fm.device_put(V)), bridged(X)
    assert calls == [(3,), (2, 3)]


def test_weak_types_are_jaxs():
    f = from_jax(lambda x, s: (x * s, s * 2, jnp.float32(1) * s))
    h = np.float16([1, 2])
    got = f(h, 3.0)
    want = jax.jit(lambda x, s: (x * s, s * 2, jnp.float32(1) * s))(h, 3.0)
    assert [(x.dtype, x.weak_type) for x in got] == [(np.dtype(x.dtype), x.weak_type) for x in want]


def test_64_bits_are_not_narrowed():
    x = np.float64([1 / 3, 1e-12])
    y, z = from_jax(lambda x: (jnp.sin(x) + 1, jnp.arange(2.0) * x))(x)
    assert y.dtype == z.dtype == np.float64
    np.testing.assert_allclose(y, np.sin(x) + 1, 1e-15)
    assert from_jax(lambda n: n + 1)(np.int64(2**40)).item() == 2**40 + 1
    assert from_jax(lambda x: x + jnp.arange(3.0))(V).dtype == np.float32
    with fm.core.config.enable_x64(True):
        assert from_jax(lambda x: x + jnp.arange(3.0))(V).dtype == np.float64


def test_constants_of_a_function_become_inputs():
    table = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    held = jnp.asarray(table)

    def f(x):
        return held @ x + table.sum(1)

    jaxpr = fm.make_jaxpr(from_jax(f))(V)
    assert isinstance(jaxpr, Jaxpr) or jaxpr is not None
    np.testing.assert_allclose(from_jax(f)(V), table @ V + table.sum(1), 1e-6)
    np.testing.assert_allclose(fm.jit(from_jax(f))(V), table @ V + table.sum(1), 1e-6)


@pytest.mark.parametrize("make", [keys.key, keys.PRNGKey])
def test_random_numbers_are_jaxs(make):
    def f(key):
        a, b = jax.random.split(key)
        c = jax.random.fold_in(a, 7)
        return jax.random.normal(b, (3,)), jax.random.bits(c, (2,), "uint8"), jax.random.uniform(a)

    theirs = jax.random.key(5) if make is keys.key else jax.random.PRNGKey(5)
    agree(from_jax(f)(make(5)), jax.jit(f)(theirs))
    rows = fm.vmap(from_jax(f))(keys.split(make(5), 2))
    agree(rows, jax.vmap(f)(jax.random.split(theirs, 2)))


@pytest.mark.parametrize("impl, name", [("threefry2x32", "key<fry>"), ("rbg", "key<rbg>")])
def test_keys_cross_the_bridge(impl, name):
    split = from_jax(lambda k: jax.random.split(k, 3))(keys.key(1, impl=impl))
    assert str(split.dtype) == name and split.shape == (3,)
    want = jax.random.split(jax.random.key(1, impl=impl), 3)
    np.testing.assert_array_equal(keys.key_data(split), jax.random.key_data(want))
    made = from_jax(lambda: jax.random.key(-3, impl=impl))()
    np.testing.assert_array_equal(keys.key_data(made), jax.random.key_data(jax.random.key(-3, impl=impl)))
    held = jax.random.key(9, impl=impl)
    drawn = from_jax(lambda x: x + jax.random.normal(held, (3,)))(V)
    np.testing.assert_allclose(drawn, V + np.asarray(jax.random.normal(held, (3,))), 1e-6)


def test_python_control_flow_under_grad_sees_values():
    f = from_jax(lambda x: jnp.sum(x * x))

    def loss(x):
        return f(x) if f(x) > 1 else f(x) * 100

    np.testing.assert_allclose(fm.grad(loss)(V), 2 * V, 1e-6)
    np.testing.assert_allclose(fm.grad(loss)(V / 10), 20 * V, 1e-6)


def test_the_table_names_only_functions():
    assert all(callable(f) for f in translations.TABLE.values())
    assert set(interop.__all__) <= set(dir(interop))
