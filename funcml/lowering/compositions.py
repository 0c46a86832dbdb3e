"""Primitives that a platform has no operation for, as programs of other primitives.

    composed : the equations of a function, in place
    repeated : a loop that runs a known number of times

Functions are recorded like a user's, and written by the rules of the primitives that they use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from funcml.core.avals import ShapedArray, shaped
from funcml.core.tracing import trace
from funcml.lowering.emit import Emitter, tensor_type

__all__ = ["composed", "repeated"]

_COUNTER = shaped((), np.dtype("int32"))


def composed(emit: Emitter, function: Callable, operands: Sequence[str], avals: Sequence[ShapedArray]) -> list[str]:
    """Writes what `function` does with operands of these types; gives the names of its results (a sequence of arrays)."""
    jaxpr, _ = trace(lambda *xs: list(function(*xs)), list(avals), "composed")
    return emit.program(jaxpr, operands)


def repeated(
    emit: Emitter,
    times: int,
    body: Callable,
    constants: Sequence[str],
    constant_avals: Sequence[ShapedArray],
    carry: Sequence[str],
    carry_avals: Sequence[ShapedArray],
) -> list[str]:
    """Writes `carry = body(i, *constants, *carry)` for i = 0, .., times - 1 (an i32); gives the names of the last carry."""
    avals = [_COUNTER, *constant_avals, *carry_avals]
    jaxpr, _ = trace(lambda *xs: list(body(*xs)), avals, "repeated")
    names = [emit.fresh().replace("%", "%loop") for _ in avals]
    start = [emit.constant(0, _COUNTER), *constants, *carry]
    types = ", ".join(map(tensor_type, avals))
    t = tensor_type(_COUNTER)

    def condition(emit):
        limit = emit.constant(times, _COUNTER)
        more = emit.op(f"stablehlo.compare LT, {names[0]}, {limit}, SIGNED : ({t}, {t}) -> tensor<i1>")
        emit.lines.append(f"stablehlo.return {more} : tensor<i1>")

    def step(emit):
        following = emit.op(f"stablehlo.add {names[0]}, {emit.constant(1, _COUNTER)} : {t}")
        new = emit.program(jaxpr, names)
        kept = names[1 : 1 + len(constants)]
        emit.lines.append(f"stablehlo.return {', '.join([following, *kept, *new])} : {types}")

    arguments = ", ".join(f"{n} = {s}" for n, s in zip(names, start, strict=True))
    results = emit.ops(
        f"stablehlo.while({arguments}) : {types}\ncond {{\n{emit.region(condition)}\n}} do {{\n{emit.region(step)}\n}}",
        len(avals),
    )
    return results[1 + len(constants) :]
