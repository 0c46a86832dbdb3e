"""Bits as bytes: eight truth values in one uint8, and back."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, index_of
from funcml.numpy.promotion import as_array, operand
from funcml.primitives import axes as ax
from funcml.primitives import bits, shaping
from funcml.primitives import elementwise as ew

__all__ = ["packbits", "unpackbits"]


def _check_order(name: str, bitorder) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder must be 'big' or 'little', got {bitorder!r}")


def _at_end(name: str, a, axis):
    """`a` with the axis last (flattened, if that is None), and where the axis was."""
    if axis is None:
        return ax.reshape(a, (a.size,)), 0
    axis = axis_of(name, axis, a.ndim)
    return ax.moveaxis(a, axis, a.ndim - 1), axis


def _places(shape, bitorder: str):
    """The place in its byte of each bit of the last axis, of length 8."""
    place = shaping.iota(dtypes.uint8, shape, len(shape) - 1)
    return ew.sub(7, place) if bitorder == "big" else place


def packbits(a, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight elements along an axis (of `a` flattened, if None), each 0 or not, in one uint8; 0 behind the last.

    The first of the eight is the highest bit, or the lowest for bitorder 'little'.

    >>> import numpy as np
    >>> packbits(np.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    _check_order("packbits", bitorder)
    return _packbits(operand("packbits", a), axis, bitorder)


@fused(static=("axis", "bitorder"))
def _packbits(a, axis, bitorder):
    a = as_array(a)
    if not (dtypes.is_integer(a.dtype) or dtypes.is_bool(a.dtype)):
        raise TypeError(f"packbits expects integers or bool, got {a.aval}")
    a, axis = _at_end("packbits", a, axis)
    *batch, n = a.shape
    count = -(-n // 8)
    a = ew.convert(a if dtypes.is_bool(a.dtype) else ew.ne(a, 0), dtypes.uint8)
    a = shaping.pad(a, dtypes.uint8.type(0), [*[(0, 0, 0)] * len(batch), (0, 8 * count - n, 0)])
    a = ax.reshape(a, (*batch, count, 8))
    out = ax.reduce_sum(bits.shift_left(a, _places(a.shape, bitorder)), (a.ndim - 1,))
    return ax.moveaxis(out, len(batch), axis)


def unpackbits(a, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of each uint8 along an axis (of `a` flattened, if None), as eight elements 0 or 1 of uint8.

    `count` elements are given: 0 behind the last, if there are fewer; a negative number counts from the end.

    >>> import numpy as np
    >>> unpackbits(packbits(np.array([1, 0, 1])), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    _check_order("unpackbits", bitorder)
    count = None if count is None else index_of("unpackbits", "count", count)
    return _unpackbits(operand("unpackbits", a), axis, count, bitorder)


@fused(static=("axis", "count", "bitorder"))
def _unpackbits(a, axis, count, bitorder):
    a = as_array(a)
    if a.dtype != dtypes.uint8:
        raise TypeError(f"unpackbits expects uint8, got {a.aval}")
    a, axis = _at_end("unpackbits", a, axis)
    *batch, n = a.shape
    wide = ax.broadcast_in_dim(a, (*a.shape, 8), tuple(range(a.ndim)))
    out = ew.and_(bits.shift_right_logical(wide, _places(wide.shape, bitorder)), 1)
    out = ax.reshape(out, (*batch, 8 * n))
    if count is not None:
        more = count - 8 * n if count >= 0 else max(count, -8 * n)
        out = shaping.pad(out, dtypes.uint8.type(0), [*[(0, 0, 0)] * len(batch), (0, more, 0)])
    return ax.moveaxis(out, len(batch), axis)
