"""Matrices that have a name and a size: Hilbert, Pascal, Helmert, Hadamard, Fourier.

Their elements are found by exact arithmetic and then rounded; with a closed form there is nothing to compute on a device.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.numpy.arguments import index_of

__all__ = ["dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"]


def _size(name: str, n, least: int = 0) -> int:
    n = index_of(name, "n", n)
    if n < least:
        kind = "positive" if least else "non-negative"
        raise ValueError(f"{name}: n must be a {kind} integer, got {n}")
    return n


def _rounded(n: int, element) -> Array:
    """[n, n] of element(i, j), in the default float dtype."""
    exact = np.array([[_float(element(i, j)) for j in range(n)] for i in range(n)])
    with np.errstate(over="ignore"):
        return asarray(exact.reshape(n, n).astype(dtypes.default_float()))


def _float(x) -> float:
    """`x` as a float, infinite where it is beyond all floats."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def hilbert(n: int) -> Array:
    """The Hilbert matrix [n, n] of 1 / (i + j + 1), in the default float dtype.

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    places = np.arange(_size("hilbert", n))
    return asarray((1 / (places[:, None] + places + 1)).astype(dtypes.default_float()))


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix [n, n]: integers, rounded to the default float dtype.

    Element (i, j) is (-1)^(i+j) (i + j + 1) C(n+i, n-j-1) C(n+j, n-i-1) C(i+j, i)^2.
    """
    n, choose = _size("invhilbert", n), math.comb
    return _rounded(
        n,
        lambda i, j: (
            (-1) ** (i + j) * (i + j + 1) * choose(n + i, n - j - 1) * choose(n + j, n - i - 1) * choose(i + j, i) ** 2
        ),
    )


_KINDS = ("symmetric", "lower", "upper")


def _kind(name: str, kind) -> str:
    if kind is not None and kind not in _KINDS:
        raise ValueError(f"{name}: Expected kind to be one of: {', '.join(map(repr, _KINDS))}, or None; got {kind!r}")
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Array:
    """The Pascal matrix [n, n] in the default float dtype: 'lower' C(i, j), 'upper' C(j, i), 'symmetric' (None) C(i + j, i).

    >>> pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    kind, n, choose = _kind("pascal", kind), _size("pascal", n), math.comb
    if kind == "symmetric":
        return _rounded(n, lambda i, j: choose(i + j, i))
    return _rounded(n, choose if kind == "lower" else lambda i, j: choose(j, i))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal(n, kind)`: 'lower' (-1)^(i-j) C(i, j), 'upper' its transpose, 'symmetric' their product."""
    kind, n, choose = _kind("invpascal", kind), _size("invpascal", n), math.comb
    if kind == "symmetric":
        return _rounded(
            n, lambda i, j: (-1) ** (i + j) * sum(choose(k, i) * choose(k, j) for k in range(max(i, j), n))
        )
    return _rounded(n, lambda i, j: (-1) ** (i + j) * (choose(i, j) if kind == "lower" else choose(j, i)))


def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix [n - 1, n]: row k - 1 is k ones, -k, zeros, over sqrt(k (k + 1)); with `full`, [n, n] with a first
    row of 1 / sqrt(n).

    >>> helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    n = _size("helmert", n, 1)
    rows = _rounded(n, lambda k, j: 1 / math.sqrt(n) if k == 0 else _contrast(k, j))
    return rows if full else rows[1:]


def _contrast(k: int, j: int) -> float:
    return (1 if j < k else -k if j == k else 0) / math.sqrt(k * (k + 1))


def hadamard(n: int, dtype=int) -> Array:
    """The Hadamard matrix [n, n] of Sylvester, n a power of 2: element (i, j) is -1 to the number of bits that i and j share.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = index_of("hadamard", "n", n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n must be a positive power of 2, got {n}")
    places = np.arange(n)
    odd = np.bitwise_count(places[:, None] & places) % 2
    return asarray((1 - 2 * odd.astype(np.int64)).astype(dtypes.canonical(dtype)))


def dft(n: int, scale: str | None = None, *, dtype=None) -> Array:
    """The matrix [n, n] of the discrete Fourier transform, exp(-2 pi i j k / n); `scale` 'sqrtn' divides it by sqrt(n), 'n' by n.

    `dtype` is a complex one, by default the default complex dtype.

    >>> dft(2)
    Array([[ 1.+0.j,  1.+0.j],
           [ 1.+0.j, -1.+0.j]], dtype=complex64)
    """
    n = _size("dft", n)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    dtype = dtypes.default_complex() if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_complex(dtype):
        raise ValueError(f"dft: dtype must be a complex one, got {dtype}")
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    roots = np.array([_root_of_unity(k, n) for k in range(n)], np.complex128)
    divisor = {None: 1.0, "sqrtn": math.sqrt(n), "n": float(n)}[scale]
    return asarray((roots[turns] / (divisor or 1.0) if n else np.zeros((0, 0))).astype(dtype))


def _root_of_unity(k: int, n: int) -> complex:
    """exp(-2 pi i k / n), exact at multiples of a quarter turn."""
    quarters, rest = divmod(4 * k, n)
    angle = -math.pi * rest / (2 * n)
    return complex(math.cos(angle), math.sin(angle)) * (1, -1j, -1, 1j)[quarters]
