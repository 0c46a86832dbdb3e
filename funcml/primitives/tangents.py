"""Helpers of derivative rules: zeros, sums, and the types of tangents."""

from __future__ import annotations

import functools

import numpy as np

from funcml import dtypes
from funcml.core.avals import ShapedArray
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.keys import filled_keys

__all__ = ["filled", "instantiate", "scalar_of", "tangent_aval", "zero_of", "zero_tangent", "zeros"]


@functools.cache
def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of a tangent of `aval`: itself, or float0 where there is no derivative (integers, bool, keys)."""
    return aval.update(dtype=dtypes.tangent_dtype(aval.dtype))


@functools.cache
def zero_of(aval: ShapedArray) -> Zero:
    """The symbolic zero tangent of a value of type `aval`."""
    return Zero(tangent_aval(aval))


def zero_tangent(x) -> Zero:
    """The symbolic zero tangent of a value."""
    return zero_of(aval_of(x))


def scalar_of(aval: ShapedArray, value):
    """`value` as a NumPy scalar of the dtype of `aval`."""
    return aval.dtype.type(value)


def filled(aval: ShapedArray, value):
    """An array of this type of numbers whose elements are all `value`."""
    return broadcast_in_dim(scalar_of(aval, value), aval.shape)


def zeros(aval: ShapedArray):
    """An array of zeros of this type; for float0, which no device holds, a NumPy array; keys with words of zero."""
    if dtypes.is_key(aval.dtype):
        return filled_keys(aval.shape, aval.dtype, 0)
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return filled(aval, 0)


def instantiate(tangent):
    """`tangent` as a value: a symbolic zero becomes an array of zeros."""
    return zeros(tangent.aval) if type(tangent) is Zero else tangent
