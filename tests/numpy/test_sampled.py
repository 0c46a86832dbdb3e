"""Differences, slopes, areas, interpolation and unwrapped angles against NumPy, over edges and under the transforms."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from tests.products import check_products

RNG = np.random.default_rng(0)
A, V = RNG.normal(size=(4, 5)), RNG.normal(size=7)
S = np.sort(RNG.normal(size=7))
PROBES = np.concatenate([np.linspace(-3, 3, 20), S, [np.nan, np.inf, -np.inf]])


def check(calls, rtol=1e-12):
    """Each call of (numpy-like module) gives the same in both."""
    found = funcml.jit(lambda: [f(jnp) for f in calls])()
    for i, (ours, f) in enumerate(zip(found, calls, strict=True)):
        want = f(np)
        ours, want = (x if isinstance(x, list | tuple) else [x] for x in (ours, want))
        for x, y in zip(ours, want, strict=True):
            assert np.shape(x) == np.shape(y), i
            np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol, err_msg=str(i))


def test_differences():
    check([
        lambda m: m.diff(A), lambda m: m.diff(A, 2, 0), lambda m: m.diff(A, axis=0, prepend=1.0, append=A[:1]),
        lambda m: m.diff(np.array([True, False, True])), lambda m: m.diff(V, 0), lambda m: m.diff(np.zeros(0)),
        lambda m: m.diff(np.zeros(1), 3), lambda m: m.diff(np.array([3, 1], np.uint8)),
        lambda m: m.ediff1d(A, to_end=np.array([1.0, 2.0]), to_begin=3.0), lambda m: m.ediff1d(np.zeros(0)),
    ])  # fmt: skip


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order):
    calls = [
        lambda m: m.gradient(A, edge_order=edge_order), lambda m: m.gradient(A, 2.0, edge_order=edge_order),
        lambda m: m.gradient(A, 2.0, S[:5], edge_order=edge_order), lambda m: m.gradient(V, S, edge_order=edge_order),
        lambda m: m.gradient(A, axis=1, edge_order=edge_order), lambda m: m.gradient(A, axis=(1, 0), edge_order=edge_order),
        lambda m: m.gradient(np.arange(5, dtype=np.uint8)[::-1].copy(), edge_order=edge_order),
    ]  # fmt: skip
    check(calls, 1e-11)


def test_areas():
    check([
        lambda m: m.trapezoid(A), lambda m: m.trapezoid(A, axis=0), lambda m: m.trapezoid(A, S[:5]),
        lambda m: m.trapezoid(A, np.sort(A, 0), axis=0), lambda m: m.trapezoid(A, dx=0.5), lambda m: m.trapezoid(A, dx=S[:4]),
        lambda m: m.trapezoid(np.zeros((3, 0))), lambda m: m.trapezoid(np.arange(4)), lambda m: m.trapezoid(A, S[:4], axis=0),
        lambda m: m.trapezoid(A[None], A), lambda m: m.trapezoid(np.arange(3, dtype=np.int8), dx=0.5),
    ])  # fmt: skip


def test_interpolation():
    steps = np.array([0, np.inf, np.inf, 1, 2, -np.inf, 3.0])
    check([
        lambda m: m.interp(PROBES, S, V), lambda m: m.interp(PROBES, S, V, 1.0, 2.0), lambda m: m.interp(PROBES, S, V + 1j),
        lambda m: m.interp(PROBES[:-2], V, S, period=1.5), lambda m: m.interp(PROBES[:-2], V, S, period=-1.5),
        lambda m: m.interp(np.array([0.5, 1, 2]), np.array([1.0]), np.array([2.0])), lambda m: m.interp(PROBES, S, steps),
        lambda m: m.interp(np.array([0, 1, 2.0]), np.array([0, 1, 1, 2.0]), np.array([1, 2, 3.0, 4])),
        lambda m: m.interp(1, np.array([0, 2]), np.array([0, 3])),
    ], 1e-11)  # fmt: skip
    prolonged = jnp.interp(np.array([-1.0, 3.0]), np.array([0.0, 1.0]), np.array([1.0, 3.0]), "extrapolate", "extrapolate")
    np.testing.assert_allclose(prolonged, [-1.0, 7.0])


def test_interpolation_between_close_points():
    x = np.exp(np.linspace(-90, -20, 300)).astype(np.float32)
    slopes = funcml.grad(lambda z: jnp.interp(z, z, jnp.ones_like(z)).sum())(x)
    assert np.isfinite(slopes).all()
    thin = np.array([0.0, 1e-18], np.float32)
    np.testing.assert_allclose(jnp.interp(np.float32(5e-19), thin, np.array([0.0, 2.0], np.float32)), 1.0, rtol=1e-6)


def test_unwrapped_angles():
    whole = RNG.integers(-20, 20, 30)
    check([
        lambda m: m.unwrap(np.cumsum(V * 3) % 6), lambda m: m.unwrap(A * 9, axis=0), lambda m: m.unwrap(whole, period=5),
        lambda m: m.unwrap(whole, period=4), lambda m: m.unwrap(A * 9, 4.0), lambda m: m.unwrap(A * 9, period=3.0),
        lambda m: m.unwrap(np.zeros((2, 0))), lambda m: m.unwrap(np.array([0.0, np.pi, 0.0])),
    ])  # fmt: skip


@pytest.mark.parametrize("fn, args", [
    (lambda a: jnp.diff(a, 2, prepend=1.0), (A,)),
    (lambda a, s: jnp.gradient(a, s, axis=1), (A, S[:5])),
    (lambda y, x: jnp.trapezoid(y * y, x), (A, S[:5])),
    (lambda x, xp, fp: jnp.interp(x, xp, fp), (np.array([-0.9, 0.1, 0.4]), S, V)),
    (lambda p: jnp.unwrap(p * p * 4, period=3.0), (A,)),
], ids=["diff", "gradient", "trapezoid", "interp", "unwrap"])  # fmt: skip
def test_products(fn, args):
    check_products(fn, *args)


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.diff(3.0), ValueError, r"diff expects at least one dimension, got f32\[\]"),
    (lambda: jnp.diff(V, -1), ValueError, "order must be non-negative"),
    (lambda: jnp.ediff1d(np.array([True])), TypeError, r"expects numbers, got bool\[1\]; use diff"),
    (lambda: jnp.gradient(np.zeros(1)), ValueError, r"f64\[1\]: at least 2 samples are needed along axis 0"),
    (lambda: jnp.gradient(A, 1.0, 2.0, 3.0), TypeError, "one for each of the axes"),
    (lambda: jnp.gradient(V, S[:3]), ValueError, r"a number or 7 coordinates, got f64\[3\]"),
    (lambda: jnp.gradient(V, edge_order=3), ValueError, "edge_order must be 1 or 2, got 3"),
    (lambda: jnp.trapezoid(A, S), ValueError, r"x f64\[7\] must have the length of axis 1 of y f64\[4,5\]"),
    (lambda: jnp.interp(V, S, S[:3]), ValueError, r"got f64\[7\] and f64\[3\]"),
    (lambda: jnp.interp(V * 1j, S, S), ValueError, "expects real numbers"),
    (lambda: jnp.interp(V, S, S, left="flat"), ValueError, "the only word for left is 'extrapolate'"),
    (lambda: jnp.interp(V, S, S, period=S), ValueError, r"period must be a number, got f64\[7\]"),
    (lambda: jnp.unwrap(V * 1j), ValueError, r"real numbers, got c128\[7\]"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
