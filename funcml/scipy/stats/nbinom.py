"""The negative binomial distribution: gamma(k + n) / (k! gamma(n)) p^n (1 - p)^k for k >= 0; by Loader (2000)."""

from __future__ import annotations

from funcml import numpy as jnp
from funcml.primitives import incomplete
from funcml.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]

# gamma(k + n) / (k! gamma(n)) = n / (n + k) times the binomial coefficient of n + k and k
_functions = discrete(
    __name__,
    "negative binomial",
    ("n", "p"),
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    logpmf=lambda k, n, p: incomplete.log_binomial_term(n, k, p) - jnp.log1p(k / n),
)
logpmf = _functions["logpmf"]
pmf = _functions["pmf"]
