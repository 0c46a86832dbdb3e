"""`chunk_size=`: the results of the whole batch, in the memory of a chunk."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp

X = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)


def f(w, x):
    return {"y": jnp.tanh(w @ x), "n": (x * x).sum()}


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 10])
def test_vmap_in_chunks(chunk_size):
    want = fm.vmap(f, (None, 1), out_axes={"y": 1, "n": 0})(W, X.T)
    got = fm.jit(fm.vmap(f, (None, 1), out_axes={"y": 1, "n": 0}, chunk_size=chunk_size))(W, X.T)
    np.testing.assert_allclose(got["y"], want["y"], rtol=1e-6)
    np.testing.assert_allclose(got["n"], want["n"], rtol=1e-6)


def test_outputs_that_no_example_changes():
    got = fm.vmap(lambda x, y: (x + y, y), (0, None), (0, None), chunk_size=2)(X, 2.0)
    np.testing.assert_allclose(got[0], X + 2)
    assert got[1].shape == () and got[1] == 2


def test_captured_arrays_nesting_and_derivatives():
    def loss(w, chunk_size):
        inner = lambda x: fm.vmap(lambda a: jnp.sin(a * w).sum(), chunk_size=chunk_size)(x)
        return (fm.vmap(inner, chunk_size=chunk_size)(jnp.stack([X, X + 1, X - 1])) ** 2).sum()

    w = jnp.asarray(W[0])
    for transform in (lambda g: g, fm.grad, fm.hessian):
        got, want = (transform(lambda w, c=c: loss(w, c))(w) for c in (2, None))
        np.testing.assert_allclose(got, want, rtol=3e-5, atol=1e-4)


def test_empty_batch():
    assert fm.vmap(jnp.sin, chunk_size=3)(jnp.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("transform", [fm.jacfwd, fm.jacrev])
@pytest.mark.parametrize("chunk_size", [1, 4])
def test_jacobians_in_chunks(transform, chunk_size):
    g = lambda p: {"s": jnp.sin(p["a"]) * p["b"], "t": p["b"] ** 2}
    p = {"a": X[:2], "b": np.float32(2.0)}
    want = transform(g)(p)
    for got in (transform(g, chunk_size=chunk_size)(p), fm.jit(transform(g, chunk_size=chunk_size))(p)):
        fm.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, want)


def test_jacobian_with_aux():
    got, aux = fm.jacfwd(lambda x: (x**2, x.sum()), has_aux=True, chunk_size=2)(jnp.arange(5.0))
    np.testing.assert_allclose(got, np.diag(2 * np.arange(5.0)))
    assert aux == 10


def test_hessian_in_chunks():
    g = lambda x: jnp.sin(x).prod() + (x**3).sum()
    np.testing.assert_allclose(fm.hessian(g, chunk_size=2)(X[0]), fm.hessian(g)(X[0]), rtol=1e-5, atol=1e-6)


def test_chunks_need_less_memory():
    n = 2000
    w = jnp.ones((1, n))

    def bytes_of(chunk_size):
        g = fm.jit(fm.jacfwd(lambda x: (w @ jnp.sin(x)).sum(), chunk_size=chunk_size))
        return g.lower(jnp.ones(n)).compile().memory_analysis()["temp_size_in_bytes"]

    assert bytes_of(10) < bytes_of(None) / 20


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda: fm.vmap(f, chunk_size=0), ValueError, "vmap: chunk_size must be positive, got 0"),
    (lambda: fm.vmap(f, chunk_size=1.5), TypeError, "vmap: chunk_size must be an int or None, got 1.5"),
    (lambda: fm.jacfwd(f, chunk_size=True), TypeError, "jacfwd: chunk_size must be an int"),
    (lambda: fm.hessian(f, chunk_size=-1), ValueError, "chunk_size must be positive"),
    (lambda: fm.vmap(f, axis_name="i", chunk_size=2), ValueError, "chunk_size cannot be given with axis_name='i'"),
])  # fmt: skip
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()
