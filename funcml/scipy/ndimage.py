"""Images of any number of dimensions: values between the elements of an array.

    map_coordinates : array [n1, .., nr] at points ([..],) * r -> [..]

Outside the array lies, by `mode`, for elements a b c d:

    'constant'  k k k | a b c d | k k k        k is `cval`
    'nearest'   a a a | a b c d | d d d
    'reflect'   c b a | a b c d | d c b
    'mirror'    d c b | a b c d | c b a
    'wrap'      b c d | a b c d | a b c

in which values are interpolated too, as SciPy's documentation says of these modes. (In SciPy itself 'constant' and 'wrap' act so
only under the names 'grid-constant' and 'grid-wrap'.)
"""

from __future__ import annotations

import itertools
import math

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.numpy.creation import array
from funcml.numpy.promotion import as_array, broadcast_shapes, exact, operand, spread
from funcml.numpy.rows import fill
from funcml.numpy.selection import take
from funcml.numpy.ufuncs import remainder
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew

__all__ = ["map_coordinates"]

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def map_coordinates(input, coordinates, order: int, mode: str = "constant", cval=0.0) -> Array:
    """The values of `input` at points, given by an array of positions along each of its axes; these broadcast.

    `order` 0 takes the nearest element (halves go away from 0), 1 interpolates linearly. The result has the dtype of `input`;
    integers are rounded. It has derivatives in `input`, `cval` and, with order 1, in the positions. Raises NotImplementedError
    for other orders and modes, ValueError for another number of positions.

    >>> import numpy as np
    >>> map_coordinates(np.array([0.0, 2.0, 4.0], "float32"), [np.array([0.5, 1.25], "float32")], order=1)
    Array([1. , 2.5], dtype=float32)
    """
    name = "map_coordinates"
    input = as_array(array(input) if isinstance(input, list | tuple) else operand(name, input))
    if index_of(name, "order", order) not in (0, 1):
        raise NotImplementedError(f"{name} requires order<=1, that is 0 or 1, got {order}")
    if mode not in _MODES:
        raise NotImplementedError(f"{name} does not yet support mode {mode!r}; it must be one of {', '.join(map(repr, _MODES))}")
    points = [as_array(array(c) if isinstance(c, list | tuple) else operand(name, c)) for c in coordinates]
    if len(points) != input.ndim:
        raise ValueError(
            f"{name}: coordinates must be a sequence of length {input.ndim}, an array of positions for each axis of "
            f"{input.aval}, got {len(points)}"
        )
    if any(dtypes.is_complex(c.dtype) for c in points):
        raise ValueError(f"{name} expects real positions, got {', '.join(str(c.aval) for c in points)}")
    if not points:
        return input
    if 0 in input.shape and mode != "constant":
        raise ValueError(f"{name}: {input.aval} has no element to continue by mode {mode!r}")
    return _mapped(input, points, operand(name, exact(cval)), int(order), mode)


@fused(static=("order", "mode"))
def _mapped(input, points, cval, order, mode):
    shape = broadcast_shapes(*[c.shape for c in points])
    cval = spread(ew.convert(as_array(cval), input.dtype), shape)
    wide = dtypes.result_type(*[_wide(x.dtype) for x in (input, *points)])
    out = None
    along = [_nodes(spread(c, shape), n, order, mode) for c, n in zip(points, input.shape, strict=True)]
    for nodes in itertools.product(*along):
        part = _read(input, [index for index, _ in nodes], mode, cval)
        for _, weight in nodes:
            if weight is not None:
                part = ew.convert(part, wide)
                part = ew.mul(part, ew.convert(weight, wide))
        out = part if out is None else ew.add(out, part)
    if dtypes.is_integer(input.dtype) and dtypes.is_float(out.dtype):
        out = ew.round(out)
    return ew.ne(out, 0) if dtypes.is_bool(input.dtype) else ew.convert(out, input.dtype)


def _wide(dtype):
    found = dtypes.inexact_dtype(dtype)
    return found if found in (dtypes.float64, *dtypes.COMPLEX) else dtypes.float32


def _nodes(position, n: int, order: int, mode: str):
    """The elements that count along one axis: (index, weight), no weight where one element counts alone."""
    if not dtypes.is_float(position.dtype):
        return [(_index(ew.convert(position, dtypes.int32), 0, n, mode), None)]
    if order == 0:
        nearest = ew.round(position)
        return [(_index(nearest, 0, n, mode), None)]
    lower = ew.floor(position)
    upper_weight = ew.sub(position, lower)
    lower_weight = ew.sub(fill(position, 1), upper_weight)
    return [(_index(lower, 0, n, mode), lower_weight), (_index(lower, 1, n, mode), upper_weight)]


# Far positions are brought near before they become integers.
def _index(place, offset: int, n: int, mode: str):
    """`place` + `offset` as the index of an element; for 'constant' it may lie outside, by one or two."""
    near = mode in ("constant", "nearest")
    period = {"wrap": n, "mirror": max(2 * (n - 1), 1), "reflect": 2 * n}.get(mode, 0)
    if dtypes.is_float(place.dtype):
        place = ew.clamp(-2.0, place, n + 1.0) if near else remainder(place, float(period))
        place = ew.convert(place, dtypes.int32)
    index = ew.add(place, offset) if offset else place
    if mode == "constant":
        return index
    if mode == "nearest":
        return ew.clamp(0, index, n - 1)
    index = remainder(index, period)
    if mode == "wrap" or n == 1:
        return index if mode == "wrap" else fill(index, 0)
    return ew.min(index, ew.sub(fill(index, period if mode == "mirror" else period - 1), index))


def _read(input, indices, mode: str, cval):
    """The elements of `input` at indices along each axis, and `cval` where one lies outside."""
    size = math.prod(input.shape)
    if size == 0:
        return cval
    flat, inside, step = None, None, size
    for index, n in zip(indices, input.shape, strict=True):
        step //= n
        if mode == "constant":
            here = ew.and_(ew.ge(index, 0), ew.lt(index, n))
            inside = here if inside is None else ew.and_(inside, here)
            index = ew.clamp(0, index, n - 1)
        part = ew.mul(index, step) if step != 1 else index
        flat = part if flat is None else ew.add(flat, part)
    found = take(ax.reshape(input, (size,)), flat, 0, mode="clip")
    return found if inside is None else ew.select(inside, found, cval)
