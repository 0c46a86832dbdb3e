"""Softmax under SciPy's convention: over all axes unless some are given."""

from __future__ import annotations

from funcml.nn import normalization

__all__ = ["log_softmax", "softmax"]


def softmax(x, /, *, axis=None):
    """exp(x) / sum(exp(x)) over `axis`: an int, several, or None for all.

    >>> import numpy as np
    >>> softmax(np.float32([[0, 0], [0, 0]]))
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    return normalization.softmax(x, axis)


def log_softmax(x, /, *, axis=None):
    """log(softmax(x)), exact where softmax is small or near 1.

    >>> import numpy as np
    >>> log_softmax(np.float32([0, 0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return normalization.log_softmax(x, axis)
