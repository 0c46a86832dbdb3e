"""Python functions of NumPy arrays inside compiled programs: `pure_callback`, `io_callback`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcml import dtypes, tree
from funcml.arguments import as_value, is_array_like
from funcml.control_flow import host
from funcml.core.avals import shaped
from funcml.core.errors import user_facing
from funcml.core.ir import Primitive
from funcml.core.tracing import aval_of, bind, current_frame
from funcml.lowering.array import asarray
from funcml.shape_dtype import ShapeDtypeStruct
from funcml.transforms.custom_vjp import custom_vjp

__all__ = ["call_host", "effects_barrier", "io_callback", "pure_callback"]


@user_facing
def pure_callback(
    callback: Callable,
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    vectorized: bool | None = None,
    vjp: Callable | None = None,
    **kwargs: Any,
):
    """`callback(*args, **kwargs)` on NumPy arrays, called by the compiled program; its result has the declared types.

    result_shape_dtypes: a tree of arrays or of `ShapeDtypeStruct`s. The callback must be a function of its arguments alone:
    it may be called again, or not at all where its result is not used. `vmap_method` says what a batch does: 'sequential' calls
    it for each example; 'expand_dims' and 'broadcast_all' call it once with a leading axis on all arguments, of length 1 or of
    the batch where an argument is not mapped. What the callback raises comes out of the call of the program.

    `vjp(args, cotangent) -> cotangents` is its reverse derivative, on NumPy arrays too: a tuple with an array like each argument
    (for integers, whatever number); with 'expand_dims' a batch of it is as with 'broadcast_all'. Without it there is no
    derivative, unless the call is wrapped in `custom_jvp` or `custom_vjp`.

    >>> import funcml, numpy as np
    >>> f = lambda x: funcml.pure_callback(np.sort, x, x)
    >>> funcml.jit(f)(np.float32([3, 1, 2])).tolist()
    [1.0, 2.0, 3.0]
    >>> g = lambda x: funcml.pure_callback(np.sin, x, x, vjp=lambda args, ct: (ct * np.cos(args[0]),))
    >>> float(funcml.grad(g)(np.float32(0)))
    1.0
    """
    if vectorized is not None:
        vmap_method = "broadcast_all" if vectorized else "sequential"
    if vmap_method not in (None, *host.VMAP_METHODS):
        raise ValueError(f"pure_callback: vmap_method must be one of {', '.join(host.VMAP_METHODS)}, got {vmap_method!r}")
    _no_sharding("pure_callback", sharding)
    if vjp is not None:
        if kwargs:
            raise TypeError(f"pure_callback with vjp= takes arguments by position alone, got the keywords {sorted(kwargs)}")
        avals, treedef = _declared("pure_callback", result_shape_dtypes)
        return _differentiable(callback, vjp, avals, treedef, vmap_method)(*args)
    params = {"vmap_method": vmap_method}
    return call_host(host.pure_callback_p, "pure_callback", callback, result_shape_dtypes, args, kwargs, params)


@functools.lru_cache(maxsize=1024)
def _differentiable(callback: Callable, vjp: Callable, avals: tuple, treedef: Any, vmap_method: str | None) -> custom_vjp:
    """The function of arrays that calls `callback`, and `vjp` for its derivative."""
    params = {"vmap_method": vmap_method}
    # its results have the shapes of all arguments, so these must have the axis of the batch
    of_vjp = {"vmap_method": "broadcast_all" if vmap_method == "expand_dims" else vmap_method}
    result = tree.unflatten(treedef, [ShapeDtypeStruct(a.shape, a.dtype) for a in avals])

    def call(*args):
        return call_host(host.pure_callback_p, "pure_callback", callback, result, args, {}, params)

    def backward(args, ct):
        like = tree.map(aval_of, args)
        found = call_host(host.pure_callback_p, "vjp of a pure_callback", vjp, like, (args, ct), {}, of_vjp)
        return tree.map(lambda x: x if dtypes.is_inexact(aval_of(x).dtype) else None, found)

    function = custom_vjp(call)
    function.defvjp(lambda *args: (call(*args), args), backward)
    return function


@user_facing
def io_callback(
    callback: Callable, result_shape_dtypes: Any, *args: Any, sharding: Any = None, ordered: bool = False, **kwargs: Any
):
    """`callback(*args, **kwargs)` on NumPy arrays, once for each time the program passes, whatever becomes of its result.

    `ordered` callbacks run in the order in which the program was written, within a run and from run to run. Others run once for
    each example of a batch, in no fixed order. Otherwise as `pure_callback`.

    >>> import funcml, numpy as np
    >>> seen = []
    >>> f = funcml.jit(lambda x: funcml.io_callback(lambda v: seen.append(float(v)), None, x, ordered=True))
    >>> f(1.0); f(2.0); seen
    [1.0, 2.0]
    """
    _no_sharding("io_callback", sharding)
    primitive = host.ordered_callback_p if ordered else host.io_callback_p
    return call_host(primitive, "io_callback", callback, result_shape_dtypes, args, kwargs, {})


def effects_barrier() -> None:
    """Waits until all effects of earlier runs have happened; a run with effects waits for them itself, so nothing is left.

    >>> effects_barrier()
    """


def _no_sharding(who: str, sharding: Any) -> None:
    if sharding is not None:
        raise NotImplementedError(f"{who}: sharding= is not supported; the callback runs where the program runs")


def call_host(
    primitive: Primitive, who: str, callback: Callable, result: Any, args: tuple, kwargs: dict, params: dict
) -> Any:
    """A call of the host, bound in a trace, made at once outside; `who` names it in errors, `result` declares what it gives.

    `params` are those of the primitive beside the function. With `result` NotImplemented nothing is returned.

    >>> call_host(host.pure_callback_p, "double", lambda x: 2 * x, np.float32(0), (np.float32(3),), {}, {"vmap_method": None})
    Array(6., dtype=float32)
    """
    if not callable(callback):
        raise TypeError(f"{who} expects a function, got {callback!r} of type {type(callback).__name__}")
    leaves, treedef = tree.flatten((args, kwargs))
    for path, x in tree.leaves_with_path((args, kwargs)):
        if not is_array_like(x):
            raise TypeError(
                f"{who}: argument {tree.keystr(path[1:])} is {x!r} of type {type(x).__name__}, not an array; close over it"
            )
    avals, out_treedef = ((), None) if result is NotImplemented else _declared(who, result)
    function = host.HostFunction(callback, who, treedef, out_treedef)
    values = [as_value(x) for x in leaves]
    if current_frame() is None:
        outs = [asarray(x) for x in function.call(avals, *[np.asarray(asarray(x)) for x in values])]
    else:
        outs = bind(primitive, values, {"function": function, "out_avals": avals, **params})
    return None if out_treedef is None else tree.unflatten(out_treedef, outs)


def _declared(who: str, result: Any) -> tuple[tuple, Any]:
    """The types and the structure of a declared result."""
    leaves, treedef = tree.flatten(result)
    avals = []
    for x in leaves:
        if isinstance(x, ShapeDtypeStruct) or (hasattr(x, "shape") and hasattr(x, "dtype")):
            avals.append(shaped(tuple(x.shape), dtypes.canonical(x.dtype)))
        else:
            raise TypeError(
                f"{who}: result_shape_dtypes must be a tree of arrays or ShapeDtypeStructs, got a leaf {x!r} of type "
                f"{type(x).__name__}"
            )
    return tuple(avals), treedef
