"""`custom_linear_solve` and `custom_root`: derivatives of solutions against NumPy's solutions and closed forms."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from tests.products import check_products

A = np.array([[4.0, 1.0], [0.5, 3.0]])
B = np.array([1.0, -2.0])


def jacobi(mv, b):
    """Enough steps of x <- x + (b - A x) / 4 for these matrices."""
    return lax.fori_loop(0, 60, lambda i, x: x + (b - mv(x)) / 4, jnp.zeros_like(b))


def solution(a, b, **kwargs):
    return lax.custom_linear_solve(lambda x: a @ x, b, jacobi, **kwargs)


def test_linear_solve_products():
    np.testing.assert_allclose(solution(A, B), np.linalg.solve(A, B), rtol=1e-9)
    check_products(lambda a, b: solution(a, b, transpose_solve=jacobi), A, B)


def test_linear_solve_forward_mode_needs_no_transpose_solve():
    t = fm.jvp(solution, (A, B), (np.eye(2), np.zeros(2)))[1]
    np.testing.assert_allclose(t, -np.linalg.solve(A, np.linalg.solve(A, B)), rtol=1e-8)
    with pytest.raises(NotImplementedError, match="transpose_solve"):
        fm.grad(lambda b: solution(A, b).sum())(B)


def test_linear_solve_of_symmetric_trees_with_aux():
    def solve(mv, b):
        return {"x": b["x"] / mv({"x": jnp.ones_like(b["x"])})["x"]}, {"steps": jnp.int32(3)}

    def f(a, b):
        return lax.custom_linear_solve(lambda v: {"x": a * v["x"]}, {"x": b}, solve, symmetric=True, has_aux=True)

    x, aux = f(2.0, B)
    assert x["x"].tolist() == [0.5, -1.0] and int(aux["steps"]) == 3
    check_products(lambda a, b: f(a, b)[0], np.float64(2.0), B)


def test_linear_solve_batches():
    a = np.stack([A, A.T, A + np.eye(2)])
    got = fm.vmap(lambda a: solution(a, B, transpose_solve=jacobi))(a)
    np.testing.assert_allclose(got, np.stack([np.linalg.solve(x, B) for x in a]), rtol=1e-9)


def test_linear_solve_errors():
    with pytest.raises(TypeError, match="matvec must give a tree like b"):
        lax.custom_linear_solve(lambda x: [x], B, jacobi)
    with pytest.raises(TypeError, match="solve must give a tree like b"):
        lax.custom_linear_solve(lambda x: x, B, lambda mv, b: b[:1])
    with pytest.raises(TypeError, match="pair"):
        lax.custom_linear_solve(lambda x: x, B, lambda mv, b: b, has_aux=True)


def newton(f, x):
    return lax.while_loop(lambda x: jnp.abs(f(x)) > 1e-13, lambda x: x - f(x) / fm.grad(f)(x), x)


def cube_root(a):
    return lax.custom_root(lambda x: x**3 - a, np.float64(1.5), newton, lambda g, y: y / g(jnp.ones_like(y)))


def test_root_derivatives_follow_from_the_equation():
    a = np.float64(5.0)
    np.testing.assert_allclose(cube_root(a), np.cbrt(5.0), rtol=1e-12)
    np.testing.assert_allclose(fm.grad(cube_root)(a), 5 ** (-2 / 3) / 3, rtol=1e-9)
    np.testing.assert_allclose(fm.grad(fm.grad(cube_root))(a), -2 * 5 ** (-5 / 3) / 9, rtol=1e-8)
    np.testing.assert_allclose(fm.hessian(cube_root)(a), -2 * 5 ** (-5 / 3) / 9, rtol=1e-8)
    got = fm.vmap(fm.jit(fm.grad(cube_root)))(np.array([2.0, 5.0]))
    np.testing.assert_allclose(got, np.array([2.0, 5.0]) ** (-2 / 3) / 3, rtol=1e-9)


def test_root_with_aux_and_trees():
    def f(a):
        solve = lambda f, x: ({"x": newton(lambda v: f({"x": v})["x"], x["x"])}, jnp.int32(7))
        linear = lambda g, y: {"x": y["x"] / g({"x": jnp.ones_like(y["x"])})["x"]}
        return lax.custom_root(lambda v: {"x": v["x"] ** 2 - a}, {"x": np.float64(1.0)}, solve, linear, has_aux=True)

    x, aux = f(np.float64(9.0))
    assert float(x["x"]) == pytest.approx(3.0) and int(aux) == 7
    assert float(fm.grad(lambda a: f(a)[0]["x"])(np.float64(9.0))) == pytest.approx(1 / 6)


def test_root_errors():
    with pytest.raises(TypeError, match="f must give a tree like initial_guess"):
        lax.custom_root(lambda x: (x, x), 1.0, newton, lambda g, y: y)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 9, 31])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_a_running_combination(n, reverse):
    x = np.random.default_rng(n).normal(size=(2, n, 2, 2)) / 2
    got = lax.associative_scan(lambda a, b: (b[0] @ a[0], a[1] + b[1]), (x, x), reverse=reverse, axis=1)
    want, order = np.empty_like(x), range(n)[::-1] if reverse else range(n)
    acc = np.broadcast_to(np.eye(2), (2, 2, 2))
    for i in order:
        want[:, i] = acc = x[:, i] @ acc
    np.testing.assert_allclose(got[0], want, rtol=1e-12, atol=1e-15)
    sums = np.cumsum(x[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(x, 1)
    np.testing.assert_allclose(got[1], sums, rtol=1e-12, atol=1e-15)


def test_associative_scan_products():
    check_products(lambda x: lax.associative_scan(lambda a, b: a * b, x), np.linspace(0.5, 1.5, 5))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lax.associative_scan(jnp.add, (jnp.ones(2), jnp.ones(3))), "one length"),
        (lambda: lax.associative_scan(jnp.add, jnp.ones(2), axis=1), "no axis 1"),
        (lambda: lax.associative_scan(lambda a, b: (a, b), jnp.ones(2)), "tree like its arguments"),
        (lambda: lax.associative_scan(3, jnp.ones(2)), "expects a callable"),
    ],
)
def test_associative_scan_errors(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
