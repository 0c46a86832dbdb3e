"""Interpolation between values that are given on a grid.

    RegularGridInterpolator(points ([n1], ..), values [n1, .., rest])(xi [.., r]) -> [.., rest]
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from funcml import dtypes
from funcml.core.registry import on_load, register_pytree_node
from funcml.core.tracing import Tracer
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.creation import array
from funcml.numpy.joining import stack
from funcml.numpy.manipulation import flip
from funcml.numpy.promotion import as_array, broadcast_shapes, exact, operand, promote_dtypes, spread, to_inexact
from funcml.numpy.rows import fill
from funcml.numpy.selection import take
from funcml.numpy.sorting import searchsorted
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """The function of points that takes given values on a grid, and values between them elsewhere.

    `points` are vectors of strictly increasing (or decreasing) coordinates, one for each of the first axes of `values`. Between
    grid points values are interpolated linearly along each axis ('linear'), or are those of the nearest grid point ('nearest',
    of two equally near ones the lower). Outside lies `fill_value`, nan by default, or the continuation if it is None. An
    interpolator is a tree whose leaves are its arrays, and differentiable in them and in the points. Raises ValueError for grids
    that do not fit, as far as their values are known.

    >>> import numpy as np
    >>> f = RegularGridInterpolator((np.array([1.0, 2.0]), np.array([0.0, 1.0])), np.array([[0.0, 10.0], [20.0, 30.0]]))
    >>> f(np.array([[1.5, 0.5], [1.0, 2.0]]))
    Array([15., nan], dtype=float64)
    """

    def __init__(self, points, values, method: str = "linear", bounds_error: bool = False, fill_value=math.nan):
        name = "RegularGridInterpolator"
        if bounds_error:
            raise NotImplementedError(f"{name}: values decide whether a point is outside, so bounds_error must be False")
        self.method, self.bounds_error = _method(method), bool(bounds_error)
        values = as_array(to_inexact(name, array(values) if isinstance(values, list | tuple) else values))
        grid = [as_array(to_inexact(name, array(p) if isinstance(p, list | tuple) else p)) for p in points]
        if len(grid) > values.ndim:
            raise ValueError(f"{name}: there are {len(grid)} vectors of points for the axes of {values.aval}")
        for i, p in enumerate(grid):
            if p.shape != (values.shape[i],) or dtypes.is_complex(p.dtype) or p.size < 2:
                n = max(values.shape[i], 2)
                raise ValueError(f"{name} expects {n} real points along axis {i} of {values.aval}, got {p.aval}")
            if _decreases(name, i, p):
                grid[i], values = flip(p), flip(values, i)
        self.grid, self.values = tuple(grid), values
        self.fill_value = None if fill_value is None else as_array(exact(operand(name, fill_value)))
        if self.fill_value is not None and not np.can_cast(self.fill_value.dtype, values.dtype, "same_kind"):
            raise ValueError(f"{name}: fill_value {self.fill_value.aval} is not of the kind of the values {values.aval}")

    def __call__(self, xi, method: str | None = None) -> Array:
        """The values at `xi`, an array [.., r] of points or a tuple of r arrays that broadcast."""
        count = len(self.grid)
        if isinstance(xi, tuple):
            xi = xi[0] if len(xi) == 1 else _stacked(xi)
        xi = as_array(to_inexact("RegularGridInterpolator", array(xi) if isinstance(xi, list) else xi))
        if xi.ndim == 1 and xi.size % count == 0:
            xi = ax.reshape(xi, (xi.size // count, count))
        if xi.ndim == 0 or xi.shape[-1] != count or dtypes.is_complex(xi.dtype):
            raise ValueError(f"RegularGridInterpolator of {count} dimensions expects real points [.., {count}], got {xi.aval}")
        return _interpolated(self.values, list(self.grid), xi, self.fill_value, _method(method or self.method))


def _method(method: str) -> str:
    if method not in _METHODS:
        raise ValueError(f"RegularGridInterpolator: method must be 'linear' or 'nearest', got {method!r}")
    return method


def _decreases(name: str, i: int, p) -> bool:
    """Whether known coordinates decrease; ValueError if they are not in strict order."""
    if isinstance(p, Tracer):
        return False
    steps = np.diff(np.asarray(p))
    if not (np.all(steps > 0) or np.all(steps < 0)):
        raise ValueError(f"{name}: the points along axis {i} must be strictly increasing or decreasing")
    return bool(steps[0] < 0)


def _stacked(points):
    parts = promote_dtypes("RegularGridInterpolator", *[array(p) if isinstance(p, list) else p for p in points], inexact=True)
    shape = broadcast_shapes(*[np.shape(p) for p in parts])
    return stack([spread(as_array(p), shape) for p in parts], -1)


def _flatten(f: RegularGridInterpolator):
    return (f.grid, f.values, f.fill_value), (f.method, f.bounds_error)


def _unflatten(aux, children) -> RegularGridInterpolator:
    f = object.__new__(RegularGridInterpolator)
    (f.grid, f.values, f.fill_value), (f.method, f.bounds_error) = children, aux
    return f


on_load(lambda: register_pytree_node(RegularGridInterpolator, _flatten, _unflatten))


# Along each axis x lies at the part t between its neighbours g_i and g_(i+1), t < 0 or > 1 outside the grid.
@fused(static=("method",))
def _interpolated(values, grid, xi, fill_value, method):
    shape = xi.shape[:-1]
    dtype = dtypes.result_type(xi.dtype, *[g.dtype for g in grid])
    lower, parts, outside, unknown = [], [], None, None
    for k, g in enumerate(grid):
        x = ew.convert(ax.reshape(shaping.slice_in_dim(xi, k, k + 1, axis=-1), shape), dtype)
        g = ew.convert(g, dtype)
        i = ew.clamp(0, ew.sub(searchsorted(g, x), 1), g.size - 2)
        at = lambda places, g=g: take(g, places, 0, mode="promise_in_bounds")
        start, stop = at(i), at(ew.add(i, 1))
        lower.append(i)
        parts.append(ew.div(ew.sub(x, start), ew.sub(stop, start)))
        ends = [spread(ax.reshape(shaping.slice_in_dim(g, j, j + 1), ()), shape) for j in (0, g.size - 1)]
        outside = _either(outside, ew.or_(ew.lt(x, ends[0]), ew.gt(x, ends[1])))
        unknown = _either(unknown, ew.ne(x, x))
    out = (_linear if method == "linear" else _nearest)(values, lower, parts)
    missing = [(unknown, math.nan)] if method == "nearest" else []
    if fill_value is not None:
        missing.append((outside, ew.convert(as_array(fill_value), out.dtype)))
    for where, value in missing:
        where = ax.broadcast_in_dim(where, out.shape, range(len(shape)))
        out = ew.select(where, spread(value, out.shape) if isinstance(value, Array) else fill(out, value), out)
    return out


def _either(a, b):
    return b if a is None else ew.or_(a, b)


def _at(values, indices):
    """The values at indices along the first axes."""
    flat, size = None, 1
    for i, n in zip(reversed(indices), reversed(values.shape[: len(indices)]), strict=True):
        part = ew.mul(i, size) if size != 1 else i
        flat, size = part if flat is None else ew.add(flat, part), size * n
    return take(ax.reshape(values, (size, *values.shape[len(indices) :])), flat, 0, mode="promise_in_bounds")


def _linear(values, lower, parts):
    dtype = dtypes.result_type(values.dtype, parts[0].dtype)
    out = None
    for upper in itertools.product((0, 1), repeat=len(lower)):
        weight = None
        for up, t in zip(upper, parts, strict=True):
            share = t if up else ew.sub(fill(t, 1), t)
            weight = share if weight is None else ew.mul(weight, share)
        found = ew.convert(_at(values, [ew.add(i, up) if up else i for up, i in zip(upper, lower, strict=True)]), dtype)
        term = ew.mul(found, ax.broadcast_in_dim(ew.convert(weight, dtype), found.shape, range(weight.ndim)))
        out = term if out is None else ew.add(out, term)
    return out


def _nearest(values, lower, parts):
    return _at(values, [ew.add(i, ew.convert(ew.gt(t, 0.5), i.dtype)) for i, t in zip(lower, parts, strict=True)])
