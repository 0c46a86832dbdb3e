"""Distributions with parameters: JAX's samples for the same key, their distribution, derivatives, and what is refused."""

import functools

import jax
import numpy as np
import pytest
import scipy.stats

import funcml as fm
from funcml import random
from tests.random.test_distributions import same

KEY, JAX_KEY = random.key(7), jax.random.key(7)
SHAPE = (2001,)

# name -> the parameters, and the distribution that they make
FAMILIES = {
    "lognormal": ((0.5,), scipy.stats.lognorm(0.5)),
    "pareto": ((0.5,), scipy.stats.pareto(0.5)),
    "rayleigh": ((1.5,), scipy.stats.rayleigh(scale=1.5)),
    "wald": ((1.25,), scipy.stats.invgauss(1.25)),
    "triangular": ((-1.0, 0.25, 2.0), scipy.stats.triang(1.25 / 3, -1, 3)),
    "weibull_min": ((1.5, 0.75), scipy.stats.weibull_min(0.75, scale=1.5)),
    "maxwell": ((), scipy.stats.maxwell),
    "double_sided_maxwell": ((1.0, 2.0), scipy.stats.dgamma(1.5)),
}
EXACT = ("lognormal", "pareto", "triangular", "weibull_min")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_samples_are_those_of_jax(name, dtype):
    parameters = [np.asarray(p, fm.dtypes.canonical(dtype)) for p in FAMILIES[name][0]]
    found, want = (np.asarray(getattr(r, name)(k, *parameters, shape=SHAPE, dtype=dtype))
                   for r, k in ((random, KEY), (jax.random, JAX_KEY)))
    assert found.dtype == want.dtype
    if name in EXACT:
        same(found, want)
    else:  # sums in another order, formulas that do not cancel, no infinite sample
        finite = np.isfinite(want.astype(float))
        tolerance = 5e-5 if dtype == "float32" else 1
        np.testing.assert_allclose(found.astype(float)[finite], want.astype(float)[finite], tolerance, tolerance)
        assert (found == want).mean() > 0.6


@pytest.mark.parametrize("name", FAMILIES)
def test_distribution(name):
    parameters, distribution = FAMILIES[name]
    x = np.asarray(getattr(random, name)(KEY, *parameters, shape=(20000,)), np.float64)
    if name == "double_sided_maxwell":
        assert scipy.stats.kstest(np.abs(x - 1) / 2, scipy.stats.maxwell.cdf).pvalue > 0.01
        assert abs((x > 1).mean() - 0.5) < 0.01
    else:
        assert scipy.stats.kstest(x, distribution.cdf).pvalue > 0.01


def test_geometric():
    for p in (np.float32(0.3), np.linspace(0.01, 1, 9, dtype=np.float32), np.float32(1e-3)):
        same(random.geometric(KEY, p), jax.random.geometric(JAX_KEY, p))
        same(random.geometric(KEY, p, (40, 9), "int16"), jax.random.geometric(JAX_KEY, p, (40, 9), "int16"))
    assert random.geometric(KEY, 1, (5,)).tolist() == [1] * 5
    assert random.geometric(KEY, 0.0).item() == random.geometric(KEY, 1e-20).item() == 2**31 - 1


def test_no_sample_is_infinite_or_on_the_wrong_side():
    assert np.isfinite(np.asarray(random.rayleigh(KEY, 1.0, (10**7,)))).all()
    for mean in (1e-30, 1e-3, 1e6, 1e12, 1e30):
        x = np.asarray(random.wald(KEY, np.float32(mean), (10**5,)), np.float64)
        assert (x > 0).all() and np.isfinite(x).all(), mean
        if mean < 1e-2:
            np.testing.assert_allclose(x.mean(), mean, rtol=1e-2)
        if mean > 1e10:  # as the mean grows the distribution tends to that of 1 / z^2, z normal
            assert scipy.stats.kstest(1 / np.sqrt(x), scipy.stats.halfnorm.cdf).pvalue > 0.01


def test_shapes_of_parameters():
    row, column = np.ones(3, np.float32), np.full((2, 1), 0.5, np.float32)
    for name, parameters in (("triangular", (0.0, column, row)), ("wald", (row,)), ("rayleigh", (column,)), ("pareto", (row,))):
        want = getattr(jax.random, name)(JAX_KEY, *[np.asarray(p, np.float32) for p in parameters])
        found = getattr(random, name)(KEY, *parameters)
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, 1e-4)
    assert random.double_sided_maxwell(KEY, row, column, (5,)).shape == (5, 2, 3)
    same(random.weibull_min(KEY, row, 0.5, (2, 3)), jax.random.weibull_min(JAX_KEY, row, 0.5, (2, 3)))
    independent = np.asarray(random.weibull_min(KEY, np.ones(100), 1.0))
    assert len(np.unique(independent)) == 100


def test_gumbel_modes():
    for mode in ("low", "high", "highest", None):
        for dtype in ("float32", "float16"):
            same(random.gumbel(KEY, SHAPE, dtype, mode), jax.random.gumbel(JAX_KEY, SHAPE, dtype, mode), str(mode))
    from funcml.random.extremes import _truncated

    bits = np.array([0, 1, 2, 3, 2**24 - 1, 2**25 - 1, 2**40 + 2**39 + 1, 2**63, 2**64 - 1], np.uint64)
    want = [2.0**-65, *[int(b) / 2**64 for b in bits[1:5]], (2**25 - 2) / 2**64, 1.5 * 2**-24, 0.5, 1 - 2**-24]
    np.testing.assert_array_equal(np.asarray(_truncated(bits), np.float64), want)


def test_complex_lognormal():
    found = random.lognormal(KEY, np.float32(0.5), SHAPE, "complex64")
    np.testing.assert_allclose(found, jax.random.lognormal(JAX_KEY, np.float32(0.5), SHAPE, "complex64"), 1e-5)


@pytest.mark.parametrize("name", [n for n, (p, _) in FAMILIES.items() if p])
def test_derivatives_of_parameters(name):
    parameters = [np.float64(p) for p in FAMILIES[name][0]]
    shaped = () if name == "double_sided_maxwell" else (7,)
    f = functools.partial(getattr(random, name), KEY, shape=shaped, dtype="float64")
    for i in range(len(parameters)):
        def at(step, i=i):
            return np.asarray(f(*[p + step * (i == j) for j, p in enumerate(parameters)]))

        slope = (at(1e-6) - at(-1e-6)) / 2e-6
        np.testing.assert_allclose(fm.jacfwd(lambda *p: f(*p), i)(*parameters), slope, 1e-5, 1e-7)
        np.testing.assert_allclose(fm.jacrev(lambda *p: f(*p), i)(*parameters), slope, 1e-5, 1e-7)


@pytest.mark.parametrize("call, error, words", [
    (lambda: random.pareto(KEY, 1.0, (2,), "int32"), ValueError, "pareto: expected a floating dtype, got i32"),
    (lambda: random.pareto(KEY, 1j), TypeError, r"pareto: expected real numbers as parameter, got c64\[\]"),
    (lambda: random.pareto(KEY, [1.0]), TypeError, "pareto expects arrays or numbers, got .* of type list"),
    (lambda: random.wald(KEY, np.ones(3), (2,)), ValueError, r"wald: parameters of shape \(3,\) do not broadcast to the shape"),
    (lambda: random.geometric(KEY, 0.5, dtype="float32"), ValueError, "geometric: expected an integer dtype, got f32"),
    (lambda: random.geometric(KEY, 1j), TypeError, r"geometric: expected real probabilities p, got c64\[\]"),
    (lambda: random.lognormal(KEY, dtype="int8"), ValueError, "argument to lognormal must be a floating .*, got i8"),
    (lambda: random.gumbel(KEY, mode="best"), ValueError, "gumbel: expected the mode 'low', 'high' or 'highest', got 'best'"),
])  # fmt: skip
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
