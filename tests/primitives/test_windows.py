"""Pooling against patches in NumPy, under every transform; ties, holes, long windows, dtypes and errors."""

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes, lax
from funcml import numpy as jnp
from funcml.core.avals import shaped
from funcml.core.tracing import trace
from funcml.lowering import pjrt
from funcml.lowering.emit import to_stablehlo
from funcml.primitives.patches import Window
from funcml.primitives.windows import reduce_window_max, reduce_window_min, reduce_window_sum
from tests.products import check_products

RNG = np.random.default_rng(0)
FOLDS = {
    "sum": (reduce_window_sum, np.sum, 0.0),
    "max": (reduce_window_max, np.max, -np.inf),
    "min": (reduce_window_min, np.min, np.inf),
}
WINDOWS = {
    "plain": Window((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
    "strides and padding": Window((2, 3), (2, 1), ((1, 0), (2, 1)), (1, 1), (1, 1)),
    "every dilation, negative padding": Window((2, 2), (1, 2), ((-1, 2), (3, -2)), (2, 3), (2, 1)),
    "more than a few elements": Window((5, 9), (2, 1), ((1, 1), (4, 4)), (1, 1), (1, 1)),
}


def reference(x, window, fold, neutral):
    """Each window by itself."""
    spread = np.full([(n - 1) * d + 1 for n, d in zip(x.shape, window.base_dilation)], neutral, x.dtype)
    spread[tuple([slice(None, None, d) for d in window.base_dilation])] = x
    for axis, (low, high) in enumerate(window.padding):
        width = [(0, 0)] * x.ndim
        width[axis] = (max(low, 0), max(high, 0))
        spread = np.pad(spread, width, constant_values=neutral)
        spread = spread.take(range(max(-low, 0), spread.shape[axis] - max(-high, 0)), axis)
    out = np.empty(window.result_shape(x.shape), x.dtype)
    for place in np.ndindex(out.shape):
        moves = zip(place, window.strides, window.dimensions, window.window_dilation)
        out[place] = fold(spread[tuple([slice(v * s, v * s + (k - 1) * d + 1, d) for v, s, k, d in moves])])
    return out


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_under_every_transform(window, name):
    reduce, fold, neutral = FOLDS[name]
    x = RNG.permutation(30).reshape(5, 6) / 10.0
    np.testing.assert_allclose(reduce(x, window), reference(x, window, fold, neutral), rtol=1e-12)
    found = np.isfinite(reference(x, window, fold, neutral))
    check_products(lambda x: jnp.where(found, reduce(x, window), 0), x, order=2 if name == "max" and window.size < 9 else 1)


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("length, stride, dilation, padding", [
    (37, 1, 1, (0, 0)), (64, 3, 1, (5, 70)), (45, 2, 3, (-2, 40)), (40, 30, 1, (0, 0)), (100, 25, 1, (90, 90)),
])  # fmt: skip
def test_long_windows(length, stride, dilation, padding, name):
    reduce, fold, neutral = FOLDS[name]
    window = Window((1, length, 2), (1, stride, 1), ((0, 0), padding, (0, 0)), (1, 2, 1), (1, dilation, 1))
    x = RNG.normal(size=(2, 75, 3))
    np.testing.assert_allclose(reduce(x, window), reference(x, window, fold, neutral), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_another_platform_gets_the_operation_itself(window):
    x = RNG.normal(size=(5, 6))
    jaxpr, _ = trace(lambda x: [reduce(x, window) for reduce, _, _ in FOLDS.values()], [shaped(x.shape, x.dtype)])
    text = to_stablehlo(jaxpr, platform="cuda")
    assert text.count("stablehlo.reduce_window") == 3
    executable = pjrt.compile(text, [(a.shape, a.dtype) for a in jaxpr.out_avals], pjrt.default_device())
    for y, (_, fold, neutral) in zip(executable.run([pjrt.put(x)]), FOLDS.values()):
        np.testing.assert_allclose(np.asarray(y), reference(x, window, fold, neutral), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint8", "int64", "complex64"])
def test_sum_of_dtypes(dtype):
    dtype = dtypes.canonical(dtype)
    x = np.arange(6).astype(dtype)
    found = reduce_window_sum(x, Window((3,), (1,), ((1, 1),), (1,), (1,)))
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found).astype("c8"), [1, 3, 6, 9, 12, 9])


def test_short_floats_are_summed_in_f32():
    x = np.full(20, 1.0078125).astype(dtypes.bfloat16)
    found = reduce_window_sum(x, Window((20,), (1,), ((0, 0),), (1,), (1,)))
    assert float(found[0]) == float(np.float32(20 * 1.0078125).astype(dtypes.bfloat16))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "float32"])
def test_a_window_of_nothing_gives_the_extreme_of_the_dtype(dtype):
    dtype = dtypes.canonical(dtype)
    window = Window((2,), (3,), ((3, 1),), (1,), (1,))
    x = np.array([1, 0, 1, 1]).astype(dtype)
    least, greatest = (False, True) if dtypes.is_bool(dtype) else (-np.inf, np.inf)
    if dtypes.is_integer(dtype):
        least, greatest = dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
    np.testing.assert_array_equal(np.asarray(reduce_window_max(x, window)), np.array([least, 1, 1]).astype(dtype))
    np.testing.assert_array_equal(np.asarray(reduce_window_min(x, window)), np.array([greatest, 0, 1]).astype(dtype))


def test_nan_is_kept():
    x = np.array([1.0, np.nan, 2.0, 3.0])
    window = Window((2,), (1,), ((0, 0),), (1,), (1,))
    np.testing.assert_array_equal(reduce_window_max(x, window), [np.nan, np.nan, 3])
    np.testing.assert_array_equal(reduce_window_min(x, window), [np.nan, np.nan, 2])


@pytest.mark.parametrize("length", [3, 40])
def test_ties_share_and_holes_take_nothing(length):
    window = Window((length,), (length,), ((2, length - 2),), (1,), (1,))
    x = np.full(length, -np.inf)
    dx = fm.grad(lambda x: reduce_window_max(x, window).sum())(x)
    np.testing.assert_allclose(dx, [1 / (length - 2)] * (length - 2) + [0.5] * 2)


def test_a_window_of_nothing_has_no_derivative():
    window, x = Window((2,), (3,), ((3, 0),), (1,), (1,)), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(fm.grad(lambda x: reduce_window_max(x, window).sum())(x), [0, 1, 0])
    np.testing.assert_array_equal(fm.jacfwd(lambda x: reduce_window_min(x, window)[0])(x), [0, 0, 0])


@pytest.mark.parametrize("shape, count", [((0, 3), (2, 2)), ((1, 3), (3, 2)), ((4, 1), (6, 0))])
@pytest.mark.parametrize("name", FOLDS)
def test_empty(shape, count, name):
    reduce, _, neutral = FOLDS[name]
    window = Window((1, 2), (1, 1), ((1, 1), (0, 0)), (1, 1), (1, 1))
    x = np.ones(shape)
    out, pullback = fm.vjp(lambda x: reduce(x, window), x)
    assert out.shape == count
    dx = pullback(np.ones(count))[0]
    total = 0 if 0 in (*shape, *count) else 4 if name == "sum" else 2
    assert dx.shape == shape and np.asarray(dx).sum() == total
    assert not x.size or neutral in np.asarray(out) or 0 in count


X = np.ones((3, 4), np.float32)


@pytest.mark.parametrize("call, error, sentence", [
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2,), padding=((0, 0),) * 2), TypeError, "must have 2 values"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2,), padding="SAME"), ValueError, "each of the 2 axes"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 0)), TypeError, "dimensions must have every element be positive"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), (0, 1)), TypeError, "strides must have every element be positive"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (1, 1), None, ((-2, -2), (0, 0))), TypeError, "takes away more than"),
    (lambda: reduce_window_sum(X > 0, WINDOWS["plain"]), TypeError, "expects numbers, got bool[3,4]"),
    (lambda: reduce_window_max(X + 0j, WINDOWS["plain"]), TypeError, "expects real numbers or bool, got c64[3,4]"),
])  # fmt: skip
def test_errors(call, error, sentence):
    with pytest.raises(error) as caught:
        call()
    assert sentence in str(caught.value)
