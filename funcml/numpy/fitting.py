"""Polynomials by linear algebra: their roots, and those that fit points best."""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import concrete, index_of
from funcml.numpy.linalg.factors import eigvals
from funcml.numpy.linalg.systems import inv, lstsq
from funcml.numpy.polynomials import from_roots, polyder, polyval, vander
from funcml.numpy.promotion import as_array, literal, operand, promote_dtypes, settle, spread, to_inexact
from funcml.numpy.rows import fill
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import powers, shaping, sorting
from funcml.primitives import reductions as red
from funcml.primitives.matrices import adjoint, product
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["poly", "polyfit", "roots"]


def poly(seq_of_zeros) -> Array:
    """The coefficients of the polynomial with these roots, or the characteristic one of a square matrix, that of the highest
    power being 1.

    >>> poly(np.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float64)
    """
    zeros = as_array(to_inexact("poly", operand("poly", seq_of_zeros)))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        return from_roots(eigvals(zeros))
    if zeros.ndim > 1:
        raise ValueError(f"poly expects a vector of roots or a square matrix, got {zeros.aval}")
    return from_roots(zeros)


# ---- roots -------------------------------------------------------------------------------------------------------


# The eigenvalues of the matrix with -p_1 / p_0, .., -p_n / p_0 in its first row and ones below its diagonal.
@custom_jvp
def _roots(p):
    n = p.shape[0] - 1
    first = ew.div(shaping.slice_in_dim(p, 1, n + 1), spread(shaping.slice_in_dim(p, 0, 1), (n,)))
    below = np.eye(n - 1, n, dtype=p.dtype)
    return eigvals(shaping.concatenate([ax.reshape(ew.neg(first), (1, n)), as_array(below)], 0))


# 0 = P(r)  =>  r' = -P'(r) / (dP/dr), where P' has the tangents of the coefficients
@_roots.defjvp
def _roots_jvp(primals, tangents):
    (p,), (t,) = primals, tangents
    r = _roots(p)
    t, p = ew.convert(t, r.dtype), ew.convert(p, r.dtype)
    return r, ew.neg(ew.div(polyval(t, r), polyval(polyder(p), r)))


def roots(p, *, strip_zeros: bool = True) -> Array:
    """The complex roots of the polynomial with the coefficients `p`.

    Zeros in front of `p` are left out, for which its values must be known; with `strip_zeros=False` they need not be, and for
    each such zero one root is nan. The derivative at a multiple root is infinite.

    >>> roots(np.array([1.0, -3.0, 2.0])).real.round(6)
    Array([2., 1.], dtype=float64)
    """
    p = as_array(to_inexact("roots", operand("roots", p)))
    if p.ndim > 1:
        raise ValueError(f"roots expects a vector of coefficients, got {p.aval}")
    p = ax.reshape(p, (p.size,))
    if p.size < 2:
        return ax.broadcast_in_dim(literal(0, dtypes.complex_dtype(p.dtype)), (0,))
    if not strip_zeros:
        return _roots_beside_nan(p)
    known = np.flatnonzero(concrete("roots", "p (without strip_zeros=False)", p))
    first, last = (int(known[0]), int(known[-1])) if known.size else (p.size - 1, p.size - 1)
    zeros = p.size - 1 - last
    return _roots_and_zeros(shaping.slice_in_dim(p, first, last + 1), zeros)


@fused(static=("zeros",))
def _roots_and_zeros(p, zeros):
    none = ax.broadcast_in_dim(literal(0, dtypes.complex_dtype(p.dtype)), (zeros,))
    return none if p.size < 2 else shaping.concatenate([_roots(p), none], 0)


# With the zeros in front moved to the end, roots at 0 stand for them: of all roots, as many of the least size.
@fused
def _roots_beside_nan(p):
    n = p.size
    is_zero = ew.eq(p, 0)
    leading = ax.reduce_sum(red.cumprod(ew.convert(is_zero, dtypes.int32), 0), (0,))
    place = ew.sub(shaping.iota(dtypes.int32, (n,)), spread(leading, (n,)))
    _, p = sorting.sort((ew.select(ew.lt(place, 0), ew.add(place, n), place), p), 0)
    all_zero = ew.eq(spread(leading, (n,)), n)
    p = ew.select(all_zero, fill(p, 1), p)
    found = _roots(p)
    size, place = ew.abs(found), shaping.iota(dtypes.int32, (n - 1,))
    _, by_size = sorting.sort((size, place), 0)
    _, rank = sorting.sort((by_size, place), 0)
    gone = ew.lt(rank, spread(leading, (n - 1,)))
    _, found = sorting.sort((ew.convert(gone, dtypes.int32), found), 0)
    kept = ew.lt(place, ew.sub(n - 1, spread(leading, (n - 1,))))
    return ew.select(kept, found, fill(found, complex(math.nan, math.nan)))


# ---- fits --------------------------------------------------------------------------------------------------------


def polyfit(x, y, deg: int, rcond: float | None = None, full: bool = False, w=None, cov: bool | str = False):
    """The coefficients of the polynomial of degree `deg` that fits the points (x, y) best: sum (w (p(x) - y))^2 is least.

    `y` is a vector, or has a column for each of several fits, as then has the result. With `full`, (coefficients, residuals,
    rank, singular values, rcond) of the scaled least squares; with `cov`, also the covariance of the coefficients, which for
    'unscaled' takes 1 / w as the errors of the points.

    >>> polyfit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1).round(6)
    Array([2., 1.], dtype=float64)
    """
    deg = index_of("polyfit", "deg", deg)
    if deg < 0:
        raise ValueError(f"polyfit: deg must not be negative, got {deg}")
    x, y = [as_array(v) for v in promote_dtypes("polyfit", *settle("polyfit", x, y), inexact=True)]
    if x.ndim != 1 or not x.size:
        raise TypeError(f"polyfit expects a vector of places, not empty, got {x.aval}")
    if y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise TypeError(f"polyfit expects as many values as the places {x.aval}, a vector or columns, got {y.aval}")
    if cov and cov != "unscaled" and not full and x.size <= deg + 1:
        raise ValueError(f"polyfit: for a scaled covariance there must be more than {deg + 1} points, got {x.size}")
    weights = None if w is None else as_array(operand("polyfit", w))
    if weights is not None and weights.shape != x.shape:
        raise TypeError(f"polyfit expects one weight for each place of {x.aval}, got {weights.aval}")
    rcond = x.size * float(dtypes.finfo(x.dtype).eps) if rcond is None else float(rcond)
    kind = cov if isinstance(cov, str) else bool(cov)
    fit, residuals, rank, singular, covariance = _best_fit(x, y, weights, deg, rcond, kind)
    if full:
        return fit, residuals, rank, singular, as_array(literal(rcond, dtypes.real_dtype(x.dtype)))
    return (fit, covariance) if cov else fit


# Columns of the Vandermonde matrix are scaled to length 1.
@fused(static=("deg", "rcond", "cov"))
def _best_fit(x, y, weights, deg, rcond, cov):
    matrix, n = vander(x, deg + 1), x.shape[0]
    if weights is not None:
        weights = ew.convert(weights, x.dtype)
        matrix = ew.mul(matrix, ax.broadcast_in_dim(weights, matrix.shape, (0,)))
        y = ew.mul(y, ax.broadcast_in_dim(weights, y.shape, (0,)))
    size = ew.abs(matrix) if dtypes.is_complex(matrix.dtype) else matrix
    scale = ew.convert(powers.sqrt(ax.reduce_sum(powers.square(size), (0,))), matrix.dtype)
    matrix = ew.div(matrix, spread(scale, matrix.shape))
    fit, residuals, rank, singular = lstsq(matrix, y, rcond)
    fit = ew.div(fit, ax.broadcast_in_dim(scale, fit.shape, (0,)))
    covariance = None
    if cov:
        base = inv(product(adjoint(matrix), matrix))
        for axis in (0, 1):
            base = ew.div(base, ax.broadcast_in_dim(scale, base.shape, (axis,)))
        errors = ax.reshape(residuals, (residuals.size,))
        factor = ew.div(errors, literal(max(n - deg - 1, 1), residuals.dtype))
        factor = ew.convert(fill(shaping.slice_in_dim(factor, 0, 1), 1) if cov == "unscaled" else factor, base.dtype)
        shape = (*base.shape, factor.size)
        covariance = ew.mul(ax.broadcast_in_dim(base, shape, (0, 1)), ax.broadcast_in_dim(factor, shape, (2,)))
        covariance = ax.reshape(covariance, base.shape) if y.ndim == 1 else covariance
    return fit, residuals, rank, singular, covariance
