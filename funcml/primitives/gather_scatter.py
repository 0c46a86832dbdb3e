"""Reading and writing many windows of an array at once, at positions known only at run time.

    gather  : (operand, indices [.., k]) -> [batch and window axes]      its transpose is scatter_add
    scatter : (operand, indices [.., k], updates [batch and window axes]) -> operand
    scatter_add, scatter_mul, scatter_min, scatter_max : likewise        scatter_add's transpose is gather

A row of `indices` is the start of a window of the operand, for the axes that the dimension numbers name. What
happens to a window that is not inside the operand is the `GatherScatterMode`; derivatives use the mode of the
function.

Where windows overlap, `scatter` keeps the last update in row-major order of the rows of `indices`, on every
platform, and the derivative belongs to that update alone.
"""

from __future__ import annotations

import enum
import math
import operator
from typing import NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.linear import is_undefined, is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, reshape
from funcml.primitives.batching import at_front, spread_at_front
from funcml.primitives.elementwise import convert, div, eq, ge, mul, neg, select
from funcml.primitives.shaping import iota
from funcml.primitives.tangents import instantiate, scalar_of, zero_tangent, zeros
from funcml.primitives.window_faults import gather_faults, scatter_faults

__all__ = [
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "as_indices",
    "gather",
    "index_dtype",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_last",
    "scatter_mul",
    "scatter_params",
    "scatter_sub",
    "window_sizes",
    "winners",
]

_I32 = np.dtype("int32")


class GatherScatterMode(enum.Enum):
    """What happens to a window that is not wholly inside the operand.

    CLIP moves it inside. FILL_OR_DROP reads the fill value, and drops an update. PROMISE_IN_BOUNDS says that there
    is none, so that nothing need be checked (such a window reads as with CLIP, and its update is dropped). ONE_HOT
    is read as FILL_OR_DROP.
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    ONE_HOT = "one_hot"

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of a name: "clip", "fill" or "drop" (also None), "promise_in_bounds", "one_hot"."""
        found = _MODES.get(mode)
        if found is None:
            raise ValueError(f'unknown mode {mode!r}: expected "clip", "fill", "drop" or "promise_in_bounds"')
        return found


_MODES: dict[str | GatherScatterMode | None, GatherScatterMode] = {
    **{mode: mode for mode in GatherScatterMode},
    **{mode.value: mode for mode in GatherScatterMode},
    None: GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
}
_CLIP, _FILL, _PROMISE = (
    GatherScatterMode.CLIP,
    GatherScatterMode.FILL_OR_DROP,
    GatherScatterMode.PROMISE_IN_BOUNDS,
)


class GatherDimensionNumbers(NamedTuple):
    """How the axes of operand, indices and result of a gather belong together.

    offset_dims: axes of the result that run inside a window; the others run over the rows of the indices
    collapsed_slice_dims: axes of the operand (of window length 1) that the result does not have
    start_index_map: the axis of the operand that each component of a row of the indices is a start for
    operand_batching_dims, start_indices_batching_dims: axes of operand and indices that run together
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the axes of operand, indices and updates of a scatter belong together: as those of the gather whose result
    the updates are."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def as_gather(self) -> GatherDimensionNumbers:
        """The dimension numbers of the gather that reads what the scatter writes."""
        return GatherDimensionNumbers(*self)


def index_dtype(*avals) -> np.dtype:
    """The dtype in which indices of these types are compared with lengths: int32, or int64 where needed."""
    return np.dtype("int64") if any(a.dtype.itemsize * 8 > 32 - dtypes.is_unsigned(a.dtype) for a in avals) else _I32


def as_indices(who: str, indices):
    """`indices` as an integer array with at least the axis of components, in int32 or int64."""
    aval = aval_of(indices)
    if not dtypes.is_integer(aval.dtype) or aval.ndim == 0:
        raise TypeError(f"{who} expects integer indices [.., components], got {aval}")
    return convert(indices, index_dtype(aval))


# ---- gather ------------------------------------------------------------------------------------------------


class Gather(Primitive):
    """The windows of x that start at the rows of the indices.

    With batch axes b of the indices and offset axes o of the result: out[b, o] = x[start(b) + o], where start(b)
    has indices[b, k] along axis start_index_map[k].
    """

    def type_rule(self, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **flags):
        d = dimension_numbers
        _refuse("gather", x, indices, d, gather_faults(x, indices, d, slice_sizes), slice_sizes)
        windows = [s for i, s in enumerate(slice_sizes) if i not in d.collapsed_slice_dims + d.operand_batching_dims]
        ndim = indices.ndim - 1 + len(windows)
        rows, windows = iter(indices.shape[:-1]), iter(windows)
        shape = tuple([next(windows) if i in d.offset_dims else next(rows) for i in range(ndim)])
        return shaped(shape, x.dtype, x.weak_type)

    # out' = gather(x', indices), with zero where there is nothing to read
    def jvp_rule(self, primals, tangents, **params):
        x, indices = primals
        out = bind(self, primals, params)
        if is_zero(tangents[0]):
            return out, zero_tangent(out)
        return out, bind(self, (tangents[0], indices), _zero_filled(params))

    # ct_x = sum of the ct of all windows that an element is in
    def transpose_rule(self, ct, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **flags):
        d = ScatterDimensionNumbers(*dimension_numbers)
        start = zeros(x.aval.update(dtype=aval_of(ct).dtype))
        return [scatter_add(start, indices, ct, d, mode=_reading(mode), **flags), None]

    def transpose_mask(self, mask, index, operands, *, dimension_numbers, mode, **params):
        if mask is None:
            return None
        nowhere = broadcast_in_dim(np.False_, aval_of(operands[0]).shape)
        return scatter_max(nowhere, operands[1], mask, ScatterDimensionNumbers(*dimension_numbers), mode=_reading(mode))

    def batch_rule(self, axis, operands, dims, *, dimension_numbers, slice_sizes, unique_indices, **rest):
        (x, indices), (x_dim, indices_dim) = operands, dims
        d, (batching, rows) = dimension_numbers, _batched_dims(dimension_numbers)
        offset = tuple([i + 1 for i in d.offset_dims])
        collapsed, starts = (tuple([i + 1 for i in v]) for v in d[1:3])
        if indices_dim is None:
            new = GatherDimensionNumbers((0, *offset), collapsed, starts, batching, d.start_indices_batching_dims)
            sizes = (axis.size, *slice_sizes)
        elif x_dim is None:
            new = GatherDimensionNumbers(offset, *d[1:4], rows)
            sizes, unique_indices, rest = slice_sizes, False, {**rest, "indices_are_sorted": False}
        else:
            new = GatherDimensionNumbers(offset, collapsed, starts, (0, *batching), (0, *rows))
            sizes = (min(axis.size, 1), *slice_sizes)
        params = {"dimension_numbers": new, "slice_sizes": sizes, "unique_indices": unique_indices, **rest}
        return bind(self, (at_front(x, x_dim), at_front(indices, indices_dim)), params), 0


def _batched_dims(d):
    """The batching axes of operand and of indices, when each has one more axis in front."""
    return tuple([i + 1 for i in d[3]]), tuple([i + 1 for i in d[4]])


def _zero_filled(params):
    return {
        **params,
        "mode": _reading(params["mode"]),
        "fill_value": None if params["fill_value"] is None else "0",
    }


def _reading(mode):
    """The mode that treats every window as a gather of this mode does."""
    return _CLIP if mode is _PROMISE else mode


def _writing(mode):
    """The mode that treats every window as a scatter of this mode does."""
    return _FILL if mode is _PROMISE else mode


def _refuse(who, x, indices, d, faults, other) -> None:
    """Raises the first of the faults; `other` is what came beside the operand and the indices."""
    for fault in faults:
        raise TypeError(f"{who} of {x} with indices {indices}: {fault}; got {other} and {d}")


gather_p = Gather("gather")


def gather(
    operand,
    start_indices,
    dimension_numbers,
    slice_sizes,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value=None,
):
    """The windows of `operand` of `slice_sizes` that start at the rows of `start_indices` [.., components].

    `dimension_numbers` is a `GatherDimensionNumbers`. Without `mode`, indices are promised to be in bounds. With
    mode "fill", `fill_value` (static) is read outside: by default nan, or the lowest integer (unsigned: the
    highest), or True.
    """
    mode = _PROMISE if mode is None else GatherScatterMode.from_any(mode)
    mode = _FILL if mode is GatherScatterMode.ONE_HOT else mode
    params = {
        "dimension_numbers": GatherDimensionNumbers(*map(tuple, dimension_numbers)),
        "slice_sizes": tuple(map(operator.index, slice_sizes)),
        "unique_indices": bool(unique_indices),
        "indices_are_sorted": bool(indices_are_sorted),
        "mode": mode,
        "fill_value": _fill_text(aval_of(operand).dtype, fill_value) if mode is _FILL else None,
    }
    return bind(gather_p, (operand, as_indices("gather", start_indices)), params)


def _fill_text(dtype, value) -> str:
    """The fill as the parameter keeps it: text, which tells -0.0 from 0.0 and equals itself for nan."""
    if dtypes.is_key(dtype):
        return "all bits set"
    if value is None:
        if dtypes.is_inexact(dtype):
            value = math.nan
        elif dtypes.is_bool(dtype):
            value = True
        else:
            info = dtypes.iinfo(dtype)
            value = info.min if dtypes.is_signed(dtype) else info.max
    return repr(np.asarray(value).astype(dtype).item())


# ---- scatter -----------------------------------------------------------------------------------------------


class Scatter(Primitive):
    """What all scatters have in common: types, batching, masks."""

    def type_rule(self, x, indices, updates, *, dimension_numbers, **params):
        d = dimension_numbers
        if updates.dtype != x.dtype:
            raise TypeError(f"{self.name} expects updates of the dtype of {x}, got {updates}; convert them first")
        _refuse(self.name, x, indices, d, scatter_faults(x, indices, updates, d), updates)
        return shaped(x.shape, x.dtype, x.weak_type and updates.weak_type)

    def batch_rule(self, axis, operands, dims, *, dimension_numbers, **params):
        (x, indices, updates), (x_dim, indices_dim, updates_dim) = operands, dims
        d, (batching, rows) = dimension_numbers, _batched_dims(dimension_numbers)
        window = tuple([i + 1 for i in d.update_window_dims])
        inserted, starts = (tuple([i + 1 for i in v]) for v in d[1:3])
        if indices_dim is None:
            new = ScatterDimensionNumbers((0, *window), inserted, starts, batching, d.scatter_indices_batching_dims)
        else:
            new = ScatterDimensionNumbers(window, inserted, starts, (0, *batching), (0, *rows))
        new_operands = (
            spread_at_front(axis, x, x_dim),
            at_front(indices, indices_dim),
            spread_at_front(axis, updates, updates_dim),
        )
        return bind(self, new_operands, {"dimension_numbers": new, **params}), 0

    def _all_zero(self, primals, tangents, params):
        """The result and a zero tangent, if neither operand nor updates have one; else None."""
        if is_zero(tangents[0]) and is_zero(tangents[2]):
            out = bind(self, primals, params)
            return out, zero_tangent(out)
        return None


def window_sizes(ndim: int, updates_shape, d: ScatterDimensionNumbers) -> tuple[int, ...]:
    """The length of a window along each axis of the operand."""
    windows = iter([updates_shape[i] for i in d.update_window_dims])
    missing = d.inserted_window_dims + d.operand_batching_dims
    return tuple([1 if i in missing else next(windows) for i in range(ndim)])


def _read(x, operands, params, fill="0"):
    """The elements of `x` [axes of the operand] that the scatter writes to [axes of the updates].

    `fill` stands for those of an update that is dropped.
    """
    _, indices, updates = operands
    d = params["dimension_numbers"]
    mode = _writing(params["mode"])
    return bind(gather_p, (x, indices), {
        "dimension_numbers": d.as_gather(),
        "slice_sizes": window_sizes(aval_of(x).ndim, aval_of(updates).shape, d),
        "unique_indices": params["unique_indices"],
        "indices_are_sorted": params["indices_are_sorted"],
        "mode": mode,
        "fill_value": fill if mode is _FILL else None,
    })  # fmt: skip


def _write(primitive, x, operands, updates, params):
    return bind(primitive, (x, operands[1], updates), params)


def _rows(operands, params) -> int:
    """The number of windows that are written."""
    return math.prod(aval_of(operands[1]).shape[:-1])


class ScatterSet(Scatter):
    """x with each window replaced by its update; where windows overlap, by the last one."""

    # out' = scatter(x', indices, updates')
    def jvp_rule(self, primals, tangents, **params):
        found = self._all_zero(primals, tangents, params)
        if found is not None:
            return found
        updates = instantiate(tangents[2])
        return bind(self, primals, params), _write(self, instantiate(tangents[0]), primals, updates, params)

    # ct_x = ct where nothing was written;  ct_updates = ct where the update was the last, else zero
    def transpose_rule(self, ct, x, indices, updates, **params):
        operands = (x, indices, updates)
        ct_aval = aval_of(ct)
        ct_x = ct_updates = None
        if is_undefined(x):
            ct_x = _write(self, ct, operands, zeros(shaped(aval_of(updates).shape, ct_aval.dtype)), params)
        if is_undefined(updates):
            ct_updates = _read(ct, operands, params)
            if _rows(operands, params) > 1 and not params["unique_indices"]:
                ct_updates = select(winners(operands, params), ct_updates, zeros(aval_of(ct_updates)))
        return [ct_x, None, ct_updates]

    def transpose_mask(self, mask, index, operands, **params):
        if mask is None:
            return None
        if index == 0:
            return _write(self, mask, operands, broadcast_in_dim(np.False_, aval_of(operands[2]).shape), params)
        return _read(mask, operands, params, "False")


def winners(operands, params):
    """Whether each element of the updates is the one that a scatter keeps: the last written to its place."""
    return _last_written(operands, params)[1]


def _last_written(operands, params):
    """The number of the last row that is written to each element, or -1; and whether each update is of that row."""
    x, indices, updates = map(aval_of, operands)
    batch = [i for i in range(updates.ndim) if i not in params["dimension_numbers"].update_window_dims]
    rows = indices.shape[:-1]
    row_of = broadcast_in_dim(reshape(iota(_I32, (math.prod(rows),)), rows), updates.shape, batch)
    nowhere = broadcast_in_dim(np.int32(-1), x.shape)
    last = _write(scatter_max_p, nowhere, operands, row_of, params)
    return last, eq(_read(last, operands, params, "-1"), row_of)


def scatter_last(operands, params):
    """`scatter` made of operations that do not depend on the order of updates.

    -0.0 is what adds nothing: -0.0 + u = u for each u, 0.0 and -0.0 too.
    """
    x, _, updates = operands
    aval = aval_of(x)
    last, wins = _last_written(operands, params)
    nothing = scalar_of(aval, complex(-0.0, -0.0) if dtypes.is_complex(aval.dtype) else -0.0)
    cleared, written = (broadcast_in_dim(nothing, aval_of(v).shape) for v in (x, updates))
    cleared = select(ge(last, broadcast_in_dim(np.int32(0), aval.shape)), cleared, x)
    return _write(scatter_add_p, cleared, operands, select(wins, updates, written), params)


class ScatterAdd(Scatter):
    """x plus each update in its window."""

    # out' = scatter_add(x', indices, updates')
    def jvp_rule(self, primals, tangents, **params):
        found = self._all_zero(primals, tangents, params)
        if found is not None:
            return found
        out, t = bind(self, primals, params), tangents[0]
        if not is_zero(tangents[2]):
            t = _write(self, instantiate(t), primals, tangents[2], params)
        return out, t

    # ct_x = ct;  ct_updates = ct where the update was added
    def transpose_rule(self, ct, x, indices, updates, **params):
        ct_updates = _read(ct, (x, indices, updates), params) if is_undefined(updates) else None
        return [ct if is_undefined(x) else None, None, ct_updates]

    def transpose_mask(self, mask, index, operands, **params):
        return mask if mask is None or index == 0 else _read(mask, operands, params, "False")


class ScatterMul(Scatter):
    """x times each update in its window."""

    # out' = x' prod_k u_k + x sum_k u_k' prod_{j != k} u_j, for the updates u_k of each element
    def jvp_rule(self, primals, tangents, **params):
        found = self._all_zero(primals, tangents, params)
        if found is not None:
            return found
        x, indices, updates = primals
        out, total = bind(self, primals, params), None
        if not is_zero(tangents[0]):
            total = _write(self, tangents[0], primals, updates, params)
        if not is_zero(tangents[2]):
            factor = _read(x, primals, params)
            if _rows(primals, params) > 1 and not params["unique_indices"]:
                factor = mul(factor, _product_of_others(primals, params))
            base = zeros(aval_of(out).strong()) if total is None else total
            total = _write(scatter_add_p, base, primals, mul(tangents[2], factor), params)
        return out, total

    # ct_x = ct prod_k u_k;  ct_u_k = ct x (of one update for each element)
    def transpose_rule(self, ct, x, indices, updates, **params):
        operands = (x, indices, updates)
        if is_undefined(x):
            return [_write(self, ct, operands, updates, params), None, None]
        if not params["unique_indices"] and _rows(operands, params) > 1:
            raise NotImplementedError(
                f"scatter_mul is linear in its updates {updates.aval} only where each element has one; pass unique_indices=True"
            )
        return [None, None, _read(mul(ct, x), operands, params)]


def _product_of_others(operands, params):
    """For each update, the product of the other updates of the same element.

    The product of all that are not zero, and the number of zeros, tell it without a division by zero. Its own
    derivative is right unless two updates of an element are zero.
    """
    x, indices, updates = operands
    aval, shape = aval_of(updates).strong(), aval_of(x).shape
    one, zero = (broadcast_in_dim(scalar_of(aval, v), aval.shape) for v in (1, 0))
    is_null = eq(updates, zero)
    nonzero = select(is_null, one, updates)
    product = _write(scatter_mul_p, broadcast_in_dim(scalar_of(aval, 1), shape), operands, nonzero, params)
    count = _write(scatter_add_p, broadcast_in_dim(np.int32(0), shape), operands, convert(is_null, _I32), params)
    product, count = _read(product, operands, params), _read(count, operands, params)
    others_are_nonzero = eq(count, convert(is_null, _I32))
    return select(others_are_nonzero, div(product, nonzero), zero)


class ScatterExtremum(Scatter):
    """The largest, or smallest, of x and each update in its window."""

    # out' = mean of x' and u_k' over those of x and u_k that are equal to out
    def jvp_rule(self, primals, tangents, **params):
        found = self._all_zero(primals, tangents, params)
        if found is not None:
            return found
        x, indices, updates = primals
        out = bind(self, primals, params)
        dtype = aval_of(out).dtype
        from_x = convert(eq(x, out), dtype)
        from_updates = convert(eq(updates, _read(out, primals, params)), dtype)
        count = _write(scatter_add_p, from_x, primals, from_updates, params)
        total = mul(instantiate(tangents[0]), from_x)
        if not is_zero(tangents[2]):
            total = _write(scatter_add_p, total, primals, mul(tangents[2], from_updates), params)
        return out, div(total, count)


scatter_p = ScatterSet("scatter")
scatter_add_p = ScatterAdd("scatter_add")
scatter_mul_p = ScatterMul("scatter_mul")
scatter_min_p = ScatterExtremum("scatter_min")
scatter_max_p = ScatterExtremum("scatter_max")


def _scatter_function(primitive, doc):
    def function(
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ):
        params = scatter_params(dimension_numbers, indices_are_sorted, unique_indices, mode)
        return bind(primitive, (operand, as_indices(primitive.name, scatter_indices), updates), params)

    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = f"""{doc}

    Shapes: `scatter_indices` [.., components], each row the start of a window of `operand`; `updates` as the result
    of the gather with the same `dimension_numbers` (a `ScatterDimensionNumbers`), in the dtype of `operand`. By
    default (mode "drop") a window that is not inside the operand is dropped. `unique_indices` promises that windows
    do not overlap.
    """
    return function


def scatter_params(dimension_numbers, indices_are_sorted, unique_indices, mode) -> dict:
    mode = GatherScatterMode.from_any(mode)
    return {
        "dimension_numbers": ScatterDimensionNumbers(*map(tuple, dimension_numbers)),
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": _FILL if mode is GatherScatterMode.ONE_HOT else mode,
    }


scatter = _scatter_function(scatter_p, "`operand` with windows replaced by `updates`; where windows overlap the last one stays.")
scatter_add = _scatter_function(scatter_add_p, "`operand` plus `updates`, each in its window.")
scatter_mul = _scatter_function(scatter_mul_p, "`operand` times `updates`, each in its window.")
scatter_min = _scatter_function(scatter_min_p, "The minimum of `operand` and `updates`, each in its window.")
scatter_max = _scatter_function(scatter_max_p, "The maximum of `operand` and `updates`, each in its window.")


def scatter_sub(operand, scatter_indices, updates, dimension_numbers, **options):
    """`operand` minus `updates`, each in its window: `scatter_add` of their negatives, with the same options."""
    return scatter_add(operand, scatter_indices, neg(updates), dimension_numbers, **options)
