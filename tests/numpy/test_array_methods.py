"""Operators and methods of arrays, concrete and traced: each is what NumPy's is."""

import operator

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml.numpy.array_methods import METHODS, OPERATORS, PROPERTIES

X = np.array([[3.0, -1.0, 2.5], [0.5, 4.0, -2.0]])
I = np.array([[3, -1, 2], [5, 4, -7]])

CALLS = {
    "binary": lambda x: [x + 2, 2 - x, x * x, x / 2, 1 / x, x // 2, 7 // x, x % 2, 7 % x, x**2, 2.0**x, *divmod(x, 2),
                         *divmod(7, x)],
    "compare": lambda x: [x == 2.5, x != 2.5, x < 1, x <= 1, x > 1, x >= 1, 1 < x],
    "unary": lambda x: [-x, +x, abs(x)],
    "matmul": lambda x: [x @ x.T, x.dot(x.T), x @ np.ones(3), np.ones(2) @ x],
    "reduce": lambda x: [x.sum(), x.sum(0), x.sum(axis=1, keepdims=True), x.mean(), x.max(1), x.min(), x.prod(), x.std(0),
                         x.var(),
                         x.all(), x.any(1), x.argmax(), x.argmin(1), x.cumsum(), x.cumprod(1),
                         np.ptp(x) if type(x) is np.ndarray else x.ptp()],
    "shape": lambda x: [x.T, x.mT, x.reshape(3, 2), x.reshape((3, 2)), x.reshape(-1), x.ravel(), x.flatten(), x.transpose(),
                        x.transpose(1, 0), x.transpose((1, 0)), x.swapaxes(0, 1), x[None].squeeze(), x[None].squeeze(0)],
    "choose": lambda x: [x[0], x[:, 1], x[..., ::2], x[1, 2], x.take(np.array([2, 0]), 1), x.repeat(2, 1), x.diagonal(),
                         x.trace(),
                         x.clip(0, 2), x.compress(np.array([True, False]), 0), x.argsort(), *[row for row in x], x.round(1)],
    "parts": lambda x: [x.real, x.imag, (x + 1j).real, (x + 1j).conj(), (x + 1j).conjugate(),
                        (1j * x).imag, x.astype(np.int32), x.copy()],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_arrays_and_tracers_are_like_numpy(name):
    want = CALLS[name](X)
    for found in (CALLS[name](jnp.asarray(X)), funcml.jit(CALLS[name])(X)):
        assert len(found) == len(want)
        for a, b in zip(found, want, strict=True):
            assert isinstance(a, funcml.Array) and a.shape == np.shape(b)
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def test_integers():
    def call(i):
        return [i & 6, i | 1, i ^ 3, ~i, i << 1, i >> 1, 1 << abs(i), i // 2, i % 3, i**2, -i, i.sum(), i.max(0),
        6 & i, 1 | i, 3 ^ i]

    for found in (call(jnp.asarray(I)), funcml.jit(call)(I)):
        for a, b in zip(found, call(I), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_what_needs_a_known_shape_only():
    def call(x):
        assert len(x) == 2 and x.ndim == 2 and x.size == 6 and x.itemsize == 8
        a, b = x
        x += 1
        return sum(row.sum() for row in x) + a[0] * b[0]

    assert funcml.jit(call)(X) == pytest.approx(X.sum() + 6 + 1.5)
    with pytest.raises(TypeError, match=r"iteration over an array without axes \(f32\[\]\)"):
        funcml.jit(lambda x: list(x))(1.0)
    with pytest.raises(TypeError, match=r"len\(\) of an array without axes"):
        funcml.jit(lambda x: len(x))(1.0)


def test_round():
    x = np.array([0.5, 1.5, -2.25])
    np.testing.assert_array_equal(round(jnp.asarray(x)), np.round(x))
    np.testing.assert_array_equal(round(jnp.asarray(x), 1), np.round(x, 1))


def test_updates():
    x = jnp.asarray(X)
    want = X.copy()
    want[0, 1] += 5
    np.testing.assert_array_equal(x.at[0, 1].add(5), want)
    np.testing.assert_array_equal(x, X)


def test_sorting_and_searching():
    x = jnp.asarray(X)
    np.testing.assert_array_equal(x.sort(), np.sort(X))
    np.testing.assert_array_equal(x[0].sort().searchsorted(2.0), np.sort(X[0]).searchsorted(2.0))
    np.testing.assert_array_equal(x.nonzero()[1], X.nonzero()[1])
    assert 2.5 in x and 9 not in x
    for value, error in (("abc", TypeError), (None, TypeError), (x, ValueError)):
        with pytest.raises(error, match="Array.__contains__"):
            _ = value in x
    with pytest.raises(ValueError, match="search array must be one-dimensional or more"):
        _ = 1 in jnp.array(1)
    np.testing.assert_array_equal(x.byteswap(), np.asarray(x).byteswap())
    assert x.tobytes("F") == np.asarray(x).tobytes("F")


@pytest.mark.parametrize("old, new", [
    ("float32", "int32"), ("float64", "int32"), ("int32", "int64"), ("int8", "bool"), ("bool", "int8"), ("uint8", "uint16"),
    ("complex64", "float32"), ("float32", "complex64"), ("complex128", "int64"), ("float32", "float32"),
])  # fmt: skip
def test_view(old, new):
    x = np.array([[0, 1, 1, 0], [1, 0, 0, 1]], old)
    np.testing.assert_array_equal(jnp.asarray(x).view(new), x.view(new))


def test_array_namespace():
    assert jnp.ones(1).__array_namespace__() is jnp
    with pytest.raises(ValueError, match="2024.12 is offered"):
        jnp.ones(1).__array_namespace__(api_version="1999.1")


def test_every_method_has_a_text():
    for name, function in (METHODS | PROPERTIES).items():
        assert function.__doc__, name
    for name in OPERATORS:
        assert hasattr(funcml.Array, name)


@pytest.mark.parametrize("call, error, words", [
    (lambda x: x + [1, 2, 3], TypeError, "add expects arrays or numbers, got .* of type list"),
    (lambda x: x @ x, ValueError, "must have one length"),
    (lambda x: x.reshape(4, 2), TypeError, "it has 6 elements"),
    (lambda x: x.sum(axis=2), ValueError, "axis 2 is out of bounds"),
    (lambda x: operator.setitem(x, 0, 1), TypeError, "arrays are immutable"),
    (lambda x: x[0, 0].view("int8"), ValueError, "add an axis first"),
    (lambda x: x & 1, TypeError, "and expects integers or bool"),
])
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(jnp.asarray(X))


@pytest.mark.parametrize("call", [lambda x: x * (1, 2), lambda x: [1, 2] * x, lambda x: x + [1, 2], lambda x: (1, 2) @ x])
def test_operators_refuse_lists_by_name(call):
    with pytest.raises(TypeError, match="expects arrays or numbers, got .*make it an array first"):
        call(jnp.ones((2, 2), "int32"))
