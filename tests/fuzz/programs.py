"""Random programs: their text, grown one line at a time, each line tried in NumPy before it is kept.

A program is the source of a Python function of arrays, over `xp` (the operations) and `lib` (control flow); so it runs in NumPy
and in funcml, and what a failing test prints can be pasted. A line is kept if on every example its values are finite and of
moderate size and no operand is near a jump or a kink.
"""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from tests.fuzz.reference import Loops, Watched

EXAMPLES = 3
GAP = 1e-3
LARGEST = 50.0
SHAPES = [(), (1,), (2,), (3,), (1, 3), (2, 1), (2, 3), (3, 2), (3, 3), (2, 1, 3), (2, 3, 2)]

FLOATS = """
xp.where({b},{f},{f}) xp.where({b},{f},-0.5) xp.sin({f}) xp.cos({f}) xp.tanh({f}) xp.exp({f}) xp.log({f}) xp.sqrt({f})
xp.arctan({f}) xp.sinh({f}) xp.cosh({f}) xp.log1p({f}*{f}) xp.expm1({f}) xp.arcsinh({f}) xp.abs({f}) xp.square({f})
xp.reciprocal({f}) xp.sign({f})*{f} xp.floor({f})*{f} -{f} {f}*0.5 1.5-{f} {f}**2 {f}**3 xp.clip({f},-0.5,0.75)
xp.power(xp.abs({f}),0.7) {f}+{f} {f}-{f} {f}*{f} xp.divide({f},2.0+{f}*{f}) xp.divide({f},{f}) xp.maximum({f},{f})
xp.minimum({f},{f}) xp.hypot({f},{f}+1.0) xp.arctan2({f},{f}*{f}+0.5) xp.logaddexp({f},{f}) xp.remainder({f},0.7)
{i}.astype('float64') {b}.astype('float64') {f}*{i} {f}*{b}
""".split()
OTHERS = """
xp.floor({f}).astype('int32') xp.round({f}).astype('int32') {i}+{i} {i}-{i} {i}*{i} {i}%3 {i}//2 -{i} {i}&{i} {i}|{i} {i}^{i}
{i}>>1 ~{i} xp.maximum({i},{i}) xp.where({b},{i},{i}) {b}.astype('int32') xp.less({f},{f}) xp.greater_equal({f},0.1) {i}==1
{i}<{i} {b}&{b} {b}|{b} {b}^{b} ~{b}
""".split()
REDUCTIONS = {"f": "sum prod max min mean".split(), "i": "sum max min".split(), "b": "any all".split()}
ALONG = {"f": "cumsum cumprod sort argsort argmax argmin".split(), "i": "cumsum sort argmax".split(), "b": []}
PRODUCTS = ["ij,jk->ik", "ij,kj->ik", "ij,j->i", "i,i->", "i,j->ij", "ij,ij->j", "ij->ji", "ijk,kl->ijl", "ii->i"]
MADE = {"b": ["xp.less({f}, {f})", "xp.greater_equal({f}, 0.1)"], "i": ["xp.floor({f}*1.5).astype('int32')"], "f": []}
KINDS = {"f": "f", "i": "iu", "b": "b"}


class Unfit(Exception):
    """The line that was drawn does not fit what is there."""


@dataclass(frozen=True)
class Value:
    """A variable of a program, with its value on each example."""

    name: str
    examples: tuple

    @property
    def kind(self) -> str:
        return next(k for k, codes in KINDS.items() if self.examples[0].dtype.kind in codes)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.examples[0].shape


@dataclass(frozen=True)
class Program:
    """Its source, and its arguments on each example."""

    source: str
    examples: tuple
    order: int = 1
    eager: bool = False

    def _repr_pretty_(self, printer, cycle) -> None:
        """How Hypothesis prints it."""
        given = "\n".join(f"x{i} = np.{x!r}" for i, x in enumerate(self.examples[0]))
        printer.text(f"\n{self.source}\n{given}\n")

    def over(self, xp, lib):
        """The function it is, with these operations and this control flow."""
        scope = {"xp": xp, "lib": lib}
        exec(self.source, scope)
        return scope["program"]


@dataclass
class Builder:
    """A function in the making: its lines, and what it can name."""

    draw: object
    values: list[Value]
    names: itertools.count
    scopes: list[dict]
    lines: list[str] = field(default_factory=list)

    def choose(self, options):
        options = list(options)
        if not options:
            raise Unfit
        return self.draw(st.sampled_from(options))

    def pick(self, kind: str, fits=lambda v: True) -> Value:
        """A value of a kind; the latest come first, so that programs are deep."""
        return self.choose([v for v in reversed(self.values) if v.kind in kind and fits(v)])

    def fill(self, template: str) -> str:
        """A template with values of the kinds it asks for; integers and booleans may be made of floats on the spot."""
        for kind in "bif":
            while "{" + kind + "}" in template:
                names = [v.name for v in reversed(self.values) if v.kind == kind]
                template = template.replace("{" + kind + "}", self.choose([*names, *MADE[kind]]), 1)
        return template

    def keep(self, text: str, before: str = "") -> Value:
        """Tries `name = text` on every example and keeps the line if it is sound."""
        name = f"v{next(self.names)}"
        found = tuple([_tried(scope, before, text) for scope in self.scopes])
        if len({(x.shape, x.dtype) for x in found}) > 1 or found[0].size > 24:
            raise Unfit
        for scope, x in zip(self.scopes, found, strict=True):
            scope[name] = x
        self.lines += [*before.splitlines(), f"{name} = {text}"]
        value = Value(name, found)
        self.values.append(value)
        return value

    def step(self, kinds) -> None:
        self.choose(kinds)(self)

    def grow(self, steps: int, kinds) -> None:
        for _ in range(steps):
            try:
                self.step(kinds)
            except Unfit:
                continue


def _tried(scope, before, text) -> np.ndarray:
    """The value of one line on one example."""
    watched = scope["xp"]
    watched.gap = np.inf
    try:
        with np.errstate(all="ignore"):
            if before:
                exec(before, scope)
            x = np.asarray(eval(text, scope))
    except (ValueError, TypeError, IndexError, ZeroDivisionError, np.exceptions.AxisError) as e:
        raise Unfit from e
    if x.dtype.kind in "iu":
        x = x.astype(np.int32) if np.all(np.abs(x) < 1e6) else np.full((), np.nan)
    if x.dtype.kind not in "fib" or (x.dtype.kind == "f" and not np.all(np.abs(x) < LARGEST)) or watched.gap < GAP:
        raise Unfit
    return x


def _axis(b: Builder, v: Value) -> int:
    return b.choose(range(-len(v.shape), len(v.shape)))


def elementwise(b: Builder) -> None:
    b.keep(b.fill(b.choose(FLOATS)))


def discrete(b: Builder) -> None:
    b.keep(b.fill(b.choose(OTHERS)))


def reduction(b: Builder) -> None:
    v = b.pick("fib")
    axis = b.choose([None, *range(len(v.shape))])
    b.keep(f"xp.{b.choose(REDUCTIONS[v.kind])}({v.name}, axis={axis}, keepdims={b.choose([False, True])})")


def along(b: Builder) -> None:
    v = b.pick("fi", lambda v: v.shape)
    b.keep(f"xp.{b.choose(ALONG[v.kind])}({v.name}, axis={_axis(b, v)})")


def shape(b: Builder) -> None:
    """Another order or shape of the same elements."""
    v = b.pick("fib", lambda v: v.shape)
    n = len(v.shape)
    how = b.choose("reshape flat transpose flip roll expand squeeze move".split())
    if how == "reshape":
        b.keep(f"xp.reshape({v.name}, {b.choose([v.shape[::-1], (1, *v.shape), (*v.shape, 1)])})")
    elif how == "flat":
        b.keep(f"{v.name}.ravel()")
    elif how == "transpose":
        b.keep(f"xp.transpose({v.name}, {tuple(b.draw(st.permutations(range(n))))})")
    elif how == "roll":
        b.keep(f"xp.roll({v.name}, {b.choose([-1, 1, 2])}, axis={_axis(b, v)})")
    elif how == "squeeze":
        b.keep(f"xp.squeeze({v.name})")
    elif how == "move":
        b.keep(f"xp.moveaxis({v.name}, 0, -1)")
    else:
        b.keep(f"xp.{'flip' if how == 'flip' else 'expand_dims'}({v.name}, {_axis(b, v)})")


def joining(b: Builder) -> None:
    v = b.pick("fi", lambda v: v.shape)
    w = b.pick(v.kind, lambda w: w.shape == v.shape)
    n = len(v.shape)
    how = b.choose("concatenate stack pad broadcast tile".split())
    if how in ("concatenate", "stack"):
        b.keep(f"xp.{how}([{v.name}, {w.name}], axis={_axis(b, v)})")
    elif how == "pad":
        widths = [(b.choose([0, 1]), b.choose([0, 1])) for _ in range(n)]
        b.keep(f"xp.pad({v.name}, {widths}, mode={b.choose(['constant', 'edge', 'wrap'])!r})")
    elif how == "tile":
        b.keep(f"xp.tile({v.name}, 2)")
    else:
        b.keep(f"xp.broadcast_to({v.name}, {(2, *v.shape)})")


def slicing(b: Builder) -> None:
    v = b.pick("fib", lambda v: v.shape)
    b.keep(f"{v.name}[{_index(b, v)}]")


def _index(b: Builder, v: Value) -> str:
    """The text of an index that fits a value: integers, slices, arrays of integers, new axes."""
    integers = [i.name for i in b.values if i.kind == "i" and len(i.shape) < 2]
    k = b.choose([*integers, b.fill(MADE["i"][0])])
    made = [f"{k} % {v.shape[0]}", f"..., {k} % {v.shape[-1]}"]
    return b.choose(["0", "-1", "1:", ":-1", "::-1", "::2", "..., 0", "..., None", "None", "xp.array([0, 0])", *made])


def updating(b: Builder) -> None:
    v = b.pick("f", lambda v: v.shape)
    w = b.pick("f", lambda w: len(w.shape) < len(v.shape) or w.shape == v.shape)
    index = _index(b, v)
    how = b.choose(["add", "multiply"] if "array" in index or "%" in index else ["set", "add", "multiply"])
    at = f"xp.s_[{index}]" if ":" in index or "..." in index else f"({index},)"
    b.keep(f"lib.put({v.name}, {at}, {how!r}, {w.name})")


def product(b: Builder) -> None:
    formula = b.choose(PRODUCTS)
    ranks = map(len, formula.split("->")[0].split(","))
    operands = [b.pick("f", lambda v, rank=rank: len(v.shape) == rank).name for rank in ranks]
    b.keep(f"xp.einsum({formula!r}, {', '.join(operands)})")


def _body(b: Builder, parameters: dict[str, tuple], result: str, like: list[Value]) -> tuple[str, str]:
    """A function of `parameters` (name -> examples) that returns values of the types of `like`, as `result` puts them.

    Gives its name and its text. It sees what is around it.
    """
    inside = [Value(name, examples) for name, examples in parameters.items()]
    scopes = [{**scope, **{v.name: v.examples[i] for v in inside}} for i, scope in enumerate(b.scopes)]
    inner = Builder(b.draw, [*b.values, *inside], b.names, scopes)
    inner.grow(b.draw(st.integers(1, 4)), INSIDE)
    outs = []
    for want in like:
        fits = [v for v in inner.values if v.shape == want.shape and v.kind == want.kind]
        outs.append(f"xp.tanh({inner.choose(fits[-3:]).name})" if want.kind == "f" else inner.choose(fits[-3:]).name)
    name = f"body{next(b.names)}"
    lines = [*inner.lines, "return " + result.format(*outs)]
    return name, f"def {name}({', '.join(parameters)}):\n" + textwrap.indent("\n".join(lines), "    ")


def branch(b: Builder) -> None:
    scalars = [v.name for v in b.values if v.kind == "b" and v.shape == ()]
    predicate = b.choose([*scalars, f"xp.less(xp.sum({b.pick('f').name}), 0.3)"])
    v = b.pick("f")
    one, text = _body(b, {"c": v.examples}, "{}", [v])
    other, more = _body(b, {"c": v.examples}, "{}", [v])
    b.keep(f"lib.cond({predicate}, {one}, {other}, {v.name})", f"{text}\n{more}")


def _has_rows(v: Value) -> bool:
    return v.shape[:1] > (0,)


def scanning(b: Builder) -> None:
    carry = b.pick("f")
    xs = b.pick("fi", _has_rows)
    first = Value("x", tuple([x[0] for x in xs.examples]))
    name, text = _body(b, {"c": carry.examples, "x": first.examples}, "{}, {}", [carry, carry])
    options = b.choose(["", ", reverse=True", ", unroll=2"])
    b.keep(f"lib.scan({name}, {carry.name}, {xs.name}{options})[{b.choose([0, 1])}]", text)


def counting(b: Builder) -> None:
    carry = b.pick("f")
    counts = [v.name + " % 4" for v in b.values if v.kind == "i" and v.shape == ()]
    count = b.choose(["3", f"xp.floor(xp.sum({carry.name})).astype('int32') % 4", *counts])
    name, text = _body(b, {"i": (np.int32(0),) * EXAMPLES, "c": carry.examples}, "{}", [carry])
    b.keep(f"lib.fori_loop(0, {count}, {name}, {carry.name})", text)


def going_on(b: Builder) -> None:
    """A while loop of a few steps at most, that may stop by its value before."""
    carry = b.pick("f")
    name, text = _body(b, {"c": carry.examples}, "{}", [carry])
    n = next(b.names)
    text += (
        f"\ndef going{n}(s):\n    return (s[0] < 3) & xp.less(xp.sum(s[1]), 1.3)"
        f"\ndef next{n}(s):\n    return s[0] + 1, {name}(s[1])"
    )
    b.keep(f"lib.while_loop(going{n}, next{n}, (0, {carry.name}))[1]", text)


def calling(b: Builder) -> None:
    v = b.pick("f")
    name, text = _body(b, {"c": v.examples}, "{}", [v])
    b.keep(f"lib.{b.choose(['called', 'jitted', 'checkpointed'])}({name}, {v.name})", text)


def mapping(b: Builder) -> None:
    v = b.pick("f", _has_rows)
    first = Value("c", tuple([x[0] for x in v.examples]))
    name, text = _body(b, {"c": first.examples}, "{}", [first])
    b.keep(f"lib.mapped({name}, {v.name})", text)


PLAIN = [elementwise, elementwise, elementwise, discrete, discrete, reduction, along, shape, joining, slicing, updating, product]
NESTED = [branch, scanning, counting, going_on, calling, mapping]
INSIDE = [*PLAIN, calling, branch]


def _examples(rng, kind: str, shape) -> tuple:
    """Arrays of floats, or of small integers."""
    if kind == "f":
        return tuple([np.asarray(rng.uniform(-2, 2, shape)) for _ in range(EXAMPLES)])
    return tuple([np.asarray(rng.integers(-3, 4, shape), np.int32) for _ in range(EXAMPLES)])


@st.composite
def programs(draw) -> Program:
    """Programs of two or three arrays, of up to fourteen lines."""
    inputs = []
    for i in range(draw(st.integers(2, 3))):
        shape, seed = draw(st.sampled_from(SHAPES)), draw(st.integers(0, 2**16))
        kind = "f" if i < 2 else draw(st.sampled_from("fi"))
        inputs.append(Value(f"x{i}", _examples(np.random.default_rng(seed), kind, shape)))
    scopes = [{"xp": Watched(), "lib": Loops, **{v.name: v.examples[i] for v in inputs}} for i in range(EXAMPLES)]
    b = Builder(draw, list(inputs), itertools.count(), scopes)
    b.grow(draw(st.integers(2, 8)), PLAIN)
    b.grow(draw(st.integers(0, 2)), NESTED)
    b.grow(draw(st.integers(0, 4)), PLAIN)
    made = [v for v in b.values if v not in inputs] or inputs
    outs = made[-1:] + [v for v in made[:-1] if draw(st.booleans())][-2:]
    lines = [*b.lines, f"return {', '.join(v.name for v in outs)},"]
    source = f"def program({', '.join(v.name for v in inputs)}):\n" + textwrap.indent("\n".join(lines), "    ")
    examples = tuple([tuple([v.examples[i] for v in inputs]) for i in range(EXAMPLES)])
    return Program(source, examples, draw(st.sampled_from([1, 1, 2])), draw(st.sampled_from([False, False, False, True])))
