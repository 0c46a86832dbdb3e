"""Running sums and products: of the elements up to each, along an axis."""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, no_out
from funcml.numpy.promotion import as_array, literal, operand
from funcml.numpy.reductions import as_dtype, static_axis, sum_dtype
from funcml.numpy.rows import fill
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import reductions as red
from funcml.primitives import shaping

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum"]


def cumsum(a, axis=None, dtype=None, out=None):
    """The sums of the elements up to each, along an axis or of `a` flattened."""
    no_out("cumsum", out)
    return _running(operand("cumsum", a), "sum", static_axis(axis), dtype, False, False, False)


def cumprod(a, axis=None, dtype=None, out=None):
    """The products of the elements up to each, along an axis or of `a` flattened."""
    no_out("cumprod", out)
    return _running(operand("cumprod", a), "prod", static_axis(axis), dtype, False, False, False)


def nancumsum(a, axis=None, dtype=None, out=None):
    """The running sums, with nan as 0."""
    no_out("nancumsum", out)
    return _running(operand("nancumsum", a), "sum", static_axis(axis), dtype, True, False, False)


def nancumprod(a, axis=None, dtype=None, out=None):
    """The running products, with nan as 1."""
    no_out("nancumprod", out)
    return _running(operand("nancumprod", a), "prod", static_axis(axis), dtype, True, False, False)


def _only_axis(name: str, x, axis):
    if axis is None and np.ndim(x) != 1:
        if np.ndim(x) == 0:
            raise ValueError(f"{name}: The input must be non-scalar to take a running result, got one of no axes")
        raise ValueError(f"{name}: The input array has rank {np.ndim(x)}, however axis was not given; say along which to go")
    return 0 if axis is None else axis


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial: bool = False):
    """The running sums along `axis`, in front of them 0 if `include_initial`."""
    axis = _only_axis("cumulative_sum", x, axis)
    return _running(operand("cumulative_sum", x), "sum", axis, dtype, False, bool(include_initial), True)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial: bool = False):
    """The running products along `axis`, in front of them 1 if `include_initial`."""
    axis = _only_axis("cumulative_prod", x, axis)
    return _running(operand("cumulative_prod", x), "prod", axis, dtype, False, bool(include_initial), True)


@fused(static=("name", "axis", "dtype", "skip_nan", "include_initial", "promote_integers"))
def _running(a, name, axis, dtype, skip_nan, include_initial, promote_integers):
    run, unit = (red.cumsum, 0) if name == "sum" else (red.cumprod, 1)
    a = as_array(a)
    if axis is None:
        a, axis = ax.reshape(a, (a.size,)), 0
    axis = axis_of(f"cum{name}", axis, a.ndim)
    dtype = sum_dtype(a.dtype, dtype, promote_integers)
    x = as_dtype(a, dtype)
    if skip_nan and dtypes.is_inexact(dtype):
        x = ew.select(ew.ne(x, x), fill(x, unit), x)
    out = ew.ne(run(ew.convert(x, dtypes.int32), axis), 0) if dtypes.is_bool(dtype) else run(x, axis)
    if include_initial:
        first = ax.broadcast_in_dim(literal(unit, dtype), [1 if i == axis else n for i, n in enumerate(a.shape)])
        out = shaping.concatenate([first, out], axis)
    return out
