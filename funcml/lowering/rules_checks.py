"""StableHLO of `control_flow.checks`: a check that `checkify` did not turn into a value is refused, a debug_check is nothing."""

from __future__ import annotations

from funcml.control_flow.checks import check_p, debug_check_p
from funcml.core.source import describe
from funcml.lowering.emit import lowers


@lowers(check_p)
def _check(emit, eqn, operands):
    raise ValueError(
        f"Cannot abstractly evaluate a checkify.check which was not functionalized ({describe(eqn.source)}): a compiled program "
        "cannot raise. Write `err, out = checkify.checkify(f)(...)`, then `err.throw()`; or use `checkify.debug_check`, which "
        "does nothing outside of checkify"
    )


@lowers(debug_check_p)
def _debug_check(emit, eqn, operands):
    return []
