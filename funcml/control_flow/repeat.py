"""`repeat`: a program applied to its own result a number of times that is known when the loop begins.

    repeat[jaxpr, n_consts]  count, consts, carry  ->  carry            jaxpr: (consts..., carry...) -> (carry...)

It is what `fori_loop` with traced bounds leaves in a program, and what reverse mode makes of a `while`. Its transpose needs the
values of each step, last step first, and keeps a fixed number of them, whatever the count:

    the steps are divided into SLOTS segments, and the carry at the start of each is kept; the segment that the sweep is in is
    divided again in the same way, down to LEVELS; from the last of these slots a step is reached by going forward.

So LEVELS * SLOTS carries are in memory, and up to SLOTS ** LEVELS steps each step is computed LEVELS + 1 times; with r times as
many steps, r / 2 times more. This is multi-level checkpointing (A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed.,
2008, section 12.2); as the count is known when the backward sweep begins, slots need no rearrangement.
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.control_flow.lanes import each_example, select_examples
from funcml.control_flow.programs import check_carry, grown, joined_carry, moved_body, parts, recorded
from funcml.core import source
from funcml.core.avals import shaped
from funcml.core.ir import Eqn, Jaxpr, Primitive, Var, effectful, has_effects, intern
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import aval_of, bind, eval_jaxpr
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, reshape
from funcml.primitives.batching import spread_at_front
from funcml.primitives.indexing import dynamic_slice, dynamic_update_slice
from funcml.primitives.reductions import reduce_max
from funcml.primitives.tangents import instantiate, tangent_aval, zeros
from funcml.transforms.jet import coefficients_of, gathered, jet_jaxpr, moves
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.partial_eval import EqnSplit, partial_eval
from funcml.transforms.simplify import dce, dce_again
from funcml.transforms.transpose import transpose_jaxpr
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["LEVELS", "SLOTS", "repeat", "repeat_p", "step_again"]

SLOTS = 32
LEVELS = 3
_COUNT = shaped((), dtypes.int32)


class Repeat(Primitive):
    """See the module."""

    multiple_results = True
    holds_jaxpr = True
    length_varies = True

    def type_rule(self, count, *avals, jaxpr, n_consts):
        if count.strong() is not _COUNT:
            raise TypeError(f"repeat expects a count i32[], got {count}")
        if [a.strong() for a in avals] != [a.strong() for a in jaxpr.in_avals]:
            raise TypeError(f"repeat: the program of a step takes {jaxpr.in_avals}, got {avals}")
        check_carry("repeat", avals[n_consts:], jaxpr.out_avals)
        return joined_carry(avals[n_consts:], jaxpr.out_avals)

    def jvp_rule(self, primals, tangents, *, jaxpr, n_consts):
        count, *values = primals
        t_consts, t_carry = parts(tangents[1:], n_consts)
        move_consts, move_carry = [[type(t) is not Zero for t in ts] for ts in (t_consts, t_carry)]
        move_carry = grown(move_carry, lambda carry: jvp_jaxpr(jaxpr, (*move_consts, *carry)).info)
        new, captured, _ = jvp_jaxpr(jaxpr, (*move_consts, *move_carry), tuple(move_carry))
        t_consts = [t for t in t_consts if type(t) is not Zero]
        t_carry = [instantiate(t) for t, moves in zip(t_carry, move_carry, strict=True) if moves]
        n_carry = len(move_carry)
        body, _ = moved_body(new, len(captured), n_consts, n_carry, len(t_consts))
        outs = repeat(count, body, [*captured, *values[:n_consts], *t_consts], [*values[n_consts:], *t_carry])
        moving = iter(outs[n_carry:])
        avals = jaxpr.out_avals
        return outs[:n_carry], [next(moving) if m else Zero(tangent_aval(a)) for m, a in zip(move_carry, avals, strict=True)]

    def jet_rule(self, order, inputs, *, jaxpr, n_consts):
        count, *values = inputs
        consts, carry = parts([moves(x) for x in values], n_consts)
        carry = grown(carry, lambda carry: jet_jaxpr(jaxpr, order, (*consts, *carry)).info)
        new, captured, has = jet_jaxpr(jaxpr, order, (*consts, *carry), tuple(carry))
        n_carry = len(carry)
        body, _ = moved_body(new, len(captured), n_consts, n_carry, order * sum(consts))
        given_consts, init = parts(values, n_consts)
        const_values = [*captured, *[x[0] for x in given_consts], *coefficients_of(given_consts, consts)]
        outs = repeat(count[0], body, const_values, [*[x[0] for x in init], *coefficients_of(init, carry)])
        return gathered(order, outs[:n_carry], outs[n_carry:], has)

    def batch_rule(self, axis, operands, dims, *, jaxpr, n_consts):
        count, *values = operands
        count_dim, *dims = dims
        consts, carry = parts(values, n_consts)
        const_dims, carry_dims = parts(dims, n_consts)

        def at(mapped):
            return [0 if m else None for m in mapped]

        def step(mapped):
            return [d is not None for d in vmap_jaxpr(jaxpr, axis, (*const_dims, *at(mapped))).info]

        if count_dim is not None and has_effects(jaxpr):
            params = {"jaxpr": jaxpr, "n_consts": n_consts}
            return each_example(axis, self, operands, [count_dim, *dims], params, "repeat of a batch")
        mapped = [count_dim is not None or m for m in grown([d is not None for d in carry_dims], step)]
        new, captured, _ = vmap_jaxpr(jaxpr, axis, (*const_dims, *at(mapped)), tuple(at(mapped)))
        carry = [spread_at_front(axis, x, d) if m else x for x, d, m in zip(carry, carry_dims, mapped, strict=True)]
        if count_dim is None:
            return repeat(count, intern(new), [*captured, *consts], carry), at(mapped)
        return _repeat_each(count, new, [*captured, *consts], carry), at(mapped)

    def partial_eval_rule(self, unknown_in, eqn):
        return _split(unknown_in, eqn)

    def transpose_rule(self, cts, count, *operands, jaxpr, n_consts):
        return [None, *_transposed(cts, count, operands, jaxpr, n_consts)]


repeat_p = Repeat("repeat")


def repeat(count, jaxpr: Jaxpr, consts, carry) -> list:
    """The carry after `count` (i32) applications of an interned program; none, if that is negative."""
    return bind(repeat_p, [count, *consts, *carry], {"jaxpr": jaxpr, "n_consts": len(consts)})


def _repeat_each(counts, jaxpr: Jaxpr, consts, carry) -> list:
    """A count for each example: as many steps as the largest, and those that are done stay."""
    n_consts = len(consts)

    def step(*values):
        of_step, (counts, i, *carry) = parts(values, n_consts)
        going = ew.lt(broadcast_in_dim(i, aval_of(counts).shape), counts)
        moved = eval_jaxpr(jaxpr, [*of_step, *carry])
        carry = [select_examples(going, new, old) for new, old in zip(moved, carry, strict=True)]
        return [counts, ew.add(i, 1), *carry]

    avals = [*jaxpr.in_avals[:n_consts], aval_of(counts).strong(), _COUNT, *jaxpr.in_avals[n_consts:]]
    body, _ = recorded(step, avals, "repeat of a batch")
    return repeat(reduce_max(counts, (0,)), body, consts, [counts, np.int32(0), *carry])[2:]


def _split(unknown_in, eqn: Eqn) -> EqnSplit:
    """A `repeat` of the known carry, and one of all of it for the unknown, in which effects do not happen again."""
    jaxpr, n_consts = eqn.params["jaxpr"], eqn.params["n_consts"]
    u_consts, u_carry = parts(unknown_in[1:], n_consts)

    def split_for(carry):
        return partial_eval(jaxpr, (*u_consts, *carry), tuple(carry))

    u_carry = grown(u_carry, lambda carry: split_for(carry).out_unknown)
    if unknown_in[0] or all(u_carry):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))
    step = _first_outs(split_for(u_carry).known, u_carry.count(False))
    count, *atoms = eqn.invars
    known_atoms = [a for a, u in zip(atoms, [*u_consts, *u_carry], strict=True) if not u]
    known_outs = tuple([v for v, u in zip(eqn.outvars, u_carry, strict=True) if not u])
    params = {"jaxpr": step, "n_consts": u_consts.count(False)}
    known = Eqn(repeat_p, (count, *known_atoms), known_outs, params, eqn.source)
    outs = tuple([v if u else Var(v.aval) for v, u in zip(eqn.outvars, u_carry, strict=True)])
    again = {"jaxpr": step_again(jaxpr), "n_consts": n_consts}
    return EqnSplit([known], [eqn._replace(outvars=outs, params=again)], u_carry)


def step_again(jaxpr: Jaxpr) -> Jaxpr:
    """The program of a step for one more run on the same carry, in which no effect happens; raises where its result is needed."""
    again = intern(dce_again(jaxpr))
    if has_effects(again):
        found = next(eqn for eqn in again.eqns if effectful(eqn))
        raise NotImplementedError(
            "reverse mode through a loop of unknown length runs its steps again, but the derivative needs a result of "
            f"`{found.primitive.name}` at {source.describe(found.source)}, whose effect must not happen twice. Use `lax.scan`, "
            "or `pure_callback` if there is no effect"
        )
    return again


def _first_outs(jaxpr: Jaxpr, n: int) -> Jaxpr:
    return intern(dce(Jaxpr(jaxpr.invars, jaxpr.eqns, jaxpr.outs[:n])))


# ---- the steps backwards ---------------------------------------------------------------------------------------


def _transposed(cts, count, operands, jaxpr: Jaxpr, n_consts: int) -> list:
    """Cotangents of consts and carry.

    The carry is `state`, which moves by itself, and the rest, in which a step is linear. A part of the rest that is known
    can only be a zero that was made into an array.
    """
    linear_consts = [is_undefined(x) for x in operands[:n_consts]]
    linear_carry = grown(
        [is_undefined(x) for x in operands[n_consts:]],
        lambda carry: partial_eval(jaxpr, (*linear_consts, *carry), tuple(carry)).out_unknown,
    )
    consts, carry = parts(operands, n_consts)
    known_consts = [x for x, is_linear in zip(consts, linear_consts, strict=True) if not is_linear]
    state = [x for x, is_linear in zip(carry, linear_carry, strict=True) if not is_linear]
    split = partial_eval(jaxpr, (*linear_consts, *linear_carry), tuple(linear_carry))
    forward = _first_outs(split.known, len(state))
    outs = [a for a, is_linear in zip(jaxpr.outs, linear_carry, strict=True) if is_linear]
    linear_step = intern(dce(Jaxpr(jaxpr.invars, jaxpr.eqns, outs)))
    back, captured, _ = transpose_jaxpr(linear_step, (*linear_consts, *linear_carry), (True,) * len(outs), None, True)
    back = _first_outs(back, linear_consts.count(True) + len(outs))  # a step needs no masks of another
    steps = _Backwards(forward, back, [*captured], known_consts, linear_consts.count(True))

    sums = [zeros(tangent_aval(x.aval)) for x in consts if is_undefined(x)]
    moving = [instantiate(ct) for ct, is_linear in zip(cts, linear_carry, strict=True) if is_linear]
    found = steps.run(state, count, [*sums, *moving])
    of_consts, of_carry = map(iter, parts(found, len(sums)))
    linear_cts = [next(of_carry) if is_linear else None for is_linear in linear_carry]
    return [
        *[next(of_consts) if is_undefined(x) else None for x in consts],
        *[ct if is_undefined(x) else None for x, ct in zip(carry, linear_cts, strict=True)],
    ]


class _Backwards:
    """The backward sweep over steps: `bar` is the sums of the cotangents of linear consts, and the cotangents of the carry.

    forward: (consts, state) -> state        back: (captured, consts, state, cotangents) -> (of consts, of carry)
    """

    def __init__(self, forward: Jaxpr, back: Jaxpr, captured, consts, n_sums: int):
        self.forward, self.back = forward, back
        self.captured, self.consts = captured, consts
        self.n_sums, self.n_state = n_sums, len(forward.outs)
        before = len(captured) + len(consts)
        used = {a for eqn in back.eqns for a in eqn.invars} | set(back.outs)
        self.needs_state = not used.isdisjoint(back.invars[before : before + self.n_state])

    def step(self, state, bar) -> list:
        """One step back, from the state before it."""
        sums, cts = parts(bar, self.n_sums)
        of_consts, of_carry = parts(eval_jaxpr(self.back, [*self.captured, *self.consts, *state, *cts]), self.n_sums)
        return [*[ew.add_any(a, b) for a, b in zip(sums, of_consts, strict=True)], *of_carry]

    def run(self, state, count, bar) -> list:
        """`bar` after all steps, which begin at `state`, are undone."""
        if not self.needs_state:
            return _loop(count, lambda i, bar: self.step(state, bar), bar)
        strides = [count]
        for _ in range(LEVELS):
            strides.append(_divided_up(strides[-1]))
        stores = [[_slots(x) for x in state] for _ in range(LEVELS)]
        stores[0] = self.filled(stores[0], state, ew.sub(count, 1), strides[1])
        n_store = self.n_state * (LEVELS - 1)

        def undo(k, values):
            begun, held, bar = parts(values, LEVELS - 1, n_store)
            i = ew.sub(ew.sub(count, 1), k)
            start, store, new_begun, new_held = np.int32(0), stores[0], [], []
            for level in range(1, LEVELS):
                slot = ew.div(ew.sub(i, start), strides[level])
                start = ew.add(start, ew.mul(slot, strides[level]))
                fresh = ew.ne(start, begun[level - 1])
                steps = ew.select(fresh, ew.sub(i, start), np.int32(0))
                below, held = parts(held, self.n_state)
                store = self.filled(below, [_get(s, slot) for s in store], steps, strides[level + 1], fresh)
                new_begun.append(start)
                new_held += store
            slot = ew.div(ew.sub(i, start), strides[LEVELS])
            behind = ew.sub(ew.sub(i, start), ew.mul(slot, strides[LEVELS]))
            now = repeat(behind, self.forward, self.consts, [_get(s, slot) for s in store])
            return [*new_begun, *new_held, *self.step(now, bar)]

        init = [*[np.int32(-1)] * (LEVELS - 1), *sum(stores[1:], []), *bar]
        return _loop(count, undo, init)[len(init) - len(bar) :]

    def filled(self, store, state, steps, stride, fresh=None) -> list:
        """The slots with `state` in the first, and what comes every `stride` steps after it in the next, for so many steps.

        Where `fresh` is false the first slot stays, and `steps` is 0.
        """

        def keep(t, values):
            now, store = parts(values, self.n_state)
            now = eval_jaxpr(self.forward, [*self.consts, *now])
            t = ew.add(t, 1)
            slot = ew.div(t, stride)
            on_slot = ew.eq(ew.mul(slot, stride), t)
            return [*now, *[_put(s, x, slot, on_slot) for s, x in zip(store, now, strict=True)]]

        store = [_put(s, x, np.int32(0), fresh) for s, x in zip(store, state, strict=True)]
        return _loop(steps, keep, [*state, *store])[self.n_state :]


def _divided_up(length):
    """The length of each of SLOTS segments, at least 1."""
    return ew.max(ew.div(ew.add(length, np.int32(SLOTS - 1)), np.int32(SLOTS)), np.int32(1))


def _loop(count, body, carry) -> list:
    """`carry` after `carry = body(i, carry)` for i in range(count); what `body` closes over is found."""
    avals = [aval_of(x).strong() for x in carry]
    jaxpr, captured = recorded(lambda i, *values: [ew.add(i, 1), *body(i, values)], [_COUNT, *avals], "backward loop")
    return repeat(count, jaxpr, captured, [np.int32(0), *carry])[1:]


def _slots(x):
    aval = aval_of(x)
    return zeros(aval.update(shape=(SLOTS, *aval.shape)))


def _put(slots, x, slot, condition=None):
    """`slots` with `x` in one of them, where the condition holds."""
    shape = aval_of(x).shape
    if condition is not None:
        x = ew.select(broadcast_in_dim(condition, shape), x, _get(slots, slot))
    return dynamic_update_slice(slots, reshape(x, (1, *shape)), (slot, *[0] * len(shape)))


def _get(slots, slot):
    shape = aval_of(slots).shape
    return reshape(dynamic_slice(slots, (slot, *[0] * (len(shape) - 1)), (1, *shape[1:])), shape[1:])
