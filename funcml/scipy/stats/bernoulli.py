"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

from funcml import numpy as jnp
from funcml.scipy.special.information import times_log, times_log1p
from funcml.scipy.stats.families import discrete

__all__ = ["cdf", "logpmf", "pmf", "ppf"]

_functions = discrete(
    __name__,
    "Bernoulli",
    ("p",),
    support=lambda p: (0, 1),
    valid=lambda p: (p >= 0) & (p <= 1),
    located=("pmf", "logpmf"),
    logpmf=lambda k, p: times_log(k, p) + times_log1p(1 - k, -p),
    cdf=lambda k, p: jnp.where(k < 1, 1 - p, 1.0),
    ppf=lambda q, p: jnp.where(q <= 1 - p, 0.0, 1.0),
)
cdf = _functions["cdf"]
logpmf = _functions["logpmf"]
pmf = _functions["pmf"]
ppf = _functions["ppf"]
