"""The chi-squared distribution, the gamma distribution of z / 2 with shape df / 2, z = (x - loc) / scale. DLMF 8.24(ii)."""

from __future__ import annotations

import math

from funcml.primitives import incomplete
from funcml.scipy.stats.families import continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_functions = continuous(
    __name__,
    "chi-squared",
    ("df",),
    support=lambda df: (0, math.inf),
    valid=lambda df: df > 0,
    logpdf=lambda z, df: incomplete.log_gamma_density(df / 2, z / 2) - math.log(2),
    cdf=lambda z, df: incomplete.igamma(df / 2, z / 2),
    logcdf=lambda z, df: incomplete.log_igamma(df / 2, z / 2, upper=False),
    sf=lambda z, df: incomplete.igammac(df / 2, z / 2),
    logsf=lambda z, df: incomplete.log_igamma(df / 2, z / 2, upper=True),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
sf = _functions["sf"]
