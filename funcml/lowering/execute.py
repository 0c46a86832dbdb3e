"""Running programs: executables kept in memory on the program itself, on disk, or compiled.

    run_program   : (jaxpr, values) -> arrays          the whole program at once
    run_primitive : (primitive, operands, params)      a program of one equation
    fused         : function -> function               called on arrays, runs as one program; traced, is inlined

A function whose program differs at every call would compile at every call. Each origin (the function that was traced)
has a small number of misses without a hit; past it, its programs are evaluated equation by equation.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcml import tree
from funcml.core import tracing
from funcml.core.avals import ShapedArray
from funcml.core.config import config
from funcml.core.errors import user_facing
from funcml.core.ir import Eqn, Jaxpr, Literal, Primitive, Var, intern
from funcml.core.source import here
from funcml.core.tracing import eval_jaxpr, no_frames, trace
from funcml.core.values import Array
from funcml.dtypes import float0
from funcml.lowering import disk_cache, pjrt, rules  # noqa: F401  (rules registers every lowering)
from funcml.lowering.array import DeviceArray, asarray, scalar
from funcml.lowering.emit import to_module
from funcml.lowering.nonfinite import looks_for_nonfinite, refuse_nonfinite
from funcml.transforms.simplify import dce

__all__ = [
    "Program",
    "by_type",
    "check_results",
    "compiled",
    "forget_programs",
    "fused",
    "lowered",
    "run_primitive",
    "run_program",
    "unary_by_type",
    "when_scarce",
    "wrap_all",
]


class Program:
    """A jaxpr lowered for one device; once `.compile()` was called, `.run` takes a list of DeviceArrays, one for each input.

    Inputs that nothing uses are not passed; outputs that are inputs, literals or repeated are not computed.
    """

    __slots__ = (
        "device", "text", "callbacks", "executable", "kept", "donated", "plan", "computed", "indirect", "single", "idle", "_run",
    )  # fmt: skip

    def __init__(self, jaxpr: Jaxpr, device, name: str = "main", donated: Sequence[bool] = ()):
        jaxpr = dce(jaxpr)
        self.device = device
        used = {a for eqn in jaxpr.eqns for a in eqn.invars if type(a) is Var}
        self.kept = [i for i, v in enumerate(jaxpr.invars) if v in used]
        computed: dict[Var, int] = {}
        self.plan: list[tuple[str, object]] = []
        position = {v: i for i, v in enumerate(jaxpr.invars)}
        for atom in jaxpr.outs:
            if type(atom) is Literal:
                self.plan.append(("constant", atom))
            elif atom in position:
                self.plan.append(("input", position[atom]))
            else:
                self.plan.append(("output", computed.setdefault(atom, len(computed))))
        self.computed = [v.aval for v in computed]
        self.indirect = len(self.kept) != len(jaxpr.invars) or [k for k, _ in self.plan] != ["output"] * len(computed)
        self.single = not self.indirect and len(computed) == 1
        self.donated = tuple([bool(donated) and donated[i] for i in self.kept])
        self.idle = not jaxpr.eqns
        core = Jaxpr([jaxpr.invars[i] for i in self.kept], jaxpr.eqns, list(computed))
        self.text, self.callbacks = to_module(core, name, self.donated, device.platform)
        self.executable: pjrt.Executable | None = None
        self._run = _run_nothing

    def compile(self) -> Program:
        """Loads the executable from disk or compiles it, unless that is done; gives the program itself."""
        if self.executable is None and not self.idle:
            with _compile_lock:
                if self.executable is None:
                    _shed_if_scarce()
                    pjrt.ensure_kernels(self.text)
                    types = [(a.shape, _stored(a.dtype)) for a in self.computed]
                    raised: list[BaseException] = []
                    callbacks = [_stashing(f, raised) for f in self.callbacks]
                    self.executable = disk_cache.load_or_compile(self.text, types, self.device, callbacks=callbacks)
                    self._run = pjrt.calling_host(self.executable, raised) if callbacks else self.executable.run
        return self

    def run(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The outputs for these inputs, all on the device of the program."""
        if not self.indirect:
            return wrap_all(self._run([a._buffer for a in arrays]), self.computed)
        outs = wrap_all(self._run([arrays[i]._buffer for i in self.kept]), self.computed)
        return [self._output(kind, value, arrays, outs) for kind, value in self.plan]

    def run_single(self, arrays: Sequence[DeviceArray]) -> DeviceArray:
        """The output of a `single` program: it has one, and uses all of its inputs."""
        array = _new_array(DeviceArray)
        (array._buffer,) = self._run([a._buffer for a in arrays])
        (array.aval,) = self.computed
        return array

    def _output(self, kind, value, arrays, outs):
        if kind == "output":
            return outs[value]
        if kind == "input":
            return arrays[value]
        return DeviceArray(asarray(np.asarray(value.value, value.aval.dtype), device=self.device)._buffer, value.aval)


_compilations = itertools.count(1)
_MAP_PRESSURE = 0.6
#: what gives executables back when the process has few memory maps left
when_scarce: list[Callable[[], None]] = []


def _shed_if_scarce() -> None:
    """Once in 32 compilations: forgets programs, before executables take the last memory maps. They are found again on disk."""
    if next(_compilations) % 32 == 0 and pjrt.map_pressure() > _MAP_PRESSURE:
        for forget in when_scarce:
            forget()


def _stashing(function: Callable, raised: list[BaseException]) -> Callable:
    """`function`, which puts what it raises into a list: XLA would make text of it."""

    def call(*arrays):
        try:
            return function(*arrays)
        except BaseException as error:
            raised.append(error)
            raise

    return call


_new_array = DeviceArray.__new__


def wrap_all(buffers, avals) -> list[DeviceArray]:
    """Arrays of these buffers. Calling the constructor would be the larger part of what a small run costs in Python."""
    arrays = []
    for buffer, aval in zip(buffers, avals):  # noqa: B905
        array = _new_array(DeviceArray)
        array._buffer = buffer
        array.aval = aval
        arrays.append(array)
    return arrays


def _run_nothing(buffers):
    return []


def _stored(dtype):
    """The dtype of the buffer that holds elements of `dtype`: each key is one number of its size."""
    return dtype.stored if getattr(dtype, "kind", "") == "K" else dtype


_compile_lock = threading.RLock()


def lowered(jaxpr: Jaxpr, device=None, name: str = "main") -> Program:
    """The program of an interned jaxpr on a device, made at most once; not compiled."""
    device = device or pjrt.default_device()
    key = (Program, device)
    program = jaxpr.memo.get(key)
    if program is None:
        with _compile_lock:
            program = jaxpr.memo.get(key)
            if program is None:
                program = jaxpr.memo[key] = Program(jaxpr, device, name)
    return program


def compiled(jaxpr: Jaxpr, device=None, name: str = "main") -> Program:
    """The program of an interned jaxpr on a device, compiled at most once."""
    return lowered(jaxpr, device, name).compile()


@functools.cache
def _device_count() -> int:
    return len(pjrt.local_devices())


def placed(values: Sequence) -> tuple[list[DeviceArray], object]:
    """The values as arrays on one device, and that device: the one that is not the default, if some are elsewhere.

    Arrays of float0, which no device holds and nothing computes with, stay as they are.
    """
    arrays = [x if type(x) is DeviceArray or _is_float0(x) else asarray(x) for x in values]
    default = pjrt.default_device()
    if _device_count() == 1:
        return arrays, default
    homes = [pjrt.buffer_device(a._buffer) if type(a) is DeviceArray else None for a in arrays]
    others = {d for d in homes if d is not None and d != default}
    if not others:
        return arrays, default
    if len(others) > 1:
        raise ValueError(f"arrays on different devices: {sorted(map(str, others))}; move them with `device_put(x, device)`")
    (device,) = others
    moved = [
        a if home in (device, None) else DeviceArray(pjrt.copy_buffer(a._buffer, device), a.aval)
        for a, home in zip(arrays, homes, strict=True)
    ]
    return moved, device


def _is_float0(x) -> bool:
    return getattr(x, "dtype", None) == float0


_CACHE_LIMIT = 4096


def _make_room(cache: dict) -> None:
    """Empties a cache that is full; what it held is made again, or found on disk."""
    if len(cache) >= _CACHE_LIMIT:
        cache.clear()


# ---- whole programs ----------------------------------------------------------------------------------------------


class _Origin:
    """How often the programs of one function were new since one was last seen again."""

    __slots__ = ("misses",)

    def __init__(self):
        self.misses = 0


_origins: dict = {}


def run_program(jaxpr: Jaxpr, values: Sequence, origin=None) -> list[DeviceArray]:
    """Runs a program on values: arrays, NumPy arrays or scalars, one for each input.

    `origin` (hashable) says where the program came from: one whose programs are always new is evaluated equation by equation.
    """
    arrays, device = placed(values)
    jaxpr = intern(jaxpr)
    program = jaxpr.memo.get((Program, device))
    if origin is not None:
        record = _origins.get(origin)
        if record is None:
            _make_room(_origins)
            record = _origins[origin] = _Origin()
        if program is not None:
            record.misses = 0
        else:
            record.misses += 1
            if record.misses > config.eager_miss_limit:
                with no_frames():
                    return [asarray(_plain(x)) for x in eval_jaxpr(jaxpr, arrays)]
    outs = compiled(jaxpr, device).run(arrays)
    if looks_for_nonfinite():
        check_results("a program", jaxpr, arrays, outs, device)
    return outs


def check_results(who: str, jaxpr: Jaxpr, arrays: Sequence, outs: Sequence, device=None) -> None:
    """FloatingPointError if a result of a program that has run holds a NaN or an infinity, where that is asked for."""
    refuse_nonfinite(who, jaxpr, arrays, outs, lambda program, values: compiled(program, device).run(values))


def _plain(x):
    return np.asarray(x.value, x.aval.dtype) if type(x) is Literal else x


# ---- one primitive -----------------------------------------------------------------------------------------------

_one_equation: dict[tuple, Program] = {}


def run_primitive(primitive: Primitive, operands: Sequence, params: dict):
    """Applies a primitive to values, as a compiled program of one equation."""
    key: list = [primitive]
    buffers: list = []
    for x in operands:
        if type(x) is not DeviceArray:
            x = _operand(x)
        key.append(x.aval)
        buffers.append(x._buffer)
    if params:
        key.extend(params.items())
    program = _one_equation.get(tuple(key))
    if program is None or not program.single or config.debug_nans or config.debug_infs:
        # with several devices always, since keys then name one
        return _run_equation(primitive, operands, params, key)
    array = _new_array(DeviceArray)
    (array._buffer,) = program._run(buffers)
    (array.aval,) = program.computed
    return array


def _run_equation(primitive: Primitive, operands: Sequence, params: dict, key: list):
    arrays, device = placed([x if type(x) is DeviceArray else _operand(x) for x in operands])
    found_key = (*key, device) if _device_count() > 1 else tuple(key)
    program = _one_equation.get(found_key)
    if program is None:
        _make_room(_one_equation)
        program = _one_equation[found_key] = _compile_equation(primitive, [a.aval for a in arrays], params, device)
        program.single = program.single and not primitive.multiple_results
    outs = program.run(arrays)
    if looks_for_nonfinite(primitive.name):
        check_results(primitive.name, _one_equation_program(primitive, [a.aval for a in arrays], params), arrays, outs, device)
    return outs if primitive.multiple_results else outs[0]


def _operand(x) -> DeviceArray:
    if type(x) is Literal:
        x = x.value
    return scalar(x) if type(x) in (float, int, bool, complex) or isinstance(x, np.generic) else asarray(x)


def _compile_equation(primitive, avals: list[ShapedArray], params: dict, device) -> Program:
    return Program(_one_equation_program(primitive, avals, params), device, primitive.name).compile()


def _one_equation_program(primitive, avals: list[ShapedArray], params: dict) -> Jaxpr:
    found = primitive.infer(tuple(avals), params)
    invars = [Var(a) for a in avals]
    outvars = [Var(a) for a in (found if primitive.multiple_results else (found,))]
    source = here(2) if looks_for_nonfinite() else None
    return Jaxpr(invars, [Eqn(primitive, tuple(invars), tuple(outvars), params, source)], outvars)


# ---- functions that run as one program -----------------------------------------------------------------------------


class _Fused:
    """A compiled call of a fused function: the program, the values it closes over, and how to rebuild its result.

    `single` says that the result is one array; `direct` that it is computed from the operands alone.
    """

    __slots__ = ("program", "captured", "treedef", "single", "direct")

    def __init__(self, program, captured, treedef, single):
        self.program = program
        self.captured = captured
        self.treedef = treedef
        self.single = single
        self.direct = single and program.single and not captured


_fused_caches: list[dict] = []


def forget_programs() -> None:
    """Forgets the programs of primitives and of fused functions, and the counts of misses."""
    for cache in (_one_equation, _origins, *_fused_caches):
        cache.clear()


def fused(function: Callable | None = None, *, static: Sequence[str] = ()):
    """Makes `function` run as one compiled program when called on arrays; inside a trace it is inlined.

    Arrays, NumPy values and Python scalars are operands, except for the parameters named in `static`; these, and anything else
    hashable, select the program. A call with an argument that fits neither runs the function as it is.
    """
    if function is None:
        return functools.partial(fused, static=static)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    static_names = frozenset(static)
    static_at = frozenset(i for i, n in enumerate(names) if n in static_names)
    cache: dict[tuple, _Fused] = {}
    _fused_caches.append(cache)
    frames = tracing._state
    public = user_facing(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        if frames.frames:
            return function(*args, **kwargs)
        key: list = [config._trace_key]
        operands: list = []
        try:
            for i, x in enumerate(args):
                if type(x) is DeviceArray:
                    key.append(x.aval)
                    operands.append(x)
                elif x is None or i in static_at:
                    key.append((type(x), x))
                else:
                    _sort_argument(x, False, key, operands)
            for name, x in kwargs.items():
                key.append(name)
                _sort_argument(x, name in static_names, key, operands)
            cache_key = tuple(key)
            found = cache.get(cache_key)
        except (_Unfusable, TypeError):
            return public(*args, **kwargs)
        if found is None:  # with several devices always, since keys then name one
            if config.disable_jit or looks_for_nonfinite():
                return public(*args, **kwargs)
            operands, device = placed(operands)
            cache_key = (*cache_key, device) if _device_count() > 1 else cache_key
            found = cache.get(cache_key)
            if found is None:
                _make_room(cache)
                found = _fuse(public, args, kwargs, operands, static_at, static_names, device)
                cache[cache_key] = found
        if found.direct:
            return found.program.run_single(operands)
        outs = found.program.run([*found.captured, *operands] if found.captured else operands)
        return outs[0] if found.single else tree.unflatten(found.treedef, outs)

    return call


def by_type(function: Callable | None = None, *, static: int = 0) -> Any:
    """`function(array, .., *static arguments)` with its program remembered by the types of its arrays, for the shortest calls.

    The last `static` arguments are hashable. What is not called on arrays of one device alone, outside any trace, or
    is no program of one result, goes through `function`.
    """
    if function is None:
        return functools.partial(by_type, static=static)
    programs: dict[tuple, Program | None] = {}
    _fused_caches.append(programs)
    frames = tracing._state

    def one(x, *fixed):
        if type(x) is DeviceArray and not frames.frames:
            program = programs.get((config._trace_key, x.aval, *fixed))
            if program is not None:
                array = _new_array(DeviceArray)
                (array._buffer,) = program._run([x._buffer])
                (array.aval,) = program.computed
                return array
            return _remember(programs, function, (x,), fixed)
        return function(x, *fixed)

    def two(x, y, *fixed):
        if type(x) is DeviceArray and type(y) is DeviceArray and not frames.frames:
            program = programs.get((config._trace_key, x.aval, y.aval, *fixed))
            if program is not None:
                array = _new_array(DeviceArray)
                (array._buffer,) = program._run([x._buffer, y._buffer])
                (array.aval,) = program.computed
                return array
            return _remember(programs, function, (x, y), fixed)
        return function(x, y, *fixed)

    arrays = function.__code__.co_argcount - static
    return {1: one, 2: two}[arrays]


def unary_by_type(function: Callable) -> Callable:
    """`by_type` for a ufunc of one operand, `function(x, /, out=None, where=None)`."""
    programs: dict[tuple, Program | None] = {}
    _fused_caches.append(programs)
    frames = tracing._state

    @functools.wraps(function)
    def call(x, /, out=None, where=None):
        if type(x) is DeviceArray and out is where is None and not frames.frames:
            program = programs.get((config._trace_key, x.aval))
            if program is not None:
                array = _new_array(DeviceArray)
                (array._buffer,) = program._run([x._buffer])
                (array.aval,) = program.computed
                return array
            return _remember(programs, function, (x,), ())
        return function(x, out, where)

    return call


def _remember(programs: dict, function: Callable, arrays: tuple, fixed: tuple):
    """The result of a call; and, unless it is known not to be possible, its program for the next one."""
    key = (config._trace_key, *[x.aval for x in arrays], *fixed)
    out = function(*arrays, *fixed)
    if key in programs or config.disable_jit or looks_for_nonfinite() or _device_count() > 1:
        return out
    _make_room(programs)
    jaxpr, captured = trace(lambda *tracers: [function(*tracers, *fixed)], [x.aval for x in arrays])
    _, device = placed(list(arrays))
    program = Program(jaxpr, device, getattr(function, "__name__", "main")).compile() if not captured else None
    programs[key] = program if program is not None and program.single else None
    return out


class _Unfusable(Exception):
    """An argument that is neither an operand nor hashable."""


def _sort_argument(x, is_static: bool, key: list, operands: list) -> None:
    """Appends what `x` contributes to the key, and to the operands."""
    kind = type(x)
    if is_static:
        key.append((kind, x))
    elif kind is DeviceArray:
        key.append(x.aval)
        operands.append(x)
    elif kind is float or kind is int or kind is bool or kind is complex:
        x = scalar(x)
        key.append(x.aval)
        operands.append(x)
    elif isinstance(x, np.ndarray | np.generic):
        x = asarray(x)
        key.append(x.aval)
        operands.append(x)
    elif kind is list or kind is tuple:
        key.append((kind, len(x)))
        for y in x:
            if isinstance(y, list | tuple):
                raise _Unfusable
            _sort_argument(y, False, key, operands)
    elif isinstance(x, Array):
        raise _Unfusable
    elif kind.__hash__ is None or pjrt.is_foreign_array(x) or hasattr(x, "__jax_array__"):
        x = asarray(x)
        key.append(x.aval)
        operands.append(x)
    else:
        key.append((kind, x))


def _is_operand(x) -> bool:
    kind = type(x)
    if kind in (DeviceArray, float, int, bool, complex) or isinstance(x, np.ndarray | np.generic):
        return True
    return kind not in (list, tuple) and (
        kind.__hash__ is None or pjrt.is_foreign_array(x) or hasattr(x, "__jax_array__")
    )


def _fuse(function, args, kwargs, operands, static_at, static_names, device) -> _Fused:
    made: list = []

    def traced(*tracers):
        given = iter(tracers)

        def swap(x, is_static):
            if is_static:
                return x
            if type(x) in (list, tuple):
                return type(x)([swap(y, False) for y in x])
            return next(given) if _is_operand(x) else x

        new_args = [swap(x, i in static_at) for i, x in enumerate(args)]
        new_kwargs = {n: swap(x, n in static_names) for n, x in kwargs.items()}
        leaves, treedef = tree.flatten(function(*new_args, **new_kwargs))
        made.append(treedef)
        return leaves

    name = getattr(function, "__name__", "fused")
    jaxpr, captured = trace(traced, [x.aval for x in operands], name)
    captured, _ = placed(captured) if captured else ([], None)
    single = made[0].num_nodes == 1 and made[0].num_leaves == 1
    return _Fused(Program(jaxpr, device, name).compile(), captured, made[0], single)


class _Backend:
    """What `core.tracing` asks of a backend."""

    run_primitive = staticmethod(run_primitive)
    run_program = staticmethod(run_program)
    asarray = staticmethod(asarray)


tracing.install_backend(_Backend)
