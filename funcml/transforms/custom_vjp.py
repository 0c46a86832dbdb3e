"""`custom_vjp`: a function with a reverse derivative rule of its own.

    f = custom_vjp(f);  f.defvjp(fwd, bwd)        fwd(x) -> (f(x), residuals);  bwd(residuals, ct) -> cotangents of x

A call leaves `custom_vjp_call[jaxpr, rule]`. The jvp pass replaces it by what `fwd` records, and by one linear equation,
`pullback[jaxpr] (residuals, tangents)`, whose `jaxpr` is what `bwd` records: residuals, cotangents -> cotangents. Its
transpose is that program. Where the linear equation itself has to be computed (forward mode) it is the transpose of that
program: so forward mode, and derivatives of any order, go through a custom_vjp whose `bwd` is linear in the cotangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from funcml import dtypes, tree
from funcml.core.check import checked
from funcml.core.errors import MissingRuleError
from funcml.core.ir import Jaxpr, Primitive, intern
from funcml.core.linear import Zero, is_undefined
from funcml.core.named_axes import axis_in_scope
from funcml.core.tracing import aval_of, bind, eval_jaxpr, trace
from funcml.primitives.axes import reduce_sum
from funcml.primitives.batching import batched_aval, example_aval, place_axis, spread_at_front
from funcml.primitives.elementwise import convert
from funcml.primitives.tangents import instantiate, tangent_aval
from funcml.transforms.custom_call import CustomCall, CustomFunction
from funcml.transforms.custom_rules import (
    Constant,
    check_leaves,
    rule_argument,
)
from funcml.transforms.jvp import evaluate_jvp
from funcml.transforms.transpose import transpose_jaxpr
from funcml.transforms.vmap import evaluate_vmap

__all__ = ["CustomVJPPrimal", "custom_vjp", "custom_vjp_call_p", "pullback_p"]


class custom_vjp(CustomFunction):
    """A function whose derivative is given by `defvjp`.

    `fwd(*args) -> (output, residuals)` and `bwd(*nondiff, residuals, cotangent) -> a tuple of cotangents`, one for each
    argument that is not in `nondiff_argnums` (None for zero).

    >>> import funcml, funcml.numpy as jnp
    >>> @funcml.custom_vjp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * ct,))
    >>> float(funcml.grad(f)(0.0))
    10.0
    """

    kind = "custom_vjp"

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None
        self.symbolic_zeros = False

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Sets the rule.

        With `symbolic_zeros` the arrays in the arguments of `fwd` are `CustomVJPPrimal`s, which tell whether they are
        differentiated, and cotangents that are zero reach `bwd` as `SymbolicZero` objects. A rule that closes over traced values
        is recorded before that is known: it is told that all is differentiated. `optimize_remat` is accepted for compatibility:
        unused residuals are always dropped.

        >>> import funcml, funcml.numpy as jnp
        >>> @funcml.custom_vjp
        ... def f(x, y):
        ...     return x * y
        >>> def fwd(x, y):
        ...     return f(x.value, y.value), (x.value if y.perturbed else None, y.value)
        >>> f.defvjp(fwd, lambda xy, ct: (ct * xy[1], None if xy[0] is None else ct * xy[0]), symbolic_zeros=True)
        >>> float(funcml.grad(f)(2.0, 3.0))
        3.0
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def rule_functions(self) -> tuple[Callable, ...]:
        """`fwd` and `bwd`; raises AttributeError if they were not given."""
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {self.name} using defvjp: it has no rule; give it one with "
                f"`{self.name}.defvjp(fwd, bwd)`"
            )
        return self.fwd, self.bwd

    def make_rule(self, call, out_treedef, in_avals, out_avals) -> UserVjp:
        """The rule for one call, on flat values."""
        fwd, bwd = self.rule_functions()
        nondiff = tuple(map(Constant, call.nondiff))
        structure = (call.treedef, out_treedef, call.nondiff_at, nondiff)
        return UserVjp(self, fwd, bwd, self.symbolic_zeros, *structure, in_avals, out_avals)


class CustomVJPPrimal:
    """An argument of a `fwd` with symbolic_zeros: its value, and whether it is differentiated.

    >>> CustomVJPPrimal(2.0, False)
    CustomVJPPrimal(value=2.0, perturbed=False)
    """

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


# ---- rules on flat values ------------------------------------------------------------------------------------------
#
#   forward  (consts, primals, perturbed)       -> outputs, residuals, context
#   backward (consts, context, residuals, cts)  -> cotangents of the primals (a value or Zero)


class UserVjp(NamedTuple):
    """A user's rule for one call: run in the frame of whoever asks."""

    owner: Any
    fwd: Callable
    bwd: Callable
    symbolic: bool
    in_treedef: Any
    out_treedef: Any
    nondiff_at: tuple[int, ...]
    nondiff: tuple[Constant, ...]
    in_avals: tuple
    out_avals: tuple

    def __str__(self) -> str:
        return f"({','.join(getattr(f, '__name__', 'rule') for f in (self.fwd, self.bwd))})"

    def forward(self, consts, primals, perturbed):
        """Runs `fwd`; the context is the tree of the residuals."""
        given = [rule_argument(x) for x in primals]
        if self.symbolic:
            given = [CustomVJPPrimal(x, p) for x, p in zip(given, perturbed, strict=True)]
        args = list(tree.unflatten(self.in_treedef, given))
        for i, c in zip(self.nondiff_at, self.nondiff, strict=True):
            args.insert(i, c.value)
        result = self.fwd(*args)
        name = f"custom_vjp fwd rule of {self.owner.name}"
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"the {name} must return a pair (output, residuals), got {result!r}")
        outs = check_leaves(result[0], self.out_avals, self.out_treedef, f"the output of the {name}", "the function's output")
        residuals, treedef = tree.flatten(result[1])
        return [instantiate(x) for x in outs], residuals, treedef

    def backward(self, consts, context, residuals, cts):
        """Runs `bwd`."""
        result = self.bwd(
            *[c.value for c in self.nondiff],
            tree.unflatten(context, residuals),
            tree.unflatten(self.out_treedef, cts if self.symbolic else [rule_argument(ct) for ct in cts]),
        )
        name = f"custom_vjp bwd rule of {self.owner.name}"
        count = len(tree.treedef_children(self.in_treedef))
        if not isinstance(result, tuple | list) or len(result) != count:
            got = f"a tuple of {len(result)}" if isinstance(result, tuple | list) else f"{result!r}"
            raise TypeError(
                f"Custom VJP bwd rule of {self.owner.name} must produce a tuple of {count} cotangents, one for each argument, "
                f"got {got}"
            )
        children = tree.treedef_children(self.in_treedef)
        avals = iter(map(tangent_aval, self.in_avals))
        found: list = []
        for i, (ct, child) in enumerate(zip(result, children, strict=True)):
            expected = [next(avals) for _ in range(child.num_leaves)]
            if ct is None:
                found += map(Zero, expected)
            else:
                found += check_leaves(_at_dtypes(ct, expected), expected, child, f"cotangent {i} of the {name}", f"argument {i}")
        return found

    def recorded(self) -> tuple[RecordedVjp, list]:
        """The rule traced for these input types, and the values it closes over."""
        contexts: list = []
        perturbed = [tangent_aval(a).dtype != dtypes.float0 for a in self.in_avals]

        def forward(*primals):
            outs, residuals, context = self.forward((), primals, perturbed)
            contexts.append(context)
            return [*outs, *residuals]

        fwd, fwd_captured = trace(forward, self.in_avals, "a custom_vjp fwd rule")
        residual_avals = fwd.out_avals[len(self.out_avals) :]
        bwd, bwd_captured, has_ct = record_backward(self, (), contexts[0], residual_avals)
        fwd = intern(checked(fwd))
        return RecordedVjp(fwd, bwd, len(fwd_captured), has_ct, self.in_avals, self.out_avals), [*fwd_captured, *bwd_captured]


def _at_dtypes(cts, expected):
    """A tree of cotangents with floats of another width as those of the arguments: a float64 constant makes all of them wide."""
    leaves, treedef = tree.flatten(cts, is_leaf=lambda x: x is None)
    if len(leaves) != len(expected):
        return cts
    return tree.unflatten(treedef, [_at_dtype(x, a) for x, a in zip(leaves, expected, strict=True)])


def _at_dtype(ct, expected):
    if ct is None or type(ct) is Zero or getattr(ct, "dtype", None) == dtypes.float0 or expected.dtype == dtypes.float0:
        return ct
    given = aval_of(ct)
    kinds = (dtypes.is_float, dtypes.is_complex)
    same_kind = any(kind(given.dtype) and kind(expected.dtype) for kind in kinds)
    return convert(ct, expected.dtype) if same_kind and given.dtype != expected.dtype else ct


class RecordedVjp(NamedTuple):
    """A rule recorded as two programs: (consts, primals) -> (outputs, residuals), (consts, residuals, cts) -> cotangents."""

    fwd: Jaxpr
    bwd: Jaxpr
    fwd_consts: int
    has_ct: tuple[bool, ...]
    in_avals: tuple
    out_avals: tuple
    symbolic: bool = False

    def __str__(self) -> str:
        return "recorded"

    def forward(self, consts, primals, perturbed):
        """Evaluates the first program."""
        outs = eval_jaxpr(self.fwd, [*consts[: self.fwd_consts], *primals])
        n = len(self.out_avals)
        return outs[:n], outs[n:], None

    def backward(self, consts, context, residuals, cts):
        """Evaluates the second program."""
        given = [instantiate(ct) for ct in cts if not _no_derivative(ct)]
        rest = iter(eval_jaxpr(self.bwd, [*consts[self.fwd_consts :], *residuals, *given]))
        return [next(rest) if has else Zero(tangent_aval(a)) for a, has in zip(self.in_avals, self.has_ct, strict=True)]


def _no_derivative(x) -> bool:
    return type(x) is Zero and x.aval.dtype == dtypes.float0


def record_backward(rule, const_avals, context, residual_avals) -> tuple[Jaxpr, list, tuple[bool, ...]]:
    """`rule.backward` as a program.

    in:  captured..., rule consts..., residuals..., cotangents of the outputs that have a derivative...
    out: cotangents of the inputs for which the third result is true...
    """
    ct_avals = [tangent_aval(a) for a in rule.out_avals]
    n, m = len(const_avals), len(const_avals) + len(residual_avals)
    has_ct: list[bool] = []

    def backward(*values):
        rest = iter(values[m:])
        cts = [Zero(a) if a.dtype == dtypes.float0 else next(rest) for a in ct_avals]
        found = rule.backward(values[:n], context, values[n:m], cts)
        has_ct.extend(type(ct) is not Zero for ct in found)
        return [ct for ct in found if type(ct) is not Zero]

    given = [a for a in ct_avals if a.dtype != dtypes.float0]
    jaxpr, captured = trace(backward, [*const_avals, *residual_avals, *given], "a custom_vjp bwd rule")
    return intern(checked(jaxpr)), captured, tuple(has_ct)


class BatchedVjp(NamedTuple):
    """The rule of a batch: the rule of one example, vectorised. `dims` are of (rule consts, primals)."""

    rule: Any
    axis: Any
    dims: tuple
    out_dims: tuple
    consts: int
    in_avals: tuple
    out_avals: tuple

    def __str__(self) -> str:
        return f"batched {self.rule}"

    @property
    def symbolic(self) -> bool:
        """Whether `backward` wants to know of zeros."""
        return self.rule.symbolic

    def forward(self, consts, primals, perturbed):
        """`rule.forward` of each example; the context tells where the residuals have the mapped axis."""
        n = self.consts
        contexts: list = []

        def example(*xs):
            outs, residuals, context = self.rule.forward(xs[:n], xs[n:], perturbed)
            contexts.append(context)
            return [*outs, *residuals]

        values = [*consts, *primals]
        avals = [example_aval(aval_of(x), d) for x, d in zip(values, self.dims, strict=True)]
        with axis_in_scope(self.axis):
            jaxpr, captured = trace(example, avals, "a batched custom_vjp fwd rule")
        outs, dims = evaluate_vmap(jaxpr, self.axis, [*captured, *values], [*[None] * len(captured), *self.dims])
        k = len(self.out_dims)
        placed = [place_axis(self.axis, x, d, w) for x, d, w in zip(outs[:k], dims[:k], self.out_dims, strict=True)]
        return placed, outs[k:], (contexts[0], tuple(dims[k:]))

    def backward(self, consts, context, residuals, cts):
        """`rule.backward` of each example; cotangents of an input that the examples share are summed."""
        inner_context, residual_dims = context
        n, m = len(consts), len(consts) + len(residuals)
        kinds = [Zero(example_aval(ct.aval, d)) if type(ct) is Zero else None for ct, d in zip(cts, self.out_dims, strict=True)]
        given = [(ct, d) for ct, d in zip(cts, self.out_dims, strict=True) if type(ct) is not Zero]
        values = [*consts, *residuals, *[ct for ct, _ in given]]
        dims = [*self.dims[:n], *residual_dims, *[d for _, d in given]]
        has_ct: list[bool] = []

        def example(*xs):
            rest = iter(xs[m:])
            found = self.rule.backward(
                xs[:n], inner_context, xs[n:m], [k if k is not None else next(rest) for k in kinds]
            )
            has_ct.extend(type(ct) is not Zero for ct in found)
            return [ct for ct in found if type(ct) is not Zero]

        avals = [example_aval(aval_of(x), d) for x, d in zip(values, dims, strict=True)]
        with axis_in_scope(self.axis):
            jaxpr, captured = trace(example, avals, "a batched custom_vjp bwd rule")
        outs, found = evaluate_vmap(jaxpr, self.axis, [*captured, *values], [*[None] * len(captured), *dims])
        rest = iter(zip(outs, found, strict=True))
        return [
            self._cotangent(*next(rest), wanted) if has else Zero(tangent_aval(a))
            for a, has, wanted in zip(self.in_avals, has_ct, self.dims[n:], strict=True)
        ]

    def _cotangent(self, ct, dim, wanted):
        if wanted is None:
            return reduce_sum(spread_at_front(self.axis, ct, dim), (0,))
        return place_axis(self.axis, ct, dim, wanted)


class SymbolicBackward(NamedTuple):
    """How `bwd` is run again when it is known which cotangents are zero; `has_ct` are the inputs that it had cotangents for.

    Its operands are those of the `pullback`: what the recorded `bwd` captured, consts of the rule, residuals.
    """

    rule: Any
    captured: int
    consts: int
    context: Any
    has_ct: tuple[bool, ...]

    def __str__(self) -> str:
        return "symbolic zeros"

    def cotangents(self, operands, cts) -> list:
        """Those of the inputs for which `has_ct`; None for zero."""
        n = self.captured + self.consts
        rest = iter(cts)
        avals = [tangent_aval(a) for a in self.rule.out_avals]
        given = [Zero(a) if a.dtype == dtypes.float0 else next(rest) for a in avals]
        found = self.rule.backward(operands[self.captured : n], self.context, operands[n:], given)
        return [None if type(ct) is Zero else ct for ct, has in zip(found, self.has_ct, strict=True) if has]


# ---- the primitives -------------------------------------------------------------------------------------------------


class CustomVjpCall(CustomCall):
    """custom_vjp_call[jaxpr, rule] (primal consts..., rule consts..., inputs...)."""

    def apply_rule(self, rule, name, rule_consts, primals, tangents):
        perturbed = [type(t) is not Zero for t in tangents]
        outs, residuals, context = rule.forward(rule_consts, primals, perturbed)
        bwd, captured, has_ct = record_backward(
            rule, [aval_of(c) for c in rule_consts], context, [aval_of(r) for r in residuals]
        )
        moving = [instantiate(t) for t, has in zip(tangents, has_ct, strict=True) if has]
        consts_of_bwd = [*captured, *rule_consts, *residuals]
        symbolic = SymbolicBackward(rule, len(captured), len(rule_consts), context, has_ct) if rule.symbolic else None
        params = {"jaxpr": bwd, "name": name, "residuals": len(consts_of_bwd), "symbolic": symbolic}
        found = iter(bind(pullback_p, [*consts_of_bwd, *moving], params))
        tangent_avals = [tangent_aval(aval_of(x)) for x in outs]
        return outs, [Zero(a) if a.dtype == dtypes.float0 else next(found) for a in tangent_avals]

    def batched(self, rule, axis, dims, out_dims, rule_consts, out_avals):
        in_avals = [batched_aval(a, axis, d) for a, d in zip(rule.in_avals, dims[rule_consts:], strict=True)]
        return BatchedVjp(rule, axis, dims, out_dims, rule_consts, tuple(in_avals), out_avals)


class Pullback(Primitive):
    """pullback[jaxpr] (residuals..., tangents...): the linear function whose transpose is `jaxpr`.

    jaxpr: (residuals..., cotangents of the results...) -> cotangents of the tangents.
    """

    multiple_results = True

    def type_rule(self, *avals, jaxpr, name, residuals, symbolic):
        return tuple([v.aval for v in jaxpr.invars[residuals:]])

    def forward_jaxpr(self, jaxpr: Jaxpr, name: str, residuals: int, symbolic: SymbolicBackward | None) -> Jaxpr:
        """The program that computes this equation: the transpose of `jaxpr` in its cotangents."""
        linear = (False,) * residuals + (True,) * (len(jaxpr.invars) - residuals)
        try:
            new, captured, _ = transpose_jaxpr(jaxpr, linear, (True,) * len(jaxpr.outs), None, True)
        except MissingRuleError as error:
            raise TypeError(
                f"forward mode through {name} needs the transpose of its custom_vjp bwd rule, but that is not linear in the "
                f"cotangent ({error}). Use reverse mode only, or give {name} a custom_jvp rule."
            ) from error
        assert not captured
        return new

    def jvp_rule(self, primals, tangents, *, jaxpr, name, residuals, symbolic):
        return evaluate_jvp(self.forward_jaxpr(jaxpr, name, residuals, symbolic), primals, tangents)

    def transpose_rule(self, cts, *operands, jaxpr, name, residuals, symbolic):
        if any(is_undefined(x) for x in operands[:residuals]):
            raise self.missing("transpose_rule", "transposition in the residuals of a custom_vjp rule")
        if symbolic is not None and any(type(ct) is Zero for ct in cts):
            return [*[None] * residuals, *symbolic.cotangents(operands[:residuals], cts)]
        given = [instantiate(ct) for ct in cts]
        found = eval_jaxpr(jaxpr, [*operands[:residuals], *given])
        return [*[None] * residuals, *found]

    def batch_rule(self, axis, operands, dims, *, jaxpr, name, residuals, symbolic):
        return evaluate_vmap(self.forward_jaxpr(jaxpr, name, residuals, symbolic), axis, operands, dims)


custom_vjp_call_p = custom_vjp.primitive = CustomVjpCall("custom_vjp_call")
pullback_p = Pullback("pullback")
