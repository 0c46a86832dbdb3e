"""StableHLO of `primitives.sorting`."""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.rules_axes import numbers
from funcml.lowering.rules_reductions import compare, greatest, select, truth
from funcml.primitives import sorting

# ---- sort --------------------------------------------------------------------------------------------------


@lowers(sorting.sort_p)
def _sort(emit, eqn, operands):
    avals = [v.aval for v in eqn.invars]
    if emit.platform == "cpu" and len(operands) == 1 and dtypes.is_float(avals[0].dtype):
        return _sort_floats(emit, eqn, operands[0], avals[0])
    return _sort_by(emit, eqn, operands, avals, _before)


def _sort_by(emit, eqn, operands, avals, before):
    """A sort; `before(emit, x, y, aval)` gives whether x stands before y and whether they are equal."""
    scalars = [shaped((), a.dtype) for a in avals]
    arguments = ", ".join(f"%x{i}: {tensor_type(s)}, %y{i}: {tensor_type(s)}" for i, s in enumerate(scalars))
    types = ", ".join(map(tensor_type, avals))

    def body(emit):
        *ties, last = range(eqn.params["num_keys"])
        result = before(emit, f"%x{last}", f"%y{last}", scalars[last])[0]
        for i in reversed(ties):
            first, equal = before(emit, f"%x{i}", f"%y{i}", scalars[i])
            result = truth(emit, "or", first, truth(emit, "and", equal, result))
        emit.lines.append(f"stablehlo.return {result} : tensor<i1>")

    stable = str(eqn.params["is_stable"]).lower()
    return emit.ops(
        f'"stablehlo.sort"({", ".join(operands)}) <{{dimension = {eqn.params["dimension"]} : i64, is_stable = {stable}}}> ({{\n'
        f"^bb0({arguments}):\n{emit.region(body)}\n}}) : ({types}) -> ({types})",
        len(operands),
    )


def _before(emit, x, y, aval):
    """x < y, nan behind all else; and whether they are equal, nan to nan too."""
    if dtypes.is_complex(aval.dtype):
        part = aval.update(dtype=dtypes.real_dtype(aval.dtype))
        c, f = tensor_type(aval), tensor_type(part)
        (xr, xi), (yr, yi) = [
            [emit.op(f"stablehlo.{name} {v} : ({c}) -> {f}") for name in ("real", "imag")] for v in (x, y)
        ]
        (first, same), (second, both) = _before(emit, xr, yr, part), _before(emit, xi, yi, part)
        return truth(emit, "or", first, truth(emit, "and", same, second)), truth(emit, "and", same, both)
    less, equal = compare(emit, "LT", x, y, aval), compare(emit, "EQ", x, y, aval)
    if not dtypes.is_float(aval.dtype):
        return less, equal
    x_number, y_nan = compare(emit, "EQ", x, x, aval), compare(emit, "NE", y, y, aval)
    x_nan = compare(emit, "NE", x, x, aval)
    less = truth(emit, "or", less, truth(emit, "and", x_number, y_nan))
    return less, truth(emit, "or", equal, truth(emit, "and", x_nan, y_nan))


def _sort_floats(emit, eqn, x, aval):
    """A CPU sorts several times faster when the comparison is a bare <, which needs numbers: nan is sorted as inf, and as
    many of the last places as there were nan are filled with it."""
    axis, n = eqn.params["dimension"], aval.shape[eqn.params["dimension"]]
    bools, counts = aval.update(dtype=dtypes.bool_), aval.update(dtype=dtypes.int32)
    summed = counts.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))
    is_nan = compare(emit, "NE", x, x, aval)
    numbers_only = select(emit, is_nan, emit.constant(greatest(aval.dtype), aval), x, aval)
    (ordered,) = _sort_by(emit, eqn, [numbers_only], [aval], lambda *a: (compare(a[0], "LT", *a[1:]), None))
    ones, zero = emit.convert(is_nan, bools, counts), emit.constant(0, shaped((), dtypes.int32))
    count = emit.op(
        f"stablehlo.reduce({ones} init: {zero}) applies stablehlo.add across dimensions = [{axis}] : "
        f"({tensor_type(counts)}, tensor<i32>) -> {tensor_type(summed)}"
    )
    count = emit.broadcast(count, summed, counts, [i for i in range(aval.ndim) if i != axis])
    behind = emit.op(
        f"stablehlo.subtract {emit.constant(n - 1, counts)}, {emit.iota(counts, axis)} : {tensor_type(counts)}"
    )
    filled = compare(emit, "LT", behind, count, counts)
    return [select(emit, filled, emit.constant(np.nan, aval), ordered, aval)]


# ---- top_k -------------------------------------------------------------------------------------------------


@lowers(sorting.top_k_p)
def _top_k(emit, eqn, operands):
    x, (values, indices) = eqn.invars[0].aval, (v.aval for v in eqn.outvars)
    axis, k, (name,) = eqn.params["axis"], eqn.params["k"], operands
    if values.size == 0:
        return [emit.constant(0, values), emit.constant(0, indices)]
    last = x.ndim - 1
    to_last = [i for i in range(x.ndim) if i != axis] + [axis]
    back = sorted(range(x.ndim), key=to_last.__getitem__)
    name, x = _transposed(emit, name, x, to_last)
    wide = [a.update(shape=(*x.shape[:last], k)) for a in (values, indices)]
    found = emit.ops(
        f"chlo.top_k({name}, k = {k}) : {tensor_type(x)} -> ({', '.join(map(tensor_type, wide))})", 2
    )
    return [_transposed(emit, v, a, back)[0] for v, a in zip(found, wide, strict=True)]


def _transposed(emit, x, aval, order):
    if order == list(range(aval.ndim)):
        return x, aval
    out = aval.update(shape=tuple([aval.shape[i] for i in order]))
    types = f"({tensor_type(aval)}) -> {tensor_type(out)}"
    return emit.op(f"stablehlo.transpose {x}, dims = [{numbers(order)}] : {types}"), out
