"""StableHLO of the primitives that hold a program: one private function for each."""

from __future__ import annotations

from funcml.lowering.emit import lowers, tensor_type
from funcml.transforms import call, composite, custom_jvp, custom_vjp, custom_vmap, remat


@lowers(call.call_p, custom_vmap.custom_vmap_call_p)
def _call(emit, eqn, operands):
    return emit.call(eqn.params["jaxpr"], operands, eqn.params["name"])


@lowers(custom_jvp.custom_jvp_call_p, custom_vjp.custom_vjp_call_p)
def _custom(emit, eqn, operands):
    operands = eqn.primitive.primal_operands(operands, eqn.params["consts"])
    return emit.call(eqn.params["jaxpr"], operands, eqn.params["name"])


@lowers(custom_vjp.pullback_p)
def _pullback(emit, eqn, operands):
    return emit.call(eqn.primitive.forward_jaxpr(**eqn.params), operands, f"pushforward_{eqn.params['name']}")


@lowers(remat.checkpoint_p)
def _checkpoint(emit, eqn, operands):
    if eqn.params["recomputes"] and eqn.params["prevent_cse"] and operands:
        types = ", ".join(tensor_type(a.aval) for a in eqn.invars)
        operands = emit.ops(f"stablehlo.optimization_barrier {', '.join(operands)} : {types}", len(operands))
    return emit.call(eqn.params["jaxpr"], operands, eqn.params["name"])


@lowers(composite.composite_p)
def _composite(emit, eqn, operands):
    jaxpr, name, attributes, version = (eqn.params[key] for key in ("jaxpr", "name", "attributes", "version"))
    fields = [
        *([f"composite_attributes = {{{attributes}}}"] if attributes else []),
        f"decomposition = @{emit.function(jaxpr, name)}",
        *([f"version = {version} : i32"] if version else []),
    ]
    ins, outs = (", ".join(tensor_type(v.aval) for v in atoms) for atoms in (jaxpr.invars, jaxpr.outs))
    given = f" {', '.join(operands)}" if operands else ""
    outs = outs if len(jaxpr.outs) == 1 else f"({outs})"
    return emit.ops(f'stablehlo.composite "{name}"{given} {{{", ".join(fields)}}} : ({ins}) -> {outs}', len(jaxpr.outs))
