"""Linearisation and reverse mode, made of the other passes.

    linearize_jaxpr : a -> b   |->   a -> (b, residuals)   and   (residuals, T a) -> T b        jvp, then partial evaluation
    vjp_jaxpr       : a -> b   |->   a -> (b, residuals)   and   (residuals, T* b) -> T* a      that, then transposition
    grad_jaxpr      : a -> R   |->   a -> (R, T* a)                                             both halves in one program
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from funcml.core.ir import Jaxpr
from funcml.core.linear import Zero
from funcml.core.tracing import eval_jaxpr, trace
from funcml.primitives.tangents import instantiate, scalar_of, tangent_aval
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.partial_eval import partial_eval
from funcml.transforms.rewriting import Rewritten, remembered
from funcml.transforms.simplify import dce
from funcml.transforms.transpose import backward_pass, transpose_jaxpr

__all__ = ["Linearized", "evaluate_grad", "grad_jaxpr", "linearize_jaxpr", "vjp_jaxpr"]


class Linearized(NamedTuple):
    """A program and its derivative as two programs.

    known:       (captured..., primals...) -> (outputs..., residuals...)
    linear:      (residuals..., tangents of the moving inputs...) -> (tangents of outputs with `has_tangent`...)
    residuals:   how many there are
    has_tangent: which outputs have a tangent that is not zero throughout
    """

    known: Jaxpr
    linear: Jaxpr
    captured: Sequence
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


def evaluate_grad(jaxpr: Jaxpr, nonzero: tuple[bool, ...], values: Sequence) -> list:
    """Binds the value and the gradient of the first output of `jaxpr`, a scalar, in the current frame.

    in:  values of the inputs
    out: outputs..., gradients of the `nonzero` inputs...
    """
    lin = linearize_jaxpr(jaxpr, nonzero)
    outs = eval_jaxpr(lin.known, [*lin.captured, *values])
    seed = scalar_of(jaxpr.outs[0].aval, 1)
    cts = [seed if i == 0 else Zero(tangent_aval(a.aval)) for i, a in enumerate(jaxpr.outs)]
    given = [ct for ct, has in zip(cts, lin.has_tangent, strict=True) if has]
    cts_in, _ = backward_pass(lin.linear, outs[len(outs) - lin.residuals :], given)
    return [*outs[: len(jaxpr.outs)], *map(instantiate, cts_in)]


@remembered
def grad_jaxpr(jaxpr: Jaxpr, nonzero: tuple[bool, ...]) -> Rewritten:
    """The value and the gradient of the first output, a scalar, in one program.

    in:  captured..., inputs...
    out: outputs..., gradients of the `nonzero` inputs...
    """
    new, captured = trace(lambda *values: evaluate_grad(jaxpr, nonzero, values), jaxpr.in_avals, "grad")
    return Rewritten(dce(new), captured, None)
