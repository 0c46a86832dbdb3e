"""StableHLO of `primitives.shaping`."""

from __future__ import annotations

from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.primitives import shaping


@lowers(shaping.rev_p)
def _rev(emit, eqn, operands):
    (out,) = eqn.outvars
    return emit.op(
        f"stablehlo.reverse {operands[0]}, dims = [{numbers(eqn.params['dimensions'])}] : {tensor_type(out.aval)}"
    )


@lowers(shaping.pad_p)
def _pad(emit, eqn, operands):
    x, fill = eqn.invars
    low, high, interior = zip(*eqn.params["padding_config"], strict=True) if x.aval.ndim else ((), (), ())
    return emit.op(
        f"stablehlo.pad {operands[0]}, {operands[1]}, low = [{numbers(low)}], high = [{numbers(high)}], "
        f"interior = [{numbers(interior)}] : ({tensor_type(x.aval)}, {tensor_type(fill.aval)}) -> "
        f"{tensor_type(eqn.outvars[0].aval)}"
    )


def slice_text(emit, x, x_aval, out_aval, starts, limits, strides):
    """A static slice `x[start:limit:stride]`."""
    ranges = ", ".join([f"{a}:{b}:{s}" for a, b, s in zip(starts, limits, strides, strict=True)])
    return emit.op(f"stablehlo.slice {x} [{ranges}] : ({tensor_type(x_aval)}) -> {tensor_type(out_aval)}")


@lowers(shaping.slice_p)
def _slice(emit, eqn, operands):
    (x,), (out,) = eqn.invars, eqn.outvars
    p = eqn.params
    return slice_text(
        emit, operands[0], x.aval, out.aval, p["start_indices"], p["limit_indices"], p["strides"]
    )


@lowers(shaping.concatenate_p)
def _concatenate(emit, eqn, operands):
    types = ", ".join(tensor_type(v.aval) for v in eqn.invars)
    return emit.op(
        f"stablehlo.concatenate {', '.join(operands)}, dim = {eqn.params['dimension']} : ({types}) -> "
        f"{tensor_type(eqn.outvars[0].aval)}"
    )


@lowers(shaping.split_p)
def _split(emit, eqn, operands):
    (x,), axis = eqn.invars, eqn.params["axis"]
    pieces, start = [], 0
    for out in eqn.outvars:
        starts, limits = [0] * x.aval.ndim, list(x.aval.shape)
        starts[axis], limits[axis] = start, start + out.aval.shape[axis]
        pieces.append(slice_text(emit, operands[0], x.aval, out.aval, starts, limits, [1] * x.aval.ndim))
        start = limits[axis]
    return pieces


@lowers(shaping.iota_p)
def _iota(emit, eqn, operands):
    return emit.iota(eqn.outvars[0].aval, eqn.params["dimension"])
