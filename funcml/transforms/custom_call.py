"""What a function with a rule of its own is: how a call of it is recorded, and the primitive that this leaves.

    CustomFunction : what users hold; `custom_jvp` and `custom_vjp` say what their rule is
    CustomCall     : custom_call[jaxpr, rule] (primal consts..., rule consts..., inputs...) = the outputs of `jaxpr`
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from funcml import tree
from funcml.core.check import checked
from funcml.core.ir import intern
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind, current_frame, trace
from funcml.primitives.tangents import tangent_aval
from funcml.transforms.call import Call, call_p
from funcml.transforms.custom_rules import SplitArguments, closes_over_tracers, recording
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["CustomCall", "CustomFunction"]


class CustomFunction:
    """A function whose derivative is given by a rule. A subclass has `kind`, `primitive`, `rule_functions`, `make_rule`."""

    kind: str
    primitive: CustomCall

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        self.nondiff_argnums = tuple(sorted({*numbers, *_positions(fun, names, self.kind)}))
        self.name = getattr(fun, "__name__", type(fun).__name__)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def rule_functions(self) -> tuple[Callable, ...]:
        """The functions of the rule; raises AttributeError if it was not given."""
        raise NotImplementedError

    def make_rule(self, call: SplitArguments, out_treedef, in_avals: tuple, out_avals: tuple) -> Any:
        """The rule for one call, on flat values; it has `recorded() -> (rule, captured values)`."""
        raise NotImplementedError

    def __call__(self, *args, **kwargs):
        functions = self.rule_functions()
        if current_frame() is None:
            return self.fun(*args, **kwargs)
        label = f"{self.kind} of {self.name}"
        call = SplitArguments(self.fun, self.nondiff_argnums, args, kwargs, label)
        avals = tuple([aval_of(x) for x in call.leaves])
        out_tree: list = []

        def primal(*leaves):
            outs, treedef = tree.flatten(self.fun(*call.merged(leaves)))
            out_tree.append(treedef)
            return outs

        jaxpr, captured = trace(primal, avals, label, call.leaves)
        jaxpr = intern(checked(jaxpr))
        rule = self.make_rule(call, out_tree[0], avals, jaxpr.out_avals)
        rule_captured: list = []
        if not recording.is_on(self) and closes_over_tracers(*functions, call.nondiff):
            with recording(self):
                rule, rule_captured = rule.recorded()
        params = {"jaxpr": jaxpr, "name": self.name, "rule": rule, "consts": (len(captured), len(rule_captured))}
        outs = bind(self.primitive, [*captured, *rule_captured, *call.leaves], params)
        return tree.unflatten(out_tree[0], outs)


def _positions(fun: Callable, names: tuple[str, ...], kind: str) -> list[int]:
    """The places of parameters among the positional ones."""
    parameters = list(inspect.signature(fun).parameters) if names else []
    unknown = [name for name in names if name not in parameters]
    if unknown:
        raise ValueError(f"{kind}: nondiff_argnames {unknown} are no parameters of {fun!r}; it has {parameters}")
    return [parameters.index(name) for name in names]


class CustomCall(Call):
    """A call of a program with a rule for its derivative. `apply_rule` runs the rule, `batched` vectorises it."""

    holds_jaxpr = False

    def type_rule(self, *avals, jaxpr, name, rule, consts):
        return jaxpr.out_avals

    def primal_operands(self, operands, consts) -> list:
        """The operands of `jaxpr`: all but the consts of the rule."""
        n, m = consts
        return [*operands[:n], *operands[n + m :]]

    def apply_rule(self, rule, name: str, rule_consts, primals, tangents):
        """(outputs, their tangents) by the rule."""
        raise NotImplementedError

    def batched(self, rule, axis, dims, out_dims, rule_consts: int, out_avals):
        """The rule of a batch; `dims` are of (rule consts, primals)."""
        raise NotImplementedError

    def jvp_rule(self, primals, tangents, *, jaxpr, name, rule, consts):
        n, m = consts
        if any(type(t) is not Zero for t in tangents[: n + m]):
            raise TypeError(
                f"{name} has a rule for its derivative and closes over a value with respect to which it is differentiated. "
                "The rule says nothing of that derivative: make the value an argument of the function."
            )
        if all(type(t) is Zero for t in tangents):
            outs = bind(self, primals, {"jaxpr": jaxpr, "name": name, "rule": rule, "consts": consts})
            return outs, [Zero(tangent_aval(aval_of(x))) for x in outs]
        return self.apply_rule(rule, name, primals[n : n + m], primals[n + m :], tangents[n + m :])

    def batch_rule(self, axis, operands, dims, *, jaxpr, name, rule, consts):
        n, m = consts
        held = tuple(self.primal_operands(dims, consts))
        found = vmap_jaxpr(jaxpr, axis, held).info
        out_dims = tuple([0 if d is None else d for d in found])  # an output that is the same for all may have other derivatives
        new, captured, _ = vmap_jaxpr(jaxpr, axis, held, out_dims)
        batched = self.batched(rule, axis, tuple(dims[n:]), out_dims, m, new.out_avals)
        params = {"jaxpr": new, "name": name, "rule": batched, "consts": (len(captured) + n, m)}
        return bind(self, [*captured, *operands], params), out_dims

    def transpose_rule(self, cts, *operands, masks, jaxpr, name, rule, consts):
        n, m = consts
        primal = self.primal_operands(operands, consts)
        cts_in, masks_in = call_p.transpose_rule(cts, *primal, masks=masks, jaxpr=jaxpr, name=name)
        none = [None] * m
        return [*cts_in[:n], *none, *cts_in[n:]], [*masks_in[:n], *none, *masks_in[n:]]
