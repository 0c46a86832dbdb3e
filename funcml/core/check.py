"""`check_jaxpr`: whether a program is well formed. It runs on the output of every pass in every test."""

from __future__ import annotations

from funcml.core.config import config
from funcml.core.errors import FuncmlError
from funcml.core.ir import Jaxpr, Literal, Var, sub_programs

__all__ = ["InvalidJaxprError", "check_jaxpr", "checked"]


class InvalidJaxprError(FuncmlError):
    """A pass gave a program that is not well formed."""


def check_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Raises unless each variable is bound once, before use, and each equation has the types its rule gives."""
    bound: set[Var] = set()

    def bind_all(variables, where):
        for v in variables:
            if v in bound:
                raise InvalidJaxprError(f"{where} binds a variable of type {v.aval} twice in\n{jaxpr}")
            bound.add(v)

    bind_all(jaxpr.invars, "the input list")
    for eqn in jaxpr.eqns:
        _check_atoms(eqn.invars, bound, f"`{eqn.primitive.name}`", jaxpr)
        for program in sub_programs(eqn.params):
            check_jaxpr(program)
        _check_types(eqn, jaxpr)
        bind_all(eqn.outvars, f"`{eqn.primitive.name}`")
    _check_atoms(jaxpr.outs, bound, "the output list", jaxpr)
    return jaxpr


def _check_atoms(atoms, bound, where, jaxpr) -> None:
    for atom in atoms:
        if type(atom) is Var:
            if atom not in bound:
                raise InvalidJaxprError(f"{where} uses an unbound variable of type {atom.aval} in\n{jaxpr}")
        elif type(atom) is not Literal or atom.aval.shape != ():
            raise InvalidJaxprError(f"{where} uses {atom!r}, neither a variable nor a scalar literal, in\n{jaxpr}")


def _check_types(eqn, jaxpr) -> None:
    found = eqn.primitive.type_rule(*[a.aval for a in eqn.invars], **eqn.params)
    found = tuple(found) if eqn.primitive.multiple_results else (found,)
    given = tuple(v.aval for v in eqn.outvars)
    if len(found) != len(given) or any(f.strong() is not g.strong() for f, g in zip(found, given, strict=True)):
        raise InvalidJaxprError(f"`{eqn.primitive.name}` gives {found} but its outputs are typed {given} in\n{jaxpr}")
    if eqn.primitive.elementwise:
        shapes = {a.aval.shape for a in eqn.invars if type(a) is Var}
        if len(shapes) > 1:
            raise InvalidJaxprError(f"`{eqn.primitive.name}` mixes variables of shapes {shapes} in\n{jaxpr}")


def checked(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr`, checked when `config.check_jaxprs` is on."""
    return check_jaxpr(jaxpr) if config.check_jaxprs else jaxpr
