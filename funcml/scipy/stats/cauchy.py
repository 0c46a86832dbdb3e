"""The Cauchy distribution: density 1 / (pi (1 + z^2)), z = (x - loc) / scale; Johnson, Kotz and Balakrishnan, chapter 16."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.scipy.stats.families import continuous, log1p_square

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _log_density(z):
    return -math.log(math.pi) - log1p_square(z)


def _log_cdf(z):
    low = z < 0
    far = jnp.arctan2(1.0, jnp.where(low, -z, 1.0)) / math.pi
    near = jnp.arctan2(1.0, jnp.where(low, 1.0, z)) / math.pi
    return jnp.where(low, jnp.log(far), jnp.log1p(-near))


def _quantile(q):
    """tan(pi (q - 1 / 2)), by the cotangent of the smaller tail."""
    middle = jnp.abs(q - 0.5) < 0.25
    tail = jnp.where(middle, 0.25, jnp.minimum(q, 1 - q))
    outer = jnp.where(q < 0.5, -1.0, 1.0) / jnp.tan(math.pi * tail)
    return jnp.where(middle, jnp.tan(math.pi * (jnp.where(middle, q, 0.5) - 0.5)), outer)


_functions = continuous(
    __name__,
    "Cauchy",
    logpdf=_log_density,
    cdf=lambda z: jnp.arctan2(1.0, -z) / math.pi,
    logcdf=_log_cdf,
    sf=lambda z: jnp.arctan2(1.0, z) / math.pi,
    logsf=lambda z: _log_cdf(-z),
    ppf=_quantile,
    isf=lambda q: -_quantile(q),
)
cdf = _functions["cdf"]
isf = _functions["isf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
ppf = _functions["ppf"]
sf = _functions["sf"]
