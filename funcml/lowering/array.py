"""`DeviceArray`, the Array that holds a value: a device buffer and its aval; and how values become one.

    DeviceArray    : (Buffer, ShapedArray)
    asarray        : (number | list | array of any library, dtype, device) -> DeviceArray      its own buffer
    scalar         : (Python number, dtype, device)                        -> DeviceArray      a shared buffer
    wrap           : (Buffer) -> DeviceArray

Here stands what needs the buffer: conversion to other libraries and to Python, pickling, printing, devices.
Arithmetic, indexing and methods are those of `Array`. The elements of a typed key array are stored as uint64.

`np.asarray(x)` is a read-only view, without a copy on CPU. `memoryview(x)` needs Python 3.12 (PEP 688);
before that a Python class cannot export a buffer, and one writes `memoryview(np.asarray(x))`.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from funcml.core.avals import ShapedArray, shaped
from funcml.core.tracing import Tracer, leaked
from funcml.core.values import Array
from funcml.dtypes import (
    KeyDtype,
    canonical,
    check_int_range,
    dtype_of,
    is_integer,
    lattice_join,
    scalar_dtype,
)
from funcml.lowering import pjrt

__all__ = ["DeviceArray", "Shard", "asarray", "from_dlpack", "scalar", "wrap"]


@dataclass(frozen=True)
class Shard:
    """The part of an array that one device holds: `array[index]` is `data`."""

    device: pjrt.Device
    index: tuple[slice, ...]
    replica_id: int
    data: DeviceArray


class DeviceArray(Array):
    """An array of known value on a device. Immutable; made by `asarray` and by running programs."""

    __slots__ = ("__weakref__", "_buffer", "aval")

    def __init__(self, buffer: pjrt.Buffer, aval: ShapedArray):
        self._buffer = buffer
        self.aval = aval

    # ---- to NumPy and other libraries

    def _host(self) -> np.ndarray:
        """The stored elements, read-only; raises RuntimeError if they were deleted or donated."""
        try:
            return pjrt.to_numpy(self._buffer)
        except RuntimeError:
            self._check_alive()
            raise

    def _check_alive(self) -> None:
        if pjrt.is_deleted(self._buffer):
            raise RuntimeError(
                f"this array ({self.aval}) was deleted: it was donated to a call (donate_argnums or "
                "donate_argnames), or .delete() was called; use what that call returned, "
                "or give it a copy (x.copy())"
            ) from None

    def _refuse_keys(self, what: str) -> None:
        if isinstance(self.aval.dtype, KeyDtype):
            raise TypeError(
                f"{what}: {self.aval} holds random keys, which are no numbers; "
                "funcml.random.key_data(x) gives their bits as uint32")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The elements as a read-only view, or a copy if `copy` or another dtype is asked for."""
        self._refuse_keys("np.asarray")
        host = self._host()
        if dtype is not None and dtype != host.dtype:
            if copy is False:
                wanted = np.dtype(dtype)
                raise ValueError(f"np.asarray: {self.aval} becomes {wanted} by a copy only; drop copy=False")
            return host.astype(dtype)
        return host.copy() if copy else host

    if sys.version_info >= (3, 12):

        def __buffer__(self, flags: int) -> memoryview:
            self._refuse_keys("memoryview")
            try:
                return memoryview(self._host())
            except ValueError as error:
                raise BufferError(f"memoryview: {error}; np.asarray(x) works for every dtype") from None

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule that shares this array's memory; the taker must not write to it."""
        self._refuse_keys("__dlpack__")
        self._check_alive()
        return pjrt.to_dlpack(self._buffer, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._buffer.__dlpack_device__()

    def __jax_array__(self) -> Any:
        """The `jax.Array` that is this array's buffer, so that functions of JAX take it."""
        self._refuse_keys("__jax_array__")
        self._check_alive()
        return self._buffer

    # ---- to Python

    def item(self, *index: Any) -> bool | int | float | complex:
        """The only element, or the one at `index`, as a Python number."""
        return self.__array__().item(*index)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.__array__().tolist()

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ValueError(_no_truth_value(self.aval))
        return bool(self.item())

    def __int__(self) -> int:
        return int(self._scalar_item("int"))

    def __float__(self) -> float:
        return float(self._scalar_item("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar_item("complex"))

    def __index__(self) -> int:
        if self.aval.ndim or isinstance(self.aval.dtype, KeyDtype) or not is_integer(self.aval.dtype):
            raise TypeError(f"only an integer array without axes can be an index, got {self.aval}")
        return self._scalar_item("index")

    def _scalar_item(self, target: str) -> Any:
        if self.aval.ndim:
            first = ", ".join("0" * self.aval.ndim)
            raise TypeError(f"{target}(x): expected an array without axes, got {self.aval}; take an element, "
                            f"{target}(x[{first}]), or all of them, x.tolist()")
        return self.item()

    def __len__(self) -> int:
        if not self.aval.ndim:
            raise TypeError(f"len() of an array without axes ({self.aval})")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[DeviceArray]:
        if not self.aval.ndim:
            raise TypeError(f"iteration over an array without axes ({self.aval})")
        return self._rows()

    def _rows(self) -> Iterator[DeviceArray]:
        device = pjrt.buffer_device(self._buffer)
        row = self.aval.update(shape=self.aval.shape[1:])
        for values in self._host():
            yield DeviceArray(pjrt.put(values, device), row)

    def __hash__(self) -> int:
        raise TypeError(
            f"unhashable type: an array ({self.aval}) has no hash, because == compares its elements; as a key use x.item(), "
            "x.tobytes() or id(x), as a static argument of jit a Python value")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("arrays are immutable: instead of x[idx] = v write x = x.at[idx].set(v) "
                        "(also .add, .multiply, .min, .max)")

    # ---- copies

    def __copy__(self) -> DeviceArray:
        self._check_alive()
        return DeviceArray(pjrt.copy_buffer(self._buffer), self.aval)

    def __deepcopy__(self, memo: dict) -> DeviceArray:
        return self.__copy__()

    def __reduce__(self) -> tuple:
        return _from_pickle, (self._host(), self.aval)

    # ---- printing

    def __repr__(self) -> str:
        if pjrt.is_deleted(self._buffer):
            return f"Array(<deleted>, shape={self.aval.shape}, dtype={self.aval.dtype})"
        if isinstance(self.aval.dtype, KeyDtype):
            return f"Array({self.aval.shape}, dtype={self.aval.dtype})"
        parts = [np.array2string(self._host(), separator=", ", prefix="Array(", suffix=",")]
        if not self.aval.size and self.aval.shape != (0,):
            parts.append(f"shape={self.aval.shape}")
        parts.append(f"dtype={self.aval.dtype}")
        if self.aval.weak_type:
            parts.append("weak_type=True")
        return f"Array({', '.join(parts)})"

    def __str__(self) -> str:
        if pjrt.is_deleted(self._buffer) or isinstance(self.aval.dtype, KeyDtype):
            return repr(self)
        return str(self._host())

    def __format__(self, spec: str) -> str:
        return format(str(self) if self.aval.ndim or not spec else self.item(), spec)

    def __pdoc__(self, **options: Any) -> Any:
        """How jaxtyping's messages show an array. Only wadler_lindig calls this, so it is loaded."""
        return sys.modules["wadler_lindig"].TextDoc(str(self.aval))

    # ---- memory and devices

    def delete(self) -> None:
        """Frees the memory now; every later use is an error."""
        pjrt.delete(self._buffer)

    def is_deleted(self) -> bool:
        """Whether the array was deleted or donated."""
        return pjrt.is_deleted(self._buffer)

    def block_until_ready(self) -> DeviceArray:
        """This array, once its value has been computed."""
        self._check_alive()
        pjrt.block_until_ready((self._buffer,))
        return self

    def is_ready(self) -> bool:
        """Whether the value has been computed."""
        self._check_alive()
        return self._buffer.is_ready()

    def copy_to_host_async(self) -> None:
        """Starts the copy to the host that `np.asarray` will need."""
        self._check_alive()
        self._buffer.copy_to_host_async()

    @property
    def device(self) -> pjrt.Device:
        """The device that holds the array."""
        return pjrt.buffer_device(self._buffer)

    def devices(self) -> set[pjrt.Device]:
        """The devices that hold a part of the array."""
        return set(self._buffer.sharding.device_set)

    @property
    def sharding(self) -> Any:
        """How the array is laid out over devices."""
        return self._buffer.sharding

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of the array on devices of this process."""
        self._check_alive()
        return [Shard(self.device, (slice(None),) * self.aval.ndim, 0, self)]

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process holds all of the array."""
        return self._buffer.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each of the array's devices holds all of it."""
        return self._buffer.is_fully_replicated

    def on_device_size_in_bytes(self) -> int:
        """The memory that the array takes on its device."""
        self._check_alive()
        return self._buffer.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element on its device; valid while the array lives."""
        self._check_alive()
        return self._buffer.unsafe_buffer_pointer()


def _from_pickle(host: np.ndarray, aval: ShapedArray) -> DeviceArray:
    return DeviceArray(pjrt.put(host), aval)


def _no_truth_value(aval: ShapedArray) -> str:
    if aval.size == 0:
        return f"the truth value of an empty array ({aval}) is ambiguous: write x.size > 0"
    return (f"the truth value of an array with more than one element ({aval}) is ambiguous: "
            "write x.any() or x.all(), and & | ~ for and, or, not")


# ---- from anything


_NUMPY = (np.ndarray, np.generic)
_NUMBERS = (bool, int, float, complex)
_PLAIN = set(_NUMBERS)
_SEQUENCES = (list, tuple, range)


def wrap(buffer: pjrt.Buffer, weak_type: bool = False) -> DeviceArray:
    """The array with this buffer."""
    return DeviceArray(buffer, shaped(buffer.shape, buffer.dtype, weak_type))


def from_dlpack(x: Any, device: pjrt.Device | None = None, copy: bool | None = None) -> DeviceArray:
    """The array of an object with `__dlpack__`; shares its memory where possible, unless `copy` is True.

    Whoever writes to shared memory changes the array. Raises BufferError if `copy` is False and the memory
    cannot be shared.
    """
    return wrap(pjrt.from_dlpack(x, device, copy))


def asarray(x: Any, dtype: Any = None, device: pjrt.Device | None = None) -> DeviceArray:
    """The array of a concrete value, in memory of its own unless `x` is one already (or a `jax.Array`).

    NumPy's scalars and arrays, and arrays of other libraries, keep their dtype. A Python number without
    `dtype` is weakly typed; lists promote as their elements do, 32-bit by default unless `config.enable_x64`.
    Raises OverflowError for an integer that the dtype does not hold, TypeError for what is no array.

    >>> asarray([1.0, 2.5])
    Array([1. , 2.5], dtype=float32)
    >>> asarray(3)
    Array(3, dtype=int32, weak_type=True)
    """
    if dtype is not None:
        dtype = canonical(dtype)
    if device is not None:
        device = pjrt.one_device(device)
    weak = False
    if isinstance(x, _NUMPY):
        host = _from_numpy(x)
    elif isinstance(x, Array):
        return _placed(_concrete(x), dtype, device)
    elif isinstance(x, _NUMBERS):
        weak = dtype is None and not isinstance(x, bool)
        host = _from_number(x, dtype)
    elif isinstance(x, _SEQUENCES):
        host = _from_sequence(x, dtype)
    elif pjrt.is_foreign_array(x):
        return _placed(_adopted(x), dtype, device)
    elif hasattr(x, "__jax_array__"):
        return asarray(x.__jax_array__(), dtype, device)
    elif hasattr(x, "__dlpack__"):
        return _placed(from_dlpack(x, copy=True), dtype, device)
    else:
        host = _from_object(x)
    if dtype is not None and host.dtype != dtype:
        host = host.astype(dtype)
    return DeviceArray(pjrt.put(host, device), shaped(host.shape, host.dtype, weak))


def _placed(x: DeviceArray, dtype: Any, device: pjrt.Device | None) -> DeviceArray:
    if dtype is not None and dtype != x.aval.dtype:
        x = asarray(x.__array__(dtype), device=device or x.device)
    elif dtype is not None and x.aval.weak_type:
        x = DeviceArray(x._buffer, x.aval.strong())
    if device is None or device == x.device:
        return x
    return DeviceArray(pjrt.copy_buffer(x._buffer, device), x.aval)


def _concrete(x: Array) -> DeviceArray:
    if isinstance(x, DeviceArray):
        return x
    if isinstance(x, Tracer) and not x.frame.alive:
        raise leaked(x)
    raise TypeError(f"expected an array of known value, got {x!r}, which is traced; "
                    "use functions of funcml.numpy on it, or move this out of the transformed function")


def _adopted(x: Any) -> DeviceArray:
    return wrap(pjrt.adopt(x), weak_type=bool(x.weak_type))


def _from_numpy(x: Any) -> np.ndarray | np.generic:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("expected an array without a mask, got a numpy.ma.MaskedArray; fill it: x.filled(0)")
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    canonical(x.dtype)
    return x


def _from_number(x: Any, dtype: np.dtype | None) -> np.ndarray:
    if dtype is None:
        dtype = dtype_of(x)[0]
    if isinstance(x, int) and not isinstance(dtype, KeyDtype) and is_integer(dtype):
        check_int_range(x, dtype)
    return np.array(x, dtype)


def _from_sequence(x: list | tuple | range, dtype: np.dtype | None) -> np.ndarray:
    if dtype is None:
        found: set = set()
        _collect_dtypes(x, found)
        dtype = lattice_join(*found)[0] if found else scalar_dtype(float)
    try:
        return np.array(_with_numpy_leaves(x), dtype)
    except OverflowError as error:
        raise OverflowError(f"{error}; pass a wider dtype, as in asarray(x, dtype=int64)") from None


def _collect_dtypes(x: list | tuple | range, found: set) -> None:
    """Adds the (dtype, weak) of every leaf of nested sequences."""
    if isinstance(x, range):
        found.add(dtype_of(0))
        return
    types = set(map(type, x))
    if types <= _PLAIN:
        found.update((scalar_dtype(t), t is not bool) for t in types)
        return
    for element in x:
        if isinstance(element, _SEQUENCES):
            _collect_dtypes(element, found)
        else:
            found.add(dtype_of(element))


def _with_numpy_leaves(x: list | tuple | range) -> list | tuple | range:
    """The same nesting with other arrays made NumPy's: the dtypes of ml_dtypes take no others from a list."""
    if isinstance(x, range) or set(map(type, x)) <= _PLAIN:
        return x
    return [_with_numpy_leaves(e) if isinstance(e, _SEQUENCES) else _numpy_leaf(e) for e in x]


def _numpy_leaf(x: Any) -> Any:
    if isinstance(x, Array):
        return _concrete(x).__array__()
    return np.asarray(x) if hasattr(x, "__array__") else x


def _from_object(x: Any) -> np.ndarray | np.generic:
    host = np.asarray(x) if not isinstance(x, str | bytes) else None
    if host is None or host.dtype == object:
        raise TypeError(f"expected an array or a number, got {x!r} of type {type(x).__name__}")
    return _from_numpy(host)


def scalar(x: Any, dtype: Any = None, device: pjrt.Device | None = None) -> DeviceArray:
    """`asarray` of a Python number, from a small cache, so that `x + 1.0` costs no transfer each time.

    The buffer is shared: for operands of operations only, neither to be donated nor to be given to the user.
    """
    found = _shared_scalar(x, _distinction(x), dtype, dtype_of(x)[0], device)
    if pjrt.is_deleted(found._buffer):
        _shared_scalar.cache_clear()
        return scalar(x, dtype, device)
    return found


def _distinction(x: Any) -> str | None:
    """What tells apart numbers that are equal: 0.0 and -0.0."""
    if type(x) is float:
        return None if x else str(math.copysign(1.0, x))
    return str(x) if isinstance(x, complex | np.inexact) else None


@functools.lru_cache(maxsize=1024, typed=True)
def _shared_scalar(x: Any, distinction: Any, dtype: Any, default: Any, device: Any) -> DeviceArray:
    return asarray(x, dtype, device)
