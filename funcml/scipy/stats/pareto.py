"""The Pareto distribution: density b z^-(b + 1) for z = (x - loc) / scale >= 1; Johnson, Kotz and Balakrishnan, chapter 20."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.scipy.stats.families import continuous, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_functions = continuous(
    __name__,
    "Pareto",
    ("b",),
    support=lambda b: (1, math.inf),
    valid=lambda b: b > 0,
    inside=lambda b: 2.0,
    logpdf=lambda z, b: jnp.log(b) - (b + 1) * jnp.log(z),
    cdf=lambda z, b: -jnp.expm1(-b * jnp.log(z)),
    logcdf=lambda z, b: log1mexp(b * jnp.log(z)),
    logsf=lambda z, b: -b * jnp.log(z),
    ppf=lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
ppf = _functions["ppf"]
sf = _functions["sf"]
