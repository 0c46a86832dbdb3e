"""What a backward pass keeps in memory, and how to keep less: `checkpoint`, its policies, `print_saved_residuals`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from funcml.arguments import Call as UserCall
from funcml.arguments import argument_name, as_value, flatten_call, is_array_like, trace_call
from funcml.control_flow.scan import scan_p
from funcml.core.avals import ShapedArray
from funcml.core.errors import user_facing
from funcml.core.ir import Eqn, Jaxpr, Literal, Var, fresh_programs
from funcml.core.source import Source, describe
from funcml.core.tracing import aval_of
from funcml.dtypes import is_inexact
from funcml.primitives.identities import name_p
from funcml.shape_dtype import ShapeDtypeStruct
from funcml.transforms.call import Call
from funcml.transforms.costs import bytes_of
from funcml.transforms.linearize import linearize_jaxpr
from funcml.transforms.policies import Offloadable, Recompute, Saveable, checkpoint_policies
from funcml.transforms.remat import checkpoint, checkpoint_name, remat
from funcml.transforms.simplify import dce

__all__ = [
    "Offloadable", "Recompute", "Saveable", "SavedResidual", "checkpoint", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals", "remat", "saved_residuals",
]


class SavedResidual(NamedTuple):
    """One array that the backward pass needs.

    aval:     its type
    reason:   in words: which argument, constant or equation it comes from, and where that is
    bytes:    how many it takes
    equation: the name of the primitive that makes it; None for arguments, constants and literals
    line:     the user's line of that equation, as `file.py:12 (function)`
    steps:    in how many steps it is stacked, for each `scan` around the equation, outermost first
    """

    aval: ShapedArray
    reason: str
    bytes: int
    equation: str | None
    line: str | None
    steps: tuple[int, ...]


class _Origin(NamedTuple):
    """Where a variable comes from: an input of the outermost program, or an equation inside so many scans."""

    place: Any
    equation: Eqn | None
    source: Source | None
    steps: tuple[int, ...]


def _origin(v: Var | Literal, jaxpr: Jaxpr, steps: tuple[int, ...] = ()) -> _Origin:
    """The origin of a variable of a program: through calls to the equation inside them, through scans to that of a step."""
    if type(v) is Literal or v in jaxpr.invars:
        return _Origin(v, None, None, steps)
    eqn = next(e for e in jaxpr.eqns if v in e.outvars)
    index = eqn.outvars.index(v)
    if isinstance(eqn.primitive, Call):
        inner = eqn.params["jaxpr"]
        found = _origin(inner.outs[index], inner, steps)
        if found.equation is None and type(found.place) is Var:
            return _origin(eqn.invars[inner.invars.index(found.place)], jaxpr, steps)
        return found._replace(place=v) if found.equation else found
    if eqn.primitive is scan_p and index >= eqn.params["n_carry"]:
        inner = eqn.params["jaxpr"]
        found = _origin(inner.outs[index], inner, (*steps, eqn.params["length"]))
        if found.equation is None:
            return _Origin(v, eqn, eqn.source, found.steps)
        return found._replace(place=v)
    return _Origin(v, eqn, eqn.source, steps)


@user_facing
def saved_residuals(fun: Callable, *args: Any, **kwargs: Any) -> list[SavedResidual]:
    """What `vjp(fun, *args, **kwargs)` keeps for the backward pass, a `SavedResidual` for each array.

    Nothing is computed: arguments may be arrays, numbers or `ShapeDtypeStruct`s. All arguments that are floats or complex
    are differentiated. An array that several places need counts once. Constants come first, then arguments, then results of
    equations in the order of the program.

    >>> import funcml.numpy as jnp
    >>> for r in saved_residuals(lambda x, w: jnp.sin(x * w), jnp.ones(3), jnp.ones(3)):
    ...     print(r.aval, r.bytes, r.equation)
    f32[3] 12 None
    f32[3] 12 None
    f32[3] 12 cos
    """
    call = _all_arrays_traced(flatten_call(fun, args, kwargs, "saved_residuals"))
    avals = [aval_of(x) if is_array_like(x) else x.aval for x in call.inputs()]
    with fresh_programs():
        traced = trace_call(call, avals)
        moving = (False,) * len(traced.captured) + tuple([is_inexact(a.dtype) for a in avals])
        lin = linearize_jaxpr(traced.jaxpr, moving)
    known = dce(lin.known)
    n_constants = len(lin.captured) + len(traced.captured)
    leaves = [i for i, t in enumerate(call.traced) if t]
    names = [argument_name(call, i) for i in leaves]
    arguments = dict(zip(known.invars, [""] * n_constants + names, strict=True))
    origins: dict[Any, _Origin] = {}
    for v in known.outs[len(known.outs) - lin.residuals :]:
        origin = _origin(v, known)
        origins.setdefault(origin.place, origin)
    place = {v: i for i, v in enumerate(known.invars)}
    ordered = sorted(origins.values(), key=lambda o: len(place) if o.equation else place.get(o.place, -1))
    return [_record(origin, arguments.get(origin.place)) for origin in ordered]


def _all_arrays_traced(call: UserCall) -> UserCall:
    """The call with every array, number and `ShapeDtypeStruct` as an input of the program."""
    for i, x in enumerate(call.leaves):
        if is_array_like(x):
            call.leaves[i], call.traced[i] = as_value(x), True
        elif isinstance(x, ShapeDtypeStruct):
            call.traced[i] = True
    return call


def _record(origin: _Origin, argument: str | None) -> SavedResidual:
    """`argument`: the name of the argument that this is, '' for a constant, None for anything else."""
    aval, eqn = origin.place.aval, origin.equation
    if eqn is None:
        reason = "from a literal" if argument is None else f"from the argument {argument}" if argument else "from a constant"
        return SavedResidual(aval, reason, bytes_of(aval), None, None, ())
    line = describe(origin.source)
    what = f"named '{eqn.params['name']}'" if eqn.primitive is name_p else f"output of {eqn.primitive.name}"
    inside = "".join(f", in each of {n} steps of a scan" for n in origin.steps)
    return SavedResidual(aval, f"{what} from {line}{inside}", bytes_of(aval), eqn.primitive.name, line, origin.steps)


def print_saved_residuals(fun: Callable, *args: Any, **kwargs: Any) -> None:
    """Prints what `vjp(fun, *args, **kwargs)` keeps for the backward pass: bytes, type and reason of each array, and the sum.

    The largest come first. See `saved_residuals`, which gives the same as records.

    >>> import funcml.numpy as jnp
    >>> def f(x, w):
    ...     return jnp.sin(x * w)
    >>> print_saved_residuals(f, jnp.ones(3), jnp.ones(3))
            12  f32[3] from the argument x
            12  f32[3] from the argument w
            12  f32[3] output of cos from <doctest ...>:2 (f)
            36  bytes in 3 arrays
    """
    found = sorted(saved_residuals(fun, *args, **kwargs), key=lambda r: -r.bytes)
    total = sum(r.bytes for r in found)
    width = max(10, len(f"{total:,}"))
    for r in found:
        print(f"{r.bytes:>{width},}  {r.aval} {r.reason}")
    print(f"{total:>{width},}  bytes in {len(found)} arrays")
