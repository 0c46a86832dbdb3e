"""Splitting a program into what can be computed from some of its inputs, and the rest.

    partial_eval : (known, unknown) -> out   |->   known -> (out, residuals)   and   (residuals, unknown) -> out

Nothing is traced: equations are dealt out to two programs as they are. Only a primitive that holds a program of its own, and
has known and unknown operands, is asked how to split (`partial_eval_rule`).

    known_again : the unknown half, computing for itself what it needs of the known one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from funcml.core.check import checked
from funcml.core.ir import Eqn, Jaxpr, Var, effectful, memoised
from funcml.transforms.simplify import dce

__all__ = ["EqnSplit", "Split", "known_again", "partial_eval"]


class Split(NamedTuple):
    """The two halves of a program.

    known:       (known inputs...) -> (known outputs..., residuals...)
    unknown:     (residuals..., unknown inputs...) -> (unknown outputs...)
    out_unknown: which outputs of the whole are unknown
    """

    known: Jaxpr
    unknown: Jaxpr
    residuals: int
    out_unknown: tuple[bool, ...]


class EqnSplit(NamedTuple):
    """What a `partial_eval_rule` gives: equations for either half, which outputs are unknown.

    Variables that the known equations bind and the unknown ones use become residuals.
    """

    known: list[Eqn]
    unknown: list[Eqn]
    out_unknown: list[bool]


@memoised
def partial_eval(
    jaxpr: Jaxpr, unknown_in: tuple[bool, ...], forced: tuple[bool, ...] | None = None
) -> Split:
    """Splits `jaxpr`, given which inputs are unknown; `forced[i]` makes output i count as unknown in any case."""
    unknown: set[Var] = {v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if u}
    known_eqns: list[Eqn] = []
    unknown_eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if unknown.isdisjoint(eqn.invars):
            known_eqns.append(eqn)
        elif eqn.primitive.holds_jaxpr and not unknown.issuperset(eqn.invars):
            split = eqn.primitive.partial_eval_rule([a in unknown for a in eqn.invars], eqn)
            known_eqns.extend(split.known)
            unknown_eqns.extend(split.unknown)
            unknown.update(v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if u)
            unknown.update(v for e in split.unknown for v in e.outvars)
        else:
            unknown_eqns.append(eqn)
            unknown.update(eqn.outvars)

    out_unknown = [type(a) is Var and a in unknown for a in jaxpr.outs]
    if forced is not None:
        out_unknown = [u or f for u, f in zip(out_unknown, forced, strict=True)]
    unknown_outs = [a for a, u in zip(jaxpr.outs, out_unknown, strict=True) if u]
    residuals: dict[Var, None] = {}
    for eqn in unknown_eqns:
        for a in eqn.invars:
            if a not in unknown and type(a) is Var:
                residuals[a] = None
    residuals.update((a, None) for a in unknown_outs if type(a) is Var and a not in unknown)

    known_outs = [a for a, u in zip(jaxpr.outs, out_unknown, strict=True) if not u]
    known_in = [v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if not u]
    unknown_inputs = [v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if u]
    known = Jaxpr(known_in, known_eqns, [*known_outs, *residuals])
    rest = Jaxpr([*residuals, *unknown_inputs], unknown_eqns, unknown_outs)
    known.canonical = rest.canonical = jaxpr.canonical
    return Split(checked(known), checked(rest), len(residuals), tuple(out_unknown))


def known_again(split: Split, given: Sequence[Var]) -> tuple[Jaxpr, list[bool]]:
    """The unknown half with what leads to its residuals from the variables `given` of the known half; which of those it uses.

        (given that are used..., unknown inputs...) -> unknown outputs

    Equations with an effect do not run again: what is needed of their results must be given.
    """
    kept = set(given)
    again = [_without(e, kept) for e in split.known.eqns if not (kept.issuperset(e.outvars) or effectful(e))]
    wanted = split.known.outs[len(split.known.outs) - split.residuals :]
    names = dict(zip(split.unknown.invars, wanted, strict=False))
    unknown = [e._replace(invars=tuple([_renamed(a, names) for a in e.invars])) for e in split.unknown.eqns]
    outs = [_renamed(a, names) for a in split.unknown.outs]
    inputs = split.unknown.invars[split.residuals :]
    whole = dce(Jaxpr([*given, *inputs], [*again, *unknown], outs))
    taken = {a for e in whole.eqns for a in e.invars} | set(whole.outs)
    used = [v in taken for v in given]
    leading = [v for v, is_used in zip(given, used, strict=True) if is_used]
    return checked(Jaxpr([*leading, *inputs], whole.eqns, whole.outs)), used


def _renamed(atom, names: dict):
    return names.get(atom, atom) if type(atom) is Var else atom


def _without(eqn: Eqn, kept: set[Var]) -> Eqn:
    """`eqn`, giving other names to those of its results that are kept."""
    if kept.isdisjoint(eqn.outvars):
        return eqn
    return eqn._replace(outvars=tuple([Var(v.aval) if v in kept else v for v in eqn.outvars]))
