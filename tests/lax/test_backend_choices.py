"""What a caller says to the backend: precision, accuracy, algorithms, composites, approximate top k, bit generators."""

import jax.lax
import numpy as np
import pytest

import funcml as fm
from funcml import dtypes, lax
from funcml import numpy as jnp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype("f4")


@pytest.mark.parametrize("name", lax.DotAlgorithmPreset.__members__)
def test_presets_describe_themselves_as_in_jax(name):
    ours, theirs = lax.DotAlgorithmPreset[name], jax.lax.DotAlgorithmPreset[name]
    total, kinds = theirs.accumulation_type, theirs.supported_lhs_types
    assert ours.accumulation_type == (None if total is None else dtypes.canonical(total))
    assert ours.supported_lhs_types == (None if kinds is None else tuple(map(dtypes.canonical, kinds)))
    assert ours.supported_rhs_types == ours.supported_lhs_types and str(ours) == name


@pytest.mark.parametrize("precision", [
    lax.DotAlgorithmPreset.F32_F32_F32, lax.DotAlgorithm("f4", "f4", "f4"), "F32_F32_F32", lax.Precision.HIGHEST,
    (lax.Precision.HIGH, lax.Precision.DEFAULT), lax.DotAlgorithmPreset.DEFAULT,
])  # fmt: skip
def test_products_take_them(precision):
    np.testing.assert_allclose(lax.dot(X, X.T, precision=precision), X @ X.T, rtol=1e-5)


def test_algorithms_have_the_names_of_presets():
    assert lax.DotAlgorithm(dtypes.bfloat16, dtypes.bfloat16, "f4", 1, 1, 6).name == "BF16_BF16_F32_X6"
    assert lax.DotAlgorithm(dtypes.float8_e4m3fn, dtypes.float8_e5m2, "f4", 1, 1, 1, True).name == "ANY_F8_ANY_F8_F32_FAST_ACCUM"
    with pytest.raises(ValueError, match="no backend computes products by"):
        lax.dot(X, X.T, precision=lax.DotAlgorithm("f4", "f2", "f4"))


@pytest.mark.parametrize("dtypes_of", [("f2", "i2"), ("c8", "f4"), ("f2", "bfloat16"), ("u1", "i1"), ("i1", "i4"), ("f8", "f4")])
def test_products_of_two_dtypes_are_of_the_one_of_greater_range(dtypes_of):
    x, y = (np.ones(3).astype(dtypes.canonical(d)) for d in dtypes_of)
    with jax.enable_x64(True):
        want = jax.lax.dot(x, y)
    assert lax.dot(x, y).dtype == lax.dot(y, x).dtype == want.dtype and lax.dot(x, y) == 3


@pytest.mark.parametrize("accuracy", [None, lax.AccuracyMode.HIGHEST, lax.AccuracyMode.DEFAULT, lax.Tolerance(ulps=2)])
def test_accuracy(accuracy):
    for name in ("exp", "log1p", "tanh", "sqrt"):
        np.testing.assert_array_equal(getattr(lax, name)(X * X, accuracy=accuracy), getattr(lax, name)(X * X))


def test_bad_accuracy():
    with pytest.raises(TypeError, match="lax.exp: accuracy must be an AccuracyMode"):
        lax.exp(X, accuracy="high")
    with pytest.raises(ValueError, match="one of them positive"):
        lax.Tolerance()
    assert repr(lax.Tolerance(rtol=0.5)) == "Tolerance(atol=0.0, rtol=0.5, ulps=0)"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_mulhi(dtype):
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, 0, 1, 3, info.max // 3, info.max - 1, info.max]
    x, y = (np.array(v, dtype) for v in zip(*[(a, b) for a in values for b in values]))
    want = np.array([(int(a) * int(b)) >> info.bits for a, b in zip(x, y)], dtype)
    np.testing.assert_array_equal(lax.mulhi(x, y), want)


def test_mulhi_of_floats():
    with pytest.raises(TypeError, match="mulhi expects integers"):
        lax.mulhi(X, X)


def test_mul_in_another_dtype():
    found = lax.mul(np.int8(100), np.int8(100), out_dtype=np.int32)
    assert found == 10000 and found.dtype == np.int32


def test_approx_top_k_is_exact():
    values, places = lax.approx_max_k(X, 2, 0, recall_target=0.5)
    np.testing.assert_array_equal(values, np.sort(X, 0)[:0:-1])
    np.testing.assert_array_equal(places, np.argsort(-X, 0)[:2])
    values, places = lax.approx_min_k(X, 3)
    np.testing.assert_array_equal(values, np.sort(X)[:, :3])
    np.testing.assert_array_equal(fm.grad(lambda x: lax.approx_min_k(x, 1)[0].sum())(X), X == X.min(1, keepdims=True))
    with pytest.raises(TypeError, match="expects floats"):
        lax.approx_max_k(np.arange(3), 1)
    with pytest.raises(ValueError, match="recall_target"):
        lax.approx_max_k(X, 1, recall_target=0.0)


# ---- composites


def cubed(x, *, scale):
    return {"y": scale * x**3}


def test_a_composite_is_its_decomposition():
    f = lax.composite(cubed, "my.cube", 2)
    x = np.array([1.0, 2.0, -1.0])
    np.testing.assert_array_equal(f(x, scale=2)["y"], 2 * x**3)
    np.testing.assert_array_equal(fm.vmap(lambda x: f(x, scale=2)["y"])(x), 2 * x**3)
    for grad in (fm.grad, lambda g: fm.grad(fm.checkpoint(g)), lambda g: fm.grad(fm.jit(g))):
        np.testing.assert_allclose(grad(lambda x: f(x, scale=2)["y"].sum())(x), 6 * x**2)
    np.testing.assert_allclose(fm.hessian(lambda x: f(x, scale=2)["y"])(2.0), 24)


def test_the_text_of_a_composite():
    f = lax.composite(lambda x, y, **_: (y, x), "my.swap", version=3)
    attributes = dict(i=1, b=True, f=0.5, s='a "b"', d=np.dtype("f4"), none=None, a=np.array([[1, 2]]), l=[1, "x"], t={"k": 1})
    text = fm.jit(lambda x, y: f(x, y, **attributes)).lower(np.float32(1), np.int32(2)).as_text()
    assert (
        'stablehlo.composite "my.swap" %arg0, %arg1 {composite_attributes = {i = 1 : i64, b = true, f = 0.5 : f32, '
        's = "a \\"b\\"", d = f32, a = dense<[[1, 2]]> : tensor<1x2xi64>, l = [1 : i64, "x"], t = {k = 1 : i64}}, '
        "decomposition = @my.swap, version = 3 : i32} : (tensor<f32>, tensor<i32>) -> (tensor<i32>, tensor<f32>)"
    ) in text
    assert f(np.float32(1), np.int32(2), **attributes) == (2, 1)


def test_a_composite_may_close_over_arrays_and_have_no_operands():
    three = jnp.array([3.0])
    np.testing.assert_array_equal(lax.composite(lambda: three * 2, "my.six")(), [6.0])
    np.testing.assert_array_equal(lax.composite(lambda x: three * x, "my.triple")(2.0), [6.0])


def test_what_is_computed_is_no_attribute():
    with pytest.raises(TypeError, match=r"the attribute scale must be a number, .* got an array f32\[\]; what is computed"):
        lax.composite(cubed, "my.cube")(X, scale=jnp.float32(2))


# ---- and what is left


def test_rng_bit_generator():
    key = np.array([1, 2, 3, 4], np.uint32)
    for algorithm in (lax.RandomAlgorithm.RNG_DEFAULT, lax.RandomAlgorithm.RNG_THREE_FRY, 0):
        new, bits = lax.rng_bit_generator(key, (2, 3), np.uint8, algorithm)
        assert new.shape == (4,) and new.dtype == np.uint32 and bits.shape == (2, 3) and bits.dtype == np.uint8
    with pytest.raises(TypeError, match="expects a state"):
        lax.rng_bit_generator(X, (2,))


def test_small_names():
    assert lax.dtype(1.0) == np.float32 and lax.dtype(np.int8(1)) == np.int8
    np.testing.assert_array_equal(lax.shape_as_value((2, 3)), [2, 3])
    np.testing.assert_array_equal(lax.broadcast_like(X[0], X), np.broadcast_to(X[0], X.shape))
    assert lax.stage(1.5) == 1.5 and "copy" in str(fm.make_jaxpr(lambda: lax.stage(1.5))())
    assert lax.full_like(x=X, fill_value=2.0, dtype=np.int32).dtype == np.int32
    np.testing.assert_array_equal(lax.full((2,), 3.0), [3, 3])
    assert lax.nextafter(x1=np.float32(1), x2=np.float32(2)) > 1 and lax.zeta(x=2.0, q=1.0) > 1.6


@pytest.mark.parametrize("call", [
    lambda s: lax.dot(X, X.T, out_sharding=s), lambda s: lax.reshape(X, (12,), out_sharding=s),
    lambda s: lax.reduce_sum(X, (0,), out_sharding=s), lambda s: lax.reduce(X, 0.0, lax.add, (0,), out_sharding=s),
    lambda s: lax.broadcasted_iota(np.int32, (2,), 0, out_sharding=s), lambda s: lax.empty((2,), np.int32, out_sharding=s),
    lambda s: lax.broadcast_in_dim(X, (3, 4), (0, 1), out_sharding=s), lambda s: lax.broadcast(X, (2,), out_sharding=s),
])  # fmt: skip
def test_out_sharding_is_none(call):
    call(None)
    with pytest.raises(NotImplementedError, match="out_sharding must be None"):
        call("somewhere")
