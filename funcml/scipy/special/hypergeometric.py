"""Confluent and Gauss' hypergeometric functions. DLMF chapters 13 and 15."""

from __future__ import annotations

from funcml.primitives import hypergeometric
from funcml.scipy.elementwise import elementwise

__all__ = ["hyp1f1", "hyp2f1"]


@elementwise
def hyp1f1(a, b, x):
    """Kummer's function, the sum of (a)_n / (b)_n x^n / n!; inf where b is 0, -1, ... DLMF 13.2.2.

    By the series for |x| < 100, and by its asymptotic expansion beyond, which wants a and b smaller than the root of |x|.

    >>> hyp1f1(1.0, 2.0, 1.0)
    Array(1.7182819, dtype=float32, weak_type=True)
    """
    return hypergeometric.hyp1f1(a, b, x)


@elementwise
def hyp2f1(a, b, c, x):
    """Gauss' function, the sum of (a)_n (b)_n / (c)_n x^n / n!, continued to x <= 1; inf for x > 1, where it is not real,
    unless the series ends. DLMF 15.2.1.

    >>> hyp2f1(1.0, 1.0, 2.0, 0.5)
    Array(1.3862944, dtype=float32, weak_type=True)
    """
    return hypergeometric.hyp2f1(a, b, c, x)
