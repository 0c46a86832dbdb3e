"""Linearisation and reverse mode, made of the other passes.

    linearize_jaxpr : a -> b   |->   a -> (b, residuals)   and   (residuals, T a) -> T b        jvp, then partial evaluation
    vjp_jaxpr       : a -> b   |->   a -> (b, residuals)   and   (residuals, T* b) -> T* a      that, then transposition
    pullback_jaxpr  : a -> b   |->   (a, T* b) -> (b, T* a)                                     both halves in one program
"""

from __future__ import annotations

from typing import NamedTuple

from funcml.core.ir import Jaxpr
from funcml.core.linear import Zero
from funcml.core.tracing import eval_jaxpr, trace
from funcml.primitives.tangents import instantiate, tangent_aval
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.partial_eval import partial_eval
from funcml.transforms.rewriting import Rewritten, remembered
from funcml.transforms.transpose import evaluate_transpose, transpose_jaxpr

__all__ = ["Linearized", "linearize_jaxpr", "pullback_jaxpr", "vjp_jaxpr"]


class Linearized(NamedTuple):
    """A program and its derivative as two programs.

    known:       (captured..., primals...) -> (outputs..., residuals...)
    linear:      (residuals..., tangents of the moving inputs...) -> (tangents of outputs with `has_tangent`...)
    residuals:   how many there are
    has_tangent: which outputs have a tangent that is not zero throughout
    """

    known: Jaxpr
    linear: Jaxpr
    captured: tuple
    residuals: int
    has_tangent: tuple[bool, ...]


def linearize_jaxpr(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> Linearized:
    """Linearises `jaxpr` in the inputs that are `nonzero`."""
    fused, captured, has_tangent = jvp_jaxpr(jaxpr, nonzero)
    moving = sum(nonzero)
    unknown_in = (False,) * (len(fused.invars) - moving) + (True,) * moving
    forced = (False,) * len(jaxpr.outs) + (True,) * sum(has_tangent)
    split = partial_eval(fused, unknown_in, forced)
    return Linearized(split.known, split.unknown, captured, split.residuals, has_tangent)


def vjp_jaxpr(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> tuple[Linearized, Rewritten]:
    """`jaxpr` linearised, and its linear half transposed.

    The second program is (captured..., residuals..., cotangents of outputs with `has_tangent`...) -> cotangents of the
    moving inputs, all of them.
    """
    lin = linearize_jaxpr(jaxpr, nonzero)
    linear = (False,) * lin.residuals + (True,) * (len(lin.linear.invars) - lin.residuals)
    given = (True,) * len(lin.linear.outs)
    return lin, transpose_jaxpr(lin.linear, linear, given, None, True)


@remembered
def pullback_jaxpr(jaxpr: Jaxpr, nonzero: tuple[bool, ...], seeded: tuple[bool, ...]) -> Rewritten:
    """Value and cotangents in one program.

    nonzero: which inputs get a cotangent; seeded: which outputs are given one (the others': zero)
    in:  captured..., primals..., cotangents of the `seeded` outputs...
    out: outputs..., cotangents of the `nonzero` inputs...
    """
    lin = linearize_jaxpr(jaxpr, nonzero)
    n, n_captured = len(jaxpr.invars), len(lin.captured)
    linear = (False,) * lin.residuals + (True,) * (len(lin.linear.invars) - lin.residuals)

    def both(*values):
        outs = eval_jaxpr(lin.known, values[: n_captured + n])
        rest = iter(values[n_captured + n :])
        cts = [
            next(rest) if seed else Zero(tangent_aval(a.aval)) for a, seed in zip(jaxpr.outs, seeded, strict=True)
        ]
        moving = [ct for ct, has in zip(cts, lin.has_tangent, strict=True) if has]
        residuals = outs[len(outs) - lin.residuals :]
        cts_in, _ = evaluate_transpose(lin.linear, linear, residuals, moving)
        return [*outs[: len(jaxpr.outs)], *map(instantiate, cts_in)]

    avals = [v.aval for v in lin.known.invars]
    ct_avals = [tangent_aval(a.aval) for a, seed in zip(jaxpr.outs, seeded, strict=True) if seed]
    new, captured = trace(both, [*avals, *ct_avals], "vjp")
    return Rewritten(new, (*captured, *lin.captured), None)
