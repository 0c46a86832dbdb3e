"""DeviceArray to and from NumPy, Python, JAX and pickles; what it says of itself and of its misuse."""

import copy
import functools
import gc
import math
import operator
import pickle
import sys
import weakref

import jax
import jaxtyping
import ml_dtypes
import numpy as np
import pytest

from funcml.core.avals import shaped
from funcml.core.config import config
from funcml.core.values import Array
from funcml.dtypes import KeyDtype
from funcml.lowering import pjrt
from funcml.lowering.array import DeviceArray, asarray, from_dlpack, scalar, wrap

F32, F64, I32, BOOL = map(np.dtype, ["float32", "float64", "int32", "bool"])
BF16 = np.dtype(ml_dtypes.bfloat16)
VALUES = [
    np.arange(6.0).reshape(2, 3), np.float32(1.5), np.array([True, False]), np.array([2**62 + 1, -1]),
    np.array([1 + 2j, -0.0]), np.arange(3, dtype=BF16), np.array([1, -2], ml_dtypes.int4),
    np.zeros((0, 3)), np.array([0.5, 2], ml_dtypes.float8_e4m3fn)]


def keys(n: int) -> DeviceArray:
    return DeviceArray(pjrt.put(np.arange(n, dtype=np.uint64)), shaped((n,), KeyDtype()))


def deleted() -> DeviceArray:
    x = asarray(np.ones(3, np.float32))
    x.delete()
    return x


# ---- to NumPy and other libraries


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.dtype}{v.shape}")
def test_numpy_sees_the_value(value):
    x = asarray(value)
    assert isinstance(x, Array) and (x.shape, x.dtype, x.weak_type) == (value.shape, value.dtype, False)
    assert (x.ndim, x.size, x.itemsize, x.nbytes) == (value.ndim, value.size, value.itemsize, value.nbytes)
    back = np.asarray(x)
    assert back.dtype == value.dtype
    np.testing.assert_array_equal(back.astype(complex), value.astype(complex))
    with pytest.raises(ValueError, match="read-only"):
        back[...] = 0


def test_numpy_copy_and_dtype():
    x = asarray(np.arange(3.0))
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    own = np.array(x)
    own[0] = 7
    assert x.tolist() == [0, 1, 2]
    assert np.asarray(x, np.float32).dtype == F32
    assert np.asarray(x, copy=False).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"f64\[3\] becomes float32 by a copy only|[Uu]nable to avoid copy"):
        np.asarray(x, np.float32, copy=False)
    with pytest.raises(ValueError, match=r"f64\[3\] becomes float32 by a copy only"):
        x.__array__(np.float32, copy=False)
    np.testing.assert_array_equal(np.stack([x, x]), [[0, 1, 2], [0, 1, 2]])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 688")
def test_buffer_protocol():
    x = asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    view = memoryview(x)
    assert view.shape == (2, 3) and view.readonly and view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert bytes(view) == np.arange(6, dtype=np.float32).tobytes()
    with pytest.raises(BufferError, match=r"np.asarray\(x\) works"):
        memoryview(asarray(np.zeros(2, BF16)))
    with pytest.raises(RuntimeError, match="was deleted"):
        memoryview(deleted())


def test_dlpack():
    x = asarray(np.arange(3.0))
    assert x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(x), np.arange(3.0))
    again = from_dlpack(x)
    assert again.dtype == F64 and again.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert from_dlpack(x, copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_jax_takes_arrays():
    x = asarray(np.arange(3, dtype=np.float32))
    assert isinstance(x.__jax_array__(), jax.Array)
    np.testing.assert_array_equal(np.asarray(jax.numpy.asarray(x) + 1), [1, 2, 3])


# ---- to Python


def test_python_numbers():
    assert asarray(np.float64(0.1)).item() == 0.1 and type(asarray(np.int64(2**62)).item()) is int
    assert asarray(np.arange(6).reshape(2, 3)).item(1, 2) == 5
    assert asarray(np.array([1, 2], BF16)).tolist() == [1.0, 2.0]
    assert (int(asarray(2.9)), float(asarray(3)), complex(asarray(2))) == (2, 3.0, 2 + 0j)
    assert operator.index(asarray(2)) == 2 and [10, 20, 30][asarray(np.uint8(1))] == 20
    assert bool(asarray(0.5)) and not bool(asarray(np.array([[0]])))
    assert round(float(asarray(np.array(1.5, BF16))), 3) == 1.5


@pytest.mark.parametrize("ask, error, words", [
    (lambda: bool(asarray([1, 2])), ValueError, r"element \(i32\[2\]\) is ambiguous: write x.any\(\)"),
    (lambda: bool(asarray([])), ValueError, r"empty array \(f32\[0\]\) is ambiguous: write x.size > 0"),
    (lambda: float(asarray([1.0])), TypeError, r"float\(x\): expected.* got f32\[1\].*float\(x\[0\]\)"),
    (lambda: int(asarray([[1]])), TypeError, r"int\(x\).*i32\[1,1\].*int\(x\[0, 0\]\)"),
    (lambda: operator.index(asarray(1.0)), TypeError, r"only an integer array without axes.*f32\[\]"),
    (lambda: operator.index(asarray([1])), TypeError, r"only an integer array without axes.*i32\[1\]"),
    (lambda: operator.index(asarray(True)), TypeError, r"only an integer array without axes.*bool\[\]"),
    (lambda: len(asarray(1.0)), TypeError, r"len\(\) of an array without axes \(f32\[\]\)"),
    (lambda: iter(asarray(1.0)), TypeError, r"iteration over an array without axes \(f32\[\]\)"),
    (lambda: hash(asarray([1.0])), TypeError, r"unhashable type: .*f32\[1\]\) has no hash.*x.item\(\).*static argument"),
    (lambda: operator.setitem(asarray([1.0]), 0, 2), TypeError, r"immutable.*x = x.at\[idx\].set\(v\)"),
], ids=lambda p: "")
def test_misuse_is_explained(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


def test_rows():
    x = asarray(np.arange(6.0).reshape(2, 3))
    assert len(x) == 2
    rows = list(x)
    assert all(isinstance(row, DeviceArray) and row.dtype == F64 for row in rows)
    np.testing.assert_array_equal(np.stack(rows), np.arange(6.0).reshape(2, 3))
    assert [row.shape for row in asarray(np.zeros((2, 0)))] == [(0,), (0,)] and list(asarray([])) == []
    assert [row.dtype for row in keys(2)] == [KeyDtype()] * 2


# ---- copies


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.dtype}{v.shape}")
@pytest.mark.parametrize("duplicate", [
    copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)),
    lambda x: pickle.loads(pickle.dumps(x, 5))], ids=["copy", "deepcopy", "pickle", "pickle 5"])
def test_copies_are_equal_and_independent(value, duplicate):
    x = asarray(value)
    y = duplicate(x)
    x.delete()
    assert y.aval is x.aval
    np.testing.assert_array_equal(np.asarray(y).astype(complex), value.astype(complex))


def test_copies_of_weak_and_key_arrays():
    assert pickle.loads(pickle.dumps(asarray(1.0))).weak_type
    again = pickle.loads(pickle.dumps(keys(3)))
    assert again.dtype is KeyDtype() and again._host().tolist() == [0, 1, 2]


# ---- printing


@pytest.mark.parametrize("x, text", [
    (np.array([1, 2], np.float32), "Array([1., 2.], dtype=float32)"),
    (1.0, "Array(1., dtype=float32, weak_type=True)"),
    (True, "Array(True, dtype=bool)"),
    (np.int64(3), "Array(3, dtype=int64)"),
    (np.zeros((0, 3), np.float32), "Array([], shape=(0, 3), dtype=float32)"),
    (np.zeros(0, np.float32), "Array([], dtype=float32)"),
    (np.array([1, 2], BF16), "Array([1, 2], dtype=bfloat16)"),
    (np.array([[1, 2], [3, 4]]), "Array([[1, 2],\n       [3, 4]], dtype=int64)"),
    (np.array([np.nan, np.inf]), "Array([nan, inf], dtype=float64)"),
])
def test_repr(x, text):
    assert repr(asarray(x)) == text


@pytest.mark.parametrize("value", [*VALUES[:6], np.arange(2000), np.zeros((40, 50, 2))], ids=lambda v: "")
def test_repr_is_that_of_jax(value):
    x = asarray(value)
    assert repr(x) == repr(x.__jax_array__()) and str(x) == str(x.__jax_array__())


def test_repr_of_large_deleted_and_key_arrays():
    assert len(repr(asarray(np.zeros((300, 300, 30), np.float32)))) < 2000
    assert repr(deleted()) == str(deleted()) == "Array(<deleted>, shape=(3,), dtype=float32)"
    assert repr(keys(2)) == str(keys(2)) == "Array((2,), dtype=key<fry>)"


def test_format():
    assert f"{asarray(np.float64(np.pi)):.3f}" == "3.142" and f"{asarray(7):>4}" == "   7"
    assert f"{asarray([1.0])}" == "[1.]" and f"{asarray(np.array(0.5, BF16)):.2f}" == "0.50"


def test_jaxtyping():
    x = asarray(np.zeros((3, 4), np.float32))
    for hint in (jaxtyping.Float32[Array, "3 n"], jaxtyping.Float[DeviceArray, "a b"]):
        assert isinstance(x, hint)
    for hint in (jaxtyping.Float32[Array, "n n"], jaxtyping.Int[Array, "..."]):
        assert not isinstance(x, hint)
    assert isinstance(asarray(np.zeros(2, BF16)), jaxtyping.BFloat16[Array, "2"])

    def typechecker(function):
        @functools.wraps(function)
        def checked(x):
            if not isinstance(x, function.__annotations__["x"]):
                raise TypeError("x")
            return function(x)

        return checked

    @jaxtyping.jaxtyped(typechecker=typechecker)
    def square(x: jaxtyping.Float[Array, "n n"]):  # noqa: F722
        return x

    with pytest.raises(jaxtyping.TypeCheckError, match=r"f32\[3,4\]"):
        square(x)


# ---- memory and devices


def test_devices():
    x = asarray([1.0])
    assert x.device == jax.devices()[0] and x.devices() == {x.device}
    assert x.sharding == jax.sharding.SingleDeviceSharding(x.device)
    assert x.is_fully_addressable and x.is_fully_replicated
    (shard,) = x.addressable_shards
    assert shard.device == x.device and shard.data is x and np.asarray(x)[shard.index] == [1.0]
    assert x.block_until_ready() is x and x.is_ready() and x.copy_to_host_async() is None
    assert x.on_device_size_in_bytes() >= 4


@pytest.mark.parametrize("use", [
    np.asarray, list, pickle.dumps, copy.copy, copy.deepcopy, DeviceArray.tolist, DeviceArray.__jax_array__,
    DeviceArray.block_until_ready, DeviceArray.is_ready, DeviceArray.copy_to_host_async,
    DeviceArray.__dlpack__, DeviceArray.on_device_size_in_bytes, DeviceArray.unsafe_buffer_pointer,
    lambda x: x.addressable_shards,
])
def test_use_of_a_deleted_array_is_explained(use):
    x = deleted()
    assert x.is_deleted() and x.shape == (3,)
    x.delete()  # twice is no error
    with pytest.raises(RuntimeError, match=r"f32\[3\]\) was deleted: it was donated.*x.copy\(\)"):
        use(x)


@pytest.mark.parametrize("use", [
    np.asarray, DeviceArray.tolist, DeviceArray.__jax_array__, DeviceArray.__dlpack__,
    lambda x: float(list(x)[0])])
def test_keys_are_no_numbers(use):
    with pytest.raises(TypeError, match=r"key<fry>\[.*holds random keys.*funcml.random.key_data\(x\)"):
        use(keys(1))


def test_arrays_die():
    x = asarray(np.zeros(3))
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


# ---- from anything


@pytest.mark.parametrize("x, dtype, weak", [
    (1, I32, True), (1.5, F32, True), (2j, np.dtype("complex64"), True), (True, BOOL, False),
    ([1, 2], I32, False), ([1, 2.5], F32, False), ([True, 2], I32, False),
    ([1j, 2], np.dtype("complex64"), False),
    ((), F32, False), ([[], []], F32, False), (range(3), I32, False), ([range(2), (3, 4)], I32, False),
    ([True, False], BOOL, False), ([np.float64(1), 2], F64, False), ([np.float32(1), 2.0], F32, False),
    ([np.int8(1), 2], np.dtype("int8"), False),
    ([np.float16(1), np.arange(1)[0]], np.dtype("float16"), False),
    ([[1.0, 2.0], np.arange(2.0)], F64, False), (np.float64(1), F64, False),
    (memoryview(b"ab"), np.dtype("uint8"), False), ([1.5, np.array(2, BF16)], BF16, False),
])
def test_asarray_chooses_the_dtype(x, dtype, weak):
    found = asarray(x)
    assert (found.dtype, found.weak_type) == (dtype, weak)
    np.testing.assert_array_equal(np.asarray(found).astype(complex), np.asarray(x).astype(complex))


def test_asarray_defaults_to_64_bits_under_x64():
    config.update("enable_x64", True)
    assert asarray(1).dtype == np.dtype("int64") and asarray([1.5]).dtype == F64
    assert asarray(2**40).item() == 2**40


@pytest.mark.parametrize("x", [
    3, 2.5, True, [1, 2], [[1.5]], np.arange(3), np.float32(2), range(2)], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bfloat16", "complex128", "bool", "uint8"])
def test_asarray_honours_the_dtype(x, dtype):
    found = asarray(x, dtype)
    assert found.dtype == asarray(0, dtype).dtype and not found.weak_type
    expected = np.asarray(x).astype(found.dtype)
    np.testing.assert_array_equal(np.asarray(found).astype(complex), expected.astype(complex))


@pytest.mark.parametrize("x, dtype, error, words", [
    (2**31, None, OverflowError, "2147483648 is out of bounds for int32.*pass dtype=int64"),
    (-1, "uint8", OverflowError, "-1 is out of bounds for uint8"),
    ([1, 2**31], None, OverflowError, "out of bounds for int32; pass a wider dtype"),
    ([2**64], "int64", OverflowError, "int"),
    ("text", None, TypeError, "expected an array or a number, got 'text' of type str"),
    (None, None, TypeError, "expected an array or a number, got None of type NoneType"),
    ({1, 2}, None, TypeError, "expected an array or a number, got {1, 2} of type set"),
    (["a"], None, TypeError, "'a' of type str"),
    (np.array(["a"]), None, TypeError, "got <U1"),
    (np.array([None]), None, TypeError, "got object"),
    (np.array(["2020-01-01"], "M8[D]"), None, TypeError, "datetime64"),
    (np.zeros(2, np.longdouble), None, TypeError, "the widest float is float64"),
    (np.ma.masked_array([1, 2], [True, False]), None, TypeError, r"without a mask.*x.filled\(0\)"),
    ([[1, 2], [3]], None, ValueError, "inhomogeneous"),
    ([1.0], "float99", TypeError, "float99"),
])
def test_asarray_refuses(x, dtype, error, words):
    with pytest.raises(error, match=words):
        asarray(x, dtype)


def test_asarray_refuses_traced_values():
    class Traced(Array):
        aval = shaped((3,), F32)

        def __repr__(self):
            return "Traced<f32[3]>"

    for x in (Traced(), [Traced(), Traced()]):
        with pytest.raises(TypeError, match=r"known value, got Traced<f32\[3\]>, which is traced"):
            asarray(x)


@pytest.mark.parametrize("dtype", [None, "float32", "bfloat16", "int4"])
def test_asarray_stacks_lists_of_arrays(dtype):
    x = asarray([1.0, 2.0])
    found = asarray([x, (scalar(3), np.int8(4))], dtype)
    assert found.tolist() == [[1, 2], [3, 4]] and found.dtype == (dtype or F32)
    assert asarray([asarray(1.0), 2], dtype).tolist() == [1, 2]


def test_asarray_keeps_arrays():
    x = asarray([1.0, 2.0])
    assert asarray(x) is x and asarray(x, "float32") is x and asarray(x, device=x.device) is x
    weak = asarray(1.0)
    assert asarray(weak) is weak and not asarray(weak, "float32").weak_type
    assert asarray(x, "int32").tolist() == [1, 2]


def test_asarray_copies_numpy():
    x = np.zeros(1000)
    found = asarray(x)
    x[:] = 1
    assert not np.asarray(found).any()
    assert asarray(np.arange(3, dtype=">i4")).tolist() == [0, 1, 2]


def test_asarray_of_other_libraries():
    from_jax = jax.numpy.float32(1.5) * 2
    assert asarray(from_jax)._buffer is from_jax
    assert asarray(jax.numpy.asarray(1.0)).weak_type
    assert asarray([from_jax, 2]).tolist() == [3.0, 2.0]

    class HasArray:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    class HasDlpack:
        data = np.zeros(1000)

        def __dlpack__(self, **options):
            return self.data.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.data.__dlpack_device__()

    class HasJaxArray:
        def __jax_array__(self):
            return from_jax

    assert asarray(HasArray()).tolist() == [0, 1, 2] and asarray(HasJaxArray()).item() == 3
    found = asarray(HasDlpack())
    HasDlpack.data[:] = 1
    assert found.dtype == F64 and not np.asarray(found).any()


def test_wrap():
    x = wrap(pjrt.put(np.zeros(3)), weak_type=True)
    assert x.aval is shaped((3,), F64, True)


@pytest.mark.parametrize("x", [
    0, 1, True, 1.5, 0.0, -0.0, math.inf, math.nan, 0j, complex(-0.0, 0.0), complex(0.0, -0.0)], ids=repr)
def test_scalar_is_asarray_from_a_cache(x):
    found = scalar(x)
    assert scalar(x) is found
    assert found.aval is asarray(x).aval and found._host().tobytes() == asarray(x)._host().tobytes()
    assert scalar(x, F64)._host().tobytes() == np.float64(x).tobytes() if not isinstance(x, complex) else True


def test_scalar_tells_equal_numbers_apart_and_survives_deletion():
    assert scalar(1).dtype == I32 and scalar(1.0).dtype == F32 and scalar(True).dtype == BOOL
    assert math.copysign(1, scalar(0.0).item()) == 1 and math.copysign(1, scalar(-0.0).item()) == -1
    scalar(3.0).delete()
    assert scalar(3.0).item() == 3.0
    config.update("enable_x64", True)
    assert scalar(1.0).dtype == F64
