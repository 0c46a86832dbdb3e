"""Checks inside traced functions: `checkify(f)` gives an `Error` beside the result of `f`.

    checkify : f  |->  args -> (Error, f(*args))

The checks are `check(predicate, message, ...)` of the user, and those that `errors` adds: NaNs, divisions by zero and indices out
of bounds. It composes with `jit`, `grad`, `vmap` and control flow in any order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcml import dtypes, tree
from funcml.arguments import Call, as_traced, as_value, function_name, is_array_like, trace_call, with_exact_scalars
from funcml.control_flow.checks import (
    DivisionByZeroError,
    FailedCheckError,
    Fault,
    JaxRuntimeError,
    NaNError,
    OOBError,
    bind_check,
    check_p,
    checkify_jaxpr,
    debug_check_p,
)
from funcml.core.errors import user_facing
from funcml.core.registry import on_load, register_pytree_node
from funcml.core.tracing import Tracer, aval_of, current_frame, eval_jaxpr
from funcml.lowering.execute import run_program
from funcml.primitives.elementwise import eq, not_

__all__ = [
    "DivisionByZeroError",
    "Error",
    "FailedCheckError",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """The first check that failed in a run of a checked function, if any did; a pytree, so it goes through transforms.

    Under `vmap` there is one for each example.
    """

    def __init__(self, code: Any = -1, payloads: tuple = (), faults: tuple[Fault, ...] = ()):
        self._code, self._payloads, self._faults = code, tuple(payloads), tuple(faults)

    def get(self) -> str | None:
        """The message of the check that failed; None if none did.

        >>> from funcml.experimental import checkify
        >>> err, y = checkify.checkify(lambda x: 1.0 / x, errors=checkify.div_checks)(0.0)
        >>> err.get()
        'division by zero'
        """
        found = self._found()
        if not np.ndim(self._code):
            return found[0][1] if found else None
        return "\n".join([f"at mapped index {', '.join(map(str, at))}: {text}" for at, text, *_ in found]) or None

    def get_exception(self) -> JaxRuntimeError | None:
        """An exception of the class that belongs to the check, with the user's line as a note; None if none failed."""
        found = self._found()
        if not found:
            return None
        _, _, kind, where = found[0]
        error = kind(self.get())
        if where:
            error.add_note(f"The check that failed was made at {where}")
        return error

    def throw(self) -> None:
        """Raises `get_exception()`, if there is one."""
        error = self.get_exception()
        if error is not None:
            raise error

    def _found(self) -> list[tuple]:
        """(place in the batch, message, class of the error, the user's line) of each failure."""
        code = np.asarray(self._code)
        payloads = [np.asarray(x) for x in self._payloads] if (code >= 0).any() else []
        found = []
        for at in map(tuple, np.argwhere(code >= 0)):
            k = code[at]
            start = sum(len(f.avals) for f in self._faults[:k])
            fault = self._faults[k]
            text = fault.message([x[at] for x in payloads[start : start + len(fault.avals)]])
            found.append((at, text, fault.kind, fault.where))
        return found

    def __repr__(self) -> str:
        return f"Error({len(self._faults)} checks)"


on_load(
    lambda: register_pytree_node(
        Error, lambda e: ((e._code, e._payloads), e._faults), lambda faults, values: Error(values[0], values[1], faults)
    )
)
init_error = Error()


@user_facing
def checkify(f: Callable, errors: frozenset = user_checks) -> Callable:
    """The function `(*args) -> (Error, f(*args))`, which looks for `errors`.

    `errors` is a set of the classes of errors to look for: `user_checks` (those of `check`), `nan_checks`, `index_checks`,
    `div_checks`, `float_checks`, `automatic_checks`, `all_checks` or a union of them.

    >>> import funcml, funcml.numpy as jnp
    >>> from funcml.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "x is {x}, not positive", x=x)
    ...     return jnp.log(x)
    >>> err, y = funcml.jit(checkify.checkify(f))(-1.0)
    >>> err.get()
    'x is -1.0, not positive'
    """
    if not callable(f):
        raise TypeError(f"checkify expects a function, got {f!r} of type {type(f).__name__}")
    wanted = frozenset(errors)
    for kind in wanted - all_checks:
        raise ValueError(f"checkify: {kind!r} is no kind of error; errors is one of user_checks, nan_checks, ... or their union")

    @functools.wraps(f)
    def checked(*args, **kwargs):
        call = _call(f, args, kwargs)
        traced = trace_call(call, [aval_of(x) for x in call.inputs()], call.inputs())
        new, captured, faults = checkify_jaxpr(traced.jaxpr, wanted)
        values = [*captured, *traced.captured, *call.inputs()]
        if current_frame() is None:
            outs = run_program(new, values)
        else:
            outs = [as_traced(x) for x in eval_jaxpr(new, values)]
        n = len(outs) - len(traced.jaxpr.outs)
        error = Error(outs[0], tuple(outs[1:n]), faults) if n else Error()
        return error, traced.rebuild(outs[n:])

    checked.__name__ = f"checkify_{function_name(f)}"
    return user_facing(checked)


def _call(f: Callable, args: tuple, kwargs: dict) -> Call:
    """The call with all its arrays and numbers traced, ints and bools too."""
    leaves, treedef = tree.flatten((args, kwargs))
    traced = [is_array_like(x) for x in leaves]
    exact = iter(with_exact_scalars([as_value(x) for x, t in zip(leaves, traced, strict=True) if t]))
    return Call(f, [next(exact) if t else x for x, t in zip(leaves, traced, strict=True)], treedef, traced, "checkify")


@user_facing
def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Fails with `msg.format(*fmt_args, **fmt_kwargs)` if the scalar `pred` is false; the arguments of the format are arrays.

    Inside `checkify` it becomes the `Error`. Outside of a trace it raises `FailedCheckError` at once; compiled without
    `checkify` it is an error, or nothing if `debug`.

    >>> from funcml.experimental import checkify
    >>> checkify.check(1 > 2, "never")
    Traceback (most recent call last):
    funcml.control_flow.checks.FailedCheckError: never
    """
    who = "debug_check" if debug else "check"
    if not is_array_like(pred) or aval_of(pred).shape != () or aval_of(pred).dtype != dtypes.bool_:
        raise TypeError(f"{who} takes a scalar pred as argument, got {pred}")
    leaves, treedef = tree.flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not is_array_like(x):
            raise TypeError(f"Formatting arguments to checkify.{who} need to be arrays, got {x!r} of type {type(x).__name__}")
    leaves = [as_value(x) for x in leaves]
    fault = Fault(FailedCheckError, msg, treedef if leaves else tree.flatten(((), {}))[1])
    if current_frame() is not None:
        bind_check(debug_check_p if debug else check_p, not_(pred), fault, leaves)
    elif not debug and not bool(pred):
        raise FailedCheckError(fault.message([np.asarray(x) for x in leaves]))


@user_facing
def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check` that does nothing where no `checkify` is around it.

    >>> import funcml
    >>> from funcml.experimental import checkify
    >>> def f(x):
    ...     checkify.debug_check(x > 0, "not positive")
    ...     return x
    >>> float(funcml.jit(f)(-1.0))
    -1.0
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@user_facing
def check_error(error: Error) -> None:
    """Raises `error`, if it holds one; inside a trace its checks become checks of the function that is traced.

    >>> from funcml.experimental import checkify
    >>> err, y = checkify.checkify(lambda x: 1.0 / x, errors=checkify.div_checks)(2.0)
    >>> checkify.check_error(err)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got {error!r} of type {type(error).__name__}")
    if current_frame() is None or not isinstance(error._code, Tracer):
        error.throw()
        return
    payloads = iter(error._payloads)
    for k, fault in enumerate(error._faults):
        bind_check(check_p, eq(error._code, np.int32(k)), fault, [next(payloads) for _ in fault.avals])
