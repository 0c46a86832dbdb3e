"""StableHLO of `control_flow.while_loop` and `control_flow.repeat`; and how any loop is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from funcml import dtypes
from funcml.control_flow.repeat import repeat_p
from funcml.control_flow.while_loop import while_p
from funcml.core.avals import ShapedArray, shaped
from funcml.core.ir import Jaxpr, ordered
from funcml.lowering.emit import TOKEN, lowers, tensor_type

COUNT = shaped((), dtypes.int32)


def loop(
    emit,
    avals: Sequence[ShapedArray],
    init: Sequence[str],
    test: Callable[[list[str]], str],
    body: Callable[[list[str]], list[str]],
    programs: Sequence[Jaxpr],
) -> list[str]:
    """A `while`; `test(names) -> name of an i1` and `body(names) -> names` write into its regions, which see what is outside.

    If some effect of the `programs` in it is ordered, the token of the latest effect is carried as well.
    """
    in_order = any(map(ordered, programs))
    types = [*map(tensor_type, avals), *[TOKEN] * in_order]
    init = [*init, *[emit.token()] * in_order]
    names = [emit.fresh() for _ in init]
    carried = names[: len(avals)]

    def step(emit):
        if in_order:
            emit.last_token = names[-1]
        outs = [*body(carried), *[emit.last_token] * in_order]
        emit.lines.append(f"stablehlo.return {', '.join(outs)} : {', '.join(types)}")

    bound = ", ".join(f"{n} = {x}" for n, x in zip(names, init, strict=True))
    condition = emit.region(lambda emit: emit.lines.append(f"stablehlo.return {test(carried)} : tensor<i1>"))
    text = emit.region(step)
    outs = emit.ops(f"stablehlo.while({bound}) : {', '.join(types)}\ncond {{\n{condition}\n}} do {{\n{text}\n}}", len(init))
    if in_order:
        emit.last_token = outs.pop()
    return outs


def below(emit, count: str, bound: str) -> str:
    """count < bound, of two i32."""
    t = tensor_type(COUNT)
    return emit.op(f"stablehlo.compare LT, {count}, {bound}, SIGNED : ({t}, {t}) -> tensor<i1>")


def plus_one(emit, count: str) -> str:
    """count + 1, an i32."""
    return emit.op(f"stablehlo.add {count}, {emit.constant(1, COUNT)} : {tensor_type(COUNT)}")


@lowers(while_p)
def _while(emit, eqn, operands):
    params = eqn.params
    n_cond, n_consts = params["n_cond"], params["n_cond"] + params["n_body"]
    if ordered(params["cond_jaxpr"]):
        raise NotImplementedError("an ordered effect in the condition of a while loop: put it into the body")
    of_cond, of_body, init = operands[:n_cond], operands[n_cond:n_consts], operands[n_consts:]
    return loop(
        emit,
        [v.aval for v in eqn.outvars],
        init,
        lambda carry: emit.program(params["cond_jaxpr"], [*of_cond, *carry])[0],
        lambda carry: emit.program(params["body_jaxpr"], [*of_body, *carry]),
        [params["body_jaxpr"]],
    )


@lowers(repeat_p)
def _repeat(emit, eqn, operands):
    jaxpr, n = eqn.params["jaxpr"], eqn.params["n_consts"]
    count, *values = operands
    consts, init = values[:n], values[n:]
    found = loop(
        emit,
        [COUNT, *[v.aval for v in eqn.outvars]],
        [emit.constant(0, COUNT), *init],
        lambda names: below(emit, names[0], count),
        lambda names: [plus_one(emit, names[0]), *emit.program(jaxpr, [*consts, *names[1:]])],
        [jaxpr],
    )
    return found[1:]
