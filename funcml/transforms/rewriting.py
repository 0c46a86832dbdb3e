"""What passes share: the form of their results, and their memory.

A pass is a function `pass_(jaxpr, *static)`. What it records may close over values (a custom rule's own arrays): those are
leading inputs of the new program, as for `trace`, and come back beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from funcml.core.check import checked
from funcml.core.ir import Jaxpr, intern

__all__ = ["Rewritten", "remembered"]


class Rewritten(NamedTuple):
    """The result of a pass: a program with inputs (captured..., its own inputs...), and what else the pass found out."""

    jaxpr: Jaxpr
    captured: Sequence
    info: Any = None


def remembered(pass_: Callable[..., Rewritten]) -> Callable[..., Rewritten]:
    """The pass, its results checked and kept on the program they were made from.

    A result that captured values is not kept, but interned: another call may capture others.
    """

    def run(jaxpr: Jaxpr, *static) -> Rewritten:
        key = (pass_, *static)
        found = jaxpr.memo.get(key)
        if found is None:
            new, captured, info = pass_(jaxpr, *static)
            checked(new)
            if captured:
                return Rewritten(intern(new), tuple(captured), info)
            new.canonical = jaxpr.canonical
            found = jaxpr.memo[key] = Rewritten(new, (), info)
        return found

    run.__name__ = pass_.__name__
    run.__doc__ = pass_.__doc__
    return run
