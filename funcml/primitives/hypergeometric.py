"""Hypergeometric functions, differentiable in every operand; see `primitives.smooth`.

    hyp1f1(a, b, x) = sum over n of (a)_n / (b)_n x^n / n!                                      DLMF 13.2.2
    hyp2f1(a, b, c, x) = sum over n of (a)_n (b)_n / (c)_n x^n / n!                             DLMF 15.2.1
"""

from __future__ import annotations

from funcml.primitives.smooth import Smooth

__all__ = ["hyp1f1", "hyp1f1_p", "hyp2f1", "hyp2f1_p"]

hyp1f1_p = Smooth("hyp1f1", 3)
hyp2f1_p = Smooth("hyp2f1", 4)


def hyp1f1(a, b, x):
    """Kummer's function M(a, b, x)."""
    return hyp1f1_p(a, b, x, orders=(0, 0, 0))


def hyp2f1(a, b, c, x):
    """Gauss' function F(a, b; c; x)."""
    return hyp2f1_p(a, b, c, x, orders=(0, 0, 0, 0))
