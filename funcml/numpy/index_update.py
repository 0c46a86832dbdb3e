"""Writing x[index] without changing x: `x.at[index].set(v)` and its kin.

    IndexUpdateHelper : x.at          its [index] is an IndexUpdateRef with the methods set, add, ..., apply, get
    scatter_update    : (x, index, values, op, ...) -> Array

A window that ints and slices name is cut out, combined with the values and put back; index arrays become one scatter; a
mask becomes a select where the values are the same for all its elements. Outside of a trace the places are operands
of a program that is compiled once for each form of index.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core import tracing
from funcml.core.tracing import Tracer
from funcml.core.values import Array
from funcml.lowering.array import scalar
from funcml.lowering.execute import fused
from funcml.numpy import index_read
from funcml.numpy.creation import asarray
from funcml.numpy.index_plan import GAP, NEW, Mask, Rows, Run, expand_masks, gather_plan, parse
from funcml.numpy.index_read import joined_entries, mode_name, split_entries, view, with_axes
from funcml.numpy.promotion import as_array, literal, operand, spread
from funcml.numpy.selected import Selected, same_mask
from funcml.numpy.ufuncs import divide, power
from funcml.primitives import elementwise as ew
from funcml.primitives import indexing as ix
from funcml.primitives.axes import broadcast_in_dim, reshape, squeeze
from funcml.primitives.shaping import pad, rev
from funcml.primitives.tangents import scalar_of

__all__ = ["IndexUpdateHelper", "IndexUpdateRef", "scatter_update"]


class Update(NamedTuple):
    """How an update combines: on a window, and by a scatter."""

    name: str
    combine: Callable
    scatter: Callable


def _by_dtype(for_numbers, for_bool):
    return lambda x, *rest, **options: (for_bool if dtypes.is_bool(x.dtype) else for_numbers)(x, *rest, **options)


UPDATES = {
    u.name: u
    for u in (
        Update("set", lambda old, new: new, ix.scatter),
        Update("add", _by_dtype(ew.add, ew.or_), _by_dtype(ix.scatter_add, ix.scatter_max)),
        Update("subtract", ew.sub, ix.scatter_sub),
        Update("multiply", _by_dtype(ew.mul, ew.and_), _by_dtype(ix.scatter_mul, ix.scatter_min)),
        Update("min", ew.min, ix.scatter_min),
        Update("max", ew.max, ix.scatter_max),
    )
}


def scatter_update(
    x,
    index,
    values,
    op: str,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | ix.GatherScatterMode | None = None,
    wrap_negative_indices: bool = True,
) -> Array:
    """`x` with `x[index] op= values`, where op is "set", "add", "subtract", "multiply", "min" or "max".

    The result has the type of `x`; a value that it cannot hold without loss gives a FutureWarning, nan in an integer array
    a ValueError. Modes are those of `rewriting_take`, except that by default updates out of bounds are dropped if they
    are known only at run time. Where an element is named twice, all updates are combined; with "set" the last one stays.
    """
    x = as_array(x)
    mode = mode_name(mode)
    entries = parse(index, x.shape, mode, wrap_negative_indices)
    if type(values) is Selected:
        values = _values_under(x, entries, values, op)
    values, dtype = _operand_values(x, values, op)
    masked = _masked_update(x, entries, values, op, dtype)
    if masked is not None:
        return masked
    entries, inserted = expand_masks(entries, f"updating {x.aval}")
    options = (op, dtype, inserted, mode, bool(indices_are_sorted), bool(unique_indices))
    if tracing._state.frames:
        return write(x, entries, values, options)
    form, starts, arrays = split_entries(entries)
    if isinstance(values, np.generic) and x.ndim:  # without axes, the shared scalar could be the result
        values = scalar(values.item(), values.dtype)
    return _write_compiled(form, options, x, values, starts, *arrays)


@fused(static=("form", "options"))
def _write_compiled(form, options, x, values, starts, *arrays):
    return write(x, joined_entries(form, starts, arrays), values, options)


# ---- values --------------------------------------------------------------------------------------------------


def _operand_values(x, values, op: str):
    """The values as an operand, and the dtype to compute in; warns or raises where the dtype of `x` cannot hold them."""
    what = f"x.at[...].{op}(v)"
    values = operand(what, asarray(values) if isinstance(values, list | tuple) else values)
    if isinstance(values, int) and dtypes.is_integer(x.dtype):
        return literal(values, x.dtype), x.dtype
    found = dtypes.dtype_of(values)
    if found[0] != x.dtype and not dtypes.safe_to_cast(values, x):
        _check_not_nan(what, x, values)
        warnings.warn(
            f"{what}: scatter inputs have incompatible types: v of dtype {dtypes.short_name(found[0])} is cast to the dtype of "
            f"x, {x.aval}, with loss; cast it yourself: v.astype(x.dtype)",
            FutureWarning,
            stacklevel=4,
        )
    joined = x.dtype if op == "set" else dtypes.lattice_join((x.dtype, x.weak_type), found)[0]
    return _cast(values, joined), joined


def _cast(values, dtype):
    if isinstance(values, Array):
        return ew.convert(values, dtype)
    values = np.asarray(values)
    if dtypes.is_complex(values.dtype) and not dtypes.is_complex(dtype):
        values = values.real
    return values.astype(dtype)[()]


def _check_not_nan(what: str, x, values) -> None:
    if type(values) is Tracer or not dtypes.is_integer(x.dtype):
        return
    host = np.asarray(values)
    if dtypes.is_inexact(host.dtype) and np.isnan(host).any():
        raise ValueError(f"{what}: cannot store NaN in an int array {x.aval}; use a float array, or replace the NaN")


def _fitted(values, shape: tuple[int, ...], op: str):
    """The values broadcast to the shape of x[index]; axes of length 1 in front are dropped, as NumPy does."""
    found = np.shape(values)
    extra = len(found) - len(shape)
    if extra > 0 and set(found[:extra]) == {1}:
        values = squeeze(values, range(extra))
        found = found[extra:]
    if len(found) > len(shape) or any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1], strict=False)):
        raise ValueError(f"x.at[index].{op}(v): v of shape {found} does not broadcast to x[index] of shape {shape}")
    return spread(values, shape)


# ---- as equations --------------------------------------------------------------------------------------------


def write(x, entries: list, values, options: tuple):
    """The equations of an update; `entries` without masks, `values` in the dtype to compute in."""
    op, dtype, inserted, *how = options
    update, original = UPDATES[op], x.aval
    x = with_axes(ew.convert(x, dtype), inserted)
    out = _write(x, entries, values, update, how)
    return ew.convert(reshape(out, original.shape), original.dtype, original.weak_type)


def _write(x, entries, values, update: Update, how):
    arrays = [e for e in entries if type(e) is Rows]
    if not arrays:
        new = _fitted(values, index_read.shape_without_rows(entries), update.name)
        new = reshape(new, index_read.window_shape(entries))
        old = None if update.name == "set" else view(x, entries)
        return put_back(x, entries, update.combine(old, new))
    strided, left = index_read.view_strided(x, entries)
    if strided is not x:
        full = index_read.strided_axes(x, entries)
        return put_back(x, full, _write(strided, left, values, update, how))
    mode, indices_are_sorted, unique_indices = how
    plan = gather_plan(entries, x.ndim)
    new = reshape(_fitted(values, plan.out_shape, update.name), plan.shape)
    if 0 in plan.shape or any(x.shape[e.axis] == 0 for e in arrays):
        return x
    return update.scatter(
        x, plan.indices, new, ix.ScatterDimensionNumbers(*plan.numbers),
        mode="promise_in_bounds" if plan.safe else mode,
        indices_are_sorted=indices_are_sorted or plan.single, unique_indices=unique_indices or plan.single,
    )  # fmt: skip


def put_back(x, entries, window):
    """`x` with its view by `entries` replaced by `window`, which has an axis for each of `x`."""
    by_axis = index_read.axis_entries(entries)
    window = rev(window, [e.axis for e in by_axis if type(e) is Run and e.step < 0])
    if 0 in window.shape:
        return x
    steps = [abs(e.step) if type(e) is Run else 1 for e in by_axis]
    starts = [index_read.low_of(e) for e in by_axis]
    if any(s > 1 for s in steps):
        spans = [Run(e.axis, s, index_read.span_of(e), 1) for e, s in zip(by_axis, starts, strict=True)]
        window = _spread_out(window, steps, view(x, spans))
    if window.shape == x.shape:
        return window
    return ix.dynamic_update_slice(x, window, starts, allow_negative_indices=False)


def _spread_out(window, steps, between):
    """The elements of `window` at every `steps` place, those of `between` at the others."""
    config = [(0, 0, s - 1) for s in steps]
    here = pad(broadcast_in_dim(np.True_, window.shape), np.False_, config)
    return ew.select(here, pad(window, scalar_of(window.aval, 0), config), between)


# ---- masks ---------------------------------------------------------------------------------------------------


def _masked_update(x, entries, values, op: str, dtype):
    """The update as a select, if the index is one mask and the values do not depend on how many are true; else None."""
    mask = next((e for e in entries if type(e) is Mask), None)
    if mask is None:
        return None
    if not all(e is mask or e is GAP or _is_full(e, x.shape) for e in entries):
        return _masked_window_update(x, entries, values, op, dtype)
    found = np.shape(values)
    ndim = np.ndim(mask.values)
    if found != x.shape:
        values = _spread_over_mask(values, x.shape, mask.axis, ndim)
        if values is None:
            return None
    return _select_compiled(op, dtype, mask.axis, x, mask.values, values)


def _masked_window_update(x, entries, values, op: str, dtype):
    """The update of a window that ints and slices name, where a mask known only at run time is true, by one value; or None."""
    mask = index_read.unknown_mask(entries)
    if mask is None or np.size(values) != 1:
        return None
    whole = index_read.without_mask(entries, mask, x.shape)
    old = index_read.read(x, whole, (None, None, False, False))
    first = sum(e is NEW or type(e) is Run for e in entries[: entries.index(mask)])
    places = tuple(range(first, first + np.ndim(mask.values)))
    value = reshape(values, ()) if np.ndim(values) else values
    new = ew.convert(UPDATES[op].combine(ew.convert(old, dtype), spread(as_array(value), old.shape)), x.dtype)
    new = ew.select(broadcast_in_dim(mask.values, old.shape, places), new, old)
    return write(x, whole, new, ("set", x.dtype, (), None, False, False))


def _values_under(x, entries, chosen: Selected, op: str):
    """The values of y[mask], where the index of the update is the same mask."""
    mask = next((e for e in entries if type(e) is Mask), None)
    alone = all(e is mask or e is GAP or _is_full(e, x.shape) for e in entries)
    fits = mask is not None and chosen.values.shape == x.shape and mask.axis == chosen.axis
    if mask is None or not alone or not fits or not same_mask(mask.values, chosen.mask):
        raise chosen.unknown(f"x.at[...].{op}(v) with v the elements under another mask; v")
    return chosen.values


def _is_full(e, shape) -> bool:
    return type(e) is Run and e.size == shape[e.axis] and e.step == 1


def _spread_over_mask(values, shape, axis: int, ndim: int):
    """Values of x[mask], [before, 1, after], with the one axis of the mask as the `ndim` axes that it has in `x`."""
    found, after = np.shape(values), len(shape) - axis - ndim
    if len(found) > after:
        at = len(found) - after - 1
        if found[at] != 1 or len(found) > len(shape) - ndim + 1:
            return None
        found = (*found[:at], *(1,) * ndim, *found[at + 1 :])
    if any(n not in (1, m) for n, m in zip(found[::-1], shape[::-1], strict=False)):
        return None
    return reshape(values, found) if found != np.shape(values) else values


@fused(static=("op", "dtype", "axis"))
def _select_compiled(op, dtype, axis, x, mask, values):
    original = x.aval
    x = ew.convert(x, dtype)
    where = broadcast_in_dim(mask, x.shape, range(axis, axis + np.ndim(mask)))
    out = ew.select(where, UPDATES[op].combine(x, spread(values, x.shape)), x)
    return ew.convert(out, original.dtype, original.weak_type)


# ---- x.at ----------------------------------------------------------------------------------------------------


class IndexUpdateHelper:
    """`x.at`: updates of parts of an array, each of which gives a new array.

        x.at[idx].set(v)         x[idx] = v              x.at[idx].min(v)      x[idx] = minimum(x[idx], v)
        x.at[idx].add(v)         x[idx] += v             x.at[idx].max(v)      x[idx] = maximum(x[idx], v)
        x.at[idx].subtract(v)    x[idx] -= v             x.at[idx].apply(f)    x[idx] = f(x[idx])
        x.at[idx].multiply(v)    x[idx] *= v             x.at[idx].get()       x[idx]
        x.at[idx].divide(v)      x[idx] /= v             x.at[idx].power(v)    x[idx] **= v

    An element that is named more than once is updated each time; `set` keeps the last value, and the derivative belongs to
    that one. Under `jit`, where nothing else uses `x`, the update happens in place.

    mode: what an index out of bounds means. By default one that is known now (an int, a known array) raises IndexError, and
    one known only at run time is clipped by `get` and dropped by updates. "promise_in_bounds" is the same without a check
    at run time; "clip" takes the nearest; "drop" (or "fill") drops updates and reads `fill_value`; "wrap" counts modulo the
    size.
    wrap_negative_indices: whether negative indices count from the end (the default), or are out of bounds.
    indices_are_sorted, unique_indices: promises about the indices, which can make the program faster.
    """

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"


def _updating(op: str, formula: str):
    def method(
        self,
        values,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | ix.GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        return scatter_update(
            self.array, self.index, values, op, indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices, mode=mode, wrap_negative_indices=wrap_negative_indices,
        )  # fmt: skip

    method.__name__, method.__qualname__ = op, f"IndexUpdateRef.{op}"
    method.__doc__ = f"The array after `{formula}`; the options are those of `x.at`."
    return method


class IndexUpdateRef:
    """`x.at[index]`: the methods that update, or read, that part of `x`."""

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    set = _updating("set", "x[index] = values")
    add = _updating("add", "x[index] += values")
    subtract = _updating("subtract", "x[index] -= values")
    multiply = mul = _updating("multiply", "x[index] *= values")
    min = _updating("min", "x[index] = minimum(x[index], values)")
    max = _updating("max", "x[index] = maximum(x[index], values)")

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | ix.GatherScatterMode | None = None,
        fill_value=None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`x[index]`; the options are those of `x.at`, `fill_value` is what mode "fill" reads out of bounds."""
        return index_read.rewriting_take(
            self.array, self.index, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
            mode=mode, fill_value=fill_value, wrap_negative_indices=wrap_negative_indices,
        )  # fmt: skip

    def divide(self, values, **options) -> Array:
        """The array after `x[index] /= values`, in a float dtype also for integers; the options are those of `x.at`."""
        x = as_array(self.array)
        wide = dtypes.inexact_dtype(dtypes.lattice_join((x.dtype, x.weak_type), dtypes.dtype_of(values))[0])
        return divide(x, _factor(x, self.index, values, wide, options))

    def power(self, values, **options) -> Array:
        """The array after `x[index] **= values`; the options are those of `x.at`."""
        x = as_array(self.array)
        exponent = _factor(x, self.index, values, x.dtype, options)
        touched = scatter_update(np.zeros(x.shape, bool), self.index, True, "set", **options)
        return ew.select(touched, ew.convert(power(x, exponent), x.dtype), x)

    def apply(self, func: Callable, *, unique_indices: bool = False, **options) -> Array:
        """The array after `x[index] = func(x[index])`, for an elementwise `func`; the options are those of `x.at`.

        An element that is named twice has `func` applied twice. Where an index array may do that, `func` is applied to
        scalars, may use no other arrays, and there is no derivative; with `unique_indices` these limits fall.
        """
        return _applied(as_array(self.array), self.index, func, unique_indices, options)


def _factor(x, index, values, dtype, options):
    """Ones of the shape of `x`, times the values at the index."""
    return scatter_update(broadcast_in_dim(dtype.type(1), x.shape), index, values, "multiply", **options)


def _applied(x, index, func, unique_indices: bool, options) -> Array:
    mode, wrap = mode_name(options.get("mode")), options.get("wrap_negative_indices", True)
    entries = parse(index, x.shape, mode, wrap)
    masks = [e for e in entries if type(e) is Mask]
    if len(masks) == 1 and all(e is masks[0] or e is GAP or _is_full(e, x.shape) for e in entries):
        return scatter_update(x, index, ew.convert(func(x), x.dtype), "set", **options)
    entries, _ = expand_masks(entries, f"updating {x.aval}")
    if unique_indices or _unique(entries):
        old = index_read.rewriting_take(x, index, unique_indices=True, **options)
        return scatter_update(x, index, ew.convert(func(old), x.dtype), "set", unique_indices=True, **options)
    return _scattered_apply(x, entries, func, mode)


def _unique(entries) -> bool:
    """Whether index arrays are known to name each place once."""
    arrays = [e.values for e in entries if type(e) is Rows]
    if math.prod(np.broadcast_shapes(*map(np.shape, arrays))) == 1:
        return True
    if any(type(a) is Tracer for a in arrays):
        return False
    rows = np.stack([a.ravel() for a in np.broadcast_arrays(*map(np.asarray, arrays))])
    return len(np.unique(rows, axis=1).T) == rows.shape[1]


def _scattered_apply(x, entries, func, mode) -> Array:
    strided, left = index_read.view_strided(x, entries)
    if strided is not x:
        return put_back(x, index_read.strided_axes(x, entries), _scattered_apply(strided, left, func, mode))
    plan = gather_plan(entries, x.ndim)
    return ix.scatter_apply(x, plan.indices, func, ix.ScatterDimensionNumbers(*plan.numbers), update_shape=plan.shape, mode=mode)
