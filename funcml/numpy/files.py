"""Arrays from files, text and iterables, and into files; the formats are NumPy's."""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.lowering.array import asarray

__all__ = ["fromfile", "fromiter", "fromstring", "load", "save", "savez"]


def load(file, *args, **kwargs):
    """The array in a file that `save` wrote; of a file with several, what NumPy gives. Arguments as for `numpy.load`."""
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return asarray(found.view(dtypes.bfloat16) if found.dtype == np.dtype("V2") else found)


def save(file, arr, allow_pickle: bool = True) -> None:
    """Writes one array to a .npy file."""
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file, *args, allow_pickle: bool = True, **kwds) -> None:
    """Writes several arrays to a .npz file: those given by name, the others as arr_0, arr_1, ..."""
    named = {name: np.asarray(x) for name, x in kwds.items()}
    np.savez(file, *map(np.asarray, args), allow_pickle=allow_pickle, **named)


def fromfile(file, dtype=float, count: int = -1, sep: str = "", offset: int = 0):
    """The array of the bytes of a file, or of the numbers in it between which `sep` stands. It is read when called."""
    return asarray(np.fromfile(file, dtypes.canonical(dtype), count, sep, offset=offset))


def fromiter(iter, dtype, count: int = -1):
    """The array of the elements of an iterable, which it uses up when called."""
    return asarray(np.fromiter(iter, dtypes.canonical(dtype), count))


def fromstring(string: str, dtype=float, count: int = -1, *, sep: str):
    """The array of the numbers in a text, between which `sep` stands.

    >>> fromstring("1 2 3", int, sep=" ")
    Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtypes.canonical(dtype), count, sep=sep))
