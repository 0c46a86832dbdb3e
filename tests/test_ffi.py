"""`funcml.ffi`: a kernel of C++, attributes, layouts, aliases, batches, and errors before anything runs."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.control_flow import lanes
from funcml.ffi import ffi_call, include_dir, pycapsule, register_ffi_target

KERNEL = r"""
#include <cstdint>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

// y = scale * x + shift[0], and how many elements there were
ffi::Error Affine(float scale, ffi::Span<const float> shift, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                  ffi::ResultBuffer<ffi::S32> count) {
  if (shift.size() != 1) return ffi::Error::InvalidArgument("shift must have one element");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = scale * x.typed_data()[i] + shift[0];
  count->typed_data()[0] = x.element_count();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(affine, Affine, ffi::Ffi::Bind().Attr<float>("scale").Attr<ffi::Span<const float>>("shift")
    .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::S32>>());

static int32_t calls = 0;
ffi::Error Count(ffi::ResultBuffer<ffi::S32> n) { n->typed_data()[0] = ++calls; return ffi::Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(count_calls, Count, ffi::Ffi::Bind().Ret<ffi::Buffer<ffi::S32>>());
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "kernel.cc").write_text(KERNEL)
    command = [compiler, "-std=c++17", "-O0", "-fPIC", "-shared", f"-I{include_dir()}", "kernel.cc", "-o", "kernel.so"]
    subprocess.run(command, cwd=folder, check=True)
    found = ctypes.CDLL(str(folder / "kernel.so"))
    register_ffi_target("test_affine", pycapsule(found.affine))
    register_ffi_target("test_count_calls", pycapsule(found.count_calls))
    return found


def struct(*shape, dtype=np.float32):
    return fm.ShapeDtypeStruct(shape, dtype)


def affine(x, **options):
    call = ffi_call("test_affine", (struct(*x.shape), struct(dtype=np.int32)), **options)
    return call(x, scale=np.float32(2.0), shift=np.float32([1.0]))


def test_a_kernel_runs(library):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for f in (affine, fm.jit(affine)):
        y, count = f(x)
        np.testing.assert_array_equal(y, 2 * x + 1)
        assert count == 6 and count.dtype == np.int32


@pytest.mark.parametrize(("method", "count"), [("sequential", 3), ("sequential_unrolled", 3)])
def test_batches_example_by_example(library, method, count):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    y, n = fm.vmap(lambda x: affine(x, vmap_method=method), in_axes=1, out_axes=(1, 0))(x)
    np.testing.assert_array_equal(y, 2 * x + 1)
    assert n.tolist() == [count] * 4


@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all", "legacy_vectorized"])
def test_batches_in_one_call(library, method):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    call = ffi_call("test_affine", (struct(4), struct(1, dtype=np.int32)), vmap_method=method)
    y = fm.vmap(lambda x: call(x, scale=np.float32(2.0), shift=np.float32([1.0]))[0])(x)
    np.testing.assert_array_equal(y, 2 * x + 1)
    text = fm.jit(fm.vmap(lambda x: call(x, scale=np.float32(2.0), shift=np.float32([1.0]))[0])).lower(x).as_text()
    assert text.count("@test_affine") == 1 and "while" not in text


def test_a_batch_without_a_method_warns_once(library):
    lanes._warned.clear()
    x = np.ones((3, 4), np.float32)
    with pytest.warns(lanes.LoopedBatchWarning, match="ffi_call of `test_affine`.*vmap_method=") as seen:
        y, _ = fm.vmap(affine)(x)
        fm.vmap(affine)(x[:, :2])
    assert len(seen) == 1
    np.testing.assert_array_equal(y, 2 * x + 1)


def test_a_custom_derivative(library):
    @fm.custom_jvp
    def f(x):
        return affine(x)[0]

    f.defjvp(lambda primals, tangents: (f(*primals), 2.0 * tangents[0]))
    np.testing.assert_array_equal(fm.grad(lambda x: (f(x) ** 2).sum())(jnp.float32([3.0])), [28.0])


def test_effects_happen_although_nothing_uses_the_result(library):
    call = ffi_call("test_count_calls", struct(dtype=np.int32), has_side_effect=True)

    def unused(x):
        call()
        return x

    before = int(call())
    fm.jit(unused)(1.0)
    assert int(call()) == before + 2


def test_an_error_of_the_kernel_comes_out(library):
    call = ffi_call("test_affine", (struct(2), struct(dtype=np.int32)))
    with pytest.raises(Exception, match="shift must have one element"):
        np.asarray(call(np.ones(2, np.float32), scale=np.float32(1), shift=np.zeros(2, np.float32))[0])


def test_layouts_and_aliases():
    x = np.float32([[4, 2], [2, 3]])
    call = ffi_call(
        "lapack_spotrf_ffi", (struct(2, 2), struct(dtype=np.int32)), input_output_aliases={0: 0}, vmap_method="broadcast_all",
        input_layouts=[(1, 0)], output_layouts=[(1, 0), None],
    )  # fmt: skip
    lower = lambda x: jnp.tril(call(x, uplo=np.uint8(ord("L")))[0])
    np.testing.assert_allclose(lower(x), np.linalg.cholesky(x), rtol=1e-6)
    batch = np.stack([x, x + np.eye(2, dtype=np.float32)])
    np.testing.assert_allclose(fm.vmap(lower)(batch), np.linalg.cholesky(batch), rtol=1e-6)
    np.testing.assert_array_equal(x, np.float32([[4, 2], [2, 3]]))


@pytest.mark.parametrize(("value", "text"), [
    (True, "true"), (3, "3 : i64"), (2.5, "2.5 : f64"), ("a\"b\n", r'"a\22b\0A"'), (np.int8(-3), "-3 : i8"),
    (np.float32(np.inf), "0x7F800000 : f32"), (np.arange(3), "dense<[0, 1, 2]> : tensor<3xi64>"),
    (np.zeros((0, 2), np.float32), "dense<> : tensor<0x2xf32>"), ({"b": (1, "c"), "a": {}}, '{b = [1 : i64, "c"], a = {}}'),
])  # fmt: skip
def test_attributes(value, text):
    call = ffi_call("t", struct())
    module = fm.jit(lambda x: call(x, p=value)).lower(np.float32(1)).as_text()
    assert f"backend_config = {{p = {text}}}" in module


X = np.ones(5, np.float32)


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda: ffi_call("t", None), ValueError, "All elements of result_shape_dtypes.*position 0"),
    (lambda: ffi_call("t", struct(), vmap_method="loop"), ValueError, "vmap_method must be one of sequential"),
    (lambda: ffi_call("t", struct(), legacy_backend_config="a"), ValueError, "requires custom_call_api_version < 4"),
    (lambda: ffi_call("t", X, custom_call_api_version=2)(X, a=1), ValueError, "at least 4"),
    (lambda: ffi_call("t", X)("x"), TypeError, "operand 0 is 'x' of type str, not an array"),
    (lambda: ffi_call("t", X)(X, a=object), TypeError, "ffi_call of `t`: attribute a is .* numbers, strings"),
    (lambda: ffi_call("t", X)(X, a=2**63), OverflowError, "does not fit into the 64 bits"),
    (lambda: ffi_call("t", X, input_output_aliases={1: 0})(X), ValueError, "with input index 1"),
    (lambda: ffi_call("t", X, input_output_aliases={0: 1})(X), ValueError, "with output index 1"),
    (lambda: ffi_call("t", struct(4), input_output_aliases={0: 0})(X), ValueError, r"f32\[5\].*different.*f32\[4\]"),
    (lambda: ffi_call("t", X, input_layouts=[])(X), ValueError, r"number of inputs \(1\)"),
    (lambda: ffi_call("t", X, input_layouts=[(1,)])(X), ValueError, r"layout of input 0 \(f32\[5\]\)"),
    (lambda: fm.jvp(ffi_call("t", X), (X,), (X,)), ValueError, "FFI call to `t` cannot be differentiated"),
])  # fmt: skip
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()
