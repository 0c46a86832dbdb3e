"""The backend: transfers keep every bit, executables agree with NumPy, faults of jaxlib are kept out."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import jax
import ml_dtypes
import numpy as np
import pytest
import scipy.linalg

from funcml.lowering import pjrt

F32, F64, BOOL = np.dtype("float32"), np.dtype("float64"), np.dtype("bool")
NUMPY_DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                "float16", "float32", "float64", "complex64", "complex128"]
ML_DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu",
             "float4_e2m1fn", "int4", "uint4", "int2", "uint2"]
DTYPES = [np.dtype(d) for d in NUMPY_DTYPES] + [np.dtype(getattr(ml_dtypes, d)) for d in ML_DTYPES]


def module(signature: str, *body: str) -> str:
    lines = "\n".join(body)
    return f"module @test {{\nfunc.func public @main{signature} {{\n{lines}\n}}\n}}"


SIN = module("(%a: tensor<4xf64>) -> tensor<4xf64>",
             "%0 = stablehlo.sine %a : tensor<4xf64>", "return %0 : tensor<4xf64>")
DOUBLE_DONATED = module("(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32>",
                        "%0 = stablehlo.add %a, %a : tensor<4xf32>", "return %0 : tensor<4xf32>")
TWICE = module("(%a: tensor<2x3xf64>) -> tensor<2x3xf64>",
               "%0 = stablehlo.add %a, %a : tensor<2x3xf64>", "return %0 : tensor<2x3xf64>")


@pytest.fixture(scope="module")
def sin():
    return pjrt.compile(SIN, [((4,), F64)])


@pytest.fixture(scope="module")
def twice():
    return pjrt.compile(TWICE, [((2, 3), F64)])


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy that starts at a multiple of 64 bytes, where XLA likes to share memory."""
    room = np.empty(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


# ---- transfers


@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (2, 3)])
def test_put_and_to_numpy_keep_every_dtype(shape, rng):
    assert not jax.config.jax_enable_x64
    for dtype in DTYPES:
        x = np.asarray(rng.integers(0, 2, shape)).astype(dtype)
        back = pjrt.to_numpy(pjrt.put(x))
        assert back.dtype == dtype and back.shape == shape
        assert not back.flags.writeable
        np.testing.assert_array_equal(back.astype(complex), x.astype(complex))


def test_put_keeps_64_bits():
    x = np.array([2**62 + 1, -1, 2**53 + 1])
    np.testing.assert_array_equal(pjrt.to_numpy(pjrt.put(x)), x)


def test_put_copies():
    x = aligned(np.arange(1024.0))
    buffer = pjrt.put(x)
    x[:] = -1
    np.testing.assert_array_equal(pjrt.to_numpy(buffer), np.arange(1024.0))


@pytest.mark.parametrize("x", [
    np.arange(6.0).reshape(3, 2).T,
    np.arange(12.0).reshape(2, 6)[:, ::2],
    np.arange(6.0).reshape(2, 3)[:, ::-1],
    np.arange(6, dtype=">f8").reshape(2, 3), np.broadcast_to(np.arange(3.0), (2, 3)),
], ids=["transposed", "strided", "reversed", "big-endian", "broadcast"])
def test_put_takes_any_memory_layout(x, twice):
    (out,) = twice.run([pjrt.put(x)])
    np.testing.assert_array_equal(pjrt.to_numpy(out), 2 * x)


def test_put_takes_numpy_scalars():
    buffer = pjrt.put(np.float64(0.1))
    assert buffer.shape == () and pjrt.to_numpy(buffer) == 0.1


@pytest.mark.parametrize("x", [np.array(["a"]), np.array([None]), np.array(["2020-01-01"], "M8[D]"),
                               np.zeros(2, [("a", "f4")]), np.zeros(2, np.longdouble)])
def test_put_refuses_dtypes_that_xla_lacks(x):
    with pytest.raises(TypeError, match="put: expected an array of numbers or booleans, got one of dtype"):
        pjrt.put(x)


def test_copy_and_delete_are_independent():
    a = pjrt.put(np.arange(3.0))
    b = pjrt.copy_buffer(a)
    pjrt.delete(a)
    assert pjrt.is_deleted(a) and not pjrt.is_deleted(b)
    np.testing.assert_array_equal(pjrt.to_numpy(b), np.arange(3.0))


def test_a_view_outlives_its_buffer():
    buffer = pjrt.put(np.arange(1000.0))
    view = pjrt.to_numpy(buffer)
    pjrt.delete(buffer)
    np.testing.assert_array_equal(view, np.arange(1000.0))


def test_devices():
    assert pjrt.devices() == jax.devices() and pjrt.local_devices() == jax.local_devices()
    assert pjrt.default_device() == jax.devices()[0] == pjrt.buffer_device(pjrt.put(np.zeros(1)))
    assert (pjrt.process_index(), pjrt.process_count()) == (0, 1)
    facts = pjrt.device_attributes(pjrt.default_device())
    assert facts["platform"] == pjrt.default_backend() == "cpu" and facts["id"] == 0
    with pytest.raises(RuntimeError, match="abacus"):
        pjrt.devices("abacus")


# ---- executables


def test_run(sin):
    x = np.linspace(-3, 3, 4)
    (out,) = sin.run([pjrt.put(x)])
    np.testing.assert_allclose(pjrt.to_numpy(out), np.sin(x), rtol=1e-15)
    assert out.dtype == F64 and pjrt.buffer_device(out) == sin.device


def test_run_without_results_and_without_arguments():
    none = pjrt.compile(module("(%a: tensor<4xf64>)", "return"), [])
    assert none.run([pjrt.put(np.zeros(4))]) == []
    constants = pjrt.compile(module(
        "() -> (tensor<i1>, tensor<2xui64>)",
        "%a = stablehlo.constant dense<true> : tensor<i1>",
        "%b = stablehlo.constant dense<[1, 18446744073709551615]> : tensor<2xui64>",
        "return %a, %b : tensor<i1>, tensor<2xui64>"), [((), BOOL), ((2,), np.dtype("uint64"))])
    truth, numbers = constants.run([])
    assert pjrt.to_numpy(truth) == np.True_
    np.testing.assert_array_equal(pjrt.to_numpy(numbers), np.array([1, 2**64 - 1], np.uint64))


def test_compile_error_shows_the_line():
    with pytest.raises(RuntimeError, match="(?s)XLA did not compile the program.*at: %0 = stablehlo.seni %a"):
        pjrt.compile(SIN.replace("sine", "seni"), [((4,), F64)])


def test_compile_passes_options():
    with pytest.raises(RuntimeError, match="no_such_option"):
        pjrt.compile(SIN, [((4,), F64)], options=[("no_such_option", True)])
    slow = pjrt.compile(SIN, [((4,), F64)], options=[("xla_backend_optimization_level", "0")])
    np.testing.assert_allclose(pjrt.to_numpy(slow.run([pjrt.put(np.ones(4))])[0]), np.sin(np.ones(4)))


def test_donation_takes_the_argument_and_its_reuse_is_explained():
    double = pjrt.compile(DOUBLE_DONATED, [((4,), F32)])
    assert double.memory_analysis()["alias_size_in_bytes"] == 16
    x = pjrt.put(np.ones(4, np.float32))
    (out,) = double.run([x])
    np.testing.assert_array_equal(pjrt.to_numpy(out), 2)
    assert pjrt.is_deleted(x)
    with pytest.raises(RuntimeError, match=r"argument 0 \(f32\[4\]\) was deleted or donated.*x.copy\(\)"):
        double.run([x])


def test_use_of_a_deleted_argument_is_explained(sin):
    x = pjrt.put(np.ones(4))
    pjrt.delete(x)
    with pytest.raises(RuntimeError, match=r"argument 0 \(f64\[4\]\) was deleted or donated"):
        sin.run([x])


def test_analyses(sin):
    assert sin.cost_analysis()["transcendentals"] == 4
    assert sin.memory_analysis()["argument_size_in_bytes"] == 32
    assert "sine" in sin.hlo_text()


def test_serialize(sin):
    again = pjrt.deserialize(sin.serialize(), sin.out_types)
    x = pjrt.put(np.linspace(0, 1, 4))
    np.testing.assert_array_equal(pjrt.to_numpy(again.run([x])[0]), pjrt.to_numpy(sin.run([x])[0]))


def test_environment_key_names_what_matters(monkeypatch):
    key = pjrt.environment_key()
    assert jax.lib.__version__ in key and "cpu" in key
    pjrt.environment_key.cache_clear()
    monkeypatch.setenv("XLA_FLAGS", "--xla_something=1")
    changed = pjrt.environment_key()
    pjrt.environment_key.cache_clear()
    assert changed != key and "--xla_something=1" in changed
    monkeypatch.undo()
    monkeypatch.setattr(pjrt, "_needed_options", lambda device: (("xla_new_need", True),))
    needed = pjrt.environment_key()
    pjrt.environment_key.cache_clear()
    assert needed != key


def test_threads(twice):
    def work(n):
        own = pjrt.compile(TWICE.replace("add", "multiply").replace("@test", f"@test{n}"), [((2, 3), F64)])
        x = np.full((2, 3), float(n))
        for _ in range(20):
            np.testing.assert_array_equal(pjrt.to_numpy(twice.run(own.run([pjrt.put(x)]))[0]), 2 * x * x)
        return n

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(16))) == list(range(16))


def test_lapack():
    pjrt.ensure_lapack()
    column_major = "dense<[0, 1]> : tensor<2xindex>"
    layouts = (f"operand_layouts = [{column_major}], "
               f"result_layouts = [{column_major}, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]")
    lu = pjrt.compile(module(
        "(%a: tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xi32>)",
        "%0:3 = stablehlo.custom_call @lapack_dgetrf_ffi(%a) "
        f"{{api_version = 4 : i32, backend_config = {{}}, {layouts}}}"
        " : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xi32>, tensor<i32>)",
        "return %0#0, %0#1 : tensor<3x3xf64>, tensor<3xi32>"), [((3, 3), F64), ((3,), np.dtype("int32"))])
    a = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 10]])
    factors, pivots = map(pjrt.to_numpy, lu.run([pjrt.put(a)]))
    expected, order = scipy.linalg.lu_factor(a)
    np.testing.assert_allclose(factors, expected, rtol=1e-14)
    np.testing.assert_array_equal(pivots - 1, order)


def test_rows_of_a_batched_matvec_are_right(rng):
    """XLA:CPU of jaxlib 0.10 computes wrong rows here if its library takes more than single products."""
    n = 16385
    program = pjrt.compile(module(
        f"(%w: tensor<3x3xf64>, %x: tensor<{n}x3xf64>) -> tensor<{n}xf64>",
        "%y = stablehlo.dot_general %w, %x, contracting_dims = [1] x [1] : "
        f"(tensor<3x3xf64>, tensor<{n}x3xf64>) -> tensor<3x{n}xf64>",
        f"%s = stablehlo.multiply %y, %y : tensor<3x{n}xf64>",
        "%z = stablehlo.constant dense<0.0> : tensor<f64>",
        "%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : "
        f"(tensor<3x{n}xf64>, tensor<f64>) -> tensor<{n}xf64>",
        f"return %r : tensor<{n}xf64>"), [((n,), F64)])
    w, x = rng.normal(size=(3, 3)), rng.normal(size=(n, 3))
    (out,) = program.run([pjrt.put(w), pjrt.put(x)])
    np.testing.assert_allclose(pjrt.to_numpy(out), ((x @ w.T) ** 2).sum(1), rtol=1e-12)


# ---- other libraries


@pytest.mark.parametrize("x", [
    aligned(np.arange(6.0).reshape(3, 2)).T,
    np.arange(6.0).reshape(3, 2).T,
    np.arange(12.0).reshape(2, 6)[:, ::2],
    np.broadcast_to(np.arange(3.0), (2, 3)),
], ids=["transposed", "transposed unaligned", "strided", "read-only"])
def test_from_dlpack_gives_what_executables_expect(x, twice):
    for copy in (None, True):
        buffer = pjrt.from_dlpack(x, copy=copy)
        np.testing.assert_array_equal(pjrt.to_numpy(buffer), x)
        np.testing.assert_array_equal(pjrt.to_numpy(twice.run([buffer])[0]), 2 * x)


def test_from_dlpack_shares_unless_told_to_copy():
    x = aligned(np.zeros((2, 3)))
    shared, own = pjrt.from_dlpack(x), pjrt.from_dlpack(x, copy=True)
    x[:] = 7
    assert (pjrt.to_numpy(shared) == 7).all() and (pjrt.to_numpy(own) == 0).all()
    assert pjrt.from_dlpack(x, copy=False).dtype == F64


def test_from_dlpack_without_copy_refuses_what_cannot_be_shared():
    with pytest.raises(BufferError, match="copy=False needs a row-major array"):
        pjrt.from_dlpack(aligned(np.zeros((2, 3))).T, copy=False)
    with pytest.raises(BufferError, match="cannot be shared"):
        pjrt.from_dlpack(np.zeros((2, 6))[:, ::2], copy=False)


def test_to_dlpack():
    class Exported:
        def __init__(self, buffer):
            self.buffer = buffer

        def __dlpack__(self, **options):
            return pjrt.to_dlpack(self.buffer)

        def __dlpack_device__(self):
            return self.buffer.__dlpack_device__()

    buffer = pjrt.put(np.arange(4))
    np.testing.assert_array_equal(np.from_dlpack(Exported(buffer)), np.arange(4))


def test_adopt_takes_jax_arrays(twice):
    x = jax.device_put(np.arange(6, dtype=np.float32))
    assert pjrt.is_buffer(x) and pjrt.adopt(x) is x
    assert not pjrt.is_buffer(np.zeros(2)) and not pjrt.is_foreign_array(np.zeros(2))
    column_major = jax.dlpack.from_dlpack(aligned(np.arange(6, dtype=np.float32).reshape(3, 2)).T)
    np.testing.assert_array_equal(pjrt.to_numpy(pjrt.adopt(column_major)), [[0, 2, 4], [1, 3, 5]])
    assert pjrt.adopt(column_major).format.layout.major_to_minor == (0, 1)


def test_adopt_says_what_it_cannot_take():
    with pytest.raises(TypeError, match="typed keys of JAX"):
        pjrt.adopt(jax.random.key(0))
    with pytest.raises(TypeError, match="a tracer of JAX"):
        jax.jit(pjrt.adopt)(1.0)
    x = jax.device_put(np.zeros(3))
    x.delete()
    with pytest.raises(RuntimeError, match="deleted or donated"):
        pjrt.adopt(x)


# ---- in processes of their own


def run_python(program: str, **environment: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    subprocess.run(command, check=True, env={**os.environ, **environment})


def test_jax_is_loaded_late_and_flags_of_the_user_are_kept():
    run_python("""
        import os, sys
        import numpy as np
        from funcml.lowering import array, disk_cache, pjrt
        assert "jax" not in sys.modules and "jaxlib" not in sys.modules
        pjrt.put(np.zeros(1))
        assert "jax" in sys.modules
        assert os.environ["XLA_FLAGS"] == "--xla_force_host_platform_device_count=2"
    """, XLA_FLAGS="--xla_force_host_platform_device_count=2")


def test_two_devices():
    run_python(f"""
        import jax
        import numpy as np
        from funcml.lowering import pjrt
        first, second = pjrt.devices()
        F64 = np.dtype("float64")
        sin = pjrt.compile({SIN!r}, [((4,), F64)], second)
        x = pjrt.put(np.ones(4), second)
        (y,) = sin.run([x])
        assert {{pjrt.buffer_device(b) for b in (x, y)}} == {{second}}
        np.testing.assert_allclose(pjrt.to_numpy(y), np.sin(np.ones(4)))
        assert pjrt.environment_key(first) != pjrt.environment_key(second)
        again = pjrt.deserialize(sin.serialize(), sin.out_types, second)
        assert pjrt.buffer_device(again.run([x])[0]) == second
        moved = pjrt.copy_buffer(y, first)
        assert pjrt.buffer_device(moved) == first
        np.testing.assert_array_equal(pjrt.to_numpy(moved), pjrt.to_numpy(y))
        try:
            sin.run([moved])
        except RuntimeError as error:
            assert "device" in str(error)
        else:
            raise AssertionError("an argument on the wrong device was taken")
        mesh = jax.sharding.Mesh(np.array([first, second]), ("i",))
        halves = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
        sharded = jax.device_put(np.zeros(4), halves)
        try:
            pjrt.adopt(sharded)
        except TypeError as error:
            assert "over 2 devices" in str(error)
        else:
            raise AssertionError("a sharded array was taken")
        pjrt.from_dlpack(np.zeros((2, 3)), device=second)
    """, XLA_FLAGS="--xla_force_host_platform_device_count=2")
