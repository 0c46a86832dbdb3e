"""StableHLO of `primitives.reductions`.

A running reduction is written in one of two ways, from one function that combines two values:

    a loop over the axis   n steps, in place, in the order of NumPy; quick to compile, and on a CPU quick to run
    a tree                 log n levels of operations on whole arrays
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.lowering.rules_axes import reduce_with
from funcml.lowering.rules_shaping import slice_text
from funcml.primitives import reductions as red

_I32 = dtypes.int32


def _all_ones(dtype):
    if dtypes.is_bool(dtype):
        return True
    return -1 if dtypes.is_signed(dtype) else dtypes.iinfo(dtype).max


lowers(red.reduce_prod_p)(reduce_with("multiply", lambda dtype: 1))
lowers(red.reduce_and_p)(reduce_with("and", _all_ones))
lowers(red.reduce_xor_p)(reduce_with("xor", lambda dtype: False if dtypes.is_bool(dtype) else 0))


# ---- extremes ----------------------------------------------------------------------------------------------


def least(dtype):
    """The least value of a dtype: -inf where there is one."""
    if dtypes.is_bool(dtype):
        return False
    if dtypes.is_integer(dtype):
        return dtypes.iinfo(dtype).min
    if dtypes.is_complex(dtype):
        return complex(-np.inf, -np.inf)
    return -np.inf if np.isinf(dtype.type(-np.inf)) else dtypes.finfo(dtype).min


def greatest(dtype):
    """The greatest value of a dtype: inf where there is one."""
    if dtypes.is_bool(dtype):
        return True
    if dtypes.is_integer(dtype):
        return dtypes.iinfo(dtype).max
    if dtypes.is_complex(dtype):
        return complex(np.inf, np.inf)
    return np.inf if np.isinf(dtype.type(np.inf)) else dtypes.finfo(dtype).max


def compare(emit, direction: str, x: str, y: str, aval) -> str:
    """`x direction y` for two values of type `aval`."""
    kind = (
        "FLOAT" if dtypes.is_inexact(aval.dtype) else "SIGNED" if dtypes.is_signed(aval.dtype) else "UNSIGNED"
    )
    t = tensor_type(aval)
    predicate = tensor_type(aval.update(dtype=dtypes.bool_))
    return emit.op(f"stablehlo.compare {direction}, {x}, {y}, {kind} : ({t}, {t}) -> {predicate}")


def truth(emit, operation: str, a: str, b: str) -> str:
    """`a operation b` for two scalar bools: "and", "or"."""
    return emit.op(f"stablehlo.{operation} {a}, {b} : tensor<i1>")


def select(emit, predicate: str, x: str, y: str, aval) -> str:
    """`x` where `predicate`, else `y`; all of the shape of `aval`."""
    which = tensor_type(aval.update(dtype=dtypes.bool_, weak_type=False))
    return emit.op(f"stablehlo.select {predicate}, {x}, {y} : {which}, {tensor_type(aval)}")


def _extreme(operation: str, direction: str, unit):
    real = reduce_with(operation, unit)

    def rule(emit, eqn, operands):
        return (
            _complex_extreme(emit, eqn, operands, direction, unit)
            if dtypes.is_complex(eqn.invars[0].aval.dtype)
            else real(emit, eqn, operands)
        )

    return rule


def _complex_extreme(emit, eqn, operands, direction, unit):
    """The lexicographic extreme; an operand with a nan part wins."""
    (x,), (out,) = eqn.invars, eqn.outvars
    scalar = shaped((), x.aval.dtype)
    part = shaped((), dtypes.real_dtype(x.aval.dtype))
    c, f = tensor_type(scalar), tensor_type(part)
    start = emit.constant(unit(x.aval.dtype), scalar)

    def body(emit):
        re, im = (
            [emit.op(f"stablehlo.{name} {v} : ({c}) -> {f}") for v in ("%x", "%y")]
            for name in ("real", "imag")
        )
        ahead = compare(emit, direction, *re, part)
        tied = compare(emit, "EQ", *re, part)
        ahead = truth(emit, "or", ahead, truth(emit, "and", tied, compare(emit, direction, *im, part)))
        is_nan = compare(emit, "NE", "%x", "%x", scalar)
        chosen = select(emit, truth(emit, "or", ahead, is_nan), "%x", "%y", scalar)
        emit.lines.append(f"stablehlo.return {chosen} : {c}")

    return emit.op(
        f'"stablehlo.reduce"({operands[0]}, {start}) <{{dimensions = array<i64: {numbers(eqn.params["axes"])}>}}> ({{\n'
        f"^bb0(%x: {c}, %y: {c}):\n{emit.region(body)}\n}}) : ({tensor_type(x.aval)}, {c}) -> {tensor_type(out.aval)}"
    )


lowers(red.reduce_max_p)(_extreme("maximum", "GT", least))
lowers(red.reduce_min_p)(_extreme("minimum", "LT", greatest))


def _arg_extreme(direction: str, unit):
    """The reduction of (element, index): x stays if it is nan, is ahead of y, or is equal to y and stands before it."""

    def rule(emit, eqn, operands):
        (x,), (out,) = eqn.invars, eqn.outvars
        axis = eqn.params["axis"]
        value, index = shaped((), x.aval.dtype), shaped((), out.aval.dtype)
        indices = shaped(x.aval.shape, out.aval.dtype)
        v, i = tensor_type(value), tensor_type(index)

        def body(emit):
            wins = compare(emit, direction, "%x", "%y", value)
            tied = compare(emit, "EQ", "%x", "%y", value)
            if dtypes.is_float(value.dtype):
                x_nan = compare(emit, "NE", "%x", "%x", value)
                y_nan = compare(emit, "NE", "%y", "%y", value)
                tied = truth(emit, "or", tied, truth(emit, "and", x_nan, y_nan))
                only_x_nan = truth(emit, "and", x_nan, emit.op(f"stablehlo.not {y_nan} : tensor<i1>"))
                wins = truth(emit, "or", wins, only_x_nan)
            before = compare(emit, "LT", "%xi", "%yi", index)
            wins = truth(emit, "or", wins, truth(emit, "and", tied, before))
            pair = select(emit, wins, "%x", "%y", value), select(emit, wins, "%xi", "%yi", index)
            emit.lines.append(f"stablehlo.return {', '.join(pair)} : {v}, {i}")

        starts = emit.constant(unit(x.aval.dtype), value), emit.constant(0, index)
        kept = tensor_type(shaped(out.aval.shape, x.aval.dtype))
        return emit.ops(
            f'"stablehlo.reduce"({operands[0]}, {emit.iota(indices, axis)}, {", ".join(starts)}) '
            f"<{{dimensions = array<i64: {axis}>}}> ({{\n^bb0(%x: {v}, %xi: {i}, %y: {v}, %yi: {i}):\n{emit.region(body)}\n}}) : "
            f"({tensor_type(x.aval)}, {tensor_type(indices)}, {v}, {i}) -> ({kept}, {tensor_type(out.aval)})",
            2,
        )[1]

    return rule


lowers(red.argmax_p)(_arg_extreme("GT", least))
lowers(red.argmin_p)(_arg_extreme("LT", greatest))


# ---- running reductions ------------------------------------------------------------------------------------


def _running(combine):
    """The rule of a running reduction. `combine(emit, earlier, later, aval)` joins two lists of values, associatively; the
    last value of the list is the result, the others (the factors of a recurrence) are steered by the operands."""

    def rule(emit, eqn, operands):
        aval = eqn.outvars[0].aval
        axis, reverse = eqn.params["axis"], eqn.params["reverse"]
        if aval.size == 0 or aval.shape[axis] == 1:
            return operands[-1]
        if emit.platform == "cpu" and _loop_is_fast(aval, axis):
            return _loop(emit, combine, operands, aval, axis, reverse)
        if reverse:
            operands = [_reversed(emit, x, aval, axis) for x in operands]
        out = _tree(emit, combine, operands, aval, axis)[-1]
        return _reversed(emit, out, aval, axis) if reverse else out

    return rule


def _loop_is_fast(aval, axis) -> bool:
    """Whether a loop runs about as fast as a tree: unless each of its steps gathers many far-apart elements of a large array."""
    rows, run = math.prod(aval.shape[:axis]), math.prod(aval.shape[axis + 1 :])
    return aval.size < 2**18 or rows == 1 or run >= 16


def _reversed(emit, x, aval, axis):
    return emit.op(f"stablehlo.reverse {x}, dims = [{axis}] : {tensor_type(aval)}")


def _loop(emit, combine, operands, aval, axis, reverse):
    """The result overwrites the last operand, place by place; the value of the previous place is carried."""
    n, step, t = aval.shape[axis], _with_length(aval, axis, 1), tensor_type(aval)
    first = n - 1 if reverse else 0
    s = tensor_type(step)
    counter = shaped((), _I32)
    one, length, last, zero = (emit.constant(k, counter) for k in (1, n, n - 1, 0))
    carried = _part(emit, operands[-1], aval, axis, first, first + 1)
    i, here, x, *factors = (emit.fresh() for _ in range(2 + len(operands)))

    def condition(emit):
        emit.lines.append(f"stablehlo.return {compare(emit, 'LT', i, length, counter)} : tensor<i1>")

    def body(emit):
        at = emit.op(f"stablehlo.subtract {last}, {i} : tensor<i32>") if reverse else i
        starts = ", ".join(at if k == axis else zero for k in range(aval.ndim))
        later = [
            emit.op(
                f"stablehlo.dynamic_slice {v}, {starts}, sizes = [{numbers(step.shape)}] : "
                f"({t}{', tensor<i32>' * aval.ndim}) -> {s}"
            )
            for v in (*factors, x)
        ]
        value = combine(emit, [None] * len(factors) + [here], later, step)[-1]
        whole = emit.op(
            f"stablehlo.dynamic_update_slice {x}, {value}, {starts} : "
            f"({t}, {s}{', tensor<i32>' * aval.ndim}) -> {t}"
        )
        after = emit.op(f"stablehlo.add {i}, {one} : tensor<i32>")
        emit.lines.append(f"stablehlo.return {', '.join([after, value, whole, *factors])} : {types}")

    types = ", ".join(["tensor<i32>", s, t] + [t] * len(factors))
    starts = [one, carried, operands[-1], *operands[:-1]]
    heads = ", ".join(f"{name} = {value}" for name, value in zip((i, here, x, *factors), starts, strict=True))
    return emit.ops(
        f"stablehlo.while({heads}) : {types} cond {{\n{emit.region(condition)}\n}} do {{\n{emit.region(body)}\n}}",
        len(starts),
    )[2]


def _with_length(aval, axis, n):
    return aval.update(shape=(*aval.shape[:axis], n, *aval.shape[axis + 1 :]))


def _part(emit, x, aval, axis, start, limit, stride=1):
    """`x[start:limit:stride]` along `axis`."""
    starts, limits, strides = [0] * aval.ndim, list(aval.shape), [1] * aval.ndim
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    out = _with_length(aval, axis, -(-(limit - start) // stride))
    return slice_text(emit, x, aval, out, starts, limits, strides)


def _tree(emit, combine, xs, aval, axis):
    """Neighbours are combined in pairs, the running reduction of the pairs gives the odd places, and one step from each of
    these gives the even places."""
    n = aval.shape[axis]
    if n == 1:
        return xs
    pairs = _with_length(aval, axis, n // 2)
    evens = [_part(emit, x, aval, axis, 0, n - n % 2, 2) for x in xs]
    odds = [_part(emit, x, aval, axis, 1, n, 2) for x in xs]
    at_odd = _tree(emit, combine, combine(emit, evens, odds, pairs), pairs, axis)
    at_even = [_part(emit, x, aval, axis, 0, 1) for x in xs]
    later = (n - 1) // 2
    if later:
        rest = _with_length(aval, axis, later)
        before = [_part(emit, s, pairs, axis, 0, later) for s in at_odd]
        stepped = combine(emit, before, [_part(emit, x, aval, axis, 2, n, 2) for x in xs], rest)
        first = _with_length(aval, axis, 1)
        at_even = [_joined(emit, [e, s], [first, rest], axis) for e, s in zip(at_even, stepped, strict=True)]
    return [_interleaved(emit, e, o, aval, axis) for e, o in zip(at_even, at_odd, strict=True)]


def _joined(emit, xs, avals, axis):
    out = _with_length(avals[0], axis, sum(a.shape[axis] for a in avals))
    types = ", ".join(map(tensor_type, avals))
    return emit.op(f"stablehlo.concatenate {', '.join(xs)}, dim = {axis} : ({types}) -> {tensor_type(out)}")


def _interleaved(emit, evens, odds, aval, axis):
    """[e0, o0, e1, o1, ..]: laid side by side on a new axis, which is then merged into `axis`."""
    n = aval.shape[axis]
    even_aval, odd_aval = _with_length(aval, axis, n - n // 2), _with_length(aval, axis, n // 2)
    head = evens if n % 2 == 0 else _part(emit, evens, even_aval, axis, 0, n // 2)
    pair = aval.update(shape=(*odd_aval.shape[: axis + 1], 1, *aval.shape[axis + 1 :]))
    columns = [
        emit.op(f"stablehlo.reshape {x} : ({tensor_type(odd_aval)}) -> {tensor_type(pair)}")
        for x in (head, odds)
    ]
    both = _joined(emit, columns, [pair, pair], axis + 1)
    both_aval, merged = _with_length(pair, axis + 1, 2), _with_length(aval, axis, n - n % 2)
    both = emit.op(f"stablehlo.reshape {both} : ({tensor_type(both_aval)}) -> {tensor_type(merged)}")
    if n % 2 == 0:
        return both
    tail = _part(emit, evens, even_aval, axis, n // 2, n // 2 + 1)
    return _joined(emit, [both, tail], [merged, _with_length(aval, axis, 1)], axis)


def _by(operation: str):
    def combine(emit, earlier, later, aval):
        return [emit.op(f"stablehlo.{operation} {earlier[0]}, {later[0]} : {tensor_type(aval)}")]

    return combine


# (a1, h1) then (a2, h2): h -> a2 (a1 h + h1) + h2. The loop asks for no product of factors, so a1 may be None.
def _recurrence(emit, earlier, later, aval):
    (a1, h1), (a2, h2) = earlier, later
    t = tensor_type(aval)
    a = a1 and emit.op(f"stablehlo.multiply {a2}, {a1} : {t}")
    return [a, emit.op(f"stablehlo.add {emit.op(f'stablehlo.multiply {a2}, {h1} : {t}')}, {h2} : {t}")]


# log(e^x + e^y) = max + log(1 + e^(min - max)), and max itself where it is infinite or nan
def _logaddexp(emit, earlier, later, aval):
    (x,), (y,), t = earlier, later, tensor_type(aval)
    high, low = (emit.op(f"stablehlo.{name} {x}, {y} : {t}") for name in ("maximum", "minimum"))
    gap = emit.op(f"stablehlo.exponential {emit.op(f'stablehlo.subtract {low}, {high} : {t}')} : {t}")
    total = emit.op(f"stablehlo.add {high}, {emit.op(f'stablehlo.log_plus_one {gap} : {t}')} : {t}")
    finite = emit.op(f"stablehlo.is_finite {high} : ({t}) -> {tensor_type(aval.update(dtype=dtypes.bool_))}")
    return [select(emit, finite, total, high, aval)]


lowers(red.cumsum_p)(_running(_by("add")))
lowers(red.cumprod_p)(_running(_by("multiply")))
lowers(red.cummax_p)(_running(_by("maximum")))
lowers(red.cummin_p)(_running(_by("minimum")))
lowers(red.cumlogsumexp_p)(_running(_logaddexp))
lowers(red.linear_recurrence_p)(_running(_recurrence))
