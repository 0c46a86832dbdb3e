"""StableHLO of `control_flow.cond`: `case`, with a region for each branch; the branch alone, where the platform chooses."""

from __future__ import annotations

from funcml.control_flow.cond import cond_p, platform_index_p
from funcml.core.ir import ordered
from funcml.lowering.emit import TOKEN, lowers, tensor_type


@lowers(cond_p)
def _cond(emit, eqn, operands):
    index, *inputs = operands
    branches = eqn.params["branches"]
    if index in emit.known_indices:
        return emit.program(branches[emit.known_indices[index]], inputs)
    in_order = any(map(ordered, branches))
    types = ", ".join([*[tensor_type(v.aval) for v in eqn.outvars], *[TOKEN] * in_order])
    token = emit.token() if in_order else None
    regions = ", ".join(f"{{\n{_branch(emit, b, inputs, types, token)}\n}}" for b in branches)
    outs = emit.ops(f'"stablehlo.case"({index}) ({regions}) : (tensor<i32>) -> ({types})', len(eqn.outvars) + in_order)
    if in_order:
        emit.last_token = outs.pop()
    return outs


@lowers(platform_index_p)
def _platform_index(emit, eqn, operands):
    """A constant that `cond` knows, so that what other platforms run is not written at all."""
    platforms = eqn.params["platforms"]
    names = ("cuda", "gpu") if emit.platform in ("cuda", "gpu") else (emit.platform,)
    found = [i for i, platform in enumerate(platforms) if platform in names]
    if not found and not eqn.params["has_default"]:
        raise NotImplementedError(
            f"lax.platform_dependent has functions for {', '.join(platforms)} and no default=, but this is for {emit.platform}"
        )
    place = found[0] if found else len(platforms)
    name = emit.op(f"stablehlo.constant dense<{place}> : tensor<i32>")
    emit.known_indices[name] = place
    return name


def _branch(emit, jaxpr, inputs, types: str, token: str | None) -> str:
    def body(emit):
        if token is not None:
            emit.last_token = token
        outs = [*emit.program(jaxpr, inputs), *([emit.last_token] if token is not None else [])]
        emit.lines.append(f"stablehlo.return {', '.join(outs)} : {types}" if outs else "stablehlo.return")

    return emit.region(body)
