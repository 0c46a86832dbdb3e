"""Evaluating a program of JAX on values of ours, with the equations that hold programs themselves.

    evaluate : (jaxpr, consts, values) -> values

Calls are inlined. `custom_jvp` and `custom_vjp` functions keep their rule: it is what `jax.jvp` or `jax.vjp` makes of that one
equation, translated in its turn. Control flow is in `control_flow`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funcml.core.avals import ShapedArray
from funcml.core.check import checked
from funcml.core.ir import Jaxpr, intern
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind, eval_jaxpr, trace
from funcml.dtypes import canonical, float0
from funcml.interop.jaxprs import (
    aval_from_jax,
    holds_64_bit,
    is_literal,
    jaxpr_of,
    literal,
    live_eqns,
    one_equation,
    opened,
    record,
)
from funcml.interop.translations import rule, translate
from funcml.primitives.elementwise import convert
from funcml.primitives.keys import random_wrap
from funcml.primitives.tangents import instantiate, tangent_aval
from funcml.transforms.custom_jvp import custom_jvp_call_p
from funcml.transforms.custom_vjp import custom_vjp_call_p

__all__ = ["evaluate", "program_of", "typed"]


def evaluate(jaxpr, consts: Sequence, values: Sequence) -> list:
    """The outputs of a program of JAX (`jaxprs.opened`) for these values, in the current trace."""
    env = dict(zip(jaxpr.constvars, map(_constant, consts), strict=True))
    env.update(zip(jaxpr.invars, values, strict=True))

    def read(atom):
        return literal(atom) if is_literal(atom) else env[atom]

    for eqn in live_eqns(jaxpr):
        env.update(zip(eqn.outvars, translate(eqn, [read(a) for a in eqn.invars]), strict=True))
    return [read(a) for a in jaxpr.outvars]


def _constant(x):
    """A constant of JAX's program as a value: a NumPy array; keys are made of their words."""
    if isinstance(x.dtype, np.dtype):
        return np.asarray(x)
    import jax

    return random_wrap(np.asarray(jax.random.key_data(x)), canonical(str(x.dtype)).impl)


def program_of(
    jaxpr, consts: Sequence, avals: Sequence[ShapedArray], name: str, out_avals: Sequence[ShapedArray] | None = None
) -> tuple[Jaxpr, list]:
    """A program of JAX as one of ours, with weak types as JAX gives them, or `out_avals`; and the values that it captures."""

    def translated(*values):
        outs = evaluate(jaxpr, consts, values)
        wanted = [aval_from_jax(v.aval) for v in jaxpr.outvars] if out_avals is None else out_avals
        return [typed(x, a) for x, a in zip(outs, wanted, strict=True)]

    found, captured = trace(translated, avals, name)
    return intern(checked(found)), captured


def typed(x, aval: ShapedArray):
    """`x` as a value of this type, which differs from its own in weakness only."""
    return x if aval_of(x) is aval or not isinstance(aval.dtype, np.dtype) else convert(x, aval.dtype, aval.weak_type)


# ---- calls -----------------------------------------------------------------------------------------------------------


@rule("funcml_value")
def _captured_value(eqn, *, box):
    return box.value


@rule("jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "eval_jaxpr", "custom_lin")
def _call(eqn, *operands, **params):
    return evaluate(*opened(jaxpr_of(params)), operands)


# ---- custom rules ----------------------------------------------------------------------------------------------------


@rule("custom_jvp_call")
def _custom_jvp_call(eqn, *operands, **params):
    return _custom_call(eqn, operands, JaxJvp, custom_jvp_call_p)


@rule("custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom_vjp_call(eqn, *operands, **params):
    return _custom_call(eqn, operands, JaxVjp, custom_vjp_call_p)


def _custom_call(eqn, operands, kind, primitive):
    """One equation with the program and the rule."""
    jaxpr, consts = opened(jaxpr_of(eqn.params))
    name, avals = jaxpr.debug_info.func_name, tuple(map(aval_of, operands))
    primal, captured = program_of(jaxpr, consts, avals, name)
    made = kind(eqn, avals, primal, tuple(captured))
    params = {"jaxpr": primal, "name": name, "rule": made, "consts": (len(captured), 0)}
    return bind(primitive, [*captured, *operands], params)


class _JaxRule:
    """The rule of one equation of JAX, translated when it is asked for. Compared by identity."""

    __slots__ = ("eqn", "in_avals", "primal", "primal_consts")

    def __init__(self, eqn, in_avals: tuple, primal: Jaxpr, primal_consts: tuple):
        self.eqn = eqn
        self.in_avals = in_avals
        self.primal = primal
        self.primal_consts = primal_consts

    @property
    def out_avals(self) -> tuple:
        """Types of the outputs."""
        return self.primal.out_avals

    def run(self, function, values) -> list:
        """A function of JAX on values of ours, in the current trace; 64-bit types are there if the equation has them."""
        x64 = holds_64_bit(opened(jaxpr_of(self.eqn.params))[0])
        return evaluate(*record(function, list(map(aval_of, values)), x64), values)


class JaxJvp(_JaxRule):
    """The rule of a `jax.custom_jvp` function: what `jax.jvp` makes of its equation."""

    __slots__ = ()

    def __call__(self, consts, primals, tangents) -> tuple[list, list]:
        """(rule consts, primals, tangents) -> (outputs, their tangents)."""
        import jax

        function = one_equation(self.eqn)
        moving = [instantiate(t) for t in tangents if not _is_float0(t)]
        n = len(primals)

        def pushed(*values):
            rest = iter(values[n:])
            given = [np.zeros(t.aval.shape, float0) if _is_float0(t) else next(rest) for t in tangents]
            outs, out_tangents = jax.jvp(lambda *xs: list(function(*xs)), values[:n], tuple(given))
            return [*outs, *[t for t in out_tangents if t.dtype != float0]]

        found = self.run(pushed, [*primals, *moving])
        count = len(self.out_avals)
        rest = iter(found[count:])
        out_tangents = [tangent_aval(a) for a in self.out_avals]
        return found[:count], [Zero(a) if a.dtype == float0 else next(rest) for a in out_tangents]


class JaxVjp(_JaxRule):
    """The rule of a `jax.custom_vjp` function: what `jax.vjp` makes of its equation. The residuals are the operands."""

    __slots__ = ()
    symbolic = False

    def forward(self, consts, primals, perturbed):
        """(rule consts, primals, which of them move) -> (outputs, residuals, context)."""
        return eval_jaxpr(self.primal, [*self.primal_consts, *primals]), list(primals), None

    def backward(self, consts, context, residuals, cts) -> list:
        """(rule consts, context, residuals, cotangents) -> cotangents of the operands."""
        import jax

        function = one_equation(self.eqn)
        given = [instantiate(ct) for ct in cts if not _is_float0(ct)]
        n = len(residuals)

        def pulled(*values):
            outs, back = jax.vjp(lambda *xs: list(function(*xs)), *values[:n])
            rest = iter(values[n:])
            found = back([np.zeros(x.shape, float0) if _is_float0(ct) else next(rest) for x, ct in zip(outs, cts, strict=True)])
            return [ct for ct in found if ct.dtype != float0]

        rest = iter(self.run(pulled, [*residuals, *given]))
        return [Zero(a) if a.dtype == float0 else next(rest) for a in map(tangent_aval, self.in_avals)]


def _is_float0(t) -> bool:
    return type(t) is Zero and t.aval.dtype == float0
