"""Arithmetic, complex parts, comparison, logic, choice and conversion against NumPy; derivatives at kinks; bad input."""

import warnings

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, reduce_sum
from funcml.primitives.powers import sqrt
from funcml.primitives.transcendental import exp, log
from tests.products import check_products

INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float32, np.float64, np.float16, dtypes.bfloat16]
COMPLEX = [np.complex64, np.complex128]
inf, nan = np.inf, np.nan
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, inf, -inf, nan, 1e-3, 100.0, -7.0, 2.0])


def pairs(values):
    """Every pair of the values, as two vectors."""
    x, y = np.meshgrid(values, values, indexing="ij")
    return x.ravel(), y.ravel()


def same(got, want):
    """Equality of values, nan to nan, -0 to -0."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype)
    if dtypes.is_inexact(got.dtype) and not dtypes.is_complex(got.dtype):
        got, want = got.astype(np.float64), want.astype(np.float64)
        equal = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    else:
        equal = got == want
        if dtypes.is_complex(got.dtype):
            equal |= np.isnan(got) & np.isnan(want)
    assert equal.all(), f"{got[~equal]} for {want[~equal]}"


def numpys(function, *xs):
    with np.errstate(all="ignore"):
        return function(*xs)


# ---- values


ARITHMETIC = {
    ew.add: np.add, ew.sub: np.subtract, ew.mul: np.multiply, ew.div: np.divide, ew.rem: np.fmod,
    ew.max: np.maximum, ew.min: np.minimum,
    ew.eq: np.equal, ew.ne: np.not_equal, ew.lt: np.less, ew.le: np.less_equal, ew.gt: np.greater, ew.ge: np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_binary_operations_of_floats_are_numpys(dtype):
    x, y = (v.astype(dtype) for v in pairs(EDGES))
    got = fm.jit(lambda x, y: [f(x, y) for f in ARITHMETIC])(x, y)
    for f, g, result in zip(ARITHMETIC, ARITHMETIC.values(), got, strict=True):
        want = numpys(g, x, y)
        if f in (ew.max, ew.min):  # which zero wins a tie is not fixed
            result, want = (np.where(np.asarray(v) == 0, np.zeros_like(v), np.asarray(v)) for v in (result, want))
        if f is ew.div and dtype is dtypes.bfloat16:
            want = numpys(np.divide, x.astype(np.float32), y.astype(np.float32)).astype(dtype)
        same(result, want)


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_binary_operations_of_integers_are_numpys(dtype):
    limits = np.iinfo(dtype)
    values = np.array([0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min, limits.min + 1], dtype)
    x, y = pairs(values)
    got = fm.jit(lambda x, y: [f(x, y) for f in ARITHMETIC])(x, y)
    fits = (y != 0) & ~((x == limits.min) & (y == dtype(-1 if limits.min else 0)))
    for f, g, result in zip(ARITHMETIC, ARITHMETIC.values(), got, strict=True):
        if f is ew.div:  # towards zero
            want = np.array([int(abs(int(a)) // abs(int(b))) * (1 if (a < 0) == (b < 0) else -1) if ok else 0
                             for a, b, ok in zip(x, y, fits, strict=True)], object)  # fmt: skip
            same(np.asarray(result)[fits], want[fits].astype(dtype))
        elif f is ew.rem:
            same(np.asarray(result)[fits], numpys(g, x, y)[fits])
        else:
            same(result, numpys(g, x, y))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_logic_of_integers_is_numpys(dtype):
    limits = np.iinfo(dtype)
    x, y = pairs(np.array([0, 1, 5, limits.max, limits.min], dtype))
    got = fm.jit(lambda x, y: [ew.and_(x, y), ew.or_(x, y), ew.xor(x, y), ew.not_(x), ew.neg(x), ew.abs(x), ew.sign(x)])(x, y)
    want = [x & y, x | y, x ^ y, ~x, numpys(np.negative, x), np.abs(x), np.sign(x)]
    for a, b in zip(got, want, strict=True):
        same(a, b)


def test_logic_and_order_of_bools_are_numpys():
    x, y = pairs(np.array([False, True]))
    got = fm.jit(
        lambda x, y: [ew.and_(x, y), ew.or_(x, y), ew.xor(x, y), ew.not_(x), ew.max(x, y), ew.min(x, y), ew.lt(x, y), ew.ge(x, y)]
    )(x, y)
    for a, b in zip(got, [x & y, x | y, x ^ y, ~x, x | y, x & y, x < y, x >= y], strict=True):
        same(a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_unary_operations_of_floats_are_numpys(dtype):
    x = np.concatenate([EDGES, [1.5, 2.5, -1.5, -0.4, 0.49]]).astype(dtype)
    wide = x.astype(np.float64)
    away = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
    away = np.where(np.abs(wide) == 0.49, 0, away)
    want = {
        ew.neg: -x, ew.abs: np.abs(x), ew.sign: np.copysign(np.sign(wide), wide).astype(dtype),
        ew.floor: np.floor(wide).astype(dtype),
        ew.ceil: np.ceil(wide).astype(dtype), ew.is_finite: np.isfinite(wide), ew.round: away.astype(dtype),
        _round_even: np.round(wide).astype(dtype),
    }  # fmt: skip
    for f, got, w in zip(want, fm.jit(lambda x: [g(x) for g in want])(x), want.values(), strict=True):
        if f is ew.sign:
            w = np.where(np.isnan(x), x, w)
        same(got, w)


def _round_even(x):
    return ew.round(x, ew.RoundingMethod.TO_NEAREST_EVEN)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_nextafter_is_numpys(dtype):
    tiny, big = np.finfo(dtype).tiny, np.finfo(dtype).max
    x, y = (v.astype(dtype) for v in pairs(np.array([1, -1, 1.5, big, -big, inf, -inf, tiny, nan])))
    same(fm.jit(ew.nextafter)(x, y), numpys(np.nextafter, x, y))


def test_total_order_places_nans_and_zeros():
    order = np.array([-nan, -inf, -1, -0.0, 0.0, 1, inf, nan], np.float32)
    order[0] = np.copysign(np.float32(nan), np.float32(-1))
    i, j = pairs(np.arange(len(order)))
    got = fm.jit(lambda x, y: [ew.eq_to(x, y), ew.lt_to(x, y), ew.le_to(x, y)])(order[i], order[j])
    for a, b in zip(got, [i == j, i < j, i <= j], strict=True):
        same(a, b)
    same(ew.lt_to(np.int32([1, 2]), np.int32([2, 1])), np.array([True, False]))


Z = np.array([0, 1 + 2j, -3 + 0j, complex(-3, -0.0), 3 - 4j, complex(inf, 1), complex(nan, inf), complex(1, nan), 1e-3j, -2 - 2j])


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex_operations_are_numpys(dtype):
    z, w = (v.astype(dtype) for v in pairs(Z))
    got = fm.jit(lambda z, w: [ew.real(z), ew.imag(z), ew.abs(z), ew.conj(z), ew.neg(z), ew.complex(ew.imag(z), ew.real(z)),
                               ew.eq(z, w), ew.ne(z, w), ew.add(z, w), ew.sub(z, w)])(z, w)  # fmt: skip
    want = [z.real, z.imag, np.abs(z), z.conj(), -z, z.imag + 0j, z == w, z != w, z + w, numpys(np.subtract, z, w)]
    want[5] = np.empty_like(z)
    want[5].real, want[5].imag = z.imag, z.real
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if k == 2:
            np.testing.assert_allclose(a, b, rtol=4 * np.finfo(dtype).eps)
        else:
            same(a, b)


def test_complex_max_and_min_order_by_real_then_imaginary_part():
    z, w = pairs(np.array([1 + 2j, 1 - 2j, 0, -1 + 5j, 2 - 9j, complex(nan, 0)]))
    same(ew.max(z, w), numpys(np.maximum, z, w))
    same(ew.min(z, w), numpys(np.minimum, z, w))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex_sign_is_the_direction_wherever_the_number_is(dtype):
    big, tiny = np.finfo(dtype).max, np.finfo(dtype).tiny
    z = np.array([0, 3 + 4j, big * (0.75 + 1j), tiny * (3 - 4j), complex(inf, 2), complex(2, -inf), -5, 2j, complex(nan, 1)])
    want = np.array([0, 0.6 + 0.8j, 0.6 + 0.8j, 0.6 - 0.8j, 1, -1j, -1, 1j, complex(nan, nan)])
    np.testing.assert_allclose(ew.sign(z.astype(dtype)), want, rtol=4 * np.finfo(dtype).eps, atol=1e-30)


def test_abs_of_complex_does_not_overflow():
    np.testing.assert_allclose(ew.abs(np.complex64([3e38 + 1e38j, 3e-38 + 4e-38j])), [np.hypot(3e38, 1e38), 5e-38], rtol=1e-6)


def test_empty_arrays_and_axes_of_length_one():
    for shape in ((0,), (3, 0), (1, 1)):
        x = np.zeros(shape)
        for f in (ew.add, ew.max, ew.lt):
            assert f(x, x).shape == shape
        assert ew.select(x > 0, x, x).shape == shape
        assert ew.clamp(0.0, x, 1.0).shape == shape


def test_scalars_take_the_dtype_of_the_array():
    for dtype in (np.float16, np.complex64, dtypes.bfloat16, np.int8):
        x = np.ones(2, dtype)
        assert ew.add(2, x).dtype == dtype and ew.mul(x, 3).dtype == dtype


# ---- selection


def test_select_and_clamp_are_numpys(rng):
    x, y = rng.normal(size=(2, 3, 4))
    which = rng.integers(0, 3, (3, 4)).astype(np.int32)
    same(ew.select_n(which, x, y, x + y), np.choose(which, [x, y, x + y]))
    same(ew.select_n(np.array(1, np.int32), x, y, x + y), y)
    same(ew.select(x > 0, x, y), np.where(x > 0, x, y))
    same(ew.select(np.True_, x, y), x)
    same(ew.clamp(-0.5, x, 0.5), np.clip(x, -0.5, 0.5))
    same(ew.clamp(np.minimum(y, 0), x, np.maximum(y, 0)), np.clip(x, np.minimum(y, 0), np.maximum(y, 0)))
    same(ew.clamp(np.array(-0.5), x, np.array(0.5)), np.clip(x, -0.5, 0.5))
    same(ew.clamp(0.0, np.array([nan]), 1.0), np.array([nan]))
    same(ew.clamp(2, np.arange(6, dtype=np.uint8), 4), np.clip(np.arange(6, dtype=np.uint8), 2, 4))


# ---- derivatives


def test_products_of_arithmetic(rng):
    x, y = rng.uniform(0.5, 2, (2, 2, 3))
    functions = [ew.add, ew.sub, ew.mul, ew.div]
    check_products(lambda x, y: [*[f(x, y) for f in functions], ew.neg(x), ew.div(2.0, ew.mul(y, y))], x, y)


def test_products_of_choice(rng):
    x, y = rng.permutation(np.linspace(-2, 2, 12)).reshape(2, 2, 3)
    which = rng.integers(0, 3, (2, 3)).astype(np.int32)
    cubes = lambda x: ew.mul(x, ew.mul(x, x))
    check_products(
        lambda x, y, which: [
            cubes(ew.max(x, y)), cubes(ew.min(x, y)), cubes(ew.max(x, 0.1)), cubes(ew.abs(x)), ew.mul(ew.sign(x), cubes(y)),
            cubes(ew.clamp(-0.7, x, 0.9)), cubes(ew.clamp(y, x, ew.add(y, 0.6))), cubes(ew.select(ew.gt(x, y), x, y)),
            ew.select_n(which, cubes(x), y, ew.mul(x, y)),
        ],
        x, y, which,
    )  # fmt: skip


def test_products_of_rounding_and_rem(rng):
    x, y = rng.uniform(2.1, 9.9, (2, 5)), rng.uniform(0.7, 1.9, (2, 5))
    check_products(
        lambda x, y: [
            *[ew.mul(f(x), y) for f in (ew.floor, ew.ceil, ew.round)], ew.rem(ew.mul(x, x), y), ew.rem(ew.neg(x), y),
        ],
        x, y,
    )  # fmt: skip
    check_products(ew.nextafter, x, y, products=("jit", "vmap", "vjp"))


def test_products_of_complex_parts(rng):
    z, w = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    check_products(
        lambda z, w: [
            ew.real(ew.mul(z, w)), ew.imag(ew.mul(z, w)), ew.conj(ew.mul(z, ew.conj(w))),
            ew.abs(ew.mul(z, w)), ew.sign(ew.mul(z, w)),
            ew.complex(ew.mul(ew.real(z), ew.imag(w)), ew.abs(z)), ew.div(z, w), ew.max(z, w),
        ],
        z, w,
    )  # fmt: skip


def test_products_of_conversion(rng):
    x, z = rng.normal(size=3), rng.normal(size=3) + 1j * rng.normal(size=3)
    square = lambda x: ew.mul(x, x)
    check_products(
        lambda x, z: [
            ew.convert(square(x), dtypes.complex128), ew.convert(square(z), dtypes.float64), ew.convert(x, dtypes.int32),
            ew.mul(x, ew.convert(ew.convert(x, dtypes.int32), dtypes.float64)), ew.convert(square(x), dtypes.float64),
        ],
        x, z,
    )  # fmt: skip


def test_ties_share_the_derivative():
    x = np.zeros(3)
    for f in (ew.max, ew.min):
        gx, gy = fm.grad(lambda x, y, f=f: reduce_sum(f(x, y), (0,)), (0, 1))(x, x)
        np.testing.assert_array_equal([gx, gy], np.full((2, 3), 0.5))
    parts = fm.jit(fm.vmap(fm.grad(ew.clamp, (0, 1, 2))))(
        np.array([1.0, 0, 1, 0, 2]), np.array([1.0, 2, 1, 5, 1]), np.array([2.0, 2, 1, 2, 3])
    )
    np.testing.assert_array_equal(np.transpose(parts), [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.25, 0.25, 0.5], [0, 0, 1], [1, 0, 0]])


def test_abs_has_derivative_zero_at_zero_for_real_and_complex_numbers():
    assert float(fm.grad(ew.abs)(0.0)) == 0
    assert complex(fm.grad(ew.abs)(np.complex128(0))) == 0
    assert complex(fm.grad(ew.abs)(np.complex128(complex(inf, 0)))) == 1
    assert float(fm.grad(fm.grad(ew.abs))(0.0)) == 0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ew.max(sqrt(x), 1e-10),
        lambda x: ew.min(ew.neg(sqrt(x)), -1e-10),
        lambda x: ew.clamp(0.5, sqrt(x), 1.0),
        lambda x: ew.select(ew.gt(x, 0), sqrt(x), ew.mul(x, 0.0)),
        lambda x: ew.abs(sqrt(x)),
        lambda x: ew.select_n(np.int32(1), sqrt(x), ew.mul(x, 0.0)),
    ],
    ids=["max", "min", "clamp", "select", "abs", "select_n"],
)
def test_what_is_not_taken_gives_zero_not_nan(function):
    assert float(fm.grad(function)(0.0)) == 0
    assert float(fm.grad(lambda x: reduce_sum(function(broadcast_in_dim(x, (3,))), (0,)))(0.0)) == 0


def test_a_nan_on_the_branch_taken_is_not_hidden():
    assert np.isnan(fm.grad(lambda x: ew.select(ew.ge(x, 0), ew.mul(sqrt(x), ew.div(x, x)), x))(0.0))
    assert np.isinf(fm.grad(lambda x: ew.max(sqrt(x), -1.0))(0.0))


def test_an_overflow_on_the_way_is_not_hidden():
    naive_softplus = lambda x: log(ew.add(1.0, exp(x)))
    assert np.isnan(fm.grad(naive_softplus)(np.float32(200.0)))  # 0 * inf; the true slope is 1
    assert np.isnan(fm.grad(lambda y: ew.div(y, y))(inf))


def test_rem_counts_the_quotient_exactly():
    # trunc(x / y) is 1e16, one too many; rem is nearly y
    x, y = np.float64(1.0), np.float64(1e-16)
    n = int((x - np.fmod(x, y)) / y)
    assert float(fm.grad(ew.rem, 1)(x, y)) == -n
    gx, gy = fm.grad(ew.rem, (0, 1))(np.float64(-7.5), np.float64(2))
    assert (float(gx), float(gy)) == (1, 3)


def test_integers_have_no_tangent():
    y, t = fm.jvp(ew.add, (np.int32(3), np.int32(4)), (np.zeros((), dtypes.float0),) * 2)
    assert int(y) == 7 and np.asarray(t).dtype == dtypes.float0


# ---- conversion


@pytest.mark.parametrize("target", [np.int8, np.uint32, np.int64, np.bool_, *FLOATS, *COMPLEX, dtypes.float8_e4m3fn], ids=str)
def test_convert_is_numpys_astype(target):
    for source in (np.int16, np.uint8, np.bool_, np.float16, dtypes.bfloat16, np.float64, np.complex128):
        x = np.array([0, 1, 3, 100]).astype(source)
        if target is dtypes.float8_e4m3fn and source is np.complex128:
            continue
        target_dtype = np.dtype(target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            want = (x != 0) if target is np.bool_ else x.astype(target)
        same(ew.convert(x, target_dtype), want)


def test_convert_to_bool_asks_for_nonzero():
    same(ew.convert(np.array([0.5, 0, -0.0, nan, 1e-30]), dtypes.bool_), np.array([True, False, False, True, True]))
    same(ew.convert(np.array([1j, 0, 2]), dtypes.bool_), np.array([True, False, True]))


def test_convert_of_a_complex_constant_in_a_program():
    for dtype in (np.float32, np.float64, np.int32):
        found = fm.jit(lambda x, d=dtype: ew.convert(np.complex64(1.5 + 2j), np.dtype(d)) + x)(np.ones((), dtype))
        assert found == dtype(1.5) + 1


def test_convert_records_nothing_where_nothing_changes():
    x = np.ones(2)
    assert ew.convert(x, dtypes.float64) is x


# ---- bad input


def test_errors_say_what_came_and_what_to_do():
    x, y = np.ones((3,), np.float32), np.ones((4,), np.float32)
    cases = [
        (lambda: ew.add(x, y), r"add expects operands of one shape, got f32\[3\], f32\[4\]; broadcast"),
        (lambda: ew.add(x, y.astype(int)[:3]), r"add requires arguments to have the same dtypes, got f32\[3\], i64\[3\]"),
        (lambda: ew.add(x > 0, x > 0), r"add expects numbers, got bool\[3\], bool\[3\]"),
        (lambda: ew.lt(x + 0j, x + 0j), r"lt expects real numbers or bool, got c64\[3\]"),
        (lambda: ew.and_(x, x), r"and expects integers or bool, got f32\[3\]"),
        (lambda: ew.real(x), r"real expects complex numbers, got f32\[3\]"),
        (lambda: ew.complex(x.astype(np.float16), x.astype(np.float16)), r"complex expects f32 or f64 operands, got f16\[3\]"),
        (lambda: ew.floor(np.ones(2, int)), r"floor expects floats, got i64\[2\]"),
        (lambda: ew.clamp(y, x, x), r"clamp: min must be a scalar or have the shape of x f32\[3\], got f32\[4\]"),
        (lambda: ew.select(x, x, x), r"select_n: the selector must be bool or i32, got f32\[3\]"),
        (lambda: ew.select(x > 0, x, y), r"select_n expects cases of one type, got f32\[4\], f32\[3\]"),
        (lambda: ew.select_n(x > 0, x, x, x), r"a bool selector chooses between 2 cases, got 3; use i32"),
        (lambda: ew.convert(x, dtypes.KeyDtype()), r"convert of f32\[3\]: keys are no numbers"),
    ]  # fmt: skip
    for call, words in cases:
        with pytest.raises(TypeError, match=words):
            call()
    with pytest.raises(ValueError):
        ew.round(x, 7)


@pytest.mark.parametrize("divisor", [3.0, 1e9, 0.1, 7.0])
def test_division_by_a_constant_is_rounded_once(divisor):
    x = np.random.default_rng(0).uniform(0.5, 2.0, 1000).astype("float32")
    got = fm.jit(lambda x: ew.div(x, divisor))(x)
    np.testing.assert_array_equal(np.asarray(got), x / np.float32(divisor))


@pytest.mark.parametrize("y", [1e-25, 1e25])
def test_derivative_of_a_quotient_by_what_is_small_or_large(y):
    got = fm.jit(fm.grad(lambda x, y: ew.div(x, y), 1))(np.float32(y), np.float32(y))
    np.testing.assert_allclose(got, -1 / np.float32(y), rtol=1e-5)
