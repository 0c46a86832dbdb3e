"""The Poisson distribution: mu^k exp(-mu) / k! for k >= 0; by Loader (2000), so that large mu lose no digits. DLMF 8.4.10."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.primitives import incomplete
from funcml.scipy.elementwise import elementwise
from funcml.scipy.stats.families import discrete

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@elementwise(name="poisson.entropy")
def entropy(mu, loc=0):
    """The entropy of the Poisson distribution, in nats; `loc` does not count.

    The sum of -p log p up to mu = 100, an asymptotic expansion beyond: Evans and Boersma, SIAM Review 30 (1988).

    >>> entropy(3.0)
    Array(1.9314694, dtype=float32, weak_type=True)
    """
    large = mu > 100
    m = jnp.where(large | ~(mu > 0), 1.0, mu)
    k = jnp.arange(220, dtype=mu.dtype)
    k, spread = (jnp.broadcast_to(v, (*mu.shape, 220)) for v in (k, m[..., None]))
    log = incomplete.log_poisson(k, spread)
    near = -jnp.sum(jnp.exp(log) * log, axis=-1)
    inverse = 1 / jnp.where(large, mu, 100.0)
    series = 1 / 12 + inverse * (1 / 24 + inverse * (19 / 360 + inverse * (9 / 80 + inverse * 863 / 2520)))
    far = 0.5 * jnp.log(2 * math.pi * math.e * jnp.where(large, mu, 100.0)) - inverse * series
    value = jnp.where(large, far, near)
    return jnp.where(mu > 0, value, jnp.where(mu == 0, 0.0, math.nan))


_functions = discrete(
    __name__,
    "Poisson",
    ("mu",),
    valid=lambda mu: mu >= 0,
    logpmf=incomplete.log_poisson,
    cdf=lambda k, mu: incomplete.igammac(k + 1, mu),
)
cdf = _functions["cdf"]
logpmf = _functions["logpmf"]
pmf = _functions["pmf"]
