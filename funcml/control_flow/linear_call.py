"""`linear_call`: a function that is linear in its last inputs, with a transpose of its own.

    linear_call[forward, backward, held] r.. (held of them), x..  ->  y..        y = F(r) x; `backward` computes F(r)^T

Both programs take the same first inputs r; `forward` then takes the x, `backward` cotangents of the y. The transpose of a
linear_call is a linear_call with the programs exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml.control_flow.programs import uniform
from funcml.core.ir import Jaxpr, Primitive
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import bind
from funcml.primitives.batching import spread_at_front
from funcml.primitives.elementwise import add_any
from funcml.primitives.tangents import instantiate, tangent_aval, zero_tangent
from funcml.transforms.jvp import evaluate_jvp
from funcml.transforms.partial_eval import EqnSplit
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["linear_call", "linear_call_p"]


class LinearCall(Primitive):
    """See the module."""

    multiple_results = True
    holds_jaxpr = True

    def type_rule(self, *avals, forward, backward, held):
        if [a.strong() for a in avals] != [a.strong() for a in forward.in_avals]:
            raise TypeError(f"linear_call: the function takes {forward.in_avals}, got {avals}")
        return forward.out_avals

    # y = F(r) x   =>   y' = F(r) x' + (F'(r) r') x
    def jvp_rule(self, primals, tangents, *, held, **programs):
        rs, t_rs, t_xs = primals[:held], tangents[:held], tangents[held:]
        outs = bind(self, primals, {"held": held, **programs})
        terms = [[zero_tangent(y) for y in outs]]
        if any(type(t) is not Zero for t in t_xs):
            terms.append(bind(self, [*rs, *map(instantiate, t_xs)], {"held": held, **programs}))
        if any(type(t) is not Zero for t in t_rs):
            still = [Zero(tangent_aval(v.aval)) for v in programs["forward"].invars[held:]]
            terms.append(evaluate_jvp(programs["forward"], primals, [*t_rs, *still])[1])
        return outs, [_sum(values) for values in zip(*terms, strict=True)]

    # x* = F(r)^T y*
    def transpose_rule(self, cts, *operands, forward, backward, held):
        rs = operands[:held]
        if any(map(is_undefined, rs)):
            raise NotImplementedError("linear_call is linear in `linear_args` only, not in residuals nor in what it closes over")
        exchanged = {"forward": backward, "backward": forward, "held": held}
        return [*[None] * held, *bind(self, [*rs, *map(instantiate, cts)], exchanged)]

    def batch_rule(self, axis, operands, dims, *, forward, backward, held):
        rs, xs = operands[:held], operands[held:]
        xs = [spread_at_front(axis, x, d) for x, d in zip(xs, dims[held:], strict=True)]
        made = []
        for program in (forward, backward):
            in_dims = (*dims[:held], *[0] * (len(program.invars) - held))
            made.append(vmap_jaxpr(program, axis, in_dims, (0,) * len(program.outs))[:2])
        return linear_call(made, rs, xs), [0] * len(forward.outs)

    def partial_eval_rule(self, unknown_in, eqn):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))


linear_call_p = LinearCall("linear_call")


def linear_call(programs: Sequence[tuple[Jaxpr, list]], rs: Sequence, xs: Sequence) -> list:
    """y; `programs` are the function (captured.., r.., x..) and its transpose (captured.., r.., y..), with what they captured."""
    (forward, backward), captured = uniform(programs)
    held = len(captured) + len(rs)
    return bind(linear_call_p, [*captured, *rs, *xs], {"forward": forward, "backward": backward, "held": held})


def _sum(tangents):
    moving = [t for t in tangents if type(t) is not Zero]
    if not moving:
        return tangents[0]
    total, *others = moving
    for t in others:
        total = add_any(total, t)
    return total
