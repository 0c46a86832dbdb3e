"""Samples: JAX's bits for the same key, their distribution, and what is refused."""

import jax
import numpy as np
import pytest
import scipy.stats

import funcml as fm
from funcml import dtypes, random
from funcml.core.config import enable_x64

KEY, JAX_KEY = random.key(7), jax.random.key(7)
N = (1001,)


def same(found, want, message=""):
    found, want = np.asarray(found), np.asarray(want)
    assert found.dtype == want.dtype and found.shape == want.shape, message
    bits = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (found, want))
    np.testing.assert_array_equal(*bits, err_msg=message)


# ---- against JAX -----------------------------------------------------------------------------------------------

PLAIN = ("uniform", "normal", "exponential", "laplace", "logistic", "cauchy", "gumbel")


@pytest.mark.parametrize("name", PLAIN)
def test_samples_are_those_of_jax(name):
    for shape in (N, (), (2, 0), (3, 4)):
        same(getattr(random, name)(KEY, shape), getattr(jax.random, name)(JAX_KEY, shape), name)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_samples_of_other_dtypes_are_those_of_jax(dtype):
    with jax.enable_x64(True):
        for name in ("uniform", "normal", "gumbel"):
            same(getattr(random, name)(KEY, N, dtype), getattr(jax.random, name)(JAX_KEY, N, dtype), name)
        # JAX's log1p is not exact to rounding in float64
        found, want = random.exponential(KEY, N, dtype), np.asarray(jax.random.exponential(JAX_KEY, N, dtype))
        np.testing.assert_allclose(np.asarray(found).astype(float), want.astype(float), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds(dtype):
    upper = np.linspace(0.5, 1.5, 1001)
    samplers = [
        lambda r, key: r.uniform(key, N, dtype, -3, 2.3),
        lambda r, key: r.uniform(key, N, dtype, np.float32(-3.1), upper),
        lambda r, key: r.truncated_normal(key, -2, 2, N, dtype),
        lambda r, key: r.truncated_normal(key, -2.0, upper, None, dtype),
        lambda r, key: r.truncated_normal(key, 1, 1.6, N, dtype),
    ]
    with jax.enable_x64(True):
        for i, sample in enumerate(samplers):
            found, want = np.asarray(sample(random, KEY)), np.asarray(sample(jax.random, JAX_KEY))
            if i == 3:  # products and sums with the bounds may be contracted otherwise
                assert found.dtype == want.dtype
                np.testing.assert_allclose(found, want, 16 * np.finfo(dtype).eps, 8 * np.finfo(dtype).eps)
            else:
                same(found, want, str(i))


def test_complex_and_raw_keys():
    same(random.normal(KEY, N, "complex64"), jax.random.normal(JAX_KEY, N, "complex64"))
    same(random.normal(random.PRNGKey(3), (2, 3)), jax.random.normal(jax.random.PRNGKey(3), (2, 3)))
    raw = random.normal(random.PRNGKey(7), N, "complex64")
    same(raw, random.normal(KEY, N, "complex64"))


def test_bits():
    with jax.enable_x64(True):
        for dtype in ("uint8", "uint16", "uint32", "uint64"):
            for shape in ((), (5,), (2, 3)):
                same(random.bits(KEY, shape, dtype), jax.random.bits(JAX_KEY, shape, dtype), dtype)
    same(random.bits(KEY, (4,)), jax.random.bits(JAX_KEY, (4,)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_integers(dtype):
    limits, low, high = np.iinfo(dtype), np.arange(3)[:, None], np.arange(4) * 100
    with jax.enable_x64(True):
        for minval, maxval in ((0, 10), (limits.min, limits.max), (7, 3)):
            same(random.randint(KEY, N, minval, maxval, dtype), jax.random.randint(JAX_KEY, N, minval, maxval, dtype))
        same(random.randint(KEY, (3, 4), low, high, dtype), jax.random.randint(JAX_KEY, (3, 4), low, high, dtype))
    whole = np.asarray(random.randint(KEY, (20000,), int(limits.min), int(limits.max) + 1, dtype)).astype(float)
    assert whole.min() < limits.min + limits.max / 50 and whole.max() > limits.max * 0.95


def test_bernoulli_and_rademacher():
    for p in (0.5, np.float32(0.2), np.linspace(0, 1, 9, dtype=np.float32)):
        for mode in ("low", "high"):
            same(random.bernoulli(KEY, p, mode=mode), jax.random.bernoulli(JAX_KEY, p, mode=mode))
        same(random.bernoulli(KEY, p, (4, 9)), jax.random.bernoulli(JAX_KEY, p, (4, 9)))
    for dtype in (None, "float32", "int8"):
        same(random.rademacher(KEY, N, dtype), jax.random.rademacher(JAX_KEY, N, *([dtype] if dtype else [])))


def test_categorical(rng):
    logits = rng.normal(size=(4, 5, 6)).astype(np.float32)
    for axis in (0, 1, -1):
        batch = tuple(np.delete(logits.shape, axis))
        for options in ({}, {"shape": (7, *batch)}, {"shape": (3, *batch), "replace": False}, {"mode": "high"}):
            found = random.categorical(KEY, logits, axis, **options)
            same(found, jax.random.categorical(JAX_KEY, logits, axis, **options), f"{axis} {options}")
    same(random.categorical(KEY, logits[:, :1], 2, (2, 4, 5)), jax.random.categorical(JAX_KEY, logits[:, :1], 2, (2, 4, 5)))


def test_permutation(rng):
    x = rng.normal(size=(4, 5, 6)).astype(np.float32)
    for n in (0, 1, 10, 3000):
        same(random.permutation(KEY, n), jax.random.permutation(JAX_KEY, n))
    for axis, independent in ((0, False), (-1, False), (1, True)):
        same(random.permutation(KEY, x, axis, independent), jax.random.permutation(JAX_KEY, x, axis, independent))


def test_choice():
    p = np.random.default_rng(0).random(17).astype(np.float32)
    table = np.arange(34, dtype=np.float32).reshape(17, 2)
    for a in (17, table):
        weighted = {"shape": (5,), "p": p}
        for options in ({}, {"shape": (2, 3), "replace": False}, weighted, {**weighted, "replace": False}):
            same(random.choice(KEY, a, **options), jax.random.choice(JAX_KEY, a, **options), str(options))
    same(random.choice(KEY, table, (2, 2), axis=1), jax.random.choice(JAX_KEY, table, (2, 2), axis=1))
    assert random.choice(KEY, table, (0, 3), axis=1).shape == (17, 0, 3)


# ---- statistics ------------------------------------------------------------------------------------------------

DISTRIBUTIONS = {
    "uniform": scipy.stats.uniform, "normal": scipy.stats.norm, "exponential": scipy.stats.expon, "laplace": scipy.stats.laplace,
    "logistic": scipy.stats.logistic, "cauchy": scipy.stats.cauchy, "gumbel": scipy.stats.gumbel_r,
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_distribution_functions(name):
    x = np.asarray(getattr(random, name)(random.key(1), (50000,)))
    assert scipy.stats.kstest(x, DISTRIBUTIONS[name].cdf).pvalue > 0.01


@pytest.mark.parametrize("lower, upper, dtype", [
    (5.5, 1e6, "float32"), (4, 4.5, "float32"), (-np.inf, -5, "float32"), (100, 101, "float32"), (5.8, 6.5, "float64"),
    (8, np.inf, "float64"), (-40, -30, "float64"), (-1, 3, "float64"), (3.5, 9, "float32"),
])
def test_the_truncated_normal_distribution_and_its_tails(lower, upper, dtype):
    x = np.asarray(random.truncated_normal(random.key(1), lower, upper, (50000,), dtype)).astype(float)
    assert (x > lower).all() and (x < upper).all()
    if upper < 0:
        x, lower, upper = -x, -upper, -lower
    survival = scipy.stats.norm.logsf

    def cdf(t):
        return np.expm1(survival(t) - survival(lower)) / np.expm1(survival(upper) - survival(lower))

    assert scipy.stats.kstest(x, cdf).pvalue > 0.01


def test_truncated_normal_never_reaches_its_bounds():
    x = np.asarray(random.truncated_normal(random.PRNGKey(3), -100.0, 100.0, (200000,)))
    assert (np.abs(x) < 10).all()


def test_bernoulli_with_small_probabilities():
    counts = [np.asarray(random.bernoulli(k, 1e-7, (10**7,), mode="high")).sum() for k in random.split(KEY, 4)]
    assert 0 < sum(counts) < 15


# ---- under transforms ------------------------------------------------------------------------------------------


def test_samples_of_many_keys_are_those_of_each():
    keys = random.split(KEY, 3)

    def samples(key):
        return {
            "normal": random.normal(key, (4,)), "randint": random.randint(key, (4,), 0, 100),
            "permutation": random.permutation(key, 20), "truncated": random.truncated_normal(key, -2, 2, (4,)),
            "categorical": random.categorical(key, np.zeros((2, 5), np.float32)),
        }  # fmt: skip

    mapped, compiled = fm.vmap(samples)(keys), fm.jit(samples)
    for i, key in enumerate(keys):
        for name, x in compiled(key).items():
            np.testing.assert_allclose(mapped[name][i], x, rtol=1e-6)
            np.testing.assert_allclose(samples(key)[name], x, rtol=1e-6)


def test_derivatives_of_parameters():
    def f(low, high):
        return random.uniform(KEY, (5,), "float64", low, high)

    u = np.asarray(f(0.0, 1.0))
    for argument, want in ((0, 1 - u), (1, u)):
        np.testing.assert_allclose(fm.jacrev(f, argument)(np.float64(-1), np.float64(3)), want, rtol=1e-12)

    def truncated(a, b):
        return random.truncated_normal(KEY, a, b, (5,), "float64")

    for a, b in ((-1.0, 2.0), (7.0, 9.0), (6.5, np.inf), (-9.0, -7.0)):
        step = 1e-5
        slope = fm.jacfwd(truncated)(np.float64(a), np.float64(b))
        difference = (np.asarray(truncated(a + step, b)) - np.asarray(truncated(a - step, b))) / (2 * step)
        np.testing.assert_allclose(slope, difference, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(fm.jacrev(truncated)(np.float64(a), np.float64(b)), slope, rtol=1e-10)


# ---- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, error, words", [
    (lambda: random.uniform(KEY, (2,), "int32"), ValueError, "uniform: expected a floating dtype, got i32"),
    (lambda: random.normal(KEY, (2,), "bool"), ValueError, "argument to normal must be a floating .*, got bool"),
    (lambda: random.bits(KEY, (2,), "int32"), ValueError, "dtype argument to bits must be an unsigned int dtype .*, got i32"),
    (lambda: random.uniform(KEY, (-1,)), ValueError, "uniform: lengths must not be negative"),
    (lambda: random.uniform(KEY, (2,), minval=np.zeros(3)), ValueError,
     r"parameters of shape \(3,\) do not broadcast to the shape \(2,\)"),
    (lambda: random.randint(KEY, (2,), 0.5, 2), TypeError, r"randint: expected integers as minval, got f32\[\]"),
    (lambda: random.randint(KEY, (2,), 0, 2, "float32"), TypeError, "randint: expected an integer dtype, got f32"),
    (lambda: random.bernoulli(KEY, 1), TypeError, r"bernoulli: expected floating probabilities p, got i32\[\]"),
    (lambda: random.bernoulli(KEY, 0.5, mode="best"), ValueError, "bernoulli: expected the mode 'low' or 'high', got 'best'"),
    (lambda: random.categorical(KEY, 1.0), TypeError, "categorical: expected floating logits with an axis"),
    (lambda: random.categorical(KEY, np.zeros(2, "f"), shape=(3,), replace=False), ValueError,
     "samples without replacement, 3, exceeds the 2 categories"),
    (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError,
     "choice: 4 samples were asked for, but there are 3 elements"),
    (lambda: random.choice(KEY, 0), ValueError, "choice: expected at least one element"),
    (lambda: random.choice(KEY, 3, p=np.zeros(2)), ValueError, r"probabilities p of the shape \(3,\), got f64\[2\]"),
    (lambda: random.permutation(KEY, 2.5), TypeError, "permutation: expected an int or an array with an axis"),
    (lambda: fm.jit(lambda n: random.permutation(KEY, n))(3), TypeError, "permutation: .* in the number of elements"),
])  # fmt: skip
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_dtypes_of_results():
    assert random.permutation(KEY, 3).dtype == dtypes.int32
    with enable_x64(True):
        assert random.normal(KEY).dtype == np.float64 and random.randint(KEY, (), 0, 2).dtype == np.int64
        assert random.bits(KEY).dtype == np.uint64 and random.categorical(KEY, np.zeros(2, "f")).dtype == np.int64
