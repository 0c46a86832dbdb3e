"""The exponential distribution: density exp(-z) for z = (x - loc) / scale >= 0; Johnson, Kotz and Balakrishnan, chapter 19."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.scipy.stats.families import continuous, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_functions = continuous(
    __name__,
    "exponential",
    support=lambda: (0, math.inf),
    logpdf=lambda z: -z,
    cdf=lambda z: -jnp.expm1(-z),
    logcdf=log1mexp,
    logsf=lambda z: -z,
    ppf=lambda q: -jnp.log1p(-q),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
ppf = _functions["ppf"]
sf = _functions["sf"]
