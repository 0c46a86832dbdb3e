"""Loops: `while_loop`, `fori_loop`, `scan`, `map`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from funcml import dtypes, tree
from funcml.arguments import positive_int
from funcml.control_flow.programs import parts, recorded
from funcml.control_flow.repeat import repeat
from funcml.control_flow.scan import scan as bind_scan
from funcml.control_flow.while_loop import while_loop as bind_while
from funcml.core.config import config
from funcml.core.errors import ConcretizationError, user_facing
from funcml.core.tracing import Tracer, aval_of, current_frame, eval_jaxpr, value_of
from funcml.lax.bodies import array_leaf, check_carry, flatten_arrays, record, settle_carry
from funcml.lax.segments import checked_choice
from funcml.lax.segments import run as run_checkpointed
from funcml.lax.shaping import index_in_dim, stack
from funcml.primitives import elementwise as ew
from funcml.vectorise import vmap

__all__ = ["fori_loop", "map", "scan", "while_loop"]


@user_facing
def while_loop(cond_fun: Callable, body_fun: Callable, init_val, *, max_steps: int | None = None):
    """`val = init_val; while cond_fun(val): val = body_fun(val)`; the last `val`.

    cond_fun: val -> bool[]. body_fun gives back the structure and types that it takes; weakly typed parts of `init_val` take
    the dtype that it gives them. Reverse mode works: the number of steps is counted, and a fixed number of carries is kept
    (see `funcml.control_flow.repeat`). With `max_steps` reverse mode stores what so many steps need instead;
    steps beyond them are differentiated as without it, so values and derivatives are right whatever the number.

    >>> import funcml
    >>> from funcml import lax
    >>> f = lambda x: lax.while_loop(lambda v: v < 100.0, lambda v: v * v, x)
    >>> float(f(3.0)), float(funcml.grad(f)(3.0))
    (6561.0, 17496.0)
    """
    who = "lax.while_loop"
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError(f"{who} expects two callables, got {cond_fun!r} and {body_fun!r}")
    max_steps = positive_int(who, "max_steps", max_steps)
    init, treedef = flatten_arrays(who, "init_val", init_val)
    if config.disable_jit and current_frame() is None:
        val = tree.unflatten(treedef, init)
        while cond_fun(val):
            val = body_fun(val)
        return val
    argument = tree.treedef_tuple((treedef,))

    def make(avals):
        body = record(who, body_fun, argument, avals)
        return body, body.out_avals, body.out_treedef

    body, init, out_treedef = settle_carry(init, make)
    avals = [aval_of(x) for x in init]
    check_carry(who, body.name, "val", treedef, avals, out_treedef, body.out_avals)
    test = record(who, cond_fun, argument, avals)
    if [a.strong() for a in test.out_avals] != [_BOOL] or not tree.treedef_is_leaf(test.out_treedef):
        found = tree.unflatten(test.out_treedef, test.out_avals)
        raise TypeError(f"{who}: {test.name} must return one bool[], got {found}; compare, or reduce with `jnp.any` or `jnp.all`")
    outs = bind_while(test.jaxpr, body.jaxpr, test.captured, body.captured, init, max_steps)
    return tree.unflatten(treedef, outs)


_BOOL = aval_of(np.bool_(True))


@user_facing
def fori_loop(
    lower, upper, body_fun: Callable, init_val, *, unroll: int | bool | None = None, max_steps: int | None = None
):
    """`val = init_val; for i in range(lower, upper): val = body_fun(i, val)`; the last `val`.

    lower, upper: scalars of one dtype, integers as a rule. With bounds that are known this is a `scan`; with traced ones a
    loop whose reverse mode keeps a fixed number of carries, or, with `max_steps`, stores what so many steps need (see
    `while_loop`). `unroll` puts several steps into one turn (known bounds only).

    >>> from funcml import lax
    >>> float(lax.fori_loop(0, 5, lambda i, x: x + i, 0.0))
    10.0
    """
    who = "lax.fori_loop"
    if not callable(body_fun):
        raise TypeError(f"{who} expects a callable, got {body_fun!r} of type {type(body_fun).__name__}")
    lower, upper = _bounds(who, lower, upper)
    max_steps = positive_int(who, "max_steps", max_steps)
    if config.disable_jit and current_frame() is None:
        val = tree.map(lambda x: array_leaf(who, x, "init_val"), init_val)
        for i in range(int(lower), int(upper)):
            val = body_fun(i, val)
        return val
    length = _known_length(lower, upper)
    if length is None and unroll is not None:
        raise ValueError(
            f"{who}: Can only use `unroll` with bounds that are known when the function is recorded; leave it out for traced ones"
        )
    init, treedef = flatten_arrays(who, "init_val", init_val)
    counter = aval_of(lower).strong()
    arguments = tree.treedef_tuple((tree.structure(0), treedef))

    def make(avals):
        body = record(who, body_fun, arguments, [counter, *avals])
        return body, body.out_avals, body.out_treedef

    body, init, out_treedef = settle_carry(init, make)
    check_carry(who, body.name, "val", treedef, [aval_of(x) for x in init], out_treedef, body.out_avals)
    n = len(body.captured)

    def step(*values):
        consts, (i, *val) = parts(values, n)
        return [ew.add(i, counter.dtype.type(1)), *eval_jaxpr(body.jaxpr, [*consts, i, *val])]

    program, _ = recorded(step, body.jaxpr.in_avals, f"{who} of {body.name}")
    carry = [ew.convert(lower, counter.dtype), *init]
    if length is None and max_steps is not None:
        below, _ = recorded(lambda end, i, *_: [ew.lt(i, end)], [counter, *[aval_of(x).strong() for x in carry]], who)
        outs = bind_while(below, program, [ew.convert(upper, counter.dtype)], body.captured, carry, max_steps)
    elif length is None:
        length_of = ew.sub(upper, lower)
        count = ew.convert(ew.ceil(length_of) if dtypes.is_float(counter.dtype) else length_of, dtypes.int32)
        outs = repeat(count, program, body.captured, carry)
    else:
        outs = bind_scan(program, body.captured, carry, [], length=length, unroll=_unroll(who, unroll, length))
    return tree.unflatten(treedef, outs[1:])


def _bounds(who: str, lower, upper) -> tuple:
    """Both bounds with one dtype."""
    bounds = [array_leaf(who, x, name) for name, x in (("lower", lower), ("upper", upper))]
    avals = [aval_of(x) for x in bounds]
    for name, aval in zip(("lower", "upper"), avals, strict=True):
        if aval.shape != () or not (dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
            raise TypeError(f"{who} expects real scalars as bounds; {name} is {aval}")
    if avals[0].dtype == avals[1].dtype:
        return tuple(bounds)
    strong = {a.dtype for a in avals if not a.weak_type}
    if len(strong) > 1:
        raise TypeError(
            f"{who}: lower and upper arguments to fori_loop must have equal types, got {avals[0]} and "
            f"{avals[1]}; convert one of them"
        )
    dtype = strong.pop() if strong else max((a.dtype for a in avals), key=dtypes.bit_width)
    return tuple([ew.convert(x, dtype) for x in bounds])


def _known_length(lower, upper) -> int | None:
    """The number of steps between bounds that do not depend on what is traced."""
    if isinstance(lower, Tracer) or isinstance(upper, Tracer):
        return None
    return max(math.ceil(np.asarray(upper).item() - np.asarray(lower).item()), 0)


def _unroll(who: str, unroll, length: int) -> int:
    """The number of steps in one turn."""
    if unroll is None or unroll is False:
        return 1
    if unroll is True:
        return max(length, 1)
    _require_known(who, "unroll", "`int` or `bool`", unroll)
    unroll = operator.index(unroll)
    if unroll < 0:
        raise ValueError(f"{who}: `unroll` must be a bool or an int that is not negative, got {unroll}")
    return unroll or max(length, 1)


def _require_known(who: str, argument: str, kinds: str, value) -> None:
    if isinstance(value, Tracer) and value_of(value) is None:
        raise ConcretizationError(
            f"{who}: The `{argument}` argument to `{who.removeprefix('lax.')}` expects a concrete {kinds} value, got {value}; "
            "make it a Python number, or a static argument"
        )


@user_facing
def scan(
    f: Callable, init, xs=None, length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
    _split_transpose: bool = False, *, checkpoint: Any = None,
):
    """A function of a carry and one slice, applied along the leading axis of `xs`.

        f: (carry, x) -> (carry, y)          scan(f, init, xs) -> (last carry, ys stacked on a leading axis)

    `init` and `xs` are trees of arrays; `length` is needed where `xs` has none. The carry keeps its structure and types; a
    weakly typed initial value takes the dtype that `f` gives it. `reverse` begins at the last slice; `unroll` puts several
    steps into one turn of the compiled loop (True or 0: all of them).

    Reverse mode stacks what the steps need, except what is the same in each, a slice of `xs`, or cheap to compute again.
    `checkpoint` makes it keep less: "sqrt" or a number of steps keeps the carry once in so many steps, and computes the steps
    between again; a policy of `checkpoint_policies` (or "auto") makes each step a checkpoint.

    >>> import funcml.numpy as jnp
    >>> from funcml import lax
    >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0, jnp.arange(4))
    >>> int(total), sums.tolist()
    (6, [0, 1, 3, 6])
    """
    who = "lax.scan"
    if not callable(f):
        raise TypeError(f"{who} expects a callable, got {f!r} of type {type(f).__name__}")
    values, xs_treedef = flatten_arrays(who, "xs", xs)
    length = _length(who, xs, values, length)
    unroll = _unroll(who, unroll, length)
    choice = checked_choice(who, checkpoint, length)
    init, treedef = flatten_arrays(who, "init", init)
    if config.disable_jit and current_frame() is None:
        return _python_scan(who, f, tree.unflatten(treedef, init), values, xs_treedef, length, reverse)
    arguments = tree.treedef_tuple((treedef, xs_treedef))
    slices = [_slice_aval(x) for x in values]

    def make(avals):
        body = record(who, f, arguments, [*avals, *slices])
        carry_treedef, _ = _pair(who, body)
        n = carry_treedef.num_leaves
        return body, body.out_avals[:n], carry_treedef

    body, init, carry_treedef = settle_carry(init, make)
    n = carry_treedef.num_leaves
    check_carry(who, body.name, "carry", treedef, [aval_of(x) for x in init], carry_treedef, body.out_avals[:n])
    options: dict[str, Any] = {"length": length, "reverse": bool(reverse), "unroll": unroll}
    if choice is None:
        outs = bind_scan(body.jaxpr, body.captured, init, values, **options)
    else:
        outs = run_checkpointed(body.jaxpr, body.captured, init, values, choice, **options)
    _, ys_treedef = _pair(who, body)
    return tree.unflatten(treedef, outs[:n]), tree.unflatten(ys_treedef, outs[n:])


def _slice_aval(x):
    aval = aval_of(x)
    return aval.update(shape=aval.shape[1:])


def _pair(who: str, body) -> list:
    """The structures of the carry and of the slice that a step returns."""
    children = tree.treedef_children(body.out_treedef)
    if len(children) != 2 or tree.treedef_is_leaf(body.out_treedef) or body.out_treedef.node_data()[0] not in (tuple, list):
        found = tree.unflatten(body.out_treedef, body.out_avals)
        raise TypeError(f"{who}: {body.name} must return a pair (carry, y), got {found}; for no y return (carry, None)")
    return children


def _length(who: str, xs, values: list, length: int | None) -> int:
    """How many steps there are: the common leading length of `xs`, or `length`."""
    sizes: dict[int, str] = {}
    for path, x in tree.leaves_with_path(xs):
        shape = np.shape(x)
        where = f"xs{tree.keystr(path)}"
        if not shape:
            raise ValueError(f"{who}: scan got value with no leading axis to scan over: {where} is a scalar")
        sizes.setdefault(shape[0], where)
    if length is not None:
        _require_known(who, "length", "`int`", length)
        try:
            length = operator.index(length)
        except TypeError:
            raise TypeError(f"{who}: length must be an int, got {length!r}") from None
    if not sizes and length is None:
        raise ValueError(f"{who}: give xs or length=, so that the number of steps is known")
    if len(sizes) > 1 or (length is not None and sizes and length not in sizes):
        found = ", ".join(f"{where} has {n}" for n, where in sizes.items())
        asked = "" if length is None else f", and length={length} was given"
        raise ValueError(f"{who}: the leading axes of xs must have one length: {found}{asked}")
    return next(iter(sizes)) if length is None else length


def _python_scan(who: str, f, carry, values, xs_treedef, length: int, reverse: bool):
    """The steps one by one, under `disable_jit`."""
    if length == 0:
        raise ValueError(f"{who}: with disable_jit() a scan of length 0 has no outputs to take the types of ys from")
    ys = []
    for i in reversed(range(length)) if reverse else range(length):
        slices = tree.unflatten(xs_treedef, [index_in_dim(x, i, keepdims=False) for x in values])
        carry, y = f(carry, slices)
        ys.append(y)
    return carry, tree.map(lambda *leaves: stack(leaves), *(reversed(ys) if reverse else ys))


@user_facing
def map(f: Callable, xs, *, batch_size: int | None = None):
    """`f` of each slice of `xs` along the leading axis, one after the other: what `vmap` does, in the memory of one slice.

    With `batch_size`, that many slices at a time are computed by `vmap`.

    >>> import funcml.numpy as jnp
    >>> from funcml import lax
    >>> lax.map(lambda x: x * x, jnp.arange(3.0)).tolist()
    [0.0, 1.0, 4.0]
    """
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    values, _ = flatten_arrays("lax.map", "xs", xs)
    _length("lax.map", xs, values, None)
    return vmap(f, chunk_size=positive_int("lax.map", "batch_size", batch_size))(xs)
