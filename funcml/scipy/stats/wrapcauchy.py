"""The wrapped Cauchy distribution: density (1 - c^2) / (2 pi (1 + c^2 - 2 c cos x)) for x in [0, 2 pi];
Mardia and Jupp (2000).
"""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.scipy.stats.families import continuous

__all__ = ["logpdf", "pdf"]

# 1 + c^2 - 2 c cos x = (1 - c)^2 + 4 c sin(x / 2)^2
_functions = continuous(
    __name__,
    "wrapped Cauchy",
    ("c",),
    support=lambda c: (0, 2 * math.pi),
    valid=lambda c: (c > 0) & (c < 1),
    located=False,
    logpdf=lambda x, c: (
        jnp.log1p(-c) + jnp.log1p(c) - math.log(2 * math.pi) - jnp.log((1 - c) ** 2 + 4 * c * jnp.sin(x / 2) ** 2)
    ),
)
logpdf = _functions["logpdf"]
pdf = _functions["pdf"]
