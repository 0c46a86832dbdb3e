"""The normal distribution of vectors: density exp(-d' S^-1 d / 2) / sqrt((2 pi)^k det S), d = x - mean, S the covariance; Kotz,
Balakrishnan and Johnson, Continuous Multivariate Distributions, chapter 45.
"""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.lax import linalg
from funcml.lowering.execute import fused
from funcml.numpy.promotion import broadcast_shapes, promote_dtypes

__all__ = ["logpdf", "pdf"]


def logpdf(x, mean, cov, allow_singular=None):
    """The logarithm of the density at x[..., k] for mean[..., k] and cov[..., k, k], or a scalar cov; batches broadcast.

    Raises NotImplementedError for `allow_singular`, and ValueError for shapes that do not fit. nan where cov is not positive.

    >>> import numpy as np
    >>> logpdf(np.float32([0, 0]), np.float32([0, 0]), np.eye(2, dtype="float32"))
    Array(-1.837877, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError("multivariate_normal.logpdf: a singular cov has no density; allow_singular must be None")
    return _logpdf(x, mean, cov)


@fused
def _logpdf(x, mean, cov):
    values = promote_dtypes("multivariate_normal.logpdf", x, mean, cov, inexact=True)
    x, mean, cov = (jnp.asarray(v) for v in values)
    if not mean.shape:
        if cov.size != 1:
            raise ValueError(f"multivariate_normal.logpdf: a scalar mean needs a scalar cov, got {cov.aval}")
        d, variance = x - mean, cov.reshape(())
        return -0.5 * d * d / variance - 0.5 * (math.log(2 * math.pi) + jnp.log(variance))
    n = mean.shape[-1]
    if not cov.shape:
        cov = cov * jnp.eye(n, dtype=cov.dtype)
    if cov.ndim < 2 or cov.shape[-2:] != (n, n) or (x.shape and x.shape[-1] not in (1, n)):
        raise ValueError(
            f"multivariate_normal.logpdf expects x[..., {n}] and cov[..., {n}, {n}] for mean {mean.aval}, got {x.aval} and "
            f"{cov.aval}"
        )
    d = x - mean
    batch = broadcast_shapes(d.shape[:-1], cov.shape[:-2])
    factor = jnp.broadcast_to(linalg.cholesky(cov), (*batch, n, n))
    columns = jnp.broadcast_to(d, (*batch, n))[..., None]
    y = linalg.triangular_solve(factor, columns, left_side=True, lower=True)[..., 0]
    roots = jnp.diagonal(factor, axis1=-2, axis2=-1)
    return -0.5 * jnp.sum(y * y, axis=-1) - 0.5 * n * math.log(2 * math.pi) - jnp.sum(jnp.log(roots), axis=-1)


def pdf(x, mean, cov):
    """The density at x[..., k] for mean[..., k] and cov[..., k, k], or a scalar cov; see `logpdf`.

    >>> import numpy as np
    >>> pdf(np.float32([0, 0]), np.float32([0, 0]), np.eye(2, dtype="float32"))
    Array(0.15915495, dtype=float32)
    """
    return jnp.exp(logpdf(x, mean, cov))
