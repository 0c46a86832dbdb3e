"""`numpy.fft` against NumPy's own."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from tests.products import check_products

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
NORMS = (None, "backward", "ortho", "forward")


def sample(rng, name, shape, dtype="complex128"):
    if name.removeprefix("i").startswith(("rfft", "hfft")) and name.startswith(("rfft", "ih")):
        return rng.normal(size=shape)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("n, axis", [(None, -1), (1, 0), (4, 1), (9, 1), (5, -2)])
@pytest.mark.parametrize("name", ONE)
def test_one_axis(rng, name, n, axis):
    x = sample(rng, name, (5, 6))
    for norm in NORMS:
        want = getattr(np.fft, name)(x, n, axis, norm)
        found = getattr(jnp.fft, name)(x, n, axis, norm)
        assert found.dtype == want.dtype
        np.testing.assert_allclose(found, want, atol=1e-13)


@pytest.mark.parametrize("s, axes", [
    (None, None), ((3, 4), None), (None, (0,)), (None, (2, 0)), ((3, 8, 1), (1, 2, 0)), ((5,), (-3,)),
    ((4, 4, 4, 4), (3, 0, 1, 2)),
])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(rng, name, s, axes):
    x = sample(rng, name, (3, 4, 5, 2))
    axes_of_numpy = tuple(range(-len(s), 0)) if axes is None and s is not None else axes
    for norm in (None, "ortho", "forward"):
        want = getattr(np.fft, name)(x, s, axes_of_numpy, norm)
        np.testing.assert_allclose(getattr(jnp.fft, name)(x, s, axes, norm), want, atol=1e-12)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_two_axes(rng, name):
    x = sample(rng, name, (3, 4, 5))
    for s, axes in ((None, (-2, -1)), ((4, 3), (0, 2)), (None, (2, 1))):
        np.testing.assert_allclose(getattr(jnp.fft, name)(x, s, axes), getattr(np.fft, name)(x, s, axes), atol=1e-13)


@pytest.mark.parametrize("dtype, complex_dtype, real_dtype", [
    ("float16", "complex64", "float32"), ("float32", "complex64", "float32"), ("float64", "complex128", "float64"),
    ("int8", "complex64", "float32"), ("int64", "complex128", "float64"), ("bool", "complex64", "float32"),
    ("bfloat16", "complex64", "float32"),
])
def test_dtypes(dtype, complex_dtype, real_dtype):
    x = jnp.ones(4, dtype)
    assert jnp.fft.fft(x).dtype == jnp.fft.rfft(x).dtype == jnp.fft.ihfft(x).dtype == complex_dtype
    assert jnp.fft.irfft(x).dtype == jnp.fft.hfft(x).dtype == real_dtype


def test_empty_axes_and_empty_arrays():
    x = np.ones((2, 3), "float32")
    assert jnp.fft.fftn(x, axes=()).dtype == "complex64" and np.array_equal(jnp.fft.fftn(x, axes=[]), x)
    assert jnp.fft.fft(np.zeros(0, "float32")).shape == (0,)
    assert jnp.fft.rfft(np.zeros((0, 3), "float32")).shape == (0, 2)


def test_large_counts_do_not_overflow():
    x = np.ones((1, 1), "float32")
    found = jnp.fft.ifftn(jnp.broadcast_to(x, (1, 1)), s=(1500, 1500), norm="forward")
    np.testing.assert_allclose(found, 1.0, rtol=1e-5)


@pytest.mark.parametrize("name, keywords", [
    ("fft", {"n": 7, "axis": 0}), ("ifft", {"n": 3, "norm": "ortho"}), ("rfft", {"n": 5}), ("irfft", {"n": 5}), ("irfft", {}),
    ("hfft", {"norm": "forward"}), ("ihfft", {"n": 6}), ("fftn", {"s": (3, 6)}), ("rfftn", {"axes": (1, 0)}),
    ("irfftn", {"s": (2, 3)}),
])
def test_products(rng, name, keywords):
    x = sample(rng, name, (4, 5))
    check_products(lambda x: getattr(jnp.fft, name)(x, **keywords), x, order=1)


def test_the_gradient_of_a_filter(rng):
    x, k = rng.normal(size=8), rng.normal(size=5)
    check_products(lambda x, k: jnp.fft.irfft(jnp.fft.rfft(x) * k, n=8) ** 2, x, k)
    f = lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * k, n=8)
    m = fm.vmap(f)(jnp.eye(8, dtype="float64")).T
    np.testing.assert_allclose(fm.vmap(lambda y: fm.linear_transpose(f, x)(y)[0])(jnp.eye(8, dtype="float64")).T, m.T, atol=1e-15)


def test_jit_is_eager(rng):
    x = rng.normal(size=(3, 5))
    f = lambda x: jnp.fft.fftn(x, s=(4, 4), norm="ortho")
    np.testing.assert_array_equal(fm.jit(f)(x), f(x))


@pytest.mark.parametrize("n", [1, 2, 9, 10])
@pytest.mark.parametrize("d", [1.0, 0.1, 2])
def test_frequencies(n, d):
    for f, want in ((jnp.fft.fftfreq, np.fft.fftfreq(n, d)), (jnp.fft.rfftfreq, np.fft.rfftfreq(n, d))):
        found = f(n, d)
        assert found.dtype == "float32"
        np.testing.assert_array_equal(found, want.astype("float32"))
        np.testing.assert_allclose(f(n, d, dtype="float64"), want, rtol=3e-16)
        np.testing.assert_allclose(fm.jit(f, static_argnums=0)(n, d), want, rtol=1e-6)


def test_frequencies_have_a_derivative_in_d():
    check_products(lambda d: jnp.fft.fftfreq(5, d, dtype="float64"), np.float64(0.7))


def test_frequencies_where_asked_for():
    device = fm.devices()[0]
    assert jnp.fft.fftfreq(4, device=device).devices() == {device}


@pytest.mark.parametrize("shape", [(9,), (10,), (3, 4), (0, 2)])
def test_shifts(rng, shape):
    x = rng.normal(size=shape)
    for axes in (None, 0, (0,), -1, (-1, 0) if len(shape) > 1 else (0,), ()):
        for name in ("fftshift", "ifftshift"):
            np.testing.assert_array_equal(getattr(jnp.fft, name)(x, axes), getattr(np.fft, name)(x, axes))


@pytest.mark.parametrize("call, words", [
    (lambda x: jnp.fft.fft(x, axis=(0, 1)), r"fft takes one axis, got \(0, 1\); fftn"),
    (lambda x: jnp.fft.fft(x, axis=2), "axis 2 is out of bounds"),
    (lambda x: jnp.fft.fft(x, n=0), "a length must be positive, got 0"),
    (lambda x: jnp.fft.fftn(x, s=(2, -1)), "a length must be positive, got -1"),
    (lambda x: jnp.fft.fft(x, norm="unit"), "norm must be None or one of 'backward', 'ortho', 'forward', got 'unit'"),
    (lambda x: jnp.fft.rfft(x + 1j), r"rfft takes real numbers, got c128\[2,3\]; use fft"),
    (lambda x: jnp.fft.rfftn(x + 1j), r"rfftn takes real numbers, got c128\[2,3\]"),
    (lambda x: jnp.fft.irfft(x[:, :1]), "give the length that is wanted"),
    (lambda x: jnp.fft.fftn(x, axes=(1, 1)), "repeated axis"),
    (lambda x: jnp.fft.fftn(x, s=(2,), axes=(0, 1)), "s has 1 lengths for 2 axes"),
    (lambda x: jnp.fft.fft2(x, axes=(0,)), r"fft2 takes two axes, got \(0,\); use fftn"),
    (lambda x: jnp.fft.fftfreq([1, 2]), r"takes one int as n, got \[1, 2\]"),
    (lambda x: jnp.fft.rfftfreq(3, d=[1, 2]), r"takes one number as d, got \[1, 2\]"),
])
def test_errors(rng, call, words):
    with pytest.raises(ValueError, match=words):
        call(rng.normal(size=(2, 3)))


def test_lists_are_no_operands():
    with pytest.raises(TypeError, match="fft expects arrays or numbers"):
        jnp.fft.fft([1.0, 2.0])
