"""StableHLO of `control_flow.linear_solve`: a call of the program that solves."""

from __future__ import annotations

from funcml.control_flow.linear_solve import linear_solve_p
from funcml.control_flow.programs import parts
from funcml.lowering.emit import lowers


@lowers(linear_solve_p)
def _linear_solve(emit, eqn, operands):
    _, _, consts, _, b = parts(operands, *eqn.params["counts"])
    return emit.call(eqn.params["solve"], [*consts, *b], "solve")
