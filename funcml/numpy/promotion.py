"""Bringing operands to one dtype and one shape, with as few equations as possible.

    operand  : value -> value                          what may be an operand; TypeError for the rest
    promote  : (name, values...) -> [operands]         of one dtype and shape; scalars stay scalars
    as_array : value -> Array

Operands of one type pass as they are. A Python or NumPy scalar becomes a scalar literal of the result's dtype, which
elementwise primitives take among arrays of any shape. Everything else is converted and broadcast.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.config import config
from funcml.core.ir import Literal
from funcml.core.tracing import aval_of, bind, current_frame
from funcml.core.values import Array
from funcml.lowering import array as device_array
from funcml.lowering import pjrt
from funcml.primitives.axes import broadcast_in_dim, broadcast_in_dim_p
from funcml.primitives.elementwise import convert

__all__ = [
    "as_array",
    "broadcast_shapes",
    "exact",
    "literal",
    "match_scalar",
    "operand",
    "operands",
    "promote",
    "promote_dtypes",
    "settle",
    "settled",
    "spread",
    "to_inexact",
]

_SCALAR_TYPES: tuple[type, ...] = (bool, int, float, complex)  # bool first: True is an int too
PYTHON_SCALARS = frozenset(_SCALAR_TYPES)
_NUMPY = (np.ndarray, np.generic)
_REAL = frozenset((bool, int, float))
_HOLD_1E4 = frozenset((dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64))


# ---- what may be an operand --------------------------------------------------------------------------------------


def is_operand(x) -> bool:
    """Whether `x` is an array of funcml, NumPy or JAX, or a number."""
    return (
        isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex))
        or pjrt.is_foreign_array(x)
        or hasattr(x, "__jax_array__")
    )


def operand(name: str, x):
    """`x` if primitives take it, or what it stands for; TypeError for lists, None, text and the like."""
    kind = type(x)
    if kind in PYTHON_SCALARS or isinstance(x, Array):
        return x
    if isinstance(x, _NUMPY):
        dtypes.canonical(x.dtype)
        return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    for python_type in _SCALAR_TYPES:
        if isinstance(x, python_type):
            return python_type(x)
    if pjrt.is_foreign_array(x) or hasattr(x, "__jax_array__"):
        return as_array(x)
    advice = "; make it an array first: `jnp.array(x)`" if isinstance(x, list | tuple) else ""
    raise TypeError(f"{name} expects arrays or numbers, got {_short(x)} of type {kind.__name__}{advice}")


def operands(name: str, xs) -> list:
    """`operand` of each."""
    return [operand(name, x) for x in xs]


def _short(x) -> str:
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


def as_array(x, name: str = "asarray") -> Array:
    """`x` as an Array: itself, a new buffer, or, while tracing, a recorded scalar."""
    if isinstance(x, Array):
        return x
    if type(x) is Literal:
        return _array_of_literal(x)
    if current_frame() is not None and (type(x) in PYTHON_SCALARS or isinstance(x, np.generic)):
        dtype, weak = dtypes.dtype_of(operand(name, x))
        return bind(broadcast_in_dim_p, (literal(x, dtype, weak),), {"shape": (), "broadcast_dimensions": ()})
    if hasattr(x, "__jax_array__") and not isinstance(x, _NUMPY):
        return as_array(x.__jax_array__(), name)
    return device_array.asarray(x)


def _array_of_literal(x: Literal) -> Array:
    if current_frame() is not None:
        return bind(broadcast_in_dim_p, (x,), {"shape": (), "broadcast_dimensions": ()})
    return device_array.DeviceArray(device_array.asarray(x.value)._buffer, x.aval)


def settled(x):
    """A scalar as what every function takes: a weak literal of unusual width becomes an array."""
    return as_array(x) if type(x) is Literal else x


# ---- dtypes ------------------------------------------------------------------------------------------------------


def literal(value, dtype, weak: bool = False):
    """A Python or NumPy scalar as one of `dtype`; OverflowError for a Python int that an integer dtype does not hold."""
    kind = type(value)
    if kind is int and dtypes.is_integer(dtype):
        dtypes.check_int_range(value, dtype)
    if kind in PYTHON_SCALARS and weak:
        for python_type in (int, float, complex):
            if dtypes.scalar_dtype(python_type) == dtype:
                return python_type(value)
    if kind in _REAL and dtype in _HOLD_1E4 and -1e4 < value < 1e4:
        scalar = dtype.type(value)
    else:
        with np.errstate(all="ignore"):
            scalar = value.astype(dtype)[()] if isinstance(value, _NUMPY) else dtype.type(value)
    return Literal(scalar, shaped((), dtype, True)) if weak else scalar


def exact(x):
    """A Python number as the NumPy scalar that holds all its digits: for operands that are converted in a program."""
    kind = type(x)
    if kind is int:
        return np.int64(x) if x.bit_length() < 64 else np.uint64(x)
    return {float: np.float64, complex: np.complex128, bool: np.bool_}[kind](x) if kind in PYTHON_SCALARS else x


def settle(name: str, *xs) -> list:
    """The operands; Python numbers beside arrays as scalars of the dtype to which all promote.

    As an operand of a program a Python float would be float32, and lose digits that a float64 array beside it wants.
    """
    if all([isinstance(x, Array) for x in xs]):
        return list(xs)
    values = operands(name, xs)
    plain = [type(x) in PYTHON_SCALARS for x in values]
    if not any(plain) or all(plain):
        return values
    dtype, weak = _joined(name, values, False)
    return [settled(literal(x, dtype, weak)) if is_plain else x for x, is_plain in zip(values, plain, strict=True)]


def _cast(x, dtype, weak: bool):
    """`x` as `dtype`: a scalar as a literal, an array by an equation, nothing where nothing changes."""
    if type(x) in PYTHON_SCALARS or (isinstance(x, _NUMPY) and x.ndim == 0):
        return literal(x, dtype, weak)
    return x if x.dtype == dtype else convert(x, dtype, weak)


def _joined(name: str, xs, inexact: bool):
    found = [dtypes.dtype_of(x) for x in xs]
    try:
        dtype, weak = dtypes.lattice_join(*found)
    except dtypes.TypePromotionError as error:
        raise type(error)(f"{name}: {error}") from None
    return (dtypes.inexact_dtype(dtype) if inexact else dtype), weak


def promote_dtypes(name: str, *xs, inexact: bool = False) -> list:
    """The operands with one dtype, shapes as they are; with `inexact`, integers and bool become floats."""
    values = operands(name, xs)
    dtype, weak = _joined(name, values, inexact)
    return [_cast(x, dtype, weak) for x in values]


def to_inexact(name: str, x):
    """One operand as a float or complex one."""
    x = operand(name, x)
    dtype, weak = dtypes.dtype_of(x)
    wide = dtypes.inexact_dtype(dtype)
    return x if wide == dtype and type(x) not in PYTHON_SCALARS else _cast(x, wide, weak)


_scalar_plans: dict[tuple, tuple] = {}


def match_scalar(aval, value):
    """A Python scalar as an operand beside an array of type `aval`, or None if the array itself has to change.

    >>> match_scalar(shaped((3,), np.dtype("float16")), 2)
    np.float16(2.0)
    """
    kind = type(value)
    key = (aval, kind, config.trace_key())
    plan = _scalar_plans.get(key)
    if plan is None:
        default = dtypes.scalar_dtype(kind)
        dtype, weak = dtypes.lattice_join((aval.dtype, aval.weak_type), (default, kind is not bool))
        same = dtype == aval.dtype
        as_it_is = same and default == dtype
        ranged = kind is int and dtypes.is_integer(dtype)
        limits = (dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max) if ranged else None
        plan = _scalar_plans[key] = (same, as_it_is, dtype, weak, limits)
    same, as_it_is, dtype, weak, limits = plan
    if not same:
        return None
    if limits is not None and not limits[0] <= value <= limits[1]:
        dtypes.check_int_range(value, dtype)
    if as_it_is:
        return value
    scalar = literal(value, dtype, weak)
    return settled(scalar) if current_frame() is None else scalar


# ---- shapes ------------------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast; raises ValueError if they do not. Ranks may differ: it is asked for.

    >>> broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    return _broadcast("broadcast_shapes", tuple([(s,) if isinstance(s, int) else tuple(s) for s in shapes]))


@functools.lru_cache(maxsize=4096)
def _broadcast(name: str, shapes) -> tuple[int, ...]:
    rank = max(map(len, shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n != 1:
                if out[i] not in (1, n):
                    raise ValueError(_cannot_broadcast(name, shapes))
                out[i] = n
    return tuple(out)


def _cannot_broadcast(name: str, shapes) -> str:
    return (
        f"{name}: the shapes {', '.join(map(str, shapes))} do not broadcast; aligned at the right, lengths must be equal "
        "or 1 (add an axis with x[:, None], or reshape)"
    )


def _check_ranks(name: str, shapes) -> None:
    if len({len(s) for s in shapes} - {0}) < 2:
        return
    where = f"for {name} on shapes {' '.join(map(str, shapes))}"
    advice = f"with numpy_rank_promotion={config.numpy_rank_promotion!r}; add axes with x[None], or set it to 'allow'"
    if config.numpy_rank_promotion == "raise":
        raise ValueError(f"Operands could not be broadcast together {where} of different ranks {advice}")
    warnings.warn(f"Following NumPy automatic rank promotion {where} {advice}", stacklevel=4)


def spread(x, shape: tuple[int, ...]):
    """`x` broadcast to `shape`, aligned at the right; nothing where nothing changes."""
    rank = aval_of(x).ndim
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - rank, len(shape))))


# ---- both --------------------------------------------------------------------------------------------------------

_plans: dict[tuple, tuple] = {}


def promote(name: str, *xs, inexact: bool = False, full: bool = False) -> list:
    """The operands with one dtype and one shape; scalars among them stay scalars, unless `full`.

    Raises TypeError for what is no array or number, TypePromotionError for dtypes that do not mix, and ValueError for
    shapes that do not broadcast.
    """
    values = xs if all([isinstance(x, Array) for x in xs]) else operands(name, xs)
    key = (inexact, config.trace_key(), *[x.aval if isinstance(x, Array) else _type_of(x) for x in values])
    plan = _plans.get(key)
    if plan is None:
        plan = _plan(name, values, inexact)
        if config.numpy_rank_promotion == "allow":
            if len(_plans) > 8192:
                _plans.clear()
            _plans[key] = plan
    dtype, weak, shape, steps = plan
    out = []
    for x, (is_scalar, new_dtype, dims) in zip(values, steps, strict=True):
        if is_scalar:
            x = literal(x, dtype, weak)
            x = spread(x, shape) if full else x
        else:
            x = convert(x, dtype, weak) if new_dtype else x
            x = x if dims is None else broadcast_in_dim(x, shape, dims)
        out.append(x)
    return out


def _type_of(x):
    return type(x) if type(x) in PYTHON_SCALARS else (x.shape, x.dtype)


def _plan(name: str, values, inexact: bool) -> tuple:
    """(dtype, weak, shape, steps): a step is (is a scalar, needs another dtype, dims of its broadcast or None)."""
    shapes = tuple([() if type(x) in PYTHON_SCALARS else x.shape for x in values])
    if config.numpy_rank_promotion != "allow":
        _check_ranks(name, shapes)
    shape = _broadcast(name, shapes)
    dtype, weak = _joined(name, values, inexact)
    steps = []
    for x, s in zip(values, shapes, strict=True):
        is_scalar = not s and not isinstance(x, Array)
        dims = None if s == shape else tuple(range(len(shape) - len(s), len(shape)))
        steps.append((is_scalar, not is_scalar and x.dtype != dtype, dims))
    return dtype, weak, shape, steps
