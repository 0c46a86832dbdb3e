"""The gamma distribution: density z^(a - 1) exp(-z) / gamma(a) for z = (x - loc) / scale >= 0. DLMF 8.2.4."""

from __future__ import annotations

import math

from funcml.primitives import incomplete
from funcml.scipy.stats.families import continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_functions = continuous(
    __name__,
    "gamma",
    ("a",),
    support=lambda a: (0, math.inf),
    valid=lambda a: a > 0,
    logpdf=lambda z, a: incomplete.log_gamma_density(a, z),
    cdf=lambda z, a: incomplete.igamma(a, z),
    logcdf=lambda z, a: incomplete.log_igamma(a, z, upper=False),
    sf=lambda z, a: incomplete.igammac(a, z),
    logsf=lambda z, a: incomplete.log_igamma(a, z, upper=True),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
sf = _functions["sf"]
