"""`vmap`: a function of one example as a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from funcml import tree
from funcml.arguments import (
    Call,
    argument_name,
    as_value,
    evaluate,
    flatten_call,
    function_name,
    is_array_like,
    origin_of,
    positive_int,
    trace_call,
)
from funcml.chunks import chunked_jaxpr
from funcml.core.errors import user_facing
from funcml.core.ir import MappedAxis
from funcml.core.named_axes import axis_in_scope
from funcml.core.tracing import aval_of
from funcml.primitives.batching import example_aval
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["vmap"]


def vmap(
    fun: Callable,
    in_axes: int | None | Any = 0,
    out_axes: int | None | Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    *,
    chunk_size: int | None = None,
) -> Callable:
    """`fun` of one example as a function of a batch of them.

    `in_axes` says for each argument (an int or None, or a tree of them that is a prefix of the argument) which axis holds the
    examples; None: all examples share it. `out_axes` says where the axis goes in the outputs; None: outputs that do not
    depend on the example, given once. `axis_size` is needed where nothing is mapped. Keyword arguments are mapped on axis 0.

    With `chunk_size` so many examples at a time are computed, one chunk after the other: the same results in the memory that
    a chunk needs. It cannot go with `axis_name`, as the examples of other chunks are not there to communicate with.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x, y: x + y, in_axes=(0, None))(jnp.arange(3.0), 1.0).tolist()
    [1.0, 2.0, 3.0]
    >>> funcml.vmap(jnp.square, chunk_size=2)(jnp.arange(5.0)).tolist()
    [0.0, 1.0, 4.0, 9.0, 16.0]
    """
    if not callable(fun):
        raise TypeError(f"vmap expects a function, got {fun!r} of type {type(fun).__name__}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    _check_axes_type(fun, in_axes, "in_axes")
    chunk_size = positive_int("vmap", "chunk_size", chunk_size)
    if chunk_size is not None and axis_name is not None:
        raise ValueError(f"vmap of {function_name(fun)}: chunk_size cannot be given with axis_name={axis_name!r}, since the "
                         "examples of one chunk cannot communicate with those of another; leave one of them out")
    origin = origin_of(fun)

    @functools.wraps(fun)
    def batched(*args, **kwargs):
        call = flatten_call(fun, args, kwargs, "vmap")
        axes = _leaf_axes(call, args, kwargs, in_axes)
        for i, axis in enumerate(axes):
            if axis is not None:
                _trace_leaf(call, i)
        dims = [_dim(call, i, a) for i, a in enumerate(axes)]
        size = _common_size(call, dims, axis_size)
        inputs = [(x, d) for x, d, t in zip(call.leaves, dims, call.traced, strict=True) if t]
        values = [x for x, _ in inputs]
        at = [d for _, d in inputs]
        axis = MappedAxis(size, axis_name)
        with axis_in_scope(axis):
            traced = trace_call(call, [example_aval(aval_of(x), d) for x, d in inputs])
        n = len(traced.captured)
        wanted = _output_dims(traced, out_axes, call)
        in_dims = (*([None] * n), *at)
        program, captured, found = vmap_jaxpr(traced.jaxpr, axis, in_dims)
        _check_unmapped(found, wanted, traced, call)
        if chunk_size is not None and chunk_size < size:
            program, captured, _ = chunked_jaxpr(traced.jaxpr, axis, in_dims, wanted, chunk_size)
        elif found != wanted:
            program, captured, _ = vmap_jaxpr(traced.jaxpr, axis, in_dims, wanted)
        return traced.rebuild(evaluate(program, [*captured, *traced.captured, *values], origin))

    return user_facing(batched)


def _check_axes_type(fun, axes, what: str) -> None:
    if isinstance(axes, int | tuple | None):
        return
    raise TypeError(
        f"vmap of {function_name(fun)}: {what} must be an int, None, or a tuple with one entry for each positional argument "
        f"(each an int, None or a tree), got {axes!r}; for one argument that is a container write ({axes!r},)"
    )


def _leaf_axes(call: Call, args: tuple, kwargs: dict, in_axes) -> list:
    """The axis (int or None) of each leaf; keyword arguments are mapped on axis 0."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"{call.name}: in_axes {in_axes} has {len(in_axes)} entries, but the call has {len(args)} positional arguments; "
            "give one entry for each (keyword arguments are mapped on axis 0)"
        )
    axes = tree.flatten_prefix(in_axes, args, f"{call.name}: in_axes", is_leaf=_is_none)
    if any(a is not None and (isinstance(a, bool) or not isinstance(a, int)) for a in axes):
        raise TypeError(f"{call.name}: in_axes must hold ints and None, got {in_axes!r}")
    return [*axes, *[0] * len(tree.leaves(kwargs))]


def _is_none(x) -> bool:
    return x is None


def _trace_leaf(call: Call, i: int) -> None:
    x = call.leaves[i]
    if not is_array_like(x):
        raise TypeError(
            f"{call.name}: `{argument_name(call, i)}` is {x!r} of type {type(x).__name__}, not an array; close over it, or "
            "give it the axis None"
        )
    call.leaves[i] = as_value(x)
    call.traced[i] = True


def _dim(call: Call, i: int, axis: int | None) -> int | None:
    """The axis as a non-negative number; raises if the leaf does not have it."""
    if axis is None:
        return None
    aval = aval_of(call.leaves[i])
    if not -aval.ndim <= axis < aval.ndim:
        raise ValueError(
            f"{call.name}: `{argument_name(call, i)}` is {aval} and has no axis {axis} to map over; give it in_axes None to "
            "share it, or make it an array with that axis"
        )
    return axis % aval.ndim


def _common_size(call: Call, dims: list, axis_size: int | None) -> int:
    sizes: dict[int, int] = {}
    for i, (x, d) in enumerate(zip(call.leaves, dims, strict=True)):
        if d is not None:
            sizes.setdefault(aval_of(x).shape[d], i)
    if axis_size is not None and not sizes:
        return axis_size
    if not sizes:
        raise ValueError(f"{call.name}: no argument is mapped (all in_axes are None, or there is none); give axis_size=")
    if len(sizes) > 1 or (axis_size is not None and axis_size not in sizes):
        found = ", ".join(
            f"`{argument_name(call, i)}` ({aval_of(call.leaves[i])}) has {n} along axis {dims[i]}" for n, i in sizes.items()
        )
        asked = f", and axis_size={axis_size} was asked for" if axis_size is not None else ""
        raise ValueError(
            f"vmap got inconsistent sizes for array axes to be mapped: in {call.name} they have different lengths: {found}{asked}"
        )
    return next(iter(sizes))


def _output_dims(traced, out_axes, call: Call) -> tuple:
    """Where the mapped axis goes in each output of the program."""
    result = traced.rebuild(traced.jaxpr.out_avals)
    leaves = tree.leaves(result)
    axes = tree.flatten_prefix(out_axes, result, f"{call.name}: out_axes", is_leaf=_is_none)
    dims: list[int | None] = []
    for aval, axis in zip(leaves, axes, strict=True):
        if not hasattr(aval, "ndim"):
            continue
        if axis is None:
            dims.append(None)
            continue
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"{call.name}: out_axes must hold ints and None, got {out_axes!r}")
        if not -aval.ndim - 1 <= axis <= aval.ndim:
            raise ValueError(f"{call.name}: out_axes asks for axis {axis} of a batched {aval}, which has {aval.ndim + 1} axes")
        dims.append(axis % (aval.ndim + 1))
    return tuple(dims)


def _check_unmapped(found, wanted, traced, call: Call) -> None:
    for aval, dim, asked in zip(traced.jaxpr.out_avals, found, wanted, strict=True):
        if asked is None and dim is not None:
            raise ValueError(
                f"{call.name}: out_axes is None for an output {aval} that differs from example to example; give it an axis, or "
                "reduce over the examples outside"
            )
