"""Branches: `cond`, `switch`, `platform_dependent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes, tree
from funcml.arguments import evaluate
from funcml.control_flow.cond import cond as bind_cond
from funcml.control_flow.cond import platform_index_p
from funcml.control_flow.programs import recorded, uniform
from funcml.core.config import config
from funcml.core.errors import user_facing
from funcml.core.tracing import aval_of, bind, current_frame
from funcml.lax.bodies import agree, array_leaf, flatten_arrays, record
from funcml.primitives import elementwise as ew

__all__ = ["cond", "platform_dependent", "switch"]

_NOT_GIVEN = object()


@user_facing
def cond(pred, true_fun: Callable, false_fun: Callable, *operands, operand=_NOT_GIVEN, linear=None):
    """`true_fun(*operands)` where `pred` is true, else `false_fun(*operands)`; only one of them runs.

    pred: a scalar, bool or number. Both functions take the same operands and return the same structure and types; weakly
    typed results take the dtype of the other branch's. Under `vmap` with a predicate for each example both run, and the
    results are selected. Differentiable in both modes; what is not taken leaves no NaN.

    >>> from funcml import lax
    >>> float(lax.cond(True, lambda x: x + 1.0, lambda x: x * 2.0, 3.0))
    4.0
    """
    if operand is not _NOT_GIVEN:
        if operands:
            raise TypeError("lax.cond: give operands by position or `operand=`, not both")
        operands = (operand,)
    for name, f in (("true_fun", true_fun), ("false_fun", false_fun)):
        if not callable(f):
            raise TypeError(f"lax.cond expects callables; {name} is {f!r} of type {type(f).__name__}")
    if pred is None:
        raise TypeError("lax.cond: cond predicate is None, which is neither true nor false; give a bool scalar")
    pred = _scalar("lax.cond", "pred", pred)
    if config.disable_jit and current_frame() is None:
        return (true_fun if bool(pred) else false_fun)(*operands)
    index = pred if dtypes.is_bool(aval_of(pred).dtype) else ew.ne(pred, aval_of(pred).dtype.type(0))
    return _branch("lax.cond", index, [false_fun, true_fun], operands)


@user_facing
def switch(index, branches: Sequence[Callable], *operands, operand=_NOT_GIVEN):
    """`branches[index](*operands)`; an index out of range takes the nearest branch.

    index: an integer scalar. The branches take the same operands and return the same structure and types, as for `cond`.

    >>> from funcml import lax
    >>> float(lax.switch(2, [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], 5.0))
    15.0
    """
    if operand is not _NOT_GIVEN:
        if operands:
            raise TypeError("lax.switch: give operands by position or `operand=`, not both")
        operands = (operand,)
    branches = tuple(branches)
    if not branches:
        raise ValueError("lax.switch: Empty branch sequence; give at least one function")
    if not all(map(callable, branches)):
        raise TypeError(f"lax.switch: branches must be callables, got {branches!r}")
    index = _scalar("lax.switch", "index", index)
    if not dtypes.is_integer(aval_of(index).dtype):
        raise TypeError(f"lax.switch expects an integer index, got {aval_of(index)}; use lax.cond for a condition")
    if len(branches) == 1:
        return branches[0](*operands)
    if config.disable_jit and current_frame() is None:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    dtype = aval_of(index).dtype.type
    info = dtypes.iinfo(dtype)
    index = ew.clamp(dtype(0), index, dtype(min(len(branches) - 1, info.max)))
    return _branch("lax.switch", index, branches, operands)


@user_facing
def platform_dependent(*args, default: Callable | None = None, **per_platform: Callable):
    """`per_platform[platform](*args)` for the platform that the program is compiled for: `cpu`, `cuda` (or `gpu`), `tpu`, `rocm`.

    All functions are recorded, and return the same structure and types; only the one that is chosen is compiled. `default` is for
    platforms that are not named; without it those are an error.

    >>> from funcml import lax
    >>> float(lax.platform_dependent(3.0, cpu=lambda x: x + 1, default=lambda x: x))
    4.0
    """
    who = "lax.platform_dependent"
    functions = [*per_platform.values(), *([] if default is None else [default])]
    if not functions or not all(map(callable, functions)):
        raise TypeError(f"{who} expects functions by the name of their platform, such as cpu=f, or default=f")
    params = {"platforms": tuple(per_platform), "has_default": default is not None}
    values, treedef = flatten_arrays(who, "arguments", args)
    avals = [aval_of(x) for x in values]
    bodies = agree(who, [record(who, f, treedef, avals) for f in functions])
    branches, captured = uniform([(b.jaxpr, b.captured) for b in bodies])

    def chosen(*operands):
        return bind_cond(bind(platform_index_p, (), params), branches, operands)

    operands = [*captured, *values]
    jaxpr, _ = recorded(chosen, [aval_of(x) for x in operands], who)
    return tree.unflatten(bodies[0].out_treedef, evaluate(jaxpr, operands))


def _scalar(who: str, what: str, x):
    value = array_leaf(who, x, what)
    aval = aval_of(value)
    if aval.shape != () or not (dtypes.is_bool(aval.dtype) or dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
        raise TypeError(
            f"{who} expects a scalar {what}, got {aval}; reduce it (`jnp.all`, `jnp.any`), or use `jnp.where` to choose "
            "element by element"
        )
    return value


def _branch(who: str, index, functions, operands: tuple):
    values, treedef = flatten_arrays(who, "operands", operands)
    avals = [aval_of(x) for x in values]
    bodies = agree(who, [record(who, f, treedef, avals) for f in functions])
    out_treedef = bodies[0].out_treedef
    if current_frame() is None:
        body = bodies[int(np.asarray(index))]
        return tree.unflatten(out_treedef, evaluate(body.jaxpr, [*body.captured, *values]))
    branches, captured = uniform([(b.jaxpr, b.captured) for b in bodies])
    outs = bind_cond(ew.convert(index, dtypes.int32), branches, [*captured, *values])
    return tree.unflatten(out_treedef, outs)
