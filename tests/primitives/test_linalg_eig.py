"""eig, schur, hessenberg, tridiagonal and sylvester against NumPy and SciPy, under the transforms; their text against JAX's."""

import functools

import jax
import numpy as np
import pytest
import scipy.linalg

import funcml as fm
import funcml.numpy as jnp
from funcml.lax import linalg
from funcml.primitives.linalg_sylvester import sylvester
from tests import matrices
from tests.lowering.custom_call_text import jax_calls, our_calls
from tests.matrices import DTYPES, adjoint, matrix
from tests.products import check_products

close = functools.partial(matrices.close, factor=500)


# ---- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype, rng):
    x = matrix(rng, (2, 4, 4), dtype)
    w, left, right = map(np.asarray, linalg.eig(x))
    assert {y.dtype for y in (w, left, right)} == {np.dtype(np.result_type(dtype, np.complex64))}
    close(x @ right, right * w[..., None, :], dtype)
    close(adjoint(left) @ x, w[..., None] * adjoint(left), dtype)
    for v in (left, right):
        close(np.linalg.norm(v, axis=-2), np.ones((2, 4)), dtype)
        largest = np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)
        close(largest.imag, np.zeros_like(largest.imag), dtype)
    (alone,) = linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    close(np.sort_complex(alone[0]), np.sort_complex(np.linalg.eigvals(x[0])), dtype)
    assert len(linalg.eig(x, compute_left_eigenvectors=False)) == 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_condensed_forms(dtype, rng):
    x = matrix(rng, (2, 4, 4), dtype)
    t, q = map(np.asarray, linalg.schur(x))
    close(q @ t @ adjoint(q), x, dtype)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(4), x.shape), dtype)
    assert not np.any(np.tril(t, -2 if np.isrealobj(x) else -1))
    (alone,) = linalg.schur(x, compute_schur_vectors=False)
    close(alone, t, dtype)
    h, taus = map(np.asarray, linalg.hessenberg(x))
    assert taus.shape == (2, 3) and h.dtype == taus.dtype == dtype
    close(np.triu(h[1], -1), scipy.linalg.hessenberg(x[1]), dtype)
    hermitian = x + adjoint(x)
    for lower in (True, False):
        given = np.tril(hermitian) if lower else np.triu(hermitian)
        _, d, e, taus = map(np.asarray, linalg.tridiagonal(given, lower=lower))
        assert d.dtype == e.dtype == np.finfo(dtype).dtype and taus.dtype == dtype
        for i in range(2):
            close(scipy.linalg.eigvalsh_tridiagonal(d[i], e[i]), np.linalg.eigvalsh(hermitian[i]), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sylvester(dtype, rng):
    a, b, c = matrix(rng, (2, 4, 4), dtype), matrix(rng, (2, 3, 3), dtype), matrix(rng, (2, 4, 3), dtype)
    x = np.asarray(sylvester(a, b, c))
    assert x.dtype == dtype
    close(a @ x + x @ b, c, dtype)
    singular = np.asarray(sylvester(np.eye(2), -np.eye(2), np.ones((2, 2)), tol=1e-6))
    assert np.all(np.isnan(singular))


def test_nan_and_empty_matrices(rng):
    x = rng.normal(size=(2, 3, 3))
    x[1, 0, 0] = np.nan
    for y in map(np.asarray, linalg.eig(x)):
        assert np.all(np.isnan(y[1])) and not np.any(np.isnan(y[0]))
    for shape in [(0, 0), (2, 0, 0), (0, 3, 3)]:
        x = np.zeros(shape, np.float32)
        assert [y.shape for y in linalg.eig(x)] == [shape[:-1], shape, shape]
        assert [y.shape for y in linalg.schur(x)] == [shape, shape]
        assert linalg.hessenberg(x)[0].shape == shape
    a, taus = linalg.hessenberg(np.float32([[3]]))
    assert taus.shape == (0,) and float(a[0, 0]) == 3


def test_bad_input():
    with pytest.raises(ValueError, match=r"eig expects square matrices .* got f32\[3,4\]"):
        linalg.eig(jnp.ones((3, 4)))
    with pytest.raises(TypeError, match=r"schur expects f32, f64, c64 or c128, got i32\[3,3\]"):
        linalg.schur(jnp.ones((3, 3), int))
    with pytest.raises(ValueError, match=r"tridiagonal expects matrices with at least one row, got f32\[0,0\]"):
        linalg.tridiagonal(jnp.ones((0, 0)))
    with pytest.raises(NotImplementedError, match="does not sort"):
        linalg.schur(jnp.eye(2), sort_eig_vals=True)
    with pytest.raises(ValueError, match="eig on CPU is LAPACK's"):
        linalg.eig(jnp.eye(2), implementation=linalg.EigImplementation.CUSOLVER)
    with pytest.raises(ValueError, match=r"sylvester expects a .*, got f32\[2,2\], f32\[3,3\] and f32\[3,2\]"):
        sylvester(jnp.eye(2), jnp.eye(3), jnp.ones((3, 2)))
    for f in (linalg.schur, linalg.hessenberg, linalg.tridiagonal):
        with pytest.raises(NotImplementedError, match="has no derivative: its form is not determined"):
            fm.grad(lambda x, f=f: f(x)[0].sum())(jnp.eye(3))


# ---- derivatives -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_eig_under_the_transforms(dtype, rng):
    check_products(linalg.eig, matrix(rng, (3, 3), dtype), products=("jvp", "vjp", "order2"))


def test_eigenvalues_under_the_transforms(rng):
    check_products(
        lambda x: linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False),
        matrix(rng, (3, 3), np.complex128),
        order=1,
    )


def test_equal_eigenvalues_have_finite_derivatives():
    for f in (lambda x: jnp.sum(linalg.eig(x)[0]).real, lambda x: jnp.sum(jnp.abs(linalg.eig(x)[2]) ** 2)):
        found = fm.grad(f)(jnp.eye(3))
        assert np.all(np.isfinite(found))
    np.testing.assert_allclose(fm.grad(lambda x: jnp.sum(linalg.eig(x)[0]).real)(jnp.eye(3)), np.eye(3), atol=1e-6)


def test_sylvester_under_the_transforms(rng):
    a, b, c = rng.normal(size=(3, 3)), rng.normal(size=(2, 2)) + 3 * np.eye(2), rng.normal(size=(3, 2))
    check_products(sylvester, a, b, c, products=("jit", "jvp", "vjp", "order2"))
    stacks = [np.stack([x, 1.1 * x]) for x in (a, b, c)]
    np.testing.assert_allclose(fm.vmap(sylvester)(*stacks), sylvester(*stacks), atol=1e-12)


# ---- text --------------------------------------------------------------------------------------------------------


def same_text(f, g, shape, dtype, platform):
    with jax.enable_x64(True):
        ours, theirs = (
            read(h, (shape, np.dtype(dtype)), platform=platform) for read, h in ((our_calls, f), (jax_calls, g))
        )
    assert ours == theirs and ours


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_text_of_eig(platform, dtype):
    same_text(linalg.eig, jax.lax.linalg.eig, (2, 4, 4), dtype, platform)
    given = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}
    if platform == "cpu":
        same_text(lambda x: linalg.eig(x, **given), lambda x: jax.lax.linalg.eig(x, **given), (4, 4), dtype, platform)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_text_of_condensed_forms(dtype):
    for name in ("schur", "hessenberg", "tridiagonal"):
        same_text(getattr(linalg, name), getattr(jax.lax.linalg, name), (2, 4, 4), dtype, "cpu")
    same_text(linalg.tridiagonal, jax.lax.linalg.tridiagonal, (4, 4), dtype, "cuda")
    with pytest.raises(NotImplementedError, match="schur is offered on CPU, not on cuda"):
        our_calls(linalg.schur, ((4, 4), np.dtype(dtype)), platform="cuda")
