"""Creation functions against NumPy."""

import functools
import math

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from tests.products import check_products


def same(ours, want, rtol=1e-15):
    assert ours.shape == np.shape(want)
    np.testing.assert_allclose(ours, want, rtol=rtol, atol=1e-300)


@pytest.mark.parametrize("args", [
    (5,), (2, 7), (7, 2, -2), (2.5,), (0.0, 1.0, 0.1), (1, 2, 0.3), (0, -3), (0.0, 10.0, 2.0), (5, 5), (-1.5, 4),
], ids=str)
def test_arange(args):
    want = np.arange(*args)
    ours = jnp.arange(*args)
    assert ours.dtype == (np.int32 if want.dtype == np.int64 else np.float32)
    same(ours, want.astype(ours.dtype))
    same(jnp.arange(*args, dtype="float64"), np.arange(*args, dtype="float64"), 1e-14)


def test_arange_of_other_dtypes():
    for dtype in ("int8", "uint8", "int64", "float16", "complex64"):
        ours = jnp.arange(2, 9, 3, dtype=dtype)
        assert ours.dtype == dtype
        same(ours, [2, 5, 8])
    assert jnp.arange(np.int64(3)).dtype == np.int64
    assert float(jnp.arange(1000, dtype="bfloat16")[513]) == 512  # rounded once, not counted in bfloat16


@pytest.mark.parametrize("options", [{}, {"num": 7, "endpoint": False}, {"num": 1}, {"num": 0}, {"num": 4, "dtype": "int32"}],
ids=str)
def test_linspace(options):
    same(jnp.linspace(np.float64(-1), 3.7, **options), np.linspace(-1, 3.7, **options), 1e-14)
    ends = np.array([0.0, 1.0]), np.array([2.0, -3.0])
    same(jnp.linspace(jnp.asarray(ends[0]), ends[1], **options), np.linspace(*ends, **options), 1e-13)


def test_spaces():
    same(jnp.linspace(jnp.zeros(2), 1.0, 3, axis=1), np.linspace(np.zeros(2), 1, 3, axis=1))
    assert jnp.linspace(0, 1, 5, retstep=True)[1] == 0.25
    same(jnp.logspace(0.0, 2.0, 4), np.logspace(0, 2, 4), 1e-6)
    same(jnp.geomspace(1.0, 1000.0, 4), np.geomspace(1, 1000, 4), 1e-6)
    same(jnp.geomspace(jnp.asarray(-1.0), -8.0, 4), np.geomspace(-1, -8, 4), 1e-6)
    check_products(lambda a, b: [jnp.linspace(a, b, 5), jnp.geomspace(a, b, 3), jnp.logspace(a, b, 3, base=2.0)],
                   np.array(1.5), np.array(4.0))


def test_constants():
    for name, value in (("zeros", 0), ("ones", 1), ("empty", 0)):
        for shape in (3, (2, 3), (), (0, 2), np.int64(2), [2]):
            same(getattr(jnp, name)(shape), np.full(shape, value))
        like = getattr(jnp, f"{name}_like")
        assert like(np.ones(3, np.int8)).dtype == np.int8 and like(2.0, shape=(2,)).shape == (2,)
        assert like(funcml.ShapeDtypeStruct((2,), "float16")).dtype == np.float16
    same(jnp.full((2, 3), np.arange(3)), np.full((2, 3), np.arange(3)))
    assert jnp.full(2, 1j).dtype == np.complex64 and jnp.full_like(np.ones(2), 3).dtype == np.float64


def test_matrices():
    same(jnp.eye(3, 4, 1), np.eye(3, 4, 1))
    same(jnp.identity(2), np.eye(2))
    same(jnp.tri(3, 4, -1), np.tri(3, 4, -1))
    x = np.arange(24.0).reshape(2, 3, 4)
    for k in (-1, 0, 2):
        same(jnp.tril(x, k), np.tril(x, k))
        same(jnp.triu(x, k), np.triu(x, k))
        same(jnp.diag(x[0], k), np.diag(x[0], k))
        same(jnp.diag(x[0, 0], k), np.diag(x[0, 0], k))
        same(jnp.diagonal(x, k, 2, 1), np.diagonal(x, k, 2, 1))
    same(jnp.diagflat(x[0, :2], 1), np.diagflat(x[0, :2], 1))
    for ours, want in zip(jnp.tril_indices(3, 1, 4), np.tril_indices(3, 1, 4), strict=True):
        same(ours, want)
    check_products(lambda x: [jnp.tril(x), jnp.triu(x, 1), jnp.diag(x, -1), jnp.diag(x[0])], x[0])


def test_grids():
    a, b, c = np.arange(2), np.arange(3.0), np.arange(4)
    for options in ({}, {"indexing": "ij"}, {"sparse": True}):
        for ours, want in zip(jnp.meshgrid(a, b, c, **options), np.meshgrid(a, b, c, **options), strict=True):
            same(ours, want)
    same(jnp.indices((2, 3)), np.indices((2, 3)))
    for ours, want in zip(jnp.ix_(a, np.array([True, False, True])), np.ix_(a, np.array([True, False, True])), strict=True):
        same(ours, want)


def test_array_of_anything():
    assert jnp.array(2).weak_type and jnp.array(2.5).dtype == np.float32 and not jnp.array([2]).weak_type
    assert jnp.array([1, 2.5]).dtype == np.float32 and jnp.array([np.float64(1)]).dtype == np.float64
    assert jnp.array([True, 2]).dtype == np.int32 and jnp.array([]).dtype == np.float32
    assert jnp.array(np.ones(2), ndmin=3).shape == (1, 1, 2) and jnp.array([1, 2], "int8").dtype == np.int8
    x = jnp.ones(3)
    assert jnp.asarray(x) is x and jnp.array(x) is not x
    same(jnp.array([[x, 2 * x], [3 * x, x]]), np.array([[1, 2], [3, 1]])[..., None] * np.ones(3))
    same(jnp.float32([1, 2]), [1, 2])
    assert jnp.astype(np.array([1.7, -1.7]), "int32").tolist() == [1, -1]


def test_arrays_of_traced_elements():
    def function(x):
        y = jnp.array([[x, 2.0], [3, x * x]])
        return y, jnp.array(2.0) * x, jnp.asarray(np.float64(2)) * x

    y, z, w = funcml.jit(function)(3.0)
    same(y, [[3, 2], [3, 9]])
    assert z == 6 and w.dtype == np.float64 and y.dtype == np.float32
    same(funcml.jacfwd(lambda x: jnp.array([x, x * x]))(3.0), [1, 6])


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.arange(0, 1, 0), ValueError, "arange: step must not be zero"),
    (lambda: funcml.jit(jnp.arange)(3), TypeError, "jnp.arange argument 'stop', which decides the shape of the result"),
    (lambda: jnp.zeros(-1), ValueError, "zeros: lengths must not be negative"),
    (lambda: jnp.zeros(2.5), TypeError, "zeros: Shapes must be 1D sequences of concrete values of integer type, got 2.5"),
    (lambda: jnp.array("text"), TypeError, "expected an array or a number"),
    (lambda: jnp.array([[1], [1, 2]]), ValueError, "inhomogeneous"),
    (lambda: jnp.full((2, 3), np.ones(4)), ValueError, r"do not broadcast"),
    (lambda: jnp.diag(np.ones((2, 2, 2))), ValueError, r"diag expects a vector or a matrix, got f64\[2,2,2\]"),
    (lambda: jnp.meshgrid(np.ones(2), indexing="yx"), ValueError, "indexing must be 'xy' or 'ij'"),
    (lambda: jnp.linspace(0, 1, -1), ValueError, "num must not be negative"),
])
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_constants_of_the_module():
    assert jnp.pi == math.pi and jnp.newaxis is None and jnp.inf == math.inf and isinstance(jnp.ones(1), jnp.ndarray)


def test_a_second_length_in_the_place_of_the_dtype_is_seen():
    for make in (jnp.zeros, jnp.ones, jnp.empty):
        with pytest.raises(TypeError, match=rf"did you accidentally write `{make.__name__}\(2, 3\)` when you meant"):
            make(2, 3)


def test_arange_refuses_complex_numbers():
    with pytest.raises(ValueError, match="complex numbers have no order"):
        jnp.arange(3j)


def test_a_device_is_no_matter_inside_of_a_trace():
    device = funcml.devices()[0]
    x = np.ones(3)
    makers = jnp.zeros_like, lambda x, device: jnp.arange(3.0, device=device), lambda x, device: jnp.eye(3, device=device)
    for make in [functools.partial(make, device=device) for make in makers]:
        np.testing.assert_array_equal(funcml.jit(make)(x), make(x))


def test_copies_have_memory_of_their_own():
    x = jnp.arange(4)
    for copied in (x.astype(x.dtype, copy=True), jnp.copy(x), jnp.array(x), funcml.jit(jnp.copy)(x)):
        copied.delete()
    assert x.astype(x.dtype) is x and x.tolist() == [0, 1, 2, 3]


def test_lists_of_weakly_typed_numbers_are_not_weak():
    assert jnp.array(1.0).weak_type and not jnp.array([jnp.array(1.0)]).weak_type
    assert not funcml.jit(lambda x: jnp.array([x, x]))(1.0).weak_type


def test_a_sharding_over_one_device_is_a_device():
    there = jnp.zeros(1).sharding
    for x in (jnp.zeros(3, device=there), jnp.asarray(np.ones(2), device=there), jnp.linspace(0, 1, 3, device=there)):
        assert x.sharding == there
    assert funcml.device_put(np.ones(2), there).devices() == {jnp.zeros(1).device}


def test_no_sharding_of_the_result_may_be_asked_for():
    np.testing.assert_array_equal(jnp.ones(2, out_sharding=None), np.ones(2))
    np.testing.assert_array_equal(jnp.einsum("i,i", np.ones(3), np.ones(3), out_sharding=None), 3.0)
    with pytest.raises(NotImplementedError, match="zeros: out_sharding must be None"):
        jnp.zeros(2, out_sharding=jnp.zeros(1).sharding)
