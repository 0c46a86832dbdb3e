"""Initialisers: those of JAX, with the variance that they promise."""

import jax
import numpy as np
import pytest

import funcml as fm
from funcml import dtypes, nn, random

KEY, JAX_KEY = random.key(7), jax.random.key(7)
SHAPE = (64, 48)
SCHEMES = ("glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform")


def same(found, want):
    """Equal but for the rounding of the last multiplication, which XLA may merge with the one before."""
    found, want = np.asarray(found), np.asarray(want)
    assert found.dtype == want.dtype
    eps = float(dtypes.finfo(found.dtype).eps)
    np.testing.assert_allclose(found.astype(float), want.astype(float), rtol=eps)


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes_are_those_of_jax(name):
    ours, theirs = getattr(nn.initializers, name), getattr(jax.nn.initializers, name)
    same(ours()(KEY, SHAPE), theirs()(JAX_KEY, SHAPE))
    same(ours(dtype="bfloat16")(KEY, SHAPE), theirs(dtype="bfloat16")(JAX_KEY, SHAPE))
    same(ours(batch_axis=0)(KEY, (3, 2, 8, 5)), theirs(batch_axis=0)(JAX_KEY, (3, 2, 8, 5)))


@pytest.mark.parametrize("name", ["normal", "uniform", "truncated_normal", "constant"])
def test_plain_ones_are_those_of_jax(name):
    same(getattr(nn.initializers, name)(0.3)(KEY, SHAPE), getattr(jax.nn.initializers, name)(0.3)(JAX_KEY, SHAPE))


def test_a_scale_that_is_an_array_takes_the_dtype_of_the_samples():
    scale = fm.numpy.float32(0.3)
    for name in ("normal", "uniform", "truncated_normal"):
        found, want = (getattr(nn.initializers, name)(s, "bfloat16")(KEY, SHAPE) for s in (scale, 0.3))
        same(found, want)


def test_zeros_and_ones():
    assert not nn.initializers.zeros(KEY, (2, 3)).any() and nn.initializers.ones(KEY, 3, "int8").tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "uniform"])
@pytest.mark.parametrize("mode, fan", [("fan_in", 300), ("fan_out", 200), ("fan_avg", 250), ("fan_geo_avg", 60000**0.5)])
def test_variance(mode, fan, distribution, dtype):
    x = np.asarray(nn.initializers.variance_scaling(3.0, mode, distribution, dtype=dtype)(KEY, (300, 200)))
    assert x.dtype == dtype and abs(x.mean()) < 0.002
    np.testing.assert_allclose(np.mean(np.abs(x) ** 2), 3.0 / fan, rtol=0.02)


def test_under_transforms():
    init = nn.initializers.he_normal()
    keys = random.split(KEY, 3)
    want = np.stack([init(k, (4, 5)) for k in keys])
    np.testing.assert_allclose(fm.vmap(lambda k: init(k, (4, 5)))(keys), want, rtol=1e-6)
    np.testing.assert_allclose(fm.jit(lambda k: init(k, (4, 5)))(KEY), init(KEY, (4, 5)), rtol=1e-6)


def test_bad_arguments():
    with pytest.raises(ValueError, match="variance_scaling: expected a mode among fan_in, fan_out, .*, got 'fan'"):
        nn.initializers.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(ValueError, match="expected a distribution among .*, got 'cauchy'"):
        nn.initializers.variance_scaling(1.0, "fan_in", "cauchy")
    with pytest.raises(ValueError, match=r"the shape \(3,\) has no axes in_axis=-2"):
        nn.initializers.he_normal()(KEY, (3,))


def test_orthogonal_ones():
    for shape, axis in (((5, 3), -1), ((3, 5), 0), ((2, 3, 4), 1), ((4, 0), -1)):
        found, want = (m.orthogonal(0.5, axis)(k, shape) for m, k in ((nn.initializers, KEY), (jax.nn.initializers, JAX_KEY)))
        np.testing.assert_allclose(found, want, 1e-5, 1e-6)
    for shape in ((3, 2, 4), (3, 3, 2, 2), (1, 2, 3, 2, 4)):
        found, want = (m.delta_orthogonal()(k, shape) for m, k in ((nn.initializers, KEY), (jax.nn.initializers, JAX_KEY)))
        np.testing.assert_allclose(found, want, 1e-5, 1e-6)
    for call, words in (
        (lambda: nn.initializers.orthogonal()(KEY, (3,)), r"a shape of at least 2 axes, got \(3,\)"),
        (lambda: nn.initializers.delta_orthogonal()(KEY, (3, 3)), "a shape of 3 to 5 axes"),
        (lambda: nn.initializers.delta_orthogonal()(KEY, (3, 4, 2)), "at least as many outputs as inputs, got 2 for 4"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
