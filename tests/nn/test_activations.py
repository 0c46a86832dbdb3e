"""Activations: against JAX over dtypes and edge values, their derivatives, and what they refuse."""

import jax
import numpy as np
import pytest

import funcml as fm
from funcml import dtypes, nn
from tests.products import check_products

NAMES = (
    "relu", "relu6", "leaky_relu", "hard_tanh", "hard_sigmoid", "hard_silu", "sparse_plus", "sparse_sigmoid", "elu",
    "celu", "selu", "tanh", "sigmoid", "softplus", "log_sigmoid", "silu", "mish", "soft_sign", "gelu", "identity",
)  # fmt: skip
EDGES = np.array([0.0, -0.0, 1, -1, 3, -3, 6, 1e-8, 1e4, -1e4, np.inf, np.nan])
X = np.concatenate([np.linspace(-9, 9, 41), EDGES])


def all_of(module):
    """One function of x with the results of all activations."""

    def run(x):
        results = {name: getattr(module, name)(x) for name in NAMES}
        results["exact gelu"] = module.gelu(x, approximate=False)
        results["elu 2"], results["celu 2"] = module.elu(x, 2.0), module.celu(x, alpha=2.0)
        results["leaky 1/4"] = module.leaky_relu(x, negative_slope=0.25)
        return results

    return run


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_values_are_those_of_jax(dtype):
    dtype = dtypes.canonical(dtype)
    x = X.astype(dtype)
    with jax.enable_x64(True):
        want = jax.jit(all_of(jax.nn))(x)
    found = fm.jit(all_of(nn))(x)
    eps = float(dtypes.finfo(dtype).eps)
    for name, y in found.items():
        assert y.dtype == dtype == want[name].dtype
        y, z = (np.asarray(a).astype(float) for a in (y, want[name]))
        y[np.isnan(z) & ~np.isnan(X)] = np.nan  # JAX has no limits at infinity
        atol = 32 * eps if name == "gelu" else eps / 8  # JAX's cancels for x < 0
        np.testing.assert_allclose(y, z, rtol=8 * eps, atol=atol, err_msg=name)


LIMITS = {
    "silu": (0, np.inf), "mish": (0, np.inf), "gelu": (0, np.inf), "hard_silu": (0, np.inf), "soft_sign": (-1, 1),
    "squareplus": (0, np.inf), "softplus": (0, np.inf), "sparse_plus": (0, np.inf), "elu": (-1, np.inf), "relu6": (0, 6),
}  # fmt: skip


def test_limits():
    for name, limits in LIMITS.items():
        f = getattr(nn, name)
        slopes = [float(y > 0 and not np.isfinite(y)) for y in limits]
        assert [float(f(x)) for x in (-np.inf, np.inf)] == list(limits), name
        assert [float(fm.grad(f)(x)) for x in (-np.inf, np.inf)] == slopes, name
    assert float(nn.gelu(-np.inf, approximate=False)) == 0 and float(nn.squareplus(np.float32(1e30))) == np.float32(1e30)


def test_gelu_does_not_cancel():
    x = np.float32([-1, -3, -5, -8])
    u = np.sqrt(2 / np.pi) * (x + 0.044715 * x.astype(float) ** 3)
    np.testing.assert_allclose(nn.gelu(x), x / (1 + np.exp(-2 * u)), 1e-5)


def test_integers():
    x = np.array([-2, 0, 3])
    assert nn.relu(x).dtype == x.dtype and nn.relu(x).tolist() == [0, 0, 3]
    assert nn.identity(x).tolist() == x.tolist()
    assert nn.relu6(x.astype("int32")).dtype == np.float32 and nn.gelu(np.int64(1)).dtype == np.float64


def test_squareplus_does_not_cancel():
    x = np.array([-1e6, -3.0, 0.0, 3.0, 1e6])
    np.testing.assert_allclose(nn.squareplus(x), [1e-6, (np.sqrt(13) - 3) / 2, 1, (3 + np.sqrt(13)) / 2, 1e6 + 1e-6], rtol=1e-12)
    assert nn.squareplus(-np.inf) == 0 and nn.squareplus(np.inf) == np.inf


def test_log1mexp():
    x = np.array([0.0, 1e-20, 0.5, 1.0, 40.0])
    want = [-np.inf, np.log(1e-20), np.log1p(-np.exp(-0.5)), np.log1p(-np.exp(-1.0)), -np.exp(-40.0)]
    np.testing.assert_allclose(nn.log1mexp(x), want, rtol=1e-14)


def test_glu():
    x = np.arange(12.0).reshape(2, 6) / 5
    want = x[:, :3] / (1 + np.exp(-x[:, 3:]))
    np.testing.assert_allclose(nn.glu(x), want, rtol=1e-14)
    np.testing.assert_allclose(nn.glu(x.T, axis=0), want.T, rtol=1e-14)
    with pytest.raises(ValueError, match=r"glu of f64\[3\]: expected an even length of axis 0, got 3"):
        nn.glu(np.zeros(3))


def test_derivatives():
    x = np.array([-2.7, -0.4, 0.3, 3.7])

    def smooth(x, alpha):
        several = [getattr(nn, name)(x) for name in ("selu", "mish", "log_sigmoid", "soft_sign", "squareplus")]
        return [*several, nn.gelu(x), nn.gelu(x, False), nn.glu(x), nn.elu(x, alpha), nn.log1mexp(abs(x))]

    check_products(smooth, x, np.float64(1.7), products=("jit", "jvp", "vjp", "order2"))


def test_derivatives_of_what_has_kinks():
    x = np.array([-5.5, -2.7, -0.4, 0.3, 1.9, 7.1])

    def pieces(x):
        names = ("relu", "relu6", "leaky_relu", "hard_tanh", "hard_silu", "sparse_plus", "sparse_sigmoid", "celu")
        return [getattr(nn, name)(x) for name in names]

    check_products(pieces, x, products=("jvp", "vjp", "vmap"))


def test_gradients_stay_finite_far_out():
    x = np.float32([-3e38, -1e20, -1e3, 1e3, 1e20, 3e38])
    smooth = ("gelu", "elu", "celu", "selu", "softplus", "log_sigmoid", "silu", "mish", "sparse_plus")
    gradients = fm.jit(lambda x: {n: fm.vmap(fm.grad(getattr(nn, n)))(x) for n in smooth})(x)
    for name, g in gradients.items():
        assert np.isfinite(np.asarray(g)).all(), name


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"relu expects arrays or numbers, got \[1.0, 2.0\] of type list"):
        nn.relu([1.0, 2.0])
    with pytest.raises(TypeError, match="elu"):
        nn.elu(1.0, alpha="x")
