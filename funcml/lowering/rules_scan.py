"""StableHLO of `control_flow.scan`: a loop that cuts a slice out of each input and puts one into each output.

With `unroll`, each turn of the loop holds that many steps, and those that are left over stand behind it.
"""

from __future__ import annotations

from funcml.control_flow.scan import scan_p
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.lowering.rules_while_loop import COUNT, below, loop, plus_one


@lowers(scan_p)
def _scan(emit, eqn, operands):
    p = eqn.params
    n_carry, length = p["n_carry"], p["length"]
    first_xs = p["n_consts"] + n_carry
    consts, carry, xs = operands[: p["n_consts"]], operands[p["n_consts"] : first_xs], operands[first_xs:]
    x_avals = [a.aval for a in eqn.invars[first_xs:]]
    y_avals = [v.aval for v in eqn.outvars[n_carry:]]
    ys = [emit.constant(0, a) for a in y_avals]

    def step(count: str, state: list[str]) -> list[str]:
        """(carry, ys) after the step with this number."""
        place = _mirrored(emit, count, length) if p["reverse"] else count
        slices = [_slice(emit, x, a, place) for x, a in zip(xs, x_avals, strict=True)]
        outs = emit.program(p["jaxpr"], [*consts, *state[:n_carry], *slices])
        puts = zip(state[n_carry:], outs[n_carry:], y_avals, strict=True)
        return [*outs[:n_carry], *[_put(emit, ys, y, a, place) for ys, y, a in puts]]

    def turn(names: list[str]) -> list[str]:
        count, state = names[0], names[1:]
        for _ in range(unroll):
            state, count = step(count, state), plus_one(emit, count)
        return [count, *state]

    unroll = max(1, min(p["unroll"], length))
    looped = length - length % unroll
    state = [*carry, *ys]
    if looped > unroll:
        avals = [COUNT, *[v.aval for v in eqn.outvars]]
        bound = emit.constant(looped, COUNT)
        found = loop(
            emit, avals, [emit.constant(0, COUNT), *state], lambda names: below(emit, names[0], bound), turn, [p["jaxpr"]]
        )
        state = found[1:]
    else:
        looped = 0
    for i in range(looped, length):
        state = step(emit.constant(i, COUNT), state)
    return state


def _mirrored(emit, count: str, length: int) -> str:
    return emit.op(f"stablehlo.subtract {emit.constant(length - 1, COUNT)}, {count} : {tensor_type(COUNT)}")


def _window(emit, aval, place: str) -> tuple[str, str]:
    """The start of the slice at `place`, and the types of its numbers."""
    zero = emit.constant(0, COUNT)
    return ", ".join([place, *[zero] * (aval.ndim - 1)]), ", ".join([tensor_type(COUNT)] * aval.ndim)


def _slice(emit, x: str, aval, place: str) -> str:
    starts, types = _window(emit, aval, place)
    one, inner = aval.update(shape=(1, *aval.shape[1:])), aval.update(shape=aval.shape[1:])
    cut = emit.op(
        f"stablehlo.dynamic_slice {x}, {starts}, sizes = [{numbers(one.shape)}] : "
        f"({tensor_type(aval)}, {types}) -> {tensor_type(one)}"
    )
    return emit.op(f"stablehlo.reshape {cut} : ({tensor_type(one)}) -> {tensor_type(inner)}")


def _put(emit, ys: str, y: str, aval, place: str) -> str:
    starts, types = _window(emit, aval, place)
    one, inner = aval.update(shape=(1, *aval.shape[1:])), aval.update(shape=aval.shape[1:])
    y = emit.op(f"stablehlo.reshape {y} : ({tensor_type(inner)}) -> {tensor_type(one)}")
    return emit.op(
        f"stablehlo.dynamic_update_slice {ys}, {y}, {starts} : "
        f"({tensor_type(aval)}, {tensor_type(one)}, {types}) -> {tensor_type(aval)}"
    )
