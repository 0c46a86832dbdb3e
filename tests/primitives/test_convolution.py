"""Convolution against a loop in NumPy, under every transform; groups, layouts, dtypes, empty operands and errors."""

import itertools

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes
from funcml.lax import conv_general_dilated
from funcml.primitives.convolution import ConvDimensionNumbers
from tests.products import check_products

RNG = np.random.default_rng(0)


def reference(x, w, strides, padding, base, dilation, feature_groups, batch_groups):
    """[N, C, W..] and [O, C/G, K..] to [N, O, V..], an output at a time."""
    spatial = x.ndim - 2
    spread = np.zeros((*x.shape[:2], *[(n - 1) * d + 1 for n, d in zip(x.shape[2:], base)]), x.dtype)
    spread[(..., *[slice(None, None, d) for d in base])] = x
    for axis, (low, high) in enumerate(padding, 2):
        width = [(0, 0)] * x.ndim
        width[axis] = (max(low, 0), max(high, 0))
        spread = np.pad(spread, width)
        spread = spread.take(range(max(-low, 0), spread.shape[axis] - max(-high, 0)), axis)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    counts = [(n - r) // s + 1 for n, r, s in zip(spread.shape[2:], reach, strides)]
    n, o, i = x.shape[0] // batch_groups, w.shape[0], w.shape[1]
    out = np.zeros((n, o, *counts), x.dtype)
    for feature, place in itertools.product(range(o), itertools.product(*map(range, counts))):
        window = tuple([slice(v * s, v * s + r, d) for v, s, r, d in zip(place, strides, reach, dilation)])
        batch = feature // (o // batch_groups) * n
        channel = feature // (o // feature_groups) * i
        patch = spread[(slice(batch, batch + n), slice(channel, channel + i), *window)]
        out[(slice(None), feature, *place)] = (patch * w[feature]).sum(tuple(range(1, spatial + 2)))
    return out


WINDOWS = {
    "plain": ((1,), ((0, 0),), (1,), (1,)),
    "strides and padding": ((2,), ((2, 1),), (1,), (1,)),
    "negative padding, lhs dilation": ((2,), ((-1, 3),), (3,), (1,)),
    "rhs dilation, a rest that no window covers": ((3,), ((1, 0),), (1,), (2,)),
}


@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (1, 2)], ids=["one group", "feature groups", "batch groups"])
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_one_axis_under_every_transform(window, groups):
    strides, padding, base, dilation = window
    x, w = RNG.normal(size=(2, 4, 7)), RNG.normal(size=(4, 4 // groups[0], 3))

    def f(x, w):
        return conv_general_dilated(x, w, strides, padding, base, dilation, None, *groups)

    np.testing.assert_allclose(f(x, w), reference(x, w, *window, *groups), rtol=1e-12, atol=1e-12)
    check_products(f, x, w, order=2 if base != (1,) else 1)


LAYOUTS = [
    ("NCHW", "OIHW", "NCHW"),
    ("NHWC", "HWIO", "NHWC"),
    ("HNWC", "WIHO", "CNWH"),
    (ConvDimensionNumbers((1, 2, 3, 0), (0, 1, 2, 3), (3, 0, 1, 2))),
]


@pytest.mark.parametrize("numbers", LAYOUTS)
def test_layouts_and_their_derivatives(numbers):
    window = ((2, 1), ((1, 0), (0, 2)), (1, 2), (1, 2))
    x, w = RNG.normal(size=(2, 3, 5, 4)), RNG.normal(size=(2, 3, 3, 2))
    specs = numbers if isinstance(numbers, ConvDimensionNumbers) else fm.lax.conv_dimension_numbers(x.shape, w.shape, numbers)
    x_given, w_given = (np.moveaxis(a, range(4), spec) for a, spec in zip((x, w), specs))

    def f(x, w):
        return conv_general_dilated(x, w, *window, numbers)

    found = np.moveaxis(np.asarray(f(x_given, w_given)), specs.out_spec, range(4))
    np.testing.assert_allclose(found, reference(x, w, *window, 1, 1), rtol=1e-12, atol=1e-12)
    check_products(f, x_given, w_given, order=1)


def test_no_spatial_axis_is_a_matrix_product():
    x, w = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 4))
    np.testing.assert_allclose(conv_general_dilated(x, w, (), ()), x @ w.T, rtol=1e-12)
    check_products(lambda x, w: conv_general_dilated(x, w, (), ()), x, w, order=1)


@pytest.mark.parametrize("groups", [(3, 1), (1, 2)], ids=["feature groups", "batch groups"])
def test_nested_vmap_of_groups(groups):
    x, w = RNG.normal(size=(2, 3, 2, 3, 5)), RNG.normal(size=(2, 6, 3 // groups[0], 2))

    def f(x, w):
        return conv_general_dilated(x, w, (1,), "SAME", feature_group_count=groups[0], batch_group_count=groups[1])

    found = fm.vmap(fm.vmap(f, (0, None)), (0, 0))(x, w)
    for i, j in itertools.product(range(2), range(3)):
        np.testing.assert_allclose(found[i, j], f(x[i, j], w[i]), rtol=1e-12, atol=1e-12)


def test_vmap_over_nothing():
    found = fm.vmap(lambda x, w: conv_general_dilated(x, w, (1,), "SAME"))(np.ones((0, 1, 2, 4)), np.ones((0, 3, 2, 3)))
    assert found.shape == (0, 1, 3, 4)


def test_vmap_has_no_loop():
    mapped = fm.vmap(lambda x, w: conv_general_dilated(x, w, (1,), "SAME"))
    text = str(fm.make_jaxpr(mapped)(np.ones((3, 1, 2, 4)), np.ones((3, 2, 2, 3))))
    assert text.count("conv_general_dilated") == 1 and "feature_group_count=3" in text


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "complex64", "complex128", "int8", "uint8", "int32", "int64"]
)
def test_dtypes(dtype):
    dtype = dtypes.canonical(dtype)
    whole = RNG.integers(-3, 4, (1, 2, 6)), RNG.integers(-3, 4, (3, 2, 3))
    x, w = (np.abs(a).astype(dtype) if dtypes.is_unsigned(dtype) else a.astype(dtype) for a in whole)
    if dtypes.is_complex(dtype):
        x, w = x * dtype.type(1 + 2j), w * dtype.type(2 - 1j)
    found = conv_general_dilated(x, w, (1,), "SAME")
    assert found.dtype == dtype
    wide = np.complex128 if dtypes.is_complex(dtype) else np.float64
    want = reference(x.astype(wide), w.astype(wide), (1,), ((1, 1),), (1,), (1,), 1, 1)
    np.testing.assert_array_equal(np.asarray(found).astype(wide), want)


@pytest.mark.parametrize(
    "dtype, preferred", [("int8", "int32"), ("bfloat16", "float32"), ("float32", "float64"), ("int8", "float32")]
)
def test_preferred_element_type(dtype, preferred):
    x, w = (np.full(shape, 3).astype(dtypes.canonical(dtype)) for shape in ((1, 50, 4), (1, 50, 3)))
    found = conv_general_dilated(x, w, (1,), "VALID", preferred_element_type=preferred)
    assert found.dtype == dtypes.canonical(preferred)
    np.testing.assert_array_equal(found, np.full((1, 1, 2), 1350))


def test_the_gradient_has_the_dtype_of_the_operand_not_of_the_result():
    x, w = (np.ones(shape, dtypes.bfloat16) for shape in ((1, 1, 4), (1, 1, 3)))

    def f(x, w):
        return conv_general_dilated(x, w, (1,), "VALID", preferred_element_type=np.float32).sum()

    dx, dw = fm.grad(f, (0, 1))(x, w)
    assert dx.dtype == dw.dtype == dtypes.bfloat16
    np.testing.assert_array_equal(np.asarray(dx, np.float32), [[[1, 2, 2, 1]]])


@pytest.mark.parametrize("x_shape, w_shape, shape", [
    ((0, 2, 4), (3, 2, 3), (0, 3, 2)),
    ((1, 0, 4), (3, 0, 3), (1, 3, 2)),
    ((1, 2, 4), (0, 2, 3), (1, 0, 2)),
    ((1, 2, 2), (3, 2, 3), (1, 3, 0)),
    ((1, 2, 0), (3, 2, 3), (1, 3, 0)),
])
def test_empty(x_shape, w_shape, shape):
    x, w = np.ones(x_shape), np.ones(w_shape)
    out, pullback = fm.vjp(lambda x, w: conv_general_dilated(x, w, (1,), "VALID"), x, w)
    assert out.shape == shape and not np.asarray(out).any()
    dx, dw = pullback(np.ones(shape))
    assert dx.shape == x_shape and dw.shape == w_shape and not np.asarray(dx).any() and not np.asarray(dw).any()


X, W = np.ones((1, 4, 5), np.float32), np.ones((6, 4, 3), np.float32)


@pytest.mark.parametrize("call, error, sentence", [
    (lambda: conv_general_dilated(X, W.astype("f8"), (1,), "SAME"), TypeError, "got f32[1,4,5] and f64[6,4,3]"),
    (lambda: conv_general_dilated(X > 0, W > 0, (1,), "SAME"), TypeError, "one numeric dtype"),
    (lambda: conv_general_dilated(X, W[0], (1,), "SAME"), TypeError, "lhs and rhs of one rank"),
    (lambda: conv_general_dilated(X, W, (1, 1), "VALID"), ValueError, "window and window_strides must have the same number"),
    (lambda: conv_general_dilated(X, W, (1, 1), "SAME"), ValueError, "window and window_strides must have the same number"),
    (lambda: conv_general_dilated(X, W, (0,), "VALID"), ValueError, "positive strides"),
    (lambda: conv_general_dilated(X, W, (1,), ((0, 0), (0, 0))), ValueError, "window padding must have 1 values"),
    (lambda: conv_general_dilated(X, W, (1,), ((-4, -4),)), ValueError, "takes more away from axis 2"),
    (lambda: conv_general_dilated(X, W, (1,), (1,)), ValueError, "padding argument must be a string or (low, high) pairs"),
    (lambda: conv_general_dilated(X, W, (1,), "SOME"), RuntimeError, "'VALID', 'SAME'"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", (2,)), ValueError, "use conv_transpose"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", feature_group_count=2), ValueError, "feature_group_count (2) times the 4"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", feature_group_count=0), ValueError, "must be positive"),
    (lambda: conv_general_dilated(X, W[:, :1], (1,), "SAME", feature_group_count=4), ValueError, "multiple of the group count 4"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", batch_group_count=2), ValueError, "multiple of batch_group_count (2)"),
    (lambda: conv_general_dilated(X, W[:, :2], (1,), "SAME", None, None, None, 2, 2), ValueError, "not both"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", preferred_element_type="float16"), TypeError, "not narrower"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", precision="F32_F32_F32"), ValueError, "a pair of levels"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", dimension_numbers=("NCW", "OIW", "NCH")), TypeError, "spatial letters"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", dimension_numbers=("NCW", "OIW")), TypeError, "three strings"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", dimension_numbers=("NNW", "OIW", "NCW")), TypeError, "distinct letters"),
    (lambda: conv_general_dilated(X, W, (1,), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")), TypeError, "of the 3 axes"),
])  # fmt: skip
def test_errors(call, error, sentence):
    with pytest.raises(error) as caught:
        call()
    assert sentence in str(caught.value)
