"""`from_jax`: a function written for JAX, on values of funcml.

    from_jax(f)(*args) : record f with JAX, translate its program, run it           (later calls: look up, run)

Outside a trace a call is one compiled program, found by the structure and the types of the arguments; inside a trace its
equations are recorded, so that `jit`, `grad` and `vmap` see them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from funcml import tree
from funcml.arguments import as_value, evaluate, function_name, is_array_like
from funcml.core import tracing
from funcml.core.config import config
from funcml.core.errors import hide_internal_frames
from funcml.core.tracing import Tracer, aval_of
from funcml.interop import control_flow, matrices, windows  # noqa: F401  (their rules stand in the table)
from funcml.interop.jaxprs import is_64_bit, record
from funcml.interop.programs import program_of
from funcml.lowering import pjrt
from funcml.lowering.array import DeviceArray
from funcml.lowering.execute import compiled, placed
from funcml.transforms.custom_rules import Constant

__all__ = ["JaxFunction", "from_jax"]

_NUMBERS = (float, int, bool, complex)


class _Bridge:
    """A translated call: its program, the values it closes over, and how to rebuild its result."""

    __slots__ = ("jaxpr", "captured", "treedef", "opaque", "program", "direct", "kept")

    def __init__(self, jaxpr, captured, treedef, opaque):
        self.jaxpr = jaxpr
        self.captured = captured
        self.treedef = treedef
        self.opaque = opaque
        self.program = None
        self.direct = False
        self.kept = None

    def compile(self, device, name: str) -> None:
        """Compiles the program; `direct` says whether what it computes are the results of the call, one for one."""
        self.program = program = compiled(self.jaxpr, device, name)
        computed = [("output", i) for i in range(len(self.opaque))]
        self.direct = not self.captured and bool(computed) and program.plan == computed
        self.kept = program.kept if len(program.kept) != len(self.jaxpr.invars) else None

    def rebuild(self, outs) -> Any:
        """The result, with these values for its arrays."""
        rest = iter(outs)
        return self.treedef.unflatten([next(rest) if x is _ARRAY else x for x in self.opaque])


_ARRAY = object()


class JaxFunction:
    """A function of JAX that takes and gives arrays of funcml; see `from_jax`.

    `numbers` are the types of Python numbers that become arrays; others select the program by their value.
    """

    def __init__(self, function: Callable, numbers: tuple[type, ...] = (float, complex)):
        functools.update_wrapper(self, function, updated=())
        self.__wrapped__ = function
        self.name = function_name(function)
        self._function = function
        self._numbers = numbers
        self._bridges: dict = {}

    def __repr__(self) -> str:
        return f"<from_jax of {self.name}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        found = None
        if not tracing._state.frames:
            try:
                leaves, treedef = tree.flatten_leaves((args, kwargs))
                found = self._bridges.get((treedef, config.trace_key(), *[x.aval for x in leaves]))
                if found is not None and found.kept is not None:
                    leaves = [leaves[i] for i in found.kept]
                buffers = [x._buffer for x in leaves]
            except (AttributeError, ValueError, TypeError):
                found = None
        if found is None or not found.direct:
            return self._careful_call(args, kwargs)
        program = found.program
        try:
            outs = program._run(buffers)
        except Exception as error:
            hide_internal_frames(error)
            raise
        return found.treedef.unflatten([DeviceArray(b, a) for b, a in zip(outs, program.computed)])  # noqa: B905

    def _careful_call(self, args, kwargs):
        try:
            return self._translated_call(*tree.flatten((args, kwargs)))
        except Exception as error:
            hide_internal_frames(error)
            raise

    def _translated_call(self, leaves: list, treedef):
        tree.check_hashable(treedef, f"from_jax of {self.name}: the structure of its arguments")
        traced = [self._is_traced(x) for x in leaves]
        leaves = [as_value(x) if t else x for x, t in zip(leaves, traced, strict=True)]
        values = [x for x, t in zip(leaves, traced, strict=True) if t]
        key = (
            treedef,
            config.trace_key(),
            *[aval_of(x) if t else _static_key(x) for x, t in zip(leaves, traced, strict=True)],
        )
        if tracing._state.frames:
            bridge = self._bridge(key, leaves, treedef, traced)
            return bridge.rebuild(evaluate(bridge.jaxpr, [*bridge.captured, *values]))
        arrays, device = placed(values)
        key = (*key, device) if len(pjrt.local_devices()) > 1 else key
        bridge = self._bridge(key, leaves, treedef, traced)
        if bridge.program is None or bridge.program.device is not device:
            bridge.compile(device, self.name)
        captured = placed(bridge.captured)[0] if bridge.captured else []
        return bridge.rebuild(bridge.program.run([*captured, *arrays]))

    def _is_traced(self, x) -> bool:
        return type(x) in self._numbers if type(x) in _NUMBERS else is_array_like(x)

    def _bridge(self, key, leaves, treedef, traced) -> _Bridge:
        found = self._bridges.get(key)
        if found is None:
            found = self._translate(leaves, treedef, traced)
            if not any(type(x) is Tracer for x in found.captured):
                self._bridges[key] = found
        return found

    def _check_result(self, result) -> None:
        """Called with what the function gives on tracers of JAX; a subclass may refuse it."""

    def _translate(self, leaves, treedef, traced) -> _Bridge:
        """Records the function with JAX and translates its program."""
        avals = [aval_of(x) for x, t in zip(leaves, traced, strict=True) if t]
        result: list = []

        def flat(*tracers):
            rest = iter(tracers)
            args, kwargs = tree.unflatten(
                treedef, [next(rest) if t else x for x, t in zip(leaves, traced, strict=True)]
            )
            made = self._function(*args, **kwargs)
            self._check_result(made)
            outs, out_treedef = tree.flatten(made)
            arrays = [is_array_like(x) and type(x) not in _NUMBERS for x in outs]
            result[:] = [out_treedef, [_ARRAY if a else x for x, a in zip(outs, arrays, strict=True)]]
            return [x for x, a in zip(outs, arrays, strict=True) if a]

        x64 = config.enable_x64 or any(map(is_64_bit, avals))
        jaxpr, captured = program_of(*record(flat, avals, x64), avals, f"from_jax of {self.name}")
        return _Bridge(jaxpr, captured, *result)


def _static_key(x):
    """What of a leaf that is no array decides on the program."""
    return (float, x.hex()) if type(x) is float else Constant(x)


def from_jax(function: Callable, *, numbers: tuple[type, ...] = (float, complex)) -> JaxFunction:
    """`function`, written for JAX, as a function of funcml arrays: to call, and to transform with `jit`, `grad`, `vmap`.

    Arguments are trees; arrays, NumPy values and Python numbers of the types `numbers` are traced, other leaves (ints, strings,
    functions, ...) stay what they are and select the program. The result has the tree that `function` gives, with funcml arrays.
    64-bit inputs are not narrowed. Raises `UntranslatedPrimitiveError` for an operation of JAX that has no counterpart.

    >>> import jax, numpy as np
    >>> from_jax(jax.nn.relu)(np.float32([-1, 2]))
    Array([0., 2.], dtype=float32)
    """
    return JaxFunction(function, numbers)
