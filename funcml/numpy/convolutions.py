"""Convolutions and correlations of vectors, and the windowed sums of arrays that they and `scipy.signal` are.

    convolve     : [m] x [n] -> [m + n - 1]        y_k = sum over j of a_(k-j) v_j
    correlate    : [m] x [n] -> [m + n - 1]        y_k = sum over j of a_(j+k) conj(v_j)
    windowed_sum : the part of a correlation from one index on, over any number of axes

Of the 'full' result, 'same' is the middle as long as the longer operand, 'valid' that where the operands overlap wholly.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.promotion import as_array, operand, promote_dtypes, settle
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives.contraction import canonical_precision
from funcml.primitives.convolution import ConvDimensionNumbers, ConvWindow, conv_general_dilated

__all__ = ["MODES", "convolve", "correlate", "windowed_sum"]

MODES = ("full", "same", "valid")


def windowed_sum(x, w, starts: Sequence[int], lengths: Sequence[int], precision=None, preferred_element_type=None):
    """y_i = sum over j of x_(i + start - (n - 1) + j) w_j for i in range(length), x being 0 outside; n are the lengths of `w`.

    `start` and `length` are those of each axis; index 0 of the whole result is where only the last element of `w` meets x.
    """
    padding = [
        (n - 1 - start, length - m + start)
        for m, n, start, length in zip(x.shape, w.shape, starts, lengths, strict=True)
    ]
    ones, rank = (1,) * x.ndim, x.ndim + 2
    out = conv_general_dilated(
        ax.reshape(x, (1, 1, *x.shape)),
        ax.reshape(w, (1, 1, *w.shape)),
        ConvWindow(ones, tuple(padding), ones, ones),
        ConvDimensionNumbers(*[tuple(range(rank))] * 3),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return ax.reshape(out, aval_of(out).shape[2:])


def convolve(a, v, mode: str = "full", *, precision=None, preferred_element_type=None) -> Array:
    """The convolution of two vectors: the coefficients of the product of two polynomials.

    Integers become floats, unless `preferred_element_type` says otherwise. Raises ValueError for other than vectors, for empty
    ones, and for an unknown mode ('full', 'same' or 'valid').

    >>> import numpy as np
    >>> convolve(np.array([1.0, 2.0], "float32"), np.array([1.0, 3.0], "float32"))
    Array([1., 5., 6.], dtype=float32)
    """
    return _called("convolve", a, v, mode, precision, preferred_element_type)


def correlate(a, v, mode: str = "valid", *, precision=None, preferred_element_type=None) -> Array:
    """The correlation of two vectors, the second one conjugated; arguments as for `convolve`.

    >>> import numpy as np
    >>> correlate(np.array([1.0, 2.0, 3.0], "float32"), np.array([1.0, 1.0], "float32"))
    Array([3., 5.], dtype=float32)
    """
    return _called("correlate", a, v, mode, precision, preferred_element_type)


def _called(name: str, a, v, mode, precision, preferred) -> Array:
    if mode not in MODES:
        raise ValueError(f"{name}: mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    a, v = settle(name, operand(name, a), operand(name, v))
    preferred = None if preferred is None else dtypes.canonical(preferred)
    return _of_vectors(a, v, name, mode, canonical_precision(precision), preferred)


@fused(static=("name", "mode", "precision", "preferred"))
def _of_vectors(a, v, name, mode, precision, preferred):
    a, v = map(as_array, promote_dtypes(name, a, v, inexact=preferred is None))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"{name} expects two vectors, got {a.aval} and {v.aval}; scipy.signal.{name} takes more axes")
    if not a.size or not v.size:
        raise ValueError(f"{name} expects vectors that are not empty, got {a.aval} and {v.aval}")
    swapped = a.size < v.size
    if name == "convolve":
        x, w = (v, a) if swapped else (a, v)
        w = shaping.rev(w, (0,))
    else:  # with the operands swapped the result runs backward
        v = ew.conj(v) if dtypes.is_complex(v.dtype) else v
        x, w = (v, a) if swapped else (a, v)
    m, n = x.size, w.size
    start, length = {"full": (0, m + n - 1), "same": ((n - 1) // 2, m), "valid": (n - 1, m - n + 1)}[mode]
    out = windowed_sum(x, w, (start,), (length,), precision, preferred)
    return shaping.rev(out, (0,)) if swapped and name == "correlate" else out
