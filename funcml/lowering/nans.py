"""`config.debug_nans`: which operation made the NaN that a program gave.

    refuse_nans : (who, program, inputs, outputs, run) -> None        FloatingPointError if an output holds a NaN
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes
from funcml.control_flow.checks import NaNError, checkify_jaxpr
from funcml.core.ir import Jaxpr, has_effects, intern
from funcml.core.source import describe
from funcml.transforms.simplify import dce

__all__ = ["refuse_nans"]


def refuse_nans(who: str, jaxpr: Jaxpr, inputs: Sequence, outs: Sequence, run: Callable) -> None:
    """Raises FloatingPointError if one of `outs`, the results of `jaxpr` for `inputs`, holds a NaN.

    It is found again with `run(program, arrays)`, by the checks of `checkify` on what leads to the outputs that hold one.
    """
    bad = [i for i, x in enumerate(outs) if _has_nan(x)]
    if bad:
        raise FloatingPointError(f"invalid value (nan) encountered in {_origin(jaxpr, inputs, bad, run)}, in {who}")


def _has_nan(x) -> bool:
    return dtypes.is_inexact(x.dtype) and bool(np.isnan(np.asarray(x)).any())


def _origin(jaxpr: Jaxpr, inputs: Sequence, bad: Sequence[int], run: Callable) -> str:
    """Where the NaNs of these outputs come from, in words; nothing is run twice that has an effect."""
    made = next((eqn for eqn in jaxpr.eqns if jaxpr.outs[bad[0]] in eqn.outvars), None)
    unknown = f"{made.primitive} ({describe(made.source)})" if made else f"output {bad[0]}"
    if has_effects(jaxpr) or any(getattr(x, "is_deleted", bool)() for x in inputs):
        return unknown
    jaxpr = intern(dce(Jaxpr(jaxpr.invars, jaxpr.eqns, [jaxpr.outs[i] for i in bad])))
    used = {a for eqn in jaxpr.eqns for a in eqn.invars} | set(jaxpr.outs)
    for k, (v, x) in enumerate(zip(jaxpr.invars, inputs, strict=True)):
        if v in used and _has_nan(x):
            return f"input {k} of the program, {v.aval}"
    program, captured, faults = checkify_jaxpr(jaxpr, frozenset({NaNError}))
    if not faults:
        return unknown
    code = int(np.asarray(run(intern(program), [*captured, *inputs])[0]))
    return f"{faults[code].primitive} ({faults[code].where})" if code >= 0 else unknown
