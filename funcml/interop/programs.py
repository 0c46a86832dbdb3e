"""Evaluating a program of JAX on values of ours, with the equations that hold programs themselves.

    evaluate : (jaxpr, consts, values) -> values

Calls are inlined. `custom_jvp` and `custom_vjp` functions keep their rule: it is what `jax.jvp` or `jax.vjp` makes of that one
equation, translated in its turn. Control flow is translated as far as it has no loop to run: a `cond` computes its branches and
selects (what is not selected has a structurally zero derivative), a `scan` of a few steps is written out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funcml.core.avals import ShapedArray
from funcml.core.check import checked
from funcml.core.ir import Jaxpr, Literal, intern
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind, eval_jaxpr, trace
from funcml.dtypes import canonical, float0, is_bool
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
    scan_layout,
    where,
)
from funcml.interop.translations import UntranslatedPrimitiveError, rule, translate
from funcml.primitives.axes import broadcast_in_dim, expand_dims, squeeze
from funcml.primitives.elementwise import clamp, convert, select_n
from funcml.primitives.random_bits import random_wrap
from funcml.primitives.shaping import concatenate, slice_in_dim
from funcml.primitives.tangents import instantiate, tangent_aval
from funcml.transforms.custom_jvp import custom_jvp_call_p
from funcml.transforms.custom_vjp import custom_vjp_call_p

__all__ = ["LONGEST_SCAN", "evaluate", "program_of"]

#: a scan of more steps than this is not written out
LONGEST_SCAN = 32


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


def program_of(jaxpr, consts: Sequence, avals: Sequence[ShapedArray], name: str) -> tuple[Jaxpr, list]:
    """A program of JAX as one of ours, with weak types as JAX gives them; and the values that it captures."""

    def translated(*values):
        outs = evaluate(jaxpr, consts, values)
        return [_typed(x, aval_from_jax(v.aval)) for x, v in zip(outs, jaxpr.outvars, strict=True)]

    found, captured = trace(translated, avals, name)
    return intern(checked(found)), captured


def _typed(x, aval: ShapedArray):
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

    def forward(self, consts, primals):
        """(rule consts, primals) -> (outputs, residuals, context)."""
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


# ---- control flow ----------------------------------------------------------------------------------------------------


@rule("cond")
def _cond(eqn, index, *operands, branches, **params):
    """The branch that `index` names; where it is not known, all branches are computed and one is selected."""
    if type(index) is Literal:
        return evaluate(*opened(branches[min(max(int(index.value), 0), len(branches) - 1)]), operands)
    for branch in branches:
        _check_selectable(eqn, opened(branch)[0])
    results = [evaluate(*opened(branch), operands) for branch in branches]
    if not is_bool(aval_of(index).dtype):
        index = clamp(np.int32(0), convert(index, np.dtype("int32")), np.int32(len(branches) - 1))
    shapes = [tuple(v.aval.shape) for v in eqn.outvars]
    return [
        select_n(index, *[broadcast_in_dim(x, shape) for x in cases])
        for cases, shape in zip(zip(*results, strict=True), shapes, strict=True)
    ]


def _check_selectable(eqn, branch) -> None:
    """Raises unless a branch may be computed although it is not taken: no effects, no loops."""
    if branch.effects:
        raise _needs_control_flow(eqn, "lax.cond", f"a branch has the effects {branch.effects}")


@rule("scan")
def _scan(eqn, *operands, jaxpr, length, reverse, **params):
    """A short scan, step by step."""
    if length > LONGEST_SCAN:
        raise _needs_control_flow(eqn, "lax.scan", f"only scans of up to {LONGEST_SCAN} steps are written out, this has {length}")
    n, m = scan_layout(params)
    consts, carry, xs = operands[:n], list(operands[n : n + m]), operands[n + m :]
    inner, inner_consts = opened(jaxpr)
    step, captured = program_of(inner, inner_consts, [aval_from_jax(v.aval) for v in inner.invars], "scan")
    rows: list = []
    for i in reversed(range(length)) if reverse else range(length):
        row = [squeeze(slice_in_dim(x, i, i + 1), (0,)) for x in xs]
        outs = eval_jaxpr(step, [*captured, *consts, *carry, *row])
        carry = outs[:m]
        rows.append(outs[m:])
    columns = zip(*(rows[::-1] if reverse else rows), strict=True)
    stacked = [concatenate([expand_dims(y, (0,)) for y in column], 0) for column in columns]
    empty = [] if rows else [_zeros(v) for v in eqn.outvars[m:]]
    return [*carry, *stacked, *empty]


def _zeros(var):
    aval = aval_from_jax(var.aval)
    return broadcast_in_dim(aval.dtype.type(0), aval.shape)


@rule("while")
def _while(eqn, *operands, **params):
    raise _needs_control_flow(eqn, "lax.while_loop", "the number of its steps is known only at run time")


def _needs_control_flow(eqn, what: str, reason: str) -> UntranslatedPrimitiveError:
    return UntranslatedPrimitiveError(
        f"from_jax: the JAX function at {where(eqn)} needs {what}, which comes with control flow: {reason}"
    )
