"""`checkpoint`: intermediate values recomputed in the backward pass instead of kept.

A call leaves `checkpoint[jaxpr, policy]`. Linearisation splits it by the policy: what the policy saves, and the inputs, are
residuals; the backward half computes the rest again from them, behind a barrier that keeps XLA from sharing it with the
forward half.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcml import tree
from funcml.core.check import checked
from funcml.core.errors import user_facing
from funcml.core.ir import Eqn, Jaxpr, Var, effectful, intern
from funcml.core.tracing import aval_of, current_frame, trace
from funcml.core.values import Array
from funcml.primitives.contraction import dot_general_p
from funcml.primitives.identities import name, name_p
from funcml.transforms.call import Call
from funcml.transforms.partial_eval import EqnSplit, partial_eval
from funcml.transforms.simplify import dce

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_p", "checkpoint_policies", "remat"]

Policy = Callable[..., bool]


class checkpoint_policies:
    """Policies `policy(primitive, *avals, **params) -> bool`: whether the results of an equation are saved."""

    @staticmethod
    def everything_saveable(primitive, *avals, **params) -> bool:
        """Saves all: as if there were no checkpoint."""
        return True

    @staticmethod
    def nothing_saveable(primitive, *avals, **params) -> bool:
        """Saves nothing but the inputs; the default."""
        return False

    @staticmethod
    def dots_saveable(primitive, *avals, **params) -> bool:
        """Saves the results of `dot_general`."""
        return primitive is dot_general_p

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(primitive, *avals, **params) -> bool:
        """Saves the results of `dot_general` without batch dimensions: the weights' products of a transformer."""
        return primitive is dot_general_p and not params["dimension_numbers"][1][0]

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Saves what `checkpoint_name` gave one of these names."""
        return _Named(frozenset(names), True)

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Saves what `checkpoint_name` gave a name, except these."""
        return _Named(frozenset(names), False)

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Policy:
        """Saves all but what `checkpoint_name` gave one of these names."""
        return _Except(frozenset(names))

    @staticmethod
    def save_from_both_policies(first: Policy, second: Policy) -> Policy:
        """Saves what either policy saves."""
        return _Either(first, second)


class _Named(frozenset):
    """Whether a name is among these (or, with `among=False`, not among them)."""

    among: bool

    def __new__(cls, names, among):
        made = super().__new__(cls, names)
        made.among = among
        return made

    def __eq__(self, other) -> bool:
        return isinstance(other, _Named) and self.among == other.among and frozenset.__eq__(self, other)

    def __hash__(self) -> int:
        return hash((frozenset(self), self.among))

    def __call__(self, primitive, *avals, **params) -> bool:
        return primitive is name_p and (params["name"] in self) == self.among


class _Except(frozenset):
    """Whether an equation is not a name among these."""

    def __call__(self, primitive, *avals, **params) -> bool:
        return not (primitive is name_p and params["name"] in self)


class _Either(tuple):
    """Whether one of two policies saves."""

    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))

    def __call__(self, primitive, *avals, **params) -> bool:
        return self[0](primitive, *avals, **params) or self[1](primitive, *avals, **params)


class Checkpoint(Call):
    """checkpoint[jaxpr, policy] inputs; one that `recomputes` is lowered behind a barrier if `prevent_cse`."""

    def partial_eval_rule(self, unknown_in, eqn):
        return _split(self, unknown_in, eqn)


def _split(primitive: Checkpoint, unknown_in, eqn: Eqn) -> EqnSplit:
    """The known half runs forward; the unknown half takes the inputs and what the policy saves, and computes the rest again.

        known:   inputs                           -> known outputs, saved
        unknown: inputs, saved, unknown inputs    -> unknown outputs          (itself a checkpoint)
    """
    params = eqn.params
    jaxpr, policy = params["jaxpr"], params["policy"]
    split = partial_eval(jaxpr, tuple(unknown_in))
    if all(split.out_unknown):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))
    known_outs = [v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if not u]
    unknown_outs = [v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if u]
    known_in = [a for a, u in zip(eqn.invars, unknown_in, strict=True) if not u]
    unknown_inputs = [a for a, u in zip(eqn.invars, unknown_in, strict=True) if u]

    saved = _saved_variables(split.known, policy)
    forward = dce(Jaxpr(split.known.invars, split.known.eqns, [*split.known.outs[: len(known_outs)], *saved]))
    n = len(known_outs)
    recomputed = _recompute(split, n, saved)
    residuals = [Var(v.aval) for v in saved]
    rest = {k: v for k, v in params.items() if k not in ("jaxpr", "name")}
    name = params["name"]
    known_params = {"jaxpr": intern(checked(forward)), "name": f"known_{name}", **rest}
    unknown_params = {"jaxpr": recomputed, "name": f"recompute_{name}", **rest, "recomputes": True}
    known_eqn = Eqn(primitive, tuple(known_in), tuple([*known_outs, *residuals]), known_params, eqn.source)
    unknown_eqn = Eqn(
        primitive, tuple([*known_in, *residuals, *unknown_inputs]), tuple(unknown_outs), unknown_params, eqn.source
    )
    return EqnSplit([known_eqn], [unknown_eqn], list(split.out_unknown))


def _saved_variables(known: Jaxpr, policy: Policy) -> list[Var]:
    """The variables of the known half that the policy saves, and the results of effects, which happen once."""
    return [
        v
        for e in known.eqns
        if effectful(e) or policy(e.primitive, *[a.aval for a in e.invars], **e.params)
        for v in e.outvars
    ]


def _recompute(split, n: int, saved: list[Var]) -> Jaxpr:
    """(inputs, saved, unknown inputs) -> unknown outputs: the known half again, down to what is saved, then the unknown half."""
    kept = set(saved)
    again = [e for e in split.known.eqns if not kept.issuperset(e.outvars)]
    residuals = split.known.outs[n:]
    substitution = dict(zip(split.unknown.invars[: split.residuals], residuals, strict=True))
    unknown = [
        e._replace(invars=tuple([substitution.get(a, a) if type(a) is Var else a for a in e.invars]))
        for e in split.unknown.eqns
    ]
    outs = [substitution.get(a, a) if type(a) is Var else a for a in split.unknown.outs]
    invars = [*split.known.invars, *saved, *split.unknown.invars[split.residuals :]]
    return intern(checked(dce(Jaxpr(invars, [*again, *unknown], outs))))


checkpoint_p = Checkpoint("checkpoint")


def checkpoint(
    fun: Callable | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Any:
    """`fun`, whose intermediate values are recomputed in the backward pass instead of kept.

    `policy(primitive, *avals, **params) -> bool` says which results are saved all the same; see `checkpoint_policies`. Only
    the inputs are, by default. XLA:CPU drops barriers and may compute both halves as one; GPU and TPU keep them apart.
    `prevent_cse=False` allows XLA to undo the recomputation, as is right inside a `scan`.

    >>> import funcml, funcml.numpy as jnp
    >>> float(funcml.grad(funcml.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)
    if not callable(fun):
        raise TypeError(f"checkpoint expects a function, got {fun!r} of type {type(fun).__name__}")
    static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)
    label = getattr(fun, "__name__", type(fun).__name__)

    @functools.wraps(fun)
    def checkpointed(*args, **kwargs):
        if current_frame() is None:
            return fun(*args, **kwargs)
        fixed = {i % len(args): args[i] for i in static}
        leaves, treedef = tree.flatten((tuple([a for i, a in enumerate(args) if i not in fixed]), kwargs))
        opaque = [None if _is_array(x) else x for x in leaves]
        values = [x for x in leaves if _is_array(x)]
        out_tree: list = []

        def flat(*tracers):
            rest = iter(tracers)
            dynamic, named = tree.unflatten(treedef, [next(rest) if o is None else o for o in opaque])
            moving = iter(dynamic)
            full = [fixed[i] if i in fixed else next(moving) for i in range(len(args))]
            outs, out_treedef = tree.flatten(fun(*full, **named))
            out_tree.append(out_treedef)
            return outs

        jaxpr, captured = trace(flat, [aval_of(x) for x in values], f"checkpoint of {label}", values)
        params = {
            "policy": policy or checkpoint_policies.nothing_saveable,
            "prevent_cse": prevent_cse,
            "recomputes": False,
        }
        outs = checkpoint_p.apply(intern(checked(jaxpr)), [*captured, *values], label, **params)
        return tree.unflatten(out_tree[0], outs)

    return user_facing(checkpointed)


def _is_array(x) -> bool:
    return isinstance(x, Array | np.ndarray | np.generic | float | complex)


remat = checkpoint


def checkpoint_name(x, name_: str):
    """`x`, marked with a name that policies can refer to.

    >>> import funcml
    >>> float(checkpoint_name(1.0, "hidden"))
    1.0
    """
    return tree.map(lambda leaf: name(leaf, name_), x)
