"""Special functions: against SciPy, and their derivatives."""

import numpy as np
import pytest
import scipy.special

import funcml as fm
from funcml import dtypes
from funcml.scipy import special
from tests.products import check_products

X = np.concatenate([np.linspace(-12, 12, 49), [0.0, 1e-9, 30, -40, -1e3, np.inf, -np.inf, np.nan]])
PROBABILITIES = np.linspace(0, 1, 21)
POSITIVE = np.abs(X) + 0.1
UNARY = {
    "erf": X, "erfc": X, "erfinv": PROBABILITIES, "ndtr": X, "log_ndtr": X, "expit": X, "logit": PROBABILITIES,
    "gammaln": POSITIVE, "digamma": POSITIVE, "i0": X, "i1": X, "i0e": X, "i1e": X, "entr": X,
}  # fmt: skip


def unary(arguments):
    return {name: getattr(special, name)(x) for name, x in arguments.items()}


@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-13), ("float32", 1e-5), ("bfloat16", 0.02)])
def test_functions_of_one_argument(dtype, rtol):
    given = {name: x.astype(dtypes.canonical(dtype)) for name, x in UNARY.items()}
    for name, y in fm.jit(unary)(given).items():
        want = getattr(scipy.special, name)(given[name].astype(float))
        want = want.astype(y.dtype).astype(float)
        assert y.dtype == given[name].dtype
        np.testing.assert_allclose(np.asarray(y).astype(float), want, rtol=rtol, atol=rtol * 1e-2, err_msg=name)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_limits_of_functions_of_two_arguments(name):
    x, y = np.meshgrid([0.0, -0.0, 0.5, 1, 2, -1, np.inf, np.nan], [0, 0.5, 1, 2, -1, np.inf, np.nan])
    np.testing.assert_allclose(getattr(special, name)(x, y), getattr(scipy.special, name)(x, y), rtol=1e-13)


def test_polygamma_and_zeta():
    np.testing.assert_allclose(special.polygamma(2, POSITIVE[:9]), scipy.special.polygamma(2, POSITIVE[:9]), rtol=1e-12)
    np.testing.assert_allclose(special.zeta(3.0, POSITIVE[:9]), scipy.special.zeta(3.0, POSITIVE[:9]), rtol=1e-12)


def test_the_logarithm_of_a_tail_probability_is_exact_in_float32():
    x = -np.linspace(0, 100, 201, dtype=np.float32)
    np.testing.assert_allclose(special.log_ndtr(x), scipy.special.log_ndtr(x.astype(float)), rtol=2e-6)


def test_derivatives():
    x = np.array([-7.3, -2.1, -0.4, 0.3, 3.2])

    def everything(x):
        p = special.expit(x)
        several = [special.log_ndtr(x), special.ndtr(x), special.i0(x / 2), special.i1(x / 2), special.i1e(x)]
        return [*several, special.logit(p), special.entr(p), special.xlogy(p, 1 + p), special.xlog1py(p, x * x),
                special.rel_entr(p, 1 - p), special.kl_div(p, 2 * p)]  # fmt: skip

    check_products(everything, x, products=("jvp", "vjp", "order2", "vmap"))


def test_derivatives_at_zero():
    assert float(fm.grad(lambda y: special.xlogy(0.0, y))(0.0)) == 0
    assert np.isclose(fm.grad(special.xlogy)(0.0, 2.0), np.log(2.0))
    np.testing.assert_allclose(fm.grad(fm.grad(lambda t: special.i0(2 * t - 1)))(np.float64(0.5)), 2, rtol=1e-12)
    np.testing.assert_allclose(fm.grad(special.log_ndtr)(np.float64(-30)), 30.03326, rtol=1e-6)


def test_logsumexp_is_that_of_nn():
    assert special.logsumexp(np.array([-np.inf, -np.inf])) == -np.inf
    np.testing.assert_allclose(special.softmax(np.zeros(4)), np.full(4, 0.25))


def test_what_is_no_number():
    with pytest.raises(TypeError, match=r"erf expects real numbers, got c128\[\]"):
        special.erf(np.complex128(1))
    with pytest.raises(TypeError, match="xlogy expects arrays or numbers, got None"):
        special.xlogy(None, 1.0)
