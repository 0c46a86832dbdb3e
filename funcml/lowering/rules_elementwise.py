"""StableHLO of `primitives.elementwise`."""

from __future__ import annotations

import functools
import math

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Literal, intern
from funcml.core.tracing import aval_of, trace
from funcml.lowering.emit import lowers, tensor_type
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, reduce_or
from funcml.primitives.keys import random_unwrap
from funcml.primitives.reductions import reduce_and


def same_type(operation: str):
    """The rule of an operation whose operands and result have one type: `stablehlo.add %a, %b : T`."""

    def rule(emit, eqn, operands):
        out = eqn.outvars[0].aval
        return emit.op(f"{operation} {', '.join(operands)} : {tensor_type(out)}")

    return rule


def chlo(operation: str):
    """The rule of a CHLO operation: `chlo.erf %a : T -> T`."""

    def rule(emit, eqn, operands):
        out = eqn.outvars[0].aval
        ins = ", ".join(tensor_type(shaped(out.shape, a.aval.dtype)) for a in eqn.invars)
        return emit.op(f"{operation} {', '.join(operands)} : {ins} -> {tensor_type(out)}")

    return rule


def written(function):
    """The rule of a primitive whose lowering is itself a function of primitives: a call of its program.

    Operands in f16 and bf16 are computed in f32.
    """

    def rule(emit, eqn, operands):
        shape = eqn.outvars[0].aval.shape
        jaxpr = _program(function, tuple([shaped(shape, a.aval.dtype) for a in eqn.invars]))
        return emit.call(jaxpr, operands, function.__name__.strip("_"))[0]

    return rule


@functools.lru_cache(maxsize=1024)
def _program(function, avals):
    dtype = avals[0].dtype
    narrow = dtypes.is_float(dtype) and dtypes.bit_width(dtype) < 32

    def body(*xs):
        if not narrow:
            return [function(*xs)]
        return [ew.convert(function(*[ew.convert(x, dtypes.float32) for x in xs]), dtype)]

    return intern(trace(body, avals, function.__name__)[0])


def corrected(raw, function):
    """The rule of a primitive that is `function(*xs, r)`, where r is what the rule `raw` gives for xs."""
    correct = written(function)

    def rule(emit, eqn, operands):
        name = raw(emit, eqn, operands)
        return correct(emit, eqn._replace(invars=(*eqn.invars, *eqn.outvars)), [*operands, name])

    return rule


def with_sign(raw, part, side: int = 1):
    """`raw` where a part of the result (`part` is ew.real or ew.imag) has the sign of that part of the operand, times `side`.

    It tells apart the two sides of a cut along an axis, such as -1 + 0i and -1 - 0i, which XLA does not.
    """

    def sides_of_cut(z, r):
        size = ew.abs(part(r))
        below = ew.lt_to(part(z), 0.0)
        signed = ew.select(below, ew.neg(size), size) if side > 0 else ew.select(below, size, ew.neg(size))
        return ew.complex(signed, ew.imag(r)) if part is ew.real else ew.complex(ew.real(r), signed)

    return corrected(raw, sides_of_cut)


def full(value, like):
    """An array of the type of `like` filled with `value`, for lowerings that are written in primitives."""
    aval = aval_of(like)
    return broadcast_in_dim(aval.dtype.type(value), aval.shape)


def compare(direction: str, float_kind: str = "FLOAT"):
    """The rule of a comparison."""

    def rule(emit, eqn, operands):
        out = eqn.outvars[0].aval
        dtype = eqn.invars[0].aval.dtype
        if dtypes.is_inexact(dtype):
            kind = float_kind
        else:
            kind = "SIGNED" if dtypes.is_signed(dtype) else "UNSIGNED"
        t = tensor_type(shaped(out.shape, dtype))
        return emit.op(f"stablehlo.compare {direction}, {', '.join(operands)}, {kind} : ({t}, {t}) -> {tensor_type(out)}")

    return rule


def by_kind(test, rule, otherwise):
    """`rule` where the dtype of the first operand passes `test`, else `otherwise`."""

    def chosen(emit, eqn, operands):
        return (rule if test(eqn.invars[0].aval.dtype) else otherwise)(emit, eqn, operands)

    return chosen


def typed(operation: str):
    """The rule of an operation that is written with its whole type: `stablehlo.real %a : (T) -> U`."""

    def rule(emit, eqn, operands):
        out = eqn.outvars[0].aval
        ins = ", ".join(tensor_type(shaped(out.shape, a.aval.dtype)) for a in eqn.invars)
        return emit.op(f"{operation} {', '.join(operands)} : ({ins}) -> {tensor_type(out)}")

    return rule


def same_value(emit, eqn, operands):
    """The rule of an operation that changes nothing."""
    return operands[0]


SAME_TYPE = {
    ew.add: "add",
    ew.sub: "subtract",
    ew.mul: "multiply",
    ew.neg: "negate",
    ew.rem: "remainder",
    ew.and_: "and",
    ew.or_: "or",
    ew.xor: "xor",
    ew.not_: "not",
    ew.floor: "floor",
    ew.ceil: "ceil",
}
for _primitive, _operation in SAME_TYPE.items():
    lowers(_primitive)(same_type(f"stablehlo.{_operation}"))


_divide = same_type("stablehlo.divide")


@lowers(ew.div)
def _div(emit, eqn, operands):
    """XLA multiplies by the reciprocal of a constant, which rounds twice; on a CPU not if the constant is hidden from it."""
    divisor, aval = eqn.invars[1], eqn.outvars[0].aval
    if emit.platform == "cpu" and type(divisor) is Literal and dtypes.is_float(aval.dtype) and not _exact_reciprocal(divisor):
        hidden = emit.op(f"stablehlo.optimization_barrier {operands[1]} : {tensor_type(aval)}")
        operands = [operands[0], hidden]
    return _divide(emit, eqn, operands)


def _exact_reciprocal(divisor: Literal) -> bool:
    """Whether it is a power of two (or 0, inf, nan), whose reciprocal loses nothing."""
    return abs(math.frexp(float(divisor.value))[0]) in (0.0, 0.5, math.inf) or math.isnan(float(divisor.value))


# Four words are stored as complex, where nan differs from nan.
@written
def _equal_keys(x, y):
    return reduce_and(ew.eq(random_unwrap(x), random_unwrap(y)), (aval_of(x).ndim,))


@written
def _different_keys(x, y):
    return reduce_or(ew.ne(random_unwrap(x), random_unwrap(y)), (aval_of(x).ndim,))


def _is_long_key(dtype) -> bool:
    return dtypes.is_key(dtype) and dtypes.is_complex(dtype.stored)


for _primitive, _direction in {ew.lt: "LT", ew.le: "LE", ew.gt: "GT", ew.ge: "GE"}.items():
    lowers(_primitive)(compare(_direction))
lowers(ew.eq)(by_kind(_is_long_key, _equal_keys, compare("EQ")))
lowers(ew.ne)(by_kind(_is_long_key, _different_keys, compare("NE")))
for _primitive, _direction in {ew.eq_to: "EQ", ew.lt_to: "LT", ew.le_to: "LE"}.items():
    lowers(_primitive)(compare(_direction, "TOTALORDER"))

lowers(ew.is_finite)(typed("stablehlo.is_finite"))
lowers(ew.nextafter)(chlo("chlo.next_after"))

# ---- complex parts

lowers(ew.real)(typed("stablehlo.real"))
lowers(ew.imag)(typed("stablehlo.imag"))


@lowers(ew.complex)
def _complex(emit, eqn, operands):
    out = eqn.outvars[0].aval
    part = tensor_type(shaped(out.shape, eqn.invars[0].aval.dtype))
    return emit.op(f"stablehlo.complex {', '.join(operands)} : ({part}, {part}) -> {tensor_type(out)}")


@lowers(ew.conj_p)
@written
def _conj(z):
    return ew.complex(ew.real(z), ew.neg(ew.imag(z)))


# ---- abs and sign


@written
def _complex_sign(z):
    """z / |z|, both halved where |z| might be inf though z is finite."""
    x, y = ew.real(z), ew.imag(z)
    size = ew.max(ew.abs(x), ew.abs(y))
    infinite = ew.eq(size, np.inf)
    x, y = (ew.select(infinite, _infinite_part(p), p) for p in (x, y))
    scale = ew.select(ew.gt(size, 1.0), full(0.5, x), full(1, x))
    x, y = ew.mul(x, scale), ew.mul(y, scale)
    norm = ew.abs(ew.complex(x, y))
    norm = ew.select(ew.eq(norm, 0.0), full(1, norm), norm)
    return ew.complex(ew.div(x, norm), ew.div(y, norm))


def _infinite_part(x):
    """A part of a number one part of which is infinite: an infinite part counts 1, a finite one nothing."""
    return ew.select(ew.eq(ew.abs(x), np.inf), ew.sign(x), ew.mul(full(0, x), ew.sign(x)))


@written
def _unsigned_sign(x):
    return ew.min(x, full(1, x))


lowers(ew.sign)(
    by_kind(
        dtypes.is_complex, _complex_sign, by_kind(dtypes.is_unsigned, _unsigned_sign, same_type("stablehlo.sign"))
    )
)


def _complex_abs(emit, eqn, operands):
    """|z|, and inf where a part of z is infinite and the other nan, as C's hypot has it."""
    (z,), (out,) = eqn.invars, eqn.outvars
    t, whole = tensor_type(out.aval), tensor_type(z.aval)
    size = emit.op(f"stablehlo.abs {operands[0]} : ({whole}) -> {t}")
    mask = tensor_type(out.aval.update(dtype=dtypes.bool_))
    inf = emit.constant(np.inf, out.aval)
    for part in ("real", "imag"):
        x = emit.op(f"stablehlo.{part} {operands[0]} : ({whole}) -> {t}")
        x = emit.op(f"stablehlo.abs {x} : {t}")
        infinite = emit.op(f"stablehlo.compare EQ, {x}, {inf}, FLOAT : ({t}, {t}) -> {mask}")
        size = emit.op(f"stablehlo.select {infinite}, {inf}, {size} : {mask}, {t}")
    return size


lowers(ew.abs)(
    by_kind(dtypes.is_complex, _complex_abs, by_kind(dtypes.is_unsigned, same_value, same_type("stablehlo.abs")))
)

# ---- max, min, clamp


def _first(x, y, before):
    """x where `before(x, y)` holds in the order by real part, then imaginary part, or where x is nan; else y."""
    x_re, y_re = ew.real(x), ew.real(y)
    tie = ew.and_(ew.eq(x_re, y_re), before(ew.imag(x), ew.imag(y)))
    return ew.select(ew.or_(ew.or_(before(x_re, y_re), tie), ew.ne(x, x)), x, y)


@written
def _complex_max(x, y):
    return ew.select(ew.ne(y, y), y, _first(x, y, ew.gt))


@written
def _complex_min(x, y):
    return ew.select(ew.ne(y, y), y, _first(x, y, ew.lt))


lowers(ew.max)(by_kind(dtypes.is_complex, _complex_max, same_type("stablehlo.maximum")))
lowers(ew.min)(by_kind(dtypes.is_complex, _complex_min, same_type("stablehlo.minimum")))


@lowers(ew.clamp_p)
def _clamp(emit, eqn, operands):
    out = eqn.outvars[0].aval
    lo, x, hi = operands
    t = tensor_type(out)
    return emit.op(f"stablehlo.clamp {lo}, {x}, {hi} : ({t}, {t}, {t}) -> {t}")


# ---- rounding, conversion, selection


@lowers(ew.round_p)
def _round(emit, eqn, operands):
    to_even = eqn.params["rounding_method"] == ew.RoundingMethod.TO_NEAREST_EVEN
    return same_type(f"stablehlo.round_nearest_{'even' if to_even else 'afz'}")(emit, eqn, operands)


@lowers(ew.convert_p)
def _convert(emit, eqn, operands):
    (x,), (out,) = eqn.invars, eqn.outvars
    if x.aval.dtype == out.aval.dtype:
        return operands[0]
    if dtypes.is_complex(x.aval.dtype) and dtypes.is_bool(out.aval.dtype):
        t = tensor_type(x.aval)
        zero = emit.constant(0, x.aval)
        return emit.op(f"stablehlo.compare NE, {operands[0]}, {zero}, FLOAT : ({t}, {t}) -> {tensor_type(out.aval)}")
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(out.aval.dtype):  # XLA crashes where it folds such a convert
        real = shaped(x.aval.shape, dtypes.real_dtype(x.aval.dtype))
        part = emit.op(f"stablehlo.real {operands[0]} : ({tensor_type(x.aval)}) -> {tensor_type(real)}")
        return part if real.dtype == out.aval.dtype else emit.convert(part, real, out.aval)
    return emit.convert(operands[0], x.aval, out.aval)


@lowers(ew.select_n_p)
def _select_n(emit, eqn, operands):
    which, *cases = operands
    out = eqn.outvars[0].aval
    selector = eqn.invars[0].aval
    if dtypes.is_bool(selector.dtype):
        if len(cases) == 1:
            return cases[0]
        return _select(emit, which, cases[1], cases[0], selector, out)
    chosen = cases[-1]
    predicate_aval = selector.update(dtype=dtypes.bool_)
    t = tensor_type(selector)
    for i in range(len(cases) - 2, -1, -1):
        index = emit.constant(i, selector)
        is_i = emit.op(f"stablehlo.compare LE, {which}, {index}, SIGNED : ({t}, {t}) -> {tensor_type(predicate_aval)}")
        chosen = _select(emit, is_i, cases[i], chosen, predicate_aval, out)
    return chosen


def _select(emit, predicate, on_true, on_false, predicate_aval, out):
    return emit.op(f"stablehlo.select {predicate}, {on_true}, {on_false} : {tensor_type(predicate_aval)}, {tensor_type(out)}")
