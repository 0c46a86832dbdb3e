"""The beta distribution: density z^(a - 1) (1 - z)^(b - 1) / B(a, b) for z = (x - loc) / scale in [0, 1]. DLMF 8.17.1."""

from __future__ import annotations

from funcml.primitives import incomplete
from funcml.scipy.stats.families import continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_functions = continuous(
    __name__,
    "beta",
    ("a", "b"),
    support=lambda a, b: (0, 1),
    valid=lambda a, b: (a > 0) & (b > 0),
    logpdf=lambda z, a, b: incomplete.log_beta_density(a, b, z),
    cdf=lambda z, a, b: incomplete.betainc(a, b, z),
    logcdf=lambda z, a, b: incomplete.log_betainc(a, b, z, upper=False),
    sf=lambda z, a, b: incomplete.betainc(b, a, 1 - z),
    logsf=lambda z, a, b: incomplete.log_betainc(a, b, z, upper=True),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
sf = _functions["sf"]
