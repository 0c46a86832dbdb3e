"""Student's t distribution: density (1 + z^2 / df)^(-(df + 1) / 2) / (sqrt(df) B(df / 2, 1 / 2)), z = (x - loc) / scale;
Johnson, Kotz and Balakrishnan, chapter 28.
"""

from __future__ import annotations

from funcml import numpy as jnp
from funcml.scipy.special.gamma_functions import log_beta
from funcml.scipy.stats.families import continuous, log1p_square

__all__ = ["logpdf", "pdf"]


def _log_density(z, df):
    log = log1p_square(z / jnp.sqrt(df))
    return -log_beta(df / 2, jnp.full_like(df, 0.5)) - 0.5 * jnp.log(df) - 0.5 * (df + 1) * log


_functions = continuous(__name__, "t", ("df",), valid=lambda df: df > 0, logpdf=_log_density)
logpdf = _functions["logpdf"]
pdf = _functions["pdf"]
