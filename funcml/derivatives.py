"""Derivatives as functions of functions: `grad`, `jvp`, `vjp`, `linearize`, `linear_transpose`.

Each records the function on tracers, takes the program through a pass, and runs (or, inside another trace, records) what comes
out. Outside `jit` the recorded function may ask for values: Python control flow works, and the program is that of the branches
taken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes, tree
from funcml.arguments import (
    Call,
    Traced,
    argument_name,
    as_traced,
    as_value,
    describe_value,
    evaluate,
    flatten_call,
    is_array_like,
    normalise_argnums,
    origin_of,
    trace_call,
)
from funcml.core.avals import ShapedArray
from funcml.core.errors import user_facing
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, current_frame
from funcml.lowering.execute import run_program
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.elementwise import convert
from funcml.primitives.tangents import tangent_aval
from funcml.shape_dtype import ShapeDtypeStruct
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.linearize import evaluate_grad, grad_jaxpr, linearize_jaxpr, vjp_jaxpr
from funcml.transforms.transpose import transpose_jaxpr

__all__ = [
    "check_inputs",
    "float0_zeros",
    "grad",
    "jvp",
    "linear_transpose",
    "linearize",
    "split_arguments",
    "value_and_grad",
    "vjp",
]


# ---- grad --------------------------------------------------------------------------------------------------------


def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """The function that gives `(fun(*args), gradient)`; `fun` returns a scalar, or `(scalar, aux)` with `has_aux`.

    The gradient has the tree of argument `argnums`, or is a tuple of them if `argnums` is one. Inputs must be floats or
    complex numbers; with `holomorphic=True` inputs and output are complex; with `allow_int=True` the gradient of an integer is
    a NumPy array of dtype float0.

    >>> import funcml
    >>> value, g = funcml.value_and_grad(lambda x: x ** 3)(2.0)
    >>> float(value), float(g)
    (8.0, 12.0)
    """
    return _gradient(fun, "value_and_grad", argnums, has_aux, holomorphic, allow_int)


def grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """The function that gives the gradient of `fun` with respect to argument `argnums`; with `has_aux`, `(gradient, aux)`.

    Arguments as in `value_and_grad`.

    >>> import funcml
    >>> float(funcml.grad(lambda x: x ** 3)(2.0))
    12.0
    """
    both = _gradient(fun, "grad", argnums, has_aux, holomorphic, allow_int)

    @functools.wraps(fun)
    def gradient(*args, **kwargs):
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return user_facing(gradient)


def _gradient(fun, transform, argnums, has_aux, holomorphic, allow_int) -> Callable:
    if not callable(fun):
        raise TypeError(f"{transform} expects a function, got {fun!r} of type {type(fun).__name__}")
    origin = origin_of(fun)

    @functools.wraps(fun)
    def value_and_gradient(*args, **kwargs):
        numbers = normalise_argnums(argnums, len(args), transform)
        call, moving = split_arguments(fun, args, kwargs, numbers, transform)
        check_inputs(call, moving, holomorphic, allow_int)
        values = call.inputs()
        traced = trace_call(call, [aval_of(x) for x in values], values)
        _check_scalar(traced, call, has_aux, holomorphic)
        flags = [m for m, t in zip(moving, call.traced, strict=True) if t]
        inexact = [f and dtypes.is_inexact(aval_of(x).dtype) for f, x in zip(flags, values, strict=True)]
        nonzero = (False,) * len(traced.captured) + tuple(inexact)
        if current_frame() is None:
            program, captured, _ = grad_jaxpr(traced.jaxpr, nonzero)
            outs = run_program(program, [*captured, *traced.captured, *values], origin)
        else:
            outs = [as_traced(x) for x in evaluate_grad(traced.jaxpr, nonzero, [*traced.captured, *values])]
        n = len(traced.jaxpr.outs)
        gradients = iter(outs[n:])
        leaves = [
            next(gradients) if moves else float0_zeros(aval_of(x))
            for x, f, moves in zip(values, flags, inexact, strict=True)
            if f
        ]
        return traced.rebuild(outs[:n]), _regroup(args, numbers, leaves, argnums)

    return user_facing(value_and_gradient)


def split_arguments(fun, args, kwargs, numbers, transform) -> tuple[Call, list[bool]]:
    """The flattened call, and which of its leaves belong to the arguments `numbers`; those are traced whatever they are."""
    call = flatten_call(fun, args, kwargs, transform)
    moving: list[bool] = []
    for i, a in enumerate(args):
        moving += [i in numbers] * len(tree.leaves(a))
    moving += [False] * (len(call.leaves) - len(moving))
    for i, (x, m) in enumerate(zip(call.leaves, moving, strict=True)):
        if m:
            call.traced[i] = is_array_like(x)
    return call, moving


def check_inputs(call: Call, moving, holomorphic: bool, allow_int: bool) -> None:
    """Raises unless every leaf that is `moving` can be differentiated."""
    for i, (x, m) in enumerate(zip(call.leaves, moving, strict=True)):
        if not m:
            continue
        dtype = aval_of(x).dtype if call.traced[i] else None
        if dtype is not None and holomorphic and dtypes.is_complex(dtype):
            continue
        if dtype is not None and not holomorphic and (dtypes.is_inexact(dtype) or allow_int):
            continue
        wanted = "complex inputs, because of holomorphic=True" if holomorphic else "float (or complex) inputs"
        advice = (
            "Convert it to complex, or drop holomorphic=True."
            if holomorphic
            else "Convert it to float, pass allow_int=True for zero gradients, or differentiate another argument (argnums=)."
        )
        raise TypeError(f"{call.name} needs {wanted}, but `{argument_name(call, i)}` is {describe_value(x)}. {advice}")


_SCALAR_ONLY = "Gradient only defined for scalar-output functions."


def _check_scalar(traced: Traced, call: Call, has_aux: bool, holomorphic: bool) -> None:
    result = traced.rebuild(traced.jaxpr.out_avals)
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"{call.name}: with has_aux=True the function must return a pair (scalar, aux), got {result}")
        result = result[0]
    if not isinstance(result, ShapedArray):
        raise TypeError(
            f"{_SCALAR_ONLY} {call.name} needs a function that returns one scalar, got {_show_tree(result)}. "
            "Return (scalar, aux) and pass has_aux=True to get more out."
        )
    if result.shape != ():
        raise TypeError(
            f"{_SCALAR_ONLY} {call.name} needs a function that returns a scalar, got {result}. Reduce it (`.sum()`, "
            "`.mean()`), or use `jacrev`, `jacfwd` or `vjp`."
        )
    if holomorphic and not dtypes.is_complex(result.dtype):
        raise TypeError(f"{call.name}: holomorphic=True needs a complex output, got {result}")
    if not holomorphic and not dtypes.is_float(result.dtype):
        advice = (
            "For a holomorphic function pass holomorphic=True; otherwise take its real part, or use `vjp`."
            if dtypes.is_complex(result.dtype)
            else "Convert it to float."
        )
        raise TypeError(f"{call.name} needs a function that returns a float, got {result}. {advice}")


def _show_tree(result) -> str:
    return str(tree.map(str, result)) if result is not None else "None"


def float0_zeros(aval: ShapedArray) -> np.ndarray:
    """The derivative where there is none (integers, bool, keys): a NumPy array of dtype float0."""
    return np.zeros(aval.shape, dtypes.float0)


def _regroup(args, numbers, leaves, argnums):
    """The gradients under the trees of their arguments."""
    rest = iter(leaves)
    grouped = [tree.map(lambda _: next(rest), args[i]) for i in sorted(numbers)]
    by_number = dict(zip(sorted(numbers), grouped, strict=True))
    if isinstance(argnums, int) or hasattr(argnums, "__index__"):
        return by_number[numbers[0]]
    return tuple([by_number[i] for i in numbers])


# ---- jvp and linearize ---------------------------------------------------------------------------------------------


@user_facing
def jvp(fun: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False) -> tuple:
    """`(fun(*primals), the derivative of fun at primals applied to tangents)`; with `has_aux`, aux comes third.

    `tangents` has the structure, shapes and dtypes of `primals`; for an integer or bool the tangent is a zero, or float0.

    >>> import funcml
    >>> y, dy = funcml.jvp(lambda x: x ** 3, (2.0,), (1.0,))
    >>> float(y), float(dy)
    (8.0, 12.0)
    """
    _check_sequence("jvp", primals, tangents)
    call = _all_traced(flatten_call(fun, tuple(primals), {}, "jvp"))
    values = call.inputs()
    given = _matching_tangents(call, tuple(tangents))
    traced = trace_call(call, [aval_of(x) for x in values], values)
    nonzero = (False,) * len(traced.captured) + tuple([type(t) is not Zero for t in given])
    aux_from = _check_aux(traced, call, has_aux)
    wanted = tuple([i < aux_from and dtypes.is_inexact(a.dtype) for i, a in enumerate(traced.jaxpr.out_avals)])
    program, captured, has_tangent = jvp_jaxpr(traced.jaxpr, nonzero, wanted)
    moving = [t for t in given if type(t) is not Zero]
    outs = evaluate(program, [*captured, *traced.captured, *values, *moving], origin_of(fun))
    n = len(traced.jaxpr.outs)
    rest = iter(outs[n:])
    out_tangents = [
        next(rest) if has else float0_zeros(a)
        for a, has in zip(traced.jaxpr.out_avals, has_tangent, strict=True)
    ]
    result, tangent = traced.rebuild(outs[:n]), traced.rebuild(out_tangents)
    if has_aux:
        return result[0], tangent[0], result[1]
    return result, tangent


def _check_aux(traced: Traced, call: Call, has_aux: bool) -> int:
    """The number of program outputs that are not aux; checks that there is an aux where one was promised."""
    if not has_aux:
        return len(traced.jaxpr.outs)
    result = traced.rebuild(traced.jaxpr.out_avals)
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{call.name}: with has_aux=True the function must return a pair (output, aux), got {result}")
    return sum(isinstance(x, ShapedArray) for x in tree.leaves(result[0]))


def _all_traced(call: Call) -> Call:
    for i, x in enumerate(call.leaves):
        if not is_array_like(x):
            raise TypeError(
                f"{call.name}: `{argument_name(call, i)}` is {x!r} of type {type(x).__name__}, not an array. Close over it "
                "(`functools.partial`, a lambda) instead of passing it."
            )
        call.leaves[i] = as_value(x)
        call.traced[i] = True
    return call


def _check_sequence(transform: str, primals, tangents) -> None:
    for what, x in (("primals", primals), ("tangents", tangents)):
        if not isinstance(x, tuple | list):
            raise TypeError(
                f"{transform}: {what} must be a tuple or list of the arguments, got {type(x).__name__}; for one argument "
                f"write ({what[0]},)"
            )
    if len(primals) != len(tangents):
        raise TypeError(f"{transform}: {len(primals)} primals but {len(tangents)} tangents; give one for each")


def _matching_tangents(call: Call, tangents: tuple) -> list:
    """The tangents of the traced leaves, checked; Zero where the primal is not continuous."""
    leaves, treedef = tree.flatten((tangents, {}))
    if treedef != call.treedef:
        raise TypeError(
            f"{call.name}: primals and tangents must have the same structure. "
            f"{tree.explain_difference(treedef, call.treedef, 'tangents')}"
        )
    found = []
    for i, (x, t) in enumerate(zip(call.leaves, leaves, strict=True)):
        wanted = tangent_aval(aval_of(x))
        found.append(_tangent(call, i, wanted, t))
    return found


def _tangent(call: Call, index: int, wanted: ShapedArray, t):
    if wanted.dtype == dtypes.float0:
        if getattr(t, "dtype", None) == dtypes.float0 or not np.any(np.asarray(t)):
            return Zero(wanted)
        raise TypeError(
            f"{call.name}: `{argument_name(call, index)}` has no tangents (its dtype is not continuous); give 0 or an array "
            f"of dtype float0, got {describe_value(t)}"
        )
    if type(t) is Zero:
        return t
    value = as_value(t)
    aval = aval_of(value)
    if aval.shape != wanted.shape or (aval.dtype != wanted.dtype and not aval.weak_type):
        raise TypeError(
            f"{call.name}: the tangent of `{argument_name(call, index)}` must be {wanted}, as the primal is, got {aval}"
        )
    return convert(value, wanted.dtype) if aval.dtype != wanted.dtype else value


@user_facing
def linearize(fun: Callable, *primals, has_aux: bool = False) -> tuple:
    """`(fun(*primals), the derivative at primals as a function of tangents)`; with `has_aux`, aux comes third.

    What does not depend on the tangents is computed once, now.

    >>> import funcml
    >>> y, f_jvp = funcml.linearize(lambda x: x ** 3, 2.0)
    >>> float(y), float(f_jvp(1.0))
    (8.0, 12.0)
    """
    call = _all_traced(flatten_call(fun, primals, {}, "linearize"))
    traced, values, inexact = _record(call)
    aux_from = _check_aux(traced, call, has_aux)
    lin = linearize_jaxpr(traced.jaxpr, (False,) * len(traced.captured) + tuple(inexact))
    outs = evaluate(lin.known, [*lin.captured, *traced.captured, *values], origin_of(fun))
    n = len(traced.jaxpr.outs)
    pushforward = _Pushforward(call, traced, lin, inexact, has_aux, aux_from)
    result = traced.rebuild(outs[:n])
    f_jvp = tree.Partial(pushforward, outs[n:])
    return (result[0], f_jvp, result[1]) if has_aux else (result, f_jvp)


def _record(call: Call) -> tuple[Traced, list, list[bool]]:
    """The call traced, its input values, and which of them are continuous."""
    values = call.inputs()
    traced = trace_call(call, [aval_of(x) for x in values], values)
    return traced, values, [dtypes.is_inexact(aval_of(x).dtype) for x in values]


class _Pushforward:
    """The derivative of a recorded call as a function of (residuals, tangents)."""

    def __init__(self, call, traced, lin, inexact, has_aux, aux_from):
        self.call = Call(call.function, call.leaves, call.treedef, call.traced, "linearize")
        self.traced, self.lin, self.inexact = traced, lin, inexact
        self.has_aux, self.aux_from = has_aux, aux_from

    def __call__(self, residuals, *tangents):
        given = _matching_tangents(self.call, tangents)
        moving = [t for t, m in zip(given, self.inexact, strict=True) if m]
        outs = iter(evaluate(self.lin.linear, [*residuals, *moving]))
        found = [
            next(outs) if has else _zeros_of(a)
            for a, has in zip(self.traced.jaxpr.out_avals, self.lin.has_tangent, strict=True)
        ]
        tangent = self.traced.rebuild(found)
        return tangent[0] if self.has_aux else tangent


def _zeros_of(aval: ShapedArray):
    wanted = tangent_aval(aval)
    if wanted.dtype == dtypes.float0:
        return float0_zeros(wanted)
    return broadcast_in_dim(wanted.dtype.type(0), wanted.shape) if wanted.shape else wanted.dtype.type(0)


# ---- vjp -------------------------------------------------------------------------------------------------------------


@user_facing
def vjp(fun: Callable, *primals, has_aux: bool = False) -> tuple:
    """`(fun(*primals), the transposed derivative at primals: from cotangents of the output to a tuple of those of primals)`.

    With `has_aux`, `fun` returns `(output, aux)`, and aux comes third.

    >>> import funcml
    >>> y, f_vjp = funcml.vjp(lambda x: x ** 3, 2.0)
    >>> float(y), float(f_vjp(1.0)[0])
    (8.0, 12.0)
    """
    call = _all_traced(flatten_call(fun, primals, {}, "vjp"))
    traced, values, inexact = _record(call)
    aux_from = _check_aux(traced, call, has_aux)
    lin, backward = vjp_jaxpr(traced.jaxpr, (False,) * len(traced.captured) + tuple(inexact))
    outs = evaluate(lin.known, [*lin.captured, *traced.captured, *values], origin_of(fun))
    n = len(traced.jaxpr.outs)
    pullback = _Pullback(call, traced, lin, backward, inexact, has_aux, aux_from)
    result = traced.rebuild(outs[:n])
    f_vjp = tree.Partial(pullback, outs[n:])
    return (result[0], f_vjp, result[1]) if has_aux else (result, f_vjp)


class _Pullback:
    """The transposed derivative of a recorded call as a function of (residuals, cotangent)."""

    def __init__(self, call, traced, lin, backward, inexact, has_aux, aux_from):
        self.treedef, self.name = call.treedef, call.name
        self.avals = [aval_of(x) for x in call.leaves]
        self.lin, self.backward, self.inexact = lin, backward, inexact
        result = traced.rebuild(traced.jaxpr.out_avals)
        self.out_avals = traced.jaxpr.out_avals
        self.out = result[0] if has_aux else result
        self.aux_from = aux_from

    def __call__(self, residuals, *cotangents):
        if len(cotangents) != 1:
            raise TypeError(f"{self.name}: the pullback takes one argument, a cotangent like the output; got {len(cotangents)}")
        cts = self._matching(cotangents[0])
        given = [
            ct if i < self.aux_from else _zeros_of(a)
            for i, (ct, a, has) in enumerate(zip(cts, self.out_avals, self.lin.has_tangent, strict=True))
            if has
        ]
        outs = iter(evaluate(self.backward.jaxpr, [*self.backward.captured, *residuals, *given]))
        found = [next(outs) if m else float0_zeros(a) for a, m in zip(self.avals, self.inexact, strict=True)]
        return tree.unflatten(self.treedef, found)[0]

    def _matching(self, cotangent) -> list:
        leaves, treedef = tree.flatten(cotangent)
        wanted, out_treedef = tree.flatten(self.out)
        if treedef != out_treedef:
            raise ValueError(
                f"{self.name}: the cotangent must have the structure of the output. "
                f"{tree.explain_difference(treedef, out_treedef, 'cotangent')}"
            )
        found = []
        for aval, ct in zip(wanted, leaves, strict=True):
            expected = tangent_aval(aval)
            if expected.dtype == dtypes.float0:
                found.append(ct)
                continue
            value = as_value(ct)
            given = aval_of(value)
            if given.shape != expected.shape or (given.dtype != expected.dtype and not given.weak_type):
                raise ValueError(
                    f"{self.name}: the cotangent must have the type of the output, {expected}, but is {given}; "
                    f"convert it with `.astype` or `jnp.broadcast_to`"
                )
            found.append(convert(value, expected.dtype) if given.dtype != expected.dtype else value)
        return [*found, *[None] * (len(self.out_avals) - len(found))]


@user_facing
def linear_transpose(fun: Callable, *primals, reduce_axes=()) -> Callable:
    """The transpose of a function that is linear; `primals` (arrays or `ShapeDtypeStruct`s) give the types of its arguments.

    >>> import funcml
    >>> (ct,) = funcml.linear_transpose(lambda x: 2.0 * x, 1.0)(3.0)
    >>> float(ct)
    6.0
    """
    if reduce_axes:
        raise TypeError("linear_transpose: reduce_axes is not supported")
    leaves, treedef = tree.flatten((primals, {}))
    avals = [x.aval if isinstance(x, ShapeDtypeStruct) else aval_of(as_value(x)) for x in leaves]
    call = Call(fun, leaves, treedef, [True] * len(leaves), "linear_transpose")
    for i, a in enumerate(avals):
        if not dtypes.is_inexact(a.dtype):
            raise TypeError(f"{call.name} needs float or complex inputs, but `{argument_name(call, i)}` is {a}")
    traced = trace_call(call, avals)
    n = len(traced.captured)

    def transposed(cotangent):
        cts, ct_treedef = tree.flatten(cotangent)
        if ct_treedef != traced.out_treedef:
            raise TypeError(
                f"{call.name}: the argument must have the structure of the output. "
                f"{tree.explain_difference(ct_treedef, traced.out_treedef, 'cotangent')}"
            )
        for ct, aval in zip(cts, traced.jaxpr.out_avals, strict=True):
            given = aval_of(as_value(ct))
            if given.shape != aval.shape or (given.dtype != aval.dtype and not given.weak_type):
                raise TypeError(f"{call.name}: the argument must have the type of the output, {aval}, got {given}")
        linear = (False,) * n + (True,) * len(avals)
        new, captured, _ = transpose_jaxpr(traced.jaxpr, linear, (True,) * len(cts), None, True)
        outs = evaluate(new, [*captured, *traced.captured, *map(as_value, cts)])
        return tree.unflatten(treedef, outs)[0]

    return user_facing(transposed)
