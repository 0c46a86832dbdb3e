"""Windows: weights of M samples that fall off towards both ends."""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.numpy.ufuncs import i0
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _samples(name: str, count) -> int:
    count = index_of(name, "M", count)
    if count < 0:
        raise ValueError(f"{name}: the number of samples must not be negative, got {count}")
    return count


def bartlett(M: int) -> Array:
    """The triangle 1 - |t|, t from -1 to 1, in the default float dtype.

    >>> bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return asarray(np.bartlett(_samples("bartlett", M)), dtypes.default_float())


def blackman(M: int) -> Array:
    """0.42 + 0.5 cos(pi t) + 0.08 cos(2 pi t), t from -1 to 1."""
    return asarray(np.blackman(_samples("blackman", M)), dtypes.default_float())


def hamming(M: int) -> Array:
    """0.54 + 0.46 cos(pi t), t from -1 to 1."""
    return asarray(np.hamming(_samples("hamming", M)), dtypes.default_float())


def hanning(M: int) -> Array:
    """(1 + cos(pi t)) / 2, t from -1 to 1."""
    return asarray(np.hanning(_samples("hanning", M)), dtypes.default_float())


def kaiser(M: int, beta) -> Array:
    """I0(beta sqrt(1 - t^2)) / I0(beta), t from -1 to 1, in the dtype of `beta`, which may be traced and differentiated."""
    count = _samples("kaiser", M)
    if isinstance(beta, Array):
        return _kaiser(beta, count)
    beta = operand("kaiser", beta)
    dtype = dtypes.default_float() if isinstance(beta, int | float) and not isinstance(beta, np.generic) else beta.dtype
    return asarray(np.kaiser(count, beta), dtypes.inexact_dtype(dtype))


@fused(static=("count",))
def _kaiser(beta, count):
    beta = as_array(to_inexact("kaiser", beta))
    t = np.linspace(-1, 1, count) if count > 1 else np.zeros(count)
    height = asarray(np.sqrt(1 - t**2), beta.dtype)
    return ew.div(i0(ew.mul(broadcast_in_dim(beta, (count,)), height)), broadcast_in_dim(i0(beta), (count,)))
