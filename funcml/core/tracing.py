"""The one tracer: recording a Python function as a jaxpr.

    trace      : (function, avals) -> (jaxpr, captured values)
    bind       : (primitive, operands, params) -> values        records, or runs if nothing is being traced
    eval_jaxpr : (jaxpr, values) -> values                      binds each equation again

Each thread has a stack of frames. `trace` pushes one, calls the function on tracers and pops it. `bind` records
in the innermost frame, whatever its operands are; a value that comes from outside (an array, a tracer of an
outer frame) is captured: it becomes a leading input of the program, and `trace` hands it back.

A frame may know the concrete values of its inputs (those opened by an eager `grad`, `vjp`, `jvp`, `linearize`).
When Python needs the value of a tracer, the part of the program that leads there is evaluated: see `value_of`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from funcml.core import source
from funcml.core.avals import ShapedArray, shaped
from funcml.core.config import config
from funcml.core.errors import (
    ConcretizationError,
    LeakedTracerError,
    MissingRuleError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from funcml.core.ir import Eqn, Jaxpr, Literal, Primitive, Var, effectful, new_eqn
from funcml.core.linear import UndefinedPrimal
from funcml.core.values import Array

__all__ = [
    "Frame",
    "Tracer",
    "aval_of",
    "bind",
    "current_frame",
    "eval_jaxpr",
    "install_backend",
    "known_value",
    "leaked",
    "no_frames",
    "rebind",
    "require_frame",
    "scalar_aval",
    "trace",
]


class _ThreadState(threading.local):
    def __init__(self):
        self.frames: list[Frame] = []


_state = _ThreadState()

_NO_PARAMS: dict = {}
_32_BIT = {bool: "bool", int: "int32", float: "float32", complex: "complex64"}
_64_BIT = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
_SCALAR_AVALS = {
    wide: {t: shaped((), np.dtype(name), t is not bool) for t, name in table.items()}
    for wide, table in ((False, _32_BIT), (True, _64_BIT))
}

_NUMPY_AVALS = {dtype.type: shaped((), dtype) for dtype in map(np.dtype, np.typecodes["AllInteger"] + "?efdFD")}


def scalar_aval(python_type: type) -> ShapedArray:
    """The aval of a Python scalar: 32-bit unless `config.enable_x64`, weakly typed unless bool."""
    return _SCALAR_AVALS[config.enable_x64][python_type]


class Tracer(Array):
    """A value of a program that is being recorded."""

    __slots__ = ("frame", "variable", "aval", "__weakref__")

    def __init__(self, frame: Frame, var: Var, aval: ShapedArray):
        self.frame = frame
        self.variable = var
        self.aval = aval

    def __repr__(self) -> str:
        return f"Traced<{self.aval!r}> in {self.frame.name}"

    def __bool__(self) -> bool:
        return bool(known_value(self, "truth"))

    def __int__(self) -> int:
        return int(known_value(self, "int"))

    def __index__(self) -> int:
        return known_value(self, "index").__index__()

    def __float__(self) -> float:
        return float(known_value(self, "float"))

    def __complex__(self) -> complex:
        return complex(known_value(self, "complex"))

    def __array__(self, dtype=None, copy=None):
        return np.array(known_value(self, "elements"), dtype=dtype)

    def __format__(self, spec: str) -> str:
        return format(known_value(self, "text"), spec) if spec else repr(self)

    def item(self, *args):
        """The element as a Python scalar; only where its value is known while tracing."""
        return np.asarray(known_value(self, "item")).item(*args)

    def tolist(self):
        """The elements as nested lists; only where their values are known while tracing."""
        return np.asarray(known_value(self, "tolist")).tolist()

    def __hash__(self):
        raise TypeError(
            f"unhashable: traced array {self.aval} in {self.frame.name}. Arrays are compared by their elements; "
            "use id(x), or a Python value, as key."
        )

    def __setitem__(self, index, value):
        raise TypeError(
            f"arrays are immutable: {self.aval} in {self.frame.name}. "
            "Write `x = x.at[index].set(value)` instead of `x[index] = value`."
        )


class Frame:
    """One program being recorded.

    `name` tells the user which transform it is ("jit of loss"); `known` maps variables to values (arrays, or
    tracers of an outer frame) where they are known; `stamp`, when set, is the source of what a pass records;
    `inlined` are the variables of programs that were copied into this one; what is recorded `once` runs at once and
    only once, so that effects may happen while it is recorded.
    """

    __slots__ = ("name", "invars", "eqns", "captured", "known", "alive", "stamp", "inlined", "once")

    def __init__(self, name: str, once: bool = False):
        self.name = name
        self.once = once
        self.invars: list[Var] = []
        self.eqns: list[Eqn] = []
        self.captured: dict[int, tuple[Var, object, object]] = {}
        self.known: dict[Var, object] = {}
        self.alive = True
        self.stamp: source.Source | None = None
        self.inlined: set[Var] = set()

    def input(self, aval: ShapedArray, value=None) -> Tracer:
        """A new input of the program, with its value if the frame may use it."""
        var = Var(aval)
        self.invars.append(var)
        if value is not None:
            self.known[var] = value
        return Tracer(self, var, aval)

    def atom(self, x) -> Var | Literal:
        """The variable or literal that stands for `x` in this program; captures `x` if it comes from outside."""
        kind = type(x)
        if kind is Tracer:
            if x.frame is self:
                return x.variable
            if not x.frame.alive:
                raise leaked(x)
            return self._capture(x, x, x.aval)
        if kind is float or kind is int or kind is bool or kind is complex:
            return Literal(x, _SCALAR_AVALS[config.enable_x64][kind])
        if kind in _NUMPY_AVALS:
            return Literal(x, _NUMPY_AVALS[kind])
        if kind is Literal:
            return x
        if isinstance(x, Array):
            return self._capture(x, x, x.aval)
        if isinstance(x, np.generic):
            return Literal(x, shaped((), x.dtype))
        if isinstance(x, np.ndarray):
            if x.ndim == 0:
                return Literal(x[()], shaped((), x.dtype))
            found = self.captured.get(id(x))
            if found is not None:
                return found[0]
            snapshot = x.copy()
            snapshot.flags.writeable = False
            return self._capture(x, snapshot, shaped(x.shape, x.dtype))
        if type(x) is UndefinedPrimal:
            raise MissingRuleError(
                f"transposition met an operation that is not linear in {x.aval}: its operands depend on it more than once "
                "(x * x), or its rule needs its value. Only linear functions can be transposed."
            )
        value = _backend.asarray(x)
        return self._capture(x, value, value.aval)

    def _capture(self, original, value, aval) -> Var:
        found = self.captured.get(id(original))
        if found is None:
            found = self.captured[id(original)] = (Var(aval), value, original)
            self.known[found[0]] = value
        return found[0]

    def record(self, primitive: Primitive, invars, params: dict, out_avals, at) -> list[Tracer]:
        """Appends an equation whose result types are known."""
        outvars = tuple([Var(a) for a in out_avals])
        self.eqns.append(new_eqn((primitive, tuple(invars), outvars, params, at)))
        return [Tracer(self, v, v.aval) for v in outvars]

    def settle(self, happened: Sequence[Eqn], results: Sequence) -> None:
        """Takes equations with an effect, which has happened, out of the program; their results come from outside."""
        gone = set(map(id, happened))
        self.eqns = [eqn for eqn in self.eqns if id(eqn) not in gone]
        for var, value in zip([v for eqn in happened for v in eqn.outvars], results, strict=True):
            self.captured[id(value)] = (var, value, value)
            self.known[var] = value

    def close(self, outs) -> tuple[Jaxpr, list]:
        """The program of what was recorded, and the captured values that are its leading inputs."""
        outs = [self.atom(x) for x in outs]
        captured = list(self.captured.values())
        jaxpr = Jaxpr([v for v, _, _ in captured] + self.invars, self.eqns, outs)
        return jaxpr, [value for _, value, _ in captured]


def current_frame() -> Frame | None:
    """The innermost frame of this thread, if anything is being traced."""
    frames = _state.frames
    return frames[-1] if frames else None


def require_frame() -> Frame:
    """The innermost frame of this thread, for passes that bind equations: they run inside `trace` only."""
    frames = _state.frames
    if not frames:
        raise RuntimeError("nothing is being traced: this pass binds equations, so it must run inside `trace`")
    return frames[-1]


def trace(
    function: Callable, avals: Sequence[ShapedArray], name: str = "trace", values: Sequence | None = None
) -> tuple[Jaxpr, list]:
    """Records `function(*tracers) -> sequence of values` as a closed program.

    in:  avals of the inputs; `values`, if the frame may answer questions about its inputs
    out: a jaxpr with inputs (captured..., inputs...), and the captured values
    """
    frame = Frame(name, values is not None)
    frames = _state.frames
    frames.append(frame)
    try:
        if values is None:
            tracers = [frame.input(a) for a in avals]
        else:
            tracers = [frame.input(a, v) for a, v in zip(avals, values, strict=True)]
        return frame.close(function(*tracers))
    finally:
        frames.pop()
        frame.alive = False


def bind(primitive: Primitive, operands: Sequence, params: dict = _NO_PARAMS):
    """Applies a primitive: records it in the innermost frame, or runs it when nothing is being traced.

    Gives one value, or a list when the primitive has multiple results.
    """
    frames = _state.frames
    if not frames:
        return _backend.run_primitive(primitive, operands, params)
    frame = frames[-1]
    invars, avals = [], []
    for x in operands:
        atom = x.variable if type(x) is Tracer and x.frame is frame else frame.atom(x)
        invars.append(atom)
        avals.append(atom.aval)
    found = primitive.infer(tuple(avals), params)
    stamp = frame.stamp
    if stamp is None and config.source_lines:
        stamp = source.here(2)
    if primitive.multiple_results:
        return frame.record(primitive, invars, params, found, stamp)
    var = Var(found)
    frame.eqns.append(new_eqn((primitive, tuple(invars), (var,), params, stamp)))
    return Tracer(frame, var, found)


def rebind(eqn: Eqn, operands: Sequence) -> list:
    """Applies the primitive of `eqn` to other operands; where their types are the same nothing is inferred anew."""
    frames = _state.frames
    primitive = eqn.primitive
    if not frames:
        outs = _backend.run_primitive(primitive, operands, eqn.params)
        return outs if primitive.multiple_results else [outs]
    frame = frames[-1]
    atoms = tuple([x.variable if type(x) is Tracer and x.frame is frame else frame.atom(x) for x in operands])
    out_avals: Sequence[ShapedArray] = [v.aval for v in eqn.outvars]
    for atom, given in zip(atoms, eqn.invars, strict=True):
        if atom.aval is not given.aval:
            found = primitive.infer(tuple([a.aval for a in atoms]), eqn.params)
            out_avals = found if primitive.multiple_results else (found,)
            break
    return frame.record(primitive, atoms, eqn.params, out_avals, frame.stamp or eqn.source)


def eval_jaxpr(jaxpr: Jaxpr, values: Sequence) -> list:
    """Evaluates (inside a trace: inlines) a program, equation by equation."""
    if len(values) != len(jaxpr.invars):
        raise TypeError(f"a program of {len(jaxpr.invars)} inputs was given {len(values)} values")
    env: dict[Var, object] = dict(zip(jaxpr.invars, values, strict=True))
    frame = current_frame()
    if frame is not None and all([aval_of(x) is v.aval for v, x in env.items()]):
        return _inline(frame, jaxpr, env)
    for eqn in jaxpr.eqns:
        operands = [env[a] if type(a) is Var else a for a in eqn.invars]
        for var, out in zip(eqn.outvars, rebind(eqn, operands), strict=True):
            env[var] = out
    return [env[a] if type(a) is Var else a for a in jaxpr.outs]


def _inline(frame: Frame, jaxpr: Jaxpr, given: dict[Var, object]) -> list:
    """The outputs of a program that is copied into `frame`; the inputs have the types with which it was recorded.

    Equations are taken as they are, except where an input stands in them, or where the frame has them already.
    """
    used = {a for eqn in jaxpr.eqns for a in eqn.invars}
    renamed: dict[Var | Literal, Var | Literal] = {v: frame.atom(x) for v, x in given.items() if v in used}
    bound = [v for eqn in jaxpr.eqns for v in eqn.outvars]
    again = not frame.inlined.isdisjoint(bound)
    fresh = {v: Var(v.aval) for v in bound} if again else {}
    renamed.update(fresh.items())
    frame.inlined.update(bound)
    name, new_name, stamp = renamed.get, fresh.get, frame.stamp
    copy_all = again or stamp is not None
    for eqn in jaxpr.eqns:
        if copy_all or not renamed.keys().isdisjoint(eqn.invars):
            primitive, invars, outvars, params, made_at = eqn
            invars, outvars = tuple([name(a, a) for a in invars]), tuple([new_name(v, v) for v in outvars])
            eqn = new_eqn((primitive, invars, outvars, params, stamp or made_at))
        frame.eqns.append(eqn)
    return [
        given[a] if a in given else Tracer(frame, new_name(a, a), a.aval) if type(a) is Var else a for a in jaxpr.outs
    ]


class no_frames:
    """A context in which nothing is being traced: what runs inside runs on values."""

    def __enter__(self):
        self.frames = _state.frames
        _state.frames = []

    def __exit__(self, *exc):
        _state.frames = self.frames


def aval_of(x) -> ShapedArray:
    """The aval of an array, a tracer, a NumPy value, a literal or a Python scalar."""
    kind = type(x)
    if kind is Tracer:
        return x.aval
    aval = getattr(x, "aval", None)
    if aval is not None and isinstance(aval, ShapedArray):
        return aval
    if kind in _32_BIT:
        return _SCALAR_AVALS[config.enable_x64][kind]
    if isinstance(x, np.generic | np.ndarray):
        return shaped(x.shape, x.dtype)
    return _backend.asarray(x).aval


# ---- values while tracing ------------------------------------------------------------------------------------

_QUESTION = {
    "truth": ("its truth value", "`jnp.where(c, x, y)` or `lax.cond` instead of `if`, `lax.while_loop` instead of `while`"),
    "int": ("it as a Python int", "mark the argument static (`static_argnames=`), or keep it an array"),
    "index": (
        "it as an index or a length",
        "mark the argument static (`static_argnames=`); index arrays with `x[i]` as they are",
    ),
    "float": ("it as a Python float", "keep it an array, or return it and convert the result"),
    "complex": ("it as a Python complex", "keep it an array, or return it and convert the result"),
    "elements": ("its elements for NumPy", "use `funcml.numpy` in place of `numpy` on traced arrays"),
    "item": ("its element (`.item()`)", "keep it an array, or return it and convert the result"),
    "tolist": ("its elements (`.tolist()`)", "return it and convert the result"),
    "text": ("its digits for a format", "use `debug.print`, or return it and print the result"),
    "mask": ("it as a boolean index", "`jnp.where(mask, x, 0)`, or `jnp.nonzero(mask, size=n)` for a result of fixed length"),
}
_ABSTRACT = "Abstract tracer value encountered where concrete value is expected: traced array with shape"
_EVENT = {
    "truth": "Attempted boolean conversion of traced array with shape",
    "index": "The __index__() method was called on traced array with shape",
    "elements": "The numpy.ndarray conversion method __array__() was called on traced array with shape",
}
_ERRORS = {
    "truth": TracerBoolConversionError,
    "int": TracerIntegerConversionError,
    "index": TracerIntegerConversionError,
    "elements": TracerArrayConversionError,
}


def known_value(tracer: Tracer, question: str):
    """The value of a tracer, when the frames it depends on know their inputs.

    `question` is a key of the table above: it selects the words of the error for a value that is not known.
    """
    value = value_of(tracer)
    if value is None:
        asked, advice = _QUESTION[question]
        where = source.describe(source.here(2))
        raise _ERRORS.get(question, ConcretizationError)(
            f"{_EVENT.get(question, _ABSTRACT)} {tracer.aval}. Python asked for {asked} at {where}, but in {tracer.frame.name} "
            f"it has none: the function is recorded once, for all values. What to write instead: {advice}."
        )
    return value


def value_of(x):
    """The concrete array that a tracer stands for, or None; the slice of its program is evaluated and kept.

    Effects in the slice happen here and leave the program; there is no value where the program is recorded for later runs.
    """
    if type(x) is not Tracer:
        return x
    frame = x.frame
    if not frame.alive:
        raise leaked(x)
    known = frame.known.get(x.variable)
    if known is not None:
        return value_of(known)
    eqns, inputs = _slice(frame, x.variable)
    effects = [eqn for eqn in eqns if effectful(eqn)]
    if effects and not all([f.once for f in _state.frames]):
        return None
    values = [value_of(frame.known[v]) if v in frame.known else None for v in inputs]
    if any(v is None for v in values):
        return None
    given = [v for eqn in effects for v in eqn.outvars]
    with no_frames():
        value, *results = _backend.run_program(Jaxpr(inputs, eqns, (x.variable, *given)), values)
    frame.settle(effects, results)
    frame.known[x.variable] = value
    return value


def _slice(frame: Frame, var: Var) -> tuple[list[Eqn], list[Var]]:
    """The equations of `frame` that `var` needs, down to inputs and variables whose value is known.

    Before an effect come those that were recorded before it.
    """
    needed: dict[Var, None] = {var: None}
    kept: list[Eqn] = []
    has_effect = False
    for eqn in reversed(frame.eqns):
        if any(v in needed and v not in frame.known for v in eqn.outvars) or (has_effect and effectful(eqn)):
            kept.append(eqn)
            has_effect = has_effect or effectful(eqn)
            for v in eqn.outvars:
                needed.pop(v, None)
            needed.update((a, None) for a in eqn.invars if type(a) is Var)
    return kept[::-1], list(needed)


def leaked(x: Tracer) -> LeakedTracerError:
    """The error for a tracer whose frame has ended."""
    made = next((eqn.source for eqn in x.frame.eqns if x.variable in eqn.outvars), None)
    origin = f"made at {source.describe(made)}" if made else "an argument of the function"
    return LeakedTracerError(
        f"Encountered an unexpected tracer: a traced array {x.aval} ({origin}) escaped from {x.frame.name}, which has ended; it "
        "was kept in a global, an attribute, a closure or a list. Return it from the function instead, and keep only what comes "
        "out."
    )


# ---- the seam to the backend ---------------------------------------------------------------------------------


class _NoBackend:
    def __getattr__(self, name):
        raise RuntimeError("no backend is installed: import funcml, not its parts")


_backend = _NoBackend()


def install_backend(backend) -> None:
    """Installs what runs programs: an object with `run_primitive(primitive, operands, params)`,
    `run_program(jaxpr, values) -> list` and `asarray(x) -> Array`. `lowering.execute` calls this."""
    global _backend
    _backend = backend
