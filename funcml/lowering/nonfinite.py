"""`config.debug_nans` and `config.debug_infs`: which operation made the NaN, or the infinity, that a program gave.

    looks_for_nonfinite : (name) -> bool                                   whether one of the two is on
    refuse_nonfinite : (who, program, inputs, outputs, run) -> None        FloatingPointError if an output holds one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from funcml import dtypes
from funcml.control_flow.checks import MOVES, InfError, NaNError, checkify_jaxpr
from funcml.core.config import config
from funcml.core.ir import Jaxpr, has_effects, intern, sub_programs
from funcml.core.source import describe
from funcml.transforms.simplify import dce

__all__ = ["looks_for_nonfinite", "refuse_nonfinite"]


class _Kind(NamedTuple):
    """What is looked for: its name, the check of `checkify` that finds its origin, and where arrays hold it."""

    word: str
    error: type
    holds: Callable

    def within(self, x) -> bool:
        return dtypes.is_inexact(x.dtype) and bool(self.holds(np.asarray(x)).any())


_NAN, _INF = _Kind("nan", NaNError, np.isnan), _Kind("inf", InfError, np.isinf)


def looks_for_nonfinite(name: str = "") -> bool:
    """Whether results are looked at: those of programs, and of single operations `name` that do more than move elements."""
    return (config.debug_nans or config.debug_infs) and name not in MOVES


def refuse_nonfinite(who: str, jaxpr: Jaxpr, inputs: Sequence, outs: Sequence, run: Callable) -> None:
    """Raises FloatingPointError if one of `outs`, the results of `jaxpr` for `inputs`, holds a NaN, or an infinity.

    It is found again with `run(program, arrays)`, by the checks of `checkify` on what leads to the outputs that hold one.
    """
    for kind, on in ((_NAN, config.debug_nans), (_INF, config.debug_infs)):
        bad = [i for i, x in enumerate(outs) if on and kind.within(x)]
        if bad:
            origin = _origin(kind, jaxpr, inputs, bad, run)
            raise FloatingPointError(f"invalid value ({kind.word}) encountered in {origin}, in {who}")


def _origin(kind: _Kind, jaxpr: Jaxpr, inputs: Sequence, bad: Sequence[int], run: Callable) -> str:
    """Where what these outputs hold comes from, in words; nothing is run twice that has an effect."""
    made = next((eqn for eqn in jaxpr.eqns if jaxpr.outs[bad[0]] in eqn.outvars), None)
    last = f"{made.primitive} ({describe(made.source)})" if made else f"output {bad[0]}"
    if has_effects(jaxpr) or any(getattr(x, "is_deleted", bool)() for x in inputs):
        return last
    jaxpr = intern(dce(Jaxpr(jaxpr.invars, jaxpr.eqns, [jaxpr.outs[i] for i in bad])))
    used = {a for eqn in jaxpr.eqns for a in eqn.invars} | set(jaxpr.outs)
    for k, (v, x) in enumerate(zip(jaxpr.invars, inputs, strict=True)):
        if v in used and kind.within(x):
            return f"input {k} of the program, {v.aval}"
    if len(jaxpr.eqns) == 1 and not sub_programs(jaxpr.eqns[0].params):
        return last
    program, captured, faults = checkify_jaxpr(jaxpr, frozenset({kind.error}))
    if not faults:
        return last
    code = int(np.asarray(run(intern(program), [*captured, *inputs])[0]))
    return f"{faults[code].primitive} ({faults[code].where})" if code >= 0 else last
