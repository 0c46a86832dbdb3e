"""The geometric distribution: (1 - p)^(k - 1) p for k >= 1; Johnson, Kemp and Kotz, chapter 5."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.scipy.special.information import times_log1p
from funcml.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]

_functions = discrete(
    __name__,
    "geometric",
    ("p",),
    support=lambda p: (1, math.inf),
    valid=lambda p: (p > 0) & (p <= 1),
    logpmf=lambda k, p: times_log1p(k - 1, -p) + jnp.log(p),
)
logpmf = _functions["logpmf"]
pmf = _functions["pmf"]
