"""dtypes against JAX (in a process of its own, with 64 bits on), NumPy and ml_dtypes."""

import copy
import enum
import itertools
import json
import os
import pickle
import random
import subprocess
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import funcml.core.config as settings
from funcml import dtypes
from funcml.dtypes import KeyDtype, TypePromotionError

ALL = [dtypes.bool_, *dtypes.NUMERIC]
NAMES = [d.name for d in ALL]
PYTHON = {"int": int, "float": float, "complex": complex}
OPERANDS = [*NAMES, *PYTHON]
TRIPLES = random.Random(0).sample(list(itertools.combinations_with_replacement(OPERANDS, 3)), 2000)

# Reads {"operands": [[name, ...], ...], "names": [...]}; writes what JAX says of each, in each mode.
ORACLE = """
import json, sys
import jax, jax.numpy as jnp, numpy as np
from jax import dtypes
asked = json.load(sys.stdin)
python = {"int": int, "float": float, "complex": complex}
abstract = {n: getattr(np, n) for n in asked["abstract"]} | {"prng_key": dtypes.prng_key}
typed = lambda name: python.get(name) or np.dtype(getattr(jnp, name))

def join(names):
    try:
        dtype, weak = dtypes.result_type(*map(typed, names), return_weak_type_flag=True)
        return [dtype.name, bool(weak)]
    except ValueError:
        return None

def joins(x64, mode):
    jax.config.update("jax_enable_x64", x64)
    jax.config.update("jax_numpy_dtype_promotion", mode)
    return [join(names) for names in asked["operands"]]

def promoted(a, b):
    try:
        return jnp.promote_types(typed(a), typed(b)).name
    except ValueError:
        return None

out = {f"{x64},{mode}": joins(x64, mode) for x64 in (False, True) for mode in ("strict", "standard")}
jax.config.update("jax_numpy_dtype_promotion", "standard")
out["promote_types"] = [promoted(*pair) for pair in asked["operands"] if len(pair) == 2]
aval = lambda name: jax.core.ShapedArray((), typed(name))
out["short"] = {n: aval(n).str_short(short_dtypes=True) for n in asked["names"]}
out["subtype"] = [[jnp.issubdtype(typed(a), b) for b in abstract.values()] for a in asked["names"]]
out["subdtype"] = [[jnp.issubdtype(typed(a), typed(b)) for b in asked["names"]] for a in asked["names"]]
kinds = asked["kinds"]
out["isdtype"] = [[jnp.isdtype(typed(a), k) for k in kinds] for a in asked["names"]]
key = jax.random.key(0).dtype
out["key"] = [str(key), key.itemsize, [jnp.issubdtype(key, b) for b in abstract.values()]]
out["tangent"] = [aval(n).to_tangent_aval().dtype == dtypes.float0 for n in asked["names"]]
json.dump(out, sys.stdout)
"""
ABSTRACT = ["generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating",
            "complexfloating", "bool_", "float64", "int8"]
KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
         "numeric"]
PAIRS = list(itertools.product(OPERANDS, repeat=2))
CASES = [*PAIRS, *TRIPLES, *((n,) for n in OPERANDS)]


@pytest.fixture(scope="module")
def jax_says():
    asked = {"operands": CASES, "names": NAMES, "abstract": ABSTRACT, "kinds": KINDS}
    env = os.environ | {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", ORACLE], input=json.dumps(asked), env=env,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def operand(name):
    """(dtype, weak) of a dtype's name or a Python type's."""
    return (dtypes.scalar_dtype(PYTHON[name]), True) if name in PYTHON else (dtypes.canonical(name), False)


def join(names):
    try:
        dtype, weak = dtypes.lattice_join(*map(operand, names))
        return [dtype.name, weak]
    except TypePromotionError:
        return None


# ---- promotion -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promotion_is_jaxs_with_64_bit_defaults(jax_says, mode):
    with settings.enable_x64(True), settings.numpy_dtype_promotion(mode):
        mine = [join(names) for names in CASES]
    differing = [(names, m, j) for names, m, j in zip(CASES, mine, jax_says[f"True,{mode}"]) if m != j]
    assert differing == []
    assert sum(m is None for m in mine) > 100 and sum(m is not None for m in mine) > 100


@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promotion_with_32_bit_defaults_is_jaxs_except_that_nothing_is_narrowed(jax_says, mode):
    """With a 64-bit operand the result is JAX's with 64 bits on; without one it is JAX's with 64 bits off,
    except that uint32 and a signed integer make int64, not int32."""
    with settings.numpy_dtype_promotion(mode):
        mine = [join(names) for names in CASES]
    for names, m, narrow, wide in zip(CASES, mine, jax_says[f"False,{mode}"], jax_says[f"True,{mode}"]):
        if {"int64", "uint64", "float64", "complex128"} & set(names):
            assert m == wide, names
        elif "uint32" in names and m == ["int64", False]:
            assert (m, narrow) == (wide, ["int32", False]), names
        else:
            assert m == narrow, names


def test_promotion_keeps_64_bits():
    assert dtypes.promote_types("uint32", "int32") == np.int64
    assert dtypes.lattice_join((dtypes.int64, False), (dtypes.float32, True)) == (dtypes.float64, True)
    assert dtypes.lattice_join((dtypes.int32, False), (dtypes.float32, True)) == (dtypes.float32, True)
    assert dtypes.lattice_join((dtypes.uint64, False), (dtypes.int64, False)) == (dtypes.float64, True)
    weak_complex = (dtypes.complex64, True)
    assert dtypes.lattice_join((dtypes.float64, False), weak_complex) == (dtypes.complex128, False)


def test_join_of_weak_operands_only():
    weak_float, weak_int = (dtypes.float32, True), (dtypes.int32, True)
    assert dtypes.lattice_join(weak_int, weak_float) == weak_float
    assert dtypes.lattice_join((dtypes.bool_, False), weak_int) == weak_int
    assert dtypes.lattice_join((dtypes.bool_, True), (dtypes.bool_, True)) == (dtypes.bool_, False)
    assert dtypes.lattice_join((dtypes.int64, True), (dtypes.uint64, True)) == (dtypes.float64, True)


def test_join_does_not_depend_on_the_order():
    for names in TRIPLES[:300]:
        assert len({str(join(order)) for order in itertools.permutations(names)}) == 1, names


def test_join_follows_the_setting_at_once():
    operands = (dtypes.uint8, False), (dtypes.float32, True)
    assert dtypes.lattice_join(*operands)[0] == np.float32
    with settings.enable_x64(True):
        assert dtypes.lattice_join(*operands)[0] == np.float64
    with settings.numpy_dtype_promotion("strict"), pytest.raises(TypePromotionError):
        dtypes.lattice_join((dtypes.uint8, False), (dtypes.int8, False))
    assert dtypes.lattice_join(*operands)[0] == np.float32


def test_promote_types_is_jaxs(jax_says):
    def promoted(a, b):
        try:
            return dtypes.promote_types(PYTHON.get(a, a), PYTHON.get(b, b)).name
        except TypePromotionError:
            return None

    with settings.enable_x64(True):
        assert [promoted(a, b) for a, b in PAIRS] == jax_says["promote_types"]


@pytest.mark.parametrize("a, b, words", [
    ("float8_e4m3fn", "float32", "f32 and f8_e4m3fn have no .*: floats of 8 bits"),
    ("int4", "int8", "i4 and i8 have no .*x.astype"),
    (KeyDtype(), "uint32", "key<fry> and u32 have no .*: random keys are no numbers"),
    (dtypes.float0, "float32", "f32 and float0 have no .*: float0 is the tangent of integers"),
])
def test_promotion_errors(a, b, words):
    with pytest.raises(TypePromotionError, match=words):
        dtypes.promote_types(a, b)


def test_strict_promotion_error_names_the_setting():
    words = "f32 and f64 have no available implicit dtype promotion path under numpy_dtype_promotion='strict'; cast one"
    with settings.numpy_dtype_promotion("strict"), pytest.raises(TypePromotionError, match=words):
        dtypes.promote_types("float32", "float64")


def test_keys_and_float0_promote_to_themselves():
    assert dtypes.promote_types(KeyDtype(), KeyDtype()) is KeyDtype()
    assert dtypes.promote_types(dtypes.float0, dtypes.float0) == dtypes.float0


def test_result_type_of_values():
    half = np.ones(3, np.float16)
    assert dtypes.result_type(half, 2.0) == np.float16
    assert dtypes.result_type(half, np.float64(2)) == np.float64
    assert dtypes.result_type(np.ones(2, np.int8), 1, True) == np.int8
    assert dtypes.result_type(1, 2.0, 3j) == np.complex64
    assert dtypes.result_type(3) == np.int32 and dtypes.result_type(None) == np.float32
    weak = SimpleNamespace(dtype=np.dtype("float32"), weak_type=True)
    assert dtypes.result_type(weak, "float16") == np.float16
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()


def test_safe_to_cast_and_can_cast():
    assert dtypes.safe_to_cast("int16", "float32") and not dtypes.safe_to_cast("float32", "int16")
    assert dtypes.safe_to_cast(1.0, "float16") and not dtypes.safe_to_cast(1.0, "int8")
    for a, b in itertools.product(ALL, ALL):
        assert dtypes.can_cast(a, b) == np.can_cast(a, b)
    assert dtypes.can_cast("float64", "float32", "same_kind") and not dtypes.can_cast("float64", "float32")
    assert dtypes.can_cast(KeyDtype(), KeyDtype()) and not dtypes.can_cast(KeyDtype(), "uint32", "unsafe")


# ---- kinds ---------------------------------------------------------------------------------------


def test_short_names_are_jaxs(jax_says):
    assert {n: f"{dtypes.short_name(dtypes.canonical(n))}[]" for n in NAMES} == jax_says["short"]
    assert dtypes.short_name(dtypes.float0) == "float0" and dtypes.short_name(KeyDtype()) == "key<fry>"


def test_issubdtype_is_jaxs(jax_says):
    abstract = [*(getattr(np, n) for n in ABSTRACT), dtypes.prng_key]
    assert [[dtypes.issubdtype(d, b) for b in abstract] for d in ALL] == jax_says["subtype"]
    assert [[dtypes.issubdtype(d.type, b) for b in abstract] for d in ALL] == jax_says["subtype"]
    assert [[dtypes.issubdtype(d, b) for b in ALL] for d in ALL] == jax_says["subdtype"]
    name, itemsize, subtype = jax_says["key"]
    key = KeyDtype()
    assert (key.name, key.itemsize) == (name, itemsize)
    assert [dtypes.issubdtype(key, b) for b in abstract] == subtype
    assert dtypes.issubdtype(key, key) and not dtypes.issubdtype(np.float32, key)
    assert not dtypes.issubdtype(key, KeyDtype("rbg"))
    assert dtypes.issubdtype(np.floating, np.inexact) and not dtypes.issubdtype(np.inexact, np.floating)


def test_isdtype_is_jaxs(jax_says):
    assert [[dtypes.isdtype(d, k) for k in KINDS] for d in ALL] == jax_says["isdtype"]
    assert dtypes.isdtype("int8", ("bool", np.int8)) and not dtypes.isdtype("int8", ("bool", np.int16))
    assert not dtypes.isdtype(KeyDtype(), "numeric") and dtypes.isdtype(KeyDtype(), KeyDtype())
    with pytest.raises(ValueError, match="one of bool, signed integer.*got 'float'?"):
        dtypes.isdtype("int8", "floaty")


PREDICATES = {
    "bool": dtypes.is_bool, "signed integer": dtypes.is_signed, "unsigned integer": dtypes.is_unsigned,
    "integral": dtypes.is_integer, "real floating": dtypes.is_float, "complex floating": dtypes.is_complex,
    "numeric": dtypes.is_numeric,
}


def test_predicates_agree_with_the_standard_kinds(jax_says):
    for d, row in zip(ALL, jax_says["isdtype"]):
        assert [PREDICATES[k](d) for k in KINDS] == row
        assert [PREDICATES[k](d.name) for k in KINDS] == [PREDICATES[k](d.type) for k in KINDS] == row
        assert dtypes.is_inexact(d) == (dtypes.is_float(d) or dtypes.is_complex(d))
        assert not dtypes.is_key(d)
    for other in (KeyDtype(), dtypes.float0):
        assert not any(is_kind(other) for is_kind in [*PREDICATES.values(), dtypes.is_inexact])
    assert dtypes.is_key(KeyDtype()) and not dtypes.is_key(dtypes.float0)
    with pytest.raises(TypeError, match="got object"):
        dtypes.is_float(np.dtype(object))


def test_tangent_dtype_is_jaxs(jax_says):
    assert [dtypes.tangent_dtype(d) == dtypes.float0 for d in ALL] == jax_says["tangent"]
    assert all(dtypes.tangent_dtype(d) == d for d in ALL if dtypes.is_inexact(d))
    assert dtypes.tangent_dtype(KeyDtype()) == dtypes.float0 == dtypes.tangent_dtype(dtypes.float0)


# ---- limits and relatives ------------------------------------------------------------------------


def test_limits():
    for d in dtypes.FLOATS:
        top = np.asarray(dtypes.finfo(d).max, np.float64)
        assert float(top.astype(d)) == float(top) and dtypes.bit_width(d) == ml_dtypes.finfo(d).bits
    assert dtypes.finfo(float).bits == 32 and dtypes.finfo("complex128").dtype == np.float64
    for d in (*dtypes.SIGNED, *dtypes.UNSIGNED):
        bits = int("".join(c for c in d.name if c.isdigit()))
        low = -(2 ** (bits - 1)) if dtypes.is_signed(d) else 0
        assert (dtypes.iinfo(d).min, dtypes.iinfo(d).max) == (low, low + 2**bits - 1)
        assert dtypes.bit_width(d) == bits
    assert [dtypes.bit_width(d) for d in ("bool", "complex64", "complex128", KeyDtype())] == [8, 64, 128, 64]
    with pytest.raises(TypeError, match="finfo: .* got i32; for integers use iinfo"):
        dtypes.finfo(int)
    with pytest.raises(TypeError, match="iinfo: .* got bool"):
        dtypes.iinfo(bool)


def test_relatives():
    assert [dtypes.real_dtype(d) for d in ("complex64", "complex128", "bfloat16", "int8")] == [
        np.float32, np.float64, ml_dtypes.bfloat16, np.int8]
    assert [dtypes.complex_dtype(d) for d in ("float16", "float32", "float64", "complex128")] == [
        np.complex64, np.complex64, np.complex128, np.complex128]
    with pytest.raises(TypeError, match="complex_dtype: expected a floating or complex dtype; got i32"):
        dtypes.complex_dtype("int32")
    names = "bool", "int4", "int32", "uint64", "bfloat16", "complex64"
    assert [dtypes.inexact_dtype(d) for d in names] == [
        np.float32, np.float32, np.float32, np.float64, ml_dtypes.bfloat16, np.complex64]


# ---- dtype-likes and values ----------------------------------------------------------------------


@pytest.mark.parametrize("d", ALL, ids=str)
def test_canonical_knows_each_spelling(d):
    for like in (d, d.type, d.name, np.zeros(2, d), d.type(1), SimpleNamespace(dtype=d)):
        assert dtypes.canonical(like) is d


def test_canonical_of_python_types_follows_the_defaults():
    python = [bool, int, float, complex]
    assert [dtypes.canonical(t).name for t in python] == ["bool", "int32", "float32", "complex64"]
    with settings.enable_x64(True):
        assert [dtypes.canonical(t).name for t in python] == ["bool", "int64", "float64", "complex128"]
        assert [dtypes.default_int(), dtypes.default_float(), dtypes.default_complex()] == [
            np.int64, np.float64, np.complex128]
    assert [dtypes.default_int(), dtypes.default_float(), dtypes.default_complex()] == [
        np.int32, np.float32, np.complex64]


def test_canonical_honours_64_bits_and_aliases():
    for like, name in [(np.float64, "float64"), ("f8", "float64"), ("<i8", "int64"), (np.intc, "int32"),
                       (np.longlong, "int64"), ("q", "int64"), (np.dtype("f4", metadata={"a": 1}), "float32"),
                       ("float", "float64")]:
        found = dtypes.canonical(like)
        assert found.name == name and found.type.__name__ == name and found.metadata is None
    assert dtypes.canonical(KeyDtype("rbg")) is KeyDtype("rbg") and dtypes.canonical("key<fry>") is KeyDtype()


class Scalar:
    dtype = np.dtype("float32")


def test_canonical_takes_classes_and_values_with_a_dtype():
    assert dtypes.canonical(Scalar) == dtypes.canonical(Scalar()) == np.float32
    assert dtypes.canonical(SimpleNamespace(dtype=KeyDtype())) is KeyDtype()


@pytest.mark.parametrize("like, words", [
    (object, "got object; give the elements a numeric type"),
    (np.dtype("U3"), "got <U3; encode text"),
    (str, "encode text"),
    ("datetime64[s]", "got datetime64.*view times as integers"),
    (np.longdouble, "the widest float is float64"),
    (np.clongdouble, "the widest complex is complex128"),
    (">f4", r"got >f4; its bytes are in foreign order: x.astype\('float32'\)"),
    (np.dtype([("a", int), ("b", float)]), "make an array of each field"),
    (None, "expected one of bool, int2 to int64.*got None"),
    ("flaot32", "got 'flaot32'"),
    (3, "got 3"),
    (SimpleNamespace(dtype="torch.float32"), "got namespace"),
])
def test_canonical_refuses(like, words):
    with pytest.raises(TypeError, match=words):
        dtypes.canonical(like)


class Color(enum.IntEnum):
    RED = 1


def test_dtype_of():
    assert [dtypes.dtype_of(x) for x in (True, 1, 1.0, 1j)] == [
        (np.bool_, False), (np.int32, True), (np.float32, True), (np.complex64, True)]
    assert dtypes.dtype_of(np.float64(1)) == (np.float64, False)
    assert dtypes.dtype_of(np.ones(2, ml_dtypes.bfloat16)) == (dtypes.bfloat16, False)
    assert dtypes.dtype_of(Color.RED) == (np.int32, True)
    assert dtypes.dtype_of(SimpleNamespace(dtype=np.dtype("int8"), weak_type=True)) == (np.int8, True)
    with settings.enable_x64(True):
        assert dtypes.dtype_of(1.0) == (np.float64, True)
    with pytest.raises(TypeError, match="expected an array or a number; got 'a' of type str"):
        dtypes.dtype_of("a")
    with pytest.raises(TypeError, match="got object"):
        dtypes.dtype_of(np.array([None]))


def test_check_int_range():
    for d in (*dtypes.SIGNED, *dtypes.UNSIGNED):
        limits = dtypes.iinfo(d)
        dtypes.check_int_range(int(limits.min), d)
        dtypes.check_int_range(int(limits.max), d)
        for value in (int(limits.min) - 1, int(limits.max) + 1):
            with pytest.raises(OverflowError, match=f"Python int {value} is out of bounds for {d.name}"):
                dtypes.check_int_range(value, d)
    cases = (2**31, "pass dtype=int64"), (2**63, "pass dtype=uint64"), (2**64, "no integer dtype")
    for value, advice in cases:
        with pytest.raises(OverflowError, match=rf"\[-2147483648, 2147483647\]; {advice}"):
            dtypes.check_int_range(value, dtypes.int32)


# ---- keys ----------------------------------------------------------------------------------------


def test_key_dtype_is_one_object_per_implementation():
    key = KeyDtype("threefry2x32")
    assert key is KeyDtype() and copy.deepcopy(key) is key and pickle.loads(pickle.dumps(key)) is key
    assert key != KeyDtype("rbg") and len({key, KeyDtype(), KeyDtype("rbg")}) == 2
    assert key != np.dtype("float32") and np.dtype("float32") != key
    assert (repr(key), key.kind, key.type.__name__, key.key_shape) == ("key<fry>", "K", "prng_key", (2,))
    with pytest.raises(ValueError, match="one of threefry2x32, .*, rbg, unsafe_rbg; got 'philox'"):
        KeyDtype("philox")


def test_key_dtype_satisfies_jaxtyping():
    jaxtyping = pytest.importorskip("jaxtyping")
    keys = SimpleNamespace(shape=(3,), dtype=KeyDtype())
    assert isinstance(keys, jaxtyping.Key[SimpleNamespace, "3"])
    assert not isinstance(keys, jaxtyping.Float[SimpleNamespace, "3"])


def test_scalar_types_name_every_dtype():
    table = dict(dtypes.SCALAR_TYPES)
    assert table["bool_"] == np.bool_ and table["bfloat16"] == ml_dtypes.bfloat16
    assert set(table.values()) == set(ALL)
    assert all(getattr(dtypes, name) is d for name, d in table.items())


def test_the_names_of_the_public_face():
    assert dtypes.canonicalize_dtype(float) == np.float32 and dtypes.canonicalize_dtype("float64") == np.float64
    with pytest.raises(ValueError, match="random keys"):
        dtypes.canonicalize_dtype(dtypes.KeyDtype())
    assert dtypes.canonicalize_dtype(dtypes.KeyDtype(), allow_extended_dtype=True) is dtypes.KeyDtype()
    bits = {"bool": 8, "int4": 4, "bfloat16": 16, "complex64": 64}
    assert {d: dtypes.itemsize_bits(d) for d in bits} == bits
    of = {d: dtypes.scalar_type_of(np.ones(2, dtypes.canonical(d))) for d in ("bool", "uint4", "float8_e4m3fn", "complex64")}
    assert list(of.values()) == [bool, int, float, complex]
    assert dtypes.result_type(2, return_weak_type_flag=True) == (np.int32, True)
    assert dtypes.result_type("int8", 2.0, return_weak_type_flag=True) == (np.float32, True)
    assert dtypes.result_type("int8", "float16", return_weak_type_flag=True) == (np.float16, False)
