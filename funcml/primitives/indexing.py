"""Reading and writing parts of an array at positions known only at run time.

    dynamic_slice        : ([.., n, ..], start..) -> [.., size, ..]      its transpose is dynamic_update_slice
    dynamic_update_slice : ([.., n, ..], [.., size, ..], start..) -> [.., n, ..]
    take_along_axis      : ([.., n, ..], [.., m, ..]) -> [.., m, ..]

and, from `gather_scatter`, the operations on many windows at once.
"""

from __future__ import annotations

import operator

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Literal, Primitive
from funcml.core.linear import is_undefined, is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, canonical_axis, expand_dims, reshape
from funcml.primitives.batching import at_front, spread_at_front
from funcml.primitives.elementwise import add, convert, lt, select
from funcml.primitives.gather_scatter import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    gather_p,
    index_dtype,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_p,
    scatter_sub,
)
from funcml.primitives.scatter_apply import scatter_apply
from funcml.primitives.shaping import concatenate, slice_
from funcml.primitives.tangents import instantiate, scalar_of, zero_tangent, zeros

__all__ = [
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "index_dtype",
    "scatter",
    "scatter_add",
    "scatter_apply",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
    "take_along_axis",
    "wrap_negative",
]


_I32 = np.dtype("int32")


# ---- start indices -----------------------------------------------------------------------------------------


def wrap_negative(index, length: int):
    """`index`, counted from the end of an axis of this length where negative; a Python int stays one."""
    if isinstance(index, int):
        return index + length if index < 0 else index
    aval = aval_of(index)
    if dtypes.is_unsigned(aval.dtype):
        return index
    if aval.dtype != index_dtype(aval):
        index = convert(index, index_dtype(aval))
        aval = aval_of(index)
    return select(lt(index, scalar_of(aval, 0)), add(index, scalar_of(aval, length)), index)


def _as_starts(who: str, aval, starts, allow_negative_indices: bool) -> list:
    """A start index for each axis, all of one dtype; a negative one counts from the end if that is allowed."""
    if not isinstance(starts, list | tuple):
        starts = _components(starts)
    if len(starts) != aval.ndim:
        raise TypeError(f"{who} of {aval} expects {aval.ndim} start indices, got {len(starts)}")
    found = []
    for i, n in zip(starts, aval.shape, strict=True):
        i = operator.index(i) if isinstance(i, int | np.integer) else i
        if not isinstance(i, int) and (aval_of(i).shape != () or not dtypes.is_integer(aval_of(i).dtype)):
            raise TypeError(f"{who} of {aval} expects scalar integer start indices, got {aval_of(i)}")
        found.append(wrap_negative(i, n) if allow_negative_indices else i)
    dtype = index_dtype(*[aval_of(i) for i in found if not isinstance(i, int)])
    if max([1, *aval.shape]) > np.iinfo(_I32).max:
        dtype = np.dtype("int64")
    info = np.iinfo(dtype)
    return [dtype.type(min(max(i, info.min), info.max)) if isinstance(i, int) else convert(i, dtype) for i in found]


def _components(starts) -> list:
    aval = aval_of(starts)
    if aval.ndim != 1:
        raise TypeError(f"start indices must be a sequence of scalars or an array with one axis, got {aval}")
    if isinstance(starts, np.ndarray):
        return list(starts)
    return [reshape(slice_(starts, (i,), (i + 1,)), ()) for i in range(aval.shape[0])]


# ---- dynamic_slice and dynamic_update_slice ----------------------------------------------------------------


class DynamicSlice(Primitive):
    """The window of x of `slice_sizes` at the starts, which are moved so that the window is inside x."""

    def type_rule(self, x, *starts, slice_sizes):
        _check_window("dynamic_slice", x, slice_sizes, starts)
        return shaped(slice_sizes, x.dtype, x.weak_type)

    # out' = dynamic_slice(x', start)
    def jvp_rule(self, primals, tangents, *, slice_sizes):
        x, *starts = primals
        out = bind(self, primals, {"slice_sizes": slice_sizes})
        if is_zero(tangents[0]):
            return out, zero_tangent(out)
        return out, bind(self, (tangents[0], *starts), {"slice_sizes": slice_sizes})

    # ct_x = ct in the window, zero elsewhere
    def transpose_rule(self, ct, x, *starts, slice_sizes):
        return [_update(zeros(x.aval.update(dtype=aval_of(ct).dtype)), ct, starts), *[None] * len(starts)]

    def transpose_mask(self, mask, index, operands, *, slice_sizes):
        if mask is None:
            return None
        x, *starts = operands
        return _update(broadcast_in_dim(np.False_, x.aval.shape), mask, starts)

    def batch_rule(self, axis, operands, dims, *, slice_sizes):
        (x, *starts), (x_dim, *start_dims) = operands, dims
        if all(d is None for d in start_dims):
            zero = scalar_of(aval_of(starts[0]), 0)
            params = {"slice_sizes": (axis.size, *slice_sizes)}
            return bind(self, (at_front(x, x_dim), zero, *starts), params), 0
        every = tuple(range(len(slice_sizes)))
        return gather_p.batch_rule(
            axis, (x, _stack(axis, starts, start_dims)), (x_dim, 0),
            dimension_numbers=GatherDimensionNumbers(every, (), every), slice_sizes=slice_sizes,
            unique_indices=True, indices_are_sorted=True, mode=GatherScatterMode.CLIP, fill_value=None,
        )  # fmt: skip


class DynamicUpdateSlice(Primitive):
    """x with the window at the starts, moved so that it is inside x, replaced by the update."""

    def type_rule(self, x, update, *starts):
        _check_window("dynamic_update_slice", x, update.shape, starts)
        if update.dtype != x.dtype:
            raise TypeError(f"dynamic_update_slice expects an update of the dtype of {x}, got {update}; convert it first")
        return shaped(x.shape, x.dtype, x.weak_type and update.weak_type)

    # out' = dynamic_update_slice(x', update', start)
    def jvp_rule(self, primals, tangents):
        out = bind(self, primals)
        if is_zero(tangents[0]) and is_zero(tangents[1]):
            return out, zero_tangent(out)
        return out, bind(self, (instantiate(tangents[0]), instantiate(tangents[1]), *primals[2:]))

    # ct_x = ct, zero in the window;  ct_update = ct in the window
    def transpose_rule(self, ct, x, update, *starts):
        aval = aval_of(update)
        ct_x = _update(ct, zeros(aval.update(dtype=aval_of(ct).dtype)), starts) if is_undefined(x) else None
        ct_update = _window(ct, starts, aval.shape) if is_undefined(update) else None
        return [ct_x, ct_update, *[None] * len(starts)]

    def transpose_mask(self, mask, index, operands):
        x, update, *starts = operands
        if mask is None:
            return None
        if index == 0:
            return _update(mask, broadcast_in_dim(np.False_, aval_of(update).shape), starts)
        return _window(mask, starts, aval_of(update).shape)

    def batch_rule(self, axis, operands, dims):
        (x, update, *starts), (x_dim, update_dim, *start_dims) = operands, dims
        if all(d is None for d in start_dims):
            zero = scalar_of(aval_of(starts[0]), 0)
            return bind(
                self,
                (spread_at_front(axis, x, x_dim), spread_at_front(axis, update, update_dim), zero, *starts),
            ), 0
        every = tuple(range(len(starts)))
        return scatter_p.batch_rule(
            axis, (x, _stack(axis, starts, start_dims), update), (x_dim, 0, update_dim),
            dimension_numbers=ScatterDimensionNumbers(every, (), every),
            indices_are_sorted=True, unique_indices=True, mode=GatherScatterMode.CLIP,
        )  # fmt: skip


def _check_window(who, x, sizes, starts) -> None:
    if len(sizes) != x.ndim or any(not 0 <= s <= n for s, n in zip(sizes, x.shape, strict=True)):
        raise TypeError(f"{who} of {x}: the window must have {x.ndim} axes no longer than those of {x}, got {tuple(sizes)}")
    if len(starts) != x.ndim:
        raise TypeError(f"{who} of {x} expects {x.ndim} start indices, got {len(starts)}")
    if any(s.shape or not dtypes.is_integer(s.dtype) or s.dtype != starts[0].dtype for s in starts):
        found = ", ".join(map(str, starts))
        raise TypeError(f"{who} of {x} expects scalar integer start indices of one dtype, got {found}")


def _stack(axis, starts, dims):
    """The start indices as rows [mapped axis, component]."""
    columns = [expand_dims(spread_at_front(axis, s.value if type(s) is Literal else s, d), (1,))
               for s, d in zip(starts, dims, strict=True)]  # fmt: skip
    return concatenate(columns, 1)


def _window(x, starts, sizes):
    return bind(dynamic_slice_p, (x, *starts), {"slice_sizes": tuple(sizes)}) if starts else x


def _update(x, update, starts):
    return bind(dynamic_update_slice_p, (x, update, *starts)) if starts else update


dynamic_slice_p = DynamicSlice("dynamic_slice")
dynamic_update_slice_p = DynamicUpdateSlice("dynamic_update_slice")


def dynamic_slice(operand, start_indices, slice_sizes, *, allow_negative_indices: bool = True):
    """The window of `operand` of `slice_sizes` (static) at `start_indices`, one scalar integer for each axis.

    A negative start counts from the end unless `allow_negative_indices` is False. A window that is not inside the
    operand is moved inside. Raises TypeError for sizes longer than the axes.
    """
    aval = aval_of(operand)
    sizes = tuple(map(operator.index, slice_sizes))
    starts = _as_starts("dynamic_slice", aval, start_indices, allow_negative_indices)
    return operand if sizes == aval.shape else _window(operand, starts, sizes)


def dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices: bool = True):
    """`operand` with the window of the shape of `update` at `start_indices` replaced by `update`.

    Starts are as for `dynamic_slice`. Raises TypeError for an update of another dtype or longer than the operand.
    """
    starts = _as_starts("dynamic_update_slice", aval_of(operand), start_indices, allow_negative_indices)
    return _update(operand, update, starts)


# ---- along one axis ----------------------------------------------------------------------------------------


def take_along_axis(operand, indices, axis: int, mode: str | GatherScatterMode | None = None, fill_value=None):
    """out[.., i, ..] = operand[.., indices[.., i, ..], ..] along `axis`; other axes have equal lengths or length 1.

    Without `mode`, indices are promised to be in bounds; none may be negative.
    """
    x, ix = aval_of(operand), aval_of(indices)
    axis = canonical_axis(axis, x, "take_along_axis")
    if ix.ndim != x.ndim:
        raise ValueError(f"take_along_axis of {x} expects indices with {x.ndim} axes, got {ix}")
    shape = np.broadcast_shapes(*[s[:axis] + (1,) + s[axis + 1 :] for s in (x.shape, ix.shape)])
    taken = (*shape[:axis], ix.shape[axis], *shape[axis + 1 :])
    if 0 in taken:
        return zeros(x.update(shape=taken))
    every = tuple(range(x.ndim))
    operand, indices = (
        broadcast_in_dim(v, (*shape[:axis], n, *shape[axis + 1 :]), every)
        for v, n in ((operand, x.shape[axis]), (indices, ix.shape[axis]))
    )
    others = tuple([i for i in every if i != axis])
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    sizes = tuple([min(n, 1) for n in aval_of(operand).shape])
    return gather(operand, expand_dims(indices, (x.ndim,)), numbers, sizes, mode=mode, fill_value=fill_value)
