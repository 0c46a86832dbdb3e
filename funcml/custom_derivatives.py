"""Rules of one's own for derivatives: `custom_jvp`, `custom_vjp`, `custom_gradient`, `closure_convert`, `linear_call`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from funcml import dtypes, tree
from funcml.arguments import Call, Traced, as_value, flatten_call, function_name, trace_call
from funcml.compilation import jit
from funcml.control_flow.linear_call import linear_call as bind_linear_call
from funcml.core.errors import user_facing
from funcml.core.linear import Zero as SymbolicZero
from funcml.core.registry import on_load, register_pytree_node_class
from funcml.core.tracing import aval_of, eval_jaxpr
from funcml.derivatives import vjp
from funcml.primitives.tangents import tangent_aval, zeros
from funcml.transforms.custom_jvp import custom_jvp
from funcml.transforms.custom_vjp import CustomVJPPrimal, custom_vjp

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
    "custom_vjp_primal_tree_values", "fwd_and_bwd", "linear_call", "zero_from_primal",
]  # fmt: skip


def custom_vjp_primal_tree_values(primals: Any) -> Any:
    """A tree of `CustomVJPPrimal`s as the tree of their values.

    >>> custom_vjp_primal_tree_values({"a": CustomVJPPrimal(2.0, True)})
    {'a': 2.0}
    """
    return tree.map(lambda p: p.value, primals)


def zero_from_primal(value: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value: numbers, or a `SymbolicZero`.

    >>> float(zero_from_primal(2.0)), zero_from_primal(2.0, symbolic_zeros=True)
    (0.0, Zero(f32[]))
    """
    aval = tangent_aval(aval_of(value))
    return SymbolicZero(aval) if symbolic_zeros else zeros(aval)


@user_facing
def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list]:
    """`fun` with the arrays that it closes over as arguments: `(converted, consts)` with `converted(*args, *consts)`.

    Only inexact arrays become arguments: those with respect to which one can differentiate. What `fun` does is recorded at
    the types of `example_args`.

    >>> import funcml, funcml.numpy as jnp
    >>> def f(a, x):
    ...     converted, consts = closure_convert(lambda x: a * x, x)
    ...     return converted(x, *consts)
    >>> float(funcml.grad(f)(2.0, 3.0))
    3.0
    """
    call = flatten_call(fun, example_args, {}, "closure_convert")
    traced = trace_call(call, [aval_of(x) for x in call.inputs()])
    hoisted = [dtypes.is_inexact(aval_of(x).dtype) for x in traced.captured]
    consts = [x for x, h in zip(traced.captured, hoisted, strict=True) if h]
    n_args = len(example_args)

    def converted(*args_and_consts: Any):
        if len(args_and_consts) != n_args + len(consts):
            raise TypeError(
                f"the converted {function_name(fun)} takes {n_args} arguments and {len(consts)} consts, got "
                f"{len(args_and_consts)} in all"
            )
        leaves, treedef = tree.flatten((args_and_consts[:n_args], {}))
        if treedef != call.treedef:
            raise TypeError(tree.explain_difference(treedef, call.treedef, "the structure of the arguments"))
        given = iter(args_and_consts[n_args:])
        captured = [next(given) if h else x for x, h in zip(traced.captured, hoisted, strict=True)]
        inputs = [x for x, is_traced in zip(leaves, call.traced, strict=True) if is_traced]
        return traced.rebuild(eval_jaxpr(traced.jaxpr, [*captured, *inputs]))

    return converted, consts


class _RecordedVjp:
    """The function that gives the cotangents of `count` arguments, as a tree of what it closes over."""

    def __init__(self, converted: Callable, consts: Sequence, count: int):
        self.converted, self.consts, self.count = converted, consts, count

    def tree_flatten(self):
        """The closed-over arrays; the function and the count."""
        return tuple(self.consts), (self.converted, self.count)

    @classmethod
    def tree_unflatten(cls, static, consts):
        """The function with other arrays."""
        converted, count = static
        return cls(converted, consts, count)

    def __call__(self, ct) -> tuple:
        found = self.converted(ct, *self.consts)
        return tuple(found) if isinstance(found, tuple | list) and len(found) == self.count else (found,)


on_load(lambda: register_pytree_node_class(_RecordedVjp))


@user_facing
def custom_gradient(fun: Callable) -> Callable:
    """A function with a gradient of its own: `fun(*args)` returns `(output, vjp)`, `vjp(ct)` the cotangents of the arguments.

    For one argument `vjp` may return its cotangent alone. For rules that need more, see `custom_vjp`.

    >>> import funcml
    >>> @custom_gradient
    ... def f(x):
    ...     return x**2, lambda ct: ct * 10.0
    >>> float(f(3.0)), float(funcml.grad(f)(3.0))
    (9.0, 10.0)
    """

    @custom_vjp
    def wrapped(*args):
        return fun(*args)[0]

    def fwd(*args):
        out, rule = fun(*args)
        return out, _RecordedVjp(*closure_convert(rule, out), len(args))

    wrapped.defvjp(fwd, lambda recorded, ct: recorded(ct))
    return functools.wraps(fun)(lambda *args: wrapped(*args))


@user_facing
def fwd_and_bwd(
    fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable, Callable]:
    """The forward and the backward pass of `fun` as two functions: `fwd(*args) -> (output, residuals)`, `bwd(residuals, ct)`.

    Both are compiled once and serve any number of steps. With `has_aux`, `fwd` gives `(output, residuals, aux)`. `bwd` gives a
    cotangent for each of `argnums`, alone if that is an int.

    >>> import funcml.numpy as jnp
    >>> fwd, bwd = fwd_and_bwd(lambda x, w: x * w, argnums=1)
    >>> y, residuals = fwd(2.0, 3.0)
    >>> float(y), float(bwd(residuals, 1.0))
    (6.0, 2.0)
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def fwd(*args):
        moving = [args[i] for i in numbers]

        def part(*xs):
            full = list(args)
            for i, x in zip(numbers, xs, strict=True):
                full[i] = x
            return fun(*full)

        return vjp(part, *moving, has_aux=has_aux)

    def bwd(residuals, ct):
        cts = residuals(ct)
        return cts[0] if isinstance(argnums, int) else cts

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


@user_facing
def linear_call(fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any) -> Any:
    """`fun(residual_args, linear_args)`, linear in the latter, with `fun_transpose(residual_args, cotangent)` as its transpose.

    `fun_transpose` takes a cotangent of the structure and types of the output, and returns one of those of `linear_args`. Reverse
    mode with respect to `linear_args` uses it; derivatives with respect to the residuals are those of `fun`. The transpose of
    the transpose is `fun`. Raises TypeError if the structures or types do not fit.

    >>> import funcml
    >>> def third(x):
    ...     return linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 3.0, x)
    >>> float(third(9.0)), round(float(funcml.grad(third)(9.0)), 3)
    (3.0, 0.333)
    """
    rs, xs = ([as_value(x) for x in tree.leaves(value)] for value in (residual_args, linear_args))
    residuals, linear = tree.structure(residual_args), tree.structure(linear_args)
    forward = _recorded(fun, rs, [aval_of(x) for x in xs], residuals, linear)
    backward = _recorded(fun_transpose, rs, forward.jaxpr.out_avals, residuals, forward.out_treedef)
    if backward.out_treedef != linear:
        problem = tree.explain_difference(backward.out_treedef, linear, "the structure of what fun_transpose returns")
        raise TypeError(f"linear_call: transpose output pytree structure must match that of linear inputs; {problem}")
    given, wanted = backward.jaxpr.out_avals, [aval_of(x) for x in xs]
    if any(a.strong() is not b.strong() for a, b in zip(given, wanted, strict=True)):
        raise TypeError(f"linear_call: fun_transpose must return the types of the linear inputs, {wanted}, got {list(given)}")
    outs = bind_linear_call([(t.jaxpr, t.captured) for t in (forward, backward)], rs, xs)
    return forward.rebuild(outs)


def _recorded(function: Callable, residuals: Sequence, avals: Sequence, *treedefs) -> Traced:
    """`function` of a tree of residuals and one of values of these types."""
    leaves = [*residuals, *avals]
    treedef = tree.treedef_tuple((tree.treedef_tuple(treedefs), tree.structure({})))
    call = Call(function, leaves, treedef, [True] * len(leaves), "linear_call")
    return trace_call(call, [*[aval_of(x) for x in residuals], *avals])
