"""StableHLO of `primitives.elementwise`."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Literal
from funcml.lowering.emit import lowers, tensor_type
from funcml.primitives import elementwise as ew


def full_operands(emit, eqn, operands, shape) -> list[str]:
    """The operands, each scalar among them spread over `shape`."""
    full = []
    for atom, name in zip(eqn.invars, operands, strict=True):
        if atom.aval.shape != shape:
            wide = shaped(shape, atom.aval.dtype)
            if type(atom) is Literal:
                name = emit.constant(atom.value, wide)
            else:
                name = emit.broadcast(name, atom.aval, wide, ())
        full.append(name)
    return full


def same_type(operation: str):
    """The rule of an operation whose operands and result have one type: `stablehlo.add %a, %b : T`."""

    def rule(emit, eqn, operands):
        out = eqn.outvars[0].aval
        names = full_operands(emit, eqn, operands, out.shape)
        return emit.op(f"{operation} {', '.join(names)} : {tensor_type(out)}")

    return rule


def chlo(operation: str):
    """The rule of a CHLO operation: `chlo.erf %a : T -> T`."""

    def rule(emit, eqn, operands):
        out = eqn.outvars[0].aval
        names = full_operands(emit, eqn, operands, out.shape)
        ins = ", ".join(tensor_type(shaped(out.shape, a.aval.dtype)) for a in eqn.invars)
        return emit.op(f"{operation} {', '.join(names)} : {ins} -> {tensor_type(out)}")

    return rule


def compare(direction: str):
    """The rule of a comparison."""

    def rule(emit, eqn, operands):
        out = eqn.outvars[0].aval
        names = full_operands(emit, eqn, operands, out.shape)
        dtype = eqn.invars[0].aval.dtype
        if dtypes.is_inexact(dtype):
            kind = "FLOAT"
        else:
            kind = "SIGNED" if dtypes.is_signed(dtype) else "UNSIGNED"
        t = tensor_type(shaped(out.shape, dtype))
        return emit.op(f"stablehlo.compare {direction}, {', '.join(names)}, {kind} : ({t}, {t}) -> {tensor_type(out)}")

    return rule


SAME_TYPE = {
    ew.add: "add",
    ew.sub: "subtract",
    ew.mul: "multiply",
    ew.div: "divide",
    ew.neg: "negate",
    ew.and_: "and",
    ew.or_: "or",
    ew.xor: "xor",
    ew.not_: "not",
    ew.exp: "exponential",
    ew.log: "log",
    ew.sin: "sine",
    ew.cos: "cosine",
    ew.tanh: "tanh",
}
for _primitive, _operation in SAME_TYPE.items():
    lowers(_primitive)(same_type(f"stablehlo.{_operation}"))

for _primitive, _direction in {ew.eq: "EQ", ew.ne: "NE", ew.lt: "LT", ew.le: "LE", ew.gt: "GT", ew.ge: "GE"}.items():
    lowers(_primitive)(compare(_direction))


@lowers(ew.convert_p)
def _convert(emit, eqn, operands):
    (x,), (out,) = eqn.invars, eqn.outvars
    if x.aval.dtype == out.aval.dtype:
        return operands[0]
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_inexact(out.aval.dtype):
        real = shaped(x.aval.shape, dtypes.real_dtype(x.aval.dtype))
        part = emit.op(f"stablehlo.real {operands[0]} : ({tensor_type(x.aval)}) -> {tensor_type(real)}")
        return emit.convert(part, real, out.aval)
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
