"""Products of real and complex arrays of one precision and rank, whatever the settings of promotion."""

from __future__ import annotations

from funcml import dtypes
from funcml.numpy.promotion import broadcast_shapes
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew

__all__ = ["product", "together"]


def together(x, y):
    """Both with one shape, and complex if one of them is; a scalar goes with any shape."""
    shape = broadcast_shapes(x.shape, y.shape)
    dtype = x.dtype if dtypes.is_complex(x.dtype) else y.dtype
    dims = lambda z: range(len(shape) - z.ndim, len(shape))
    return [ax.broadcast_in_dim(ew.convert(z, dtype), shape, dims(z)) for z in (x, y)]


def product(x, y):
    """x y."""
    return ew.mul(*together(x, y))
