"""The binomial distribution: n! / (k! (n - k)!) p^k (1 - p)^(n - k) for 0 <= k <= n; by Loader (2000), so that large n
lose no digits.
"""

from __future__ import annotations

from funcml.primitives import incomplete
from funcml.scipy.stats.families import discrete

__all__ = ["logpmf", "pmf"]

_functions = discrete(
    __name__,
    "binomial",
    ("n", "p"),
    support=lambda n, p: (0, n),
    valid=lambda n, p: (n >= 0) & (p >= 0) & (p <= 1),
    logpmf=lambda k, n, p: incomplete.log_binomial_term(k, n - k, p),
)
logpmf = _functions["logpmf"]
pmf = _functions["pmf"]
