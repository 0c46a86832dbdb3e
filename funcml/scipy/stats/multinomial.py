"""The multinomial distribution: n! / (x_1! ... x_k!) p_1^x_1 ... p_k^x_k for counts that sum to n; Johnson, Kotz and
Balakrishnan, Discrete Multivariate Distributions, chapter 35.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml import numpy as jnp
from funcml.lowering.execute import fused
from funcml.numpy.promotion import promote_dtypes
from funcml.primitives import incomplete

__all__ = ["logpmf", "pmf"]


@fused
def logpmf(x, n, p):
    """The logarithm of the probability of the counts x[..., k] in n trials with probabilities p[..., k]; -inf where x does not
    sum to n or has a negative element.

    >>> import numpy as np
    >>> logpmf(np.float32([1, 1]), 2, np.float32([0.5, 0.5]))
    Array(-0.6931472, dtype=float32)
    """
    x, p = jnp.asarray(x), jnp.asarray(p)
    if dtypes.is_integer(x.dtype) and dtypes.is_inexact(p.dtype):  # counts take the dtype of p, under strict promotion too
        x = x.astype(p.dtype)
    x, p = (jnp.asarray(v) for v in promote_dtypes("multinomial.logpmf", x, p, inexact=True))
    n = jnp.asarray(n).astype(x.dtype)
    good = jnp.all((x >= 0) & (x == jnp.floor(x)), axis=-1) & (jnp.sum(x, axis=-1) == n)
    n = jnp.where(good, n, 0.0)
    counts = jnp.where(good[..., None], x, 0.0)
    # of Poisson variables with means n p_i, given that they sum to n
    terms = jnp.sum(incomplete.log_poisson(*jnp.broadcast_arrays(counts, n[..., None] * p)), axis=-1)
    return jnp.where(good, terms - incomplete.log_poisson(n, n), -math.inf)


@fused
def pmf(x, n, p):
    """The probability of the counts x[..., k] in n trials with probabilities p[..., k].

    >>> import numpy as np
    >>> pmf(np.float32([1, 1]), 2, np.float32([0.5, 0.5]))
    Array(0.5, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))
