"""Quantisation of vectors: each one by the nearest of a few.

    vq : observations [m, n] x codes [k, n] -> (indices [m], distances [m])
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.norms import euclidean
from funcml.numpy.promotion import as_array, operand, promote_dtypes, settle
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import indexing, powers
from funcml.primitives import reductions as red

__all__ = ["vq"]


def vq(obs, code_book, check_finite: bool = True) -> tuple[Array, Array]:
    """The index of the code nearest to each observation, and its distance; of equally near ones the first.

    Vectors are the rows of `obs` [m, n] and `code_book` [k, n]; two vectors [m] and [k] count as points of a line.
    `check_finite` is there for SciPy's sake. Raises ValueError for other shapes.

    >>> import numpy as np
    >>> vq(np.array([[0.0, 1.0], [3.0, 3.0]]), np.array([[0.0, 0.0], [3.0, 4.0]]))
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float64))
    """
    return _nearest(*settle("vq", operand("vq", obs), operand("vq", code_book)))


@fused
def _nearest(obs, code_book):
    obs, codes = map(as_array, promote_dtypes("vq", obs, code_book, inexact=True))
    if obs.ndim != codes.ndim or obs.ndim not in (1, 2) or obs.shape[1:] != codes.shape[1:] or not codes.shape[0]:
        raise ValueError(f"vq expects observations [m, n] and codes [k, n], or two vectors, got {obs.aval} and {codes.aval}")
    obs, codes = (ax.expand_dims(x, (1,)) if x.ndim == 1 else x for x in (obs, codes))
    shape = (obs.shape[0], *codes.shape)
    apart = ew.sub(ax.broadcast_in_dim(obs, shape, (0, 2)), ax.broadcast_in_dim(codes, shape, (1, 2)))
    square = ax.reduce_sum(powers.square(ew.abs(apart)), (2,))
    code = red.argmin(square, 1, dtypes.default_int())
    picked = ax.broadcast_in_dim(code, (shape[0], 1, shape[2]), (0,))
    nearest = indexing.take_along_axis(apart, picked, 1, mode="promise_in_bounds")
    return code, euclidean(ax.reshape(nearest, (shape[0], shape[2])), (1,))
