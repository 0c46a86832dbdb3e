"""Sparse Jacobians and Hessians against dense ones; patterns that are never too small, and small where they should be."""

import functools
import random
import time

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from funcml.sparsity import Pattern, hessian_sparsity, jacobian_sparsity, sparse_hessian, sparse_jacobian

N = 12
X = np.random.default_rng(0).uniform(0.2, 1.5, N)
A = np.random.default_rng(1).standard_normal((N, N)) * (np.random.default_rng(2).random((N, N)) < 0.2)
I = np.array([3, 3, 0, 7, 11])


@fm.custom_jvp
def straight(x):
    """Rounds, with the derivative of the identity."""
    return jnp.round(x)


straight.defjvp(lambda primals, tangents: (straight(*primals), tangents[0]))


@jnp.vectorize
def piece(x):
    return lax.cond(x > 0.7, lambda v: v * v, lambda v: jnp.sin(v), x)


def stepped(x, length):
    return lax.scan(lambda c, v: (jnp.tanh(c * v), c + v), x[:3], x.reshape(4, 3)[:length])


# name -> function of R^12, and how many entries its pattern may have (None: any)
FUNCTIONS = {
    "elementwise": (lambda x: jnp.sin(x) * x + 2.0, N),
    "stencil": (lambda x: x[2:] - 2 * x[1:-1] ** 2 + x[:-2], 3 * (N - 2)),
    "constant": (lambda x: jnp.ones(3), 0),
    "floor and integers": (lambda x: jnp.floor(x) + (x > 1) + x.astype(int) + lax.stop_gradient(x), 0),
    "straight through": (straight, N),
    "sum of rows": (lambda x: (x.reshape(3, 4) ** 2).sum(1), N),
    "max and prod": (lambda x: jnp.concatenate([x.reshape(3, 4).max(0), x.reshape(4, 3).prod(1)]), 2 * N),
    "transpose, flip, broadcast": (lambda x: x.reshape(3, 4).T[:, ::-1] * x[:3] + x[5], 3 * N),
    "strided and padded": (lambda x: jnp.pad(x[::3], (1, 2)), 4),
    "gather": (lambda x: x[I] * x[I[::-1]], 9),
    "gather out of bounds": (lambda x: jnp.take(x, I + 4, mode="fill", fill_value=0.0) * 2, 4),
    "indices that are not known": (lambda x: x[jnp.argsort(x)[:2]], None),
    "scatter": (lambda x: jnp.zeros(15, x.dtype).at[I].set(x[:5]), 5),
    "scatter_add": (lambda x: x.at[I].add(jnp.sin(x[5:10])), N + 5),
    "scatter_mul": (lambda x: x.at[I[1:]].multiply(x[5:9]), N + 4),
    "where known": (lambda x: jnp.where(np.arange(N) % 2 == 0, x, x[::-1]), N),
    "where unknown": (lambda x: jnp.where(x > 1, x, x[::-1]), 2 * N),
    "matrix of constants": (lambda x: A @ x, np.count_nonzero(A)),
    "matrix on the right": (lambda x: (x.reshape(2, 6) @ A[:6, :4]).T, 2 * np.count_nonzero(A[:6, :4])),
    "product of variables": (lambda x: x.reshape(4, 3) @ x.reshape(4, 3)[:3].T[:3, :2], None),
    "batched product": (lambda x: jnp.einsum("bij,bj->bi", A.reshape(3, 4, 12)[:, :, :4], x.reshape(3, 4)), None),
    "convolution": (lambda x: jnp.convolve(x, np.float64([1, -2, 1]), mode="same"), 3 * N - 2),
    "cumulative": (lambda x: jnp.cumsum(x.reshape(4, 3) ** 2, 1), 3 * N),
    "sort": (lambda x: jnp.sort(x.reshape(4, 3), axis=1), 3 * N),
    "dynamic slices": (lambda x: lax.dynamic_update_slice(x, lax.dynamic_slice(x, (8,), (3,)) ** 2, (1,)), N),
    "call": (lambda x: fm.jit(lambda y: y[1:] * 2)(x) + fm.checkpoint(jnp.sin)(x[1:]), N - 1),
    "cond of each": (piece, N),
    "cond": (lambda x: lax.cond(x[0] > 1, lambda v: v[:3], lambda v: v[1:4] * 2, x), 6),
    "scan": (lambda x: stepped(x, 2)[1], 2 + 2 + 2 + 3 * 2 + 3),
    "scan, carry": (lambda x: stepped(x, 4)[0], 3 * 4),
    "while": (lambda x: lax.while_loop(lambda v: v.sum() < 10, lambda v: v * 1.5, x), None),
    "long scan": (lambda x: lax.scan(lambda c, _: (c * 0.99, None), x, None, length=1000)[0], None),
    "softmax": (lambda x: fm.nn.softmax(x.reshape(4, 3)), 3 * N),
    "relu": (fm.nn.relu, N),
    "fft": (lambda x: jnp.fft.rfft(x.reshape(4, 3)).real, None),
    "solve": (lambda x: jnp.linalg.solve(A + 9 * np.eye(N), x), None),
    "map": (lambda x: lax.map(lambda v: (v**2).sum(), x.reshape(6, 2)), N),
    "vmap": (lambda x: fm.vmap(lambda v: v[0] * v)(x.reshape(3, 4)), 3 * (4 + 3)),
    "scalar": (lambda x: x[3] * x[4], 2),
    "concatenate, split, stack": (lambda x: jnp.stack(jnp.split(jnp.concatenate([x[:3], x[5:8]]), 2), 1) ** 2, 6),
    "roll": (lambda x: jnp.roll(x, 2) * x, 2 * N),
    "reverse mode in it": (lambda x: fm.grad(lambda y: (y[1:] * y[:-1] ** 2).sum())(x), 3 * N - 2),
}


@pytest.mark.parametrize(("f", "most"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_jacobian(f, most):
    want = np.reshape(fm.jacfwd(f)(X), (-1, N))
    got = sparse_jacobian(f)(X)
    np.testing.assert_allclose(got.todense(), want, rtol=1e-9, atol=1e-12)
    assert most is None or got.nnz <= most, f"{got.nnz} entries, {most} would do"


@pytest.mark.parametrize("mode", ["fwd", "rev"])
@pytest.mark.parametrize("name", ["stencil", "matrix of constants", "scalar", "scatter_add"])
def test_modes_chunks_and_jit(mode, name):
    f = FUNCTIONS[name][0]
    want = np.reshape(fm.jacfwd(f)(X), (-1, N))
    for g in (sparse_jacobian(f, mode=mode, chunk_size=2), fm.jit(sparse_jacobian(f, mode=mode))):
        np.testing.assert_allclose(g(X).todense(), want, rtol=1e-9, atol=1e-12)


SCALARS = {
    "chain": lambda x: (x[1:] * x[:-1] ** 2).sum(),
    "Rosenbrock": lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(),
    "arrow": lambda x: x[0] * (x[1:] ** 2).sum() + jnp.sin(x).sum(),
    "two hubs": lambda x: jnp.exp(x[4] * x[7]) * x.sum() + (x[1:] * x[:-1]).sum(),
    "separable": lambda x: jnp.exp(x).sum(),
    "linear": lambda x: x @ A[0],
    "quadratic form": lambda x: x @ (A @ x),
    "dense": lambda x: jnp.log(x.sum()),
    "grid": lambda x: (jnp.diff(x.reshape(3, 4), axis=0) ** 4).sum() + (jnp.diff(x.reshape(3, 4), axis=1) ** 4).sum(),
    "gathered": lambda x: (x[I] ** 2 * x[I[::-1]]).sum(),
    "relu and where": lambda x: jnp.where(x > 1, x**3, fm.nn.softplus(x)).sum(),
}


@pytest.mark.parametrize("f", SCALARS.values(), ids=SCALARS)
def test_hessian(f):
    want = fm.hessian(f)(X)
    for g in (sparse_hessian(f), fm.jit(sparse_hessian(f, chunk_size=2))):
        np.testing.assert_allclose(g(X).todense(), want, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("name", "entries"), [("chain", 3 * N - 2), ("arrow", 3 * N - 2), ("separable", N), ("linear", 0)])
def test_patterns_of_hessians_are_small(name, entries):
    assert hessian_sparsity(SCALARS[name])(X).nnz <= entries


MOVES = [
    lambda x: jnp.sin(x), lambda x: x[::-1] * 2, lambda x: x * jnp.roll(x, 1), lambda x: x.at[2:5].set(x[7:10]),
    lambda x: (x.reshape(3, 4).T * x[:3]).reshape(-1), lambda x: jnp.where(x > 0.5, x, x[3]), lambda x: jnp.tanh(A @ x),
    lambda x: x.at[I].multiply(x[:5]), lambda x: jnp.cumsum(x.reshape(6, 2), 1).reshape(-1), lambda x: jnp.maximum(x, x[::-1]),
    lambda x: jnp.pad(x[2:-2], 2) + x, lambda x: x + x.reshape(4, 3).sum(1)[I[[0, 1, 2]] % 4].sum() * 0.1, lambda x: x[I[2]] + x,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed):
    chosen = random.Random(seed).choices(MOVES, k=4)

    def f(x):
        for move in chosen:
            x = move(x)
        return x

    np.testing.assert_allclose(sparse_jacobian(f)(X).todense(), fm.jacfwd(f)(X), rtol=1e-8, atol=1e-11)


def test_a_large_banded_jacobian_and_hessian_are_quick():
    x = jnp.linspace(0.0, 1.0, 10_000)
    f = lambda x: x.at[1:-1].add(jnp.sin(x[2:]) * x[:-2] + x[1:-1] ** 2)
    h = lambda x: (f(x) ** 2).sum() + x[0] * x.sum()
    for transform, g in ((sparse_jacobian, f), (sparse_hessian, h)):
        start = time.perf_counter()
        m = transform(g)(x)
        m.data.block_until_ready()
        assert time.perf_counter() - start < 20 and m.nnz < 120_000
    v = jnp.cos(x)
    np.testing.assert_allclose(sparse_jacobian(f)(x) @ v, fm.jvp(f, (x,), (v,))[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(m @ v, fm.jvp(fm.grad(h), (x,), (v,))[1], rtol=1e-3, atol=1e-3)


def test_captured_arrays_that_change():
    for w in (np.eye(3), np.ones((3, 3))):
        held = jnp.asarray(w)
        assert sparse_jacobian(functools.partial(jnp.matmul, held))(jnp.ones(3)).nnz == np.count_nonzero(w)


def test_other_arguments_and_trees():
    m = sparse_jacobian(lambda a, x, *, k: x["scale"] * a[1:] * k)(X, {"scale": 2.0}, k=3)
    np.testing.assert_allclose(m.todense(), 6 * np.eye(N)[1:])
    doubled = fm.tree.map(lambda v: 2 * v, m)
    np.testing.assert_allclose(doubled.todense(), 12 * np.eye(N)[1:])
    assert sparse_jacobian(lambda a, x: a * x, argnums=1)(2.0, X).nnz == N


def test_a_pattern_may_be_given():
    p = Pattern.of(range(N), range(N), (N, N))
    f = lambda x: lax.while_loop(lambda v: v.sum() < 30, lambda v: v * v + 1, x)
    np.testing.assert_allclose(sparse_jacobian(f, sparsity=p)(X).todense(), fm.jacfwd(f)(X), rtol=1e-9)
    assert jacobian_sparsity(jnp.sin)(X) == p


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda: sparse_jacobian(lambda x: x, mode="both"), ValueError, 'mode must be "fwd", "rev" or None'),
    (lambda: sparse_jacobian(lambda x: x, chunk_size=0), ValueError, "chunk_size must be positive"),
    (lambda: sparse_jacobian(lambda x: x, argnums=(0,))(X), TypeError, "argnums must be one int.*ravel_pytree"),
    (lambda: sparse_jacobian(lambda x: x)({"a": X}), TypeError, "one array of real floats, got dict.*ravel_pytree"),
    (lambda: sparse_jacobian(lambda x: x)(1), TypeError, r"real floats, got i32\[\]"),
    (lambda: sparse_jacobian(lambda x: (x, x))(X), TypeError, "one array as its result"),
    (lambda: sparse_jacobian(lambda x: [x])(X), TypeError, "one array as its result"),
    (lambda: sparse_jacobian(lambda x: x > 1)(X), TypeError, "real float result, got bool"),
    (lambda: sparse_hessian(lambda x: x)(X), TypeError, r"scalar result, got f64\[12\]"),
    (lambda: sparse_jacobian(lambda x: x, sparsity=Pattern.identity(3))(X), ValueError, "Pattern of 12 x 12, got Pattern.3"),
    (lambda: jacobian_sparsity(lambda x: jnp.fft.rfft(x).real)(jnp.ones(20_000)), ValueError, "is not sparse.*jacfwd"),
])  # fmt: skip
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()
