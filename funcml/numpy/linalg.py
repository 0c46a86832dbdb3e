"""Norms and matrix products; decompositions are not here.

The Euclidean norm has derivative 0 at 0, and right second derivatives there.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy import diagonals, linear, manipulation, reductions
from funcml.numpy.arguments import axes_of, index_of
from funcml.numpy.norms import euclidean
from funcml.numpy.promotion import as_array, operand, operands, to_inexact
from funcml.numpy.rows import fill
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import transcendental as tr

__all__ = [
    "cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "multi_dot", "norm", "outer",
    "tensordot", "trace", "vecdot", "vector_norm",
]


def norm(x, ord=None, axis=None, keepdims: bool = False) -> Array:
    """The norm of a vector (`axis` an int) or of a matrix (`axis` a pair); of all elements, if `axis` and `ord` are None.

    Vectors: `ord` is 2 (None), 1, inf, -inf, 0 (how many elements are not 0) or another number p, (sum |x|^p)^(1/p).
    Matrices: 'fro' (None), 1 and -1 (largest and smallest column sum), inf and -inf (row sum).

    >>> norm([3.0, 4.0])
    Array(5., dtype=float32)
    """
    x = as_array(x) if isinstance(x, list | tuple) else operand("norm", x)
    x = as_array(x)
    if axis is None and ord is None:
        return _vector_norm(x, 2, None, bool(keepdims))
    axes = axes_of("norm", axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else _order(ord), axes, bool(keepdims))
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, axes, bool(keepdims))
    raise ValueError(f"norm of {x.aval}: expected one axis for a vector norm or two for a matrix norm, got {axes}")


def vector_norm(x, /, *, axis=None, keepdims: bool = False, ord=2) -> Array:
    """The norm of vectors along the given axes (of all elements, if None), which count as one."""
    x = as_array(operand("vector_norm", x))
    return _vector_norm(x, _order(ord), axes_of("vector_norm", axis, x.ndim), bool(keepdims))


def matrix_norm(x, /, *, keepdims: bool = False, ord="fro") -> Array:
    """The norm of matrices in the last two axes: 'fro', 1, -1, inf or -inf."""
    x = as_array(operand("matrix_norm", x))
    if x.ndim < 2:
        raise ValueError(f"matrix_norm expects at least 2 dimensions, got {x.aval}")
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), bool(keepdims))


def _order(ord):
    if isinstance(ord, str):
        raise ValueError(f"norm: ord {ord!r} is for matrices; a vector takes a number")
    return float(ord)


@fused(static=("ord", "axes", "keepdims"))
def _vector_norm(x, ord, axes, keepdims):
    x = to_inexact("norm", x)
    x = ew.convert(x, aval_of(x).dtype)
    axes = tuple(range(x.ndim)) if axes is None else axes
    if ord == 2:
        out = euclidean(x, axes)
    elif ord == math.inf:
        out = reductions.max(ew.abs(x), axes)
    elif ord == -math.inf:
        out = reductions.min(ew.abs(x), axes)
    elif ord == 0:
        out = reductions.sum(ew.convert(ew.ne(x, 0), dtypes.real_dtype(x.dtype)), axes)
    elif ord == 1:
        out = reductions.sum(ew.abs(x), axes)
    else:
        out = _p_norm(ew.abs(x), ord, axes)
    return ax.reshape(out, [1 if i in axes else n for i, n in enumerate(x.shape)]) if keepdims else out


# (sum |x|^p)^(1/p), and 0 with derivative 0 where that sum is 0
def _p_norm(size, p, axes):
    total = reductions.sum(tr.pow(size, p), axes)
    zero = ew.eq(total, 0)
    root = tr.pow(ew.select(zero, fill(total, 1), total), 1 / p)
    return ew.select(zero, total, root)


@fused(static=("ord", "axes", "keepdims"))
def _matrix_norm(x, ord, axes, keepdims):
    x = to_inexact("norm", x)
    row, column = axes
    if ord in ("fro", "f"):
        return _vector_norm(x, 2.0, axes, keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        summed, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = reductions.sum(ew.abs(x), summed, keepdims=True)
        out = (reductions.max if ord > 0 else reductions.min)(sums, other, keepdims=True)
        return out if keepdims else ax.squeeze(out, axes)
    if ord in (2, -2, "nuc"):
        raise NotImplementedError(f"norm: ord {ord!r} of a matrix needs its singular values, which are not offered")
    raise ValueError(f"norm: ord of a matrix must be 'fro', 1, -1, inf or -inf, got {ord!r}")


def matmul(x1, x2, /, *, precision=None, preferred_element_type=None) -> Array:
    """The matrix product [.., m, k] x [.., k, n] -> [.., m, n]."""
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


def tensordot(x1, x2, /, *, axes=2, precision=None, preferred_element_type=None) -> Array:
    """The sum of products over pairs of axes."""
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
    """The product of n times the square matrix `a` [.., m, m], n >= 0, by repeated squaring."""
    a, n = as_array(operand("matrix_power", a)), index_of("matrix_power", "n", n)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"matrix_power expects square matrices, got {a.aval}")
    if n < 0:
        raise NotImplementedError(f"matrix_power: a negative power, {n}, needs the inverse, which is not offered")
    return _matrix_power(a, n)


@fused(static=("n",))
def _matrix_power(a, n):
    if n == 0:
        return manipulation.broadcast_to(diagonals.eye(a.shape[-1], dtype=a.dtype), a.shape)
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
