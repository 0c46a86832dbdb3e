"""What dtypes are: their names, kinds, limits, defaults and promotion.

    canonical    : dtype-like -> dtype                        TypeError for what no array can have
    dtype_of     : value -> (dtype, weak)
    lattice_join : (dtype, weak)... -> (dtype, weak)          the promotion lattice
    result_type  : (values and dtypes)... -> dtype

Every dtype is a real `np.dtype` (bfloat16, int4 and the 8-bit floats come from ml_dtypes), except the
dtypes of typed random keys, which are `KeyDtype`s. 64-bit dtypes are honoured wherever they are asked for;
32 bits are only the default of what comes without a dtype, unless `config.enable_x64`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from funcml.core.avals import dtype_text
from funcml.core.config import config

# isort: off
from funcml.number_dtypes import (
    COMPLEX, FLOATS, NUMERIC, SIGNED, SMALL_FLOATS, UNSIGNED, bfloat16, bool_, complex128, complex64, float0, float16,
    float32, float4_e2m1fn, float64, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz,
    float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, int16, int2, int32, int4, int64, int8, uint16, uint2, uint32, uint4,
    uint64, uint8,
)
# isort: on

__all__ = [
    "COMPLEX", "DType", "FLOATS", "KEYS", "KeyDtype", "NUMERIC", "SCALAR_TYPES", "SIGNED", "SMALL_FLOATS",
    "TypePromotionError", "UNSIGNED", "bfloat16", "bit_width", "bool_", "can_cast", "canonical", "canonicalize_dtype",
    "check_int_range", "complex128", "complex64", "complex_dtype", "default_complex", "default_float", "default_int",
    "dtype_of", "extended", "finfo", "float0", "float16", "float32", "float4_e2m1fn", "float64", "float8_e3m4",
    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "iinfo", "inexact_dtype", "int16", "int2", "int32", "int4", "int64", "int8", "is_bool",
    "is_complex", "is_float", "is_inexact", "is_integer", "is_key", "is_numeric", "is_signed", "is_unsigned",
    "isdtype", "issubdtype", "itemsize_bits", "lattice_join", "prng_key", "promote_types", "real_dtype", "result_type",
    "safe_to_cast", "scalar_dtype", "scalar_type_of", "short_name", "tangent_dtype", "uint16", "uint2", "uint32",
    "uint4", "uint64", "uint8",
]  # fmt: skip

short_name = dtype_text


# ---- the dtypes ----------------------------------------------------------------------------------


class extended(np.generic):
    """Abstract scalar type of the dtypes that NumPy has no word for; it stands in `issubdtype` only."""


class prng_key(extended):
    """Abstract scalar type of typed random keys; it stands in `issubdtype` only."""


class KeyDtype:
    """The dtype of typed random keys of one implementation, always the same object.

    An element is a key: uint32 words of shape `key_shape`, to which no arithmetic applies.

    >>> KeyDtype("threefry2x32")
    key<fry>
    >>> KeyDtype("threefry2x32") is KeyDtype("threefry2x32"), KeyDtype("threefry2x32").itemsize
    (True, 8)

    `stored` is the dtype of numbers of that size, one of which holds a key in memory.
    """

    __slots__ = ("impl", "name", "key_shape", "itemsize", "stored")

    kind: ClassVar[str] = "K"
    type: ClassVar[type] = prng_key
    _known: ClassVar[dict[str, KeyDtype]] = {}
    _tags: ClassVar[dict[str, tuple[str, int]]] = {
        "threefry2x32": ("fry", 2), "threefry4x32": ("fry4", 4), "philox2x32": ("phx2", 1), "philox4x32": ("phx4", 2),
        "rbg": ("rbg", 4), "unsafe_rbg": ("urbg", 4)}
    _stored: ClassVar[dict[int, np.dtype]] = {1: np.dtype("uint32"), 2: np.dtype("uint64"), 4: np.dtype("complex128")}

    impl: str
    name: str
    key_shape: tuple[int, ...]
    itemsize: int
    stored: np.dtype

    def __new__(cls, impl: str = "threefry2x32") -> KeyDtype:
        if impl in cls._known:
            return cls._known[impl]
        if impl not in cls._tags:
            raise ValueError(f"KeyDtype: expected one of {', '.join(cls._tags)}; got {impl!r}")
        tag, words = cls._tags[impl]
        self = super().__new__(cls)
        self.impl, self.name, self.key_shape, self.itemsize = impl, f"key<{tag}>", (words,), 4 * words
        self.stored = cls._stored[words]
        return cls._known.setdefault(impl, self)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        return KeyDtype, (self.impl,)


DType = np.dtype | KeyDtype

KEYS = tuple(map(KeyDtype, KeyDtype._tags))

# (name, dtype) of each scalar type that `funcml.numpy` shows.
SCALAR_TYPES: tuple[tuple[str, np.dtype], ...] = (("bool_", bool_), *((d.name, d) for d in NUMERIC))


# ---- dtype-likes ---------------------------------------------------------------------------------

_CANONICAL: dict[Any, Any] = {
    **{d: d for d in (bool_, *NUMERIC, float0, *KEYS)},
    **{d.type: d for d in (bool_, *NUMERIC)},
    **{d.name: d for d in (bool_, *NUMERIC, *KEYS)},
    "float0": float0,
}
_SUPPORTED = ("bool, int2 to int64, uint2 to uint64, float4_e2m1fn, float8_*, bfloat16, float16 to float64, "
              "complex64, complex128 and random keys")
_ADVICE = {
    "O": "give the elements a numeric type first, e.g. x.astype(np.float32)",
    "U": "encode text as integers first",
    "S": "encode text as integers first",
    "T": "encode text as integers first",
    "M": "view times as integers first: x.astype('int64')",
    "m": "view times as integers first: x.astype('int64')",
    "f": "the widest float is float64: x.astype(np.float64)",
    "c": "the widest complex is complex128: x.astype(np.complex128)",
    "V": "make an array of each field",
}


def canonical(like: Any) -> Any:
    """The dtype named by a dtype, its name, a scalar type, a Python scalar type, or an object with a `dtype`.

    Python's `int`, `float` and `complex` are the defaults (32-bit unless `config.enable_x64`); everything
    else is taken at its word. Raises TypeError for dtypes that no array can have: objects, text, times, long
    doubles, foreign byte order.

    >>> canonical("bfloat16"), canonical(float), canonical(np.float64)
    (dtype(bfloat16), dtype('float32'), dtype('float64'))
    """
    try:
        found = _CANONICAL.get(like)
    except TypeError:  # unhashable: an array
        found = None
    return found if found is not None else _canonical(like)


def _canonical(like: Any) -> Any:
    if isinstance(like, type) and like in _DEFAULTS:
        return scalar_dtype(like)
    own = getattr(like, "dtype", None)
    if isinstance(own, (np.dtype, KeyDtype)):
        return canonical(own)
    try:
        dtype = None if like is None else np.dtype(like)
    except (TypeError, ValueError):
        dtype = None
    if dtype is None:
        raise TypeError(f"dtype: expected one of {_SUPPORTED}; got {like!r}")
    if dtype in _CANONICAL:
        return _CANONICAL[dtype]
    raise TypeError(f"dtype: expected one of {_SUPPORTED}; got {dtype}; {_advice(dtype)}")


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays have where `dtype` is asked for: `dtype` itself, of 64 bits too; TypeError if there is none.

    Those of random keys count only with `allow_extended_dtype`.
    """
    found = canonical(dtype)
    if isinstance(found, KeyDtype) and not allow_extended_dtype:
        raise ValueError(f"canonicalize_dtype: {found} is a dtype of random keys; pass allow_extended_dtype=True")
    return found


def _advice(dtype: np.dtype) -> str:
    native = dtype.newbyteorder("=")
    if native in _CANONICAL:
        return f"its bytes are in foreign order: x.astype('{native.name}')"
    return _ADVICE.get(dtype.kind, "convert it to one of these first")


# ---- kinds ---------------------------------------------------------------------------------------


class _ByDtype(dict):
    """A table by dtype that takes any dtype-like; a dtype itself costs one look-up."""

    def __missing__(self, like: Any) -> Any:
        return self[canonical(like)]


_KIND = _ByDtype({
    bool_: "b", float0: "0", **dict.fromkeys(SIGNED, "i"), **dict.fromkeys(UNSIGNED, "u"),
    **dict.fromkeys(FLOATS, "f"), **dict.fromkeys(COMPLEX, "c"), **dict.fromkeys(KEYS, "K"),
})
# A dtype's `.kind` says "V" for bfloat16 and int4: only this table tells.


def is_bool(dtype: Any) -> bool:
    """Whether the dtype is bool."""
    return _KIND[dtype] == "b"


def is_integer(dtype: Any) -> bool:
    """Whether the dtype is an integer, signed or unsigned; bool is not."""
    return _KIND[dtype] in "iu"


def is_signed(dtype: Any) -> bool:
    """Whether the dtype is a signed integer."""
    return _KIND[dtype] == "i"


def is_unsigned(dtype: Any) -> bool:
    """Whether the dtype is an unsigned integer."""
    return _KIND[dtype] == "u"


def is_float(dtype: Any) -> bool:
    """Whether the dtype is a real floating one, of any width."""
    return _KIND[dtype] == "f"


def is_complex(dtype: Any) -> bool:
    """Whether the dtype is complex."""
    return _KIND[dtype] == "c"


def is_inexact(dtype: Any) -> bool:
    """Whether the dtype is floating or complex: whether a function of it has a derivative."""
    return _KIND[dtype] in "fc"


def is_numeric(dtype: Any) -> bool:
    """Whether the dtype is integer, floating or complex; bool is not."""
    return _KIND[dtype] in "iufc"


def is_key(dtype: Any) -> bool:
    """Whether the dtype is that of typed random keys."""
    return _KIND[dtype] == "K"


_ABSTRACT: dict[str, tuple[type, ...]] = {
    "i": (np.signedinteger, np.integer, np.number, np.generic),
    "u": (np.unsignedinteger, np.integer, np.number, np.generic),
    "f": (np.floating, np.inexact, np.number, np.generic),
}


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether `arg1` is at or below `arg2` in NumPy's hierarchy of scalar types, in which all dtypes have a place.

    >>> issubdtype(bfloat16, np.floating), issubdtype(KeyDtype(), prng_key)
    (True, True)
    """
    below, above = _scalar_type(arg1), _scalar_type(arg2)
    if isinstance(arg2, KeyDtype):
        return arg1 is arg2
    if below.__module__ == "ml_dtypes":
        return above is below or above in _ABSTRACT[_KIND[below]]
    return issubclass(below, above)


def _scalar_type(like: Any) -> type:
    if isinstance(like, type) and issubclass(like, np.generic):
        return like
    return like.type if isinstance(like, KeyDtype) else np.dtype(like).type


_STANDARD_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether the dtype is of a kind of the array API standard: a kind's name, a dtype, or a tuple of these.

    Raises ValueError for a string that is neither.

    >>> isdtype(bfloat16, "real floating"), isdtype(int8, ("bool", "unsigned integer"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str) and kind in _STANDARD_KINDS:
        return _KIND[dtype] in _STANDARD_KINDS[kind]
    try:
        return canonical(dtype) == canonical(kind)
    except TypeError:
        if not isinstance(kind, str):
            raise
        kinds = ", ".join(_STANDARD_KINDS)
        raise ValueError(f"isdtype: expected a dtype or one of {kinds}; got {kind!r}") from None


# ---- limits and relatives ------------------------------------------------------------------------


def finfo(dtype: Any) -> Any:
    """The limits of a floating dtype, or of a complex one's parts; raises TypeError for others."""
    dtype = canonical(dtype)
    if not is_inexact(dtype):
        came = short_name(dtype)
        raise TypeError(f"finfo: expected a floating or complex dtype; got {came}; for integers use iinfo")
    return ml_dtypes.finfo(dtype)


def iinfo(dtype: Any) -> Any:
    """The limits of an integer dtype; raises TypeError for others."""
    dtype = canonical(dtype)
    if not is_integer(dtype):
        raise TypeError(f"iinfo: expected an integer dtype; got {short_name(dtype)}; for floats use finfo")
    return ml_dtypes.iinfo(dtype)


def bit_width(dtype: Any) -> int:
    """The bits of an element: 4 for int4 (whose `itemsize` is 1), 8 for bool, 64 for complex64."""
    dtype = canonical(dtype)
    if is_integer(dtype):
        return ml_dtypes.iinfo(dtype).bits
    return ml_dtypes.finfo(dtype).bits if is_float(dtype) else 8 * dtype.itemsize


itemsize_bits = bit_width


def real_dtype(dtype: Any) -> Any:
    """The dtype of the real part: float32 for complex64, float64 for complex128, others themselves."""
    return _REAL_OF.get(dtype := canonical(dtype), dtype)


def complex_dtype(dtype: Any) -> Any:
    """The complex dtype that holds a floating one: complex128 for float64, complex64 for all narrower floats.

    Raises TypeError for dtypes that are neither floating nor complex.
    """
    dtype = canonical(dtype)
    if not is_inexact(dtype):
        raise TypeError(f"complex_dtype: expected a floating or complex dtype; got {short_name(dtype)}")
    return complex128 if dtype in (float64, complex128) else complex64


def inexact_dtype(dtype: Any) -> Any:
    """The dtype in which functions such as `sin` compute: float32 for bool and integers of up to 32 bits,
    float64 for 64-bit integers, floating and complex dtypes themselves; raises TypeError for keys."""
    dtype = canonical(dtype)
    if is_inexact(dtype):
        return dtype
    if not (is_bool(dtype) or is_integer(dtype)):
        raise TypeError(f"expected a numeric dtype; got {short_name(dtype)}")
    return float64 if dtype in (int64, uint64) else float32


def tangent_dtype(dtype: Any) -> Any:
    """The dtype of a tangent: the same for floating and complex dtypes, float0 (no space) for all others."""
    return dtype if is_inexact(dtype) else float0


_REAL_OF = {complex64: float32, complex128: float64}


# ---- defaults ------------------------------------------------------------------------------------

# Python type -> (32-bit default, 64-bit default)
_PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_DEFAULTS = {
    bool: (bool_, bool_), int: (int32, int64), float: (float32, float64), complex: (complex64, complex128)}


def scalar_dtype(python_type: type) -> np.dtype:
    """The default dtype of a Python scalar type: bool, int, float or complex."""
    return _DEFAULTS[python_type][config.enable_x64]


def scalar_type_of(x: Any) -> type:
    """The Python type of the elements of a scalar or array: bool, int, float or complex; TypeError for keys.

    >>> scalar_type_of(np.ones(3, "float16")), scalar_type_of(2)
    (<class 'float'>, <class 'int'>)
    """
    kind = _KIND[dtype_of(x)[0]]
    if kind not in _PYTHON_TYPES:
        raise TypeError(f"scalar_type_of: expected numbers or bool; got {short_name(dtype_of(x)[0])}")
    return _PYTHON_TYPES[kind]


def default_int() -> np.dtype:
    """int32, or int64 under `config.enable_x64`."""
    return scalar_dtype(int)


def default_float() -> np.dtype:
    """float32, or float64 under `config.enable_x64`."""
    return scalar_dtype(float)


def default_complex() -> np.dtype:
    """complex64, or complex128 under `config.enable_x64`."""
    return scalar_dtype(complex)


def dtype_of(x: Any) -> tuple[Any, bool]:
    """The dtype of a scalar or array, and whether it is weak, as Python's numbers are.

    An array is weak if its `weak_type` says so; a bool never is. Raises TypeError for other values.

    >>> dtype_of(2.0), dtype_of(np.float64(2.0))
    ((dtype('float32'), True), (dtype('float64'), False))
    """
    if type(x) in _DEFAULTS:
        return scalar_dtype(type(x)), type(x) is not bool
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        return canonical(dtype), getattr(x, "weak_type", False)
    for python_type in _DEFAULTS:
        if isinstance(x, python_type):
            return scalar_dtype(python_type), python_type is not bool
    raise TypeError(f"expected an array or a number; got {x!r} of type {type(x).__name__}")


def check_int_range(value: int, dtype: Any) -> None:
    """Raises OverflowError if integer dtype `dtype` does not hold the Python int `value`."""
    limits = iinfo(dtype)
    if limits.min <= value <= limits.max:
        return
    wider = next((d for d in (int64, uint64) if iinfo(d).min <= value <= iinfo(d).max), None)
    advice = f"pass dtype={wider.name}" if wider else "no integer dtype holds it; pass a float"
    raise OverflowError(f"Python int {value} is out of bounds for {limits.dtype} "
                        f"[{limits.min}, {limits.max}]; {advice}")


# ---- promotion -----------------------------------------------------------------------------------


class TypePromotionError(ValueError):
    """Operands have no common dtype that promotion may choose by itself."""


# The weak types i*, f*, c* of Python's numbers are nodes of the lattice like the dtypes. `<`: is promoted to.
#
#   bool < i* < u8, i8 < ... < u64, i64 < f* < bf16, f16 < f32 < f64 < c128
#   uN < u2N, i2N     iN < i2N     f* < c* < c64     f32 < c64 < c128
#   dead ends: i* < i2, u2, i4, u4     f* < f4..., f8...
_WEAK = {"i": "i*", "u": "i*", "f": "f*", "c": "c*"}
_STANDARD: dict[Any, tuple] = {
    bool_: ("i*",),
    "i*": (int2, uint2, int4, uint4, int8, uint8),
    uint8: (uint16, int16), uint16: (uint32, int32), uint32: (uint64, int64), uint64: ("f*",),
    int8: (int16,), int16: (int32,), int32: (int64,), int64: ("f*",),
    "f*": (*SMALL_FLOATS, bfloat16, float16, "c*"),
    bfloat16: (float32,), float16: (float32,), float32: (float64, complex64), float64: (complex128,),
    "c*": (complex64,), complex64: (complex128,),
}
_STRICT: dict[Any, tuple] = {
    "i*": ("f*", *SIGNED, *UNSIGNED), "f*": ("c*", *FLOATS), "c*": COMPLEX,
}


def _upper_sets(above: dict[Any, tuple]) -> dict[Any, frozenset]:
    """node -> the nodes at or above it."""
    upper: dict[Any, frozenset] = {}

    def visit(node: Any) -> frozenset:
        if node not in upper:
            upper[node] = frozenset({node}).union(*map(visit, above.get(node, ())))
        return upper[node]

    for node in ("i*", "f*", "c*", bool_, *NUMERIC):
        visit(node)
    return upper


_UPPER = {"standard": _upper_sets(_STANDARD), "strict": _upper_sets(_STRICT)}
# mode -> by enable_x64 -> operands -> join
_joins: dict[str, tuple[dict, dict]] = {mode: ({}, {}) for mode in _UPPER}


def lattice_join(*operands: tuple[Any, bool]) -> tuple[Any, bool]:
    """The (dtype, weak) to which operands of the given (dtype, weak) promote, or TypePromotionError.

    A weak result of strong integers has the default width, or 64 bits if an operand has 64.

    >>> lattice_join((int8, False), (float32, True)), lattice_join((uint32, False), (int32, False))
    ((dtype('float32'), True), (dtype('int64'), False))
    """
    joins = _joins[config.numpy_dtype_promotion][config.enable_x64]
    found = joins.get(operands)
    if found is None:
        found = joins[operands] = _join(operands, config.numpy_dtype_promotion)
    return found


def _join(operands: tuple[tuple[Any, bool], ...], mode: str) -> tuple[Any, bool]:
    dtypes = {dtype for dtype, _ in operands}
    all_weak = all(weak for _, weak in operands)
    if len(dtypes) == 1 and (len(operands) == 1 or not all_weak):
        return operands[0][0], all_weak and operands[0][0] is not bool_
    if all_weak and mode == "standard":
        bound = _least_upper_bound(dtypes, mode)
    else:
        bound = _least_upper_bound({_WEAK.get(_KIND[d], d) if weak else d for d, weak in operands}, mode)
    if isinstance(bound, str):
        return _materialized(bound, dtypes), True
    return bound, all_weak and bound is not bool_


def _least_upper_bound(nodes: set, mode: str) -> Any:
    """The node at or above all of `nodes` that lies below every other such node."""
    upper = _UPPER[mode]
    common = frozenset.intersection(*(upper.get(node, frozenset()) for node in nodes))
    for node in common:
        if common <= upper[node]:
            return node
    raise TypePromotionError(_no_promotion(nodes, mode))


def _materialized(weak: str, dtypes: set) -> np.dtype:
    """The dtype of a weak result: of default width, but of 64 bits if an operand has 64."""
    wide = any(d in (int64, uint64, float64, complex128) for d in dtypes)
    return _DEFAULTS[{"i*": int, "f*": float, "c*": complex}[weak]][wide or config.enable_x64]


def _no_promotion(nodes: set, mode: str) -> str:
    names = sorted(node if isinstance(node, str) else short_name(node) for node in nodes)
    message = f"Input dtypes {' and '.join(names)} have no available implicit dtype promotion path"
    if any(isinstance(node, KeyDtype) for node in nodes):
        return f"{message}: random keys are no numbers; draw some from them, e.g. with random.uniform"
    if float0 in nodes:
        return f"{message}: float0 is the tangent of integers and holds no numbers"
    if mode == "strict":
        return (f"{message} under numpy_dtype_promotion='strict'; "
                "cast one operand, e.g. x.astype('float32'), "
                "or set it to 'standard'")
    return (f"{message}: floats of 8 bits and integers of 4 and fewer are not widened in silence; "
            "cast one operand, e.g. x.astype('float32')")


def promote_types(a: Any, b: Any) -> Any:
    """The dtype to which two dtypes promote; Python's `int`, `float` and `complex` count as weak.

    >>> promote_types("int8", "bfloat16"), promote_types("float16", float)
    (dtype(bfloat16), dtype('float16'))
    """
    return lattice_join(_typed(a), _typed(b))[0]


def result_type(*xs: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype to which arrays, scalars and dtypes promote, and if asked for whether it is weak; ValueError if there are none.

    >>> result_type(np.ones(3, "float16"), 2.0), result_type("int32", 2.5)
    (dtype('float16'), dtype('float32'))
    """
    if not xs:
        raise ValueError("result_type: expected at least one array or dtype; got none")
    joined = lattice_join(*map(_typed, xs))
    return joined if return_weak_type_flag else joined[0]


def _typed(x: Any) -> tuple[Any, bool]:
    """(dtype, weak) of a value or a dtype-like."""
    if isinstance(x, (type, str, np.dtype, KeyDtype)):
        return canonical(x), x is int or x is float or x is complex
    return (default_float(), False) if x is None else dtype_of(x)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether NumPy's casting rules let one dtype become another; keys cast to their own dtype only."""
    from_, to = canonical(from_), canonical(to)
    if isinstance(from_, KeyDtype) or isinstance(to, KeyDtype):
        return from_ is to
    return np.can_cast(from_, to, casting)  # type: ignore[arg-type]


def safe_to_cast(source: Any, target: Any) -> bool:
    """Whether promotion would by itself take `source` (a value or dtype) to the dtype of `target`.

    >>> safe_to_cast("int16", "float32"), safe_to_cast("complex64", "float32")
    (True, False)
    """
    to = _typed(target)[0]
    return _typed(source)[0] == to or result_type(source, to) == to
