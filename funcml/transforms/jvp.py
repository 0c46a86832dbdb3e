"""Forward mode: a program becomes the program of its result and the derivative of its result.

    jvp_jaxpr : a -> b   |->   (a, T a) -> (b, T b)

Each equation asks its primitive's `jvp_rule`; where all tangents are zero it is copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml.core.ir import Jaxpr, Var
from funcml.core.linear import Zero
from funcml.core.tracing import rebind, require_frame, trace
from funcml.primitives.tangents import instantiate, tangent_aval, zero_of
from funcml.transforms.rewriting import Rewritten, remembered

__all__ = ["evaluate_jvp", "jvp_jaxpr"]


def evaluate_jvp(jaxpr: Jaxpr, primals: Sequence, tangents: Sequence) -> tuple[list, list]:
    """Binds the equations of `jaxpr` and their derivatives in the current frame.

    in:  primals and tangents of the inputs; a tangent may be Zero
    out: primals and tangents of the outputs; a tangent may be Zero
    """
    frame = require_frame()
    outer_stamp = frame.stamp
    env: dict[Var, object] = dict(zip(jaxpr.invars, primals, strict=True))
    moving: dict[Var, object] = {
        v: t for v, t in zip(jaxpr.invars, tangents, strict=True) if type(t) is not Zero
    }
    for eqn in jaxpr.eqns:
        primitive, invars, outvars, params, source = eqn
        operands = [env[a] if type(a) is Var else a for a in invars]
        frame.stamp = outer_stamp or source
        if moving.keys().isdisjoint(invars):
            for v, out in zip(outvars, rebind(eqn, operands), strict=True):
                env[v] = out
            continue
        given = [moving[a] if a in moving else zero_of(a.aval) for a in invars]
        outs, out_tangents = primitive.jvp_rule(operands, given, **params)
        if not primitive.multiple_results:
            env[outvars[0]] = outs
            if type(out_tangents) is not Zero:
                moving[outvars[0]] = out_tangents
            continue
        for v, out, t in zip(outvars, outs, out_tangents, strict=True):
            env[v] = out
            if type(t) is not Zero:
                moving[v] = t
    frame.stamp = outer_stamp
    outs = [env[a] if type(a) is Var else a for a in jaxpr.outs]
    out_tangents = [
        moving[a] if type(a) is Var and a in moving else Zero(tangent_aval(a.aval)) for a in jaxpr.outs
    ]
    return outs, out_tangents


@remembered
def jvp_jaxpr(jaxpr: Jaxpr, nonzero: tuple[bool, ...], instantiated: tuple[bool, ...] | None = None) -> Rewritten:
    """The program of `jaxpr` and its derivative.

    nonzero:      which inputs have a tangent
    instantiated: which outputs must have one even where it is zero
    in:   captured..., primals..., tangents of the `nonzero` inputs...
    out:  primals..., tangents of the outputs for which `info` is true...
    info: which outputs have a tangent
    """
    n = len(jaxpr.invars)
    has_tangent: list[bool] = []

    def forward(*inputs):
        given = iter(inputs[n:])
        tangents = [
            next(given) if moves else Zero(tangent_aval(v.aval))
            for v, moves in zip(jaxpr.invars, nonzero, strict=True)
        ]
        outs, out_tangents = evaluate_jvp(jaxpr, inputs[:n], tangents)
        if instantiated is not None:
            out_tangents = [instantiate(t) if wanted else t for t, wanted in zip(out_tangents, instantiated, strict=True)]
        has_tangent.extend(type(t) is not Zero for t in out_tangents)
        return [*outs, *[t for t in out_tangents if type(t) is not Zero]]

    avals = [v.aval for v in jaxpr.invars]
    tangent_avals = [tangent_aval(a) for a, moves in zip(avals, nonzero, strict=True) if moves]
    new, captured = trace(forward, [*avals, *tangent_avals], "jvp")
    return Rewritten(new, captured, tuple(has_tangent))
