"""StableHLO of `primitives.sorting`.

XLA's CPU backend sorts one operand several times faster than others, if the comparison is a bare `<`. So there floats are
sorted without their nan, and what follows a key of up to 32 bits is sorted by numbers of 64, the key above the place.
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.lowering.rules_reductions import compare, greatest, select, truth
from funcml.primitives import sorting

# ---- sort --------------------------------------------------------------------------------------------------


@lowers(sorting.sort_p)
def _sort(emit, eqn, operands):
    avals = [v.aval for v in eqn.invars]
    key = avals[0]
    if emit.platform == "cpu" and len(operands) == 1 and dtypes.is_float(key.dtype):
        return _sort_floats(emit, eqn, operands[0], key)
    if emit.platform == "cpu" and len(operands) > 1 and eqn.params["num_keys"] == 1 and _fits_beside_its_place(key, eqn):
        return _sort_packed(emit, eqn, operands, avals)
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


def _bare_less(emit, x, y, aval):
    return compare(emit, "LT", x, y, aval), None


def _sort_floats(emit, eqn, x, aval):
    """A bare < needs numbers: nan is sorted as inf, and as many of the last places as there were nan are filled with it."""
    axis, n = eqn.params["dimension"], aval.shape[eqn.params["dimension"]]
    bools, counts = aval.update(dtype=dtypes.bool_), aval.update(dtype=dtypes.int32)
    summed = counts.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))
    is_nan = compare(emit, "NE", x, x, aval)
    numbers_only = select(emit, is_nan, emit.constant(greatest(aval.dtype), aval), x, aval)
    (ordered,) = _sort_by(emit, eqn, [numbers_only], [aval], _bare_less)
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


_U32, _U64 = dtypes.uint32, dtypes.uint64


def _fits_beside_its_place(key, eqn) -> bool:
    """Whether key and place fit into 64 bits; short axes are not worth the work."""
    narrow = not dtypes.is_complex(key.dtype) and dtypes.bit_width(key.dtype) <= 32
    return narrow and 256 <= key.shape[eqn.params["dimension"]] < 2**31


def _sort_packed(emit, eqn, operands, avals):
    """Sorts key * 2^32 + place, whose low halves are then the permutation of all operands."""
    axis, aval = eqn.params["dimension"], avals[0].update(weak_type=False)
    wide, t = aval.update(dtype=_U64), tensor_type(aval.update(dtype=_U64))
    high = emit.convert(_ordered_bits(emit, operands[0], aval), aval.update(dtype=_U32), wide)
    high = emit.op(f"stablehlo.shift_left {high}, {emit.constant(32, wide)} : {t}")
    packed = emit.op(f"stablehlo.or {high}, {emit.iota(wide, axis)} : {t}")
    (packed,) = _sort_by(emit, eqn, [packed], [wide], _bare_less)
    place_aval = aval.update(shape=(*aval.shape, 1), dtype=dtypes.int32)
    low = emit.op(f"stablehlo.and {packed}, {emit.constant(2**32 - 1, wide)} : {t}")
    places = emit.convert(low, wide, aval.update(dtype=dtypes.int32))
    places = emit.op(
        f"stablehlo.reshape {places} : ({tensor_type(aval.update(dtype=dtypes.int32))}) -> {tensor_type(place_aval)}"
    )
    return [_taken(emit, x, a, places, place_aval, axis) for x, a in zip(operands, avals, strict=True)]


def _ordered_bits(emit, x, aval):
    """Unsigned 32-bit numbers in the order of `x`: 0 and -0 are one number, all nan are the greatest."""
    bits = aval.update(dtype=_U32)
    t = tensor_type(bits)
    top = emit.constant(2**31, bits)
    if dtypes.is_bool(aval.dtype) or dtypes.is_unsigned(aval.dtype):
        return x if aval is bits else emit.convert(x, aval, bits)
    middle = aval.update(dtype=dtypes.float32 if dtypes.is_float(aval.dtype) else dtypes.int32)
    x = x if middle is aval else emit.convert(x, aval, middle)
    if dtypes.is_float(aval.dtype):
        zero = emit.constant(0, middle)
        x = select(emit, compare(emit, "EQ", x, zero, middle), zero, x, middle)
        x = select(emit, compare(emit, "NE", x, x, middle), emit.constant(np.nan, middle), x, middle)
    x = emit.op(f"stablehlo.bitcast_convert {x} : ({tensor_type(middle)}) -> {t}")
    flipped = emit.op(f"stablehlo.xor {x}, {top} : {t}")
    if not dtypes.is_float(aval.dtype):
        return flipped
    return select(emit, compare(emit, "GE", x, top, bits), emit.op(f"stablehlo.not {x} : {t}"), flipped, bits)


def _taken(emit, x, aval, places, place_aval, axis):
    """`x[places]` along `axis`."""
    others = numbers([i for i in range(aval.ndim) if i != axis])
    return emit.op(
        f'"stablehlo.gather"({x}, {places}) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [{axis}], '
        f"operand_batching_dims = [{others}], start_indices_batching_dims = [{others}], start_index_map = [{axis}], "
        f"index_vector_dim = {aval.ndim}>, slice_sizes = array<i64: {numbers([1] * aval.ndim)}>}}> : "
        f"({tensor_type(aval)}, {tensor_type(place_aval)}) -> {tensor_type(aval)}"
    )


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
