"""`jit`: a function fixed as one program per type of its arguments, compiled once and called at the speed of its dispatch.

    jit(f)(*args)               flatten, look up by (treedef, avals, static values), run, rebuild
    jit(f).trace(*args)         Traced: the jaxpr
    jit(f).lower(*args)         Lowered: the StableHLO text
    jit(f).lower(*args).compile()   Compiled: an executable to call and to ask

Inside another trace a jitted function is recorded as one `call` equation.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from funcml import tree
from funcml.arguments import (
    Call,
    argument_name,
    as_traced,
    as_value,
    describe_value,
    function_name,
    is_array_like,
    trace_call,
    with_exact_scalars,
)
from funcml.core import tracing
from funcml.core.avals import ShapedArray
from funcml.core.config import config
from funcml.core.errors import hide_internal_frames
from funcml.core.ir import Jaxpr, clear_interned, intern
from funcml.core.named_axes import axes_in_scope
from funcml.core.source import scoped
from funcml.core.tracing import Tracer, aval_of, eval_jaxpr
from funcml.lowering import pjrt
from funcml.lowering.array import DeviceArray
from funcml.lowering.execute import Program, check_results, forget_programs, lowered, placed, when_scarce, wrap_all
from funcml.lowering.nonfinite import looks_for_nonfinite
from funcml.shape_dtype import ShapeDtypeStruct
from funcml.transforms.call import call

__all__ = ["Compiled", "JitFunction", "Lowered", "TracedFunction", "clear_caches", "jit"]


class _Entry:
    """A call made ready: its program, the values it closes over, and how to rebuild its result.

    `direct` says that nothing stands between the buffers of the arguments and those of the results.
    """

    __slots__ = ("program", "computed", "captured", "traced", "unflatten", "plain", "unchecked_donation", "direct")

    def __init__(self, program: Program, captured, traced, donated: bool):
        self.program = program
        self.computed = program.computed
        self.captured = captured
        self.traced = traced
        self.plain = len(traced.jaxpr.outs) == len(traced.opaque)
        self.unflatten = traced.out_treedef.unflatten
        self.unchecked_donation = donated
        self.direct = not donated and self.is_direct()

    def is_direct(self) -> bool:
        """What `direct` is, once donation was checked."""
        return self.plain and not self.captured and not self.program.indirect and not looks_for_nonfinite()


_NO_CALL = (None, None, None, None)
_alive: weakref.WeakSet = weakref.WeakSet()


class JitFunction:
    """A function compiled by `jit`: its marks, its programs, and the stages `.trace`, `.lower`, `.eval_shape`, `.clear_cache`.

    What `jit` returns is the function that `dispatcher` makes of it: one Python frame between the caller and the executable.
    """

    def __init__(self, function, static_argnums, static_argnames, donate_argnums, donate_argnames, inline):
        self.name = function_name(function)
        self._function = function
        self._static = _Marked(function, static_argnums, static_argnames, "static")
        self._donated = _Marked(function, donate_argnums, donate_argnames, "donate")
        self._inline = inline
        self._entries: dict = {}
        self._programs: dict = {}
        self._latest: list[tuple] = [_NO_CALL]
        _alive.add(self)

    def dispatcher(self) -> Callable:
        """The function to call.

        An entry is found by (treedef, flags, avals); the treedef is None for arrays by position. Comparing with the
        latest call is quicker than hashing.
        """
        thread, find, careful, run, latest = tracing._state, self._entries.get, self._careful_call, self._run, self._latest

        def call(*args, **kwargs):
            if thread.frames:
                return careful(args, kwargs)
            leaves, treedef, nested = args, None, kwargs
            for x in args:
                if type(x) is not DeviceArray:
                    nested = True
                    break
            entry = None
            try:
                if nested:
                    leaves, treedef = tree.flatten_leaves((args, kwargs))
                avals, buffers = [], []
                for x in leaves:
                    if type(x) is not DeviceArray:
                        break
                    avals.append(x.aval)
                    buffers.append(x._buffer)
                else:
                    flags = config._trace_key
                    entry, seen_avals, seen_treedef, seen_flags = latest[0]
                    if avals != seen_avals or flags is not seen_flags or treedef != seen_treedef:
                        entry = find((treedef, flags, *avals))
                        if entry is not None:
                            latest[0] = (entry, avals, treedef, flags)
            except (ValueError, TypeError):
                entry = None
            if entry is None:  # also under `disable_jit`, which the flags hold, and with static arguments
                return careful(args, kwargs)
            if not entry.direct:
                return run(entry, leaves)
            try:
                outs = entry.program._run(buffers)
            except Exception as error:
                hide_internal_frames(error)
                raise
            return entry.unflatten(wrap_all(outs, entry.computed))

        functools.update_wrapper(call, self._function, updated=())
        for stage in ("trace", "lower", "eval_shape", "clear_cache"):
            setattr(call, stage, getattr(self, stage))
        return call

    # -- the careful way: static arguments, values to convert, first calls, calls inside a trace

    def _careful_call(self, args, kwargs):
        try:
            if config.disable_jit:
                return self._function(*args, **kwargs)
            flat = self._flatten(args, kwargs)
            if tracing._state.frames:
                return self._traced_call(flat)
            return self._eager_call(flat)
        except Exception as error:
            hide_internal_frames(error)
            raise

    def _flatten(self, args, kwargs, abstract: bool = False) -> tuple[Call, tuple]:
        """The call with its static arguments taken out, and what of it decides on the program."""
        function, static_key = self._function, ()
        if self._static.any:
            function, args, kwargs, static_key = self._static.split(args, kwargs)
        leaves, treedef = tree.flatten((args, kwargs))
        call_ = Call(function, leaves, treedef, [True] * len(leaves), "jit")
        for i, x in enumerate(leaves):
            if abstract and isinstance(x, ShapeDtypeStruct):
                continue
            if not is_array_like(x):
                raise TypeError(
                    f"jit of {self.name}: argument {argument_name(call_, i)} is {x!r} of type {type(x).__name__}, not an "
                    "array. Mark the argument static (`static_argnames=`), close over it, or leave it out."
                )
            leaves[i] = as_value(x)
        call_ = call_._replace(leaves=with_exact_scalars(leaves))
        leaves = call_.leaves
        tree.check_hashable(treedef, f"jit of {self.name}: the structure of its arguments")
        avals = tuple([aval_of(x) for x in leaves])
        return call_, (treedef, config.trace_key(), *avals, *static_key)

    def _trace(self, call_: Call, key, interned: bool = True):
        """The program of a call, from memory if it closes over no tracer; interned where it is to be run or called."""
        found = self._programs.get(key)
        if found is None:
            with scoped(None):  # the program may be called from elsewhere
                found = trace_call(call_, [aval_of(x) for x in call_.leaves], interned=interned)
            self._check_outputs(found)
        elif not interned or found.jaxpr.canonical:
            return found
        else:
            found = found._replace(jaxpr=intern(found.jaxpr))
        if not any(type(x) is Tracer for x in found.captured):
            self._programs[key] = found
        return found

    def _check_outputs(self, traced) -> None:
        """Raises if the function returned something that is no array: it would be what the first call returned, for ever."""
        if len(traced.opaque) == len(traced.jaxpr.outs):
            return
        result = traced.rebuild(traced.jaxpr.out_avals)
        for path, x in tree.leaves_with_path(result):
            if not isinstance(x, ShapedArray):
                raise TypeError(
                    f"jit of {self.name}: it returned {x!r} of type {type(x).__name__} at {tree.keystr(path) or 'its root'}, "
                    "not an array; return it from a function around this one"
                )

    def _traced_call(self, flat):
        call_, key = flat
        traced = self._trace(call_, (*key, *axes_in_scope()))
        operands = [*traced.captured, *call_.leaves]
        if self._inline:
            outs = [as_traced(x) for x in eval_jaxpr(traced.jaxpr, operands)]
        else:
            outs = call(traced.jaxpr, operands, self.name)
        return traced.rebuild(outs)

    def _eager_call(self, flat):
        call_, key = flat
        arrays, device = placed(call_.leaves)
        many = len(pjrt.local_devices()) > 1
        entry = self._entries.get((*key, device) if many else key)
        if entry is None:
            entry = self._make_entry(self._trace(call_, key), call_, device)
            entry.program.compile()
            self._entries[(*key, device) if many else key] = entry
            if not many and self._by_position(call_):
                self._entries[(None, *key[1:])] = entry
        return self._run(entry, arrays)

    def _by_position(self, call_: Call) -> bool:
        """Whether the arguments are leaves given by position, so that their avals alone select the program."""
        args, kwargs = tree.unflatten(call_.treedef, call_.leaves)
        return not kwargs and not self._static.any and len(args) == len(call_.leaves) and all(map(is_array_like, args))

    def _make_entry(self, traced, call_: Call, device) -> _Entry:
        donated = self._donated.flags(call_)
        captured = placed(traced.captured)[0] if traced.captured else []
        if any(donated):
            flags = [False] * len(captured) + donated
            program = Program(traced.jaxpr, device, self.name, flags)
        else:
            program = lowered(traced.jaxpr, device, self.name)
        return _Entry(program, captured, traced, any(donated))

    def _run(self, entry: _Entry, arrays):
        outs = entry.program.run([*entry.captured, *arrays] if entry.captured else arrays)
        if looks_for_nonfinite():
            check_results(f"jit of {self.name}", entry.traced.jaxpr, [*entry.captured, *arrays], outs, entry.program.device)
        if entry.unchecked_donation:
            entry.unchecked_donation = False
            entry.direct = entry.is_direct()
            self._warn_unused_donation(entry, arrays)
        return entry.unflatten(outs) if entry.plain else entry.traced.rebuild(outs)

    def _warn_unused_donation(self, entry, arrays) -> None:
        program = entry.program
        n = len(entry.captured)
        given = [arrays[i - n] for i, d in zip(program.kept, program.donated, strict=True) if d]
        unused = [str(a.aval) for a in given if not a.is_deleted()]
        if unused:
            warnings.warn(
                f"jit of {self.name}: some donated arguments could not be reused: {', '.join(unused)}. No output has "
                "their shape and dtype; they stay alive.",
                stacklevel=4,
            )

    # -- stages

    def trace(self, *args, **kwargs) -> TracedFunction:
        """The program for arguments of these types (arrays or `ShapeDtypeStruct`s), without compiling it."""
        call_, key = self._flatten(args, kwargs, abstract=True)
        return TracedFunction(self, call_, key, self._trace(call_, key, interned=False))

    def lower(self, *args, **kwargs) -> Lowered:
        """The StableHLO module for arguments of these types."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args, **kwargs):
        """The shapes and dtypes of the result, without computing it."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forgets every program and executable of this function."""
        for traced in self._programs.values():
            traced.jaxpr.memo.clear()
        self._entries.clear()
        self._programs.clear()
        self._latest[0] = _NO_CALL


class TracedFunction:
    """A function traced for given types: `.jaxpr`, `.out_info`, `.lower()`."""

    def __init__(self, jitted: JitFunction, call_: Call, key, traced):
        self._jitted, self._call, self._key, self._traced = jitted, call_, key, traced

    @property
    def jaxpr(self) -> Jaxpr:
        """The program; its leading inputs are the values that the function closes over."""
        return self._traced.jaxpr

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._jitted.name

    @property
    def out_info(self):
        """The result with a `ShapeDtypeStruct` for each array."""
        return self._traced.rebuild(
            [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in self.jaxpr.out_avals]
        )

    def lower(self) -> Lowered:
        """The StableHLO module."""
        return Lowered(self)


class Lowered:
    """A function lowered for given types: `.as_text()`, `.compile()`, `.out_info`."""

    def __init__(self, traced: TracedFunction):
        self._traced = traced
        self._entry = traced._jitted._make_entry(traced._traced, traced._call, pjrt.default_device())

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The StableHLO module as text; the names of `named_scope` are in it with or without `debug_info`."""
        if dialect not in (None, "stablehlo"):
            raise ValueError(f"as_text: the only dialect before compilation is 'stablehlo', got {dialect!r}")
        return self._entry.program.text

    @property
    def out_info(self):
        """The result with a `ShapeDtypeStruct` for each array."""
        return self._traced.out_info

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run: flops, bytes accessed and more."""
        return self.compile().cost_analysis()

    def compile(self) -> Compiled:
        """The executable."""
        self._entry.program.compile()
        return Compiled(self._traced, self._entry)


class Compiled:
    """A compiled function: call it with arguments of the types it was lowered for."""

    def __init__(self, traced: TracedFunction, entry: _Entry):
        self._traced, self._entry = traced, entry

    def __call__(self, *args, **kwargs):
        jitted = self._traced._jitted
        call_, key = jitted._flatten(args, kwargs)
        if key != self._traced._key:
            given = ", ".join(describe_value(x) for x in call_.leaves)
            made = ", ".join(str(aval_of(x)) for x in self._traced._call.leaves)
            raise TypeError(f"compiled {jitted.name} was lowered for ({made}), but called with ({given})")
        return jitted._run(self._entry, placed(call_.leaves)[0])

    def as_text(self) -> str:
        """The optimised HLO."""
        executable = self._entry.program.executable
        return executable.hlo_text() if executable else ""

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run: flops, bytes accessed and more."""
        executable = self._entry.program.executable
        return executable.cost_analysis() if executable else {}

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, temporaries and reused memory."""
        executable = self._entry.program.executable
        return executable.memory_analysis() if executable else {}

    @property
    def out_info(self):
        """The result with a `ShapeDtypeStruct` for each array."""
        return self._traced.out_info


class _Marked:
    """Arguments marked by number or name (`static_...`, `donate_...`), resolved on the function's signature."""

    def __init__(self, function: Callable, argnums, argnames, what: str):
        self.what = what
        self.function = function
        self.name = function_name(function)
        numbers = _as_tuple(argnums, int, f"{what}_argnums")
        names = _as_tuple(argnames, str, f"{what}_argnames")
        self.any = bool(numbers or names)
        self.numbers, self.names = set(numbers), set(names)
        if not self.any:
            return
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            if names:
                raise ValueError(
                    f"jit of {self.name}: its signature is not known, so {what}_argnames cannot be found; "
                    f"pass {what}_argnums instead"
                ) from None
            return
        self._check(parameters)
        by_position = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        n = len(by_position)
        self.numbers = {i if i >= 0 else n + i for i in self.numbers}
        self.names |= {by_position[i] for i in self.numbers if i < n}
        self.numbers |= {i for i, name in enumerate(by_position) if name in self.names}

    def _check(self, parameters) -> None:
        names = [p.name for p in parameters]
        variadic = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        unnamed = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
        for name in self.names:
            if name in unnamed:
                raise ValueError(
                    f"jit of {self.name}: {self.what}_argnames names {name!r}, which cannot be passed by name; "
                    f"use {self.what}_argnums"
                )
            if name not in names and not variadic:
                raise ValueError(f"jit of {self.name}: {self.what}_argnames names {name!r}, but its parameters are {names}")
        for i in self.numbers:
            if not -len(names) <= i < len(names) and not variadic:
                raise ValueError(
                    f"jit of {self.name}: {self.what}_argnums names argument {i}, but it has {len(names)} parameters"
                )

    def split(self, args: tuple, kwargs: dict):
        """The function with its static arguments filled in, the other arguments, and a key of the static values."""
        numbers = {i if i >= 0 else len(args) + i for i in self.numbers}
        static_args = {i: args[i] for i in numbers if i < len(args)}
        static_kwargs = {k: v for k, v in kwargs.items() if k in self.names}
        for label, value in [*static_args.items(), *static_kwargs.items()]:
            self._check_hashable(label, value)
        dynamic = tuple([a for i, a in enumerate(args) if i not in static_args])
        rest = {k: v for k, v in kwargs.items() if k not in static_kwargs}
        key = (
            tuple([(i, type(v), v) for i, v in sorted(static_args.items())]),
            tuple([(k, type(v), v) for k, v in sorted(static_kwargs.items())]),
        )
        return _fill(self.function, static_args, static_kwargs), dynamic, rest, key

    def _check_hashable(self, label, value) -> None:
        name = label if isinstance(label, str) else f"argument {label}"
        if isinstance(label, int):
            name = next((f"{n!r}" for i, n in enumerate(self._names_by_position()) if i == label), name)
        if type(value).__hash__ is not None and not isinstance(value, Tracer):
            try:
                hash(value)
                return
            except TypeError:
                pass
        raise ValueError(
            f"jit of {self.name}: unhashable static argument {name}: {value!r} of type {type(value).__name__}. Static "
            "arguments are part of the key of the compiled program; pass a tuple or another hashable value, or do not mark it."
        )

    def _names_by_position(self) -> list[str]:
        try:
            return list(inspect.signature(self.function).parameters)
        except (TypeError, ValueError):
            return []

    def flags(self, call_: Call) -> list[bool]:
        """For each leaf of the call: whether its argument is marked."""
        if not self.any:
            return [False] * len(call_.leaves)
        args, kwargs = tree.unflatten(call_.treedef, call_.leaves)
        flags: list[bool] = []
        for i, a in enumerate(args):
            flags += [i in self.numbers] * len(tree.leaves(a))
        for k in sorted(kwargs):
            flags += [k in self.names] * len(tree.leaves(kwargs[k]))
        return flags


def _fill(function: Callable, static_args: dict, static_kwargs: dict) -> Callable:
    if not static_args and not static_kwargs:
        return function

    @functools.wraps(function)
    def filled(*dynamic, **kwargs):
        rest = iter(dynamic)
        total = len(dynamic) + len(static_args)
        args = [static_args[i] if i in static_args else next(rest) for i in range(total)]
        return function(*args, **kwargs, **static_kwargs)

    return filled


def clear_caches() -> None:
    """Forgets every program and executable in memory, of `jit` and of eager calls; those on disk stay."""
    for jitted in list(_alive):
        jitted.clear_cache()
    clear_interned()
    forget_programs()


when_scarce.append(clear_caches)

def _as_tuple(value, kind: type, what: str) -> tuple:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence | set | frozenset):
        value = (value,)
    for v in value:
        if not isinstance(v, kind) and not (kind is int and hasattr(v, "__index__")):
            raise TypeError(f"jit: {what} takes {kind.__name__}s, got {v!r}")
    return tuple(value)


def jit(
    fun: Callable | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    inline: bool = False,
    keep_unused: bool = False,
) -> Any:
    """Compiles `fun`: its first call for each type of arguments records and compiles it, later ones only run it.

    `static_argnums` and `static_argnames` mark arguments whose values select the program (hashable; not arrays).
    `donate_argnums` and `donate_argnames` mark arguments whose memory the results may take; they cannot be used again.
    `inline=True` records the function's equations, not a call, inside another trace. `keep_unused` is accepted for
    compatibility: arguments that nothing uses are never passed to the device.
    Usable as `@jit`, as `@jit(static_argnames="n")` and as a call.

    >>> import funcml, funcml.numpy as jnp
    >>> @funcml.jit
    ... def f(x):
    ...     return jnp.sin(x) ** 2
    >>> float(f(0.0))
    0.0
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            inline=inline,
            keep_unused=keep_unused,
        )
    if not callable(fun):
        raise TypeError(f"jit expects a function, got {fun!r} of type {type(fun).__name__}")
    return JitFunction(fun, static_argnums, static_argnames, donate_argnums, donate_argnames, inline).dispatcher()
