"""Products of matrices, and what is read from them without factoring."""

from __future__ import annotations

from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy import diagonals, linear, manipulation
from funcml.numpy.arguments import index_of, no_sharding
from funcml.numpy.linalg.operands import check_square
from funcml.numpy.linalg.systems import inv
from funcml.numpy.promotion import as_array, operand, operands

__all__ = [
    "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace", "vecdot",
]


def matmul(x1, x2, /, *, precision=None, preferred_element_type=None, out_sharding=None) -> Array:
    """The matrix product [.., m, k] x [.., k, n] -> [.., m, n]."""
    no_sharding("matmul", out_sharding)
    return linear.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def outer(x1, x2, /) -> Array:
    """The product of each element of a vector with each of another."""
    x1, x2 = (as_array(x) for x in operands("outer", (x1, x2)))
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"linalg.outer expects vectors, got {x1.aval} and {x2.aval}")
    return linear.outer(x1, x2)


def cross(x1, x2, /, *, axis: int = -1) -> Array:
    """The vector product along an axis of length 3."""
    x1, x2 = (as_array(x) for x in operands("cross", (x1, x2)))
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"linalg.cross expects vectors of 3 components, got {x1.aval} and {x2.aval}")
    return linear.cross(x1, x2, axis=axis)


def tensordot(x1, x2, /, *, axes=2, precision=None, preferred_element_type=None, out_sharding=None) -> Array:
    """The sum of products over pairs of axes."""
    no_sharding("tensordot", out_sharding)
    return linear.tensordot(x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(x1, x2, /, *, axis: int = -1, precision=None, preferred_element_type=None) -> Array:
    """The sum of conj(x1) x2 over one axis."""
    return linear.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def matrix_transpose(x, /) -> Array:
    """`x` [.., m, n] with its last two axes swapped."""
    return manipulation.matrix_transpose(x)


def diagonal(x, /, *, offset: int = 0) -> Array:
    """The elements (i, i + offset) of the last two axes."""
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x, /, *, offset: int = 0, dtype=None) -> Array:
    """The sum of the elements (i, i + offset) of the last two axes."""
    return linear.trace(x, offset, -2, -1, dtype)


def matrix_power(a, n: int) -> Array:
    """The product of n times the square matrices `a` [.., m, m]; for negative n, of -n times their inverses.

    >>> import numpy as np
    >>> matrix_power(np.array([[2, 0], [0, 1]]), 3)
    Array([[8, 0],
           [0, 1]], dtype=int64)
    """
    a, n = as_array(operand("matrix_power", a)), index_of("matrix_power", "n", n)
    return _matrix_power(check_square("matrix_power", a), n)


@fused(static=("n",))
def _matrix_power(a, n):
    if n == 0:
        return manipulation.broadcast_to(diagonals.eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = inv(a), -n
    out = None
    while n:
        if n & 1:
            out = a if out is None else linear.matmul(out, a)
        n >>= 1
        a = linear.matmul(a, a) if n else a
    return out


def multi_dot(arrays, *, precision=None) -> Array:
    """The product of several matrices (the first and last may be vectors), in the order that costs least."""
    arrays = [as_array(x) for x in operands("multi_dot", arrays)]
    if len(arrays) < 2:
        raise ValueError(f"multi_dot expects at least 2 arrays, got {len(arrays)}")
    letters = [chr(ord("a") + i) for i in range(len(arrays) + 1)] if len(arrays) < 26 else None
    ends = [0 if arrays[0].ndim == 1 else 1, 0 if arrays[-1].ndim == 1 else 1]
    if letters is None or any(x.ndim != 2 for x in arrays[1:-1]) or any(x.ndim not in (1, 2) for x in arrays):
        raise ValueError(f"multi_dot expects up to 25 matrices, got {', '.join(str(x.aval) for x in arrays)}")
    terms = [letters[i : i + 2] for i in range(len(arrays))]
    terms[0], terms[-1] = terms[0][1 - ends[0] :], terms[-1][: 1 + ends[1]]
    output = letters[:1] * ends[0] + letters[-1:] * ends[1]
    spec = ",".join(map("".join, terms)) + "->" + "".join(output)
    return linear.einsum(spec, *arrays, optimize="auto", precision=precision)
