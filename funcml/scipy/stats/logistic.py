"""The logistic distribution: distribution function 1 / (1 + exp(-z)), z = (x - loc) / scale; Johnson, Kotz and Balakrishnan,
chapter 23.
"""

from __future__ import annotations

from funcml import numpy as jnp
from funcml.primitives import transcendental as tr
from funcml.scipy.special.information import log_odds
from funcml.scipy.stats.families import continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _log_density(z):
    size = jnp.abs(z)
    return -size - 2 * jnp.log1p(jnp.exp(-size))


_functions = continuous(
    __name__,
    "logistic",
    names={"ppf": "x", "isf": "x"},
    logpdf=_log_density,
    cdf=tr.logistic,
    logcdf=lambda z: -jnp.logaddexp(0.0, -z),
    sf=lambda z: tr.logistic(-z),
    logsf=lambda z: -jnp.logaddexp(0.0, z),
    ppf=log_odds,
    isf=lambda q: -log_odds(q),
)
cdf = _functions["cdf"]
isf = _functions["isf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
ppf = _functions["ppf"]
sf = _functions["sf"]
