"""The uniform distribution: density 1 for z = (x - loc) / scale in [0, 1]; Johnson, Kotz and Balakrishnan, chapter 26."""

from __future__ import annotations

from funcml import numpy as jnp
from funcml.scipy.stats.families import continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_functions = continuous(
    __name__,
    "uniform",
    support=lambda: (0, 1),
    logpdf=jnp.zeros_like,
    cdf=lambda z: z,
    sf=lambda z: 1 - z,
    ppf=lambda q: q,
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
ppf = _functions["ppf"]
sf = _functions["sf"]
