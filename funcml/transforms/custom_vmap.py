"""`custom_vmap`: a function with a rule of its own for batches.

    f = custom_vmap(f);  f.def_vmap(rule)        rule(axis_size, in_batched, *args) -> (out, out_batched)

A call leaves `custom_vmap_call[jaxpr, rule]`. Until it is batched it is a call of `jaxpr`; the vmap pass runs the rule in its
place. Its derivative is again such a call, whose rule is the derivative of the rule; transposed, or split into known and
unknown, it is a plain call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from funcml import tree
from funcml.core.check import checked
from funcml.core.ir import intern
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind, current_frame, trace
from funcml.primitives.batching import at_front, spread_at_front
from funcml.primitives.tangents import instantiate, tangent_aval
from funcml.transforms.call import Call, call_p, split_call
from funcml.transforms.custom_rules import rule_argument
from funcml.transforms.jvp import evaluate_jvp, jvp_jaxpr

__all__ = ["custom_vmap", "custom_vmap_call_p"]


class custom_vmap:
    """A function whose batches are computed by the rule that `def_vmap` sets.

    `rule(axis_size, in_batched, *args) -> (out, out_batched)`: `in_batched` has a bool for each leaf of the arguments, and mapped
    arguments have the batch as leading axis; so have the outputs for which `out_batched` is true.

    >>> import funcml, funcml.numpy as jnp
    >>> @funcml.custom_batching.custom_vmap
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.def_vmap
    ... def f_vmap(axis_size, in_batched, x):
    ...     return 10.0 * jnp.sin(x), in_batched[0]
    >>> float(f(0.0)), funcml.vmap(f)(jnp.zeros(2)).tolist()
    (0.0, [0.0, 0.0])
    """

    def __init__(self, fun: Callable):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.name = getattr(fun, "__name__", type(fun).__name__)
        self.vmap_rule: Callable | None = None

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Sets the rule."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args, **kwargs):
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {self.name}: it has no rule; give it one with "
                f"`{self.name}.def_vmap(rule)`"
            )
        if current_frame() is None:
            return self.fun(*args, **kwargs)
        leaves, treedef = tree.flatten((args, kwargs))
        out_tree: list = []

        def flat(*tracers):
            positional, named = tree.unflatten(treedef, tracers)
            outs, out_treedef = tree.flatten(self.fun(*positional, **named))
            out_tree.append(out_treedef)
            return outs

        jaxpr, captured = trace(flat, [aval_of(x) for x in leaves], f"custom_vmap of {self.name}", leaves)
        rule = UserRule(self, self.vmap_rule, treedef, out_tree[0])
        params = {"jaxpr": intern(checked(jaxpr)), "name": self.name, "rule": rule, "consts": len(captured)}
        return tree.unflatten(out_tree[0], bind(custom_vmap_call_p, [*captured, *leaves], params))


# ---- rules on flat values: (axis size, which inputs are mapped, inputs) -> outputs, which of them are mapped ---------


class UserRule(NamedTuple):
    """A user's rule for one call."""

    owner: Any
    function: Callable
    in_treedef: Any
    out_treedef: Any

    def __str__(self) -> str:
        return getattr(self.function, "__name__", "rule")

    def __call__(self, size: int, mapped: tuple[bool, ...], values) -> tuple[list, list[bool]]:
        args, kwargs = tree.unflatten(self.in_treedef, [rule_argument(x) for x in values])
        batched, named = tree.unflatten(self.in_treedef, mapped)
        if kwargs:
            args, batched = (*args, *kwargs.values()), (*batched, *named.values())
        result = self.function(size, list(batched), *args)
        who = f"the rule of custom_vmap {self.owner.name}"
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"{who} must return a pair (out, out_batched), got {result!r}")
        outs, treedef = tree.flatten(result[0])
        if treedef != self.out_treedef:
            problem = tree.explain_difference(treedef, self.out_treedef, "the structure of its output")
            raise TypeError(f"{who}: {problem}, which is what the function gives")
        flags = tree.flatten_prefix(result[1], result[0], f"{who}: out_batched")
        return outs, [bool(f) for f in flags]


class JvpOfRule(NamedTuple):
    """The rule of a derivative: (primals, tangents of the `moving` ones) -> (outputs, tangents of those with `has_tangent`).

    An input whose tangent is mapped is mapped, and the other way round.
    """

    rule: Any
    moving: tuple[bool, ...]
    has_tangent: tuple[bool, ...]

    def __call__(self, size: int, mapped: tuple[bool, ...], values) -> tuple[list, list[bool]]:
        n = len(self.moving)
        given = iter(zip(values[n:], mapped[n:], strict=True))
        pairs = [next(given) if moves else None for moves in self.moving]
        primals, tangents, flags = [], [], []
        for x, is_mapped, pair in zip(values[:n], mapped[:n], pairs, strict=True):
            both = is_mapped or (pair is not None and pair[1])
            primals.append(_spread(size, x, is_mapped, both))
            tangents.append(Zero(tangent_aval(aval_of(primals[-1]))) if pair is None else _spread(size, *pair, both))
            flags.append(both)
        found: list[bool] = []

        def outputs(*xs):
            outs, out_flags = self.rule(size, tuple(flags), xs)
            found.extend(out_flags)
            return outs

        jaxpr, captured = trace(outputs, [aval_of(x) for x in primals], "custom_vmap rule")
        still = [Zero(tangent_aval(aval_of(x))) for x in captured]
        outs, out_tangents = evaluate_jvp(jaxpr, [*captured, *primals], [*still, *tangents])
        kept = [instantiate(t) for t, has in zip(out_tangents, self.has_tangent, strict=True) if has]
        return [*outs, *kept], [*found, *[f for f, has in zip(found, self.has_tangent, strict=True) if has]]


def _spread(size: int, x, is_mapped: bool, wanted: bool):
    return x if is_mapped == wanted else spread_at_front(_Size(size), x, None)


class _Size(NamedTuple):
    size: int


# ---- the primitive ---------------------------------------------------------------------------------------------


class CustomVmapCall(Call):
    """custom_vmap_call[jaxpr, name, rule, consts] consts, inputs = the outputs of `jaxpr`; the rule sees the inputs only."""

    def type_rule(self, *avals, jaxpr, name, rule, consts):
        return super().type_rule(*avals, jaxpr=jaxpr, name=name)

    def jvp_rule(self, primals, tangents, *, jaxpr, name, rule, consts):
        if any(type(t) is not Zero for t in tangents[:consts]):  # the rule does not know of these
            return call_p.jvp_rule(primals, tangents, jaxpr=jaxpr, name=name)
        nonzero = tuple([type(t) is not Zero for t in tangents])
        has_tangent = jvp_jaxpr(jaxpr, nonzero).info
        new, captured, _ = jvp_jaxpr(jaxpr, nonzero, has_tangent)
        moving = [t for t in tangents if type(t) is not Zero]
        params = {
            "jaxpr": intern(new),
            "name": f"jvp_{name}",
            "rule": JvpOfRule(rule, nonzero[consts:], has_tangent),
            "consts": len(captured) + consts,
        }
        outs = bind(self, [*captured, *primals, *moving], params)
        n = len(jaxpr.outs)
        given = iter(outs[n:])
        avals = jaxpr.out_avals
        return outs[:n], [next(given) if has else Zero(tangent_aval(a)) for has, a in zip(has_tangent, avals, strict=True)]

    def batch_rule(self, axis, operands, dims, *, jaxpr, name, rule, consts):
        if any(d is not None for d in dims[:consts]):
            raise NotImplementedError(
                f"vmap of {name}, which has a custom_vmap rule and closes over a mapped value: make that an argument"
            )
        values = [at_front(x, d) for x, d in zip(operands[consts:], dims[consts:], strict=True)]
        outs, mapped = rule(axis.size, tuple([d is not None for d in dims[consts:]]), values)
        for x, aval, is_mapped in zip(outs, jaxpr.out_avals, mapped, strict=True):
            expected = aval.update(shape=(axis.size, *aval.shape)) if is_mapped else aval
            if aval_of(x).strong() is not expected.strong():
                raise TypeError(f"the rule of custom_vmap {name} must give {expected}, got {aval_of(x)}")
        return outs, [0 if m else None for m in mapped]

    def partial_eval_rule(self, unknown_in, eqn):
        params = {"jaxpr": eqn.params["jaxpr"], "name": eqn.params["name"]}
        return split_call(call_p, unknown_in, eqn._replace(primitive=call_p, params=params))

    def transpose_rule(self, cts, *operands, masks, jaxpr, name, rule, consts):
        return call_p.transpose_rule(cts, *operands, masks=masks, jaxpr=jaxpr, name=name)


custom_vmap_call_p = CustomVmapCall("custom_vmap_call")
