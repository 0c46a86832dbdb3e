"""Linear systems: solutions, inverses, pseudo-inverses and least squares."""

from __future__ import annotations

import math
import operator

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy import manipulation, reductions
from funcml.numpy.arguments import axes_of
from funcml.numpy.linalg.operands import check_square, matrix_of, narrow, pair_of, wide
from funcml.numpy.norms import euclidean
from funcml.numpy.promotion import as_array, broadcast_shapes, operand, to_inexact
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import linalg_lu, linalg_solve
from funcml.primitives.identities import stop_gradient
from funcml.primitives.linalg_spectral import eigh, eigvalsh, svd, svdvals
from funcml.primitives.matrices import adjoint, eye, product
from funcml.primitives.powers import square
from funcml.primitives.reductions import reduce_max
from funcml.primitives.spectra import along_columns, along_rows, inverse_or_zero, widened
from funcml.primitives.tangents import scalar_of, zeros
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["inv", "lstsq", "matrix_rank", "pinv", "solve", "solved", "tensorinv", "tensorsolve"]


# ---- square systems ----------------------------------------------------------------------------------------------


def solved(a, b):
    """x with a x = b, for matrices of one batch: the factors of `a` serve the derivatives too."""
    lu, _, permutation = linalg_lu.lu(stop_gradient(a))
    return linalg_solve.factored_solve(a, lu, permutation, b)


@fused
def solve(a, b) -> Array:
    """x with a x = b: matrices `a` [.., n, n] and `b` [.., n, m], whose leading axes broadcast; or one vector `b` [n].

    A singular matrix gives inf or nan. Raises ValueError for shapes that do not fit.

    >>> import numpy as np
    >>> solve(np.float32([[2, 0], [0, 4]]), np.float32([1, 2]))
    Array([0.5, 0.5], dtype=float32)
    """
    a, b = pair_of("solve", a, b)
    check_square("solve", a)
    vector = b.ndim == 1
    if b.ndim < 1 or b.shape[0 if vector else -2] != a.shape[-1]:
        hint = "; a batch of vectors is solved by solve(a, b[..., None])[..., 0]" if b.shape[-1:] == a.shape[-1:] else ""
        raise ValueError(
            f"solve with a {a.aval} expects b of {a.shape[-1]} rows: one vector [n], or matrices [.., n, m], got {b.aval}{hint}"
        )
    matrix, right = wide(a), wide(b)
    out = _broadcast_solve(matrix, ax.expand_dims(right, (1,)) if vector else right)
    return narrow(ax.squeeze(out, (out.ndim - 1,)) if vector else out, a.dtype)


def _broadcast_solve(a, b):
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not any(n != 1 for n in a.shape[:-2]):
        return _many_columns(ax.reshape(a, a.shape[-2:]), _batched(b, batch))
    return solved(_batched(a, batch), _batched(b, batch))


def _batched(x, batch):
    rank = len(batch) + 2
    return ax.broadcast_in_dim(x, (*batch, *x.shape[-2:]), tuple(range(rank - x.ndim, rank)))


def _many_columns(a, b):
    """One matrix for the whole batch of `b`, whose columns are put side by side."""
    n, m = b.shape[-2:]
    front = ax.moveaxis(b, b.ndim - 2, 0)
    out = solved(a, ax.reshape(front, (n, math.prod(b.shape[:-2]) * m)))
    return ax.moveaxis(ax.reshape(out, front.shape), 0, b.ndim - 2)


@fused
def inv(a) -> Array:
    """The inverses of square matrices [.., n, n]; inf or nan for singular ones.

    >>> import numpy as np
    >>> inv(np.float32([[2, 0], [0, 4]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    a = check_square("inv", matrix_of("inv", a))
    x = wide(a)
    return narrow(solved(x, eye(x.aval.strong())), a.dtype)


def tensorinv(a, ind: int = 2) -> Array:
    """The inverse of `a` as a linear map from its last axes to its first `ind`, whose lengths have one product."""
    a, ind = as_array(operand("tensorinv", a)), operator.index(ind)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind must be positive, got {ind}")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(
            f"tensorinv of {a.aval} with ind={ind}: the first axes have {math.prod(rows)} elements, the others "
            f"{math.prod(columns)}; they must have as many"
        )
    flat = ax.reshape(a, (math.prod(rows), math.prod(columns)))
    return ax.reshape(inv(flat), (*columns, *rows))


def tensorsolve(a, b, axes=None) -> Array:
    """x with tensordot(a, x, x.ndim) = b; `axes` of `a` are moved to its end first."""
    a, b = as_array(operand("tensorsolve", a)), as_array(operand("tensorsolve", b))
    if axes is not None:
        axes = axes_of("tensorsolve", axes, a.ndim)
        a = manipulation.moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or math.prod(shape) != b.size:
        raise ValueError(
            f"tensorsolve: the first {b.ndim} axes of a {a.aval} must be those of b {b.aval}, and the others have as many "
            "elements"
        )
    flat = ax.reshape(a, (b.size, b.size))
    return ax.reshape(solve(flat, ax.reshape(b, (b.size,))), shape)


# ---- by singular values ------------------------------------------------------------------------------------------


def _cutoff(s, relative):
    """`relative` (a number, or one for each matrix) times the largest singular value, at the shape of `s`."""
    return ew.mul(_for_each(relative, s), along_rows(reduce_max(s, (s.ndim - 1,)), s.shape))


def _for_each(number, s):
    """A number, or one for each matrix, at the shape and dtype of the singular values `s`."""
    number = ew.convert(as_array(number), s.dtype)
    batch = s.ndim - 1
    return ax.broadcast_in_dim(number, s.shape, tuple(range(batch - number.ndim, batch)))


def _eps(dtype) -> float:
    return float(dtypes.finfo(dtype).eps)


def pinv(a, rtol=None, hermitian: bool = False, *, rcond=None) -> Array:
    """The pseudo-inverses [.., n, m] of matrices [.., m, n].

    Singular values up to `rtol` (or `rcond`; 10 max(m, n) eps by default) times the largest count as zero. Of a `hermitian`
    matrix eigenvalues are taken. The derivative holds at constant rank: G. Golub and V. Pereyra (1973).
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    return _pinv(a, rcond if rtol is None else rtol, bool(hermitian))


@fused(static=("hermitian",))
def _pinv(a, rtol, hermitian):
    a = matrix_of("pinv", a)
    m, n = a.shape[-2:]
    if hermitian:
        check_square("pinv", a)
    if not a.size:
        return zeros(a.aval.update(shape=(*a.shape[:-2], n, m)))
    x = wide(a)
    rtol = 10 * max(m, n) * _eps(a.dtype) if rtol is None else as_array(to_inexact("pinv", rtol))
    relative = as_array(scalar_of(shaped((), dtypes.real_dtype(x.dtype)), rtol)) if isinstance(rtol, float) else rtol
    return narrow(_pseudo_inverse(x, relative, hermitian), a.dtype)


def _pseudo_inverse_value(a, relative, hermitian):
    if hermitian:
        return _of_hermitian(a, relative)
    u, s, vh = svd(a, full_matrices=False)
    return product(_scaled(adjoint(vh), _inverse_above(s, _cutoff(s, relative))), adjoint(u))


def _of_hermitian(a, relative):
    v, w = eigh(ew.mul(ew.add(a, adjoint(a)), ax.broadcast_in_dim(scalar_of(a.aval, 0.5), a.shape)))
    size = ew.abs(w)
    inverse = ew.mul(ew.sign(w), _inverse_above(size, _cutoff(size, relative)))
    return product(_scaled(v, inverse), adjoint(v))


def _inverse_above(s, cutoff):
    return inverse_or_zero(ew.select(ew.gt(s, cutoff), s, zeros(s.aval)))


def _scaled(x, columns):
    """The columns of `x` times these real factors."""
    return ew.mul(x, along_columns(widened(columns, x.dtype), x.shape))


_pseudo_inverse = custom_jvp(_pseudo_inverse_value, nondiff_argnums=(2,))


# p' = -p a' p + p p^H a'^H (1 - a p) + (1 - p a) a'^H p^H p
@_pseudo_inverse.defjvp
def _pseudo_inverse_jvp(hermitian, primals, tangents):
    (a, relative), (t, _) = primals, tangents
    if hermitian:
        a, t = (ew.mul(ew.add(x, adjoint(x)), ax.broadcast_in_dim(scalar_of(x.aval, 0.5), x.shape)) for x in (a, t))
    p = _pseudo_inverse(a, relative, hermitian)
    th, ph = adjoint(t), adjoint(p)
    left, right = product(product(p, ph), th), product(th, product(ph, p))
    out = ew.sub(ew.add(left, right), product(product(p, t), p))
    return p, ew.sub(out, ew.add(product(left, product(a, p)), product(product(p, a), right)))


def matrix_rank(M, rtol=None, *, hermitian: bool = False, tol=None) -> Array:
    """How many singular values of matrices [.., m, n] are greater than `rtol` (or `tol`, another name for it).

    By default that is max(m, n) eps times the largest. Of a number or vector: whether it is not 0. An integer.
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    return _matrix_rank(M, tol if rtol is None else rtol, bool(hermitian))


@fused(static=("hermitian",))
def _matrix_rank(m, limit, hermitian):
    m = as_array(to_inexact("matrix_rank", operand("matrix_rank", m)))
    if m.ndim < 2:
        return ew.convert(ax.reduce_or(ew.ne(m, 0), tuple(range(m.ndim))), dtypes.int32)
    if hermitian:
        check_square("matrix_rank", m)
    s = ew.abs(eigvalsh(wide(m))) if hermitian else svdvals(wide(m))
    if not s.size:
        return zeros(shaped(s.shape[:-1], dtypes.default_int()))
    cutoff = _cutoff(s, max(m.shape[-2:]) * _eps(m.dtype)) if limit is None else _for_each(limit, s)
    return reductions.sum(ew.gt(s, cutoff), axis=-1)


def lstsq(a, b, rcond=None, *, numpy_resid: bool = False) -> tuple[Array, Array, Array, Array]:
    """(x, residuals, rank, s): the x of least norm that makes |a x - b| least, for `a` [m, n] and `b` [m] or [m, k].

    The residuals are the squared norms of the columns of a x - b; s has the singular values of `a`, of which those below
    `rcond` (max(m, n) eps by default) times the largest count as zero. With `numpy_resid` the residuals are empty where NumPy's
    are: for a rank less than n, or m <= n; the rank must then be known.
    """
    a, b = as_array(operand("lstsq", a)), as_array(operand("lstsq", b))
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ValueError(f"lstsq expects a [m, n] and b [m] or [m, k], got {a.aval} and {b.aval}")
    x, residuals, rank, s = _lstsq(a, b, rcond)
    if numpy_resid and (a.shape[0] <= a.shape[1] or int(rank) < a.shape[1]):
        residuals = zeros(residuals.aval.update(shape=(0,)))
    return x, residuals, rank, s


@fused
def _lstsq(a, b, rcond):
    a, b = pair_of("lstsq", a, b)
    x, right = wide(a), wide(b if b.ndim == 2 else ax.expand_dims(b, (1,)))
    real = dtypes.real_dtype(x.dtype)
    if not a.size:
        s, rank = zeros(shaped((0,), real)), zeros(shaped((), dtypes.default_int()))
        solution = zeros(x.aval.update(shape=(a.shape[1], right.shape[1])))
    else:
        relative = _relative(rcond, a)
        s = svd(x, full_matrices=False)[1]  # that of the pseudo-inverse: one operation for XLA
        rank = reductions.sum(ew.and_(ew.gt(s, 0), ew.ge(s, _cutoff(s, relative))), axis=-1)
        solution = product(_pseudo_inverse(x, relative, False), right)
    missed = ew.sub(right, product(x, solution))
    residuals = square(euclidean(missed, (0,)))
    solution = solution if b.ndim == 2 else ax.squeeze(solution, (1,))
    return narrow(solution, a.dtype), narrow(residuals, a.dtype), rank, narrow(s, a.dtype)


def _relative(rcond, a):
    """The relative cut-off as an array: the default for None, eps for negative numbers."""
    real = dtypes.real_dtype(wide(a).dtype)
    eps = as_array(real.type(_eps(a.dtype)))
    if rcond is None:
        return ew.mul(eps, real.type(max(a.shape)))
    rcond = ew.convert(as_array(to_inexact("lstsq", rcond)), real)
    return ew.select(ew.lt(rcond, real.type(0)), eps, rcond)
