"""Programs of each family of primitives through the compiler of TPUs, which needs no TPU; skipped where it is not installed."""

import importlib.util
import os

import numpy as np
import pytest

import funcml as fm
from funcml import lax, nn, random
from funcml import numpy as jnp
from funcml.core.avals import shaped
from funcml.core.tracing import trace
from funcml.lowering import rules  # noqa: F401
from funcml.lowering.emit import to_stablehlo
from funcml.scipy import special

pytestmark = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="the compiler of TPUs is not installed")

F32, C64, I32, U32 = np.float32, np.complex64, np.int32, np.uint32
V, M, T = (8,), (5, 5), (2, 6, 6, 3)


@pytest.fixture(scope="module")
def tpu():
    """A function that compiles a text for one chip of a described TPU."""
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    from jax._src.compiler import get_compile_options
    from jax._src.interpreters.mlir import make_ir_context
    from jax.experimental.topologies import get_topology_desc
    from jaxlib import _jax
    from jaxlib.mlir import ir

    device = get_topology_desc("v5e:2x2", platform="tpu").devices[0]

    def compile(text):
        with make_ir_context():
            module = ir.Module.parse(text)
            return device.client.compile(module, _jax.DeviceList((device,)), get_compile_options(1, 1))

    return compile


def compiles(tpu, fn, *types):
    avals = [shaped(s, np.dtype(d)) for s, d in types]
    jaxpr, _ = trace(lambda *xs: fm.tree.leaves(fn(*xs)), avals, "f")
    assert tpu(to_stablehlo(jaxpr, platform="tpu")) is not None


def test_a_text_that_is_wrong_is_refused(tpu):
    with pytest.raises(Exception, match="no_such_target"):
        tpu(
            "module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> { "
            "%0 = stablehlo.custom_call @no_such_target(%a) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } }"
        )


REAL = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log1p logistic sqrt rsqrt cbrt square "
    "erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e abs neg sign floor ceil round is_finite"
).split()
COMPLEX = "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log1p logistic sqrt rsqrt abs sign".split()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_elementwise_functions_of_real_numbers(tpu, dtype):
    compiles(tpu, lambda x: [getattr(lax, name)(x) for name in REAL], (V, jnp.dtype(dtype)))


def test_elementwise_functions_of_complex_numbers(tpu):
    compiles(tpu, lambda x: [getattr(lax, name)(x) for name in COMPLEX], (V, C64))


def test_elementwise_functions_of_two_numbers(tpu):
    names = "add sub mul div rem pow atan2 max min nextafter eq lt igamma igammac polygamma zeta".split()
    compiles(tpu, lambda x, y: [getattr(lax, name)(x, y) for name in names], (V, F32), (V, F32))
    compiles(tpu, lambda x, y, z: [lax.betainc(x, y, z), lax.clamp(x, y, z), lax.select(x < y, y, z)], *[(V, F32)] * 3)


def test_functions_of_integers(tpu):
    names = "bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical shift_right_arithmetic div rem max".split()
    for dtype in (I32, U32, np.int8):
        compiles(tpu, lambda x, y: [getattr(lax, name)(x, y) for name in names], (V, dtype), (V, dtype))
        compiles(tpu, lambda x: [lax.population_count(x), lax.clz(x), lax.bitwise_not(x), x.astype(F32)], (V, dtype))


def test_special_functions_and_their_derivatives(tpu):
    def derivative(f):
        return lambda x: fm.grad(lambda y: f(y).sum())(x)

    names = "gamma erfcx ndtri log_ndtr expi spence i0 i1".split()
    compiles(tpu, lambda x: [getattr(special, name)(x) for name in names], (V, F32))
    compiles(tpu, lambda x: [derivative(f)(x) for f in (lax.lgamma, lax.digamma, lax.bessel_i1e, lax.erf_inv)], (V, F32))
    compiles(tpu, lambda a, x: fm.grad(lambda a, x: lax.igamma(a, x).sum(), (0, 1))(a, x), (V, F32), (V, F32))


def test_reductions_and_cumulations(tpu):
    compiles(tpu, lambda x: [x.sum(0), x.prod(1), x.max(), x.min(0), jnp.argmax(x, 1), jnp.argmin(x), x.var(0)], (M, F32))
    compiles(tpu, lambda x: [lax.cumsum(x), lax.cumprod(x, reverse=True), lax.cummax(x), lax.cumlogsumexp(x)], (M, F32))
    compiles(tpu, lambda x: [jnp.any(x > 0, 0), jnp.all(x > 0), nn.logsumexp(x, 1), nn.softmax(x)], (M, F32))


def test_windows(tpu):
    def pooled(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

    compiles(tpu, lambda x: [pooled(x), fm.grad(lambda y: pooled(y).sum())(x), fm.jvp(pooled, (x,), (x,))], (T, F32))
    compiles(tpu, lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "VALID"), (T, F32))


def test_products_and_convolutions(tpu):
    def convolved(x, k):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=numbers)

    kernel = ((3, 3, 3, 4), F32)
    compiles(tpu, lambda x, k: [convolved(x, k), fm.grad(lambda *a: convolved(*a).sum(), (0, 1))(x, k)], (T, F32), kernel)
    compiles(tpu, lambda x, y: [x @ y, jnp.einsum("ij,kj->ik", x, y), lax.dot(x, y, precision="highest")], (M, F32), (M, F32))
    compiles(tpu, lambda x, y: [x @ y, lax.dot(x, y, preferred_element_type=F32)], (M, jnp.bfloat16), (M, jnp.bfloat16))


def test_indexing(tpu):
    def both(x, i):
        written = [x.at[i].set(1.0), x.at[i].add(2.0), x.at[i].max(0.0), x.at[i].mul(3.0)]
        return [x[i], *written, lax.dynamic_slice(x, (i[0], 0), (2, 2))]

    compiles(tpu, both, (M, F32), ((3,), I32))
    compiles(tpu, lambda x, i: fm.grad(lambda x: (x[i] ** 2).sum() + x.at[i].set(0.0).sum())(x), (M, F32), ((3,), I32))
    compiles(tpu, lambda x: [jnp.pad(x, 1), jnp.roll(x, 2, 0), jnp.flip(x, 1), x.T.reshape(-1)], (M, F32))
    compiles(tpu, lambda x: jnp.concatenate([x, x]), (M, F32))


def test_sorting(tpu):
    compiles(tpu, lambda x: [jnp.sort(x), jnp.argsort(x, 0), lax.top_k(x, 2), jnp.median(x, 0), lax.approx_max_k(x, 2)], (M, F32))
    compiles(tpu, lambda x: fm.grad(lambda y: jnp.sort(y)[0].sum() + lax.top_k(y, 2)[0].sum())(x), (M, F32))


def test_fourier_transforms(tpu):
    names = "fft rfft irfft fft2 ifftn".split()
    compiles(tpu, lambda x: [getattr(jnp.fft, name)(x) for name in names], ((4, 8), F32))
    compiles(tpu, lambda x: fm.grad(lambda y: jnp.abs(jnp.fft.rfft(y)).sum())(x), ((4, 8), F32))


LINEAR = {
    "cholesky": jnp.linalg.cholesky, "lu": lax.linalg.lu, "qr": jnp.linalg.qr, "eigh": jnp.linalg.eigh,
    "svd": jnp.linalg.svd, "inv": jnp.linalg.inv, "det": jnp.linalg.det,
    "triangular": lambda x: lax.linalg.triangular_solve(x, x),
    "householder": lambda x: lax.linalg.householder_product(x, x[0]),
    "tridiagonal": lambda x: lax.linalg.tridiagonal_solve(x[0], x[1], x[2], x),
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
def test_linear_algebra(tpu, name):
    compiles(tpu, LINEAR[name], (M, F32))


def test_control_flow(tpu):
    def step(carry, x):
        return carry * 0.5 + x, lax.cond(x.sum() > 0, jnp.sin, jnp.cos, carry)

    def looped(x):
        return lax.while_loop(lambda y: y.sum() < 100.0, lambda y: y * y + 1.0, x)

    compiles(tpu, lambda x: [lax.scan(step, x[0], x), looped(x), lax.fori_loop(0, 5, lambda i, y: y + i, x)], (M, F32))
    compiles(tpu, lambda x: fm.grad(lambda x: lax.scan(step, x[0], x)[1].sum() + looped(x).sum())(x), (M, F32))
    compiles(tpu, fm.vmap(looped), (M, F32))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_numbers(tpu, impl):
    def draw(seed):
        key, other = random.split(random.key(seed, impl=impl))
        return [random.bits(key, (3,)), random.normal(other, (3,)), random.permutation(key, 5), random.gamma(key, 2.0, (3,))]

    compiles(tpu, draw, ((), I32))
