"""Transposition: a linear program, run backwards.

    transpose_jaxpr : (consts, linear a -> b)   |->   (consts, b's cotangents) -> a's cotangents

The equations are visited last to first; each asks its primitive's `transpose_rule` for the cotangents of its linear
operands, and cotangents of one variable are added.

Where a cotangent comes out of a `select`, it is structurally zero in the lanes not selected. Its mask travels with it, through
elementwise equations and movements of data, and is applied again after each multiplication by a residual: a residual that is
inf or nan in a lane not taken then gives 0 there, not nan. Where two cotangents meet, their masks are joined by `or`.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml import dtypes
from funcml.core.ir import Jaxpr, Literal, Var
from funcml.core.linear import UndefinedPrimal, Zero
from funcml.core.tracing import aval_of, eval_jaxpr, require_frame, trace
from funcml.primitives.elementwise import add_any, or_, select
from funcml.primitives.tangents import instantiate, tangent_aval, zeros
from funcml.transforms.partial_eval import partial_eval
from funcml.transforms.rewriting import Rewritten, remembered

__all__ = ["backward_pass", "evaluate_transpose", "transpose_jaxpr"]


class _Cotangents:
    """What has been gathered for each variable: a cotangent, and the mask of lanes where it may be non-zero."""

    def __init__(self):
        self.values: dict[Var, object] = {}
        self.masks: dict[Var, object] = {}

    def add(self, var: Var, ct, mask) -> None:
        if ct is None or type(ct) is Zero:
            return
        held = self.values.get(var)
        if held is None:
            self.values[var] = ct
            if mask is not None:
                self.masks[var] = mask
            return
        self.values[var] = add_any(held, ct)
        held_mask = self.masks.pop(var, None) if self.masks else None
        if held_mask is not None and mask is not None:
            self.masks[var] = held_mask if held_mask is mask else or_(held_mask, mask)

    def take(self, var: Var):
        ct = self.values.pop(var, None)
        return Zero(tangent_aval(var.aval)) if ct is None else ct


def evaluate_transpose(
    jaxpr: Jaxpr, linear: Sequence[bool], consts: Sequence, cts: Sequence, masks: Sequence | None = None
) -> tuple[list, list]:
    """Binds the transposed equations of `jaxpr` in the current frame.

    in:  which inputs are linear; the values of the others; cotangents of the outputs (a value or Zero) and their masks
    out: cotangents of the linear inputs (a value or Zero), and their masks (or None)
    """
    split = partial_eval(jaxpr, tuple(linear), (True,) * len(jaxpr.outs))
    return backward_pass(split.unknown, eval_jaxpr(split.known, consts), cts, masks)


def backward_pass(program: Jaxpr, residuals: Sequence, cts: Sequence, masks: Sequence | None = None) -> tuple[list, list]:
    """`evaluate_transpose` of a program (residuals..., linear inputs...) each of whose equations depends on a linear input."""
    env: dict[Var, object] = dict(zip(program.invars, residuals, strict=False))
    inputs = program.invars[len(residuals) :]
    env.update((v, UndefinedPrimal(v.aval)) for v in inputs)
    for eqn in program.eqns:
        for v in eqn.outvars:
            env[v] = UndefinedPrimal(v.aval)

    gathered = _Cotangents()
    for atom, ct, mask in zip(program.outs, cts, masks or [None] * len(cts), strict=True):
        if type(atom) is Var and type(env[atom]) is UndefinedPrimal:
            gathered.add(atom, ct, mask)
    frame = require_frame()
    outer_stamp = frame.stamp
    waiting = gathered.values.keys()
    for eqn in reversed(program.eqns):
        if waiting.isdisjoint(eqn.outvars):
            continue
        frame.stamp = outer_stamp or eqn.source
        _transpose_equation(eqn, [env[a] if type(a) is Var else a for a in eqn.invars], gathered)
    frame.stamp = outer_stamp
    return [gathered.take(v) for v in inputs], [gathered.masks.get(v) for v in inputs]


def _transpose_equation(eqn, operands, gathered: _Cotangents) -> None:
    primitive, invars, outvars, params, _ = eqn
    if primitive.takes_masks:
        masks = [gathered.masks.pop(v, None) for v in outvars]
        cts = [gathered.take(v) for v in outvars]
        cts_in, masks_in = primitive.transpose_rule(cts, *operands, masks=masks, **params)
        for a, ct, mask in zip(invars, cts_in, masks_in, strict=True):
            if type(a) is Var:
                gathered.add(a, ct, mask)
        return
    if primitive.multiple_results:
        mask = None
        cts_in = primitive.transpose_rule([gathered.take(v) for v in outvars], *operands, **params)
    else:
        mask = gathered.masks.pop(outvars[0], None) if gathered.masks else None
        cts_in = primitive.transpose_rule(gathered.values.pop(outvars[0]), *operands, **params)
    if mask is not None or primitive.makes_masks:
        _add_masked(eqn, operands, cts_in, mask, gathered)
        return
    values = gathered.values
    for a, x, ct in zip(invars, operands, cts_in, strict=True):
        if type(x) is UndefinedPrimal and ct is not None and type(ct) is not Zero:
            if a in values:
                gathered.add(a, ct, None)
            else:
                values[a] = ct


def _add_masked(eqn, operands, cts_in, mask, gathered: _Cotangents) -> None:
    """Adds the cotangents of the operands with their masks, applied again to those that were multiplied by a residual."""
    primitive = eqn.primitive
    multiplied = mask is not None and primitive.elementwise and _has_residual(operands)
    for i, (a, x, ct) in enumerate(zip(eqn.invars, operands, cts_in, strict=True)):
        if type(x) is not UndefinedPrimal or ct is None or type(ct) is Zero:
            continue
        moved = primitive.transpose_mask(mask, i, operands, **eqn.params)
        if multiplied and moved is not None:
            ct = select(moved, ct, zeros(aval_of(ct)))
        gathered.add(a, ct, moved)


def _has_residual(operands) -> bool:
    return any(type(x) is not UndefinedPrimal and type(x) is not Literal for x in operands)


@remembered
def transpose_jaxpr(
    jaxpr: Jaxpr,
    linear: tuple[bool, ...],
    nonzero: tuple[bool, ...],
    masked: tuple[bool, ...] | None = None,
    instantiated: bool = False,
) -> Rewritten:
    """The transposed program.

    linear:  which inputs the program is linear in
    nonzero: which outputs have a cotangent; masked: which of those have a mask
    in:   captured..., inputs that are not linear..., cotangents of the `nonzero` outputs..., masks of the `masked` outputs...
    out:  cotangents of the linear inputs with `info[0]`..., masks of those with `info[1]`...
    info: for each linear input: whether it has a cotangent (always, if `instantiated`), whether that has a mask
    """
    masked = masked or (False,) * len(nonzero)
    const_avals = [v.aval for v, is_linear in zip(jaxpr.invars, linear, strict=True) if not is_linear]
    ct_avals = [tangent_aval(a.aval) for a, given in zip(jaxpr.outs, nonzero, strict=True) if given]
    mask_avals = [_mask_aval(a.aval) for a, m in zip(jaxpr.outs, masked, strict=True) if m]
    info: list = []

    def backward(*values):
        rest = iter(values[len(const_avals) :])
        cts = [
            next(rest) if given else Zero(tangent_aval(a.aval)) for a, given in zip(jaxpr.outs, nonzero, strict=True)
        ]
        masks = [next(rest) if m else None for m in masked]
        cts_in, masks_in = evaluate_transpose(jaxpr, linear, values[: len(const_avals)], cts, masks)
        if instantiated:
            cts_in = [instantiate(ct) for ct in cts_in]
        has_ct = tuple(type(ct) is not Zero for ct in cts_in)
        has_mask = tuple(m is not None and given for m, given in zip(masks_in, has_ct, strict=True))
        info.extend([has_ct, has_mask])
        kept = [ct for ct, given in zip(cts_in, has_ct, strict=True) if given]
        return [*kept, *[m for m, given in zip(masks_in, has_mask, strict=True) if given]]

    new, captured = trace(backward, [*const_avals, *ct_avals, *mask_avals], "transpose")
    return Rewritten(new, captured, tuple(info))


def _mask_aval(aval):
    return aval.update(dtype=dtypes.bool_, weak_type=False)
