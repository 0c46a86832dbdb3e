"""The pass that reads a Jacobian's pattern off a program.

    dependence : (jaxpr, values known | None, pattern | None of each input) -> pattern of each output

Each equation makes a pattern of those of its operands (None: depends on nothing). What moves elements without looking at them is
run on the numbers of the elements. An index, and a matrix that multiplies, are looked at where their values are known. What has
no rule lets every result depend on all that any operand depends on: a pattern is never too small for the function itself.

Derivatives that are zero everywhere (of floor, of comparisons, of whatever gives integers) cut the dependence. Inside
functions with a derivative of their own they do not: such a derivative may be other than the true one. One that depends on inputs
which the function ignores is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes
from funcml.core.ir import Eqn, Jaxpr, Literal, Var, effectful
from funcml.core.tracing import Tracer, bind, no_frames, rebind
from funcml.primitives.gather_scatter import GatherScatterMode, gather_p, window_sizes
from funcml.sparsity.patterns import Pattern

__all__ = ["dependence"]

_FLAT = {"floor", "ceil", "round", "sign", "stop_gradient"}
_CALLS = {"call", "checkpoint", "composite", "custom_vmap_call"}
_CUSTOM = {"custom_jvp_call", "custom_vjp_call"}
_MAX_STEPS = 256  # of a scan that is followed step by step
_MAX_TAPS = 512  # of a convolution's kernel


class _Pass:
    """One walk over a program: patterns, and what is known of the values that depend on nothing."""

    def __init__(self, jaxpr: Jaxpr, known: Sequence, given: Sequence[Pattern | None], n: int, cuts: bool):
        self.jaxpr, self.n, self.cuts = jaxpr, n, cuts
        self.patterns: dict[Var, Pattern] = {v: p for v, p in zip(jaxpr.invars, given, strict=True) if p is not None}
        self.values = {v: x for v, x in zip(jaxpr.invars, known, strict=True) if x is not None}
        self.made_by: dict[Var, Eqn] = {}

    def run(self) -> list[Pattern | None]:
        for eqn in self.jaxpr.eqns:
            self.made_by.update((v, eqn) for v in eqn.outvars)
            ins = [self.patterns.get(a) if type(a) is Var else None for a in eqn.invars]
            if all(p is None for p in ins):
                continue
            for v, p in zip(eqn.outvars, self._equation(eqn, ins), strict=True):
                if p is not None and not (self.cuts and _is_flat(v)):
                    self.patterns[v] = p
        return [self.patterns.get(a) if type(a) is Var else None for a in self.jaxpr.outs]

    def _equation(self, eqn: Eqn, ins: list) -> Sequence[Pattern | None]:
        name = eqn.primitive.name
        if self.cuts and name in _FLAT:
            return [None]
        if eqn.primitive.elementwise:
            return [self._elementwise(eqn, ins)]
        rule = _RULES.get(name)
        found = None if rule is None else rule(self, eqn, ins)
        return self._everything(eqn, ins) if found is None else found

    def _everything(self, eqn: Eqn, ins: list) -> list[Pattern]:
        """Every element of every result depends on all that any operand depends on."""
        columns = Pattern.union([p.everywhere(1) for p in ins if p is not None])
        return [columns.everywhere(_size(v)) for v in eqn.outvars]

    def _elementwise(self, eqn: Eqn, ins: list) -> Pattern:
        size = _size(eqn.outvars[0])
        return Pattern.union([p if p.shape[0] == size else p.take(np.zeros(size, int)) for p in ins if p is not None])

    def known(self, atom) -> np.ndarray | None:
        """The value of what depends on no input, computed when it is asked for; None if it is not known."""
        if type(atom) is Literal:
            return np.asarray(atom.value, atom.aval.dtype)
        if atom in self.patterns:
            return None
        if atom not in self.values and (eqn := self.made_by.get(atom)) is not None:
            operands = [self.known(a) for a in eqn.invars]
            if effectful(eqn) or any(x is None for x in operands):
                return None
            with no_frames():
                outs = rebind(eqn, operands)
            self.values.update((v, np.asarray(x)) for v, x in zip(eqn.outvars, outs, strict=True))
        found = self.values.get(atom)
        return None if found is None or isinstance(found, Tracer) else np.asarray(found)

    def inner(self, jaxpr: Jaxpr, atoms: Sequence, ins: Sequence, cuts: bool | None = None) -> list:
        """The patterns of the outputs of a program of these operands."""
        values = [self.known(a) if p is None else None for a, p in zip(atoms, ins, strict=True)]
        return _Pass(jaxpr, values, ins, self.n, self.cuts if cuts is None else cuts).run()


def dependence(jaxpr: Jaxpr, known: Sequence, given: Sequence[Pattern | None], n: int) -> list[Pattern | None]:
    """The patterns of the outputs, for inputs that depend on `n` elements as `given` says; None depends on nothing."""
    return _Pass(jaxpr, known, given, n, True).run()


def _is_flat(v: Var) -> bool:
    return not dtypes.is_inexact(v.aval.dtype)


def _size(atom) -> int:
    return math.prod(atom.aval.shape)


def _numbers(shape, start: int = 0) -> np.ndarray:
    """The number of each element."""
    return np.arange(start, start + math.prod(shape)).reshape(shape)


# ---- what moves elements

def _moved(move: Callable[..., np.ndarray]):
    """The rule of an equation of one operand that `move(numbers, **params)` does with NumPy."""

    def rule(walk: _Pass, eqn: Eqn, ins):
        return [ins[0].take(move(_numbers(eqn.invars[0].aval.shape), **eqn.params))]

    return rule


def _broadcast(x, shape, broadcast_dimensions):
    lengths = [1] * len(shape)
    for i, d in enumerate(broadcast_dimensions):
        lengths[d] = x.shape[i]
    return np.broadcast_to(x.reshape(lengths), shape)


def _sliced(x, start_indices, limit_indices, strides):
    steps = strides or [1] * x.ndim
    return x[tuple([slice(*s) for s in zip(start_indices, limit_indices, steps, strict=True)])]


def _carried(moving: Callable[[Eqn], Sequence[int]]):
    """The rule of an equation that is run on the numbers of its operands `moving(eqn)`; the others must be known."""

    def rule(walk: _Pass, eqn: Eqn, ins):
        places = list(moving(eqn))
        operands, owners, start = [], [], 0
        for i, a in enumerate(eqn.invars):
            if i in places:
                operands.append(_numbers(a.aval.shape, start).astype(np.int32))
                owners.append((i, start, start + _size(a)))
                start += _size(a)
            elif (value := walk.known(a)) is not None:
                operands.append(value)
            else:
                return None
        if start >= 2**31:
            return None
        params = {**eqn.params, "fill_value": "-1"} if eqn.params.get("fill_value") is not None else eqn.params
        with no_frames():
            outs = bind(eqn.primitive, operands, params)
        return [_shared_out(np.asarray(x), owners, ins, walk.n) for x in (outs if eqn.primitive.multiple_results else [outs])]

    return rule


def _shared_out(numbers: np.ndarray, owners, ins, n: int) -> Pattern:
    """The pattern of a result whose elements are those of operands with these numbers."""
    flat = numbers.reshape(-1).astype(np.int64)
    parts = [Pattern.empty(flat.size, n)]
    for i, start, stop in owners:
        if ins[i] is not None:
            parts.append(ins[i].take(np.where((flat >= start) & (flat < stop), flat - start, -1)))
    return Pattern.union(parts)


def _all_operands(eqn: Eqn) -> range:
    return range(len(eqn.invars))


def _cases(walk: _Pass, eqn: Eqn, ins):
    found = _CASES_KNOWN(walk, eqn, ins)
    return found or [Pattern.union([p for p in ins[1:] if p is not None] or [Pattern.empty(_size(eqn.outvars[0]), walk.n)])]


_CASES_KNOWN = _carried(lambda eqn: range(1, len(eqn.invars)))


# ---- what combines elements

def _reduced(walk: _Pass, eqn: Eqn, ins):
    """A result depends on the elements along the axes that are reduced."""
    x, axes = eqn.invars[0].aval, eqn.params["axes"]
    kept = [1 if i in axes else s for i, s in enumerate(x.shape)]
    group = np.broadcast_to(_numbers(kept), x.shape)
    return [ins[0].merged(group, _size(eqn.outvars[0]))]


def _along(axis_of: Callable[[Eqn], Sequence[int]]):
    """The rule of an equation whose results depend on whole lines of its operands, along some axes."""

    def rule(walk: _Pass, eqn: Eqn, ins):
        axes = [a % eqn.invars[0].aval.ndim for a in axis_of(eqn)]
        lines = [
            p.merged(_lines(a.aval.shape, axes), _count(a.aval.shape, axes))
            for a, p in zip(eqn.invars, ins, strict=True) if p is not None
        ]  # fmt: skip
        return [Pattern.union(lines).take(_lines(v.aval.shape, axes)) for v in eqn.outvars]

    return rule


def _lines(shape, axes) -> np.ndarray:
    """The number of the line that each element is on."""
    kept = [1 if i in axes else s for i, s in enumerate(shape)]
    return np.broadcast_to(_numbers(kept), shape)


def _count(shape, axes) -> int:
    return math.prod([s for i, s in enumerate(shape) if i not in axes])


def _product(walk: _Pass, eqn: Eqn, ins):
    """out[b, m, n] depends on x[b, m, k] where y[b, k, n] is not known to be zero, and the other way round."""
    d = eqn.params["dimension_numbers"]
    sides = []
    for side, a in enumerate(eqn.invars):
        free = d.free(side, a.aval.ndim)
        order = (*d.batch[side], *free, *d.contract[side])
        lengths = [math.prod([a.aval.shape[i] for i in part]) for part in (d.batch[side], free, d.contract[side])]
        sides.append(_numbers(a.aval.shape).transpose(order).reshape(lengths))
    (batch, m, _), n = sides[0].shape, sides[1].shape[1]
    out = _numbers((batch, m, n))
    parts = [Pattern.empty(out.size, walk.n)]
    for side, (pattern, own, other) in enumerate(zip(ins, sides, sides[::-1], strict=True)):
        if pattern is None:
            continue
        results = out if side == 0 else out.transpose(0, 2, 1)  # [batch, own free, other free]
        factor = walk.known(eqn.invars[1 - side])
        if factor is None:
            group = np.broadcast_to(_numbers((batch, own.shape[1], 1)), own.shape)
            lines = pattern.take(own).merged(group, batch * own.shape[1])
            spread = np.broadcast_to(_numbers((batch, own.shape[1], 1)), results.shape)
            parts.append(lines.gathered(results.reshape(-1), spread.reshape(-1), out.size))
        else:
            b, f, k = np.nonzero(factor.reshape(-1)[other])
            parts.append(pattern.gathered(results[b, :, f].reshape(-1), own[b, :, k].reshape(-1), out.size))
    return [Pattern.union(parts)]


def _convolution(walk: _Pass, eqn: Eqn, ins):
    """Each tap of the kernel reads one element: which, a convolution of the numbers with that tap alone tells."""
    x, kernel = eqn.invars
    if ins[1] is not None or _size(kernel) > _MAX_TAPS or _size(x) >= 2**24:
        return None
    numbers = _numbers(x.aval.shape, 1).astype(np.float32)
    parts = [Pattern.empty(_size(eqn.outvars[0]), walk.n)]
    params = {**eqn.params, "preferred_element_type": None}
    for tap in range(_size(kernel)):
        only = np.zeros(_size(kernel), np.float32)
        only[tap] = 1
        with no_frames():
            read = np.asarray(bind(eqn.primitive, [numbers, only.reshape(kernel.aval.shape)], params))
        parts.append(ins[0].take(np.rint(read).astype(np.int64) - 1))
    return [Pattern.union(parts)]


def _scattered(walk: _Pass, eqn: Eqn, ins):
    """An element depends on itself and on the updates that reach it; on all, where the indices are not known."""
    x, indices, updates = eqn.invars
    parts = [Pattern.empty(_size(x), walk.n)] if ins[0] is None else [ins[0]]
    if ins[2] is not None:
        at = walk.known(indices)
        if at is None:
            parts.append(ins[2].everywhere(_size(x)))
        else:
            places = _written(eqn, at).reshape(-1)
            parts.append(ins[2].gathered(np.maximum(places, 0), np.where(places < 0, -1, np.arange(places.size)), _size(x)))
    return [Pattern.union(parts)]


def _written(eqn: Eqn, indices: np.ndarray) -> np.ndarray:
    """The number of the element that each update goes to; -1 for one that is dropped."""
    x, _, updates = (a.aval for a in eqn.invars)
    d = eqn.params["dimension_numbers"]
    clip = eqn.params["mode"] is GatherScatterMode.CLIP
    params = {
        "dimension_numbers": d.as_gather(), "slice_sizes": window_sizes(x.ndim, updates.shape, d), "unique_indices": False,
        "indices_are_sorted": False, "mode": GatherScatterMode.CLIP if clip else GatherScatterMode.FILL_OR_DROP,
        "fill_value": None if clip else "-1",
    }  # fmt: skip
    with no_frames():
        return np.asarray(bind(gather_p, [_numbers(x.shape).astype(np.int32), indices], params)).astype(np.int64)


# ---- programs inside

def _called(walk: _Pass, eqn: Eqn, ins):
    return walk.inner(eqn.params["jaxpr"], eqn.invars, ins)


def _custom(walk: _Pass, eqn: Eqn, ins):
    return walk.inner(eqn.params["jaxpr"], eqn.invars, ins, cuts=False)


def _branches(walk: _Pass, eqn: Eqn, ins):
    found = [walk.inner(branch, eqn.invars[1:], ins[1:]) for branch in eqn.params["branches"]]
    return [_joined(outs) for outs in zip(*found, strict=True)]


def _joined(patterns):
    given = [p for p in patterns if p is not None]
    return Pattern.union(given) if given else None


def _scanned(walk: _Pass, eqn: Eqn, ins):
    """A scan is followed step by step; a long one lets everything depend on everything."""
    body, length = eqn.params["jaxpr"], eqn.params["length"]
    n_consts, n_carry = eqn.params["n_consts"], eqn.params["n_carry"]
    if length == 0 or length * max(len(body.eqns), 1) > _MAX_STEPS * 16 or length > _MAX_STEPS:
        return None
    first = n_consts + n_carry
    consts = [walk.known(a) for a in eqn.invars[:n_consts]]
    slices = [walk.known(a) for a in eqn.invars[first:]]
    carry, carry_values = ins[n_consts:first], [walk.known(a) for a in eqn.invars[n_consts:first]]
    rows: list[list] = [[] for _ in eqn.outvars[n_carry:]]
    for i in range(length)[:: -1 if eqn.params["reverse"] else 1]:
        parts = [_slice_of(a, p, i) for a, p in zip(eqn.invars[first:], ins[first:], strict=True)]
        values = [*consts, *carry_values, *[None if x is None else x[i] for x in slices]]
        outs = _Pass(body, values, [*ins[:n_consts], *carry, *parts], walk.n, walk.cuts).run()
        carry, carry_values = outs[:n_carry], [None] * n_carry
        for found, p, v in zip(rows, outs[n_carry:], body.outs[n_carry:], strict=True):
            found.append((i, Pattern.empty(_size(v), walk.n) if p is None else p))
    return [*carry, *map(_stacked, rows)]


def _slice_of(atom, pattern: Pattern | None, i: int) -> Pattern | None:
    return None if pattern is None else pattern.take(_numbers(atom.aval.shape)[i])


def _stacked(rows) -> Pattern:
    """The pattern of slices [(number, pattern)] stacked in the order of their numbers."""
    keys = [p.keys + i * p.shape[0] * p.shape[1] for i, p in sorted(rows, key=lambda row: row[0])]
    size, n = rows[0][1].shape
    return Pattern(np.concatenate(keys), (len(rows) * size, n))


_RULES: dict[str, Callable] = {
    "reshape": _moved(lambda x, shape: x),
    "transpose": _moved(lambda x, permutation: x.transpose(permutation)),
    "rev": _moved(lambda x, dimensions: np.flip(x, dimensions)),
    "slice": _moved(_sliced),
    "broadcast_in_dim": _moved(_broadcast),
    "copy": _moved(lambda x: x),
    **dict.fromkeys(("concatenate", "pad", "split"), _carried(_all_operands)),
    "optimization_barrier": lambda walk, eqn, ins: ins,
    "gather": _carried(lambda eqn: [0]),
    "dynamic_slice": _carried(lambda eqn: [0]),
    "dynamic_update_slice": _carried(lambda eqn: [0, 1]),
    "select_n": _cases,
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"), _reduced),
    **dict.fromkeys(
        ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "linear_recurrence", "top_k"),
        _along(lambda eqn: [eqn.params["axis"]]),
    ),
    "sort": _along(lambda eqn: [eqn.params["dimension"]]),
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    **dict.fromkeys(("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"), _scattered),
    **dict.fromkeys(sorted(_CALLS), _called),
    **dict.fromkeys(sorted(_CUSTOM), _custom),
    "cond": _branches,
    "scan": _scanned,
}
