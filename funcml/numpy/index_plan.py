"""What an index means: NumPy-style indices as a list of entries, one for each axis of the array.

    parse        : (index, aval) -> entries          bounds of what is known are checked here
    gather_plan  : (entries, shape) -> Gathering     index arrays, ints and slices as one gather or scatter

Entries: `Point` takes one place of an axis and drops the axis, `Run` is a slice, `Rows` an array of places, `Mask` a
boolean array over one or more axes (or none), `NEW` a new axis, and `GAP` stands where the ellipsis was.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.errors import ConcretizationError, NonConcreteBooleanIndexError
from funcml.core.tracing import Tracer, aval_of, value_of
from funcml.core.values import Array
from funcml.lowering import pjrt
from funcml.numpy.creation import array
from funcml.numpy.promotion import as_array
from funcml.primitives.axes import broadcast_in_dim, expand_dims
from funcml.primitives.elementwise import add, convert, lt, rem, select
from funcml.primitives.indexing import GatherDimensionNumbers, index_dtype, wrap_negative
from funcml.primitives.shaping import concatenate
from funcml.primitives.tangents import scalar_of

__all__ = ["GAP", "Gathering", "Mask", "NEW", "Point", "Rows", "Run", "expand_masks", "gather_plan", "known", "parse"]


class Point(NamedTuple):
    """One place `at` of an axis: an int in bounds, or a scalar array."""

    axis: int
    at: Any


class Run(NamedTuple):
    """A slice: `size` places of an axis, `low` the lowest of them, in steps of `step`; backwards if that is negative."""

    axis: int
    low: Any
    size: int
    step: int

    def span(self) -> int:
        """The number of places from the lowest to the highest."""
        return (self.size - 1) * abs(self.step) + 1 if self.size else 0


class Rows(NamedTuple):
    """The places of an axis that an integer array names; `safe` if they are known to be in bounds."""

    axis: int
    values: Any
    safe: bool


class Mask(NamedTuple):
    """The places where a boolean array over axes `axis`, `axis + 1`, ... is true."""

    axis: int
    values: Any


class _Marker:
    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


NEW, GAP = _Marker("NEW"), _Marker("GAP")
_BAD_INDEX = "Indexer must have integer or boolean type, got indexer with type"
_INDICES = "ints, slices (`:`), an ellipsis (`...`), None, and integer or boolean arrays are valid indices"


def known(x) -> np.ndarray | None:
    """The elements of an array where they are known now, else None."""
    return None if type(x) is Tracer else np.asarray(x)


# ---- from Python to entries ----------------------------------------------------------------------------------


def parse(index, shape: tuple[int, ...], mode: str | None = None, wrap: bool = True) -> list:
    """The entries of `x[index]` for an array of this shape.

    With mode None or "promise_in_bounds", an int or a known array that is out of bounds is an IndexError; with any other
    mode it is kept as it is. Negative ones count from the end if `wrap`.
    """
    strict = mode is None or mode == "promise_in_bounds"
    items = [_item(_listed(i)) for i in index] if type(index) is tuple else [_item(index)]
    used = sum(map(_axes_used, items))
    if used > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed (shape {shape})")
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexError("an index can have only a single ellipsis (`...`)")
    entries: list = []
    axis = 0
    for item in items:
        if item is None:
            entries.append(NEW)
        elif item is Ellipsis:
            entries.append(GAP)
            entries.extend(Run(a, 0, shape[a], 1) for a in range(axis, axis + len(shape) - used))
            axis += len(shape) - used
        else:
            entries.append(_entry(item, axis, shape, mode, strict, wrap))
            axis += _axes_used(item)
    entries.extend(Run(a, 0, shape[a], 1) for a in range(axis, len(shape)))
    return entries


def _item(i):
    """An element of an index in normal form: int, slice, None, Ellipsis, or an integer or boolean array."""
    kind = type(i)
    if kind is int or kind is slice or i is None or i is Ellipsis:
        return i
    if kind is bool:
        return np.bool_(i)
    if not isinstance(i, Array | np.ndarray | np.generic):
        i = _foreign_item(i)
    if type(i) is int:
        return i
    dtype = i.dtype
    if dtypes.is_bool(dtype):
        return i
    if not dtypes.is_integer(dtype):
        raise TypeError(f"{_BAD_INDEX} {aval_of(i)}; use .astype(int)")
    return int(i) if i.ndim == 0 and type(i) is not Tracer else i


def _listed(i):
    """A list among several indices as an array: there it has one meaning."""
    if not isinstance(i, list):
        return i
    return as_array(np.zeros(0, np.int32)) if not i else array(i)


def _foreign_item(i):
    if isinstance(i, list | tuple):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed: it is ambiguous. Use arr[array(seq)] "
            f"for elements, here x[jnp.array({i!r})], or arr[tuple(seq)] for one index an axis"
        )
    if pjrt.is_foreign_array(i) or hasattr(i, "__jax_array__"):
        return as_array(i)
    try:
        return operator.index(i)
    except ConcretizationError:
        raise
    except TypeError:
        raise TypeError(f"{_BAD_INDEX} {type(i).__name__}, {i!r}: only {_INDICES}") from None


def _axes_used(item) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Array | np.ndarray | np.generic) and dtypes.is_bool(item.dtype):
        return item.ndim
    return 1


def _entry(item, axis: int, shape, mode, strict: bool, wrap: bool):
    if type(item) is slice:
        return _run(item, axis, shape[axis])
    if type(item) is int:
        return _point(item, axis, shape, mode, strict, wrap)
    if dtypes.is_bool(item.dtype):
        for a, n in enumerate(item.shape, axis):
            if n != shape[a]:
                raise IndexError(
                    f"boolean index did not match shape {shape} along axis {a}: the axis has size {shape[a]}, the mask {n}"
                )
        return Mask(axis, item)
    return _rows(item, axis, shape, mode, strict, wrap)


def _run(item: slice, axis: int, n: int) -> Run:
    try:
        start, stop, step = item.indices(n)
    except ConcretizationError:
        raise IndexError(
            f"x[{_slice_text(item)}]: the bounds of a slice decide the shape of the result, so they must be known, but one "
            "is a traced array; use lax.dynamic_slice (or lax.dynamic_slice_in_dim) with a size that is known, and "
            "lax.dynamic_update_slice to update"
        ) from None
    size = len(range(start, stop, step))
    if size < 2:
        return Run(axis, start if size else 0, size, 1)
    return Run(axis, start if step > 0 else start + (size - 1) * step, size, step)


def _slice_text(s: slice) -> str:
    def text(v):
        return "" if v is None else str(v.aval) if type(v) is Tracer else repr(v)

    return f"{text(s.start)}:{text(s.stop)}" + (f":{text(s.step)}" if s.step is not None else "")


def _point(i: int, axis: int, shape, mode, strict: bool, wrap: bool):
    n = shape[axis]
    at = i + n if i < 0 and wrap else i
    if 0 <= at < n:
        return Point(axis, at)
    if strict:
        raise _out_of_bounds(i, axis, shape)
    if mode == "wrap":
        return Rows(axis, np.int32(i % n), True) if n else Rows(axis, np.int32(0), False)
    info = np.iinfo(np.int64)
    return Rows(axis, np.int64(min(max(at, info.min), info.max)), False)


def _out_of_bounds(i: int, axis: int, shape) -> IndexError:
    return IndexError(
        f"index {i} out of bounds for axis {axis} with size {shape[axis]} (array of shape {shape}); to allow it, say what "
        'it means: x.at[idx].get(mode="clip") or mode="fill", x.at[idx].set(v, mode="drop")'
    )


def _rows(item, axis: int, shape, mode, strict: bool, wrap: bool) -> Rows:
    n, values = shape[axis], known(item)
    if values is None:
        return _runtime_rows(item, axis, n, mode, wrap)
    if not values.size:
        return Rows(axis, np.zeros(values.shape, np.int32), True)
    lowest, highest = int(values.min()), int(values.max())
    inside = (-n if wrap else 0) <= lowest and highest < n
    if strict and not inside:
        raise _out_of_bounds(lowest if lowest < (-n if wrap else 0) else highest, axis, shape)
    if mode == "wrap" and n:
        return Rows(axis, (values % n).astype(index_dtype(aval_of(values))), True)
    if lowest < 0 and wrap:
        values = values.astype(index_dtype(aval_of(values)))
        return Rows(axis, np.where(values < 0, values + n, values), inside)
    return Rows(axis, item, inside)


def _runtime_rows(item, axis: int, n: int, mode, wrap: bool) -> Rows:
    """An index known only at run time: negative ones and those of mode "wrap" are brought into range by equations."""
    dtype = index_dtype(item.aval)
    item = item if item.dtype == dtype else convert(item, dtype)
    if mode == "wrap" and n:
        left = rem(item, scalar_of(item.aval, n))
        return Rows(axis, select(lt(left, scalar_of(item.aval, 0)), add(left, scalar_of(item.aval, n)), left), True)
    return Rows(axis, wrap_negative(item, n) if wrap else item, False)


# ---- masks ---------------------------------------------------------------------------------------------------


def expand_masks(entries: list, what: str) -> tuple[list, tuple[int, ...]]:
    """Entries without masks, and the axes of length 1 that the array must be given for masks without axes.

    A mask of k axes is k index arrays (`np.nonzero`); its value must be known, for it decides the shape of the result.
    """
    if not any(type(e) is Mask for e in entries):
        return entries, ()
    expanded: list = []
    inserted: list[int] = []
    for e in entries:
        if e is NEW or e is GAP:
            expanded.append(e)
            continue
        axis = e.axis + len(inserted)
        if type(e) is not Mask:
            expanded.append(e._replace(axis=axis))
            continue
        mask = _known_mask(e.values, what)
        if mask.ndim == 0:
            inserted.append(axis)
            expanded.append(Rows(axis, np.zeros(int(mask), np.int32), True))
        else:
            found = (i.astype(np.int32 if max(mask.shape) < 2**31 else np.int64) for i in np.nonzero(mask))
            expanded.extend(Rows(axis + k, i, True) for k, i in enumerate(found))
    return expanded, tuple(inserted)


def _known_mask(mask, what: str) -> np.ndarray:
    value = value_of(mask)
    if value is None:
        raise NonConcreteBooleanIndexError(
            f"{what} with a traced mask {mask.aval}: the number of true elements decides the shape, and in {mask.frame.name} "
            "it is not known. Write `jnp.where(mask, x, other)` for a result of the shape of x, `x[jnp.nonzero(mask, size=n)]` "
            "for n elements, or reduce with `where=mask`; `x.at[mask].set(v)` works with a v that is the same for all "
            "elements, or of the shape of x, and `jnp.place(x, mask, v, inplace=False)` puts values in order."
        )
    return np.asarray(value)


# ---- as one gather -------------------------------------------------------------------------------------------


class Gathering(NamedTuple):
    """The gather, or scatter, of entries with index arrays.

    `shape` is the shape of its result, `out_shape` that of x[index], which has the new axes as well.
    """

    indices: Any
    numbers: GatherDimensionNumbers
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    safe: bool
    single: bool


def gather_plan(entries: list, ndim: int) -> Gathering:
    """Entries without masks, whose slices have step 1, as a gather.

    The index arrays and ints broadcast to the rows of the gather. Their axes stand in the result where the first of them
    stands in the index; in front, if something stands between them (NumPy's rule).
    """
    arrays = [e for e in entries if type(e) is Rows]
    rows = _broadcast_rows([np.shape(e.values) for e in arrays])
    advanced = [i for i, e in enumerate(entries) if type(e) in (Rows, Point)]
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    result: list = [] if together else ["row"] * len(rows)
    sizes = [1] * ndim
    for i, e in enumerate(entries):
        if type(e) is Run:
            sizes[e.axis] = e.size
            result.append(e)
        elif e is NEW:
            result.append(NEW)
        elif i == advanced[0] and together:
            result.extend(["row"] * len(rows))
    lengths = iter(rows)
    out = [1 if r is NEW else r.size if type(r) is Run else next(lengths) for r in result]
    kept = [(r, n) for r, n in zip(result, out, strict=True) if r is not NEW]
    starts = {e.axis: _start(e) for e in entries if type(e) in (Rows, Point) or (type(e) is Run and _moves(e))}
    axes = tuple(sorted(starts))
    numbers = GatherDimensionNumbers(
        offset_dims=tuple([i for i, (r, _) in enumerate(kept) if type(r) is Run]),
        collapsed_slice_dims=tuple(sorted(e.axis for e in entries if type(e) in (Rows, Point))),
        start_index_map=axes,
    )
    return Gathering(
        _index_rows([starts[a] for a in axes], rows),
        numbers,
        tuple(sizes),
        tuple([n for _, n in kept]),
        tuple(out),
        all(e.safe for e in arrays),
        math.prod(rows) == 1,
    )


def _start(e):
    return e.values if type(e) is Rows else e.at if type(e) is Point else e.low


def _moves(run: Run) -> bool:
    """Whether a slice starts elsewhere than at 0."""
    return type(run.low) is not int or run.low != 0


def _broadcast_rows(shapes) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        found = " ".join(map(str, shapes))
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {found}") from None


def _index_rows(starts: list, rows: tuple[int, ...]):
    """The start indices as one array [rows.., component]."""
    if all(isinstance(s, int | np.ndarray | np.generic) for s in starts):
        columns = [np.broadcast_to(s, rows) for s in starts]
        wide = any(c.size and max(-int(c.min()), int(c.max())) >= 2**31 for c in columns)
        return np.stack(columns, -1).astype(np.int64 if wide else np.int32)
    dtype = index_dtype(*[aval_of(s) for s in starts if not isinstance(s, int)])
    columns = [dtype.type(s) if isinstance(s, int) else convert(s, dtype) for s in starts]
    return concatenate([expand_dims(_spread(c, rows), (len(rows),)) for c in columns], len(rows))


def _spread(x, shape):
    ndim = aval_of(x).ndim
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - ndim, len(shape))))
