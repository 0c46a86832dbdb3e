"""The named axes in whose scope a function is being recorded: what collectives may speak of.

    with axis_in_scope(axis):      while the function of one example is recorded
        axis_size("i")             the number of examples

Which names an equation speaks of is read from its `axis_names`, and for one that holds programs from theirs.
"""

from __future__ import annotations

import threading

from funcml.core.ir import Eqn, Jaxpr, MappedAxis, sub_programs

__all__ = ["axis_in_scope", "axis_size", "axes_in_scope", "speaks_of"]


class _Scope(threading.local):
    axes: tuple[MappedAxis, ...] = ()


_scope = _Scope()


class axis_in_scope:
    """A context in which `axis` is in scope; an axis without a name changes nothing."""

    def __init__(self, axis: MappedAxis):
        self.axis = axis

    def __enter__(self):
        self.outer = _scope.axes
        if self.axis.name is not None:
            _scope.axes = (*self.outer, self.axis)

    def __exit__(self, *exc):
        _scope.axes = self.outer


def axes_in_scope() -> tuple[MappedAxis, ...]:
    """The named axes of this thread, the innermost last: part of the key of what is recorded in their scope."""
    return _scope.axes


def axis_size(name, who: str) -> int:
    """The size of the innermost axis called `name`; NameError if there is none."""
    for axis in reversed(_scope.axes):
        if axis.name == name:
            return axis.size
    known = ", ".join(repr(axis.name) for axis in _scope.axes) or "none"
    raise NameError(
        f"{who}: Found an unbound axis name: {name}. The axes in scope here are: {known}. "
        f"Call it inside a function that is mapped with `vmap(..., axis_name={name!r})`."
    )


def speaks_of(eqn: Eqn, name) -> bool:
    """Whether an equation, or one in a program that it holds, is a collective over the axis `name`."""
    if name in eqn.params.get("axis_names", ()):
        return True
    return eqn.primitive.holds_jaxpr and any(name in _names_in(p) for p in sub_programs(eqn.params))


def _names_in(jaxpr: Jaxpr) -> frozenset:
    """The axis names of which the equations of a program speak; remembered on the program."""
    found = jaxpr.memo.get(_names_in)
    if found is None:
        names: set = set()
        for eqn in jaxpr.eqns:
            names.update(eqn.params.get("axis_names", ()))
            names.update(*map(_names_in, sub_programs(eqn.params)))
        found = jaxpr.memo[_names_in] = frozenset(names)
    return found
