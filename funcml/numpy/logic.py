"""Comparisons of whole arrays, and questions about their kind."""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.floats import isfinite
from funcml.numpy.promotion import as_array, exact, promote, settle, spread
from funcml.numpy.reductions import all as all_of
from funcml.numpy.ufuncs import imag
from funcml.primitives import elementwise as ew

__all__ = [
    "allclose", "array_equal", "array_equiv", "isclose", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "isscalar",
    "iterable",
]


# |a - b| <= atol + rtol |b| for finite a and b; infinities are close when they are equal
@fused(static=("equal_nan",))
def _isclose(a, b, rtol, atol, equal_nan):
    a, b = promote("isclose", a, b, full=True)
    if dtypes.is_bool(aval_of(a).dtype):
        a, b = ew.convert(a, dtypes.int32), ew.convert(b, dtypes.int32)
    same = ew.eq(a, b)
    if dtypes.is_key(aval_of(a).dtype):
        return same
    if dtypes.is_inexact(aval_of(a).dtype):
        both_finite = ew.and_(isfinite(a), isfinite(b))
        x, y = a, b
    else:
        both_finite, (x, y) = None, promote("isclose", a, b, inexact=True, full=True)
    size = ew.abs(y)
    limit = [spread(ew.convert(as_array(v), aval_of(size).dtype), aval_of(size).shape) for v in (rtol, atol)]
    near = ew.le(ew.abs(ew.sub(x, y)), ew.add(limit[1], ew.mul(limit[0], size)))
    if both_finite is not None:
        near = ew.and_(near, both_finite)
    out = ew.or_(same, near)
    if equal_nan:
        out = ew.or_(out, ew.and_(ew.ne(a, a), ew.ne(b, b)))
    return out


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan: bool = False) -> Array:
    """Whether |a - b| <= atol + rtol |b|, element by element; infinities are close to themselves, nan if `equal_nan`."""
    return _isclose(*settle("isclose", a, b), exact(rtol), exact(atol), bool(equal_nan))


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan: bool = False) -> Array:
    """Whether all elements are close: |a - b| <= atol + rtol |b|."""
    return all_of(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements."""
    a, b = as_array(a1), as_array(a2)
    if a.shape != b.shape:
        return as_array(np.False_)
    return _all_equal(a, b, bool(equal_nan))


def array_equiv(a1, a2) -> Array:
    """Whether two arrays broadcast to one shape and then have equal elements."""
    a, b = as_array(a1), as_array(a2)
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return as_array(np.False_)
    return _all_equal(a, b, False)


@fused(static=("equal_nan",))
def _all_equal(a, b, equal_nan):
    a, b = promote("array_equal", a, b, full=True)
    same = ew.eq(a, b)
    if equal_nan:
        same = ew.or_(same, ew.and_(ew.ne(a, a), ew.ne(b, b)))
    return all_of(same)


def iscomplex(x) -> Array:
    """Whether the imaginary part is not 0, element by element."""
    part = imag(x)
    return ew.ne(part, 0)


def isreal(x) -> Array:
    """Whether the imaginary part is 0, element by element."""
    part = imag(x)
    return ew.eq(part, 0)


def iscomplexobj(x) -> bool:
    """Whether the dtype of `x` is complex."""
    return x is not None and dtypes.is_complex(dtypes.dtype_of(as_array(x))[0])


def isrealobj(x) -> bool:
    """Whether the dtype of `x` is not complex."""
    return not iscomplexobj(x)


def isscalar(element) -> bool:
    """Whether `element` is a number or an array without axes."""
    return np.isscalar(element) or (hasattr(element, "shape") and np.shape(element) == ())


def iterable(y) -> bool:
    """Whether `y` can be iterated over."""
    return np.ndim(y) > 0 and np.iterable(y)
