"""How operands come to one dtype and shape: how many equations that takes, and what does not mix."""

import warnings

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from funcml.core.config import config, enable_x64

F32 = funcml.ShapeDtypeStruct((2, 3), "float32")
ROW = funcml.ShapeDtypeStruct((3,), "float32")
F16 = funcml.ShapeDtypeStruct((2, 3), "float16")
I32 = funcml.ShapeDtypeStruct((2, 3), "int32")


def equations(function, *structs) -> list[str]:
    return [eqn.primitive.name for eqn in funcml.make_jaxpr(function)(*structs).eqns]


@pytest.mark.parametrize("function, structs, want", [
    (lambda x, y: x + y, (F32, F32), ["add"]),
    (lambda x: x * 2.0, (F32,), ["mul"]),
    (lambda x: 2 - x, (F32,), ["sub"]),
    (lambda x: x * np.float32(2), (F32,), ["mul"]),
    (lambda x: x * 2.0, (F16,), ["mul"]),
    (lambda x: x + 1, (I32,), ["add"]),
    (lambda x: x * 1.5, (I32,), ["convert", "mul"]),
    (lambda x, b: x + b, (F32, ROW), ["broadcast_in_dim", "add"]),
    (lambda x, y: x * y, (F32, F16), ["convert", "mul"]),
    (lambda x: x**2, (F32,), ["square"]),
    (lambda x: x**2.5, (F32,), ["pow"]),
    (lambda x: x > 0, (F32,), ["gt"]),
    (lambda x: jnp.sin(x), (I32,), ["convert", "sin"]),
    (lambda x: -x, (F32,), ["neg"]),
    (lambda x, y: x @ y.T, (F32, F32), ["transpose", "dot_general"]),
    (lambda x, y: jnp.where(x > y, x, y), (F32, F32), ["gt", "select_n"]),
    (lambda x: x.reshape(2, 3).T.T.astype("float32"), (F32,), ["transpose", "transpose"]),
    (lambda x: x.sum(0), (F32,), ["reduce_sum"]),
], ids=range(18))
def test_as_few_equations_as_possible(function, structs, want):
    assert equations(function, *structs) == want


def test_python_numbers_keep_all_their_digits_beside_float64():
    x, i = np.array([0.5, 1.5]), jnp.asarray(np.array([1, 2]))
    for ours, want in [
        (jnp.add(x, 0.1), x + 0.1), (jnp.clip(x, 0.1, 0.7), np.clip(x, 0.1, 0.7)), (jnp.where(x > 1, x, 0.1), [0.1, 1.5]),
        (i * 0.1, [0.1, 0.2]), (jnp.power(x, 0.1), x**0.1), (jnp.power(0.1, x), 0.1**x), (jnp.append(x, 0.1), [0.5, 1.5, 0.1]),
        (jnp.quantile(x, 0.1), np.quantile(x, 0.1)), (jnp.sum(x, initial=0.1), 2.1), (jnp.dot(x, 0.1), x * 0.1),
        (jnp.select([x > 1], [x], 0.1), [0.1, 1.5]), (jnp.pad(x, 1, constant_values=0.1), [0.1, 0.5, 1.5, 0.1]),
        (jnp.full(2, 0.1, "float64"), [0.1, 0.1]), (jnp.maximum(x, 0.7), [0.7, 1.5]),
    ]:  # fmt: skip
        assert ours.dtype == np.float64
        np.testing.assert_allclose(ours, want, rtol=1e-15)


def test_eager_and_traced_types_agree():
    weak, strong = jnp.asarray(2.0), jnp.ones(3)
    for function in (lambda a, b: a * b, lambda a, b: a + 1, lambda a, b: b // 1.5, lambda a, b: jnp.where(b > 0, a, 1)):
        eager, traced = function(weak, strong), funcml.jit(function)(weak, strong)
        assert (eager.aval, eager.weak_type) == (traced.aval, traced.weak_type)
    assert (weak * 3).weak_type and not (weak * strong).weak_type and not (strong * 2.0).weak_type


@pytest.mark.parametrize("left", [np.ones(3), np.float32(2), np.float64(2), np.int32(2), 2, 2.0, True])
def test_numpy_on_the_left(left):
    def function(x):
        return [left + x, left * x, left - x, left / x, left @ x if np.ndim(left) else x, left > x, left == x, left**x]

    x = np.array([1.0, 2.0, 4.0], np.float32)
    for found in (function(jnp.asarray(x)), funcml.jit(function)(x)):
        for ours, want in zip(found, function(x), strict=True):
            assert isinstance(ours, funcml.Array)
            np.testing.assert_allclose(ours, want, rtol=1e-6)


def test_unknown_operands_may_answer_themselves():
    class Other:
        def __radd__(self, x):
            return "answered"

    assert jnp.ones(2) + Other() == "answered"
    with pytest.raises(TypeError, match="unsupported operand"):
        jnp.ones(2) + "text"
    assert (jnp.ones(2) == None) is False  # noqa: E711
    assert jnp.ones(2) != "text"


def test_jax_arrays_are_operands():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(3.0)
    assert isinstance(jnp.ones(3) + x, funcml.Array)
    np.testing.assert_allclose(jnp.sin(x), np.sin(np.arange(3.0)), rtol=1e-6)


def test_rank_promotion():
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    message = r"add on shapes \(2, 3\) \(3,\) of different ranks with numpy_rank_promotion='raise'; add axes with x\[None\]"
    config.update("numpy_rank_promotion", "raise")
    with pytest.raises(ValueError, match=message):
        jnp.add(x, y)
    jnp.add(x, 1.0)
    config.update("numpy_rank_promotion", "warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jnp.add(x, y)
    assert len(caught) == 1


def test_dtype_promotion_can_be_strict():
    config.update("numpy_dtype_promotion", "strict")
    jnp.ones(3) * 2.0
    with pytest.raises(ValueError, match="multiply: Input dtypes f32 and i32 have no .* promotion path under"):
        jnp.ones(3) * jnp.ones(3, "int32")


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.int8(1) * 200, OverflowError, "200 is out of bounds for int8"),
    (lambda: jnp.arange(3) + 2**40, OverflowError, "out of bounds for int32"),
    (lambda: jnp.ones(3) + jnp.ones(4), ValueError, r"do not broadcast; aligned at the right"),
    (lambda: jnp.add(np.array(["a"]), 1), TypeError, "dtype: expected one of"),
    (lambda: jnp.ones(3, "float8_e4m3fn") + jnp.ones(3, "float8_e5m2"), ValueError, "add: .*not widened in silence"),
])
def test_what_does_not_mix(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_defaults_follow_the_setting():
    assert jnp.zeros(2).dtype == np.float32 and jnp.arange(2).dtype == np.int32
    with enable_x64(True):
        assert jnp.zeros(2).dtype == np.float64 and jnp.arange(2).dtype == np.int64 and (jnp.arange(2) / 2).dtype == np.float64
        assert jnp.zeros(2, jnp.float_).dtype == np.float64


def test_numbers_beside_weak_64_bit_values():
    weak = jnp.asarray(3)
    with enable_x64(True):
        weak = jnp.asarray(3) * 1
    assert weak.dtype == np.int64 and weak.weak_type

    def function(w):
        return [w % 5, 7 // w, w + 1, jnp.where(w > 1, w, 0), w**2]

    for found in (function(weak), funcml.jit(function)(weak)):
        assert [x.dtype.itemsize for x in found] == [8] * 5 and all(x.weak_type for x in found)
        np.testing.assert_allclose(found, [3, 2, 4, 3, 9])
