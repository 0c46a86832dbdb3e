"""Iterative solutions against those of NumPy; their derivatives by the equation."""

import functools

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.scipy.sparse.linalg import bicgstab, cg, gmres
from tests.products import check_products

SOLVERS = {
    "cg": cg, "bicgstab": bicgstab, "gmres": gmres, "gmres incremental": functools.partial(gmres, solve_method="incremental"),
}


def system(rng, n, dtype, definite):
    a = rng.normal(size=(n, n)) / np.sqrt(n)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=(n, n)) / np.sqrt(n)
    a = a @ a.conj().T + np.eye(n) if definite else a + 3 * np.eye(n)
    b = rng.normal(size=n) + (1j * rng.normal(size=n) if np.dtype(dtype).kind == "c" else 0)
    return a.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(rng, name, dtype):
    a, b = system(rng, 12, dtype, name == "cg")
    tol = 1e-5 if dtype == "float32" else 1e-12
    diagonal = np.diag(1 / np.diag(a))

    def solve(a, b):
        f = functools.partial(SOLVERS[name], tol=tol)
        return f(a, b)[0], f(lambda x: a @ x, b, b)[0], f(a, b, M=diagonal)[0]

    for x in fm.jit(solve)(a, b):
        assert x.dtype == dtype
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e3 * tol, atol=1e2 * tol)


@pytest.mark.parametrize("name", SOLVERS)
def test_trees_and_zero(rng, name):
    a, b = system(rng, 6, "float64", True)
    matvec = lambda t: {"x": a[:4, :4] @ t["x"] + a[:4, 4:] @ t["y"][0], "y": [a[4:, :4] @ t["x"] + a[4:, 4:] @ t["y"][0]]}
    found = SOLVERS[name](matvec, {"x": b[:4], "y": [b[4:]]}, tol=1e-12)[0]
    np.testing.assert_allclose(np.concatenate([found["x"], found["y"][0]]), np.linalg.solve(a, b), rtol=1e-8)
    np.testing.assert_array_equal(SOLVERS[name](a, np.zeros(6))[0], np.zeros(6))


def test_a_small_space_is_built_again(rng):
    a, b = system(rng, 30, "float64", False)
    for method in ("batched", "incremental"):
        x, info = gmres(a, b, restart=4, tol=1e-10, solve_method=method)
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-6, atol=1e-8)
        assert info == 0
    rough = gmres(a, b, restart=2, maxiter=1)[0]
    assert 0 < np.linalg.norm(a @ rough - b) < np.linalg.norm(b)


def test_the_number_of_steps_is_limited(rng):
    a, b = system(rng, 20, "float64", True)
    one, all_ = (cg(a, b, maxiter=k)[0] for k in (1, None))
    step = (b @ b) / (b @ a @ b)
    np.testing.assert_allclose(one, step * b)
    assert np.linalg.norm(a @ all_ - b) <= 1e-5 * np.linalg.norm(b)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_derivatives(rng, name):
    a, b = system(rng, 4, "float64", name == "cg")
    symmetric = (lambda a: 0.5 * (a + a.T)) if name == "cg" else (lambda a: a)
    f = lambda a, b: SOLVERS[name](lambda x: symmetric(a) @ x, b, tol=1e-13)[0]
    check_products(f, a, b, order=1, products=("jit", "jvp", "vjp"), rtol=1e-5)
    exact = fm.jacobian(lambda a: jnp.linalg.inv(symmetric(a)) @ b)(a)
    np.testing.assert_allclose(fm.jacobian(f)(a, b), exact, rtol=1e-6, atol=1e-8)


def test_what_multiplies_by_an_operator_will_do(rng):
    a, b = system(rng, 4, "float64", True)

    class Operator:
        shape = (4, 4)

        def __matmul__(self, x):
            return a @ x

    for solver in (cg, bicgstab, gmres):
        np.testing.assert_allclose(solver(Operator(), b, tol=1e-12)[0], np.linalg.solve(a, b), rtol=1e-8)


def test_a_weak_right_hand_side_has_a_weak_solution():
    b = jnp.broadcast_to(jnp.asarray(2.0), (2,))
    assert b.weak_type and cg(lambda x: 2 * x, b)[0].weak_type
    assert not cg(lambda x: 2 * x, np.ones(2))[0].weak_type


def test_many_systems_at_once(rng):
    a = np.stack([system(rng, 5, "float64", True)[0] for _ in range(3)])
    b = rng.normal(size=(3, 5))
    found = fm.vmap(lambda a, b: cg(a, b, tol=1e-12)[0])(a, b)
    np.testing.assert_allclose(found, np.linalg.solve(a, b[..., None])[..., 0], rtol=1e-8)


@pytest.mark.parametrize("call, words", [
    (lambda: cg(np.ones((2, 3)), np.ones(2)), r"a square matrix or a linear function, got one of shape \(2, 3\)"),
    (lambda: cg(np.eye(2), np.ones(2), np.ones(3)), r"must have the same shapes, got f64\[3\] and f64\[2\]"),
    (lambda: cg(np.eye(2), np.ones(2), (np.ones(2),)), "must be of one tree structure"),
    (lambda: gmres(np.eye(2), np.ones(2), solve_method="fast"), "'batched' or 'incremental', got 'fast'"),
])
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()
