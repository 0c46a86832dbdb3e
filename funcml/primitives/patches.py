"""What moving windows cover, by slices of the array.

    patches : [W..] -> [K.., V..]      element (k.., v..) is what element k of window v covers
    views   : [W..] -> ([V..], ..)     the same, an array for each element k, row-major
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.primitives.axes import broadcast_in_dim, expand_dims
from funcml.primitives.elementwise import add, mul
from funcml.primitives.gather_scatter import GatherDimensionNumbers, gather
from funcml.primitives.shaping import concatenate, iota, pad, slice_, slice_in_dim

__all__ = ["Window", "dilated_length", "padded", "patches", "strided_length", "views"]


class Window(NamedTuple):
    """A window that moves over an array; all fields have a value for each axis.

    The array has `base_dilation - 1` holes between neighbours and (low, high) `padding` around it, the window has
    `window_dilation - 1` holes between its `dimensions` elements, and goes on by `strides`.
    """

    dimensions: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    def result_shape(self, shape) -> tuple[int, ...]:
        """How many windows there are along each axis of an array of this shape."""
        found = []
        for n, k, stride, (low, high), base, dilation in zip(shape, *self, strict=True):
            found.append(strided_length(dilated_length(n, base) + low + high, dilated_length(k, dilation), stride))
        return tuple(found)

    @property
    def size(self) -> int:
        """How many elements a window covers."""
        return math.prod(self.dimensions)

    def at(self, d: int) -> Window:
        """The window with one more axis at `d`, along which it covers each element alone."""

        def widened(values, alone):
            return (*values[:d], alone, *values[d:])

        return Window(*map(widened, self, (1, 1, (0, 0), 1, 1)))

    def slices(self, shape):
        """(starts, limits, strides) of the part of the padded array, of a shape with `shape` windows, for each element."""
        reach = [(count - 1) * stride + 1 for count, stride in zip(shape, self.strides, strict=True)]
        for place in itertools.product(*map(range, self.dimensions)):
            starts = tuple([k * dilation for k, dilation in zip(place, self.window_dilation, strict=True)])
            yield starts, tuple([s + r for s, r in zip(starts, reach, strict=True)]), self.strides


def dilated_length(n: int, dilation: int) -> int:
    """The length of n elements with `dilation - 1` holes between neighbours."""
    return (n - 1) * dilation + 1 if n else 0


def strided_length(n: int, window: int, stride: int) -> int:
    """How many windows of a length fit into n elements, one each `stride`."""
    return (n - window) // stride + 1 if n >= window else 0


#: windows longer than this are read by index, since each slice is an operation of the program
_SLICES = 32


def padded(x, fill, window: Window):
    """`x` with `fill` in the holes between its elements and around it."""
    return pad(x, fill, [(low, high, base - 1) for (low, high), base in zip(window.padding, window.base_dilation, strict=True)])


def views(x, fill, window: Window) -> list:
    """What each element of the windows covers: for each, row-major, an array with a place for each window."""
    counts = window.result_shape(aval_of(x).shape)
    if 0 in counts:
        return [broadcast_in_dim(fill, counts)] * window.size
    x = padded(x, fill, window)
    return [slice_(x, *bounds) for bounds in window.slices(counts)]


def patches(x, fill, window: Window):
    """What each element of each window covers, [K.., V..] for `K.. = window.dimensions` and V.. windows; `fill` in the holes."""
    counts, ndim = window.result_shape(aval_of(x).shape), len(window.dimensions)
    if 0 in counts or 0 in window.dimensions:
        return broadcast_in_dim(fill, (*window.dimensions, *counts))
    x = padded(x, fill, window)
    for done, d in enumerate(reversed(range(ndim))):
        k, stride, dilation = window.dimensions[d], window.strides[d], window.window_dilation[d]
        x = _patches_along(x, d + done, k, stride, dilation, counts[d])
    return x


def _patches_along(x, axis, k, stride, dilation, count):
    """The windows along one axis: [K, .., V, ..]."""
    if k > _SLICES and count > 1:
        return _patches_by_index(x, axis, k, stride, dilation, count)
    reach = (count - 1) * stride + 1
    parts = [slice_in_dim(x, i * dilation, i * dilation + reach, stride, axis) for i in range(k)]
    return concatenate([expand_dims(p, (0,)) for p in parts], 0)


def _patches_by_index(x, axis, k, stride, dilation, count):
    shape, ndim = (k, count), aval_of(x).ndim
    places = add(mul(iota(dtypes.int32, shape, 0), dilation), mul(iota(dtypes.int32, shape, 1), stride))
    others = tuple([i + 1 if i < axis else i + 2 for i in range(ndim - 1)])
    sizes = [1 if i == axis else n for i, n in enumerate(aval_of(x).shape)]
    return gather(x, expand_dims(places, (2,)), GatherDimensionNumbers(others, (axis,), (axis,)), sizes)
