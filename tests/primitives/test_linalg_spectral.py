"""eigh and svd against NumPy, under the transforms, at equal values, with nan and empty matrices; their text against JAX's."""

import functools

import jax
import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.lax import linalg
from funcml.lowering.rules_linalg_spectral import svd_by_polar
from funcml.primitives import linalg_spectral as spectral
from funcml.primitives import spectra
from tests import matrices
from tests.lowering.custom_call_text import jax_calls, our_calls
from tests.matrices import DTYPES, adjoint, matrix
from tests.products import check_products

close = functools.partial(matrices.close, factor=200)


# ---- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(dtype, rng):
    x = matrix(rng, (2, 4, 4), dtype)
    for lower in (True, False):
        v, w = map(np.asarray, linalg.eigh(x, lower=lower, symmetrize_input=False))
        strict = np.tril(x, -1) if lower else np.triu(x, 1)
        diagonal = np.real(np.diagonal(x, axis1=-2, axis2=-1))[..., None] * np.eye(4)
        hermitian = strict + adjoint(strict) + diagonal
        assert v.dtype == dtype and w.dtype == np.finfo(dtype).dtype
        close(hermitian @ v, v * w[..., None, :], dtype)
        close(w, np.linalg.eigvalsh(hermitian), dtype)
        close(spectral.eigvalsh(x, lower=lower), w, dtype)
    v, w = map(np.asarray, linalg.eigh(x))
    close(w, np.linalg.eigvalsh((x + adjoint(x)) / 2), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 5), (1, 4), (4, 1)], ids=str)
def test_svd(shape, dtype, rng):
    x = matrix(rng, shape, dtype)
    k = min(shape[-2:])
    want = np.linalg.svd(x, compute_uv=False)
    close(linalg.svd(x, compute_uv=False), want, dtype)
    for full in (True, False):
        u, s, vh = map(np.asarray, linalg.svd(x, full_matrices=full))
        assert u.shape == (*shape[:-1], shape[-2] if full else k)
        assert vh.shape == (*shape[:-2], shape[-1] if full else k, shape[-1])
        close(s, want, dtype)
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, dtype)
        close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], *u.shape[-1:] * 2)), dtype)
        close(vh @ adjoint(vh), np.broadcast_to(np.eye(vh.shape[-2]), (*shape[:-2], *vh.shape[-2:-1] * 2)), dtype)


def test_svd_by_another_algorithm(rng):
    x = rng.normal(size=(4, 3))
    for name in ("QR", "DEFAULT", "DIVIDE_AND_CONQUER"):
        s = linalg.svd(x, compute_uv=False, algorithm=linalg.SvdAlgorithm[name])
        close(s, np.linalg.svd(x, compute_uv=False), np.float64)
    with pytest.raises(NotImplementedError, match="JACOBI is offered on CUDA, not on cpu"):
        linalg.svd(x, algorithm=linalg.SvdAlgorithm.JACOBI)
    with pytest.raises(NotImplementedError, match="QDWH is offered on TPU, not on cpu"):
        linalg.eigh(np.eye(3), implementation=linalg.EighImplementation.QDWH)


def test_subsets_are_slices(rng):
    x = rng.normal(size=(2, 4, 4))
    v, w = linalg.eigh(x)
    v2, w2 = linalg.eigh(x, subset_by_index=(1, 3))
    np.testing.assert_array_equal(v2, np.asarray(v)[..., 1:3])
    np.testing.assert_array_equal(w2, np.asarray(w)[..., 1:3])
    u, s, vh = linalg.svd(x, full_matrices=False)
    u2, s2, vh2 = linalg.svd(x, full_matrices=False, subset_by_index=(0, 2))
    for part, whole in ((u2, np.asarray(u)[..., :2]), (s2, np.asarray(s)[..., :2]), (vh2, np.asarray(vh)[..., :2, :])):
        np.testing.assert_array_equal(part, whole)
    for bad in ((-1, 2), (2, 2), (0, 5), (1,)):
        with pytest.raises(ValueError, match="subset_by_index"):
            linalg.eigh(x, subset_by_index=bad)
        with pytest.raises(ValueError, match="subset_by_index"):
            linalg.svd(x, full_matrices=False, subset_by_index=bad)
    with pytest.raises(ValueError, match="full_matrices must be False"):
        linalg.svd(x, subset_by_index=(0, 2))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 3, 2)], ids=str)
def test_empty_matrices(shape):
    x = np.zeros(shape, np.float32)
    for full in (True, False):
        want = np.linalg.svd(x, full_matrices=full)
        for part, theirs in zip(linalg.svd(x, full_matrices=full), want, strict=True):
            assert part.shape == theirs.shape and part.dtype == theirs.dtype
            np.testing.assert_array_equal(part, theirs)
    assert linalg.svd(x, compute_uv=False).shape == np.linalg.svd(x, compute_uv=False).shape
    assert fm.grad(lambda x: linalg.svd(x, full_matrices=False)[1].sum())(x).shape == shape
    if shape[-1] == shape[-2]:
        assert [y.shape for y in linalg.eigh(x)] == [y.shape for y in np.linalg.eigh(x)[::-1]]


def test_nan_gives_nan_for_its_matrix_alone(rng):
    x = rng.normal(size=(2, 3, 3))
    x[1, 0, 0] = np.nan
    for outs in (linalg.eigh(x), linalg.svd(x), [linalg.svd(x, compute_uv=False)]):
        for y in map(np.asarray, outs):
            assert np.all(np.isnan(y[1])) and not np.any(np.isnan(y[0]))


def test_bad_input():
    with pytest.raises(ValueError, match=r"eigh expects square matrices .* got f32\[3,4\]"):
        linalg.eigh(jnp.ones((3, 4)))
    with pytest.raises(TypeError, match=r"eigh expects f32, f64, c64 or c128, got i32\[3,3\]"):
        spectral.eigh(jnp.ones((3, 3), int))
    with pytest.raises(TypeError, match=r"svd expects matrices .* got f32\[3\]"):
        linalg.svd(jnp.ones(3))
    with pytest.raises(TypeError, match=r"svd expects f32, f64, c64 or c128, got f16\[3,3\]"):
        linalg.svd(jnp.ones((3, 3), jnp.float16))


# ---- derivatives -------------------------------------------------------------------------------------------------


def test_eigh_under_the_transforms(rng):
    check_products(lambda x: linalg.eigh(x, symmetrize_input=False), rng.normal(size=(3, 3)))


def rebuilt(x):
    """V sin(w) V^H, in which the phases of the vectors cancel."""
    v, w = linalg.eigh(x, lower=False, symmetrize_input=False)
    return (v * jnp.sin(w).astype(v.dtype)) @ jnp.conj(v).T, w


def test_complex_eigh_under_the_transforms(rng):
    check_products(rebuilt, matrix(rng, (3, 3), np.complex128))


def test_values_alone_under_the_transforms(rng):
    check_products(spectral.eigvalsh, rng.normal(size=(3, 3)))
    check_products(spectral.svdvals, matrix(rng, (2, 3), np.complex128))


@pytest.mark.parametrize("shape, dtype, full", [
    ((3, 4), np.complex128, True),
    ((4, 3), np.float64, False),
    pytest.param((4, 3), np.float64, True, marks=pytest.mark.exhaustive),
    pytest.param((4, 3), np.complex128, False, marks=pytest.mark.exhaustive),
    pytest.param((3, 4), np.float64, False, marks=pytest.mark.exhaustive),
    pytest.param((3, 3), np.complex128, True, marks=pytest.mark.exhaustive),
], ids=str)
def test_svd_under_the_transforms(shape, dtype, full, rng):
    def invariants(x):
        """Functions of the decomposition in which phases, and the choice of the rest of a basis, cancel."""
        u, s, vh = linalg.svd(x, full_matrices=full)
        k = s.shape[0]
        rest = [u[:, k:] @ jnp.conj(u[:, k:]).T, jnp.conj(vh[k:]).T @ vh[k:]]
        return (u[:, :k] * jnp.sin(s).astype(u.dtype)) @ vh[:k], s, jnp.abs(u[:, :k]), rest

    check_products(invariants, matrix(rng, shape, dtype), products=("jvp", "vjp", "order2"))


def test_svd_under_vmap(rng):
    check_products(lambda x: linalg.svd(x, full_matrices=False), rng.normal(size=(4, 3)), products=("jit", "vmap", "checkpoint"))


# ---- equal values ------------------------------------------------------------------------------------------------

# V g(w) V^T is a function of A whatever V is chosen: <C, A> has the derivative C, and the sum of w^2 the derivative 2 A.
_ROTATION = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
EQUAL = {
    "identity": np.eye(4),
    "a pair": np.diag([1.0, 1.0, 2.0, 3.0]),
    "a pair, turned": _ROTATION @ np.diag([1.0, 1.0, 2.0, 3.0]) @ _ROTATION.T,
    "zero": np.zeros((4, 4)),
    "a pair of zeros": np.diag([0.0, 0.0, 1.0, 2.0]),
    "a pair of zeros, turned": _ROTATION @ np.diag([0.0, 0.0, 1.0, 2.0]) @ _ROTATION.T,
}


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-6), (np.float32, 1e-2)])
@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_first_derivatives_at_equal_values(x, dtype, tolerance, rng):
    c = rng.normal(size=(4, 4))
    c, x = (c + c.T).astype(dtype), x.astype(dtype)

    def from_eigh(x):
        v, w = linalg.eigh(x)
        return jnp.sum(c * ((v * w) @ v.T)), jnp.sum(w), jnp.sum(w**2)

    def from_svd(x):
        u, s, vh = linalg.svd(x, full_matrices=False)
        return jnp.sum(c * ((u * s) @ vh)), jnp.sum(s**2)

    linear, first, second = fm.jacrev(from_eigh)(x)
    linear_too, second_too = fm.jacrev(from_svd)(x)
    for found, want in ((linear, c), (first, np.eye(4)), (second, 2 * x), (linear_too, c), (second_too, 2 * x)):
        np.testing.assert_allclose(found, want, atol=tolerance)


@pytest.mark.parametrize("name", ["identity", "a pair", "a pair, turned"])
def test_second_derivatives_at_equal_values(name, rng):
    c = rng.normal(size=(4, 4))
    c = c + c.T
    x = EQUAL[name]

    def square(x):
        v, w = linalg.eigh(x)
        return jnp.sum(c * ((v * w**2) @ v.T))

    along = lambda f: fm.jvp(fm.grad(f), (x,), (c,))[1]  # noqa: E731
    for values in (lambda x: linalg.eigh(x)[1], jnp.linalg.eigvalsh, spectral.svdvals):
        np.testing.assert_allclose(along(lambda x, f=values: jnp.sum(f(x) ** 2)), 2 * c, atol=1e-6)
    np.testing.assert_allclose(along(square), 2 * c @ c, atol=1e-3)


def test_tall_matrix_with_zero_singular_values(rng):
    c = rng.normal(size=(4, 2))
    for x in (np.zeros((4, 2)), np.eye(4, 2) * [1.0, 0.0]):

        def linear(x):
            u, s, vh = linalg.svd(x, full_matrices=False)
            return jnp.sum(c * ((u * s) @ vh))

        np.testing.assert_allclose(fm.grad(linear)(x), c, atol=1e-6)


def test_a_spectrum_without_groups_is_left_alone():
    apart = fm.jit(spectra.apart, static_argnums=(1, 2))
    for w in ([-2.0, 0.0, 1e-3, 1.0], [1.0, 1.0 + 1e-12, 3.0]):
        np.testing.assert_array_equal(apart(jnp.array(w, jnp.float64), 1), w)
    pair = np.asarray(apart(jnp.array([1.0, 1.0, 3.0], jnp.float64), 1))
    assert pair[0] < 1 < pair[1] and pair[2] == 3 and pair.sum() == 5
    zeros = np.asarray(apart(jnp.array([1.0, 0.0, 0.0], jnp.float64), 1, True))
    assert 1e-15 > zeros[1] > zeros[2] > 0


# ---- text --------------------------------------------------------------------------------------------------------

EIGH = {
    "batch": ((2, 4, 4), np.float32, {}),
    "upper, complex": ((4, 4), np.complex128, {"lower": False}),
    "QR": ((4, 4), np.float64, {"implementation": "QR"}),
}
SVD = {
    "reduced": ((2, 5, 4), np.float32, {"full_matrices": False}),
    "reduced, large": ((40, 50), np.complex64, {"full_matrices": False}),
    "full": ((4, 5), np.complex64, {"full_matrices": True}),
    "values": ((5, 4), np.float64, {"compute_uv": False}),
    "QR, tall": ((5, 4), np.float32, {"algorithm": "QR"}),
    "QR, wide": ((2, 4, 5), np.float32, {"algorithm": "QR", "full_matrices": False}),
    "polar": ((5, 4), np.float32, {"algorithm": "POLAR"}),
    "beyond 1024": ((2, 1030), np.float32, {"full_matrices": False}),
}


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", EIGH)
def test_text_of_eigh(name, platform):
    shape, dtype, options = EIGH[name]
    calls = []
    for package, read in ((linalg, our_calls), (jax.lax.linalg, jax_calls)):
        given = {k: package.EighImplementation[v] if k == "implementation" else v for k, v in options.items()}
        with jax.enable_x64(True):
            calls.append(read(lambda x, p=package, g=given: p.eigh(x, **g), (shape, np.dtype(dtype)), platform=platform))
    assert calls[0] == calls[1] and calls[0]


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", SVD)
def test_text_of_svd(name, platform):
    shape, dtype, options = SVD[name]
    if options.get("algorithm") == "POLAR" and platform == "cpu":
        return
    calls = []
    for package, read in ((linalg, our_calls), (jax.lax.linalg, jax_calls)):
        given = {k: package.SvdAlgorithm[v] if k == "algorithm" else v for k, v in options.items()}

        def outs(x, p=package, g=given):
            found = p.svd(x, **g)
            return found if g.get("compute_uv", True) else [found]

        with jax.enable_x64(True):
            calls.append(read(outs, (shape, np.dtype(dtype)), platform=platform))
    ours, theirs = calls
    assert len(ours) == len(theirs) == 1
    if options.get("compute_uv", True) is False:  # ours keeps no room for full matrices
        ours[0].pop("types"), theirs[0].pop("types")
    assert ours == theirs


def test_text_of_eigh_for_tpu():
    (ours,) = our_calls(linalg.eigh, ((16, 16), np.dtype("float32")), platform="tpu")
    (theirs,) = jax_calls(jax.lax.linalg.eigh, ((16, 16), np.dtype("float32")), platform="tpu")
    assert ours == theirs
    names = {call["target"] for call in our_calls(linalg.svd, ((16, 8), np.dtype("float32")), platform="tpu")}
    assert "Eigh" in names and not any("lapack" in name or "cu" in name for name in names)
    with pytest.raises(NotImplementedError, match="svd is offered on CPU, CUDA and TPU, not on metal"):
        our_calls(linalg.svd, ((16, 16), np.dtype("float32")), platform="metal")


@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)], ids=str)
def test_svd_by_polar_factors(shape, rng):
    for x in (matrix(rng, shape, np.complex128), np.ones(shape), np.zeros(shape)):
        for full in (True, False):
            u, s, vh = map(np.asarray, fm.jit(svd_by_polar, static_argnums=1)(x, full))
            close(s, np.linalg.svd(x, compute_uv=False), np.float64)
            k = s.shape[-1]
            close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, np.float64)
            for basis in (adjoint(u) @ u, vh @ adjoint(vh)):
                close(basis, np.broadcast_to(np.eye(basis.shape[-1]), basis.shape), np.float64)
