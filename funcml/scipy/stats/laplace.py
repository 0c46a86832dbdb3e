"""The Laplace distribution: density exp(-|z|) / 2, z = (x - loc) / scale; Johnson, Kotz and Balakrishnan, chapter 24."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.scipy.stats.families import continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _cdf(z):
    half = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z < 0, half, 1 - half)


def _log_cdf(z):
    return jnp.where(z < 0, z - math.log(2), jnp.log1p(-0.5 * jnp.exp(-jnp.maximum(z, 0))))


_functions = continuous(
    __name__,
    "Laplace",
    logpdf=lambda z: -jnp.abs(z) - math.log(2),
    cdf=_cdf,
    logcdf=_log_cdf,
    sf=lambda z: _cdf(-z),
    logsf=lambda z: _log_cdf(-z),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
sf = _functions["sf"]
