"""Special functions beyond the elementary ones: against SciPy over their domains, and their derivatives."""

import mpmath
import numpy as np
import pytest
import scipy.special

import funcml as fm
from funcml.core import config
from funcml.scipy import special
from tests.products import check_products

inf, nan = np.inf, np.nan
X = np.concatenate([np.linspace(-12, 12, 97), [0.0, 1e-9, -1e-9, 1e-300, 30, -40, -1e3, 1e5, 1e10, inf, -inf, nan, 5.5, 100.5]])
PROBABILITIES = np.concatenate([np.linspace(0, 1, 41), [1e-300, 1e-20, 1e-5, 1 - 1e-12, 1.5, -0.5, nan, 0.5 + 1e-10]])
FACTORIALS = X[(X > -1) | (X == np.floor(X))]
UNARY = {
    "erfcx": X, "erfcinv": 2 * PROBABILITIES, "dawsn": X, "ndtri": PROBABILITIES, "gamma": X, "gammasgn": X,
    "factorial": FACTORIALS, "loggamma": X, "expi": X, "exp1": np.abs(X), "spence": np.linspace(0, 100, 301),
    "erfinv": PROBABILITIES,
}  # fmt: skip


def all_of(arguments):
    return {name: getattr(special, name)(x) for name, x in arguments.items()}


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 4e-14), (np.float32, 3e-6)], ids=["f64", "f32"])
def test_functions_of_one_argument(dtype, rtol):
    given = {name: x.astype(dtype) for name, x in UNARY.items()}
    for name, y in fm.jit(all_of)(given).items():
        with np.errstate(all="ignore"):
            want = getattr(scipy.special, name)(given[name].astype(float)).astype(dtype)
        assert y.dtype == dtype
        np.testing.assert_allclose(y, want, rtol=rtol, atol=np.finfo(dtype).tiny, err_msg=name)


def test_pairs_of_functions():
    x = X[np.abs(X) != inf]
    for name in ("sici", "fresnel"):
        for found, want in zip(getattr(special, name)(x), getattr(scipy.special, name)(x), strict=True):
            np.testing.assert_allclose(found, want, rtol=2e-14, atol=1e-16, err_msg=name)
    np.testing.assert_array_equal(special.sici(np.array([0.0, inf, -inf])), [[0, np.pi / 2, -np.pi / 2], [-inf, 0, nan]])
    np.testing.assert_array_equal(special.fresnel(np.array([inf, -inf])), [[0.5, -0.5], [0.5, -0.5]])


def test_expi_near_its_zero():
    x = np.array([0.37250741, 0.3725074107813666, 0.3725, 0.2, 0.57])
    with mpmath.workdps(30):
        want = [float(mpmath.ei(mpmath.mpf(v))) for v in x]
    np.testing.assert_allclose(special.expi(x), want, rtol=1e-13)


def test_exponential_integrals_of_every_order():
    n, x = (v.ravel() for v in np.meshgrid(np.arange(9), [0, inf, 1e-10, 0.1, 0.99, 1, 1.5, 7, 90]))
    np.testing.assert_allclose(special.expn(n, x), scipy.special.expn(n, x), rtol=1e-13)


SHAPES = np.array([0.01, 0.5, 1, 1.5, 7, 33, 1200, 1e6, 1e-12])


@pytest.mark.parametrize("name, rtol", [("beta", 1e-12), ("betaln", 1e-13)])
def test_beta_functions(name, rtol):
    a, b = (v.ravel() for v in np.meshgrid(SHAPES, SHAPES))
    with mpmath.workdps(40):
        want = [mpmath.beta(mpmath.mpf(p), mpmath.mpf(q)) for p, q in zip(a, b, strict=True)]
        want = np.array([float(mpmath.log(w) if name == "betaln" else w) for w in want])
    np.testing.assert_allclose(getattr(special, name)(a, b), want, rtol=rtol, atol=1e-15)


def test_limits_of_beta():
    np.testing.assert_array_equal([special.beta(-1.0, 1.0), special.beta(-2.0, 1.0), special.beta(inf, 1.0)], [-1, -0.5, 0])
    assert np.isnan(special.beta(nan, 1.0)) and special.beta(0.0, 1.0) == inf


def test_counting_functions():
    n, k = (v.ravel() for v in np.meshgrid([0.0, 1, 5, 10.5, 60], [0.0, 1, 2.5, 5, 70]))
    np.testing.assert_allclose(special.comb(n, k), scipy.special.comb(n, k), rtol=1e-13)
    np.testing.assert_allclose(special.comb(n, k, repetition=True), scipy.special.comb(n, k, repetition=True), rtol=1e-12)
    assert special.comb(5, 2) == 10
    z, m = (v.ravel() for v in np.meshgrid([0.5, 1, 3, 20.5, -0.5, -3], [0, 1, 2, 3.5, 7]))
    np.testing.assert_allclose(special.poch(z, m), scipy.special.poch(z, m), rtol=1e-12)
    want = [scipy.special.multigammaln(v, 4) for v in (3.0, 7.5)]
    np.testing.assert_allclose(special.multigammaln(np.array([3.0, 7.5]), 4), want, rtol=1e-13)
    np.testing.assert_allclose(special.bernoulli(60), scipy.special.bernoulli(60).astype(np.float32), rtol=1e-5)
    assert special.bernoulli(0).shape == (1,) and np.asarray(special.bernoulli(300))[300] == -inf


def test_power_transformations():
    x, p = (v.ravel() for v in np.meshgrid([0.0, 1e-3, 0.5, 1, 2, 1e6], [0.0, 1e-12, -0.5, 0.5, 1, 3, -2]))
    np.testing.assert_allclose(special.boxcox(x[x > 0], p[x > 0]), scipy.special.boxcox(x[x > 0], p[x > 0]), rtol=1e-12)
    np.testing.assert_allclose(special.boxcox1p(x, p), scipy.special.boxcox1p(x, p), rtol=1e-12)


def test_owens_t():
    h, a = (v.ravel() for v in np.meshgrid([0.0, 0.3, -1, 2.5, 8, 30, inf], [0.0, 0.2, 1, -1.5, 6, 100, inf]))
    np.testing.assert_allclose(special.owens_t(h, a), scipy.special.owens_t(h, a), rtol=1e-12, atol=1e-300)


def complex_points(rng):
    z = 10 ** rng.uniform(-3, 1.5, 200) * np.exp(1j * rng.uniform(-np.pi, np.pi, 200))
    return np.concatenate([z, [-0.5, -1.5, 0.5 + 1j, -2.5 + 1e-12j, -2.5 - 1e-12j, complex(-3.5, -0.0), 3, 2]])


@pytest.mark.parametrize("name", ["gamma", "loggamma", "wofz", "erfcx"])
def test_complex_functions(name, rng):
    z = complex_points(rng)
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(z)
    good = np.isfinite(want) & (np.abs(want) < 1e200) & (np.abs(want) > 1e-200)
    found = np.asarray(getattr(special, name)(z))
    assert np.max(np.abs(found[good] - want[good]) / np.abs(want[good])) < 2e-13


def test_complex_gamma_has_poles():
    found = np.asarray(special.gamma(np.array([0, -1, -2 + 0j])))
    assert np.isnan(found.real).all() and np.isnan(found.imag).all()


def test_bessel_functions_of_whole_order():
    z = np.array([0.0, 0.1, 1, 5, 12, -3])
    want = [scipy.special.jv(n, z) for n in range(5)]
    np.testing.assert_allclose(special.bessel_jn(z, v=4), want, rtol=1e-10, atol=1e-15)


def test_spherical_harmonics(rng):
    n, m = np.array([0, 1, 1, 2, 5, 5, 8, 3]), np.array([0, 1, -1, 0, 3, -4, 8, -3])
    theta, phi = rng.uniform(0, np.pi, 8), rng.uniform(0, 2 * np.pi, 8)
    want = scipy.special.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), want, rtol=1e-13)
    traced = fm.jit(lambda n: special.sph_harm_y(n, m, theta, phi, n_max=8))(n)
    np.testing.assert_allclose(traced, want, rtol=1e-13)


DIFFERENTIABLE = ["erfcx", "dawsn", "gamma", "expi", "exp1", "spence", "sici", "fresnel", "log_ndtr", "gammaln", "i0", "i1e"]
OF_TWO = ["betaln", "poch", "owens_t", "boxcox", "boxcox1p", "kl_div"]


def slopes(f, x):
    """f' and f'' in forward mode, element by element, and their central differences."""
    step = 1e-5
    ones = np.ones(x.shape)
    first = lambda v: fm.jvp(f, (v,), (ones,))[1]  # noqa: E731
    second = fm.jvp(first, (x,), (ones,))[1]
    differences = [(g(x + step) - g(x - step)) / (2 * step) for g in (f, first)]
    return (first(x), second), differences


def test_derivatives_of_functions_of_one_argument():
    x = np.array([0.3, 1.7, 4.2])
    first = lambda y: y[0] if isinstance(y, tuple) else y  # noqa: E731
    found = fm.jit(lambda x: {n: slopes(lambda v, n=n: first(getattr(special, n)(v)), x) for n in DIFFERENTIABLE})(x)
    for name, (exact, differences) in found.items():
        np.testing.assert_allclose(exact, differences, rtol=1e-6, atol=1e-8, err_msg=name)


def test_derivatives_of_functions_of_two_arguments():
    a, b = np.array([0.6, 2.3]), np.array([1.9, 14.0])

    def both(a, b):
        by_a = {n: slopes(lambda v, n=n: getattr(special, n)(v, b), a) for n in OF_TWO}
        return by_a, {n: slopes(lambda v, n=n: getattr(special, n)(a, v), b) for n in OF_TWO}

    for found in fm.jit(both)(a, b):
        for name, (exact, differences) in found.items():
            np.testing.assert_allclose(exact, differences, rtol=2e-6, atol=1e-8, err_msg=name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*DIFFERENTIABLE, *OF_TWO])
def test_products_of_functions(name):
    args = [np.array([0.6, 2.3]), np.array([1.9, 14.0])][: 2 if name in OF_TWO else 1]
    check_products(getattr(special, name), *args, rtol=3e-6)


@pytest.mark.parametrize("name, x, first, second", [
    ("i1", 0.0, 0.5, 0.0),
    ("i1e", 1e-20, 0.5, -1.0),
    ("dawsn", 1e-20, 1.0, -4e-20),
    ("erfcx", 1e5, -1 / (np.sqrt(np.pi) * 1e10), 2 / (np.sqrt(np.pi) * 1e15)),
    ("spence", 1.0, -1.0, 0.5),
    ("log_ndtr", -1e4, 1e4 + 1e-4, -1 + 1e-8),
    ("ndtri", 0.5, np.sqrt(2 * np.pi), 0.0),
])
def test_derivatives_at_tiny_and_huge_arguments(name, x, first, second):
    f = getattr(special, name)
    np.testing.assert_allclose(fm.grad(f)(np.float64(x)), first, rtol=1e-8)
    np.testing.assert_allclose(fm.grad(fm.grad(f))(np.float64(x)), second, rtol=1e-6, atol=1e-12)


def test_derivative_of_zeta_by_its_exponent():
    with mpmath.workdps(30):
        want = float(mpmath.diff(lambda s: mpmath.zeta(s, 0.7), 2.5))
    np.testing.assert_allclose(fm.grad(special.zeta)(np.float64(2.5), 0.7), want, rtol=1e-12)


def test_mixed_derivative_of_x_log_y_at_zero():
    assert float(fm.grad(fm.grad(special.xlogy, 1), 0)(0.0, 2.0)) == 0.5
    assert float(fm.grad(special.xlogy, 1)(0.0, 0.0)) == 0


def test_functions_work_under_strict_promotion():
    with config.numpy_dtype_promotion("strict"), config.numpy_rank_promotion("raise"):
        assert special.wofz(np.complex64(1j)).dtype == np.complex64
        slope = fm.jvp(special.wofz, (np.complex64(1j),), (np.complex64(1),))[1]
        np.testing.assert_allclose(slope, 2j / np.sqrt(np.pi) - 2j * scipy.special.wofz(1j), rtol=1e-5)
        assert special.betainc(np.float32(1), np.float32(2), np.float32(0.5)).dtype == np.float32


def test_errors_say_what_was_expected():
    with pytest.raises(TypeError, match=r"sici expects real numbers, got c64\[2\]"):
        special.sici(np.ones(2, np.complex64))
    with pytest.raises(TypeError, match="gammainc expects arrays or numbers, got None"):
        special.gammainc(1.0, None)
    with pytest.raises(ValueError, match="multigammaln expects d >= 1, got 0"):
        special.multigammaln(1.0, 0)
    with pytest.raises(ValueError, match="bernoulli expects n >= 0, got -1"):
        special.bernoulli(-1)
    with pytest.raises(NotImplementedError, match="math.factorial"):
        special.factorial(3, exact=True)
    with pytest.raises(ValueError, match=r"bessel_jn expects real numbers, got c64\[\]"):
        special.bessel_jn(np.complex64(1), v=1)
    with pytest.raises(TypeError, match="missing"):
        special.beta(1.0)
