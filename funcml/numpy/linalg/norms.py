"""Norms and condition numbers.

Norms have derivative 0 at 0; the Euclidean norm has right second derivatives there too. Where several singular values are the
greatest, they share the derivative of the spectral norm, and those that are zero to rounding have no part in that of the
nuclear norm.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy import reductions
from funcml.numpy.arguments import axes_of
from funcml.numpy.linalg.operands import check_square, matrix_of, narrow, wide
from funcml.numpy.linalg.systems import inv
from funcml.numpy.norms import euclidean
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.numpy.rows import fill
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import transcendental as tr
from funcml.primitives.identities import stop_gradient
from funcml.primitives.linalg_spectral import svdvals
from funcml.primitives.reductions import reduce_max, reduce_min
from funcml.primitives.shaping import slice_in_dim
from funcml.primitives.spectra import along_rows
from funcml.primitives.tangents import scalar_of, zeros

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]


def norm(x, ord=None, axis=None, keepdims: bool = False) -> Array:
    """The norm of a vector (`axis` an int) or of a matrix (`axis` a pair); of all elements, if `axis` and `ord` are None.

    Vectors: `ord` is 2 (None), 1, inf, -inf, 0 (how many elements are not 0) or another number p, (sum |x|^p)^(1/p).
    Matrices: 'fro' (None), 'nuc' (the sum of the singular values), 2 and -2 (the largest and smallest one), 1 and -1 (largest
    and smallest column sum), inf and -inf (row sum).

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
    return _vector_norm(x, 2 if ord is None else _order(ord), axes_of("vector_norm", axis, x.ndim), bool(keepdims))


def matrix_norm(x, /, *, keepdims: bool = False, ord="fro") -> Array:
    """The norm of matrices in the last two axes: 'fro', 'nuc', 2, -2, 1, -1, inf or -inf, as for `norm`."""
    x = as_array(operand("matrix_norm", x))
    if x.ndim < 2:
        raise ValueError(f"matrix_norm expects at least 2 dimensions, got {x.aval}")
    return _matrix_norm(x, "fro" if ord is None else ord, (x.ndim - 2, x.ndim - 1), bool(keepdims))


def _order(ord):
    if isinstance(ord, str):
        raise ValueError(f"norm: Invalid order {ord!r} for vector norm. It is a number there; names are for matrices")
    return float(ord)


@fused(static=("ord", "axes", "keepdims"))
def _vector_norm(x, ord, axes, keepdims):
    x = to_inexact("norm", x)
    x = ew.convert(x, aval_of(x).dtype)
    axes = tuple(range(x.ndim)) if axes is None else axes
    if ord == 2:
        out = euclidean(x, axes)
    elif ord == math.inf:
        out = reductions.max(ew.abs(x), axes, initial=0)
    elif ord == -math.inf:
        out = reductions.min(ew.abs(x), axes)
    elif ord == 0:
        out = reductions.sum(ew.convert(ew.ne(x, 0), dtypes.real_dtype(x.dtype)), axes)
    elif ord == 1:
        out = reductions.sum(ew.abs(x), axes)
    else:
        out = _p_norm(ew.abs(x), ord, axes)
    return _kept(out, x.shape, axes) if keepdims else out


def _kept(out, shape, axes):
    return ax.reshape(out, [1 if i in axes else n for i, n in enumerate(shape)])


# (sum |x|^p)^(1/p), and 0 with derivative 0 where that sum is 0
def _p_norm(size, p, axes):
    total = reductions.sum(tr.pow(size, p), axes)
    zero = ew.eq(total, 0)
    root = tr.pow(ew.select(zero, fill(total, 1), total), 1 / p)
    return ew.select(zero, total, root)


@fused(static=("ord", "axes", "keepdims"))
def _matrix_norm(x, ord, axes, keepdims):
    x = as_array(to_inexact("norm", x))
    row, column = axes
    if ord in ("fro", "f"):
        return _vector_norm(x, 2.0, axes, keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        summed, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = reductions.sum(ew.abs(x), summed, keepdims=True)
        out = reductions.max(sums, other, keepdims=True, initial=0) if ord > 0 else reductions.min(sums, other, keepdims=True)
        return out if keepdims else ax.squeeze(out, axes)
    if ord in ("nuc", 2, -2):
        others = [i for i in range(x.ndim) if i not in axes]
        out = _by_singular_values(ax.transpose(x, (*others, row, column)), ord)
        return _kept(out, x.shape, axes) if keepdims else out
    raise ValueError(f"norm: ord of a matrix must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")


def _by_singular_values(x, ord):
    s = ew.abs(svdvals(wide(x)))  # they are positive; the derivative of |s| at 0 is 0
    last = (s.ndim - 1,)
    if not s.shape[-1] and ord == -2:
        raise ValueError(f"norm: {x.aval} has no singular values, so there is no smallest one")
    if not s.size:
        out = zeros(s.aval.update(shape=s.shape[:-1]))
    elif ord == "nuc":
        out = ax.reduce_sum(_without_rounding(s, max(x.shape[-2:])), last)
    else:
        out = reduce_max(s, last) if ord == 2 else reduce_min(s, last)
    return narrow(out, dtypes.real_dtype(x.dtype))


def _without_rounding(s, n):
    """`s`, but constant where it is zero to rounding."""
    limit = scalar_of(s.aval, n * float(dtypes.finfo(s.dtype).eps))
    largest = along_rows(reduce_max(s, (s.ndim - 1,)), s.shape)
    fixed = stop_gradient(s)
    return ew.select(ew.le(fixed, ew.mul(largest, limit)), fixed, s)


def cond(x, p=None) -> Array:
    """The condition numbers of matrices [.., m, n]: the norm times that of the inverse; inf for singular matrices.

    `p` None, 2 or -2: the ratio of the largest to the smallest singular value, or the inverse of it. Else an `ord` of `norm`, for
    square matrices.
    """
    x = as_array(operand("cond", x))
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise ValueError(f"cond expects matrices [.., m, n] with elements, got {x.aval}")
    if p in (None, 2, -2):
        return _ratio(x, p)
    check_square(f"cond with p={p!r}", x)
    return _cond(x, p)


@fused(static=("p",))
def _ratio(x, p):
    x = matrix_of("cond", x)
    s = svdvals(wide(x))
    last, k = s.ndim - 1, s.shape[-1]
    ends = [ax.squeeze(slice_in_dim(s, i, i + 1, axis=last), (last,)) for i in (0, k - 1)]
    largest, smallest = ends if p != -2 else ends[::-1]
    return narrow(_inf_for_nan(ew.div(largest, smallest), x), dtypes.real_dtype(x.dtype))


@fused(static=("p",))
def _cond(x, p):
    x = matrix_of("cond", x)
    axes = (x.ndim - 2, x.ndim - 1)
    return _inf_for_nan(ew.mul(_matrix_norm(x, p, axes, False), _matrix_norm(inv(x), p, axes, False)), x)


def _inf_for_nan(r, x):
    """`r`, with inf where it is nan although `x` has none."""
    has_nan = ax.reduce_or(ew.ne(x, x), (x.ndim - 2, x.ndim - 1))
    return ew.select(ew.and_(ew.ne(r, r), ew.not_(has_nan)), fill(r, math.inf), r)
