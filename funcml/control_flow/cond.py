"""`cond`: one of several programs, chosen by an index.

    cond[branches] index, operands  ->  the outputs of branches[index]

The index is an i32 in range. All branches take the same inputs and give the same types. Under `vmap` with an index for each
example every branch runs on all of them and the results are selected; a branch that contains a loop sees, in the place of
an example that did not choose it, one that did, and is skipped if there is none: so it ends whenever it would end alone. With an
effect in some branch the examples are taken one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml import dtypes
from funcml.control_flow.lanes import each_example, has_loop, live_examples, select_examples
from funcml.control_flow.programs import recorded, uniform
from funcml.core.avals import shaped
from funcml.core.check import checked
from funcml.core.ir import Eqn, Jaxpr, Literal, Primitive, Var, has_effects, intern
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import bind, eval_jaxpr
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import reduce_or
from funcml.primitives.batching import spread_at_front
from funcml.primitives.tangents import tangent_aval, zeros
from funcml.transforms.jet import coefficients_of, gathered, jet_jaxpr, moves
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.partial_eval import EqnSplit, partial_eval
from funcml.transforms.simplify import dce
from funcml.transforms.transpose import transpose_jaxpr
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["cond", "cond_p", "platform_index_p"]


class Cond(Primitive):
    """See the module."""

    multiple_results = True
    holds_jaxpr = True
    takes_masks = True

    def type_rule(self, index, *avals, branches):
        if index.strong() is not shaped((), dtypes.int32):
            raise TypeError(f"cond expects an index i32[], got {index}")
        first, *others = branches
        for k, branch in enumerate(branches):
            if len(branch.invars) != len(avals):
                raise TypeError(f"cond: branch {k} takes {len(branch.invars)} operands, got {len(avals)}")
            for aval, var in zip(avals, branch.invars, strict=True):
                if aval.strong() is not var.aval.strong():
                    raise TypeError(f"cond: branch {k} expects {var.aval}, got {aval}")
        for k, branch in enumerate(others, 1):
            if [a.strong() for a in branch.out_avals] != [a.strong() for a in first.out_avals]:
                raise TypeError(f"cond: branch {k} gives {branch.out_avals}, but branch 0 gives {first.out_avals}")
        return tuple([
            a.update(weak_type=all(b.outs[i].aval.weak_type for b in branches)) for i, a in enumerate(first.out_avals)
        ])

    def jvp_rule(self, primals, tangents, *, branches):
        index, *operands = primals
        nonzero = tuple([type(t) is not Zero for t in tangents[1:]])
        has_tangent = _any_of([jvp_jaxpr(b, nonzero).info for b in branches])
        made = [jvp_jaxpr(b, nonzero, has_tangent) for b in branches]
        new, captured = uniform([(m.jaxpr, m.captured) for m in made])
        outs = cond(index, new, [*captured, *operands, *[t for t in tangents[1:] if type(t) is not Zero]])
        n = len(branches[0].outs)
        moving = iter(outs[n:])
        avals = branches[0].out_avals
        return outs[:n], [next(moving) if h else Zero(tangent_aval(a)) for h, a in zip(has_tangent, avals, strict=True)]

    def jet_rule(self, order, inputs, *, branches):
        index, *operands = inputs
        moving = tuple([moves(x) for x in operands])
        has = _any_of([jet_jaxpr(b, order, moving).info for b in branches])
        made = [jet_jaxpr(b, order, moving, has) for b in branches]
        new, captured = uniform([(m.jaxpr, m.captured) for m in made])
        outs = cond(index[0], new, [*captured, *[x[0] for x in operands], *coefficients_of(operands, moving)])
        n = len(branches[0].outs)
        return gathered(order, outs[:n], outs[n:], has)

    def batch_rule(self, axis, operands, dims, *, branches):
        index, *operands = operands
        index_dim, *dims = dims
        if index_dim is None:
            found = _any_of([[d is not None for d in vmap_jaxpr(b, axis, tuple(dims)).info] for b in branches])
            out_dims = tuple([0 if f else None for f in found])
            made = [vmap_jaxpr(b, axis, tuple(dims), out_dims) for b in branches]
            new, captured = uniform([(m.jaxpr, m.captured) for m in made])
            return cond(index, new, [*captured, *operands]), out_dims
        if any(map(has_effects, branches)):
            return each_example(axis, self, [index, *operands], [index_dim, *dims], {"branches": branches}, "cond of a batch")
        spread = [spread_at_front(axis, x, d) for x, d in zip(operands, dims, strict=True)]
        results = [_on_examples(axis, index, k, b, spread) for k, b in enumerate(branches)]
        passed = _passed_on(branches)
        outs = [
            _selected(index, cases) if i is None else operands[i]
            for cases, i in zip(zip(*results, strict=True), passed, strict=True)
        ]
        return outs, [0 if i is None else dims[i] for i in passed]

    def partial_eval_rule(self, unknown_in, eqn):
        return _split(unknown_in, eqn)

    def transpose_rule(self, cts, index, *operands, masks, branches):
        linear = tuple(map(is_undefined, operands))
        nonzero = tuple([type(ct) is not Zero for ct in cts])
        masked = tuple([m is not None for m in masks])
        made = [transpose_jaxpr(b, linear, nonzero, masked) for b in branches]
        wanted = _any_of([m.info[0] for m in made])
        avals = [tangent_aval(x.aval) for x in operands if is_undefined(x)]
        new, captured = uniform([(_with_cotangents(m, wanted, avals), m.captured) for m in made])
        consts = [x for x in operands if not is_undefined(x)]
        given = [x for x in (*cts, *masks) if x is not None and type(x) is not Zero]
        outs = iter(cond(index, new, [*captured, *consts, *given]))
        found = iter([next(outs) if w else None for w in wanted])
        cts_in = [next(found) if is_linear else None for is_linear in linear]
        return [None, *cts_in], [None] * (len(operands) + 1)


cond_p = Cond("cond")


class PlatformIndex(Primitive):
    """platform_index[platforms, has_default] = the place among `platforms` of the one that the program is lowered for, an i32.

    For another one it is their number, if there `has_default`.
    """

    def type_rule(self, *, platforms, has_default):
        return shaped((), dtypes.int32)


platform_index_p = PlatformIndex("platform_index")


def cond(index, branches: Sequence[Jaxpr], operands: Sequence) -> list:
    """The outputs of one of several interned programs; `index` is an i32 in range."""
    return bind(cond_p, [index, *operands], {"branches": tuple(branches)})


def _passed_on(branches: Sequence[Jaxpr]) -> list[int | None]:
    """For each output the number of the input that all branches give back as it is, or None."""
    places: list[dict[Var | Literal, int]] = [{v: i for i, v in enumerate(b.invars)} for b in branches]
    found = [{at.get(b.outs[k]) for at, b in zip(places, branches, strict=True)} for k in range(len(branches[0].outs))]
    return [next(iter(numbers)) if len(numbers) == 1 else None for numbers in found]


def _any_of(flags: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    return tuple([any(column) for column in zip(*flags, strict=True)])


def _with_cotangents(made, wanted, avals) -> Jaxpr:
    """A transposed branch that gives the `wanted` cotangents, zeros where it has none, and no masks."""
    has_ct, has_mask = made.info
    if has_ct == wanted and not any(has_mask):
        return made.jaxpr

    def branch(*values):
        outs = iter(eval_jaxpr(made.jaxpr, values))
        return [next(outs) if has else zeros(a) for has, w, a in zip(has_ct, wanted, avals, strict=True) if w]

    return recorded(branch, made.jaxpr.in_avals, "transpose")[0]


# ---- an index for each example ---------------------------------------------------------------------------------


def _on_examples(axis, index, k: int, branch: Jaxpr, operands: list) -> list:
    """The outputs of branch `k` on a batch, with the mapped axis in front; only those that chose it have to be right."""
    new, captured, _ = vmap_jaxpr(branch, axis, (0,) * len(operands), (0,) * len(branch.outs))
    if not has_loop(branch):
        return eval_jaxpr(new, [*captured, *operands])
    chosen = ew.eq(index, k)
    safe = live_examples(axis, chosen, operands)
    skip, _ = recorded(lambda *xs: [zeros(a) for a in new.out_avals], new.in_avals, "skipped branch")
    return cond(ew.convert(reduce_or(chosen, (0,)), dtypes.int32), [skip, intern(new)], [*captured, *safe])


def _selected(index, cases):
    """For each example the case that its index chose."""
    last = cases[-1]
    for k in reversed(range(len(cases) - 1)):
        last = select_examples(ew.eq(index, k), cases[k], last)
    return last


# ---- the known and the unknown half ----------------------------------------------------------------------------


def _split(unknown_in, eqn: Eqn) -> EqnSplit:
    """A cond of the known halves, and one of the unknown halves.

    What the halves share is the union of their residuals: inputs of the branches are passed as they are; computed values of
    one type share a place, and a branch that has none there gives zeros.
    """
    branches = eqn.params["branches"]
    index_unknown, *unknown = unknown_in
    if index_unknown:
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))
    out_unknown = _any_of([partial_eval(b, tuple(unknown)).out_unknown for b in branches])
    if all(out_unknown):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))
    splits = [partial_eval(b, tuple(unknown), out_unknown) for b in branches]
    n_known = out_unknown.count(False)
    places = _Places(splits, n_known)
    known_branches = [_known_branch(s, n_known, places, i) for i, s in enumerate(splits)]
    unknown_branches = [_unknown_branch(s, n_known, places, i) for i, s in enumerate(splits)]

    index, *atoms = eqn.invars
    known_atoms = [a for a, u in zip(atoms, unknown, strict=True) if not u]
    shared = [Var(a) for a in places.avals]
    known_outs = [v for v, u in zip(eqn.outvars, out_unknown, strict=True) if not u]
    known = Eqn(cond_p, (index, *known_atoms), (*known_outs, *shared), {"branches": tuple(known_branches)}, eqn.source)
    unknown_atoms = [a for a, u in zip(atoms, unknown, strict=True) if u]
    passed = [known_atoms[i] for i in places.passed]
    unknown_outs = tuple([v for v, u in zip(eqn.outvars, out_unknown, strict=True) if u])
    rest = Eqn(
        cond_p, (index, *passed, *shared, *unknown_atoms), unknown_outs, {"branches": tuple(unknown_branches)}, eqn.source
    )
    return EqnSplit([known], [rest], list(out_unknown))


class _Places:
    """Where the residuals of each branch go: `passed` numbers known inputs, `avals` are the types of computed residuals."""

    def __init__(self, splits, n_known: int):
        self.passed: list[int] = []
        self.avals: list = []
        self.of_branch: list[dict[Var, int]] = []
        for split in splits:
            free = list(range(len(self.avals)))
            place: dict[Var, int] = {}
            for v in split.known.outs[n_known:]:
                if v in split.known.invars:
                    position = split.known.invars.index(v)
                    if position not in self.passed:
                        self.passed.append(position)
                    continue
                place[v] = self._take(v.aval.strong(), free)
            self.of_branch.append(place)

    def _take(self, aval, free: list[int]) -> int:
        for i in free:
            if self.avals[i] is aval:
                free.remove(i)
                return i
        self.avals.append(aval)
        return len(self.avals) - 1


def _known_branch(split, n_known: int, places: _Places, k: int) -> Jaxpr:
    at = {i: v for v, i in places.of_branch[k].items()}
    known = split.known
    inner = Jaxpr(known.invars, known.eqns, [*known.outs[:n_known], *at.values()])

    def branch(*values):
        outs = eval_jaxpr(checked(dce(inner)), values)
        residuals = dict(zip(at, outs[n_known:], strict=True))
        return [*outs[:n_known], *[residuals[i] if i in residuals else zeros(a) for i, a in enumerate(places.avals)]]

    return recorded(branch, known.in_avals, "known half")[0]


def _unknown_branch(split, n_known: int, places: _Places, k: int) -> Jaxpr:
    known, unknown = split.known, split.unknown
    inner = dict(zip(known.outs[n_known:], unknown.invars, strict=False))
    passed = [inner.get(known.invars[i]) or Var(known.invars[i].aval) for i in places.passed]
    shared = [Var(a) for a in places.avals]
    for v, i in places.of_branch[k].items():
        shared[i] = inner[v]
    return intern(checked(Jaxpr([*passed, *shared, *unknown.invars[split.residuals :]], unknown.eqns, unknown.outs)))
