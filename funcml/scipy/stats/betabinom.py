"""The beta-binomial distribution: binomial(n, k) B(k + a, n - k + b) / B(a, b) for 0 <= k <= n;
Johnson, Kemp and Kotz, chapter 6.
"""

from __future__ import annotations

from funcml import numpy as jnp
from funcml.scipy.special.gamma_functions import log_beta
from funcml.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]

_functions = discrete(
    __name__,
    "beta-binomial",
    ("n", "a", "b"),
    support=lambda n, a, b: (0, n),
    valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0),
    wide=True,
    logpmf=lambda k, n, a, b: (
        log_beta(k + a, n - k + b) - log_beta(a, b) - log_beta(n - k + 1, k + 1) - jnp.log1p(n)
    ),
)
logpmf = _functions["logpmf"]
pmf = _functions["pmf"]
