"""vectorize, apply_along_axis, apply_over_axes, fromfunction, grids, files and text, against NumPy."""

import io

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from tests.products import check_products

X = np.arange(24.0).reshape(2, 3, 4)


# ---- vectorize -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signature, function, shapes", [
    ("(n),(n)->()", lambda a, b: (a * b).sum(), [(2, 1, 4), (3, 4)]),
    ("(n,m),(m)->(n)", lambda a, b: a @ b, [(5, 2, 3), (3,)]),
    ("(n)->(),(k)", lambda a: (a.sum(), a[:2]), [(2, 4)]),
    ("()->(k)", lambda a: a * np.arange(3.0), [(2, 2)]),
    ("(n, m) -> (m, n)", lambda a: a.T, [(1, 2, 3)]),
    (None, lambda a, b: a * b + 1, [(2, 1), (3,)]),
], ids=["dot", "product", "two results", "new axis", "spaces", "scalars"])  # fmt: skip
def test_vectorize(signature, function, shapes):
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s) for s in shapes]
    got = jnp.vectorize(function, signature=signature)(*args)
    want = np.vectorize(function, signature=signature)(*args)
    for g, w in zip(fm.tree.leaves(got), want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12)


def test_vectorize_leaves_excluded_arguments_and_none_alone():
    def f(x, n, y=None, *, name="a"):
        assert isinstance(n, int) and name == "b"
        return x * n if y is None else x * n + y

    g = jnp.vectorize(f, excluded={1, "name"})
    np.testing.assert_array_equal(g(X, 3, name="b"), X * 3)
    np.testing.assert_array_equal(g(X, 3, y=X, name="b"), X * 4)
    np.testing.assert_array_equal(g(X, 3, None, name="b"), X * 3)


def test_vectorize_under_transforms():
    dot = jnp.vectorize(lambda a, b: (a * b).sum(), signature="(n),(n)->()")
    check_products(dot, X[:, :1], X[0], order=1)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.vectorize(lambda x: x, excluded={1.5}), TypeError, "excluded must hold places"),
    (lambda: jnp.vectorize(lambda x: x, excluded={-1}), ValueError, "must not be negative"),
    (lambda: jnp.vectorize(lambda x: x, signature="(n->n"), ValueError, "not a valid gufunc signature"),
    (lambda: jnp.vectorize(lambda x: x, signature="(n)->(n)")(X, X), TypeError, "wrong number of positional arguments"),
    (lambda: jnp.vectorize(lambda x, y: x, signature="(n),(n)->(n)")(X, X[:, :, :2]), ValueError, "inconsistent size.*'n'"),
    (lambda: jnp.vectorize(lambda x: x, signature="(n,m)->(n)")(X[0, 0]), ValueError, "does not have enough dimensions"),
    (lambda: jnp.vectorize(lambda x: x, signature="(n)->()")(X), ValueError, "output shape .* does not match"),
    (lambda: jnp.vectorize(lambda x: x, signature="(n)->(n),()")(X), TypeError, "output must be a tuple"),
    (lambda: jnp.vectorize(lambda x: (x, x, x), signature="(n)->(n),(n)")(X), TypeError, "wrong number of output"),
    (lambda: jnp.vectorize(lambda x, y: x, signature="(n),(n)->(n)")(X, None), ValueError, "Cannot pass None"),
    (lambda: jnp.vectorize(lambda x, y: x)(X, X[:, :2]), ValueError, "do not broadcast"),
])  # fmt: skip
def test_vectorize_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ---- along and over axes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("f", [lambda v, k=1: v.sum() * k, lambda v, k=1: v[::-1] * k, lambda v, k=1: v[:2, None] * v[:2] + k])
def test_apply_along_axis(axis, f):
    np.testing.assert_allclose(jnp.apply_along_axis(f, axis, X, k=3), np.apply_along_axis(f, axis, X, k=3))


def test_apply_over_axes():
    for axes in ((0, 2), [1], 1, (-1, 0)):
        np.testing.assert_allclose(jnp.apply_over_axes(jnp.sum, X, axes), np.apply_over_axes(np.sum, X, axes))
    keep = lambda x, axis: x.sum(axis, keepdims=True)
    np.testing.assert_allclose(jnp.apply_over_axes(keep, X, (0, 1)), np.apply_over_axes(keep, X, (0, 1)))
    with pytest.raises(ValueError, match="not returning an array of the correct shape"):
        jnp.apply_over_axes(lambda x, axis: x.sum(), X, (0,))


def test_fromfunction():
    f = lambda i, j: i * 10 + j
    np.testing.assert_array_equal(jnp.fromfunction(f, (2, 3), dtype=int), np.fromfunction(f, (2, 3), dtype=int))
    assert jnp.fromfunction(f, (2, 3)).dtype == np.float32
    a, b = jnp.fromfunction(lambda i, j, k=0: (i + k, i * j * np.arange(2.0)), (2, 3), k=5)
    assert a.tolist() == [[5.0] * 3, [6.0] * 3] and b.shape == (2, 3, 2)


# ---- grids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [
    np.s_[0:3], np.s_[1:7:2], np.s_[0:1:5j], np.s_[0:2, 0:3], np.s_[0:2, -1:1:3j], np.s_[5:2:-1, 1:3, 0:2], np.s_[:3, 2:4],
], ids=str)  # fmt: skip
def test_mgrid_and_ogrid(key):
    np.testing.assert_allclose(jnp.mgrid[key], np.mgrid[key], rtol=1e-6)
    got, want = jnp.ogrid[key], np.ogrid[key]
    for g, w in zip(got if isinstance(key, tuple) else [got], want if isinstance(key, tuple) else [want], strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


V, M = np.array([1, 2, 3]), np.array([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("key", [
    (V, 0, V), (np.s_[1:4], 9), (np.s_[0:1:3j], 2.0), (V,), ("0,2", V, V), ("0,2,0", V, V), ("1,3,1", V), ("0,3,-2", M), ("r", V),
    ("c", V, V), ("-1", M, M), ("0,3,0", np.s_[1:4]), (M, M),
], ids=str)  # fmt: skip
def test_r(key):
    np.testing.assert_allclose(jnp.r_[key], np.r_[key])


@pytest.mark.parametrize("key", [
    (V, V), (np.s_[0:1:3j],), (M, M), (V,), ("0,2", V, V), ("1,3,1", V), ("-1,2,0", V, V), ("c", V, V),
], ids=str)  # fmt: skip
def test_c(key):
    np.testing.assert_allclose(jnp.c_[key], np.c_[key])


def test_r_and_c_refuse():
    with pytest.raises(ValueError, match="could not understand directive 'x'"):
        jnp.r_["x", V]
    with pytest.raises(ValueError, match="placed at the beginning"):
        jnp.r_[V, "0,2"]
    with pytest.raises(TypeError, match="stop.*must be known|its value must be known"):
        fm.jit(lambda n: jnp.r_[0:n])(3)
    assert len(jnp.r_) == 0 and repr(jnp.c_) == "funcml.numpy.c_" and "joined" in jnp.r_.__doc__


def test_s_and_index_exp():
    assert jnp.s_[1:2, ...] == (slice(1, 2), Ellipsis) and jnp.index_exp[3] == (3,)


# ---- files and text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16", "uint64"])
def test_save_and_load(dtype, tmp_path):
    x = jnp.array([0, 1, 2]).astype(dtype)
    jnp.save(tmp_path / "x.npy", x)
    y = jnp.load(tmp_path / "x.npy")
    assert y.dtype == x.dtype and isinstance(y, jnp.ndarray)
    np.testing.assert_array_equal(x, y)


def test_savez():
    file = io.BytesIO()
    jnp.savez(file, jnp.arange(3), name=jnp.ones(2))
    file.seek(0)
    found = jnp.load(file)
    np.testing.assert_array_equal(found["arr_0"], [0, 1, 2])
    np.testing.assert_array_equal(found["name"], [1, 1])


def test_text_bytes_and_iterables(tmp_path):
    assert jnp.fromstring("1.5, 2", sep=",").tolist() == [1.5, 2.0]
    assert jnp.fromstring("1 2", dtype=int, sep=" ").dtype == np.int32
    assert jnp.fromstring("1 2", dtype="bfloat16", sep=" ").dtype == jnp.bfloat16
    assert jnp.fromiter((i * i for i in range(4)), int).tolist() == [0, 1, 4, 9]
    assert jnp.frombuffer(np.arange(3, dtype=np.int16).tobytes(), "int16", 2, 2).tolist() == [1, 2]
    np.arange(4.0).tofile(tmp_path / "raw")
    assert jnp.fromfile(tmp_path / "raw", "float64", count=3).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="sep must not be empty"):
        jnp.fromstring("12", sep="")


def test_printing():
    x = jnp.array([1.0, 1e-9, 0.123456])
    assert jnp.array_repr(x, precision=2, suppress_small=True) == "Array([1.  , 0.  , 0.12], dtype=float32)"
    assert jnp.array_str(jnp.arange(30), max_line_width=20).count("\n") > 3
    with jnp.printoptions(precision=1):
        assert str(jnp.array([0.123])) == "[0.1]" and jnp.get_printoptions()["precision"] == 1


shown: list[str] = []


def test_a_traced_array_is_shown_as_such():
    fm.jit(lambda x: shown.append(jnp.array_repr(x)))(1.0)
    assert "Traced" in shown[-1]


# ---- the namespace of the array API --------------------------------------------------------------------------------


def test_namespace_info():
    info = jnp.ones(1).__array_namespace__().__array_namespace_info__()
    assert info.default_device() in info.devices() and info.capabilities()["max dimensions"] == 64
    assert info.default_dtypes()["real floating"] == np.float32
    assert set(info.dtypes(kind=("bool", "integral"))) == {"bool", *[f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]}
    assert info.dtypes()["complex128"] == np.complex128 and jnp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="kind must be one of"):
        info.dtypes(kind="text")
