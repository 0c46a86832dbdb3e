"""Elementwise functions against NumPy over dtypes and edge values, and their derivatives."""

import math

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml import dtypes
from tests.products import check_products

INF, NAN = math.inf, math.nan
EDGES = [0.0, -0.0, 1.0, -1.0, 0.3, -2.7, 1e-30, -1e30, 17.5, INF, -INF, NAN]

FLOAT = """abs sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p sqrt
    cbrt square reciprocal negative positive sign floor ceil trunc rint fabs isnan isinf isfinite signbit deg2rad rad2deg sinc
    logical_not""".split()
COMPLEX = """abs sin cos sinh cosh tanh exp log sqrt square reciprocal negative sign isnan isinf isfinite conj real imag
    angle""".split()
INTEGER = "abs square negative sign floor ceil trunc invert bitwise_count logical_not isnan isfinite signbit".split()
PAIRS = """add subtract multiply divide floor_divide remainder fmod maximum minimum fmax fmin logaddexp logaddexp2 arctan2 hypot
    copysign heaviside equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor""".split()
INTEGER_PAIRS = """add subtract multiply divide floor_divide remainder fmod maximum minimum equal less greater_equal bitwise_and
    bitwise_or bitwise_xor""".split()


def both(names, *args):
    """Each function of the arguments, by funcml as one program, and by NumPy."""
    ours = funcml.jit(lambda *xs: [getattr(jnp, n)(*xs) for n in names])(*args)
    with np.errstate(all="ignore"):
        theirs = [getattr(np, n)(*args) for n in names]
    return list(zip(names, map(np.asarray, ours), map(np.asarray, theirs), strict=True))


@pytest.mark.parametrize("dtype, tol", [("float64", 2e-14), ("float32", 3e-6), ("float16", 4e-3)])
def test_floats_are_those_of_numpy(dtype, tol):
    with np.errstate(over="ignore"):
        x = np.array(EDGES).astype(dtype)
    for name, y, want in both(FLOAT, x):
        np.testing.assert_allclose(y, want, rtol=tol, atol=tol, err_msg=name)


def test_bfloat16_is_float32_rounded():
    x = np.array([0.1, -2.5, 3.0, 17.0], dtypes.bfloat16)
    for name, y, want in both(["sin", "exp", "tanh", "sqrt", "abs", "square"], x):
        assert y.dtype == dtypes.bfloat16
        np.testing.assert_allclose(y.astype(np.float32), want.astype(np.float32), rtol=1e-2, err_msg=name)


def test_complex_numbers():
    z = np.array([1 + 2j, -0.5j, 3.0, -1e-3 + 1e3j, 0.0])
    for name, y, want in both([n for n in COMPLEX if n != "reciprocal"], z):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(y[:3], want[:3], rtol=1e-13, err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_integers_are_those_of_numpy(dtype):
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 2, 7, limits.max, limits.min, limits.min + 1], dtype)
    y = np.array([3, 0, 2, 0, 2, 1, 5], dtype)
    for name, z, want in both(INTEGER, x):
        np.testing.assert_array_equal(z, want, err_msg=name)
    for name, z, want in both(INTEGER_PAIRS, x, y):
        assert name == "divide" or z.dtype == want.dtype, name
        np.testing.assert_allclose(z, want, rtol=1e-6, err_msg=name)


def test_pairs_of_floats_are_those_of_numpy():
    x, y = (a.ravel() for a in np.meshgrid(EDGES, EDGES))
    for name, z, want in both(PAIRS, x, y):
        np.testing.assert_allclose(z, want, rtol=1e-12, atol=1e-12, err_msg=name)


def test_shift():
    x, n = np.array([-8, 7, 1, -1], np.int32), np.array([1, 2, 31, 3], np.int32)
    for name, z, want in both(["left_shift", "right_shift"], x, n):
        np.testing.assert_array_equal(z, want, err_msg=name)
    np.testing.assert_array_equal(jnp.right_shift(x.astype(np.uint32), 1), x.astype(np.uint32) >> 1)


def test_integer_division_by_zero_is_zero():
    assert jnp.floor_divide(jnp.int32(2), jnp.int32(0)) == 0
    assert jnp.remainder(jnp.int32(2), 0) == 0
    assert jnp.arange(3).dtype == (jnp.arange(3) // 0).dtype


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
def test_integer_powers(dtype):
    x = np.array([0, 1, 2, 3, 5, 7, 0], dtype)
    y = np.array([0, 5, 7, 4, 3, 100, 64], dtype)
    np.testing.assert_array_equal(jnp.power(x, y), x**y)
    np.testing.assert_array_equal(jnp.power(x, 3), x**3)


def test_negative_integer_powers_are_rounded_towards_zero():
    x, y = np.array([1, -1, -1, 2, -3]), np.array([-3, -3, -2, -1, -2])
    np.testing.assert_array_equal(jnp.power(x, y), [1, -1, 1, 0, 0])
    with pytest.raises(TypeError, match="integers take no negative power, got -1"):
        jnp.arange(3) ** -1


def test_powers_of_floats():
    x = np.array([0.0, -2.0, 3.0, 0.5])
    np.testing.assert_allclose(jnp.power(x, 3), x**3)
    np.testing.assert_allclose(jnp.power(x, -2)[1:], x[1:] ** -2)
    np.testing.assert_allclose(jnp.power(x, np.array([0, 2, -1, 3])), [1, 4, 1 / 3, 0.125])
    np.testing.assert_allclose(jnp.power(2.0, x), 2.0**x)
    assert jnp.power(np.float32(3), 2.0).dtype == np.float32


@pytest.mark.parametrize("decimals", [-1, 0, 2])
def test_round(decimals):
    x = np.array([0.5, 1.5, -2.5, 123.456, -0.004])
    np.testing.assert_allclose(jnp.round(x, decimals), np.round(x, decimals), rtol=1e-15)
    i = np.array([14, 15, 25, -37], np.int32)
    np.testing.assert_array_equal(jnp.round(i, decimals), np.round(i, decimals))


def test_parts_of_floats():
    x = np.array([0.0, -0.0, 1.0, -0.75, 1e-300, 5e300, INF, NAN])
    for ours, want in zip(jnp.frexp(x), np.frexp(x), strict=True):
        np.testing.assert_array_equal(ours, want)
    for ours, want in zip(jnp.modf(x), np.modf(x), strict=True):
        np.testing.assert_array_equal(ours, want)
    n = np.array([3, 3, -1, 2, 1500, -1500, 1, 1])
    np.testing.assert_array_equal(jnp.ldexp(x, n), np.ldexp(x, n))
    np.testing.assert_array_equal(jnp.nextafter(x, 1.0), np.nextafter(x, 1.0))


def test_nan_to_num_and_clip():
    x = np.array([NAN, INF, -INF, 2.0])
    np.testing.assert_array_equal(jnp.nan_to_num(x), np.nan_to_num(x))
    np.testing.assert_array_equal(jnp.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0), [1, 2, 3, 2])
    y = np.arange(6.0)
    np.testing.assert_array_equal(jnp.clip(y, 1, 4), np.clip(y, 1, 4))
    np.testing.assert_array_equal(jnp.clip(y, max=np.array([2.0] * 6)), np.minimum(y, 2))
    assert jnp.clip(jnp.arange(3), 1.5).dtype == np.float32


def test_sums_of_exponentials_at_infinity():
    found = [jnp.logaddexp(-INF, -INF), jnp.logaddexp(INF, INF), jnp.logaddexp(-INF, 1.0), jnp.logaddexp(INF, -INF)]
    np.testing.assert_array_equal(found, [-INF, INF, 1.0, INF])


# ---- derivatives -------------------------------------------------------------------------------------------------

X, Y = np.array([0.3, -1.2, 2.5]), np.array([1.1, 0.7, -2.0])


@pytest.mark.parametrize("name", "hypot logaddexp logaddexp2 remainder fmod copysign arctan2 divide fmax".split())
def test_derivatives_of_pairs(name):
    check_products(getattr(jnp, name), X, Y)


@pytest.mark.parametrize("x, y", [(1.0, 1.0), (-2.0, 2.0), (2.0, 0.0), (0.0, -3.0), (3e-200, 4e-200), (1e200, 1e200)])
def test_second_derivatives_of_hypot_where_both_are_as_large_or_one_is_zero(x, y):
    # [y^2, -x y, -x y, x^2] / (x^2 + y^2)^(3/2)
    h = math.hypot(x, y)
    want = np.array([y / h * y / h, -x / h * y / h, -x / h * y / h, x / h * x / h]) / h
    got = np.ravel(funcml.hessian(jnp.hypot, (0, 1))(np.float64(x), np.float64(y)))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 / h)


@pytest.mark.parametrize("name", ["sinc", "reciprocal", "log2", "log10", "deg2rad", "i0", "nan_to_num", "square"])
def test_derivatives(name):
    check_products(getattr(jnp, name), np.abs(X) if "log" in name else X)


def test_derivatives_of_powers():
    check_products(lambda x, y: jnp.power(x, y), np.abs(X), Y)
    check_products(lambda x: x**3 + x**-2 + 2.0**x, X)


def test_sinc_at_zero():
    second = funcml.grad(funcml.grad(jnp.sinc))
    assert second(0.0) == pytest.approx(-(math.pi**2) / 3, rel=1e-6)
    assert funcml.grad(funcml.grad(second))(0.0) == pytest.approx(math.pi**4 / 5, rel=1e-5)
    assert funcml.grad(jnp.sinc)(np.float32(1e-3)) == pytest.approx(-(math.pi**2) * 1e-3 / 3, rel=1e-5)


@pytest.mark.parametrize("function, at, want", [
    (lambda x: jnp.power(x - jnp.floor(x), jnp.array(0)), 1.0, 0.0),
    (lambda y: jnp.power(0.0, y), 2.0, 0.0),
    (lambda x: funcml.grad(funcml.grad(lambda z: jnp.power(z, np.float64(3.0))))(x), 0.0, 6.0),
    (lambda x: x**3, -2.0, 12.0),
    (lambda x: jnp.power(x, np.float64(2.0)), -2.0, -4.0),
    (lambda x: jnp.hypot(x, 0.0 * x), 0.0, 0.0),
    (lambda x: jnp.logaddexp(x, x), -INF, 1.0),
    (lambda x: jnp.nan_to_num(x / np.array([-1.0, 0.0, 1.0]), posinf=0.0).sum(), 2.0, 0.0),
    (lambda x: jnp.where(x >= 0, x, jnp.sqrt(-x)), 1.0, 1.0),
    (lambda x: jnp.maximum(x, x), 1.0, 1.0),
    (lambda x: jnp.expm1(x), -40.0, math.exp(-40)),
], ids=range(11))
def test_derivatives_at_special_points(function, at, want):
    assert funcml.grad(function)(at) == pytest.approx(want, rel=1e-6)


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.sin([1.0, 2.0]), TypeError, r"sin expects arrays or numbers, got \[1.0, 2.0\] of type list; make it an array"),
    (lambda: jnp.add(1.0, None), TypeError, "add expects arrays or numbers, got None of type NoneType"),
    (lambda: jnp.add(np.ones(3), np.ones(4)), ValueError, r"add: the shapes \(3,\), \(4,\) do not broadcast"),
    (lambda: jnp.subtract(np.True_, np.True_), TypeError, "sub expects numbers, got bool"),
    (lambda: jnp.floor(1j), TypeError, r"expected real numbers, got c64\[\]"),
    (lambda: jnp.bitwise_and(1.0, 2), TypeError, "and expects integers or bool"),
    (lambda: jnp.uint8(1) + 300, OverflowError, "300 is out of bounds for uint8"),
    (lambda: jnp.ldexp(1.0, 2.0), TypeError, r"ldexp expects integers as x2, got f32\[\]"),
    (lambda: jnp.round(1.0, out=3), NotImplementedError, "arrays are immutable, so there is no `out`"),
])
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name, second", [("logaddexp", 0.25), ("logaddexp2", np.log(2) / 4)])
def test_logaddexp_curves_where_its_operands_meet(name, second):
    f = getattr(jnp, name)
    np.testing.assert_allclose(funcml.grad(funcml.grad(f))(2.0, 2.0), second, rtol=1e-6)
    assert [float(g) for g in funcml.grad(f, (0, 1))(-np.inf, 1.0)] == [0.0, 1.0]


@pytest.mark.parametrize("name, log, exp", [("logaddexp", np.log, np.exp), ("logaddexp2", np.log2, np.exp2)])
def test_logaddexp_of_complex_numbers_is_the_principal_value(name, log, exp):
    x, y = np.array([1 + 9j, -2 - 7j, 3 + 1j]), np.array([0.5 + 8j, -2 - 6j, 2 + 1j])
    np.testing.assert_allclose(getattr(jnp, name)(x, y), log(exp(x) + exp(y)), rtol=1e-12)


def test_complex_numbers_have_no_bounds():
    with pytest.raises(ValueError, match="Complex values have no ordering and cannot be clipped"):
        jnp.clip(1j, 0.0, 1.0)
    with pytest.raises(ValueError, match="not well defined for complex-valued inputs"):
        jnp.hypot(1j, 1.0)


@pytest.mark.parametrize("name", ["arccos", "arcsin", "arccosh", "arcsinh", "arctan", "arctanh"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_inverse_functions_of_complex_numbers_at_the_edges(name, dtype):
    parts = np.array([0.0, -0.0, 2.0, -0.3, 1e-30, -1e30, np.inf, -np.inf, np.nan])
    z = np.empty((9, 9), dtype)
    z.real, z.imag = np.meshgrid(parts, parts)
    got, want = np.asarray(getattr(jnp, name)(z)), getattr(np, name)(z)
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(got, part), getattr(want, part), rtol=1e-5 if dtype == "complex64" else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spacing(dtype):
    f = np.finfo(dtype)
    step = f.smallest_normal * dtype(2.0) ** f.nmant
    x = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, f.max, f.smallest_subnormal, -f.smallest_normal / 4, -f.smallest_normal]
    x = np.array([*x, step, step / 2, -step * 3.7, 1e-5, 100.5], dtype)
    with np.errstate(over="ignore"):
        want = np.spacing(x)
    np.testing.assert_array_equal(np.asarray(jnp.spacing(x)), want)
    assert jnp.spacing(jnp.bfloat16(1)) == 2.0**-7
