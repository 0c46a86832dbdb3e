"""StableHLO of `primitives.identities`."""

from __future__ import annotations

from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.rules_elementwise import same_value
from funcml.primitives import identities

lowers(identities.copy_p, identities.stop_gradient, identities.name_p)(same_value)


@lowers(identities.optimization_barrier_p)
def _optimization_barrier(emit, eqn, operands):
    types = ", ".join(tensor_type(v.aval) for v in eqn.outvars)
    return emit.ops(f"stablehlo.optimization_barrier {', '.join(operands)} : {types}", len(operands))
