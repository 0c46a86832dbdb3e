"""`custom_jvp`: a function with a forward derivative rule of its own.

    f = custom_jvp(f);  f.defjvp(rule)        rule(primals, tangents) -> (f(primals), tangent)

A call leaves one equation, `custom_jvp_call[jaxpr, rule]`. Until it is differentiated it is a call of `jaxpr`; the jvp pass runs
the rule in its place, so derivatives of every order and in both modes come from the rule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from funcml import dtypes, tree
from funcml.core.check import checked
from funcml.core.ir import Jaxpr, intern
from funcml.core.linear import Zero
from funcml.core.named_axes import axis_in_scope
from funcml.core.tracing import aval_of, eval_jaxpr, trace
from funcml.primitives.batching import example_aval, place_axis
from funcml.primitives.elementwise import add_any
from funcml.primitives.tangents import instantiate, tangent_aval
from funcml.transforms.custom_call import CustomCall, CustomFunction
from funcml.transforms.custom_rules import (
    Constant,
    check_leaves,
    rule_argument,
)
from funcml.transforms.vmap import evaluate_vmap

__all__ = ["custom_jvp", "custom_jvp_call_p"]


class custom_jvp(CustomFunction):
    """A function whose derivative is given by `defjvp`.

    `nondiff_argnums` (and `nondiff_argnames`) are arguments that the rule takes first, as they are, and that are not
    differentiated. With a rule `rule(*nondiff, primals, tangents) -> (primal_out, tangent_out)`; `tangent_out` must be linear in
    `tangents`.

    >>> import funcml, funcml.numpy as jnp
    >>> @funcml.custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 10.0 * t
    >>> float(funcml.grad(f)(0.0))
    10.0
    """

    kind = "custom_jvp"

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Sets the rule; with `symbolic_zeros`, tangents that are zero arrive as `Zero` objects instead of arrays."""
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Sets one rule for each argument, `jvp(t, ans, *args) -> contribution`, or None where there is none."""
        if self.nondiff_argnums:
            raise TypeError("defjvps cannot be used with nondiff_argnums; use defjvp")

        def rule(primals, tangents):
            ans = self(*primals)
            parts = [j(t, ans, *primals) for j, t in zip(jvps, tangents, strict=True) if j is not None]
            if not parts:
                return ans, tree.map(lambda y: instantiate(Zero(tangent_aval(aval_of(y)))), ans)
            return ans, functools.reduce(lambda a, b: tree.map(add_any, a, b), parts)

        self.defjvp(rule)

    def rule_functions(self) -> tuple[Callable, ...]:
        """The rule; raises AttributeError if it was not given."""
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.name} using defjvp: it has no rule; give it one with "
                f"`{self.name}.defjvp(rule)`"
            )
        return (self.jvp,)

    def make_rule(self, call, out_treedef, in_avals, out_avals) -> UserJvp:
        """The rule for one call, on flat values."""
        (jvp,) = self.rule_functions()
        return UserJvp(self, jvp, call.treedef, out_treedef, tuple(map(Constant, call.nondiff)), in_avals, out_avals)


class UserJvp(NamedTuple):
    """A user's rule for one call, on flat values: run in the frame of whoever asks."""

    owner: Any
    jvp: Callable
    in_treedef: Any
    out_treedef: Any
    nondiff: tuple[Constant, ...]
    in_avals: tuple
    out_avals: tuple

    def __str__(self) -> str:
        return getattr(self.jvp, "__name__", "rule")

    def __call__(self, consts, primals, tangents) -> tuple[list, list]:
        """(rule consts, primals, tangents) -> (outputs, their tangents); tangents may be Zero."""
        given = tangents if self.owner.symbolic_zeros else [rule_argument(t) for t in tangents]
        result = self.jvp(
            *[c.value for c in self.nondiff],
            tree.unflatten(self.in_treedef, [rule_argument(x) for x in primals]),
            tree.unflatten(self.in_treedef, given),
        )
        name = f"custom_jvp rule of {self.owner.name}"
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"{name} must return a pair (primal_out, tangent_out), got {result!r}")
        outs = check_leaves(
            result[0], self.out_avals, self.out_treedef, f"the primal output of the {name}", "the function's output"
        )
        tangent_avals = [tangent_aval(a) for a in self.out_avals]
        out_tangents = check_leaves(
            result[1], tangent_avals, self.out_treedef, f"the tangent output of the {name}", "the function's output"
        )
        return [instantiate(x) for x in outs], out_tangents

    def recorded(self) -> tuple[RecordedJvp, list]:
        """The rule traced for these input types, and the values it closes over."""
        n = len(self.in_avals)
        tangent_avals = [tangent_aval(a) for a in self.in_avals]
        moving = [a for a in tangent_avals if a.dtype != dtypes.float0]
        has_tangent: list[bool] = []

        def run(*values):
            rest = iter(values[n:])
            tangents = [Zero(a) if a.dtype == dtypes.float0 else next(rest) for a in tangent_avals]
            outs, out_tangents = self((), values[:n], tangents)
            has_tangent.extend(type(t) is not Zero for t in out_tangents)
            return [*outs, *[t for t in out_tangents if type(t) is not Zero]]

        jaxpr, captured = trace(run, [*self.in_avals, *moving], "a custom_jvp rule")
        return RecordedJvp(intern(checked(jaxpr)), tuple(has_tangent), self.out_avals), captured


class RecordedJvp(NamedTuple):
    """A rule recorded as a program: (rule consts, primals, tangents) -> (outputs, tangents with `has_tangent`)."""

    jaxpr: Jaxpr
    has_tangent: tuple[bool, ...]
    out_avals: tuple

    def __str__(self) -> str:
        return "recorded"

    def __call__(self, consts, primals, tangents):
        outs = eval_jaxpr(self.jaxpr, [*consts, *primals, *map(instantiate, _moving(tangents))])
        n = len(self.out_avals)
        rest = iter(outs[n:])
        found = [
            next(rest) if has else Zero(tangent_aval(a)) for a, has in zip(self.out_avals, self.has_tangent, strict=True)
        ]
        return outs[:n], found


def _moving(tangents) -> list:
    return [t for t in tangents if not _is_float0(t)]


def _is_float0(t) -> bool:
    return type(t) is Zero and t.aval.dtype == dtypes.float0


class BatchedJvp(NamedTuple):
    """The rule of a batch: the rule of one example, vectorised. `dims` are of (rule consts, primals)."""

    rule: Any
    axis: Any
    dims: tuple
    out_dims: tuple
    consts: int
    out_avals: tuple

    def __str__(self) -> str:
        return f"batched {self.rule}"

    def __call__(self, consts, primals, tangents):
        values, dims, kinds = [*consts, *primals], list(self.dims), []
        for t, d in zip(tangents, self.dims[self.consts :], strict=True):
            kinds.append(None if type(t) is not Zero else Zero(example_aval(t.aval, d)))
            if type(t) is not Zero:
                values.append(t)
                dims.append(d)
        n, m = self.consts, self.consts + len(primals)
        has_tangent: list[bool] = []

        def example(*xs):
            rest = iter(xs[m:])
            ts = [k if k is not None else next(rest) for k in kinds]
            outs, out_tangents = self.rule(xs[:n], xs[n:m], ts)
            has_tangent.extend(type(t) is not Zero for t in out_tangents)
            return [*outs, *[t for t in out_tangents if type(t) is not Zero]]

        avals = [example_aval(aval_of(x), d) for x, d in zip(values, dims, strict=True)]
        with axis_in_scope(self.axis):
            jaxpr, captured = trace(example, avals, "a batched custom_jvp rule")
        outs, found = evaluate_vmap(jaxpr, self.axis, [*captured, *values], [*[None] * len(captured), *dims])
        wanted = [*self.out_dims, *[d for d, has in zip(self.out_dims, has_tangent, strict=True) if has]]
        outs = [place_axis(self.axis, x, d, w) for x, d, w in zip(outs, found, wanted, strict=True)]
        k = len(self.out_dims)
        rest = iter(outs[k:])
        return outs[:k], [
            next(rest) if has else Zero(tangent_aval(a)) for a, has in zip(self.out_avals, has_tangent, strict=True)
        ]


class CustomJvpCall(CustomCall):
    """custom_jvp_call[jaxpr, rule] (primal consts..., rule consts..., inputs...)."""

    def apply_rule(self, rule, name, rule_consts, primals, tangents):
        return rule(rule_consts, primals, tangents)

    def batched(self, rule, axis, dims, out_dims, rule_consts, out_avals):
        return BatchedJvp(rule, axis, dims, out_dims, rule_consts, out_avals)


custom_jvp_call_p = custom_jvp.primitive = CustomJvpCall("custom_jvp_call")
