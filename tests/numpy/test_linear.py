"""Products, einsum and norms against NumPy; derivatives of norms at 0."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from tests.products import check_products


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def same(ours, want, rtol=1e-12):
    assert np.shape(ours) == np.shape(want)
    np.testing.assert_allclose(ours, want, rtol=rtol, atol=1e-12)


SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((7, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((2, 5, 2, 3), (1, 1, 3, 4)), ((1, 1, 3), (1, 3, 1)), ((2, 0), (0, 3)),
]  # fmt: skip


def test_matmul():
    pairs = [(draw(*a), draw(*b, seed=1)) for a, b in SHAPES]
    for ours, (a, b) in zip(funcml.jit(lambda ps: [jnp.matmul(*p) for p in ps])(pairs), pairs, strict=True):
        same(ours, a @ b)


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((7, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4))], ids=str)
def test_derivatives_of_matmul(shapes):
    check_products(jnp.matmul, draw(*shapes[0]), draw(*shapes[1], seed=1), products=("jit", "jvp", "vjp", "vmap"))


def test_products():
    a, b, z = draw(2, 3, 4), draw(3, 4, 5, seed=1), draw(2, 3) + 1j * draw(2, 3, seed=2)
    v, w = draw(2, 3), draw(2, 3, seed=1)
    calls = [
        lambda m: m.dot(a, draw(4, 6)), lambda m: m.dot(2.0, v), lambda m: m.inner(v, w), lambda m: m.outer(v, w),
        lambda m: m.tensordot(a, b, 2), lambda m: m.tensordot(a, a, ([0, 2], [0, 2])), lambda m: m.tensordot(v, w, 0),
        lambda m: m.vdot(z, z * 1j), lambda m: m.vecdot(z, z * 1j), lambda m: m.kron(v, w), lambda m: m.kron(v[0], w),
        lambda m: m.cross(v, w), lambda m: m.cross(v.T, w.T, axis=0),
        lambda m: m.trace(a, 1, 1, 2), lambda m: m.matmul(np.array([[True, False]]), np.array([[True], [True]])),
        lambda m: m.linalg.matrix_power(draw(3, 3), 5), lambda m: m.linalg.multi_dot([v, w.T, v]),
        lambda m: m.vecdot(v, w, axis=0),
    ]  # fmt: skip
    for ours, call in zip(funcml.jit(lambda: [f(jnp) for f in calls])(), calls, strict=True):
        same(ours, call(np))
    assert jnp.linalg.matrix_power(np.array([[True, True], [False, True]]), 2).dtype == bool


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk,kl", (2, 3), (3, 4), (4, 5)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("ij->ji", (2, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("i,i", (3,), (3,)), ("i,j->ij", (3,), (2,)), ("...ij,...jk", (5, 2, 3), (5, 3, 4)),
    ("ijk->k", (2, 3, 4)), ("iij,jk->ik", (2, 2, 3), (3, 4)), ("ab,ab->", (2, 3), (2, 3)), ("ij,kl->", (2, 3), (4, 5)),
    ("iijj->ij", (2, 2, 3, 3)), ("abc,cd,de,ea->b", (2, 3, 4), (4, 5), (5, 2), (2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("optimize", ["auto", False, True])
def test_einsum(optimize):
    arrays = [[draw(*shape, seed=i) for i, shape in enumerate(shapes)] for _, *shapes in EINSUMS]
    found = funcml.jit(
        lambda lists: [jnp.einsum(spec, *xs, optimize=optimize) for (spec, *_), xs in zip(EINSUMS, lists, strict=True)]
    )(arrays)
    for ours, (spec, *_), xs in zip(found, EINSUMS, arrays, strict=True):
        same(ours, np.einsum(spec, *xs))


def test_other_forms_of_einsum():
    a, b = draw(2, 3), draw(3, 4)
    same(jnp.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    assert jnp.einsum_path("ij,jk->ik", a, b)[0] == [(0, 1)]
    check_products(lambda a, b: jnp.einsum("ij,jk,lk->il", a, b, b), a, b, products=("jit", "jvp", "vjp", "vmap"))
    with pytest.raises(ValueError, match=r"einsum 'ij,jk->ik': the axis j has the lengths 3 and 4"):
        jnp.einsum("ij,jk->ik", a, draw(4, 4))


def test_precision_and_preferred_element_type():
    a = np.ones((2, 2), np.int8)
    assert jnp.matmul(a, a, preferred_element_type="int32").dtype == np.int32
    text = str(funcml.make_jaxpr(lambda x: jnp.dot(x, x, precision="highest"))(np.ones((2, 2), np.float32)))
    assert "highest" in text


# ---- norms -------------------------------------------------------------------------------------------------------


def test_norms():
    x = draw(3, 4)
    z = x + 1j * x[::-1]
    for y in (x, z):
        for order in (None, 1, 2, 3.5, np.inf, -np.inf, 0):
            same(jnp.linalg.norm(y, order, axis=1), np.linalg.norm(y, order, axis=1))
        for order in (None, "fro", 1, -1, np.inf, -np.inf):
            same(jnp.linalg.norm(y, order, (1, 0), keepdims=True), np.linalg.norm(y, order, (1, 0), keepdims=True))
    same(jnp.linalg.norm([3.0, 4.0]), 5)
    same(jnp.linalg.vector_norm(x), np.linalg.norm(x))
    same(jnp.linalg.matrix_norm(x, ord=1), np.linalg.norm(x, 1))
    assert jnp.linalg.norm(jnp.zeros(3)) == 0 and jnp.linalg.norm(jnp.ones(3, "bfloat16")).dtype == "bfloat16"


def test_derivatives_of_norms():
    x = draw(3, 4)
    check_products(lambda x: [jnp.linalg.norm(x), jnp.linalg.norm(x, axis=0), jnp.linalg.norm(x, 3, axis=1)], x)
    check_products(lambda x, y: jnp.linalg.norm(x + 1j * y, axis=1), x, x[::-1] + 1.0)


def test_norm_at_zero():
    zero = np.zeros(2)
    assert funcml.grad(lambda a: jnp.linalg.norm(a * zero))(1.3) == 0
    same(funcml.grad(lambda x: jnp.exp(-(jnp.linalg.norm(x) ** 2)))(zero), zero)
    same(funcml.grad(lambda x: jnp.linalg.norm(x, 3))(zero), zero)
    value, slope = funcml.value_and_grad(jnp.linalg.norm)(zero)
    assert value == 0 and slope.tolist() == [0, 0]


@pytest.mark.parametrize("f, second", [
    (lambda r: jnp.exp(-(r**2) / 2), -1.0), (lambda r: jnp.cos(r), -1.0), (lambda r: r * jnp.tanh(r), 2.0), (lambda r: r**4, 0.0),
], ids=range(4))  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hessian_of_even_functions_of_the_norm_at_zero(f, second, dtype):
    y = np.array([1, 2], dtype)
    for hessian in (funcml.hessian, lambda g: funcml.jacrev(funcml.jacrev(g)), lambda g: funcml.jacfwd(funcml.jacfwd(g))):
        same(hessian(lambda x: f(jnp.linalg.norm(x - y)))(y), second * np.eye(2), 1e-6)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.matmul(np.ones((2, 3)), np.ones((2, 3))), ValueError,
    r"the last axis of f64\[2,3\] and the second last axis of"),
    (lambda: jnp.matmul(2.0, np.ones(3)), TypeError, "matmul expects at least 1 dimension"),
    (lambda: jnp.dot(np.ones((2, 3)), np.ones((2, 3))), ValueError, "must have equal lengths"),
    (lambda: jnp.tensordot(np.ones(3), np.ones(3), 2), TypeError, "axes=.* exceeds input ranks"),
    (lambda: jnp.cross(np.ones(4), np.ones(4)), ValueError, "vectors of 2 or 3 components"),
    (lambda: jnp.einsum("ij,jk", np.ones(3), np.ones((3, 3))), ValueError, r"'ij' has 2 letters for an operand f64\[3\]"),
    (lambda: jnp.linalg.norm(np.ones((2, 2, 2)), 2), ValueError, "one axis for a vector norm or two for a matrix norm"),
    (lambda: jnp.linalg.norm(np.ones(3), "fro", axis=0), ValueError, "Invalid order 'fro' for vector norm. It is a number"),
])
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
