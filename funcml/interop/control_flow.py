"""Branches, loops and linear solves of JAX: their programs are translated, the equations are funcml's own.

The rules stand in the table of `translations`.
"""

from __future__ import annotations

import numpy as np

from funcml.control_flow.cond import cond
from funcml.control_flow.programs import uniform
from funcml.control_flow.scan import scan
from funcml.control_flow.while_loop import while_loop
from funcml.core.ir import Literal
from funcml.core.tracing import aval_of
from funcml.interop.jaxprs import aval_from_jax, opened, scan_layout, where
from funcml.interop.programs import evaluate, program_of, typed
from funcml.interop.translations import UntranslatedPrimitiveError, rule
from funcml.primitives.elementwise import clamp, convert
from funcml.primitives.identities import copy
from funcml.primitives.rows import is_constant

__all__: list[str] = []

_I32 = np.dtype("int32")


def _values(operands, variables) -> list:
    """The operands as arrays with the types of JAX's variables."""
    return [
        typed(copy(x) if is_constant(x) else x, aval_from_jax(v.aval)) for x, v in zip(operands, variables, strict=True)
    ]


@rule("cond")
def _cond(eqn, index, *operands, branches, **params):
    """The branch that `index` names, which is written in place where it is known."""
    if type(index) is Literal:
        return evaluate(*opened(branches[min(max(int(index.value), 0), len(branches) - 1)]), operands)
    for branch in branches:
        _check_effects(eqn, opened(branch)[0])
    operands = _values(operands, opened(branches[0])[0].invars)
    avals, outs = list(map(aval_of, operands)), [aval_from_jax(v.aval) for v in eqn.outvars]
    made = [program_of(*opened(branch), avals, "branch", outs) for branch in branches]
    programs, held = uniform(made)
    index = clamp(np.int32(0), convert(index, _I32), np.int32(len(branches) - 1))
    return cond(index, programs, [*held, *operands])


def _check_effects(eqn, program) -> None:
    if program.effects:
        raise UntranslatedPrimitiveError(
            f"from_jax: the JAX function at {where(eqn)} has the effects {program.effects} in a part of lax.{eqn.primitive.name} "
            "that may not run; funcml has no counterpart of them"
        )


@rule("scan")
def _scan(eqn, *operands, jaxpr, length, reverse, **params):
    """A loop over slices."""
    inner, inner_consts = opened(jaxpr)
    _check_effects(eqn, inner)
    n, m = scan_layout(params)
    carry = _values(operands[n : n + m], inner.invars[n : n + m])
    consts, xs = _values(operands[:n], inner.invars[:n]), [copy(x) if is_constant(x) else x for x in operands[n + m :]]
    ins = [aval_from_jax(v.aval) for v in inner.invars]
    outs = [*ins[n : n + m], *[aval_from_jax(v.aval) for v in inner.outvars[m:]]]
    step, captured = program_of(inner, inner_consts, ins, "scan", outs)
    return scan(step, [*captured, *consts], carry, xs, length=length, reverse=bool(reverse))


@rule("while")
def _while(eqn, *operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **params):
    """A loop until a condition fails."""
    (test, test_consts), (body, body_consts) = opened(cond_jaxpr), opened(body_jaxpr)
    for program in (test, body):
        _check_effects(eqn, program)
    k, n = cond_nconsts, cond_nconsts + body_nconsts
    of_test = _values(operands[:k], test.invars[:k])
    of_body, init = _values(operands[k:n], body.invars[:body_nconsts]), _values(operands[n:], body.invars[body_nconsts:])
    carry = list(map(aval_of, init))
    test_program, test_captured = program_of(test, test_consts, [*map(aval_of, of_test), *carry], "condition")
    body_program, body_captured = program_of(body, body_consts, [*map(aval_of, of_body), *carry], "body", carry)
    return while_loop(test_program, body_program, [*test_captured, *of_test], [*body_captured, *of_body], init)


@rule("custom_linear_solve")
def _custom_linear_solve(eqn, *operands, const_lengths, jaxprs, **params):
    """The solution by the function that JAX was given for it."""
    lengths = [const_lengths.matvec, const_lengths.vecmat, const_lengths.solve, const_lengths.transpose_solve]
    start, total = sum(lengths[:2]), sum(lengths)
    return evaluate(*opened(jaxprs.solve), [*operands[start : start + lengths[2]], *operands[total:]])
