"""StableHLO as text: a jaxpr becomes a module with a public `main`.

    to_stablehlo : (jaxpr, name, donated) -> text
    to_module    : (jaxpr, name, donated) -> text, functions of the host that it calls

`rule(emit, eqn, operands) -> names of the results` is how one primitive is written; `lowers(primitive)` registers it.
Rules stand in the files `rules_*.py`, one for each file of primitives. `operands` are SSA names; `emit.op(text)` appends
`%n = text` and gives the name back. The operands of an elementwise equation
come at the shape of its result.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes
from funcml.core.avals import ShapedArray, shaped
from funcml.core.ir import Eqn, Jaxpr, Literal, MissingRuleError, Primitive, Var, ordered
from funcml.core.source import scope_of

__all__ = ["TOKEN", "Emitter", "lowers", "numbers", "tensor_type", "to_module", "to_stablehlo"]

RULES: dict[Primitive, Callable] = {}
TOKEN = "!stablehlo.token"


def lowers(*primitives: Primitive):
    """Registers the decorated function as the lowering rule of these primitives."""

    def register(rule):
        for p in primitives:
            RULES[p] = rule
        return rule

    return register


# ---- types and constants ----------------------------------------------------------------------------------------

_F8 = {"float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN"}
_element_types: dict = {}


def element_type(dtype) -> str:
    """The MLIR element type of a dtype: `f32`, `i1`, `ui8`, `complex<f32>`; a key is one number of its size."""
    text = _element_types.get(dtype)
    if text is None:
        text = _element_types[dtype] = _element_type(dtype)
    return text


def _element_type(dtype) -> str:
    name = dtype.name
    if dtypes.is_key(dtype):
        return element_type(dtype.stored)
    if name == "bool":
        return "i1"
    if name == "bfloat16":
        return "bf16"
    if name.startswith(("float8_", "float4_", "float6_")):
        return _F8.get(name) or "f" + name[5] + name[7:].upper()
    if name.startswith("complex"):
        return f"complex<f{dtype.itemsize * 4}>"
    return name.replace("uint", "ui").replace("int", "i").replace("float", "f").replace("uii", "ui")


@functools.cache
def tensor_type(aval: ShapedArray) -> str:
    """The MLIR type of an aval: `tensor<3x4xf32>`."""
    dims = "".join(f"{n}x" for n in aval.shape)
    return f"tensor<{dims}{element_type(aval.dtype)}>"


def numbers(values: Sequence[int]) -> str:
    """`1, 2, 3`."""
    return _numbers(tuple(values))


@functools.lru_cache(maxsize=4096)
def _numbers(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def scalar_text(value, dtype) -> str:
    """A scalar as it stands in `dense<...>`: digits where they are exact, bits for inf, nan and the rest."""
    if dtypes.is_key(dtype):
        dtype = dtype.stored
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtypes.is_integer(dtype):
        return str(int(value))
    if dtypes.is_complex(dtype):
        part = np.dtype(f"float{dtype.itemsize * 4}")
        z = complex(value)
        return f"({scalar_text(z.real, part)},{scalar_text(z.imag, part)})"
    value = np.asarray(value, dtype)
    as_float = float(value)
    digits = repr(as_float)
    if np.isfinite(as_float) and "e" not in digits and dtype.itemsize >= 2:
        return digits
    return f"0x{value.tobytes()[::-1].hex().upper()}"


_NAMED = re.compile(r'loc\("[^"]*"\)$')


class Emitter:
    """The text of one module under construction."""

    def __init__(self, platform: str = "cpu"):
        self.platform = platform
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.function_names: dict[Jaxpr, str] = {}
        self.used_names: set[str] = {"main"}
        self.constants: dict[tuple, str] = {}
        self.callbacks: list[Callable] = []
        self.known_indices: dict[str, int] = {}
        self.last_token: str | None = None
        self.count = 0

    # -- writing

    def fresh(self) -> str:
        """A new SSA name."""
        self.count += 1
        return f"%{self.count}"

    def op(self, text: str) -> str:
        """Appends `%n = text`; gives `%n`."""
        self.count += 1
        name = f"%{self.count}"
        self.lines.append(f"{name} = {text}")
        return name

    def ops(self, text: str, results: int) -> list[str]:
        """Appends an operation of several results; gives `%n#0`, `%n#1`, ..."""
        if results == 1:
            return [self.op(text)]
        self.count += 1
        name = f"%{self.count}"
        if results == 0:
            self.lines.append(text)
            return []
        self.lines.append(f"{name}:{results} = {text}")
        return [f"{name}#{i}" for i in range(results)]

    def constant(self, value, aval: ShapedArray) -> str:
        """A splat constant of this type; made once for each region."""
        type_ = tensor_type(aval)
        key = (type(value), value.tobytes() if isinstance(value, np.generic) else repr(value), type_)
        name = self.constants.get(key)
        if name is None:
            literal = scalar_text(value, aval.dtype)
            name = self.constants[key] = self.op(f"stablehlo.constant dense<{literal}> : {type_}")
        return name

    def token(self) -> str:
        """The token of the latest ordered effect: what the next one takes, and sets `last_token` to the one that it gives."""
        if self.last_token is None:
            self.last_token = self.op(f"stablehlo.create_token : {TOKEN}")
        return self.last_token

    def iota(self, aval: ShapedArray, dimension: int) -> str:
        """The index along `dimension`, in the dtype of `aval`."""
        return self.op(f"stablehlo.iota dim = {dimension} : {tensor_type(aval)}")

    def convert(self, x: str, from_aval: ShapedArray, to_aval: ShapedArray) -> str:
        """`x` in another element type."""
        return self.op(f"stablehlo.convert {x} : ({tensor_type(from_aval)}) -> {tensor_type(to_aval)}")

    def broadcast(self, x: str, from_aval: ShapedArray, to_aval: ShapedArray, dims: Sequence[int]) -> str:
        """`x` broadcast, its axis i becoming axis `dims[i]`."""
        if from_aval.shape == to_aval.shape:
            return x
        types = f"({tensor_type(from_aval)}) -> {tensor_type(to_aval)}"
        return self.op(f"stablehlo.broadcast_in_dim {x}, dims = [{numbers(dims)}] : {types}")

    def region(self, body: Callable[[Emitter], None]) -> str:
        """The lines that `body(self)` appends, as the text of a region; constants made inside stay inside."""
        outer_lines, outer_constants = self.lines, self.constants
        self.lines, self.constants = [], dict(outer_constants)
        try:
            body(self)
            return "\n".join(self.lines)
        finally:
            self.lines, self.constants = outer_lines, outer_constants

    # -- programs

    def program(self, jaxpr: Jaxpr, inputs: Sequence[str]) -> list[str]:
        """Writes the equations of a program in place; gives the names of its outputs."""
        env: dict[Var, str] = dict(zip(jaxpr.invars, inputs, strict=True))
        rules = RULES
        for eqn in jaxpr.eqns:
            rule = rules.get(eqn.primitive)
            if rule is None:
                raise _no_lowering(eqn)
            shape = eqn.outvars[0].aval.shape if eqn.primitive.elementwise else ()
            if shape:
                operands = [
                    env[a] if type(a) is Var and a.aval.shape == shape else self._spread(a, env, shape) for a in eqn.invars
                ]
            else:
                operands = [env[a] if type(a) is Var else self.constant(a.value, a.aval) for a in eqn.invars]
            written = len(self.lines)
            results = rule(self, eqn, operands)
            scope = scope_of(eqn.source)
            if scope:
                self._name(written, f"{scope}/{eqn.primitive.name}")
            if type(results) is str:
                env[eqn.outvars[0]] = results
            else:
                for v, name in zip(eqn.outvars, results, strict=True):
                    env[v] = name
        return [env[a] if type(a) is Var else self.constant(a.value, a.aval) for a in jaxpr.outs]

    def _name(self, start: int, name: str) -> None:
        """Gives the operations written since `start` a name, which XLA shows in profiles and errors."""
        location = f" loc({json.dumps(name)})"
        self.lines[start:] = [line if _NAMED.search(line) else line + location for line in self.lines[start:]]

    def _spread(self, atom: Var | Literal, env: dict[Var, str], shape: tuple[int, ...]) -> str:
        """A scalar operand of an elementwise equation, at the shape of its result."""
        wide = shaped(shape, atom.aval.dtype)
        if type(atom) is Literal:
            return self.constant(atom.value, wide)
        return self.broadcast(env[atom], atom.aval, wide, ())

    def call(self, jaxpr: Jaxpr, inputs: Sequence[str], name: str) -> list[str]:
        """Calls a program as a private function, written once for each program; one with ordered effects is written in place."""
        if ordered(jaxpr):
            return self.program(jaxpr, inputs)
        target = self.function(jaxpr, name)
        ins = ", ".join(tensor_type(v.aval) for v in jaxpr.invars)
        outs = ", ".join(tensor_type(v.aval) for v in jaxpr.outs)
        return self.ops(f"func.call @{target}({', '.join(inputs)}) : ({ins}) -> ({outs})", len(jaxpr.outs))

    def function(self, jaxpr: Jaxpr, name: str) -> str:
        """The name of the private function of a program, which is written if the module does not have it."""
        target = self.function_names.get(jaxpr)
        if target is None:
            target = self.function_names[jaxpr] = self._unique(name)
            self._function(jaxpr, target)
        return target

    def _unique(self, name: str) -> str:
        name = "".join(c if c.isalnum() or c in "_." else "_" for c in name) or "f"
        candidate, n = name, 0
        while candidate in self.used_names:
            n += 1
            candidate = f"{name}_{n}"
        self.used_names.add(candidate)
        return candidate

    def _function(self, jaxpr: Jaxpr, name: str) -> None:
        outer_lines, outer_constants = self.lines, self.constants
        self.lines, self.constants = [], {}
        inputs = [self.fresh() for _ in jaxpr.invars]
        results = self.program(jaxpr, inputs)
        text = _function_text("private", name, jaxpr, inputs, [""] * len(inputs), self.lines, results)
        self.lines, self.constants = outer_lines, outer_constants
        self.functions.append(text)


def _function_text(visibility, name, jaxpr, inputs, attributes, lines, results) -> str:
    arguments = ", ".join(
        f"{n}: {tensor_type(v.aval)}{a}" for n, v, a in zip(inputs, jaxpr.invars, attributes, strict=True)
    )
    types = ", ".join(tensor_type(v.aval) for v in jaxpr.outs)
    end = f"return {', '.join(results)} : {types}" if results else "return"
    body = "\n    ".join([*lines, end])
    return f"  func.func {visibility} @{name}({arguments}) -> ({types}) {{\n    {body}\n  }}"


def _no_lowering(eqn: Eqn) -> MissingRuleError:
    return MissingRuleError(
        f"the primitive `{eqn.primitive.name}` has no lowering to StableHLO; register one with "
        f"`funcml.lowering.emit.lowers`"
    )


def to_stablehlo(
    jaxpr: Jaxpr, name: str = "main", donated: Sequence[bool] | None = None, platform: str = "cpu"
) -> str:
    """The module of a program, as text.

    `donated[i]` lets XLA reuse the memory of input i for a result of its size.
    """
    return to_module(jaxpr, name, donated, platform)[0]


def to_module(
    jaxpr: Jaxpr, name: str = "main", donated: Sequence[bool] | None = None, platform: str = "cpu"
) -> tuple[str, list[Callable]]:
    """The module of a program as text, and the functions of the host that it calls, by the index with which it does."""
    emit = Emitter(platform)
    inputs = [f"%arg{i}" for i in range(len(jaxpr.invars))]
    attributes = [" {jax.buffer_donor = true}" if donated and donated[i] else "" for i in range(len(inputs))]
    results = emit.program(jaxpr, inputs)
    main = _function_text("public", "main", jaxpr, inputs, attributes, emit.lines, results)
    module = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return "\n".join([f"module @{module} {{", main, *emit.functions, "}"]) + "\n", emit.callbacks
