"""Reading x[index].

    getitem        : (x, index) -> Array             `Array.__getitem__`
    rewriting_take : (x, index, mode, ...) -> Array  `x.at[index].get(...)`

Ints and slices become `slice_`, `rev` and `reshape`; scalars known only at run time `dynamic_slice`; index arrays one
`gather`. Outside of a trace an array on a CPU is read with NumPy, through a view of its buffer: nothing is compiled.
On other devices the places are operands of a program that is compiled once for each form of index.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from funcml.core import tracing
from funcml.core.tracing import value_of
from funcml.core.values import Array
from funcml.lowering import pjrt
from funcml.lowering.array import DeviceArray, asarray
from funcml.lowering.execute import fused
from funcml.numpy.index_plan import GAP, NEW, Mask, Point, Rows, Run, expand_masks, gather_plan, parse
from funcml.numpy.promotion import as_array
from funcml.numpy.selected import Selected
from funcml.primitives.axes import expand_dims, reshape, transpose
from funcml.primitives.indexing import GatherScatterMode, dynamic_slice, gather
from funcml.primitives.shaping import rev, slice_
from funcml.primitives.tangents import zeros

__all__ = ["getitem", "rewriting_take"]

_frames = tracing._state


def getitem(x: Array, index) -> Any:
    """`x[index]` with an index of any kind that NumPy knows, except lists.

    An int or an array known now that is out of bounds raises IndexError; one known only at run time is clipped. A mask
    known only at run time gives a `Selected`, which can be reduced. Raises TypeError for what is no index.
    """
    if type(x) is DeviceArray and not _frames.frames:
        found = _read_on_host(x, index)
        if found is not None:
            return found
    return rewriting_take(x, index)


def rewriting_take(
    x: Array,
    index,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value=None,
    wrap_negative_indices: bool = True,
) -> Any:
    """`x[index]` with a choice of what an index out of bounds means.

    mode: None or "promise_in_bounds": known ones are an IndexError, others are clipped; "clip"; "fill" (or "drop"): reads
    `fill_value`, by default nan, or the lowest integer (unsigned: the highest), or True; "wrap": modulo the size.
    """
    x = as_array(x)
    mode = mode_name(mode)
    entries = parse(index, x.shape, mode, wrap_negative_indices)
    if _frames.frames:
        mask = unknown_mask(entries)
        if mask is not None:
            return _select(x, entries, mask)
    entries, inserted = expand_masks(entries, f"indexing {x.aval}")
    x = with_axes(x, inserted)
    options = (mode, fill_value, bool(indices_are_sorted), bool(unique_indices))
    if _frames.frames:
        return read(x, entries, options)
    form, starts, arrays = split_entries(entries)
    return _read_compiled(form, options, x, starts, *arrays)


def unknown_mask(entries: list) -> Mask | None:
    """The mask among the entries, if its value is not known now and there are no other index arrays."""
    masks = [e for e in entries if type(e) is Mask]
    if len(masks) != 1 or any(type(e) is Rows for e in entries) or value_of(masks[0].values) is not None:
        return None
    return masks[0]


def without_mask(entries: list, mask: Mask, shape) -> list:
    """The entries with all places of the axes of the mask in its place."""
    runs = [Run(a, 0, shape[a], 1) for a in range(mask.axis, mask.axis + np.ndim(mask.values))]
    return [r for e in entries for r in (runs if e is mask else (e,))]


def _select(x, entries: list, mask: Mask) -> Selected:
    """x[mask] with slices and ints beside the mask, as values and mask."""
    if np.ndim(mask.values) == 0:
        x, entries = expand_dims(x, (mask.axis,)), [_behind(e, mask) for e in entries]
        mask = next(e for e in entries if type(e) is Mask)
    out = read(x, without_mask(entries, mask, x.shape), (None, None, False, False))
    ahead = [e for e in entries[: entries.index(mask)] if e is NEW or type(e) is Run]
    advanced = [i for i, e in enumerate(entries) if type(e) in (Point, Mask)]
    if advanced[-1] - advanced[0] + 1 == len(advanced):
        return Selected(out, mask.values, len(ahead))
    width = np.ndim(mask.values)
    order = [*range(len(ahead), len(ahead) + width), *range(len(ahead)), *range(len(ahead) + width, out.ndim)]
    return Selected(transpose(out, order), mask.values, 0)


def _behind(e, mask: Mask):
    """An entry of `x` as one of `x` with a new axis for a mask without axes."""
    if e is mask:
        return Mask(mask.axis, reshape(as_array(mask.values), (1,)))
    return e if e is NEW or e is GAP or e.axis < mask.axis else e._replace(axis=e.axis + 1)


@fused(static=("form", "options"))
def _read_compiled(form, options, x, starts, *arrays):
    return read(x, joined_entries(form, starts, arrays), options)


def _read_on_host(x: DeviceArray, index) -> DeviceArray | None:
    """`x[index]` by NumPy, or None if `x` is not on a CPU, or the index needs more care or is an error."""
    try:
        device = pjrt.buffer_device(x._buffer)
    except ValueError:
        return None
    if device.platform != "cpu":
        return None
    if type(index) is tuple:
        index = tuple([_host_item(i) for i in index])
    else:
        index = _host_item(index)
    try:
        values = x._host()[index]
    except (IndexError, TypeError, ValueError):
        return None
    return DeviceArray(pjrt.put(values, device), x.aval.update(shape=values.shape))


_PLAIN = (int, slice, type(None), type(Ellipsis), bool)


def _host_item(i):
    """What NumPy shall see for an element of an index; something it refuses, where it would take what we do not."""
    if type(i) in _PLAIN:
        return i
    if isinstance(i, Array | np.ndarray | np.generic) and i.dtype.kind in "biu":
        return np.asarray(i)
    return _REFUSED


_REFUSED = object()


def mode_name(mode) -> str | None:
    """The mode as None, "clip", "fill", "promise_in_bounds" or "wrap"."""
    if mode is None or mode == "wrap":
        return mode
    found = GatherScatterMode.from_any(mode)
    return "fill" if found is GatherScatterMode.ONE_HOT else found.value


# ---- as equations --------------------------------------------------------------------------------------------


def read(x, entries: list, options: tuple):
    """The equations of a read; `entries` without masks."""
    mode, fill_value, indices_are_sorted, unique_indices = options
    arrays = [e for e in entries if type(e) is Rows]
    clipped = mode != "fill" or all(e.safe for e in arrays)
    if all(np.ndim(e.values) == 0 for e in arrays) and clipped and not _reads_nothing(x, arrays):
        return reshape(view(x, entries), shape_without_rows(entries))
    x, entries = view_strided(x, entries)
    plan = gather_plan(entries, x.ndim)
    if _reads_nothing(x, arrays):
        if 0 in plan.out_shape:
            return zeros(x.aval.update(shape=plan.out_shape))
        axis = next(e.axis for e in arrays if x.shape[e.axis] == 0)
        raise IndexError(f"every index is out of bounds for axis {axis} with size 0 of {x.aval}")
    mode = "promise_in_bounds" if plan.safe else mode or "clip"
    out = gather(
        x, plan.indices, plan.numbers, plan.sizes, mode=mode, fill_value=fill_value,
        indices_are_sorted=indices_are_sorted or plan.single, unique_indices=unique_indices or plan.single,
    )  # fmt: skip
    return reshape(out, plan.out_shape)


def _reads_nothing(x, arrays) -> bool:
    return any(x.shape[e.axis] == 0 for e in arrays)


def shape_without_rows(entries) -> tuple[int, ...]:
    """The shape of x[index], where scalars are the only index arrays."""
    return tuple([e.size if type(e) is Run else 1 for e in entries if e is NEW or type(e) is Run])


def axis_entries(entries) -> list:
    """The entries that belong to an axis of the array, in its order."""
    return sorted([e for e in entries if e is not NEW and e is not GAP], key=operator.attrgetter("axis"))


def window_shape(entries) -> tuple[int, ...]:
    """The shape of `view(x, entries)`."""
    return tuple([e.size if type(e) is Run else 1 for e in axis_entries(entries)])


def view(x, entries):
    """x[index] with an axis of length 1 in the place of each int, and without new axes."""
    by_axis = axis_entries(entries)
    starts = [low_of(e) for e in by_axis]
    spans = [span_of(e) for e in by_axis]
    steps = [abs(e.step) if type(e) is Run else 1 for e in by_axis]
    if all(type(s) is int for s in starts):
        out = slice_(x, starts, [s + n for s, n in zip(starts, spans, strict=True)], steps)
    else:
        out = dynamic_slice(x, starts, spans, allow_negative_indices=False)
        out = slice_(out, (0,) * x.ndim, out.shape, steps)
    return rev(out, [e.axis for e in by_axis if type(e) is Run and e.step < 0])


def low_of(e):
    """The lowest place of an axis that an entry touches."""
    return e.low if type(e) is Run else e.at if type(e) is Point else e.values


def span_of(e) -> int:
    """The number of places from the lowest to the highest that an entry touches."""
    return e.span() if type(e) is Run else 1


def with_axes(x, axes):
    """`x` with the axes of length 1 that masks without axes index."""
    return expand_dims(x, axes) if axes else x


def strided_axes(x, entries) -> list:
    """The slices among `entries` whose step is not 1, and all of the other axes."""
    taken = {e.axis: e for e in entries if type(e) is Run and e.step != 1}
    return [taken.get(a, Run(a, 0, n, 1)) for a, n in enumerate(x.shape)]


def view_strided(x, entries):
    """`x` with its strided slices taken, and the entries that are left to do; both as they are if there are none."""
    if not any(type(e) is Run and e.step != 1 for e in entries):
        return x, entries
    left = [Run(e.axis, 0, e.size, 1) if type(e) is Run and e.step != 1 else e for e in entries]
    return view(x, strided_axes(x, entries)), left


# ---- compiled once for each form -----------------------------------------------------------------------------


def split_entries(entries) -> tuple[tuple, DeviceArray | None, list]:
    """The form of entries (hashable), their starts as one array, and their index arrays."""
    form: list = []
    starts: list[int] = []
    arrays: list = []
    for e in entries:
        if type(e) is Point:
            form.append(("point", e.axis))
            starts.append(e.at)
        elif type(e) is Run:
            form.append(("run", e.axis, e.size, e.step, e.low != 0))
            if e.low:
                starts.append(e.low)
        elif type(e) is Rows:
            form.append(("rows", e.axis, e.safe))
            arrays.append(e.values)
        else:
            form.append(e)
    return tuple(form), _starts_array(tuple(starts)) if starts else None, arrays


@functools.lru_cache(maxsize=4096)
def _starts_array(starts: tuple[int, ...]) -> DeviceArray:
    return asarray(np.array(starts, np.int32 if max(starts) < 2**31 else np.int64))


def joined_entries(form, starts, arrays) -> list:
    """The entries again, with starts and index arrays known only at run time."""
    count = 0 if starts is None else starts.shape[0]
    scalars = iter([reshape(slice_(starts, (i,), (i + 1,)), ()) for i in range(count)])
    arrays = iter(arrays)
    entries: list = []
    for e in form:
        if e is NEW or e is GAP:
            entries.append(e)
        elif e[0] == "point":
            entries.append(Point(e[1], next(scalars)))
        elif e[0] == "run":
            entries.append(Run(e[1], next(scalars) if e[4] else 0, e[2], e[3]))
        else:
            entries.append(Rows(e[1], next(arrays), e[2]))
    return entries
