"""StableHLO of `control_flow.cond`: `case`, with a region for each branch."""

from __future__ import annotations

from funcml.control_flow.cond import cond_p
from funcml.lowering.emit import lowers, tensor_type


@lowers(cond_p)
def _cond(emit, eqn, operands):
    index, *inputs = operands
    types = ", ".join(tensor_type(v.aval) for v in eqn.outvars)
    regions = ", ".join(f"{{\n{_branch(emit, b, inputs, types)}\n}}" for b in eqn.params["branches"])
    return emit.ops(f'"stablehlo.case"({index}) ({regions}) : (tensor<i32>) -> ({types})', len(eqn.outvars))


def _branch(emit, jaxpr, inputs, types) -> str:
    def body(emit):
        outs = emit.program(jaxpr, inputs)
        emit.lines.append(f"stablehlo.return {', '.join(outs)} : {types}" if outs else "stablehlo.return")

    return emit.region(body)
