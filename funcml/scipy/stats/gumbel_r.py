"""Gumbel's distribution of greatest values: distribution function exp(-exp(-z)), z = (x - loc) / scale; Johnson, Kotz and
Balakrishnan, chapter 22.
"""

from __future__ import annotations

from funcml import numpy as jnp
from funcml.scipy.stats.families import continuous, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _log_rest(z):
    """log(1 - exp(-u)) with u = exp(-z); it is log u where u is tiny."""
    far = z > 30
    return jnp.where(far, -z, log1mexp(jnp.exp(-jnp.where(far, 0.0, z))))


_functions = continuous(
    __name__,
    "right-skewed Gumbel",
    names={"ppf": "p"},
    logpdf=lambda z: -z - jnp.exp(-z),
    logcdf=lambda z: -jnp.exp(-z),
    sf=lambda z: -jnp.expm1(-jnp.exp(-z)),
    logsf=_log_rest,
    ppf=lambda p: -jnp.log(-jnp.log(p)),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
ppf = _functions["ppf"]
sf = _functions["sf"]
