"""`checkpoint`: intermediate values recomputed in the backward pass instead of kept.

A call leaves `checkpoint[jaxpr, policy]`. Linearisation splits it by the policy: what the policy saves, and the inputs, are
residuals, as far as they are used; the backward half computes the rest again from them, behind a barrier that keeps XLA from
sharing it with the forward half. A policy is asked of the equations inside calls (of `jit`), loops and branches as well.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcml import tree
from funcml.core.check import checked
from funcml.core.errors import user_facing
from funcml.core.ir import Eqn, Jaxpr, Var, effectful, intern, memoised, sub_programs
from funcml.core.tracing import aval_of, current_frame, trace
from funcml.core.values import Array
from funcml.primitives.identities import name
from funcml.transforms.call import Call, without_calls
from funcml.transforms.costs import OPERATIONS_PER_BYTE, operations
from funcml.transforms.minimum_cut import Recomputation
from funcml.transforms.partial_eval import EqnSplit, known_again, partial_eval
from funcml.transforms.policies import Automatic, Policy, checkpoint_policies, saves
from funcml.transforms.simplify import dce

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_p", "checkpointed_call", "policy_of", "remat"]

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
    if policy is not checkpoint_policies.nothing_saveable:
        jaxpr = _with_policy_inside(without_calls(jaxpr), policy)
    split = partial_eval(jaxpr, tuple(unknown_in))
    if all(split.out_unknown):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))
    known_outs = [v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if not u]
    unknown_outs = [v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if u]
    known_in = [a for a, u in zip(eqn.invars, unknown_in, strict=True) if not u]
    unknown_inputs = [a for a, u in zip(eqn.invars, unknown_in, strict=True) if u]

    n = len(known_outs)
    saved = _saved_variables(split.known, split.known.outs[n:], policy)
    forward = dce(Jaxpr(split.known.invars, split.known.eqns, [*split.known.outs[:n], *saved]))
    recomputed, used = known_again(split, [*split.known.invars, *saved])
    residuals = [Var(v.aval) for v in saved]
    rest = {k: v for k, v in params.items() if k not in ("jaxpr", "name")}
    name = params["name"]
    known_params = {"jaxpr": intern(checked(forward)), "name": f"known_{name}", **rest}
    unknown_params = {"jaxpr": intern(recomputed), "name": f"recompute_{name}", **rest, "recomputes": True}
    known_eqn = Eqn(primitive, tuple(known_in), tuple([*known_outs, *residuals]), known_params, eqn.source)
    held = [a for a, is_used in zip([*known_in, *residuals], used, strict=True) if is_used]
    unknown_eqn = Eqn(primitive, tuple([*held, *unknown_inputs]), tuple(unknown_outs), unknown_params, eqn.source)
    return EqnSplit([known_eqn], [unknown_eqn], list(split.out_unknown))


def _saved_variables(known: Jaxpr, wanted: list, policy: Policy | Automatic) -> list[Var]:
    """The variables of the known half that the policy saves and recomputation uses; and what effects gave: they happen once."""
    problem = Recomputation(
        known.eqns, known.invars, [a for a in wanted if type(a) is Var], lambda e: None if effectful(e) else operations(e)
    )
    if isinstance(policy, Automatic):
        return problem.kept(OPERATIONS_PER_BYTE, policy.memory)
    asked = [v for e in known.eqns if _asks(policy, e) for v in e.outvars]
    return problem.choice(asked).kept


def _asks(policy: Policy, eqn: Eqn) -> bool:
    """Whether a policy saves the results of an equation, or of one inside its loop or branches."""
    if saves(policy, eqn.primitive, [a.aval for a in eqn.invars], eqn.params):
        return True
    return eqn.primitive.holds_jaxpr and any(_asks_inside(program, policy) for program in sub_programs(eqn.params))


@memoised
def _asks_inside(jaxpr: Jaxpr, policy: Policy) -> bool:
    return any(_asks(policy, eqn) for eqn in jaxpr.eqns)


@memoised
def _with_policy_inside(jaxpr: Jaxpr, policy: Policy | Automatic) -> Jaxpr:
    """`jaxpr` with a checkpoint of each step and each branch in which the policy saves something.

    So a scan stacks what is saved in a step, beside the carry, and its steps are computed again one by one.
    """
    if isinstance(policy, Automatic) or policy is checkpoint_policies.everything_saveable:
        return jaxpr
    eqns = [_policed(eqn, policy) for eqn in jaxpr.eqns]
    return intern(checked(Jaxpr(jaxpr.invars, eqns, jaxpr.outs)))


def _policed(eqn: Eqn, policy: Policy) -> Eqn:
    inner = {key: eqn.params[key] for key in ("jaxpr", "branches") if key in eqn.params}
    if isinstance(eqn.primitive, Call) or eqn.primitive.length_varies or not inner or not _asks(policy, eqn):
        return eqn
    wrapped: dict[str, Any] = {
        key: _wrapped(x, policy) if key == "jaxpr" else tuple([_wrapped(b, policy) for b in x]) for key, x in inner.items()
    }
    return eqn._replace(params={**eqn.params, **wrapped})


def _wrapped(jaxpr: Jaxpr, policy: Policy) -> Jaxpr:
    """The program whose only equation is a checkpoint of another one."""
    invars, outvars = [tuple([Var(a.aval) for a in atoms]) for atoms in (jaxpr.invars, jaxpr.outs)]
    params = {"jaxpr": intern(jaxpr), "name": "step", "policy": policy, "prevent_cse": False, "recomputes": False}
    return intern(Jaxpr(invars, [Eqn(checkpoint_p, invars, outvars, params, None)], outvars))


checkpoint_p = Checkpoint("checkpoint")


def policy_of(who: str, policy: Policy | str | None, memory: int | None = None) -> Policy | Automatic:
    """The policy that a user's arguments mean; None is `nothing_saveable`."""
    if policy == "auto":
        if memory is None:
            return Automatic(None)
        try:
            memory = operator.index(memory)
        except TypeError:
            raise TypeError(f"{who}: memory must be a number of bytes, an int, got {memory!r}") from None
        if memory < 0:
            raise ValueError(f"{who}: memory must be a number of bytes, got {memory}")
        return Automatic(memory)
    if memory is not None:
        raise ValueError(f'{who}: memory= is the budget of policy="auto"; with another policy leave it out')
    if policy is None:
        return checkpoint_policies.nothing_saveable
    if not callable(policy):
        raise TypeError(f'{who}: policy must be "auto" or a function policy(primitive, *avals, **params), got {policy!r}')
    return policy


def checkpointed_call(jaxpr: Jaxpr, operands, name: str, policy: Policy | Automatic, prevent_cse: bool = True) -> list:
    """Binds a checkpoint of an interned program."""
    return checkpoint_p.apply(jaxpr, operands, name, policy=policy, prevent_cse=prevent_cse, recomputes=False)


def checkpoint(
    fun: Callable | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | str | None = None,
    static_argnums: int | Sequence[int] = (),
    memory: int | None = None,
) -> Any:
    """`fun`, whose intermediate values are recomputed in the backward pass instead of kept.

    `policy(primitive, *avals, **params) -> bool` says which results are saved all the same; see `checkpoint_policies`. Only
    the inputs are, by default. `policy="auto"` saves what is cheaper to save than to compute again, and no more than `memory`
    bytes beside the inputs if that is given, by a minimum cut of the program (see `funcml.transforms.minimum_cut`).
    `ad_checkpoint.print_saved_residuals` shows what is saved.

    XLA:CPU drops barriers and may compute both halves as one; GPU and TPU keep them apart. `prevent_cse=False` allows XLA to
    undo the recomputation, as is right inside a `scan`.

    >>> import funcml, funcml.numpy as jnp
    >>> float(funcml.grad(funcml.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    verdicts = policy_of("checkpoint", policy, memory)
    if fun is None:
        return functools.partial(
            checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums, memory=memory
        )
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
        outs = checkpointed_call(intern(checked(jaxpr)), [*captured, *values], label, verdicts, prevent_cse)
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
