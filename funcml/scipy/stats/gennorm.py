"""The generalised normal distribution: density beta / (2 gamma(1 / beta)) exp(-|x|^beta); Nadarajah (2005)."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.primitives import incomplete, special
from funcml.scipy.stats.families import continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _power(x, beta):
    """|x|^beta, whose derivatives by beta at x = 0 are 0."""
    zero = x == 0
    return jnp.where(zero, 0.0, jnp.where(zero, 1.0, jnp.abs(x)) ** beta)


def _cdf(x, beta):
    tail = 0.5 * incomplete.igammac(1 / beta, _power(x, beta))
    return jnp.where(x < 0, tail, 1 - tail)


def _log_cdf(x, beta):
    log_tail = incomplete.log_igamma(1 / beta, _power(x, beta), upper=True) - math.log(2)
    return jnp.where(x < 0, log_tail, jnp.log1p(-jnp.exp(log_tail)))


_functions = continuous(
    __name__,
    "generalised normal",
    ("beta",),
    valid=lambda beta: beta > 0,
    located=False,
    logpdf=lambda x, beta: -math.log(2) - special.lgamma(1 + 1 / beta) - _power(x, beta),
    cdf=_cdf,
    logcdf=_log_cdf,
    sf=lambda x, beta: _cdf(-x, beta),
    logsf=lambda x, beta: _log_cdf(-x, beta),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
sf = _functions["sf"]
