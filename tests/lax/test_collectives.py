"""Collectives under `vmap`: against NumPy on the whole batch, and derivatives against those of the written-out function."""

import functools

import jax
import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml import lax
from tests.products import check_products

X = np.random.default_rng(0).normal(size=(4, 4, 3)).astype(np.float32)
GROUPS = [[0, 3], [2, 1]]


def over(f, **kwargs):
    return functools.partial(funcml.vmap, axis_name="i", **kwargs)(f)


@pytest.mark.parametrize("name, whole", [("psum", np.sum), ("pmean", np.mean), ("pmax", np.max), ("pmin", np.min)])
def test_reductions(name, whole):
    reduce = getattr(lax, name)
    expected = np.broadcast_to(whole(X, 0), X.shape)
    np.testing.assert_allclose(over(lambda x: reduce(x, "i"))(X), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(over(lambda x: reduce(x, "i"), out_axes=None)(X), expected[0], rtol=1e-5, atol=1e-6)
    grouped = np.empty_like(X)
    for group in GROUPS:
        grouped[group] = whole(X[group], 0)
    np.testing.assert_allclose(over(lambda x: reduce(x, "i", axis_index_groups=GROUPS))(X), grouped, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["psum", "pmean", "pmax", "pmin"])
def test_reductions_over_two_axes_and_of_what_is_shared(name):
    def nested(module):
        reduce = getattr(module.lax, name)
        inner = module.vmap(lambda x: (reduce(x, ("j", "i")), reduce(x, "j"), reduce(np.float32(2), ("i", "j"))), axis_name="j")
        return module.vmap(inner, axis_name="i", in_axes=1)(X)

    for ours, theirs in zip(nested(funcml), nested(jax), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


MOVING = {
    "all_gather": lambda lax, x: lax.all_gather(x, "i", axis=1),
    "all_gather in front": lambda lax, x: lax.all_gather(x, "i"),
    "all_gather tiled": lambda lax, x: lax.all_gather(x, "i", axis=-1, tiled=True),
    "psum_scatter": lambda lax, x: lax.psum_scatter(x, "i"),
    "psum_scatter tiled": lambda lax, x: lax.psum_scatter(x, "i", tiled=True),
    "all_to_all": lambda lax, x: lax.all_to_all(x, "i", 0, 1),
    "all_to_all tiled": lambda lax, x: lax.all_to_all(x, "i", 0, 1, tiled=True),
    "pswapaxes": lambda lax, x: lax.pswapaxes(x, "i", 0),
    "ppermute": lambda lax, x: lax.ppermute(x, "i", [(0, 1), (1, 2), (3, 0), (2, 3)]),
    "pshuffle": lambda lax, x: lax.pshuffle(x, "i", [2, 3, 1, 0]),
    "axis_index": lambda lax, x: x * lax.axis_index("i"),
}


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("in_axis, out_axis", [(0, 0), (1, -1)])
def test_moving_as_jax_moves(name, in_axis, out_axis):
    f = MOVING[name]
    ours = over(functools.partial(f, lax), in_axes=in_axis, out_axes=out_axis)(X)
    theirs = jax.vmap(functools.partial(f, jax.lax), axis_name="i", in_axes=in_axis, out_axes=out_axis)(X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_nothing_sent_is_zero():
    send = [(0, 1), (3, 0)]
    expected = np.stack([X[3], X[0], 0 * X[0], 0 * X[0]])
    np.testing.assert_array_equal(over(lambda x: lax.ppermute(x, "i", send))(X), expected)
    ct = funcml.grad(lambda x: jnp.sum(over(lambda x: lax.ppermute(x, "i", send))(x) * X))(X)
    np.testing.assert_array_equal(ct, np.stack([X[1], 0 * X[0], 0 * X[0], X[0]]))


def test_groups_move_apart():
    x = X[:, :2]
    for f in (
        lambda x, g: lax.all_gather(x, "i", axis=1, axis_index_groups=g),
        lambda x, g: lax.psum_scatter(x, "i", axis_index_groups=g),
        lambda x, g: lax.all_to_all(x, "i", 0, 1, axis_index_groups=g),
    ):
        found = np.asarray(over(lambda x, f=f: f(x, GROUPS))(x))
        for group in GROUPS:
            alone = over(lambda x, f=f: f(x, None))(x[np.array(group)])
            np.testing.assert_allclose(found[group], alone, rtol=1e-6)


def test_several_axes_count_the_first_slowest():
    x = np.arange(2 * 3 * 6, dtype=np.float32).reshape(2, 3, 6)

    def of(f):
        return np.asarray(funcml.vmap(funcml.vmap(f, axis_name="j"), axis_name="i")(x))

    names = ("i", "j")
    np.testing.assert_array_equal(of(lambda x: lax.axis_index(names)), np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(of(lambda x: lax.all_gather(x, names))[1, 2], x.reshape(6, 6))
    np.testing.assert_array_equal(of(lambda x: lax.all_gather(x, names, tiled=True))[1, 2], x.reshape(36))
    np.testing.assert_array_equal(of(lambda x: lax.psum_scatter(x, names)).ravel(), x.reshape(6, 6).sum(0))
    np.testing.assert_array_equal(of(lambda x: lax.all_to_all(x, names, 0, 0)).reshape(6, 6), x.reshape(6, 6).T)
    np.testing.assert_array_equal(of(lambda x: lax.pbroadcast(x, names, 4)), np.broadcast_to(x[1, 1], x.shape))


def test_pbroadcast_and_pcast():
    np.testing.assert_array_equal(over(lambda x: lax.pbroadcast(x, "i", 2))(X), np.broadcast_to(X[2], X.shape))
    np.testing.assert_array_equal(over(lambda x: lax.pcast(x, "i", to="varying"))(X), X)


def test_sizes_are_python_numbers():
    sizes = []
    over(lambda x: sizes.extend([lax.axis_size("i"), lax.psum(1, "i"), lax.psum(2, "i", axis_index_groups=GROUPS)]) or x)(X)
    assert sizes == [4, 4, 4] and all(type(n) is int for n in sizes)


def test_bools_are_counted_and_trees_mapped():
    flags = np.array([True, False, True])
    found = over(lambda x: lax.psum({"a": x, "b": (x, 1)}, "i"), out_axes=None)(flags)
    assert int(found["a"]) == 2 and int(found["b"][0]) == 2 and int(found["b"][1]) == 3


@pytest.mark.parametrize("name", ["psum", "pmean", "pmax", "all_gather", "psum_scatter", "pswapaxes", "ppermute"])
def test_products_of_transforms(name):
    f = MOVING.get(name) or (lambda lax, x: getattr(lax, name)(x, "i"))
    check_products(over(lambda x: jnp.sin(f(lax, x * x))), X[:, :, 0].astype(np.float64))


@pytest.mark.parametrize("name", ["psum", "pmax", "all_gather", "psum_scatter", "pswapaxes", "ppermute", "axis_index"])
def test_the_derivative_of_an_example_counts_what_it_sent(name):
    f = MOVING.get(name) or (lambda lax, x: getattr(lax, name)(x, "i"))
    batch, x = over(lambda x: jnp.sin(f(lax, x))), X[:, :, 0]
    inside = over(funcml.grad(lambda x: jnp.sum(jnp.sin(f(lax, x)))))(x)
    np.testing.assert_allclose(inside, funcml.grad(lambda x: jnp.sum(batch(x)))(x), rtol=1e-4, atol=1e-5)


def loss(x):
    return lax.psum(jnp.sin(x), "i") * (lax.axis_index("i") + 1)


WRAPPED = {
    "jit": lambda x: funcml.jit(loss)(x),
    "remat": lambda x: funcml.checkpoint(loss)(x),
    "scan": lambda x: lax.scan(lambda c, _: (loss(c), lax.axis_index("i")), x, None, length=2)[0],
    "cond": lambda x: lax.cond(True, loss, jnp.cos, x),
    "while": lambda x: lax.fori_loop(0, 2, lambda i, c: loss(c), x),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_inside_programs_of_programs(name):
    def written_out(x, times):
        for _ in range(times):
            x = np.sin(x).sum(0) * np.arange(1, 5).reshape(4, 1)
        return x

    expected = written_out(X[:, 0].astype(np.float64), 2 if name in ("scan", "while") else 1)
    np.testing.assert_allclose(over(WRAPPED[name])(X[:, 0]), expected, rtol=1e-4, atol=1e-4)


def test_a_shared_input_of_a_call_may_become_one_of_each_example():
    counted = funcml.jit(lambda: lax.axis_index("i"))
    for n in (3, 5):
        np.testing.assert_array_equal(over(lambda x: counted())(np.zeros(n)), np.arange(n))


def test_the_size_of_the_axis_is_part_of_what_jit_remembers():
    sized = funcml.jit(lambda x: x * lax.axis_size("i"))
    for n in (3, 5):
        np.testing.assert_array_equal(over(sized)(np.ones(n)), n * np.ones(n))


def test_custom_rules_may_communicate():
    @funcml.custom_vjp
    def f(x):
        return lax.pmean(x, "i")

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (3 * lax.psum(ct, "i"),))
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(funcml.grad(lambda x: over(f)(x)[1])(x), 3 * np.ones(4))

    @funcml.custom_jvp
    def g(x):
        return lax.psum(x, "i")

    g.defjvp(lambda primals, tangents: (g(*primals), 5 * lax.psum(tangents[0], "i")))
    np.testing.assert_allclose(funcml.grad(lambda x: over(g)(x)[1])(x), 5 * np.ones(4))


@pytest.mark.parametrize("axes", [0, 1, 3])
def test_axes_of_few_examples(axes):
    x = np.ones((axes, 2), np.float32)
    np.testing.assert_array_equal(over(lambda x: lax.psum(x, "i"))(x), axes * x)
    np.testing.assert_array_equal(over(lambda x: lax.ppermute(x, "i", []))(x), 0 * x)


@pytest.mark.parametrize("f, error, words", [
    (lambda x: lax.psum(x, "k"), NameError, r"unbound axis name: k.*'i'.*vmap\(..., axis_name='k'\)"),
    (lambda x: lax.axis_index("k"), NameError, "unbound axis name"),
    (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [1, 2]]), ValueError, "must cover all indices"),
    (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2], [3]]), ValueError, "same size"),
    (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "must be unique"),
    (lambda x: lax.ppermute(x, "i", [(0, 7)]), ValueError, r"range\(4\)"),
    (lambda x: lax.ppermute(x, ("i", "i"), [(0, 1)]), NotImplementedError, "one named axis"),
    (lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]), ValueError, "does not represent a permutation"),
    (lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), ValueError, "4 examples of the group"),
    (lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), ValueError, "divisible"),
    (lambda x: lax.pbroadcast(x, "i", 4), ValueError, r"range\(4\)"),
    (lambda x: lax.pcast(x, "i", to="elsewhere"), ValueError, "varying"),
    (lambda x: x if lax.axis_index("i") else -x, Exception, "where"),
])  # fmt: skip
def test_errors_say_what_to_write(f, error, words):
    with pytest.raises(error, match=words):
        over(f)(X)


def test_no_axis_outside():
    with pytest.raises(NameError, match="unbound axis name: i.*none"):
        lax.psum(1.0, "i")
