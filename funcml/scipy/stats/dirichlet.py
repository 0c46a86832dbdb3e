"""Dirichlet's distribution on the simplex: density gamma(sum of a_i) times the product of x_i^(a_i - 1) / gamma(a_i); Kotz,
Balakrishnan and Johnson, Continuous Multivariate Distributions, chapter 49.
"""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.lowering.execute import fused
from funcml.numpy.promotion import promote_dtypes
from funcml.primitives import special
from funcml.scipy.special.information import times_log

__all__ = ["logpdf", "pdf"]

_TOLERANCE = 1e-6  # for what a sum may differ from 1


@fused
def logpdf(x, alpha):
    """The logarithm of the density at x[k, ...] for alpha[k]; -inf where x is not in the simplex.

    The last element of x may be left out: it is what the others lack to 1. Raises ValueError for other shapes.

    >>> import numpy as np
    >>> logpdf(np.float32([0.25, 0.75]), np.float32([1, 2]))
    Array(0.4054651, dtype=float32)
    """
    x, alpha = (jnp.asarray(v) for v in promote_dtypes("dirichlet.logpdf", x, alpha, inexact=True))
    if alpha.ndim != 1:
        raise ValueError(f"dirichlet.logpdf expects a vector as alpha, got {alpha.aval}")
    if x.ndim == 0 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            f"dirichlet.logpdf expects x with as many elements along its first axis as alpha {alpha.aval} has, or one less, "
            f"got {x.aval}"
        )
    if x.shape[0] < alpha.shape[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    inside = jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < _TOLERANCE)
    norm = jnp.sum(special.lgamma(alpha)) - special.lgamma(jnp.sum(alpha))
    powers = jnp.reshape(alpha - 1, (*alpha.shape, *[1] * (x.ndim - 1)))
    powers, x = jnp.broadcast_arrays(powers, jnp.where(inside, x, 0.5))
    return jnp.where(inside, jnp.sum(times_log(powers, x), axis=0) - norm, -math.inf)


@fused
def pdf(x, alpha):
    """The density at x[k, ...] for alpha[k]; 0 where x is not in the simplex.

    >>> import numpy as np
    >>> pdf(np.float32([0.25, 0.75]), np.float32([1, 2]))
    Array(1.5, dtype=float32)
    """
    return jnp.exp(logpdf(x, alpha))
