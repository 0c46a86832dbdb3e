"""Operators and methods of `Array`, concrete or traced: each is a function of this package with the array first.

Importing this module installs them. An operand that is no array or number gives NotImplemented, so that its own type may
answer; lists and tuples, which have none that fits, are refused by name. Arrays and scalars of NumPy on the left leave the
operation to us (`__array_priority__`).
"""

from __future__ import annotations

import sys
from typing import Literal

import numpy as np

from funcml import dtypes
from funcml.core.tracing import Tracer
from funcml.core.values import Array
from funcml.lowering.array import DeviceArray, asarray
from funcml.lowering.execute import fused
from funcml.numpy import (
    choosing,
    creation,
    diagonals,
    linear,
    manipulation,
    reductions,
    running,
    selection,
    sorting,
    ufuncs,
)
from funcml.numpy.indexing import IndexUpdateHelper, getitem
from funcml.numpy.promotion import PYTHON_SCALARS, is_operand
from funcml.numpy.selected import Selected
from funcml.primitives import axes as ax
from funcml.primitives import bits, shaping
from funcml.primitives import elementwise as ew

__all__ = ["METHODS", "OPERATORS", "PROPERTIES"]

_KNOWN = frozenset((Tracer, DeviceArray, *PYTHON_SCALARS))
_OURS = _KNOWN | {list, tuple}


# ---- operators ---------------------------------------------------------------------------------------------------


def _operator(function, known=_KNOWN):
    def op(self, other):
        if type(other) in known or is_operand(other):
            return function(self, other)
        return NotImplemented

    op.__doc__ = function.__doc__
    return op


def _reflected(function):
    def op(self, other):
        if type(other) in _OURS or is_operand(other):
            return function(other, self)
        return NotImplemented

    op.__doc__ = function.__doc__
    return op


_BINARY = {
    "add": ufuncs.add,
    "sub": ufuncs.subtract,
    "mul": ufuncs.multiply,
    "truediv": ufuncs.divide,
    "floordiv": ufuncs.floor_divide,
    "mod": ufuncs.remainder,
    "divmod": ufuncs.divmod,
    "pow": ufuncs.power,
    "matmul": linear.matmul,
    "and": ufuncs.bitwise_and,
    "or": ufuncs.bitwise_or,
    "xor": ufuncs.bitwise_xor,
    "lshift": ufuncs.left_shift,
    "rshift": ufuncs.right_shift,
}
_COMPARISONS = {
    "eq": ufuncs.equal,
    "ne": ufuncs.not_equal,
    "lt": ufuncs.less,
    "le": ufuncs.less_equal,
    "gt": ufuncs.greater,
    "ge": ufuncs.greater_equal,
}


def _length(self) -> int:
    if not self.aval.ndim:
        raise TypeError(f"len() of an array without axes ({self.aval})")
    return self.aval.shape[0]


def _iterate(self):
    if not self.aval.ndim:
        raise TypeError(f"iteration over an array without axes ({self.aval})")
    return iter(manipulation.unstack(self))


def _contains(self, value):
    if not is_operand(value):
        found = f"{type(value).__name__} ({value!r})"
        raise TypeError(f"Array.__contains__: unsupported operand type {found} of `in` for {self.aval}; give a number")
    if not self.aval.ndim:
        raise ValueError(f"Array.__contains__: search array must be one-dimensional or more, got {self.aval}; write x == value")
    if np.ndim(value):
        raise ValueError(f"Array.__contains__: query value must be a scalar, got the shape {np.shape(value)}; use jnp.isin")
    return bool(reductions.any(ufuncs.equal(self, value)))


def _round(self, ndigits=None):
    return ufuncs.round(self, ndigits or 0)


OPERATORS = {
    **{f"__{name}__": _operator(function, _OURS) for name, function in _BINARY.items()},
    **{f"__{name}__": _operator(function) for name, function in _COMPARISONS.items()},
    **{f"__r{name}__": _reflected(function) for name, function in _BINARY.items()},
    "__neg__": ufuncs.negative,
    "__pos__": ufuncs.positive,
    "__abs__": ufuncs.absolute,
    "__invert__": ufuncs.invert,
    "__round__": _round,
    "__len__": _length,
    "__iter__": _iterate,
    "__contains__": _contains,
    "__getitem__": getitem,
}


# ---- properties --------------------------------------------------------------------------------------------------


def _at(self):
    """The parts of the array to update: `x.at[index].set(values)` and its kin."""
    return IndexUpdateHelper(self)


def _transposed(self):
    """The array with its axes reversed."""
    return ax.transpose(self, tuple(range(self.aval.ndim))[::-1])


def _matrix_transposed(self):
    """The array with its last two axes swapped."""
    return manipulation.matrix_transpose(self)


def _real(self):
    """The real part."""
    return ufuncs.real(self)


def _imag(self):
    """The imaginary part."""
    return ufuncs.imag(self)


PROPERTIES = {"at": _at, "T": _transposed, "mT": _matrix_transposed, "real": _real, "imag": _imag}


# ---- methods whose arguments differ from the function's ----------------------------------------------------------


def _one_or_many(args):
    return args[0] if len(args) == 1 and (args[0] is None or np.iterable(args[0])) else args


def reshape(self, *args, order: str = "C", copy: bool | None = None) -> Array:
    """The array under another shape, given as ints or a tuple; one length may be -1."""
    return manipulation.reshape(self, _one_or_many(args), order, copy=copy)


def transpose(self, *args) -> Array:
    """The array with its axes in the order given as ints or a tuple; reversed without it."""
    return manipulation.transpose(self, _one_or_many(args) if args else None)


def flatten(self, order: str = "C") -> Array:
    """The elements in a row."""
    return manipulation.ravel(self, order)


def astype(self, dtype, copy: bool = False, device=None) -> Array:
    """The array as another dtype."""
    return creation.astype(self, dtype, copy=copy, device=device)


def clip(self, min=None, max=None) -> Array:
    """The array limited to [min, max]."""
    return ufuncs.clip(self, min, max)


def compress(self, condition, axis=None, *, out=None, size=None, fill_value=0) -> Array:
    """The slices along `axis` where the vector `condition` is true."""
    return selection.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def tobytes(self, order: Literal["C", "F"] = "C") -> bytes:
    """The bytes of the elements, row by row, or for order 'F' column by column."""
    return np.asarray(self).tobytes(order)


def byteswap(self) -> Array:
    """The array with the bytes of each element in reverse order."""
    return _byteswap(self)


@fused
def _byteswap(x):
    if dtypes.is_complex(x.dtype):
        return ew.complex(_byteswap(ew.real(x)), _byteswap(ew.imag(x)))
    if dtypes.bit_width(x.dtype) <= 8:
        return ew.convert(x, x.dtype)
    parts = bits.bitcast_convert(x, dtypes.uint8)
    return bits.bitcast_convert(shaping.rev(parts, (x.ndim,)), x.dtype)


def to_device(self, device, *, stream=None) -> Array:
    """The array on another device."""
    if stream is not None:
        raise NotImplementedError("to_device: streams are not offered; leave stream=None")
    return asarray(self, device=device)


def array_namespace(self, *, api_version: str | None = None):
    """The module with the functions of the array API standard."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"__array_namespace__: version {api_version!r} of the array API is not known; 2024.12 is offered")
    return sys.modules["funcml.numpy"]


def view(self, dtype=None) -> Array:
    """The bits of the elements read as another dtype; the length of the last axis changes with the width."""
    if dtype is None:
        return self
    return _view(self, dtypes.canonical(dtype))


@fused(static=("dtype",))
def _view(x, dtype):
    if dtype == x.dtype:
        return x
    if dtypes.is_bool(x.dtype):
        return _view(ew.convert(x, dtypes.uint8), dtype)
    if dtypes.is_bool(dtype):
        return ew.ne(_view(x, dtypes.uint8), 0)
    if dtypes.is_complex(x.dtype):
        parts = [ax.expand_dims(part, (x.ndim,)) for part in (ew.real(x), ew.imag(x))]
        flat = shaping.concatenate(parts, x.ndim)
        return _view(_join_last(flat, "view"), dtype)
    if dtypes.is_complex(dtype):
        pairs = _split_last(_view(x, dtypes.real_dtype(dtype)), 2)
        halves = [ax.squeeze(half, (half.ndim - 1,)) for half in shaping.split(pairs, (1, 1), -1)]
        return ew.complex(*halves)
    old, new = dtypes.bit_width(x.dtype), dtypes.bit_width(dtype)
    if new > old:
        return bits.bitcast_convert(_split_last(x, new // old), dtype)
    out = bits.bitcast_convert(x, dtype)
    return _join_last(out, "view") if new < old else out


def _join_last(x, name: str):
    if x.ndim < 2:
        raise ValueError(f"{name} of an array without axes to a dtype of another width; add an axis first")
    return ax.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))


def _split_last(x, count: int):
    if not x.ndim or x.shape[-1] % count:
        raise ValueError(f"view of {x.aval}: {count} elements make one, so the length of the last axis must be a multiple of it")
    return ax.reshape(x, (*x.shape[:-1], x.shape[-1] // count, count))


METHODS = {
    **{f.__name__: f for f in (reshape, transpose, flatten, astype, byteswap, clip, compress, to_device, tobytes, view)},
    "__array_namespace__": array_namespace,
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "choose": choosing.choose,
    "conj": ufuncs.conjugate,
    "conjugate": ufuncs.conjugate,
    "copy": creation.copy,
    "cumprod": running.cumprod,
    "cumsum": running.cumsum,
    "diagonal": diagonals.diagonal,
    "dot": linear.dot,
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "nonzero": selection.nonzero,
    "partition": sorting.partition,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": manipulation.ravel,
    "repeat": selection.repeat,
    "round": ufuncs.round,
    "searchsorted": sorting.searchsorted,
    "sort": sorting.sort,
    "squeeze": manipulation.squeeze,
    "std": reductions.std,
    "sum": reductions.sum,
    "swapaxes": manipulation.swapaxes,
    "take": selection.take,
    "trace": linear.trace,
    "var": reductions.var,
}

for _name, _function in (OPERATORS | METHODS).items():
    setattr(Array, _name, _function)
for _name, _function in PROPERTIES.items():
    setattr(Array, _name, property(_function))

# ---- x[mask] while tracing -----------------------------------------------------------------------------------------

_SELECTED_METHODS = ("all", "any", "max", "mean", "min", "prod", "ptp", "std", "sum", "var")

for _name in _SELECTED_METHODS:
    setattr(Selected, _name, METHODS[_name])
for _name in [n for n in OPERATORS if n.strip("_") not in ("len", "iter", "contains", "getitem", "matmul", "rmatmul", "round")]:
    setattr(Selected, _name, OPERATORS[_name])
