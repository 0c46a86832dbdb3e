"""numpy.linalg against NumPy; derivatives, at singular matrices too."""

import itertools

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from tests.products import check_products

ours, theirs = jnp.linalg, np.linalg
KINDS = pytest.mark.parametrize("kind", [float, complex])


def draw(kind, *shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind is complex else x


def same(found, want, tolerance=1e-9):
    found, want = np.asarray(found), np.asarray(want)
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
    assert found.dtype == want.dtype or want.dtype.kind == "i"


# ---- values ------------------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("n", range(7))
def test_determinants(kind, n):
    a = draw(kind, 2, n, n)
    same(ours.det(a), theirs.det(a))
    want = theirs.slogdet(a)
    for method in (None, "qr"):
        found = ours.slogdet(a, method=method)
        same(found.sign, want.sign)
        same(found.logabsdet, want.logabsdet)


def test_determinants_of_singular_and_no_matrices():
    for n in (2, 3, 4, 5):
        a = np.ones((n, n), np.float32)
        assert ours.det(a) == 0
        assert ours.slogdet(a) == (0, -np.inf)
    assert ours.det(np.zeros((0, 4, 4))).shape == (0,)
    assert ours.det(np.zeros((0, 0))) == 1
    assert ours.slogdet(np.zeros((0, 0))) == (1, 0)


@KINDS
@pytest.mark.parametrize("a, b", [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((3, 3), (4, 3, 2)), ((4, 3, 3), (3, 2)), ((4, 1, 3, 3), (5, 3, 2)),
    ((1, 3, 3), (2, 5, 3, 1)), ((0, 3, 3), (3, 2)), ((0, 0), (0, 2)), ((3, 3), (3, 0)),
])  # fmt: skip
def test_solve(kind, a, b):
    a, b = draw(kind, *a), draw(kind, *b, seed=1)
    same(ours.solve(a, b), theirs.solve(a, b))
    same(ours.inv(a), theirs.inv(a))


def test_singular_systems_give_inf_or_nan():
    assert not np.isfinite(ours.solve(np.zeros((2, 2)), np.ones(2))).any()
    assert not np.isfinite(ours.inv(np.ones((3, 3)))).any()


SHAPES = [(4, 3), (3, 4), (2, 3, 4), (3, 3), (0, 3), (3, 0), (0, 0)]


@KINDS
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values(kind, shape):
    a = draw(kind, *shape)
    same(ours.pinv(a), theirs.pinv(a))
    same(ours.matrix_rank(a), theirs.matrix_rank(a))
    same(ours.svdvals(a), theirs.svd(a, compute_uv=False))
    u, s, vh = ours.svd(a, full_matrices=False)
    same(np.asarray(u * s[..., None, :]) @ vh, a)
    if a.size:
        for p in (None, 2, -2):
            same(ours.cond(a, p), theirs.cond(a, p))
        for order in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
            same(ours.matrix_norm(a, ord=order), theirs.norm(a, order, axis=(-2, -1)))
            same(ours.norm(a, order, (-1, -2), True), theirs.norm(a, order, (-1, -2), True))


@KINDS
@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) == 2])
def test_least_squares(kind, shape):
    a = draw(kind, *shape)
    for columns in ((), (2,)):
        b = draw(kind, shape[0], *columns, seed=1)
        want = theirs.lstsq(a, b, rcond=None)
        for i, (x, y) in enumerate(zip(ours.lstsq(a, b, numpy_resid=True), want, strict=True)):
            same(x, y if i != 1 else y.astype(float))
        same(ours.lstsq(a, b)[1], np.atleast_1d(np.sum(np.abs(b - a @ want[0]) ** 2, axis=0)))


def test_cutoffs():
    a = np.diag([1.0, 1e-3, 1e-6])
    same(ours.pinv(a, rtol=1e-4), np.diag([1, 1e3, 0]))
    same(ours.pinv(np.stack([a, a]), rtol=np.array([1e-4, 1e-2])), [np.diag([1, 1e3, 0]), np.diag([1, 0, 0])])
    assert ours.matrix_rank(a) == 3 and ours.matrix_rank(a, tol=1e-4) == 2
    assert ours.matrix_rank(np.stack([a, a]), np.array([1e-4, 1e-2])).tolist() == [2, 1]
    assert ours.matrix_rank(np.zeros(3)) == 0 and ours.matrix_rank(2.0) == 1
    x, _, rank, _ = ours.lstsq(a, np.ones(3), rcond=1e-4)
    same(x, [1, 1e3, 0])
    assert rank == 2


@KINDS
def test_hermitian_matrices(kind):
    a = draw(kind, 2, 4, 4)
    h = a + a.conj().mT
    same(ours.pinv(h, hermitian=True), theirs.pinv(h))
    same(ours.pinv(h[0] @ np.diag([1, 0, 0, 0]) @ h[0], hermitian=True), theirs.pinv(h[0] @ np.diag([1, 0, 0, 0]) @ h[0]))
    assert ours.matrix_rank(h, hermitian=True).tolist() == [4, 4]
    u, s, vh = map(np.asarray, ours.svd(h, hermitian=True))
    same((u * s[:, None, :]) @ vh, h)
    same(s, theirs.svd(h, compute_uv=False))
    same(ours.svd(h, compute_uv=False, hermitian=True), s)
    same(ours.svd(h, compute_uv=False, hermitian=True, subset_by_index=(1, 3)), s[:, 1:3])
    w, v = map(np.asarray, ours.eigh(h))
    same(w, theirs.eigvalsh(h))
    same(h @ v, v * w[:, None, :])
    same(ours.eigvalsh(np.tril(h), symmetrize_input=False), w)
    same(ours.eigh(np.triu(h), "U", symmetrize_input=False).eigenvalues, w)
    p = a @ a.conj().mT + np.eye(4)
    same(ours.cholesky(p), theirs.cholesky(p))
    same(ours.cholesky(p, upper=True), theirs.cholesky(p).conj().mT)
    same(ours.cholesky(np.tril(p), symmetrize_input=False), theirs.cholesky(p))


@KINDS
def test_eigenvalues(kind):
    a = draw(kind, 2, 4, 4)
    w, v = map(np.asarray, ours.eig(a))
    same(a @ v, v * w[:, None, :])
    same(np.linalg.norm(v, axis=1), np.ones((2, 4)))
    same(np.sort(w), np.sort(theirs.eigvals(a).astype(complex)))
    same(ours.eigvals(a), w)
    assert ours.eigvals(np.eye(2, dtype=np.float16)).dtype == np.complex64


@KINDS
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(kind, shape):
    a = draw(kind, *shape)
    for mode in ("reduced", "complete", "raw"):
        for found, want in zip(ours.qr(a, mode), theirs.qr(a, mode), strict=True):
            same(found, want)
    same(ours.qr(a, "r"), theirs.qr(a, "r"))


@KINDS
def test_cond_and_powers(kind):
    a = draw(kind, 3, 3)
    for p in (1, -1, np.inf, -np.inf, "fro", "nuc"):
        same(ours.cond(a, p), theirs.cond(a, p))
    same(ours.cond(np.ones((2, 2)), 1), np.inf)
    for n in (-3, -1, 0, 1, 5):
        same(ours.matrix_power(a, n), theirs.matrix_power(a, n))
    same(ours.matrix_power(np.array([[2, 1], [0, 1]]), -1), [[0.5, -0.5], [0, 1]])


@KINDS
def test_tensors(kind):
    a = draw(kind, 4, 6, 8, 3)
    same(ours.tensorinv(a), theirs.tensorinv(a))
    same(ours.tensorinv(a.reshape(24, 8, 3), ind=1), theirs.tensorinv(a.reshape(24, 8, 3), ind=1))
    a = draw(kind, 2, 3, 6)
    same(ours.tensorsolve(a, a[..., 0]), theirs.tensorsolve(a, a[..., 0]))
    a = draw(kind, 2, 6, 3)
    same(ours.tensorsolve(a, a[0, :, 0], axes=(0, 2)), theirs.tensorsolve(a, a[0, :, 0], axes=(0, 2)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "bool"])
def test_narrow_floats_are_widened_inside_and_integers_become_floats(dtype):
    a = np.diag([1, 2, 3, 4]).astype(jnp.dtype(dtype)) if dtype != "bfloat16" else jnp.diag(jnp.arange(1, 5)).astype(dtype)
    want = dtype if "float" in dtype else "float32"
    results = [
        ours.det(a), *ours.slogdet(a), ours.inv(a), ours.solve(a, a), ours.pinv(a), ours.cond(a), ours.norm(a, 2), *ours.qr(a),
        ours.svdvals(a), ours.cholesky(a), *ours.eigh(a), ours.lstsq(a, a)[0],
    ]  # fmt: skip
    assert {str(x.dtype) for x in results} == {want}
    assert results[0] == (1 if dtype == "bool" else 24)


# ---- derivatives -------------------------------------------------------------------------------------------------


def slopes_of_det(a, order):
    """The derivatives of a determinant, which is linear in each row: unit vectors in place of rows."""
    n, unit = a.shape[-1], np.eye(a.shape[-1])
    out = np.zeros((n, n) * order)
    for rows in itertools.permutations(range(n), order):
        for columns in itertools.product(range(n), repeat=order):
            changed = a.copy()
            changed[list(rows)] = unit[list(columns)]
            out[tuple(k for pair in zip(rows, columns, strict=True) for k in pair)] = np.linalg.det(changed)
    return out


def test_derivatives_of_the_determinant_at_every_rank():
    t = draw(float, 5, 5, seed=2)

    def along(f):
        return lambda a: fm.jvp(f, (a,), (t,))[1]

    found = fm.jit(lambda a: [fm.grad(ours.det)(a), fm.hessian(ours.det)(a), along(along(along(ours.det)))(a)])
    reverse = fm.jit(lambda a: fm.grad(lambda a: jnp.vdot(fm.grad(ours.det)(a), t))(a))
    for rank in range(6):
        a = draw(float, 5, rank) @ draw(float, rank, 5, seed=1)
        first, second, third = found(a)
        close = {"rtol": 1e-9, "atol": 1e-9}
        np.testing.assert_allclose(first, slopes_of_det(a, 1), **close)
        np.testing.assert_allclose(second, slopes_of_det(a, 2), **close)
        np.testing.assert_allclose(reverse(a), np.einsum("ijkl,kl", slopes_of_det(a, 2), t), **close)
        if rank > 2:
            np.testing.assert_allclose(third, np.einsum("ijklmn,ij,kl,mn", slopes_of_det(a, 3), t, t, t), **close)


def test_gradients_of_determinants_at_singular_matrices():
    same(fm.grad(ours.det)(np.diag([0.0, 2, 3])), np.diag([6.0, 0, 0]))
    same(fm.grad(ours.det)(np.diag([0.0, 2, 3, 4])), np.diag([24.0, 0, 0, 0]))
    same(fm.grad(ours.det)(np.diag([0.0, 2, 3, 4, 5])), np.diag([120.0, 0, 0, 0, 0]))
    same(fm.grad(ours.det)(np.ones((6, 6))), np.zeros((6, 6)))
    one = np.array([[[2.0]], [[-1.0]], [[0.5]]])
    same(fm.grad(lambda x: ours.det(x).sum())(one), np.ones((3, 1, 1)))


def test_a_singular_matrix_in_a_batch_leaves_the_others_alone():
    a = np.stack([draw(float, 5, 5), np.ones((5, 5)), np.diag([0.0, 1, 2, 3, 4])])
    want = np.stack([slopes_of_det(x, 1) for x in a])
    same(fm.grad(lambda a: ours.det(a).sum())(a), want)
    same(fm.vmap(fm.grad(ours.det))(a), want)
    along = fm.vmap(lambda a: fm.jvp(fm.grad(ours.det), (a,), (np.eye(5),))[1])(a)
    same(along, np.stack([np.einsum("ijkk", slopes_of_det(x, 2)) for x in a]))


FIRST = ("jit", "jvp", "vjp")


@KINDS
def test_products_of_determinants(kind):
    check_products(ours.det, draw(kind, 3, 3), products=FIRST)
    check_products(ours.det, draw(kind, 4, 4), products=FIRST)
    check_products(ours.det, draw(kind, 5, 5), products=FIRST)
    check_products(lambda x: tuple(ours.slogdet(x)), draw(kind, 3, 3), products=(*FIRST, "order2"))


@KINDS
def test_products_of_solve(kind):
    check_products(ours.solve, draw(kind, 3, 3), draw(kind, 3, seed=1), rtol=1e-5, products=("vmap", *FIRST))
    check_products(ours.solve, draw(kind, 3, 3), draw(kind, 2, 3, 2, seed=1), rtol=1e-5, products=FIRST)
    check_products(ours.inv, draw(kind, 3, 3), rtol=1e-5, products=(*FIRST, "order2"))


@KINDS
def test_products_of_what_goes_by_singular_values(kind):
    check_products(ours.pinv, draw(kind, 4, 2), rtol=1e-5, products=(*FIRST, "order2"))
    check_products(ours.pinv, draw(kind, 2, 3), rtol=1e-5, products=FIRST)
    check_products(lambda a, b: ours.lstsq(a, b)[:2], draw(kind, 4, 2), draw(kind, 4, seed=1), rtol=1e-5, products=FIRST)
    for order in ("nuc", 2, -2):
        check_products(lambda x, order=order: ours.norm(x, order), draw(kind, 3, 2), rtol=1e-5, products=FIRST)
    check_products(ours.cond, draw(kind, 3, 2), rtol=1e-5, products=FIRST)


def test_pinv_at_deficient_rank_has_the_derivative_at_constant_rank():
    u, v = draw(float, 4, 1), draw(float, 1, 3)
    check_products(lambda u, v: ours.pinv(u @ v), u, v, rtol=1e-5, products=FIRST)


@pytest.mark.parametrize("f, x, want", [
    (lambda x: ours.norm(x, "nuc"), np.zeros((3, 2)), np.zeros((3, 2))),
    (lambda x: ours.norm(x, 2), np.zeros((3, 2)), np.zeros((3, 2))),
    (lambda x: ours.norm(x, 2), np.eye(2), np.eye(2) / 2),
    (lambda x: ours.norm(x, "nuc"), np.ones((2, 2)), np.full((2, 2), 0.5)),
    (lambda x: ours.norm(x[:, None], 2), np.array([3.0, 4.0]), [0.6, 0.8]),
])
def test_derivatives_of_norms_at_kinks(f, x, want):
    same(fm.grad(f)(x), want)


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, kind, words", [
    (lambda: ours.det(np.ones((2, 3))), ValueError, r"det expects square matrices \[.., n, n\], got f64\[2,3\]"),
    (lambda: ours.inv(np.ones(3)), ValueError, r"inv expects matrices \[.., m, n\], got f64\[3\]"),
    (lambda: ours.solve(np.eye(3), np.ones(2)), ValueError, "b of 3 rows"),
    (lambda: ours.solve(np.ones((4, 3, 3)), np.ones((4, 3))), ValueError, "a batch of vectors is solved by"),
    (lambda: ours.slogdet(np.eye(2), method="svd"), ValueError, "'lu' or 'qr'"),
    (lambda: ours.qr(np.eye(2), "economic"), ValueError, "mode must be 'reduced'"),
    (lambda: ours.eigh(np.eye(2), "X"), ValueError, "UPLO must be 'L' or 'U'"),
    (lambda: ours.eig(np.ones((2, 3))), ValueError, "eig expects square matrices"),
    (lambda: ours.norm(np.eye(2), 3), ValueError, "'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got 3"),
    (lambda: ours.norm(np.ones((0, 2)), -2), ValueError, "no smallest one"),
    (lambda: ours.cond(np.ones((2, 3)), 1), ValueError, "square matrices"),
    (lambda: ours.cond(np.ones((0, 3))), ValueError, "with elements"),
    (lambda: ours.pinv(np.eye(2), 1e-3, rcond=1e-3), ValueError, "only one of rtol and rcond"),
    (lambda: ours.matrix_rank(np.eye(2), 1e-3, tol=1e-3), ValueError, "only one of tol or rtol"),
    (lambda: ours.lstsq(np.ones((2, 2)), np.ones(3)), ValueError, r"a \[m, n\] and b \[m\] or \[m, k\]"),
    (lambda: ours.svd(np.ones((2, 2)), subset_by_index=(0, 1)), ValueError, "full_matrices must be False"),
    (lambda: ours.svd(np.ones((2, 2)), False, subset_by_index=(1, 3)), ValueError, "0 <= i < j <= 2"),
    (lambda: ours.tensorinv(np.ones((2, 3)), 1), ValueError, "must have as many"),
    (lambda: ours.tensorinv(np.ones((2, 2)), 0), ValueError, "ind must be positive"),
    (lambda: ours.tensorsolve(np.ones((2, 3)), np.ones(2)), ValueError, "have as many"),
    (lambda: ours.matrix_power(np.ones((2, 3)), 2), ValueError, "square matrices"),
])
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
