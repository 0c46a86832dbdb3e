"""Reading JAX's jaxprs: the one place that knows how they look, in every supported version of JAX.

    record        : (function, avals, 64-bit?)  -> (jaxpr, consts)     JAX's program of a function of flat JAX values
    opened        : program of a parameter      -> (jaxpr, consts)     closed or not
    live_eqns     : jaxpr                       -> [eqn]               those whose results, or effects, are wanted
    aval_from_jax : JAX aval -> ShapedArray     jax_struct : ShapedArray -> jax.ShapeDtypeStruct
    one_equation  : eqn -> a JAX function that does the same

JAX is imported at the first use.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcml import dtypes
from funcml.core.avals import ShapedArray, shaped
from funcml.core.ir import Literal
from funcml.core.source import is_internal_file

__all__ = [
    "aval_from_jax",
    "holds_64_bit",
    "is_64_bit",
    "is_jax_tracer",
    "is_literal",
    "is_recording",
    "jax_struct",
    "jaxpr_of",
    "literal",
    "live_eqns",
    "one_equation",
    "opened",
    "record",
    "scan_layout",
    "where",
]


class _State(threading.local):
    depth = 0


_state = _State()


def is_recording() -> bool:
    """Whether JAX is recording a function for `record` in this thread."""
    return _state.depth > 0


def is_jax_tracer(x) -> bool:
    """Whether `x` is a tracer of JAX."""
    import jax

    return isinstance(x, jax.core.Tracer)


def record(function: Callable, avals: Sequence[ShapedArray], x64: bool) -> tuple[Any, list]:
    """The program that JAX makes of `function(*values)`, which returns a list of arrays, and its constants.

    `x64` says whether JAX may use 64-bit types; without it JAX would narrow them.
    """
    import jax

    _state.depth += 1
    try:
        with jax.enable_x64(x64):
            return opened(jax.make_jaxpr(function)(*map(jax_struct, avals)))
    finally:
        _state.depth -= 1


# ---- programs --------------------------------------------------------------------------------------------------------


def opened(program) -> tuple[Any, list]:
    """A program of JAX without its constants, and the constants."""
    inner = getattr(program, "jaxpr", program)
    return inner, list(getattr(program, "consts", ()))


def jaxpr_of(params: dict):
    """The program among the parameters of an equation that calls one."""
    return next(params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in params)


def live_eqns(jaxpr) -> list:
    """The equations that the outputs need, or that have an effect, in order."""
    needed = {v for v in jaxpr.outvars if not is_literal(v)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            needed.update(a for a in eqn.invars if not is_literal(a))
    return kept[::-1]


def is_literal(atom) -> bool:
    """Whether an operand is a literal."""
    import jax.extend.core as jax_core

    return isinstance(atom, jax_core.Literal)


def literal(atom) -> Literal:
    """A literal of JAX as one of ours."""
    aval = aval_from_jax(atom.aval)
    return Literal(np.asarray(atom.val).astype(aval.dtype)[()], aval)


def scan_layout(params: dict) -> tuple[int, int]:
    """How many constants and carries a scan equation has."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].elts
    return len(consts), len(carry)


def one_equation(eqn) -> Callable:
    """A function of JAX that does what an equation that calls a program does: (operands) -> list of results."""
    import jax.extend.core as jax_core

    program = jaxpr_of(eqn.params)
    inner, _ = opened(program)
    outvars = [jax_core.Var(v.aval) if isinstance(v, jax_core.DropVar) else v for v in eqn.outvars]
    alone = eqn.replace(invars=list(inner.invars), outvars=outvars)
    jaxpr = inner.replace(
        constvars=[], invars=list(inner.invars), eqns=[alone], outvars=outvars, effects=eqn.effects
    )
    return jax_core.jaxpr_as_fun(jaxpr if inner is program else jax_core.ClosedJaxpr(jaxpr, []))


# ---- types -----------------------------------------------------------------------------------------------------------


def aval_from_jax(aval) -> ShapedArray:
    """A type of JAX as ours."""
    return shaped(tuple(aval.shape), dtype_from_jax(aval.dtype), bool(getattr(aval, "weak_type", False)))


def dtype_from_jax(dtype):
    """A dtype of JAX as ours; the dtypes of typed keys become `KeyDtype`s."""
    if isinstance(dtype, dtypes.KeyDtype):
        return dtype
    return np.dtype(dtype) if isinstance(dtype, np.dtype | type) else dtypes.canonical(str(dtype))


def jax_struct(aval: ShapedArray):
    """One of our types as a `jax.ShapeDtypeStruct`."""
    import jax

    dtype = _key_dtype(aval.dtype) if dtypes.is_key(aval.dtype) else aval.dtype
    return jax.ShapeDtypeStruct(aval.shape, dtype, weak_type=aval.weak_type)


def is_64_bit(aval) -> bool:
    """Whether an array of this type, ours or JAX's, has parts of 64 bits."""
    dtype = dtype_from_jax(aval.dtype)
    return not dtypes.is_key(dtype) and dtype != dtypes.float0 and dtypes.bit_width(dtypes.real_dtype(dtype)) == 64


def holds_64_bit(jaxpr) -> bool:
    """Whether a program of JAX computes with 64-bit types."""
    atoms = [*jaxpr.invars, *jaxpr.outvars, *[v for eqn in jaxpr.eqns for v in eqn.outvars]]
    return any(is_64_bit(a.aval) for a in atoms)


@functools.cache
def _key_dtype(dtype):
    import jax

    return jax.eval_shape(lambda: jax.random.key(0, impl=dtype.impl)).dtype


# ---- places ----------------------------------------------------------------------------------------------------------


def where(eqn) -> str:
    """`file.py:12 (function)`: the line outside JAX and funcml that made the equation."""
    import jax

    package = os.path.dirname(jax.__file__) + os.sep
    traceback = eqn.source_info.traceback
    for frame in traceback.frames if traceback else ():
        if not frame.file_name.startswith(package) and not is_internal_file(frame.file_name):
            return f"{frame.file_name}:{frame.line_num} ({frame.function_name})"
    return "code of JAX's own"
