"""Reading the arguments of distributions: their dtype, their shape, and the parameters among them.

    float_dtype  : (name, dtype-like | None) -> dtype            and likewise inexact_dtype, integer_dtype
    exact        : (value, dtype) -> value
    parameter    : (name, value, dtype, shape) -> array [*shape]
    shape_with   : (name, shape | None, parameters) -> shape
    family       : (name, kernel) -> sampler of a distribution whose parameters broadcast to the shape
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import shape_of
from funcml.numpy.promotion import as_array, broadcast_shapes, literal, operand, spread
from funcml.primitives.elementwise import convert
from funcml.random.keys import one_key

__all__ = ["exact", "family", "float_dtype", "inexact_dtype", "integer_dtype", "parameter", "shape_with"]


def float_dtype(name: str, dtype):
    """The floating dtype that was asked for, float32 by default; ValueError for others."""
    dtype = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_float(dtype):
        raise ValueError(f"{name}: expected a floating dtype, got {dtypes.short_name(dtype)}")
    return dtype


def inexact_dtype(name: str, dtype):
    """The floating or complex dtype that was asked for, float32 by default; ValueError for others."""
    dtype = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_inexact(dtype):
        raise ValueError(f"dtype argument to {name} must be a floating or complex dtype, got {dtypes.short_name(dtype)}")
    return dtype


def integer_dtype(name: str, dtype):
    """The integer dtype that was asked for, int32 by default; ValueError for others."""
    dtype = dtypes.default_int() if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_integer(dtype):
        raise ValueError(f"{name}: expected an integer dtype, got {dtypes.short_name(dtype)}")
    return dtype


def exact(x, dtype):
    """`x` as an operand that keeps its digits: a Python float would arrive with the default width."""
    return literal(x, dtype) if type(x) is float and dtype != dtypes.default_float() else x


def parameter(name: str, x, dtype, shape: tuple[int, ...]):
    """A real parameter as an array of this dtype and shape."""
    x = operand(name, x)
    if dtypes.is_complex(aval_of(x).dtype) or dtypes.is_key(aval_of(x).dtype):
        raise TypeError(f"{name}: expected real numbers as parameter, got {aval_of(x)}")
    is_scalar = not isinstance(x, Array) and np.ndim(x) == 0
    return spread(literal(x, dtype) if is_scalar else convert(as_array(x), dtype), shape)


def shape_with(name: str, shape, *parameters) -> tuple[int, ...]:
    """The shape of the samples: that of the parameters, or one to which they broadcast; ValueError if they do not."""
    common = broadcast_shapes(*[np.shape(p) if not isinstance(p, Array) else p.shape for p in parameters])
    if shape is None:
        return common
    shape = shape_of(name, shape)
    try:
        fits = broadcast_shapes(shape, common) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: parameters of shape {common} do not broadcast to the shape {shape} of the samples")
    return shape


def family(name: str, kernel: Callable, read_dtype: Callable = float_dtype, read_shape: Callable = shape_with) -> Callable:
    """The sampler (key, shape, dtype, *parameters) of a distribution.

    `kernel(key, shape, dtype, *parameters)` is its program; there the parameters are arrays of this shape and dtype.
    """

    @fused(static=("shape", "dtype"))
    def program(key, shape, dtype, *parameters):
        return kernel(key, shape, dtype, *[parameter(name, x, dtype, shape) for x in parameters])

    def sample(key, shape, dtype, *parameters) -> Array:
        key, dtype = one_key(name, key), read_dtype(name, dtype)
        parameters = tuple([exact(operand(name, x), dtype) for x in parameters])
        return program(key, read_shape(name, shape, *parameters), dtype, *parameters)

    return sample
