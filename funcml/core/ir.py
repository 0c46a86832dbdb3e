"""The program that funcml records and rewrites.

    Jaxpr = (invars, eqns, outs)        a straight-line typed program, always closed
    Eqn   = (primitive, invars, outvars, params, source)
    Var   = identity and aval           Literal = a scalar

A jaxpr has no free variables: what a function closes over is a leading input. Arrays are never part of a
program, only scalars are. Two equal programs can be mapped to one object with `intern`; passes and compiled
executables are remembered on that object (`Jaxpr.memo`).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import OrderedDict
from typing import Any, NamedTuple, final

import numpy as np

from funcml.core.avals import ShapedArray, dtype_text
from funcml.core.errors import MissingRuleError
from funcml.core.source import Source, describe

__all__ = [
    "Eqn",
    "Jaxpr",
    "Literal",
    "MappedAxis",
    "Primitive",
    "Var",
    "clear_interned",
    "effectful",
    "fresh_programs",
    "has_effects",
    "intern",
    "memoised",
    "new_eqn",
    "ordered",
    "show",
    "sub_programs",
]


@final
class Var:
    """A variable of a program. Its name exists only in print."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval})"


@final
class Literal:
    """A scalar that stands in the program itself: a Python scalar (weakly typed) or a NumPy one."""

    __slots__ = ("value", "aval")

    def __init__(self, value, aval: ShapedArray):
        self.value = value
        self.aval = aval

    def key(self) -> tuple:
        """What tells this literal from another: exact bits, so that -0.0 is not 0.0 and nan is nan."""
        value = self.value
        return (self.aval, value.tobytes() if isinstance(value, np.generic | np.ndarray) else repr(value))

    def __repr__(self) -> str:
        return f"{self.value}:{self.aval}"


class Eqn(NamedTuple):
    """One application of a primitive. `params` are static and hashable; a parameter may be a Jaxpr."""

    primitive: Primitive
    invars: tuple[Var | Literal, ...]
    outvars: tuple[Var, ...]
    params: dict[str, Any]
    source: Source | None

    def __repr__(self) -> str:
        return f"Eqn({self.primitive.name} {self.invars} -> {self.outvars})"


#: an `Eqn` of a tuple of its five fields, in half the time of `Eqn(...)`: for where most equations are made
new_eqn = functools.partial(tuple.__new__, Eqn)


class Jaxpr:
    """A closed program: `outs` as functions of `invars`, through `eqns` in order.

    `canonical` says that identity will do to compare this program: it was interned, or made by a pass that is remembered on a
    canonical one.
    """

    __slots__ = ("invars", "eqns", "outs", "memo", "canonical", "__weakref__")

    def __init__(self, invars, eqns, outs):
        self.invars: tuple[Var, ...] = tuple(invars)
        self.eqns: tuple[Eqn, ...] = tuple(eqns)
        self.outs: tuple[Var | Literal, ...] = tuple(outs)
        self.memo: dict = {}
        self.canonical = False

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Avals of the inputs."""
        return tuple([v.aval for v in self.invars])

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Avals of the outputs."""
        return tuple([v.aval for v in self.outs])

    # JAX's names for parts of a ClosedJaxpr: a program here is always closed, so it is its own, without constants.

    @property
    def jaxpr(self) -> Jaxpr:
        """The program itself."""
        return self

    @property
    def outvars(self) -> tuple[Var | Literal, ...]:
        """The outputs."""
        return self.outs

    @property
    def consts(self) -> tuple:
        """Empty: what a function closes over is among the inputs."""
        return ()

    constvars = consts

    def __str__(self) -> str:
        return show(self)

    def pretty_print(self, *, source_info: bool = False, use_color: bool = False) -> str:
        """The program as text, with the user's line of each equation if `source_info`. Text is never coloured."""
        return show(self, sources=source_info)

    __repr__ = __str__


def show(jaxpr: Jaxpr, indent: str = "", sources: bool = False) -> str:
    """The program as text, one equation a line; `sources=True` adds the user's line to each.

        { lambda a:f32[3,4] b:f32[4]. let
            c:f32[4] = mul b 2.0
          in (c,) }
    """
    names = _Names()
    head = " ".join(f"{names(v)}:{v.aval}" for v in jaxpr.invars)
    lines = [f"{{ lambda {head}. let"]
    for eqn in jaxpr.eqns:
        left = " ".join(f"{names(v)}:{v.aval}" for v in eqn.outvars)
        params, blocks = _show_params(eqn.params, indent + "    ", sources)
        right = " ".join(map(names, eqn.invars))
        where = f"    # {describe(eqn.source)}" if sources else ""
        lines.append(f"{indent}    {left} = {eqn.primitive.name}{params} {right}".rstrip() + where)
        lines.extend(blocks)
    outs = ", ".join(map(names, jaxpr.outs)) + ("," if len(jaxpr.outs) == 1 else "")
    lines.append(f"{indent}  in ({outs}) }}")
    return "\n".join(lines)


class _Names:
    """a, b, ..., z, ba, bb, ...: the name of each variable in order of first printing."""

    def __init__(self):
        self.known: dict[Var, str] = {}

    def __call__(self, atom: Var | Literal) -> str:
        if type(atom) is Literal:
            return repr(atom.value) if not hasattr(atom.value, "dtype") else str(atom.value)
        if atom not in self.known:
            n, name = len(self.known), ""
            while n or not name:
                n, digit = divmod(n, 26)
                name = chr(ord("a") + digit) + name
            self.known[atom] = name
        return self.known[atom]


def sub_programs(params: dict) -> list[Jaxpr]:
    """The programs among the parameters of an equation, alone or in a tuple."""
    found: list[Jaxpr] = []
    for value in params.values():
        if isinstance(value, Jaxpr):
            found.append(value)
        elif type(value) is tuple:
            found.extend(x for x in value if isinstance(x, Jaxpr))
    return found


def _show_params(params: dict, indent: str, sources: bool) -> tuple[str, list[str]]:
    """The parameters in brackets, and an indented block for each one that is a program."""
    inline, blocks = [], []
    for name, value in params.items():
        if isinstance(value, Jaxpr):
            blocks.append(f"{indent}  {name}={show(value, indent + '  ', sources)}")
        elif type(value) is tuple and value and all(isinstance(x, Jaxpr) for x in value):
            blocks.extend(f"{indent}  {name}[{i}]={show(x, indent + '  ', sources)}" for i, x in enumerate(value))
        elif value is not None:
            shown = _show_param(value)
            inline.append(shown if _is_record(value) else f"{name}={shown}")
    return (f"[{' '.join(inline)}]" if inline else ""), blocks


def _is_record(value) -> bool:
    """Whether `value` is a named tuple that is shown field by field: it has no text of its own."""
    return hasattr(value, "_fields") and type(value).__str__ is object.__str__


def _show_param(value) -> str:
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if _is_record(value):
        return " ".join(f"{k}={_show_param(v)}" for k, v in zip(value._fields, value, strict=True) if v != ())
    if type(value) is tuple:
        return f"({','.join(map(_show_param, value))})"
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)


class MappedAxis(NamedTuple):
    """The axis that `vmap` maps over: its length and, for collectives, its name."""

    size: int
    name: Any = None


class Primitive:
    """A first-order operation and everything that the transforms must know of it.

    A subclass or an instance overrides the rules that make sense; each default raises an error that names
    the missing rule. `multiple_results` tells whether `type_rule` gives one aval or a tuple of them, and
    whether every other rule speaks of one value or of lists. `has_effect` keeps unused equations, `is_ordered` their order;
    `holds_jaxpr` marks those with a program among their parameters, `length_varies` loops whose length depends on values.
    Masks are explained in `transforms.transpose`: `makes_masks` is for select; with `takes_masks` the transpose rule is
    given `masks=` and returns (cotangents, masks).

        type_rule         (*avals, **params) -> aval | tuple of avals
        jvp_rule          (primals, tangents, **params) -> (out, out_tangent)      a -> b |-> (a, Ta) -> (b, Tb)
        transpose_rule    (cts, *operands, **params) -> a cotangent, Zero or None for each operand
        batch_rule        (axis, operands, dims, **params) -> (out, out_dim)       a dim is an int or None
        partial_eval_rule (unknown_in, eqn) -> see transforms.partial_eval         only if params hold a jaxpr
        transpose_mask    (mask, operand_index, operands, **params) -> mask of that operand's cotangent | None
    """

    multiple_results = False
    elementwise = False
    has_effect = False
    is_ordered = False
    holds_jaxpr = False
    length_varies = False
    makes_masks = False
    takes_masks = False

    def __init__(self, name: str):
        self.name = name
        self.types: dict = {}

    def __repr__(self) -> str:
        return self.name

    def missing(self, rule: str, asked_by: str) -> MissingRuleError:
        """The error for a rule that this primitive does not have."""
        return MissingRuleError(
            f"the primitive `{self.name}` has no {rule}, which {asked_by} needs; "
            f"give it one by overriding `Primitive.{rule}`"
        )

    def type_rule(self, *avals: ShapedArray, **params):
        """Operand types to result types."""
        raise self.missing("type_rule", "recording it")

    def jvp_rule(self, primals, tangents, **params):
        """The result and its tangent."""
        raise self.missing("jvp_rule", "differentiation")

    def transpose_rule(self, cts, *operands, **params):
        """Cotangents of the operands that are `UndefinedPrimal`."""
        raise self.missing("transpose_rule", "reverse-mode differentiation")

    def batch_rule(self, axis: MappedAxis, operands, dims, **params):
        """The result for operands with one more axis at `dims`."""
        raise self.missing("batch_rule", "vmap")

    def partial_eval_rule(self, unknown_in, eqn):
        """How an equation that holds a jaxpr is split into a known and an unknown one."""
        raise self.missing("partial_eval_rule", "partial evaluation")

    def jet_rule(self, order: int, inputs, **params):
        """Taylor coefficients of the results, of an equation that holds jaxprs and is no call: see transforms.jet."""
        raise self.missing("jet_rule", "Taylor mode")

    def transpose_mask(self, mask, index, operands, **params):
        """Where the cotangent of operand `index` may be non-zero, given that of the result; None: anywhere."""
        return None

    def infer(self, avals: tuple[ShapedArray, ...], params: dict):
        """`type_rule`, remembered."""
        key = (*avals, *params.items()) if params else avals
        found = self.types.get(key)
        if found is None:
            found = self.type_rule(*avals, **params)
            if len(self.types) > 8192:
                self.types.clear()
            self.types[key] = found
        return found


def effectful(eqn: Eqn) -> bool:
    """Whether an equation does something besides giving results: itself, or in a program that it holds."""
    primitive = eqn.primitive
    return primitive.has_effect or (primitive.holds_jaxpr and any(map(has_effects, sub_programs(eqn.params))))


def has_effects(jaxpr: Jaxpr) -> bool:
    """Whether some equation of a program has an effect; remembered on the program."""
    found = jaxpr.memo.get(has_effects)
    if found is None:
        found = jaxpr.memo[has_effects] = any(map(effectful, jaxpr.eqns))
    return found


def ordered(jaxpr: Jaxpr) -> bool:
    """Whether some effect of a program has to happen in its order; remembered on the program."""
    found = jaxpr.memo.get(ordered)
    if found is None:
        found = jaxpr.memo[ordered] = any(
            eqn.primitive.is_ordered or any(map(ordered, sub_programs(eqn.params))) for eqn in jaxpr.eqns
        )
    return found


def structural_key(jaxpr: Jaxpr) -> tuple:
    """A hashable value, equal for two programs that do the same operations on the same types.

    Variables are numbered in order of appearance; sub-programs count by identity, so they are interned first.
    """
    number: dict = {v: i for i, v in enumerate(jaxpr.invars)}
    key: list = [len(number)]
    push = key.append
    for v in jaxpr.invars:
        push(v.aval)
    for primitive, invars, outvars, params, source in jaxpr.eqns:
        push(primitive)
        if source is not None and len(source) == 3:  # a name that the user gave
            push(source[2])
        for atom in invars:
            push(number[atom] if type(atom) is Var else atom.key())
        if params:
            push(tuple(params.items()))
        for v in outvars:
            number[v] = len(number)
            push(v.aval)
    push("outs")
    for atom in jaxpr.outs:
        push(number[atom] if type(atom) is Var else atom.key())
    return tuple(key)


_INTERN_LIMIT = 4096
_table: OrderedDict[tuple, Jaxpr] = OrderedDict()
_lock = threading.Lock()


def intern(jaxpr: Jaxpr) -> Jaxpr:
    """The one object that stands for all programs equal to `jaxpr`.

    The table keeps the most recently used programs; what is memoised on a program goes when it goes.
    """
    if jaxpr.canonical:
        return jaxpr
    key = structural_key(jaxpr)
    with _lock:
        found = _table.get(key)
        if found is not None:
            _table.move_to_end(key)
            return found
        jaxpr.canonical = True
        _table[key] = jaxpr
        if len(_table) > _INTERN_LIMIT:
            _table.popitem(last=False)
        return jaxpr


def clear_interned() -> None:
    """Forgets every interned program that nothing else holds, with all that is memoised on it."""
    with _lock:
        for jaxpr in _table.values():
            jaxpr.canonical = False
        _table.clear()


@contextlib.contextmanager
def fresh_programs():
    """A context in which no program of before is met: each keeps the user's lines that it was recorded from."""
    global _table
    before, _table = _table, OrderedDict()
    try:
        yield
    finally:
        clear_interned()
        _table = before


_UNCHANGED = object()  # what is remembered of a pass that gave its argument back: a program must not hold itself


def memoised(jaxpr_pass):
    """Remembers `jaxpr_pass(jaxpr, *static)` on the jaxpr; `static` must be hashable."""

    def remembered(jaxpr: Jaxpr, *static):
        key = (jaxpr_pass, *static)
        found = jaxpr.memo.get(key)
        if found is None:
            found = jaxpr_pass(jaxpr, *static)
            jaxpr.memo[key] = _UNCHANGED if found is jaxpr else found
        return jaxpr if found is _UNCHANGED else found

    remembered.__name__ = jaxpr_pass.__name__
    remembered.__doc__ = jaxpr_pass.__doc__
    remembered.__wrapped__ = jaxpr_pass
    return remembered

