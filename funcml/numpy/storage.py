"""Arrays from and to bytes, text, iterables and files. All of it happens now, on the host: under `jit`, while recording."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.array import asarray

__all__ = ["frombuffer", "fromfile", "fromiter", "fromstring", "load", "save", "savez"]

File = str | os.PathLike | IO[Any]


def frombuffer(buffer, dtype=float, count: int = -1, offset: int = 0) -> Array:
    """The array whose elements are the bytes of a buffer, in an own copy.

    >>> frombuffer(b"\\x01\\x02", "uint8").tolist()
    [1, 2]
    """
    return asarray(np.frombuffer(buffer, dtypes.canonical(dtype), count, offset))


def fromiter(iter: Iterable, dtype, count: int = -1) -> Array:
    """The array of the numbers that an iterable gives, which is used up. Under `jit` it is read once, while recording."""
    return asarray(np.fromiter(iter, dtypes.canonical(dtype), count))


def fromstring(string: str, dtype=float, count: int = -1, *, sep: str) -> Array:
    """The array of the numbers in a text, which `sep` divides.

    >>> fromstring("1 2 3", dtype=int, sep=" ").tolist()
    [1, 2, 3]
    """
    if not sep:
        raise ValueError("fromstring: sep must not be empty; for bytes there is frombuffer")
    dtype = dtypes.canonical(dtype)
    read_as = np.float64 if dtypes.is_float(dtype) else dtype  # NumPy reads no bfloat16
    return asarray(np.fromstring(string, read_as, count, sep=sep), dtype)


def fromfile(file: File, dtype=float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """The array of the numbers in a file, binary (`sep` empty) or text. Under `jit` it is read once, while recording."""
    return asarray(np.fromfile(file, dtypes.canonical(dtype), count, sep, offset))


def load(file: File, *args, **kwargs):
    """The array in a `.npy` file; of a `.npz` file, or of an array of Python objects, what `numpy.load` gives.

    A `.npy` file knows bfloat16 by its width only: elements of two bytes without a type are read as bfloat16.
    """
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    if out.dtype == np.dtype("V2"):
        out = out.view(dtypes.bfloat16)
    return out if out.dtype.kind in "OUSV" and out.dtype != dtypes.bfloat16 else asarray(out)


def save(file: File, arr, allow_pickle: bool = True) -> None:
    """Writes an array to a `.npy` file.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, asarray([1.0, 2.0], "bfloat16"))
    >>> _ = file.seek(0)
    >>> load(file)
    Array([1, 2], dtype=bfloat16)
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: File, *args, allow_pickle: bool = True, **kwds) -> None:
    """Writes arrays to a `.npz` file, under the names of the keywords; the others as arr_0, arr_1, ..."""
    arrays = {name: np.asarray(x) for name, x in kwds.items()}
    np.savez(file, *[np.asarray(x) for x in args], allow_pickle=allow_pickle, **arrays)
