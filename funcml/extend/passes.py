"""Passes of the user's own: programs from programs, by a rule for equations.

    rule      : (eqn, operands) -> values, or None: as it stands
    interpret : (jaxpr, values, rule) -> values
    rewrite   : (jaxpr, rule) -> jaxpr of the same types
    rewritten : (function, rule) -> function
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from funcml.arguments import as_value, evaluate, flatten_call, trace_call
from funcml.core.check import checked
from funcml.core.errors import user_facing
from funcml.core.ir import Eqn, Jaxpr, Literal, Var, intern, sub_programs
from funcml.core.tracing import aval_of, eval_jaxpr, rebind, trace

__all__ = ["all_eqns", "bind_eqn", "interpret", "jaxpr_as_fun", "rewrite", "rewritten"]

Rule = Callable[[Eqn, list], Sequence | None]


def bind_eqn(eqn: Eqn, operands: Sequence) -> list:
    """The equation applied to other operands: computed, or recorded where a program is being recorded; a list of results."""
    return rebind(eqn, operands)


def all_eqns(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations of a program and of the programs that they hold (calls, branches, bodies of loops).

    >>> import funcml, funcml.numpy as jnp
    >>> f = funcml.jit(lambda x: jnp.sin(x) * 2)
    >>> [eqn.primitive.name for eqn in all_eqns(funcml.make_jaxpr(lambda x: f(x) + 1)(1.0))]
    ['call', 'sin', 'mul', 'add']
    """
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in sub_programs(eqn.params):
            yield from all_eqns(inner)


def interpret(jaxpr: Jaxpr, values: Sequence, rule: Rule) -> list:
    """The outputs of a program whose equations `rule` may replace.

    `rule(eqn, operands)` gives the results of the equation, computed in any way, or None to leave it as it is; then the rule
    applies to the programs that it holds. `eqn.primitive`, `eqn.params`, `eqn.invars[i].aval` tell what it is.

    >>> import funcml, funcml.numpy as jnp
    >>> jaxpr = funcml.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    >>> interpret(jaxpr, [0.0], lambda eqn, xs: [jnp.cos(*xs)] if eqn.primitive.name == "sin" else None)
    [Array(2., dtype=float32, weak_type=True)]
    """
    if len(values) != len(jaxpr.invars):
        raise TypeError(f"interpret: a program of {len(jaxpr.invars)} inputs was given {len(values)} values")
    env: dict[Var, Any] = dict(zip(jaxpr.invars, map(as_value, values), strict=True))
    for eqn in jaxpr.eqns:
        operands = [env[a] if type(a) is Var else a.value for a in eqn.invars]
        found = rule(eqn, operands)
        if found is None:
            atoms = [env[a] if type(a) is Var else a for a in eqn.invars]
            found = rebind(eqn._replace(params=_rewritten_params(eqn.params, rule)), atoms)
        else:
            found = _checked_results(eqn, found)
        env.update(zip(eqn.outvars, found, strict=True))
    return [env[a] if type(a) is Var else as_value(a.value) for a in jaxpr.outs]


def _rewritten_params(params: dict, rule: Rule) -> dict:
    """The parameters of an equation, each program among them rewritten."""

    def new(value):
        if isinstance(value, Jaxpr):
            return rewrite(value, rule)
        if type(value) is tuple and any(isinstance(x, Jaxpr) for x in value):
            return tuple([new(x) for x in value])
        return value

    return {key: new(value) for key, value in params.items()} if sub_programs(params) else params


def _checked_results(eqn: Eqn, found) -> list:
    wanted = [v.aval for v in eqn.outvars]
    if not isinstance(found, tuple | list) or len(found) != len(wanted):
        raise TypeError(
            f"the rule must give None or a list of the {len(wanted)} results of `{eqn.primitive.name}`, got {found!r}; for one "
            "result write [y]"
        )
    for i, (x, aval) in enumerate(zip(found, wanted, strict=True)):
        if aval_of(as_value(x)).strong() is not aval.strong():
            raise TypeError(
                f"the rule gave {aval_of(as_value(x))} for result {i} of `{eqn.primitive.name}`, which is {aval}; equations that "
                "follow were made for that type, so convert or reshape to it"
            )
    return [as_value(x) for x in found]


def rewrite(jaxpr: Jaxpr, rule: Rule) -> Jaxpr:
    """The program that `interpret` runs, of the same types. A rule may not bring in arrays: programs hold none.

    >>> import funcml, funcml.numpy as jnp
    >>> jaxpr = funcml.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
    >>> print(rewrite(jaxpr, lambda eqn, xs: [jnp.cos(*xs)] if eqn.primitive.name == "sin" else None))
    { lambda a:f32[]. let
        b:f32[] = cos a
        c:f32[] = mul b 2.0
      in (c,) }
    """
    new, captured = trace(lambda *values: interpret(jaxpr, values, rule), jaxpr.in_avals, "rewrite")
    if captured:
        shown = ", ".join(str(aval_of(x)) for x in captured)
        raise TypeError(f"rewrite: the rule brought in arrays ({shown}), and programs hold none; make them of scalars")
    return intern(checked(new))


def rewritten(fun: Callable, rule: Rule) -> Callable:
    """`fun`, recorded and rewritten by `rule` at each call: a transform that composes with all others.

    >>> import funcml, funcml.numpy as jnp
    >>> f = rewritten(lambda x: jnp.sin(x), lambda eqn, xs: [jnp.cos(*xs)] if eqn.primitive.name == "sin" else None)
    >>> float(f(0.0)), float(funcml.grad(f)(0.0))
    (1.0, -0.0)
    """

    @functools.wraps(fun)
    def run(*args, **kwargs):
        call = flatten_call(fun, args, kwargs, "rewritten")
        values = call.inputs()
        traced = trace_call(call, [aval_of(x) for x in values])
        return traced.rebuild(evaluate(rewrite(traced.jaxpr, rule), [*traced.captured, *values]))

    return user_facing(run)


def jaxpr_as_fun(jaxpr: Jaxpr) -> Callable[..., list]:
    """The function of arrays that a program is: it gives the list of its outputs.

    >>> import funcml
    >>> jaxpr_as_fun(funcml.make_jaxpr(lambda x: x * 2)(1.0))(3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """

    def run(*values):
        outs = eval_jaxpr(jaxpr, [as_value(x) for x in values])
        return [as_value(x.value) if type(x) is Literal else x for x in outs]

    return run
