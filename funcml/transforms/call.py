"""`call`: a program as one equation of another. It is what `jit` leaves in the program that calls it.

Each rule applies the transform to the inner program and leaves a call of the result; the lowering writes one private function
for each inner program.
"""

from __future__ import annotations

from typing import NamedTuple

from funcml.core.ir import Eqn, Jaxpr, Primitive, Var, intern, memoised
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import bind
from funcml.primitives.tangents import tangent_aval
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.partial_eval import EqnSplit, partial_eval
from funcml.transforms.transpose import transpose_jaxpr
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["Call", "call", "call_p", "split_call", "without_calls"]


class Call(Primitive):
    """call[jaxpr, name] inputs = the outputs of `jaxpr`. A subclass may carry more parameters and keeps them in every rule."""

    multiple_results = True
    holds_jaxpr = True
    takes_masks = True

    def type_rule(self, *avals, jaxpr, name, **params):
        if len(avals) != len(jaxpr.invars):
            raise TypeError(f"{self.name} of {name} takes {len(jaxpr.invars)} inputs, got {len(avals)}")
        for given, var in zip(avals, jaxpr.invars, strict=True):
            if given.strong() is not var.aval.strong():
                raise TypeError(f"{self.name} of {name} expects {var.aval}, got {given}")
        return jaxpr.out_avals

    def apply(self, jaxpr: Jaxpr, operands, name: str, **params) -> list:
        """Binds a call of another program with the parameters of this one."""
        return bind(self, operands, {"jaxpr": jaxpr, "name": name, **params})

    def jvp_rule(self, primals, tangents, *, jaxpr, name, **params):
        nonzero = tuple([type(t) is not Zero for t in tangents])
        new, captured, has_tangent = jvp_jaxpr(jaxpr, nonzero)
        moving = [t for t in tangents if type(t) is not Zero]
        outs = self.apply(new, [*captured, *primals, *moving], f"jvp_{name}", **params)
        given = iter(outs[len(jaxpr.outs) :])
        out_tangents = [
            next(given) if has else Zero(tangent_aval(a.aval)) for a, has in zip(jaxpr.outs, has_tangent, strict=True)
        ]
        return outs[: len(jaxpr.outs)], out_tangents

    def batch_rule(self, axis, operands, dims, *, jaxpr, name, **params):
        new, captured, out_dims = vmap_jaxpr(jaxpr, axis, tuple(dims))
        return self.apply(new, [*captured, *operands], f"vmap_{name}", **params), out_dims

    def partial_eval_rule(self, unknown_in, eqn):
        return split_call(self, unknown_in, eqn)

    def transpose_rule(self, cts, *operands, masks, jaxpr, name, **params):
        linear = tuple([is_undefined(x) for x in operands])
        nonzero = tuple([type(ct) is not Zero for ct in cts])
        masked = tuple([m is not None for m in masks])
        new, captured, (has_ct, has_mask) = transpose_jaxpr(jaxpr, linear, nonzero, masked)
        consts = [x for x in operands if not is_undefined(x)]
        given = [ct for ct in cts if type(ct) is not Zero]
        inputs = [*captured, *consts, *given, *[m for m in masks if m is not None]]
        outs = iter(self.apply(new, inputs, f"transpose_{name}", **params))
        found = [next(outs) if has else None for has in has_ct]
        found_masks = [next(outs) if has else None for has in has_mask]
        return _scatter(linear, found), _scatter(linear, found_masks)


def _scatter(flags, values) -> list:
    """`values` in order at the places where `flags` is true, None elsewhere."""
    rest = iter(values)
    return [next(rest) if f else None for f in flags]


class _CallSplit(NamedTuple):
    """A `Split` for calls: the known program does not give back its own inputs.

    inputs: for each residual, which known input it is, or None for a result of the known program
    """

    known: Jaxpr
    unknown: Jaxpr
    inputs: tuple[int | None, ...]
    out_unknown: tuple[bool, ...]


@memoised
def _split(jaxpr: Jaxpr, unknown_in: tuple[bool, ...]) -> _CallSplit:
    split = partial_eval(jaxpr, unknown_in)
    places = {v: i for i, v in enumerate(split.known.invars)}
    n = len(split.known.outs) - split.residuals
    inputs = tuple([places.get(v) if type(v) is Var else None for v in split.known.outs[n:]])
    known = split.known
    if any(i is not None for i in inputs):
        known = Jaxpr(known.invars, known.eqns, [*known.outs[:n], *[v for v in known.outs[n:] if v not in places]])
        known.canonical = jaxpr.canonical
    return _CallSplit(known, split.unknown, inputs, split.out_unknown)


def split_call(primitive: Primitive, unknown_in, eqn: Eqn) -> EqnSplit:
    """A call of the known half, and a call of the unknown half on its residuals; all of it, if no result is known."""
    name = eqn.params["name"]
    split = _split(eqn.params["jaxpr"], tuple(unknown_in))
    if all(split.out_unknown):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))
    known_in = [a for a, u in zip(eqn.invars, unknown_in, strict=True) if not u]
    unknown_inputs = [a for a, u in zip(eqn.invars, unknown_in, strict=True) if u]
    known_outs = [v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if not u]
    unknown_outs = [v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if u]
    computed = [Var(a.aval) for a in split.known.outs[len(known_outs) :]]
    rest_computed = iter(computed)
    residuals = [next(rest_computed) if i is None else known_in[i] for i in split.inputs]
    rest = {k: v for k, v in eqn.params.items() if k not in ("jaxpr", "name")}
    known_eqn = Eqn(
        primitive,
        tuple(known_in),
        tuple([*known_outs, *computed]),
        {"jaxpr": split.known, "name": f"known_{name}", **rest},
        eqn.source,
    )
    unknown_eqn = Eqn(
        primitive,
        tuple([*residuals, *unknown_inputs]),
        tuple(unknown_outs),
        {"jaxpr": split.unknown, "name": f"unknown_{name}", **rest},
        eqn.source,
    )
    return EqnSplit([known_eqn], [unknown_eqn], list(split.out_unknown))


call_p = Call("call")


def call(jaxpr: Jaxpr, operands, name: str) -> list:
    """Calls an interned program on values: one equation inside a trace, a run outside."""
    return call_p.apply(jaxpr, operands, name)


@memoised
def without_calls(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with the equations of the programs that it calls in the place of the calls, nested ones too."""
    if not any(eqn.primitive is call_p for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Eqn] = []
    names: dict = {}
    _copy(jaxpr.eqns, names, eqns)
    return intern(Jaxpr(jaxpr.invars, eqns, [names.get(a, a) for a in jaxpr.outs]))


def _copy(source, names: dict, eqns: list[Eqn]) -> None:
    """Appends the equations `source` with the atoms that `names` gives, calls among them resolved, results under fresh names."""
    for eqn in source:
        invars = tuple([names.get(a, a) for a in eqn.invars])
        if eqn.primitive is not call_p:
            fresh = tuple([Var(v.aval) for v in eqn.outvars])
            names.update(zip(eqn.outvars, fresh, strict=True))
            eqns.append(eqn._replace(invars=invars, outvars=fresh))
            continue
        inner = eqn.params["jaxpr"]
        within = dict(zip(inner.invars, invars, strict=True))
        _copy(inner.eqns, within, eqns)
        names.update(zip(eqn.outvars, [within.get(a, a) for a in inner.outs], strict=True))
