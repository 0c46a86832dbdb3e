"""The normal distribution: density exp(-z^2 / 2) / sqrt(2 pi), z = (x - loc) / scale. DLMF 7.18."""

from __future__ import annotations

import math

from funcml.scipy.special.error_functions import log_normal_cdf, normal_cdf, normal_quantile
from funcml.scipy.stats.families import continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_functions = continuous(
    __name__,
    "normal",
    logpdf=lambda z: -0.5 * z * z - 0.5 * math.log(2 * math.pi),
    cdf=normal_cdf,
    logcdf=log_normal_cdf,
    sf=lambda z: normal_cdf(-z),
    logsf=lambda z: log_normal_cdf(-z),
    ppf=normal_quantile,
    isf=lambda q: -normal_quantile(q),
)
cdf = _functions["cdf"]
isf = _functions["isf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
ppf = _functions["ppf"]
sf = _functions["sf"]
