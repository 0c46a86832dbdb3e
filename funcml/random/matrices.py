"""Random vectors and matrices that stand on a factorisation.

    multivariate_normal : mean + factor z,  factor factor^T = cov
    orthogonal          : q of a normal matrix z = q r, with columns turned so that the diagonal of r is positive

For the same key they are those of JAX, up to rounding in the factorisation.
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lax.linalg import cholesky, eigh, qr, svd
from funcml.lowering.execute import fused
from funcml.numpy.arguments import dtype_or, index_of, shape_of
from funcml.numpy.diagonals import diagonal
from funcml.numpy.promotion import as_array, promote_dtypes, spread
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, moveaxis
from funcml.primitives.contraction import DotDimensions, dot_general
from funcml.primitives.powers import sqrt
from funcml.random.continuous import normal_of
from funcml.random.keys import one_key
from funcml.random.parameters import float_dtype, inexact_dtype, shape_with

__all__ = ["multivariate_normal", "orthogonal"]

_METHODS = ("cholesky", "eigh", "svd")


def multivariate_normal(key, mean, cov, shape=None, dtype=None, method: str = "cholesky") -> Array:
    """Samples [.., n] of the normal distribution with mean [.., n] and covariance [.., n, n].

    `shape` is that of the samples without the last axis, to which those of `mean` and `cov` broadcast, or which they give.
    `method` is how the covariance is factorised: "cholesky", which needs a positive definite one, "eigh" or "svd". Raises
    ValueError for shapes that do not fit.
    """
    key = one_key("multivariate_normal", key)
    if method not in _METHODS:
        raise ValueError(f"multivariate_normal: expected the method {', '.join(map(repr, _METHODS))}, got {method!r}")
    mean, cov = (as_array(x) for x in promote_dtypes("multivariate_normal", mean, cov, inexact=True))
    dtype = float_dtype("multivariate_normal", dtype_or(dtype, mean.dtype))
    if not mean.ndim or cov.ndim < 2 or cov.shape[-2:] != mean.shape[-1:] * 2:
        raise ValueError(f"multivariate_normal: expected a mean [.., n] and cov [.., n, n], got {mean.aval} and {cov.aval}")
    batch = shape_with("multivariate_normal", shape, np.empty(mean.shape[:-1], bool), np.empty(cov.shape[:-2], bool))
    return _multivariate_normal(key, mean, cov, batch, dtype, method)


@fused(static=("batch", "dtype", "method"))
def _multivariate_normal(key, mean, cov, batch, dtype, method):
    n = mean.shape[-1]
    z = normal_of(key, (*batch, n), dtype)
    factor, z = (as_array(x) for x in promote_dtypes("multivariate_normal", _factor(cov, method), z))
    kept = factor.ndim - 2
    product = _rows_times(factor, z, kept)
    mean, product = promote_dtypes("multivariate_normal", mean, product)
    return ew.add(spread(mean, (*batch, n)), product)


def _factor(cov, method: str):
    if method == "cholesky":
        return cholesky(cov)
    if method == "eigh":
        vectors, values = eigh(cov)
    else:
        vectors, values, _ = svd(cov)
    shape, axis = aval_of(vectors).shape, aval_of(vectors).ndim - 1
    return ew.mul(vectors, broadcast_in_dim(sqrt(values), shape, (*range(axis - 1), axis)))


def _rows_times(factor, z, kept: int):
    """factor [.., n, n] times each vector of z [.., n]; a factor without a batch takes part in one product."""
    n = z.ndim - 1
    if not kept:
        return dot_general(z, factor, DotDimensions(((n,), (1,)), ((), ())))
    factor = spread(factor, (*z.shape, z.shape[-1]))
    batch = tuple(range(n))
    return dot_general(factor, z, DotDimensions(((n + 1,), (n,)), (batch, batch)))


def orthogonal(key, n: int, shape=(), dtype=None, m: int | None = None) -> Array:
    """Uniform samples [*shape, n, n] of the orthogonal matrices, or for complex dtypes of the unitary ones.

    With `m` the matrices are n x m, and the shorter of rows and columns are orthonormal.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups" (2007).
    """
    key, dtype = one_key("orthogonal", key), inexact_dtype("orthogonal", dtype)
    n = index_of("orthogonal", "n", n)
    m = n if m is None else index_of("orthogonal", "m", m)
    if min(n, m) < 0:
        raise ValueError(f"orthogonal: expected lengths that are not negative, got n={n}, m={m}")
    return _orthogonal(key, n, m, shape_of("orthogonal", shape), dtype)


@fused(static=("n", "m", "shape", "dtype"))
def _orthogonal(key, n, m, shape, dtype):
    narrow = dtypes.is_float(dtype) and dtypes.bit_width(dtype) < 32
    z = normal_of(key, (*shape, max(n, m), min(n, m)), dtype)
    q, r = qr(ew.convert(z, dtypes.float32) if narrow else z, full_matrices=False)
    signs = ew.sign(as_array(diagonal(r, 0, -2, -1)))
    axis = aval_of(q).ndim - 1
    q = ew.mul(q, broadcast_in_dim(signs, aval_of(q).shape, (*range(axis - 1), axis)))
    q = ew.convert(q, dtype) if narrow else q
    return moveaxis(q, axis, axis - 1) if n < m else q
