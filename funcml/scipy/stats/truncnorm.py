"""The normal distribution between a and b, of z = (x - loc) / scale: density exp(-z^2 / 2) over its integral from a to b."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.scipy.special.error_functions import log_normal_cdf
from funcml.scipy.stats.families import continuous, log1mexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_mass(a, b):
    """The logarithm of the probability that a standard normal variable lies between a and b, a <= b.

    From the tail in which the interval lies; a narrow one by the density at its middle m: its width w times
    phi(m) (1 + (m^2 - 1) w^2 / 24 + ...).
    """
    right = a > 0
    a, b = jnp.where(right, -b, a), jnp.where(right, -a, b)
    middle, width = 0.5 * (a + b), b - a
    narrow = width * (1 + jnp.abs(middle)) < 2e-3
    one_tail = b <= 0
    below = log_normal_cdf(jnp.where(narrow, -2.0, a))
    end = log_normal_cdf(jnp.where(narrow, -1.0, jnp.where(one_tail, b, -b)))
    within = end + log1mexp(jnp.where(one_tail, end - below, 1.0))
    across = jnp.log1p(-jnp.where(one_tail, 0.5, jnp.exp(below) + jnp.exp(end)))
    wide = jnp.where(one_tail, within, across)
    m = jnp.where(narrow, middle, 0.0)
    thin = jnp.log(width) - 0.5 * m * m - 0.5 * math.log(2 * math.pi)
    thin = thin + jnp.log1p((m * m - 1) * jnp.where(narrow, width, 0.0) ** 2 / 24)
    return jnp.where(narrow, thin, wide)


_functions = continuous(
    __name__,
    "truncated normal",
    ("a", "b"),
    support=lambda a, b: (a, b),
    valid=lambda a, b: a < b,
    inside=lambda a, b: jnp.clip(0.5 * (jnp.maximum(a, -1e3) + jnp.minimum(b, 1e3)), a, b),
    logpdf=lambda z, a, b: -0.5 * z * z - 0.5 * math.log(2 * math.pi) - _log_mass(a, b),
    logcdf=lambda z, a, b: _log_mass(a, z) - _log_mass(a, b),
    logsf=lambda z, a, b: _log_mass(z, b) - _log_mass(a, b),
)
cdf = _functions["cdf"]
logcdf = _functions["logcdf"]
logpdf = _functions["logpdf"]
logsf = _functions["logsf"]
pdf = _functions["pdf"]
sf = _functions["sf"]
