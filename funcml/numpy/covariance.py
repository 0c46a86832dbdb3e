"""Covariances and correlations of variables, from samples of them."""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.diagonals import diagonal
from funcml.numpy.linear import matmul
from funcml.numpy.promotion import as_array, literal, operand, promote_dtypes, settle
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import powers, shaping

__all__ = ["corrcoef", "cov"]


def cov(m, y=None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights=None, aweights=None,
        dtype=None) -> Array:
    """The covariances of variables, which are the rows of `m` and `y` (the columns, unless `rowvar`), samples side by side.

    The sum of products is divided by n - 1, by n with `bias`, or by n - `ddof`. `fweights` say how often each sample counts,
    `aweights` how much. Without axes if there is one variable.

    >>> cov(np.array([[0.0, 2.0], [3.0, 1.0]]))
    Array([[ 2., -2.],
           [-2.,  2.]], dtype=float64)
    """
    dtype = _dtype("cov", dtype)
    arrays = settle("cov", m) if y is None else settle("cov", m, y)
    weights = [None if w is None else _weights(w, what) for w, what in ((fweights, "fweights"), (aweights, "aweights"))]
    ddof = (0 if bias else 1) if ddof is None else ddof
    return _cov(arrays, *weights, bool(rowvar), ddof, dtype)


def _dtype(name: str, dtype):
    dtype = None if dtype is None else dtypes.canonical(dtype)
    if dtype is not None and not dtypes.is_inexact(dtype):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex, got {dtype}")
    return dtype


def _weights(weights, what: str):
    weights = operand("cov", weights)
    found = dtypes.dtype_of(weights)[0]
    if np.ndim(weights) != 1:
        raise RuntimeError(f"cov: {what} must be a vector, got an array of {np.ndim(weights)} dimensions")
    if what == "fweights" and not dtypes.is_integer(found):
        raise TypeError(f"cov: fweights must be integers, got {found}")
    return weights


def _variables(x, rowvar: bool) -> Array:
    """Variables as rows, samples as columns."""
    x = as_array(x)
    if x.ndim > 2:
        raise ValueError(f"cov: m has more than 2 dimensions, or y has: {x.aval}")
    if x.ndim < 2:
        return ax.reshape(x, (1, x.size))
    return x if rowvar else ax.transpose(x, (1, 0))


# c_ij = sum_k w_k (x_ik - m_i) conj(x_jk - m_j) / f, m the weighted means; f = n - ddof, or with weights
# sum w - ddof (sum w a) / (sum w), a the importance of each sample
@fused(static=("rowvar", "ddof", "dtype"))
def _cov(arrays, fweights, aweights, rowvar, ddof, dtype):
    arrays = promote_dtypes("cov", *arrays, inexact=True)
    rows = [_variables(x, rowvar) for x in arrays]
    if rows[0].shape[0] == 0:
        return ax.broadcast_in_dim(rows[0].dtype.type(0), (0, 0))
    if len({x.shape[1] for x in rows}) > 1:
        raise ValueError(f"cov: m and y must have as many samples, got {rows[0].shape[1]} and {rows[1].shape[1]}")
    x = shaping.concatenate(rows, 0)
    x = x if dtype is None else ew.convert(x, dtype)
    real = dtypes.real_dtype(x.dtype)
    n, shape = x.shape[1], x.shape
    weights, factor = _weights_and_factor(n, fweights, aweights, ddof, real)
    if weights is None:
        weighted, total = x, as_array(literal(n, real))
    else:
        weighted = ew.mul(x, ax.broadcast_in_dim(ew.convert(weights, x.dtype), shape, (1,)))
        total = ax.reduce_sum(weights, (0,))
    mean = ew.div(ax.reduce_sum(weighted, (1,)), ax.broadcast_in_dim(ew.convert(total, x.dtype), shape[:1]))
    centered = ew.sub(x, ax.broadcast_in_dim(mean, shape, (0,)))
    other = ew.conj(centered) if dtypes.is_complex(x.dtype) else centered
    if weights is not None:
        other = ew.mul(other, ax.broadcast_in_dim(ew.convert(weights, x.dtype), shape, (1,)))
    out = matmul(centered, ax.transpose(other, (1, 0)))
    factor = ew.convert(ew.max(factor, 0), x.dtype)
    out = ew.div(out, ax.broadcast_in_dim(factor, out.shape))
    return ax.reshape(out, ()) if shape[0] == 1 else out


def _weights_and_factor(n: int, fweights, aweights, ddof, dtype):
    """The weight of each sample, or None for 1, and what the sum of products is divided by."""
    given = [ew.abs(ew.convert(as_array(w), dtype)) for w in (fweights, aweights) if w is not None]
    for w in given:
        if w.shape != (n,):
            raise RuntimeError(f"cov: incompatible numbers of samples and weights, {n} and {w.shape[0]}")
    if not given:
        return None, as_array(literal(n - ddof, dtype))
    weights = given[0] if len(given) == 1 else ew.mul(*given)
    total = ax.reduce_sum(weights, (0,))
    if aweights is None or ddof == 0:
        return weights, ew.sub(total, literal(ddof, dtype))
    importance = ax.reduce_sum(ew.mul(weights, given[-1]), (0,))
    return weights, ew.sub(total, ew.div(ew.mul(importance, literal(ddof, dtype)), total))


def corrcoef(x, y=None, rowvar: bool = True, dtype=None) -> Array:
    """The correlations of variables, cov(a, b) / sqrt(cov(a, a) cov(b, b)); arguments as for `cov`.

    >>> corrcoef(np.array([[0.0, 2.0], [3.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float64)
    """
    dtype = _dtype("corrcoef", dtype)
    return _corrcoef(settle("corrcoef", x) if y is None else settle("corrcoef", x, y), bool(rowvar), dtype)


@fused(static=("rowvar", "dtype"))
def _corrcoef(arrays, rowvar, dtype):
    c = _cov(arrays, None, None, rowvar, 1, dtype)
    if c.ndim == 0:
        return ew.div(c, c)
    variance = diagonal(c)
    deviation = powers.sqrt(ew.real(variance) if dtypes.is_complex(c.dtype) else variance)
    deviation = ew.convert(deviation, c.dtype)
    c = ew.div(c, ax.broadcast_in_dim(deviation, c.shape, (0,)))
    c = ew.div(c, ax.broadcast_in_dim(deviation, c.shape, (1,)))
    if dtypes.is_complex(c.dtype):
        return ew.complex(ew.clamp(-1.0, ew.real(c), 1.0), ew.clamp(-1.0, ew.imag(c), 1.0))
    return ew.clamp(-1.0, c, 1.0)
