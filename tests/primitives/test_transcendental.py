"""Exponentials, trigonometry, roots, powers and special functions against mpmath, SciPy and NumPy; their derivatives."""

import mpmath
import numpy as np
import pytest
import scipy.special

import funcml as fm
from funcml import dtypes
from funcml.core.errors import MissingRuleError
from funcml.primitives import elementwise as ew
from funcml.primitives import powers as pw
from funcml.primitives import special as sp
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import reduce_sum
from tests.products import check_products

inf, nan = np.inf, np.nan


def _gamma_log(x):
    return mpmath.log(abs(mpmath.gamma(x)))


def _scaled_bessel(order):
    return lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(order, x)


# function -> (mpmath's, NumPy's or SciPy's, largest error in ulp in f32 and in f64)
FUNCTIONS = {
    tr.exp: (mpmath.exp, np.exp, 2, 2),
    tr.exp2: (lambda x: mpmath.power(2, x), np.exp2, 2, 2),
    tr.expm1: (mpmath.expm1, np.expm1, 3, 3),
    tr.log: (mpmath.log, np.log, 2, 2),
    tr.log1p: (mpmath.log1p, np.log1p, 3, 4),
    tr.logistic: (lambda x: 1 / (1 + mpmath.exp(-x)), scipy.special.expit, 4, 4),
    tr.sinh: (mpmath.sinh, np.sinh, 5, 5),
    tr.cosh: (mpmath.cosh, np.cosh, 5, 5),
    tr.tanh: (mpmath.tanh, np.tanh, 6, 6),
    tr.asinh: (mpmath.asinh, np.arcsinh, 5, 5),
    tr.acosh: (mpmath.acosh, np.arccosh, 5, 5),
    tr.atanh: (mpmath.atanh, np.arctanh, 5, 5),
    tr.sin: (mpmath.sin, np.sin, 3, 3),
    tr.cos: (mpmath.cos, np.cos, 3, 3),
    tr.tan: (mpmath.tan, np.tan, 5, 5),
    tr.asin: (mpmath.asin, np.arcsin, 5, 5),
    tr.acos: (mpmath.acos, np.arccos, 5, 5),
    tr.atan: (mpmath.atan, np.arctan, 3, 3),
    pw.sqrt: (mpmath.sqrt, np.sqrt, 1, 1),
    pw.rsqrt: (lambda x: 1 / mpmath.sqrt(x), lambda x: 1 / np.sqrt(x), 3, 3),
    pw.square: (lambda x: x * x, np.square, 1, 1),
    pw.cbrt: (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), np.cbrt, 3, 3),
    sp.erf: (mpmath.erf, scipy.special.erf, 6, 4),
    sp.erfc: (mpmath.erfc, scipy.special.erfc, 40, 150),
    sp.erf_inv: (mpmath.erfinv, scipy.special.erfinv, 40, 100),
    sp.lgamma: (_gamma_log, scipy.special.gammaln, 12, 12),
    sp.digamma: (mpmath.digamma, scipy.special.digamma, 32, 40),
    sp.bessel_i0e: (_scaled_bessel(0), scipy.special.i0e, 4, 4),
    sp.bessel_i1e: (_scaled_bessel(1), scipy.special.i1e, 8, 8),
}
NOT_COMPLEX = (pw.cbrt, sp.erf, sp.erfc, sp.erf_inv, sp.lgamma, sp.digamma, sp.bessel_i0e, sp.bessel_i1e)
COMPLEX = [f for f in FUNCTIONS if f not in NOT_COMPLEX]
ONLY_POSITIVE = (sp.lgamma, sp.digamma)


def sample(rng):
    return np.concatenate([
        rng.uniform(-1, 1, 40), rng.uniform(-8, 8, 30), rng.uniform(-80, 80, 15), 10.0 ** rng.uniform(-20, 0, 15),
        [1.0003, 0.9998, 1.99991, 2.0002, 1.46163, 1.4617, 0.2, 3.49, 3.51],
    ])  # fmt: skip


def all_of(functions, *xs):
    return [np.asarray(y) for y in fm.jit(lambda *xs: [f(*xs) for f in functions])(*xs)]


def worst_ulp(exact, x, y, only_positive):
    """The largest error of y in units of its last place, where the exact result is a normal number."""
    dtype, worst = x.dtype, 0
    limits = np.finfo(dtype)
    with mpmath.workdps(40):
        for v, found in zip(x, y, strict=True):
            if only_positive and v <= 0:
                continue
            want = exact(mpmath.mpf(float(v))) if abs(v) < 1 or exact is not mpmath.erfinv else mpmath.mpc(0, 1)
            if isinstance(want, mpmath.mpc) and want.imag != 0:
                assert np.isnan(found), f"{found} at {v}"
                continue
            if limits.tiny <= abs(want) <= limits.max:
                error = abs(mpmath.mpf(float(found)) - want) / float(np.spacing(dtype.type(abs(float(want)))))
                assert mpmath.isfinite(error), f"{found} at {v}, not {want}"
                worst = max(worst, float(error))
    return worst


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_values_are_mpmaths(dtype, rng):
    x = sample(rng).astype(dtype)
    for f, y in zip(FUNCTIONS, all_of(FUNCTIONS, x), strict=True):
        exact, _, *allowed = FUNCTIONS[f]
        error = worst_ulp(exact, x, y, f in ONLY_POSITIVE)
        assert error <= allowed[dtype is np.float64], f"{f.name}: {error} ulp"


@pytest.mark.parametrize("dtype", [np.float16, dtypes.bfloat16], ids=str)
def test_values_in_16_bits_are_scipys_rounded(dtype, rng):
    x = sample(rng).astype(dtype)
    eps, tiny = (float(getattr(dtypes.finfo(dtype), name)) for name in ("eps", "tiny"))
    for f, y in zip(FUNCTIONS, all_of(FUNCTIONS, x), strict=True):
        with np.errstate(all="ignore"):
            exact, y = FUNCTIONS[f][1](x.astype(np.float64)), y.astype(np.float64)
            want = exact.astype(dtype).astype(np.float64)
            close = np.abs(y - exact) <= 3 * eps * np.abs(exact) + tiny
        good = (y == want) | np.isnan(y) & np.isnan(want) | close
        if f in ONLY_POSITIVE:
            good |= x <= 0
        assert good.all(), f"{f.name}: {y[~good]} for {exact[~good]} at {x[~good]}"


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=str)
def test_complex_values_are_mpmaths(dtype, rng):
    size = np.exp(rng.normal(size=30) * 2)
    z = (size * np.exp(1j * rng.uniform(-np.pi, np.pi, 30)))[size < 40].astype(dtype)
    for f, y in zip(COMPLEX, all_of(COMPLEX, z), strict=True):
        with mpmath.workdps(30):
            want = np.array([complex(FUNCTIONS[f][0](mpmath.mpc(complex(v)))) for v in z])
        error = np.abs(y - want) / np.abs(want) / np.finfo(dtype).eps
        assert error.max() < 40, f"{f.name}: {error.max()} eps at {z[error.argmax()]}"


EDGES = np.array([0.0, -0.0, inf, -inf, nan, 1, -1, 1e300, -1e300, 1e-300, -1e-300, 700, -700, 0.5, -0.25])


def test_edge_values_are_scipys():
    for f, y in zip(FUNCTIONS, all_of(FUNCTIONS, EDGES), strict=True):
        with np.errstate(all="ignore"):
            want = np.array(FUNCTIONS[f][1](EDGES))
            close = np.abs(y - want) <= 1e-13 * np.abs(want)
        if f is sp.lgamma:
            want[EDGES == -inf] = inf  # as C's lgamma
        good = (y == want) | np.isnan(y) & np.isnan(want) | close
        assert good.all(), f"{f.name}: {y[~good]} for {want[~good]} at {EDGES[~good]}"
    for f in (tr.expm1, tr.log1p, tr.sinh, tr.tanh, tr.asinh, tr.atanh, tr.sin, tr.tan, tr.asin, tr.atan, pw.sqrt, pw.cbrt):
        assert np.signbit(f(np.float64(-0.0))), f.name


CUTS = np.array([-1 + 0j, complex(-1, -0.0), -2 + 0j, complex(-2, -0.0), 2 + 0j, complex(2, -0.0), 2j, -2j, complex(0.0, -2)])


def test_both_sides_of_a_cut_are_numpys():
    functions = [tr.log, pw.sqrt, pw.rsqrt, tr.asin, tr.acos, tr.acosh, tr.atan, tr.asinh, tr.log1p]
    for f, y in zip(functions, all_of(functions, CUTS), strict=True):
        with np.errstate(all="ignore"):
            want = FUNCTIONS[f][1](CUTS)
            good = (np.abs(y - want) <= 1e-14 * np.abs(want)) | ~np.isfinite(want)
        assert good.all(), f"{f.name}: {y[~good]} for {want[~good]} at {CUTS[~good]}"


def test_complex_functions_do_not_overflow_before_their_time():
    z = np.array([800 + 1j, -800 + 1j, 1e-200 + 1e-200j])
    np.testing.assert_allclose(tr.logistic(z), [1, 0, 0.5], atol=1e-15)
    np.testing.assert_array_equal(tr.sinh(z[2:]), z[2:])
    np.testing.assert_array_equal(tr.sin(z[2:]), z[2:])
    np.testing.assert_array_equal(np.asarray(tr.sin(np.array([800j]))).real, 0)


def test_sqrt_knows_subnormal_numbers():
    for dtype, x in ((np.float64, [5e-324, 1e-310, 2e-308]), (np.float32, [1e-45, 1e-40, 1.1e-38])):
        x = np.array(x, dtype)
        np.testing.assert_allclose(pw.sqrt(x), np.sqrt(x), rtol=2 * np.finfo(dtype).eps)
    g = fm.grad(pw.sqrt)(np.float64(5e-324))
    np.testing.assert_allclose(g, float(1 / (2 * mpmath.sqrt(mpmath.mpf(5e-324)))), rtol=1e-14)


# ---- powers


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_pow_and_atan2_are_numpys(dtype):
    values = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, inf, -inf, nan, 1e-5, 1e5], dtype)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    power, angle = all_of([tr.pow, tr.atan2], x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(power, np.power(x, y), rtol=4 * np.finfo(dtype).eps)
        np.testing.assert_allclose(angle, np.arctan2(x, y), rtol=4 * np.finfo(dtype).eps)
    n = np.array([0, 1, 2, 3, -1, -2], np.int32)
    x, n = (v.ravel() for v in np.meshgrid(values, n))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tr.pow(x, n), np.power(x, n.astype(dtype)), rtol=4 * np.finfo(dtype).eps)
    assert tr.pow(2.0, n).dtype == np.float32


def test_complex_pow_at_zero_and_infinity():
    z = np.array([0, 0, 1 + 2j, inf, 2 + 1j])
    w = np.array([0, 2, 0, 0, 1.5 - 1j])
    np.testing.assert_allclose(tr.pow(z, w), [1, 0, 1, 1, (2 + 1j) ** (1.5 - 1j)], rtol=1e-13)
    assert complex(fm.grad(lambda z: ew.real(tr.pow(z, 1.0)))(np.complex128(inf))) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.complex64, np.int32, np.uint8], ids=str)
def test_integer_pow_is_numpys(dtype):
    x = np.array([0, 1, 2, 3, 5]).astype(dtype)
    x = -x if dtype not in (np.uint8,) else x
    exponents = [0, 1, 2, 3, 5] + ([] if np.dtype(dtype).kind in "iu" else [-1, -2, -3])
    for n, y in zip(exponents, all_of([lambda x, n=n: pw.integer_pow(x, n) for n in exponents], x), strict=True):
        with np.errstate(all="ignore"):
            want = (x.astype(np.complex128) ** n if dtype is np.complex64 else np.power(x, dtype(n))).astype(dtype)
        good = np.isfinite(want)
        np.testing.assert_allclose(y[good], want[good], rtol=0 if np.dtype(dtype).kind in "iu" else 4 * np.finfo(dtype).eps)


def test_derivatives_of_pow_at_zero_and_at_negative_bases():
    by_base, by_exponent = fm.grad(tr.pow), fm.grad(tr.pow, 1)
    f64 = np.float64
    assert float(by_base(f64(0), f64(0))) == 0 == float(fm.grad(lambda x: tr.pow(x, np.int32(0)))(f64(0)))
    assert float(by_base(f64(0), f64(1))) == 1
    assert float(by_base(f64(-2), f64(2))) == -4 and float(by_base(f64(-2), f64(3))) == 12
    assert float(by_exponent(f64(0), f64(2))) == 0
    assert float(by_exponent(f64(0), f64(0))) == -inf
    assert float(fm.grad(fm.grad(by_base))(f64(0), f64(3))) == 6
    assert float(fm.grad(fm.grad(fm.grad(lambda x: tr.pow(x, 3.0))))(f64(0))) == 6
    assert float(fm.grad(lambda x, n: tr.pow(x, n))(f64(-3), np.int32(3))) == 27
    for x in (0.0, np.inf, np.nan, 1e-320):
        assert float(by_base(f64(x), f64(0))) == 0
    (xx, xy), (yx, yy) = fm.hessian(tr.pow, (0, 1))(f64(4), f64(0))
    np.testing.assert_allclose([xx, xy, yx, yy], [0, 0.25, 0.25, np.log(4) ** 2])
    mixed = fm.grad(fm.grad(tr.pow, holomorphic=True), 1, holomorphic=True)
    np.testing.assert_allclose(complex(mixed(np.complex128(4j), np.complex128(0))), -0.25j, rtol=1e-14)
    assert float(fm.grad(lambda x: pw.integer_pow(x, -2))(f64(2))) == -0.25
    assert float(fm.grad(lambda x: tr.pow(pw.sqrt(x), np.float64(0)))(f64(0))) == 0


# ---- derivatives

# lgamma and digamma stand apart: their derivatives are polygammas, whose programs take long to compile
REAL = [f for f in FUNCTIONS if f not in ONLY_POSITIVE]


@pytest.mark.parametrize("part", range(3))
def test_products_of_functions(part, rng):
    x = rng.uniform(0.2, 0.9, (2, 3))
    check_products(lambda x: [f(ew.add(x, 1.0) if f is tr.acosh else x) for f in REAL[part::3]], x)


def test_derivatives_of_lgamma_are_polygammas(rng):
    x = rng.uniform(0.3, 9, 8)
    y, t = fm.jvp(lambda x: [sp.lgamma(x), sp.digamma(x)], (x,), (np.full(8, 2.0),))
    np.testing.assert_allclose(t[0], 2 * scipy.special.digamma(x), rtol=1e-12)
    np.testing.assert_allclose(t[1], 2 * scipy.special.polygamma(1, x), rtol=1e-12)
    third = fm.jit(fm.vmap(fm.grad(fm.grad(fm.grad(sp.lgamma)))))(x)
    np.testing.assert_allclose(third, scipy.special.polygamma(2, x), rtol=1e-12)


def test_products_of_functions_of_two_arguments(rng):
    x, y = rng.uniform(0.5, 2, (2, 4))
    n = np.array([0, 1, 2, 3], np.int32)
    check_products(
        lambda x, y, n: [
            tr.pow(x, y), tr.pow(x, n), tr.pow(x, 2.5), tr.pow(1.5, y), tr.atan2(x, y), tr.atan2(ew.neg(x), y), tr.atan2(1.0, y),
            pw.integer_pow(x, 3), pw.integer_pow(y, -2), pw.integer_pow(x, 7),
        ],
        x, y, n,
    )  # fmt: skip
    check_products(lambda x: [sp.polygamma(np.full(4, 2.0), x), sp.zeta(np.full(4, 3.0), x)], x, products=("jvp", "vjp"))


def test_products_of_complex_functions(rng):
    z = rng.uniform(0.3, 1.5, 3) + 1j * rng.uniform(0.3, 1.5, 3)
    functions = [*COMPLEX, lambda z: tr.pow(z, ew.mul(0.5, z)), lambda z: pw.integer_pow(z, 3)]
    check_products(lambda z: [f(z) for f in functions], z, products=("jit", "jvp", "vjp"))
    check_products(lambda z: [f(z) for f in (tr.tan, tr.asinh, tr.atan, tr.acosh)], z, products=("order2",))


def slope(f, x):
    return np.asarray(fm.grad(lambda x: reduce_sum(f(x), (0,)))(x))


def test_derivatives_keep_their_digits_far_out():
    x = np.array([-40.0, -30, 20, 30])
    np.testing.assert_allclose(slope(tr.expm1, x), np.exp(x), rtol=1e-14)
    cosh2 = np.array([float(mpmath.sech(mpmath.mpf(v)) ** 2) for v in x])
    np.testing.assert_allclose(slope(tr.tanh, x), cosh2, rtol=1e-14)
    np.testing.assert_allclose(slope(tr.logistic, x), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2, rtol=1e-14)
    x = np.array([-9.010913848876953, 40, -43], np.float32)
    np.testing.assert_allclose(slope(tr.tanh, x), [float(mpmath.sech(mpmath.mpf(float(v))) ** 2) for v in x], rtol=2e-6)
    z = np.array([20 + 1j, -300 + 2j, 500 - 1j])
    want = np.array([complex(mpmath.sech(mpmath.mpc(v)) ** 2) for v in z])
    np.testing.assert_allclose(fm.jvp(tr.tanh, (z,), (np.ones_like(z),))[1], want, rtol=1e-12)
    np.testing.assert_allclose(fm.jvp(tr.tan, (1j * z,), (np.ones_like(z),))[1], want, rtol=1e-12)


def test_derivatives_do_not_overflow():
    x = np.array([1e25, -3e38, inf], np.float32)
    np.testing.assert_allclose(slope(tr.asinh, x), [1e-25, 1 / 3e38, 0], rtol=1e-5, atol=1e-38)
    np.testing.assert_allclose(slope(tr.asinh, np.array([300.0, 3e4], np.float16)), [1 / 300, 1 / 3e4], rtol=1e-2)
    np.testing.assert_allclose(slope(tr.acosh, np.array([1e25], np.float32)), [1e-25], rtol=1e-6)
    for size in (1e-20, 1e30):
        y, x = np.float32(size), np.float32(2 * size)
        g = fm.grad(tr.atan2, (0, 1))(y, x)
        np.testing.assert_allclose(g, [0.4 / size, -0.2 / size], rtol=1e-6)
    assert float(fm.grad(pw.cbrt)(0.0)) == inf
    assert float(fm.grad(fm.grad(tr.asinh))(0.0)) == 0 == float(fm.grad(fm.grad(tr.asinh))(-0.0))


def test_derivatives_of_bessel_functions_at_zero():
    i0 = lambda x: ew.mul(tr.exp(ew.abs(x)), sp.bessel_i0e(x))
    assert float(fm.grad(i0)(np.float64(0))) == 0
    np.testing.assert_allclose(fm.grad(fm.grad(i0))(np.float64(0)), 0.5, rtol=1e-14)
    np.testing.assert_allclose(fm.grad(sp.bessel_i1e)(np.float64(0)), 0.5, rtol=1e-14)


def test_polygamma_and_zeta_are_scipys(rng):
    x = rng.uniform(0.5, 20, 30)
    n = rng.integers(1, 6, 30).astype(np.float64)
    np.testing.assert_allclose(sp.polygamma(n, x), scipy.special.polygamma(n.astype(int), x), rtol=1e-13)
    np.testing.assert_allclose(sp.zeta(n + 0.5, x), scipy.special.zeta(n + 0.5, x), rtol=1e-13)


# ---- bad input


def test_errors_say_what_came_and_what_to_do():
    x = np.ones(3, np.float32)
    for call, error, words in [
        (lambda: tr.sin(np.arange(3)), TypeError, r"sin expects floats or complex numbers, got i64\[3\]"),
        (lambda: sp.erf(x + 0j), TypeError, r"erf expects floats, got c64\[3\]"),
        (lambda: pw.integer_pow(np.arange(3), -1), TypeError, r"integer_pow of i64\[3\]: integers take no negative power"),
        (lambda: tr.pow(np.arange(3), np.arange(3)), TypeError, r"pow expects floats or complex numbers, got i64\[3\], i64\[3\]"),
        (lambda: tr.pow(x, x.astype(float)), TypeError, r"requires arguments to have the same dtypes, got f32\[3\], f64\[3\]"),
        (lambda: fm.grad(sp.polygamma)(2.0, 3.0), MissingRuleError, r"polygamma has no derivative with respect to m; pass"),
    ]:
        with pytest.raises(error, match=words):
            call()
