"""Programs made smaller without a change of meaning.

    dce  : drops equations whose results nothing uses
    cse  : computes equal expressions once
    fold : evaluates scalar arithmetic on literals; drops x * 1, x / 1, x - 0

    simplify = fold, cse, dce

`fold` keeps every bit: x + 0.0 stays, since -0.0 + 0.0 is 0.0.
"""

from __future__ import annotations

import numpy as np

from funcml.core.check import checked
from funcml.core.ir import Eqn, Jaxpr, Literal, Primitive, Var, effectful, memoised
from funcml.primitives import elementwise as ew

__all__ = ["cse", "dce", "dce_again", "fold", "simplify"]


@memoised
def dce(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without the equations that no output needs; equations with an effect stay."""
    return _needed(jaxpr, True)


@memoised
def dce_again(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` for one more run on the same inputs: without the equations that no output needs, those with an effect too."""
    return _needed(jaxpr, False)


def _needed(jaxpr: Jaxpr, keep_effects: bool) -> Jaxpr:
    needed: set[Var | Literal] = set(jaxpr.outs)
    kept: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars) or (keep_effects and effectful(eqn)):
            kept.append(eqn)
            needed.update(eqn.invars)
    if len(kept) == len(jaxpr.eqns):
        return jaxpr
    return _same_standing(jaxpr, Jaxpr(jaxpr.invars, kept[::-1], jaxpr.outs))


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
        earlier = None if effectful(eqn) else seen.get(key)
        if earlier is None:
            seen[key] = eqn.outvars
            kept.append(eqn if invars == eqn.invars else eqn._replace(invars=invars))
        else:
            same.update(zip(eqn.outvars, earlier, strict=True))
    if len(kept) == len(jaxpr.eqns):
        return jaxpr
    outs = [same.get(a, a) if type(a) is Var else a for a in jaxpr.outs]
    return _same_standing(jaxpr, Jaxpr(jaxpr.invars, kept, outs))


def _same_standing(jaxpr: Jaxpr, new: Jaxpr) -> Jaxpr:
    """`new`, checked, and canonical if the program that it was made from is."""
    new.canonical = jaxpr.canonical
    return checked(new)


_ARITHMETIC: dict[Primitive, np.ufunc] = {ew.add: np.add, ew.sub: np.subtract, ew.mul: np.multiply, ew.neg: np.negative}
_RIGHT_UNITS: dict[Primitive, int] = {ew.mul: 1, ew.div: 1, ew.sub: 0}
_LEFT_UNITS: dict[Primitive, int] = {ew.mul: 1}


@memoised
def fold(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with scalar arithmetic on literals done, and operations with a unit dropped."""
    known: dict[Var, Var | Literal] = {}
    kept: list[Eqn] = []
    for eqn in jaxpr.eqns:
        invars = tuple([known.get(a, a) if type(a) is Var else a for a in eqn.invars])
        value = _folded(eqn, invars)
        if value is None:
            kept.append(eqn if invars == eqn.invars else eqn._replace(invars=invars))
        else:
            known[eqn.outvars[0]] = value
    if len(kept) == len(jaxpr.eqns):
        return jaxpr
    outs = [known.get(a, a) if type(a) is Var else a for a in jaxpr.outs]
    return _same_standing(jaxpr, Jaxpr(jaxpr.invars, kept, outs))


def _folded(eqn: Eqn, invars) -> Var | Literal | None:
    """What the one result of an equation is known to be, if anything."""
    operation = _ARITHMETIC.get(eqn.primitive)
    if operation is not None and all(type(a) is Literal for a in invars):
        aval = eqn.outvars[0].aval
        with np.errstate(all="ignore"):
            value = operation(*[np.asarray(a.value, a.aval.dtype) for a in invars])
        return Literal(np.asarray(value, aval.dtype)[()], aval)
    if len(invars) != 2:
        return None
    for one, other, units in ((invars[0], invars[1], _RIGHT_UNITS), (invars[1], invars[0], _LEFT_UNITS)):
        unit = units.get(eqn.primitive)
        if unit is not None and _is_scalar(other, unit) and one.aval is eqn.outvars[0].aval:
            return one
    return None


def _is_scalar(atom, value) -> bool:
    return type(atom) is Literal and atom.value == value and not np.signbit(np.real(atom.value))


def simplify(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` folded, with common expressions computed once and unused ones dropped."""
    return dce(cse(fold(jaxpr)))
