"""Joining arrays: one after another along an axis, stacked along a new one, or as blocks of a larger one."""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, no_out
from funcml.numpy.creation import array
from funcml.numpy.manipulation import at_least, ravel, unstack
from funcml.numpy.promotion import as_array, operand, promote_dtypes, settle
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping

__all__ = ["append", "block", "column_stack", "concat", "concatenate", "dstack", "hstack", "stack", "vstack"]


def _arrays(name: str, arrays) -> list:
    """The operands of a function of a sequence; an array counts as the sequence of its rows."""
    if isinstance(arrays, Array | np.ndarray) and arrays.ndim:
        return list(unstack(arrays))
    if not isinstance(arrays, list | tuple):
        raise TypeError(f"{name} expects a sequence of arrays, got {arrays!r:.60} of type {type(arrays).__name__}")
    return settle(name, *[array(x, copy=False) if isinstance(x, list | tuple) else x for x in arrays])


def _common(name: str, arrays, dtype) -> list[Array]:
    if not arrays:
        raise ValueError(f"{name} expects at least one array, got none")
    if dtype is not None:
        dtype = dtypes.canonical(dtype)
        return [ew.convert(as_array(x), dtype) for x in arrays]
    return [as_array(x) for x in promote_dtypes(name, *arrays)]


def concatenate(arrays, axis: int | None = 0, dtype=None) -> Array:
    """The arrays one after another along an existing axis; flattened first if `axis` is None.

    Raises ValueError if their shapes differ elsewhere.
    """
    return _concatenate(_arrays("concatenate", arrays), axis, dtype)


@fused(static=("axis", "dtype"))
def _concatenate(arrays, axis, dtype):
    arrays = _common("concatenate", arrays, dtype)
    if axis is None:
        arrays, axis = [ax.reshape(x, (x.size,)) for x in arrays], 0
    if arrays[0].ndim == 0:
        raise ValueError("concatenate: arrays without axes cannot be joined; use stack")
    axis = axis_of("concatenate", axis, arrays[0].ndim)
    first = arrays[0].shape
    for x in arrays:
        if x.ndim != len(first) or any(i != axis and n != m for i, (n, m) in enumerate(zip(x.shape, first, strict=True))):
            raise TypeError(
                f"concatenate: the shapes may differ along axis {axis} only, got {', '.join(str(x.aval) for x in arrays)}"
            )
    return shaping.concatenate(arrays, axis)


def concat(arrays, /, *, axis: int | None = 0) -> Array:
    """The arrays one after another along an existing axis."""
    return concatenate(arrays, axis)


def stack(arrays, axis: int = 0, out=None, dtype=None) -> Array:
    """Arrays of one shape, joined along a new axis at `axis` of the result."""
    no_out("stack", out)
    return _stack(_arrays("stack", arrays), axis, dtype)


@fused(static=("axis", "dtype"))
def _stack(arrays, axis, dtype):
    arrays = _common("stack", arrays, dtype)
    if len({x.shape for x in arrays}) > 1:
        raise ValueError(f"stack expects arrays of one shape, got {', '.join(str(x.aval) for x in arrays)}")
    axis = axis_of("stack", axis, arrays[0].ndim + 1)
    return shaping.concatenate([ax.expand_dims(x, (axis,)) for x in arrays], axis)


def vstack(tup, dtype=None) -> Array:
    """Arrays joined along the first axis; vectors count as rows."""
    return concatenate([at_least(2, x) for x in _arrays("vstack", tup)], 0, dtype)


def hstack(tup, dtype=None) -> Array:
    """Arrays joined along the second axis; vectors along their only one."""
    arrays = [at_least(1, x) for x in _arrays("hstack", tup)]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype)


def dstack(tup, dtype=None) -> Array:
    """Arrays joined along the third axis."""
    return concatenate([at_least(3, x) for x in _arrays("dstack", tup)], 2, dtype)


def column_stack(tup) -> Array:
    """Vectors as columns, and matrices, side by side."""
    arrays = [as_array(operand("column_stack", x)) for x in _arrays("column_stack", tup)]
    return concatenate([ax.reshape(x, (x.size, 1)) if x.ndim < 2 else x for x in arrays], 1)


def append(arr, values, axis: int | None = None) -> Array:
    """`values` after `arr` along `axis`; both flattened if that is None."""
    arr, values = settle("append", *[array(x, copy=False) if isinstance(x, list | tuple) else x for x in (arr, values)])
    parts = [as_array(operand("append", x)) for x in (arr, values)]
    return concatenate(parts if axis is not None else [ravel(x) for x in parts], axis or 0)


# ---- blocks ------------------------------------------------------------------------------------------------------


def block(arrays) -> Array:
    """Nested lists of arrays as one array: the innermost lists are joined along the last axis, the next along the one before.

    Raises ValueError if the lists are not nested equally deep, or one is empty.

    >>> block([[np.ones((1, 2)), np.zeros((1, 1))], [np.zeros((1, 3))]]).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if isinstance(arrays, tuple):
        raise TypeError("block expects an array or lists of arrays, got a tuple; write a list")
    leaves: list = []
    form = _form(arrays, leaves)
    return _block(settle("block", *leaves), form)


def _form(arrays, leaves: list):
    """The nesting of the lists as tuples, with None for each array; adds the arrays to `leaves`."""
    if not isinstance(arrays, list):
        leaves.append(arrays)
        return None
    if not arrays:
        raise ValueError("block expects lists with at least one array each, got an empty one")
    return tuple([_form(x, leaves) for x in arrays])


def _depth(form) -> int:
    if form is None:
        return 0
    depths = {_depth(x) for x in form}
    if len(depths) > 1:
        raise ValueError(f"block expects lists that are nested equally deep, got depths {sorted(depths)} in one list")
    return depths.pop() + 1


@fused(static=("form",))
def _block(leaves, form):
    depth = _depth(form)
    arrays = [as_array(operand("block", x)) for x in promote_dtypes("block", *leaves)]
    rank = max(depth, *[x.ndim for x in arrays])
    return _joined(form, depth, iter([ax.reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in arrays]))


def _joined(form, depth: int, arrays) -> Array:
    if form is None:
        return next(arrays)
    return concatenate([_joined(x, depth - 1, arrays) for x in form], -depth)
