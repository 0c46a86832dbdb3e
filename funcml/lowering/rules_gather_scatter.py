"""StableHLO of `primitives.gather_scatter`.

StableHLO's gather moves windows inside the operand and its scatter drops those that are not, so only the other two
cases are written out: the fill of a gather, and the moved windows of a scatter. A gather in CLIP mode is clamped
too, because XLA forgets to when it fuses one with another (CPU, jaxlib 0.10).
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.tracing import trace
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.primitives import gather_scatter as gs

_CLIP, _FILL = gs.GatherScatterMode.CLIP, gs.GatherScatterMode.FILL_OR_DROP


def _limits(emit, aval, x_shape, sizes, axes) -> tuple[str, str]:
    """The lowest and the highest start of a window along `axes`, spread over the indices."""
    highest = [x_shape[a] - sizes[a] for a in axes]
    lowest = emit.constant(0, aval)
    if len(set(highest)) == 1:
        return lowest, emit.constant(highest[0], aval)
    row = shaped((len(highest),), aval.dtype)
    name = emit.op(f"stablehlo.constant dense<[{numbers(highest)}]> : {tensor_type(row)}")
    return lowest, emit.broadcast(name, row, aval, (aval.ndim - 1,))


def _clamped(emit, indices, aval, x_shape, sizes, axes) -> str:
    if not aval.size:
        return indices
    lowest, highest = _limits(emit, aval, x_shape, sizes, axes)
    t = tensor_type(aval)
    return emit.op(f"stablehlo.clamp {lowest}, {indices}, {highest} : ({t}, {t}, {t}) -> {t}")


def _inside(emit, indices, aval, x_shape, sizes, axes) -> str:
    """Whether the window of each row of the indices is inside the operand: bool [rows]."""
    lowest, highest = _limits(emit, aval, x_shape, sizes, axes)
    t, flags = tensor_type(aval), aval.update(dtype=dtypes.bool_)
    above = emit.op(f"stablehlo.compare GE, {indices}, {lowest}, SIGNED : ({t}, {t}) -> {tensor_type(flags)}")
    below = emit.op(f"stablehlo.compare LE, {indices}, {highest}, SIGNED : ({t}, {t}) -> {tensor_type(flags)}")
    both = emit.op(f"stablehlo.and {above}, {below} : {tensor_type(flags)}")
    rows = shaped(aval.shape[:-1], dtypes.bool_)
    if aval.shape[-1] == 1:
        return emit.op(f"stablehlo.reshape {both} : ({tensor_type(flags)}) -> {tensor_type(rows)}")
    true = emit.constant(True, shaped((), dtypes.bool_))
    return emit.op(
        f"stablehlo.reduce({both} init: {true}) applies stablehlo.and across dimensions = [{aval.ndim - 1}] : "
        f"({tensor_type(flags)}, tensor<i1>) -> {tensor_type(rows)}"
    )


@lowers(gs.gather_p)
def _gather(emit, eqn, operands):
    (x, indices), (out,) = (a.aval for a in eqn.invars), (v.aval for v in eqn.outvars)
    d, sizes, mode = (eqn.params[k] for k in ("dimension_numbers", "slice_sizes", "mode"))
    if not out.size:
        return _splat(emit, 0, out)
    if not x.size:
        return _fill(emit, eqn.params["fill_value"] or "0", out)
    starts = operands[1]
    if mode is _CLIP:
        starts = _clamped(emit, starts, indices, x.shape, sizes, d.start_index_map)
    read = emit.op(
        f'"stablehlo.gather"({operands[0]}, {starts}) <{{dimension_numbers = #stablehlo.gather<'
        f"offset_dims = [{numbers(d.offset_dims)}], collapsed_slice_dims = [{numbers(d.collapsed_slice_dims)}], "
        f"operand_batching_dims = [{numbers(d.operand_batching_dims)}], "
        f"start_indices_batching_dims = [{numbers(d.start_indices_batching_dims)}], "
        f"start_index_map = [{numbers(d.start_index_map)}], index_vector_dim = {indices.ndim - 1}>, "
        f"indices_are_sorted = {_flag(eqn, 'indices_are_sorted')}, slice_sizes = array<i64{_array(sizes)}>}}> : "
        f"({tensor_type(x)}, {tensor_type(indices)}) -> {tensor_type(out)}"
    )
    if mode is not _FILL or not d.start_index_map:
        return read
    inside = _inside(emit, starts, indices, x.shape, sizes, d.start_index_map)
    flags = out.update(dtype=dtypes.bool_)
    batch = [i for i in range(out.ndim) if i not in d.offset_dims]
    inside = emit.broadcast(inside, shaped(indices.shape[:-1], dtypes.bool_), flags, batch)
    fill = _fill(emit, eqn.params["fill_value"], out)
    return emit.op(f"stablehlo.select {inside}, {read}, {fill} : {tensor_type(flags)}, {tensor_type(out)}")


def _fill(emit, text: str, aval) -> str:
    """The fill value of a gather, spread over its result."""
    if dtypes.is_key(aval.dtype):
        return _splat(emit, np.full(aval.dtype.itemsize, 0xFF, np.uint8).view(aval.dtype.stored)[0], aval)
    if dtypes.is_integer(aval.dtype):
        return _splat(emit, int(text), aval)
    if dtypes.is_bool(aval.dtype):
        return _splat(emit, text not in ("False", "0"), aval)
    return _splat(emit, complex(text) if dtypes.is_complex(aval.dtype) else float(text), aval)


def _splat(emit, value, aval) -> str:
    """A constant of this type."""
    return emit.constant(value, aval.update(dtype=aval.dtype.stored) if dtypes.is_key(aval.dtype) else aval)


def _flag(eqn, name: str) -> str:
    return "true" if eqn.params[name] else "false"


def _array(values) -> str:
    return f": {numbers(values)}" if values else ""


def scatter_with(emit, eqn, operands, combine) -> str:
    """A scatter whose windows are combined with what they replace by `combine(old, new) -> name`."""
    x, indices, updates = (a.aval for a in eqn.invars)
    d, (old, starts, new) = eqn.params["dimension_numbers"], operands
    if not updates.size:
        return old
    if eqn.params["mode"] is _CLIP:
        sizes = gs.window_sizes(x.ndim, updates.shape, d)
        starts = _clamped(emit, starts, indices, x.shape, sizes, d.scatter_dims_to_operand_dims)
    scalar = tensor_type(shaped((), x.dtype))
    a, b = emit.fresh(), emit.fresh()

    def body(emit):
        emit.constants = {}
        emit.lines.append(f"stablehlo.return {combine(a, b)} : {scalar}")

    return emit.op(
        f'"stablehlo.scatter"({old}, {starts}, {new}) <{{scatter_dimension_numbers = #stablehlo.scatter<'
        f"update_window_dims = [{numbers(d.update_window_dims)}], "
        f"inserted_window_dims = [{numbers(d.inserted_window_dims)}], "
        f"input_batching_dims = [{numbers(d.operand_batching_dims)}], "
        f"scatter_indices_batching_dims = [{numbers(d.scatter_indices_batching_dims)}], "
        f"scatter_dims_to_operand_dims = [{numbers(d.scatter_dims_to_operand_dims)}], "
        f"index_vector_dim = {indices.ndim - 1}>, indices_are_sorted = {_flag(eqn, 'indices_are_sorted')}, "
        f"unique_indices = {_flag(eqn, 'unique_indices')}}}> ({{\n^bb0({a}: {scalar}, {b}: {scalar}):\n"
        f"{emit.region(body)}\n}}) : ({tensor_type(x)}, {tensor_type(indices)}, {tensor_type(updates)}) -> "
        f"{tensor_type(x)}"
    )


def _scatter_by(operation: str):
    """The rule of a scatter that combines by one StableHLO operation."""

    def rule(emit, eqn, operands):
        scalar = tensor_type(shaped((), eqn.invars[0].aval.dtype))
        return scatter_with(emit, eqn, operands, lambda old, new: emit.op(f"stablehlo.{operation} {old}, {new} : {scalar}"))

    return rule


for _primitive, _operation in {
    gs.scatter_add_p: "add",
    gs.scatter_mul_p: "multiply",
    gs.scatter_min_p: "minimum",
    gs.scatter_max_p: "maximum",
}.items():
    lowers(_primitive)(_scatter_by(_operation))


@lowers(gs.scatter_p)
def _scatter_set(emit, eqn, operands):
    x, indices = eqn.invars[0].aval, eqn.invars[1].aval
    repeats = not eqn.params["unique_indices"] and math.prod(indices.shape[:-1]) > 1
    if emit.platform != "cpu" and repeats and not dtypes.is_key(x.dtype):
        return _last_of_each(emit, eqn, operands)
    return scatter_with(emit, eqn, operands, lambda old, new: new)


def _last_of_each(emit, eqn, operands):
    """A scatter written so that the last update of each element stays, where XLA keeps any of them."""
    avals = [a.aval for a in eqn.invars]
    program, _ = trace(lambda *values: [gs.scatter_last(values, eqn.params)], avals, "scatter")
    return emit.program(program, operands)[0]
