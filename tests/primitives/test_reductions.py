"""Reductions, argmax and running reductions against NumPy, under the transforms, at zeros, ties and infinities."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import funcml as fm
from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.tracing import trace
from funcml.lowering import pjrt
from funcml.lowering.array import asarray
from funcml.lowering.emit import to_stablehlo
from funcml.primitives.axes import reduce_or, reduce_sum
from funcml.primitives.elementwise import mul
from funcml.primitives.reductions import (
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    linear_recurrence,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_xor,
)
from tests.products import check_products

inf, nan = np.inf, np.nan
REAL = [np.float32, np.float64, np.float16, dtypes.bfloat16, np.int8, np.int32, np.uint8, np.uint64]


def equal(found, want, **tolerance):
    found, want = np.asarray(found), np.asarray(want)
    assert found.shape == want.shape
    np.testing.assert_allclose(found.astype(want.dtype), want, **tolerance)


# ---- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*REAL, np.complex64, np.complex128], ids=str)
def test_values_are_numpys(dtype, rng):
    x = rng.integers(1, 4, (2, 3, 4)).astype(dtype)
    if dtypes.is_complex(x.dtype):
        x = x + (1j * rng.integers(-2, 2, x.shape)).astype(dtype)
    wide = x if dtypes.is_complex(x.dtype) else x.astype(np.float64 if dtypes.is_float(x.dtype) else np.int64)
    axes = [(0,), (1, 2), (-1, 0), (0, 1, 2), ()]

    @fm.jit
    def reduced(x):
        return [[f(x, a) for a in axes] for f in (reduce_prod, reduce_max, reduce_min)]

    for found, want in zip(reduced(x), (np.prod, np.max, np.min), strict=True):
        for y, a in zip(found, axes, strict=True):
            assert y.dtype == dtype
            with np.errstate(over="ignore"):
                equal(y, want(wide, axis=a).astype(dtype), rtol=1e-2)


@pytest.mark.parametrize("dtype", [*REAL, np.bool_], ids=str)
def test_indices_and_running_extremes_are_numpys(dtype, rng):
    x = rng.integers(0, 2 if dtype is np.bool_ else 5, (2, 3, 4)).astype(dtype)

    @fm.jit
    def found(x):
        return (
            [[f(x, a) for a in (0, 1, -1)] for f in (argmax, argmin)],
            [[f(x, a, r) for a in (0, 1, -1) for r in (False, True)] for f in (cummax, cummin)],
        )

    indices, running = found(x)
    for ys, want in zip(indices, (np.argmax, np.argmin), strict=True):
        for y, a in zip(ys, (0, 1, -1), strict=True):
            assert y.dtype == np.int32
            equal(y, want(x.astype(np.float64), a))
    for ys, want in zip(running, (np.maximum, np.minimum), strict=True):
        for y, (a, r) in zip(ys, [(a, r) for a in (0, 1, -1) for r in (False, True)], strict=True):
            turned = np.flip(x, a) if r else x
            whole = want.accumulate(turned, a)
            assert y.dtype == dtype
            np.testing.assert_array_equal(np.asarray(y), np.flip(whole, a) if r else whole)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, dtypes.bfloat16, np.complex64, np.int32, np.uint8], ids=str
)
def test_running_sums_and_products_are_numpys(dtype, rng):
    x = rng.integers(1, 3, (3, 5, 2)).astype(dtype)
    cases = [(a, r) for a in (0, 1, 2) for r in (False, True)]

    @fm.jit
    def found(x):
        return [[f(x, a, r) for a, r in cases] for f in (cumsum, cumprod)]

    for ys, want in zip(found(x), (np.cumsum, np.cumprod), strict=True):
        for y, (a, r) in zip(ys, cases, strict=True):
            turned = np.flip(x, a) if r else x
            whole = want(turned, axis=a, dtype=dtype)
            assert y.dtype == dtype
            np.testing.assert_array_equal(np.asarray(y), np.flip(whole, a) if r else whole)


def test_bits_and_bools():
    x = np.array([[0b1100, 0b1010], [0b0111, -1]], np.int32)
    flags = np.array([[True, False, True], [True, True, True]])
    np.testing.assert_array_equal(reduce_and(x, (0,)), np.bitwise_and.reduce(x))
    np.testing.assert_array_equal(reduce_or(x, (0,)), np.bitwise_or.reduce(x))
    np.testing.assert_array_equal(reduce_xor(x, (0,)), np.bitwise_xor.reduce(x))
    np.testing.assert_array_equal(reduce_and(flags, (1,)), flags.all(1))
    np.testing.assert_array_equal(reduce_xor(flags, (0,)), np.logical_xor.reduce(flags))
    np.testing.assert_array_equal(reduce_max(flags, (0,)), flags.any(0))
    np.testing.assert_array_equal(reduce_min(flags, (0,)), flags.all(0))
    assert int(reduce_and(np.zeros((0,), np.uint8), (0,))) == 255


def test_empty_axes_give_the_neutral_element():
    empty = np.zeros((0, 2), np.float32)
    equal(reduce_prod(empty, (0,)), [1, 1])
    equal(reduce_max(empty, (0,)), [-inf, -inf])
    equal(reduce_min(empty, (0,)), [inf, inf])
    equal(reduce_max(empty.astype(np.int8), (0,)), [-128, -128])
    equal(reduce_min(empty.astype(np.uint8), (0,)), [255, 255])
    assert reduce_max(empty, (1,)).shape == (0,)
    for f in (cumsum, cumprod, cummax, cummin, cumlogsumexp):
        assert f(empty).shape == (0, 2) and f(empty, 1).shape == (0, 2)
        equal(f(np.full((1, 1), 3.0, np.float32), 1), [[3]])
    equal(fm.jacrev(lambda x: cumprod(x))(np.zeros((0,))), np.zeros((0, 0)))
    equal(fm.grad(lambda x: reduce_prod(x, (0,)))(np.zeros((0,))), np.zeros((0,)))


def test_nan_and_infinities():
    x = np.array([[1, nan, 3, nan], [-inf, -inf, -inf, -inf], [inf, 1, inf, nan], [-0.0, 0.0, -0.0, 0.0]])
    for f, want in ((argmax, np.argmax), (argmin, np.argmin)):
        equal(f(x, 1), want(x, 1))
        equal(f(x, 0), want(x, 0))
    for f, want in ((reduce_max, np.max), (reduce_min, np.min), (reduce_prod, np.prod)):
        with np.errstate(invalid="ignore"):
            equal(f(x, (1,)), want(x, 1))
    for f, want in ((cummax, np.maximum), (cummin, np.minimum)):
        equal(f(x, 1), want.accumulate(x, 1))
    z = np.array([complex(1, nan), 5, complex(2, 3), complex(2, 9), complex(2, -1)])
    assert complex(reduce_max(z[2:], (0,))) == 2 + 9j and complex(reduce_min(z[1:], (0,))) == 2 - 1j
    assert np.isnan(complex(reduce_max(z, (0,))))


def test_index_dtypes():
    assert argmax(np.arange(3.0), 0, np.int64).dtype == np.int64
    assert int(argmin(np.arange(200.0)[::-1], 0, np.uint8)) == 199


def test_cumlogsumexp_is_logsumexp_of_each_prefix(rng):
    x = np.concatenate([rng.normal(size=5) * 300, [-inf, 800.0, -800.0], rng.normal(size=3)])
    want = [logsumexp(x[: k + 1]) for k in range(len(x))]
    equal(cumlogsumexp(x), want, rtol=1e-14)
    equal(cumlogsumexp(x, reverse=True), [logsumexp(x[k:]) for k in range(len(x))], rtol=1e-14)
    with np.errstate(invalid="ignore"):
        equal(cumlogsumexp(np.array([-inf, -inf, 0, inf, 1, nan])), [-inf, -inf, 0, inf, inf, nan])
    for dtype in (np.float16, dtypes.bfloat16, np.float32):
        y = x[-3:].astype(dtype)
        equal(cumlogsumexp(y), [logsumexp(y[: k + 1].astype(float)) for k in range(3)], rtol=2e-2, atol=1e-2)


def recurrence(a, b, axis=0, reverse=False):
    """The oracle of `linear_recurrence`, one step after another."""
    a, b = (np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0) for v in (a, b))
    h = b.copy()
    for k in range(1, len(b)):
        h[k] = a[k] * h[k - 1] + b[k]
    h = np.moveaxis(h, 0, axis)
    return np.flip(h, axis) if reverse else h


def test_linear_recurrence(rng):
    a, b = rng.normal(size=(3, 7)), rng.normal(size=(3, 7))
    for axis in (0, 1):
        for reverse in (False, True):
            equal(linear_recurrence(a, b, axis, reverse), recurrence(a, b, axis, reverse), rtol=1e-12)
    equal(linear_recurrence(np.array([inf, 0.0, 2.0]), np.array([1.0, 2.0, 3.0])), [1, 2, 7])


@pytest.mark.parametrize("n", [2, 13])
def test_the_tree_that_other_platforms_use(n, rng):
    """The same operations written for a GPU: they run on this machine too."""
    x, a = rng.normal(size=(2, n)), rng.normal(size=(2, n))
    avals = [shaped(x.shape, x.dtype)] * 2

    def everything(x, a):
        forward = [f(x, 1) for f in (cumsum, cumprod, cummax, cummin, cumlogsumexp)]
        return [*forward, cumsum(x, 1, reverse=True), *[linear_recurrence(a, x, 1, r) for r in (False, True)]]

    jaxpr, _ = trace(everything, avals)
    text = to_stablehlo(jaxpr, platform="gpu")
    assert "while" not in text
    executable = pjrt.compile(text, [(v.aval.shape, v.aval.dtype) for v in jaxpr.outs], pjrt.default_device())
    found = executable.run([asarray(x)._buffer, asarray(a)._buffer])
    for y, z in zip(found, everything(x, a), strict=True):
        equal(np.asarray(y), z, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 2**17), (4096,)])
def test_long_axes(shape, rng):
    x = rng.normal(size=shape).astype(np.float32)
    equal(cumsum(x, -1), np.cumsum(x, -1, dtype=np.float64), rtol=1e-3, atol=1e-2)
    equal(cummax(x, -1), np.maximum.accumulate(x, -1))


# ---- derivatives -------------------------------------------------------------------------------------------


def test_products_of_reductions(rng):
    x = rng.normal(size=(2, 3, 2)) + 2

    def reductions(x):
        return [
            reduce_prod(x, (1,)),
            reduce_prod(mul(x, x), (0, 2)),
            reduce_max(mul(x, x), (1,)),
            reduce_min(mul(x, x), (0, -1)),
        ]

    check_products(reductions, x)


def test_products_of_running_reductions(rng):
    x = rng.normal(size=(2, 4)) + 0.5

    def running(x):
        y = mul(x, x)
        return [
            mul(cumsum(y, 0), x),
            cumprod(y, 1),
            cumprod(x, 1, reverse=True),
            cummax(y, 1),
            cummin(y, 1, reverse=True),
            cumlogsumexp(y, 1),
            cumlogsumexp(x, 0, reverse=True),
        ]

    check_products(running, x)


def test_products_of_the_recurrence(rng):
    a, b = rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    check_products(
        lambda a, b: [linear_recurrence(a, b, 1), linear_recurrence(b, mul(a, b), 0, reverse=True)], a, b
    )


def test_products_of_complex(rng):
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    check_products(lambda z: [reduce_prod(z, (1,)), cumprod(z, 1), cumsum(mul(z, z), 0)], z)


def test_products_of_what_has_no_derivative(rng):
    x = rng.integers(0, 9, (3, 4))
    check_products(
        lambda x: [argmax(x, 1), argmin(x, 0), reduce_and(x, (0,)), reduce_xor(x, (1,)), cumsum(x, 1)], x
    )
    found = fm.jvp(lambda x: (argmax(x, 0), mul(x, x)), (np.arange(3.0),), (np.ones(3),))[1]
    assert found[0].dtype == dtypes.float0 and found[1].dtype == np.float64


def product_gradient(x):
    return np.array([np.prod(np.delete(x, i)) for i in range(len(x))])


@pytest.mark.parametrize("x", [[0, 2], [4, 0], [0, 0, 2], [0, 0, 0], [3, 0, 5, -2], [1e-200, 1e-200, 1e300]])
def test_the_gradient_of_a_product_has_no_division(x):
    x = np.array(x, np.float64)
    product = lambda v: reduce_prod(v, (0,))
    equal(fm.grad(product)(x), product_gradient(x), rtol=1e-14)
    equal(fm.jacfwd(product)(x), product_gradient(x), rtol=1e-14)


def test_the_gradient_of_a_product_of_infinities():
    for x in ([inf, 2.0, 3.0], [0.0, inf, 1.0], [inf, -inf, -1.0]):
        with np.errstate(invalid="ignore"):
            want = product_gradient(np.array(x))
        equal(fm.grad(lambda v: reduce_prod(v, (0,)))(np.array(x)), want)


def test_the_hessian_of_a_product_at_zeros():
    hessian = fm.hessian(lambda v: reduce_prod(v, (0,)))
    equal(hessian(np.array([0.0, 0.0, 2.0])), [[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    x = np.array([3.0, 0.0, 2.0, 5.0])
    want = [[0 if i == j else np.prod(np.delete(x, [i, j])) for j in range(4)] for i in range(4)]
    for outer in (fm.jacfwd, fm.jacrev):
        for inner in (fm.jacfwd, fm.jacrev):
            equal(outer(inner(lambda v: reduce_prod(v, (0,))))(x), want)


@pytest.mark.parametrize(
    ("x", "want"), [([0, 2, 3], [9, 0, 0]), ([2, 3, 0], [4, 2, 6]), ([2, 0, 0, 3], [1, 2, 0, 0])]
)
def test_the_gradient_of_a_running_product_at_zeros(x, want):
    total = lambda v: reduce_sum(cumprod(v), (0,))
    x = np.array(x, np.float64)
    equal(fm.grad(total)(x), want)
    equal(fm.jacfwd(total)(x), want)
    second = fm.hessian(total)(x)
    at = fm.vmap(fm.grad(total))(np.concatenate([x + 1e-4 * np.eye(len(x)), x - 1e-4 * np.eye(len(x))]))
    ahead, behind = np.split(np.asarray(at), 2)
    equal(second, (ahead - behind) / 2e-4, rtol=1e-6, atol=1e-6)


def test_ties_share_the_derivative():
    x = np.array([2.0, 2.0, 1.0, 2.0])
    equal(fm.grad(lambda v: reduce_max(v, (0,)))(x), [1 / 3, 1 / 3, 0, 1 / 3])
    equal(fm.grad(lambda v: reduce_min(v, (0,)))(-x), [1 / 3, 1 / 3, 0, 1 / 3])
    equal(fm.jacfwd(lambda v: reduce_max(v, (0,)))(x), [1 / 3, 1 / 3, 0, 1 / 3])
    equal(fm.hessian(lambda v: reduce_max(v, (0,)))(x), np.zeros((4, 4)))
    want = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [1 / 3, 1 / 3, 0, 1 / 3]]
    equal(fm.jacrev(cummax)(x), want)
    equal(fm.jacfwd(cummin)(-x), want)
    reverse = fm.jacrev(lambda v: cummax(v, reverse=True))(x)
    equal(reverse, [[1 / 3, 1 / 3, 0, 1 / 3], [0, 0.5, 0, 0.5], [0, 0, 0, 1], [0, 0, 0, 1]])


def test_many_ties_in_a_narrow_dtype():
    """The count of ties is an integer: bfloat16 does not count beyond 256."""
    x = np.zeros(1024, dtypes.bfloat16)
    equal(fm.grad(lambda v: reduce_max(v, (0,)))(x), np.full(1024, 2.0**-10))


def test_infinite_extremes():
    x = np.array([inf, 1.0, inf, -inf])
    equal(fm.grad(lambda v: reduce_max(v, (0,)))(x), [0.5, 0, 0.5, 0])
    equal(fm.grad(lambda v: reduce_min(v, (0,)))(x), [0, 0, 0, 1])
    equal(fm.jacrev(cummax)(x), [[1, 0, 0, 0], [1, 0, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0, 0.5, 0]])


def test_the_derivative_of_cumlogsumexp_is_a_softmax():
    for x in ([1.0, -2.0, 3.0, 0.5], [800.0, -800.0, 799.0, 800.0], [-inf, 1.0, -inf, 2.0]):
        x = np.array(x)
        want = np.zeros((4, 4))
        for k in range(4):
            want[k, : k + 1] = softmax(x[: k + 1]) if np.isfinite(x[: k + 1]).any() else [1.0]
        equal(fm.jacrev(cumlogsumexp)(x), want, rtol=1e-12)
        equal(fm.jacfwd(cumlogsumexp)(x), want, rtol=1e-12)
        assert np.isfinite(fm.hessian(lambda v: reduce_sum(cumlogsumexp(v), (0,)))(x[np.isfinite(x)])).all()
    equal(fm.jacrev(cumlogsumexp)(np.array([-inf, -inf, inf])), [[1, 0, 0], [0, 1, 0], [0, 0, 1]])


# ---- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda x: reduce_max(x, (2,)),
            ValueError,
            r"reduce_max of f32\[2,3\]: expected an axis from -2 to 1, got 2",
        ),
        (lambda x: reduce_prod(x, (0, 0)), ValueError, r"distinct axes, got \(0, 0\)"),
        (lambda x: reduce_prod(x > 0, (0,)), TypeError, r"reduce_prod expects numbers, got bool\[2,3\]"),
        (lambda x: reduce_and(x, (0,)), TypeError, r"reduce_and expects integers or bool, got f32\[2,3\]"),
        (lambda x: argmax(x, 3), ValueError, "expected an axis from -2 to 1, got 3"),
        (lambda x: argmax(x[:0], 0), ValueError, "axis 0 of .* is empty"),
        (lambda x: argmax(x + 1j, 0), TypeError, r"real numbers or bool, got c64\[2,3\]"),
        (lambda x: argmin(x, 0, np.float32), TypeError, "index_dtype must be an integer type"),
        (lambda x: argmin(np.zeros(300), 0, np.int8), TypeError, "holds indices up to 299, got int8"),
        (lambda x: cumsum(x > 0), TypeError, r"cumsum expects numbers, got bool\[2,3\]"),
        (lambda x: cumsum(x, 2), ValueError, "expected an axis from -2 to 1, got 2"),
        (lambda x: cummax(x + 1j), TypeError, "real numbers or bool"),
        (lambda x: cumlogsumexp(np.ones((2, 3), int)), TypeError, "expects floats"),
        (lambda x: linear_recurrence(x, x[:1]), TypeError, r"one type, got f32\[2,3\], f32\[1,3\]"),
        (lambda x: cumsum(np.float32(1)), ValueError, "no axis"),
    ],
)
def test_errors_say_what_came_and_what_was_expected(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones((2, 3), np.float32))
