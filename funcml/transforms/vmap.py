"""Vectorisation: a program of one example becomes the program of a batch.

    vmap_jaxpr : a -> b   |->   [n] a -> [n] b

Each equation asks its primitive's `batch_rule`; where no operand has the mapped axis and no collective speaks of it, it is
copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml.core.ir import Jaxpr, MappedAxis, Var
from funcml.core.named_axes import axis_in_scope, speaks_of
from funcml.core.tracing import rebind, require_frame, trace
from funcml.primitives.batching import batched_aval, place_axis
from funcml.transforms.rewriting import Rewritten, remembered

__all__ = ["evaluate_vmap", "vmap_jaxpr"]


def evaluate_vmap(jaxpr: Jaxpr, axis: MappedAxis, values: Sequence, dims: Sequence) -> tuple[list, list]:
    """Binds the batched equations of `jaxpr` in the current frame.

    in:  values of the inputs, and where the mapped axis is in each (an int or None)
    out: the outputs, and where the mapped axis is in each
    """
    frame = require_frame()
    outer_stamp = frame.stamp
    env: dict[Var, object] = dict(zip(jaxpr.invars, values, strict=True))
    mapped: dict[Var, int] = {v: d for v, d in zip(jaxpr.invars, dims, strict=True) if d is not None}
    for eqn in jaxpr.eqns:
        primitive, invars, outvars, params, source = eqn
        operands = [env[a] if type(a) is Var else a for a in invars]
        frame.stamp = outer_stamp or source
        eqn_dims = [mapped.get(a) if type(a) is Var else None for a in invars]
        if all(d is None for d in eqn_dims) and (axis.name is None or not speaks_of(eqn, axis.name)):
            for v, out in zip(outvars, rebind(eqn, operands), strict=True):
                env[v] = out
            continue
        outs, out_dims = primitive.batch_rule(axis, operands, eqn_dims, **params)
        if not primitive.multiple_results:
            outs, out_dims = (outs,), (out_dims,)
        for v, out, d in zip(outvars, outs, out_dims, strict=True):
            env[v] = out
            if d is not None:
                mapped[v] = d
    frame.stamp = outer_stamp
    outs = [env[a] if type(a) is Var else a for a in jaxpr.outs]
    return outs, [mapped.get(a) if type(a) is Var else None for a in jaxpr.outs]


@remembered
def vmap_jaxpr(
    jaxpr: Jaxpr, axis: MappedAxis, dims: tuple[int | None, ...], out_dims: tuple[int | None, ...] | None = None
) -> Rewritten:
    """The program of a batch.

    dims:     where the mapped axis is in each input
    out_dims: where it must be in each output; None for the whole: wherever the rules leave it
    in:   captured..., inputs with the mapped axis at `dims`
    out:  outputs with the mapped axis at `info`
    """
    found: list = []

    def batched(*inputs):
        outs, at = evaluate_vmap(jaxpr, axis, inputs, dims)
        if out_dims is None:
            found.extend(at)
            return outs
        found.extend(out_dims)
        return [place_axis(axis, x, d, wanted) for x, d, wanted in zip(outs, at, out_dims, strict=True)]

    avals = [batched_aval(v.aval, axis, d) for v, d in zip(jaxpr.invars, dims, strict=True)]
    with axis_in_scope(axis):
        new, captured = trace(batched, avals, "vmap")
    return Rewritten(new, captured, tuple(found))
