"""StableHLO of `control_flow.linear_call`: a call of the function."""

from __future__ import annotations

from funcml.control_flow.linear_call import linear_call_p
from funcml.lowering.emit import lowers


@lowers(linear_call_p)
def _linear_call(emit, eqn, operands):
    return emit.call(eqn.params["forward"], operands, "linear_call")
