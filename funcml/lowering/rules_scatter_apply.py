"""StableHLO of `primitives.scatter_apply`: a scatter whose region is the function."""

from __future__ import annotations

from funcml.lowering.emit import lowers
from funcml.lowering.rules_gather_scatter import scatter_with
from funcml.primitives.scatter_apply import scatter_apply_p


@lowers(scatter_apply_p)
def _scatter_apply(emit, eqn, operands):
    return scatter_with(emit, eqn, operands, lambda old, new: emit.program(eqn.params["update"], [old])[0])
