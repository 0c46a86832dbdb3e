"""Programs as parts of control flow: put into another calling convention, joined, copied.

    rearranged : (program, invars, outs) -> program       the same equations
    recorded   : (function, avals) -> program, captured   `trace`, for what rules bind
    uniform    : [(program_i, captured_i)] -> programs of one input list (captured of all..., inputs...)
    inlined    : (program, atoms) -> equations, outs      copied between the equations of another program
    grown      : (flags, step) -> flags                   the least fixpoint: which parts of a carry a pass reaches
    check_carry, joined_carry : (avals before, after) of a step
    moved_body : (program of a pass, lengths...) -> the body of a loop over what moves as well
    parts      : (values, lengths...) -> lists            an operand list, cut where the groups begin
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from funcml.core.check import checked
from funcml.core.ir import Eqn, Jaxpr, Literal, Var, intern
from funcml.core.tracing import trace

__all__ = ["check_carry", "grown", "inlined", "joined_carry", "moved_body", "parts", "rearranged", "recorded", "uniform"]


def rearranged(jaxpr: Jaxpr, invars: Iterable[Var], outs: Iterable[Var | Literal] | None = None) -> Jaxpr:
    """The interned program of the same equations with other inputs and outputs."""
    return intern(checked(Jaxpr(invars, jaxpr.eqns, jaxpr.outs if outs is None else outs)))


def recorded(function: Callable, avals: Sequence, name: str) -> tuple[Jaxpr, list]:
    """The program of a function that binds operations, checked and interned; and the values it captured."""
    jaxpr, captured = trace(function, avals, name)
    return intern(checked(jaxpr)), captured


def uniform(programs: Sequence[tuple[Jaxpr, Sequence]]) -> tuple[tuple[Jaxpr, ...], list]:
    """Programs (captured_i..., inputs...) brought to one list of inputs (captured of all..., inputs...); and all captured."""
    captured = [x for _, values in programs for x in values]
    if not captured:
        return tuple([intern(jaxpr) for jaxpr, _ in programs]), []
    avals = [[v.aval for v in jaxpr.invars[: len(values)]] for jaxpr, values in programs]
    made = []
    for i, (jaxpr, values) in enumerate(programs):
        n = len(values)
        leading = [list(jaxpr.invars[:n]) if j == i else list(map(Var, avals[j])) for j in range(len(programs))]
        made.append(rearranged(jaxpr, [*sum(leading, []), *jaxpr.invars[n:]]))
    return tuple(made), captured


def inlined(jaxpr: Jaxpr, atoms: Sequence[Var | Literal]) -> tuple[list[Eqn], list[Var | Literal]]:
    """The equations of `jaxpr` on other inputs, with fresh variables, and its outputs."""
    names: dict[Var | Literal, Var | Literal] = dict(zip(jaxpr.invars, atoms, strict=True))
    eqns = []
    for eqn in jaxpr.eqns:
        outvars = tuple([Var(v.aval) for v in eqn.outvars])
        eqns.append(eqn._replace(invars=tuple([names.get(a, a) for a in eqn.invars]), outvars=outvars))
        names.update(zip(eqn.outvars, outvars, strict=True))
    return eqns, [names.get(a, a) for a in jaxpr.outs]


def grown(flags: Sequence[bool], step: Callable[[list[bool]], Sequence[bool]]) -> list[bool]:
    """The least flags that contain these and `step` of themselves."""
    held = list(flags)
    while True:
        found = [a or b for a, b in zip(held, step(held), strict=True)]
        if found == held:
            return held
        held = found


def check_carry(who: str, before: Sequence, after: Sequence) -> None:
    """TypeError if a step does not leave each part of the carry with the type that it takes."""
    for i, (given, left) in enumerate(zip(before, after, strict=True)):
        if given.strong() is not left.strong():
            raise TypeError(f"{who}: carry {i} enters a step as {given} and leaves it as {left}")


def moved_body(new: Jaxpr, *lengths: int) -> tuple[Jaxpr, list[Var]]:
    """The body of a loop, from a program (captured, consts, carry, what moves of the consts, of the carry) of a pass.

    `lengths` are those of all inputs but the last. Gives (captured, consts, what moves of them | carry, what moves of it),
    and the inputs for the latter.
    """
    held, consts, carry, of_consts, of_carry = parts(new.invars, *lengths)
    return rearranged(new, [*held, *consts, *of_consts, *carry, *of_carry]), of_carry


def joined_carry(before: Sequence, after: Sequence) -> tuple:
    """The types of a carry after any number of steps: weak only where it is weak before and after one."""
    return tuple([a.update(weak_type=a.weak_type and b.weak_type) for a, b in zip(before, after, strict=True)])


def parts(values: Sequence, *lengths: int) -> list[list]:
    """`values` cut into lists of these lengths, and the rest."""
    cut, at = [], 0
    for n in lengths:
        cut.append(list(values[at : at + n]))
        at += n
    return [*cut, list(values[at:])]
