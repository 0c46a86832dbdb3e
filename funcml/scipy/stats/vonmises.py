"""Von Mises' distribution on the circle: density exp(kappa cos x) / (2 pi I0(kappa)); Mardia and Jupp (2000)."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.primitives import special
from funcml.scipy.stats.families import continuous

__all__ = ["logpdf", "pdf"]

# kappa (cos x - 1) = -2 kappa sin(x / 2)^2, and exp(-kappa) I0(kappa) does not overflow
_functions = continuous(
    __name__,
    "von Mises",
    ("kappa",),
    valid=lambda kappa: kappa >= 0,
    located=False,
    logpdf=lambda x, kappa: -2 * kappa * jnp.sin(x / 2) ** 2 - jnp.log(2 * math.pi * special.bessel_i0e(kappa)),
)
logpdf = _functions["logpdf"]
pdf = _functions["pdf"]
