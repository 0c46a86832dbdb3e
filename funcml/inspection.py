"""Looking at functions without running them, and naming their parts: `make_jaxpr`, `eval_shape`, `named_scope`, `disable_jit`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence

from funcml.arguments import flatten_call, function_name, trace_call
from funcml.compilation import jit
from funcml.core.config import disable_jit as _disable_jit
from funcml.core.errors import user_facing
from funcml.core.ir import Jaxpr
from funcml.core.source import scoped
from funcml.core.tracing import aval_of, current_frame, no_frames
from funcml.transforms.call import call
from funcml.transforms.simplify import dce

__all__ = ["disable_jit", "ensure_compile_time_eval", "eval_shape", "make_jaxpr", "named_call", "named_scope"]


@contextlib.contextmanager
def named_scope(name: str):
    """A context, or a decorator, whose operations have `name` in StableHLO, in XLA's profiles and errors; scopes nest.

    Derivatives and batches of the operations have it too. A function under `jit` inside has its own names.

    >>> import funcml
    >>> @funcml.jit
    ... @named_scope("layer")
    ... def f(x):
    ...     with named_scope("square"):
    ...         return x * x
    >>> 'loc("layer/square/' in f.lower(2.0).as_text()
    True
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope: name must be a string, got {name!r} of type {type(name).__name__}")
    with scoped(name):
        yield


@contextlib.contextmanager
def ensure_compile_time_eval():
    """A context in which operations are computed at once, on known values, also while a function is being recorded.

    >>> import funcml, funcml.numpy as jnp
    >>> @funcml.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = int(jnp.sum(jnp.arange(3)))
    ...     return n * x
    >>> float(f(2.0))
    6.0
    """
    with no_frames():
        yield


def make_jaxpr(
    fun: Callable,
    static_argnums: int | Sequence[int] = (),
    return_shape: bool = False,
    static_argnames: str | Sequence[str] = (),
) -> Callable:
    """The function that gives the program of `fun` for arguments of given types (arrays or `ShapeDtypeStruct`s).

    Values that `fun` closes over are the leading inputs; what no output needs is left out. With `return_shape`, gives
    also the result with a `ShapeDtypeStruct` for each array.

    >>> import funcml, funcml.numpy as jnp
    >>> print(funcml.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0))
    { lambda a:f32[]. let
        b:f32[] = sin a
        c:f32[] = mul b 2.0
      in (c,) }
    """

    @functools.wraps(fun)
    def record(*args, **kwargs) -> Jaxpr | tuple:
        jitted = jit(fun, static_argnums=static_argnums or None, static_argnames=static_argnames or None)
        traced = jitted.trace(*args, **kwargs)
        jaxpr = dce(traced.jaxpr)
        return (jaxpr, traced.out_info) if return_shape else jaxpr

    return user_facing(record)


@user_facing
def eval_shape(fun: Callable, *args, **kwargs):
    """The shapes and dtypes of `fun(*args)`, without computing it; arguments are arrays or `ShapeDtypeStruct`s.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.eval_shape(lambda x: x @ x.T, funcml.ShapeDtypeStruct((3, 4), "float32"))
    ShapeDtypeStruct(shape=(3, 3), dtype=float32)
    """
    return jit(fun).eval_shape(*args, **kwargs)


def named_call(fun: Callable | None = None, *, name: str | None = None):
    """`fun` as a call of its own in the programs that use it, under `name`: it shows in jaxprs, in StableHLO and in profiles.

    Python control flow on values works inside as it does around it.
    """
    if fun is None:
        return functools.partial(named_call, name=name)
    label = name or function_name(fun)

    @functools.wraps(fun)
    def named(*args, **kwargs):
        if current_frame() is None:
            return fun(*args, **kwargs)
        made = flatten_call(fun, args, kwargs, "named_call")
        values = made.inputs()
        traced = trace_call(made, [aval_of(x) for x in values], values, interned=True)
        return traced.rebuild(call(traced.jaxpr, [*traced.captured, *values], label))

    return named


def disable_jit(disable: bool = True):
    """A context in which `jit` calls the function itself, operation by operation: values can be printed and stepped through."""
    return _disable_jit(disable)
