"""`scan`: a program applied to each slice of its inputs, with a carry from step to step.

    scan[jaxpr, length, reverse, unroll, n_consts, n_carry]  consts, carry, xs  ->  carry, ys

    jaxpr: (consts..., carry..., one slice of each of xs...) -> (carry..., one slice of each of ys...)

`xs` and `ys` have the steps as their leading axis. Which parts of the carry have a tangent, are unknown or are mapped is the
least fixpoint of what one step makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml import dtypes
from funcml.control_flow.programs import check_carry, grown, inlined, joined_carry, parts, rearranged, recorded
from funcml.core.check import checked
from funcml.core.ir import Eqn, Jaxpr, Primitive, Var, effectful, intern
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import aval_of, bind, eval_jaxpr
from funcml.primitives.axes import moveaxis
from funcml.primitives.batching import spread_at_front
from funcml.primitives.elementwise import add_any
from funcml.primitives.tangents import instantiate, tangent_aval, zeros
from funcml.transforms.costs import OPERATIONS_PER_BYTE, is_cheap, operations
from funcml.transforms.jet import coefficients_of, gathered, jet_jaxpr, moves
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.minimum_cut import Recomputation
from funcml.transforms.partial_eval import EqnSplit, Split, known_again, partial_eval
from funcml.transforms.simplify import dce
from funcml.transforms.transpose import transpose_jaxpr
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["scan", "scan_p"]


class Scan(Primitive):
    """See the module."""

    multiple_results = True
    holds_jaxpr = True
    takes_masks = True

    def type_rule(self, *avals, jaxpr, length, n_consts, n_carry, **params):
        consts, carry, xs = parts(avals, n_consts, n_carry)
        for x in xs:
            if x.ndim == 0 or x.shape[0] != length:
                raise TypeError(f"scan over {length} steps expects that many slices along the leading axis, got {x}")
        given = [*consts, *carry, *[_slice_aval(x) for x in xs]]
        if len(given) != len(jaxpr.invars):
            raise TypeError(f"scan of a program of {len(jaxpr.invars)} inputs got {len(given)}")
        for aval, var in zip(given, jaxpr.invars, strict=True):
            if aval.strong() is not var.aval.strong():
                raise TypeError(f"scan: the program of one step expects {var.aval}, got {aval}")
        carry_out, ys = parts(jaxpr.out_avals, n_carry)
        check_carry("scan", carry, carry_out)
        return (*joined_carry(carry, carry_out), *[_stacked_aval(y, length) for y in ys])

    def jvp_rule(self, primals, tangents, *, jaxpr, n_consts, n_carry, **params):
        n_ys = len(jaxpr.outs) - n_carry
        given = [type(t) is not Zero for t in tangents]
        move_consts, move_carry, move_xs = parts(given, n_consts, n_carry)

        def step(carry):
            return jvp_jaxpr(jaxpr, (*move_consts, *carry, *move_xs)).info[:n_carry]

        move_carry = grown(move_carry, step)
        nonzero = (*move_consts, *move_carry, *move_xs)
        new, captured, has_tangent = jvp_jaxpr(jaxpr, nonzero, (*move_carry, *[False] * n_ys))
        t_consts, t_carry, t_xs = parts(tangents, n_consts, n_carry)
        t_consts, t_xs = [[t for t in ts if type(t) is not Zero] for ts in (t_consts, t_xs)]
        t_carry = [instantiate(t) for t, moves in zip(t_carry, move_carry, strict=True) if moves]

        lengths = (len(captured), n_consts, n_carry, len(move_xs), len(t_consts), len(t_carry))
        values = [*captured, *primals, *t_consts, *t_carry, *t_xs]
        outs, moved = _pushed(new, values, lengths, n_ys, params)
        moving = iter(moved)
        return outs, [next(moving) if has else Zero(tangent_aval(aval_of(x))) for x, has in zip(outs, has_tangent, strict=True)]

    def jet_rule(self, order, inputs, *, jaxpr, n_consts, n_carry, **params):
        n_ys = len(jaxpr.outs) - n_carry
        consts, carry, xs = parts([moves(x) for x in inputs], n_consts, n_carry)

        def step(carry):
            return jet_jaxpr(jaxpr, order, (*consts, *carry, *xs)).info[:n_carry]

        carry = grown(carry, step)
        moving = (*consts, *carry, *xs)
        new, captured, has = jet_jaxpr(jaxpr, order, moving, (*carry, *[False] * n_ys))
        lengths = (len(captured), n_consts, n_carry, len(xs), order * sum(consts), order * sum(carry))
        values = [*captured, *[x[0] for x in inputs], *coefficients_of(inputs, moving)]
        outs, above = _pushed(new, values, lengths, n_ys, params)
        return gathered(order, outs, above, has)

    def batch_rule(self, axis, operands, dims, *, jaxpr, n_consts, n_carry, **params):
        consts, carry, xs = parts(operands, n_consts, n_carry)
        const_dims, carry_dims, xs_dims = parts(dims, n_consts, n_carry)
        xs = [x if d is None else moveaxis(x, d, 1) for x, d in zip(xs, xs_dims, strict=True)]
        slice_dims = [None if d is None else 0 for d in xs_dims]

        def dims_in(mapped):
            return (*const_dims, *[0 if m else None for m in mapped], *slice_dims)

        def step(mapped):
            return [d is not None for d in vmap_jaxpr(jaxpr, axis, dims_in(mapped)).info[:n_carry]]

        mapped = grown([d is not None for d in carry_dims], step)
        carry = [spread_at_front(axis, x, d) if m else x for x, d, m in zip(carry, carry_dims, mapped, strict=True)]
        found = vmap_jaxpr(jaxpr, axis, dims_in(mapped)).info
        out_dims = tuple([0 if m else None for m in (*mapped, *[d is not None for d in found[n_carry:]])])
        new, captured, _ = vmap_jaxpr(jaxpr, axis, dims_in(mapped), out_dims)
        outs = scan(intern(new), [*captured, *consts], carry, xs, **params)
        return outs, [*out_dims[:n_carry], *[None if d is None else 1 for d in out_dims[n_carry:]]]

    def partial_eval_rule(self, unknown_in, eqn):
        return _split(unknown_in, eqn)

    def transpose_rule(self, cts, *operands, masks, **params):
        return _transposed(cts, masks, operands, **params)


scan_p = Scan("scan")


def _pushed(new: Jaxpr, values, lengths, n_ys: int, params: dict) -> tuple[list, list]:
    """A scan of a program (captured, consts, carry, x, what moves of each) -> (carry, y, what moves of each), on such values.

    `lengths` are those of all inputs but the last. Gives the results of (carry, ys), and what moves of them.
    """
    held, consts, carry, xs, of_consts, of_carry, of_xs = parts(new.invars, *lengths)
    n_carry, n_moving = len(carry), len(of_carry)
    outs = parts(new.outs, n_carry, n_ys, n_moving)
    body = rearranged(
        new, [*held, *consts, *of_consts, *carry, *of_carry, *xs, *of_xs], [*outs[0], *outs[2], *outs[1], *outs[3]]
    )
    held, consts, carry, xs, of_consts, of_carry, of_xs = parts(values, *lengths)
    found = scan(body, [*held, *consts, *of_consts], [*carry, *of_carry], [*xs, *of_xs], **params)
    carry, of_carry, ys, of_ys = parts(found, n_carry, n_moving, n_ys)
    return [*carry, *ys], [*of_carry, *of_ys]


def scan(jaxpr: Jaxpr, consts, carry, xs, *, length: int, reverse: bool = False, unroll: int = 1) -> list:
    """Runs an interned program over the leading axis of `xs`: final carry and stacked outputs."""
    params = {
        "jaxpr": jaxpr,
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
        "n_consts": len(consts),
        "n_carry": len(carry),
    }
    return bind(scan_p, [*consts, *carry, *xs], params)


def _slice_aval(aval):
    return aval.update(shape=aval.shape[1:])


def _stacked_aval(aval, length: int):
    return aval.update(shape=(length, *aval.shape))


# ---- the steps backwards -----------------------------------------------------------------------------------------


def _transposed(cts, masks, operands, *, jaxpr, length, reverse, unroll, n_consts, n_carry):
    """Cotangents of the linear operands, and the masks of those of xs and of the carry.

    The carry of the backward scan is the sums for linear consts, the cotangents of the carry, and their masks. The program is
    linear in its whole carry: a part that is known can only be a zero that was made into an array.
    """
    consts, carry, xs = parts(operands, n_consts, n_carry)
    linear = (*map(is_undefined, consts), *[True] * n_carry, *map(is_undefined, xs))
    n_sums = sum(map(is_undefined, consts))
    nonzero = (*[True] * n_carry, *[type(ct) is not Zero for ct in cts[n_carry:]])
    masks = _starting_masks(cts, masks, n_carry)
    y_masked = [m is not None for m in masks[n_carry:]]

    def back(carry_masked):
        return transpose_jaxpr(jaxpr, linear, nonzero, (*carry_masked, *y_masked), True)

    def lost(unmasked):  # a mask that some step does not give back cannot be carried
        has_mask = back([not u for u in unmasked]).info[1]
        return [not m for m in has_mask[n_sums : n_sums + n_carry]]

    carry_masked = [not u for u in grown([m is None for m in masks[:n_carry]], lost)]
    new, captured, (_, has_mask) = back(carry_masked)
    masked_in = [*carry_masked, *has_mask[n_sums + n_carry :]]  # of the carry and of linear xs

    known_consts, known_xs = [[x for x in values if not is_undefined(x)] for values in (consts, xs)]
    moving_ys = [ct for ct in cts[n_carry:] if type(ct) is not Zero]
    carried_masks = [m for m, kept in zip(masks, carry_masked, strict=False) if kept]
    y_masks = [m for m in masks[n_carry:] if m is not None]
    sums = [zeros(tangent_aval(x.aval)) for x in consts if is_undefined(x)]
    lengths = (len(captured) + len(known_consts), n_sums, n_carry, len(carried_masks), len(moving_ys), len(y_masks))
    n_xs = sum(map(is_undefined, xs))

    def step(*values):
        held, sums, carry, carry_masks, ct_ys, y_masks, xs = parts(values, *lengths)
        outs = eval_jaxpr(new, [*held, *xs, *carry, *ct_ys, *carry_masks, *y_masks])
        of_consts, of_carry, of_xs, found = parts(outs, n_sums, n_carry, n_xs)
        found = dict(zip([i for i, m in enumerate(has_mask) if m], found, strict=True))
        sums = [add_any(a, b) for a, b in zip(sums, of_consts, strict=True)]
        of_masks = [found[n_sums + i] for i, kept in enumerate(carry_masked) if kept]
        return [*sums, *of_carry, *of_masks, *of_xs, *[found[i] for i in found if i >= n_sums + n_carry]]

    ins = parts(new.in_avals, lengths[0], len(known_xs), n_carry, len(moving_ys), len(carried_masks))
    held, of_xs, of_carry, of_ys, of_carried_masks, of_y_masks = ins
    avals = [*held, *map(aval_of, sums), *of_carry, *of_carried_masks, *of_ys, *of_y_masks, *of_xs]
    body, _ = recorded(step, avals, "transpose")
    outs = scan(
        body,
        [*captured, *known_consts],
        [*sums, *map(instantiate, cts[:n_carry]), *carried_masks],
        [*moving_ys, *y_masks, *known_xs],
        length=length,
        reverse=not reverse,
        unroll=unroll,
    )
    sums, of_carry, carried_masks, of_xs, x_masks = parts(outs, n_sums, n_carry, len(carried_masks), n_xs)
    rest = iter([*carried_masks, *x_masks])
    found_masks = [next(rest) if m else None for m in masked_in]
    return _dealt(operands, n_consts, n_carry, sums, of_carry, of_xs), _dealt(
        operands, n_consts, n_carry, [None] * n_sums, found_masks[:n_carry], found_masks[n_carry:]
    )


def _starting_masks(cts, masks, n_carry: int) -> list:
    """The masks of the cotangents that move. If there are any, no lane is live in a part of the carry that has no cotangent."""
    held = [None if type(ct) is Zero else m for ct, m in zip(cts, masks, strict=True)]
    if all(m is None for m in held):
        return held
    return [
        zeros(ct.aval.update(dtype=dtypes.bool_)) if i < n_carry and type(ct) is Zero else m
        for i, (ct, m) in enumerate(zip(cts, held, strict=True))
    ]


def _dealt(operands, n_consts: int, n_carry: int, of_consts, of_carry, of_xs) -> list:
    """A value for each operand that is linear, None for the others; every part of the carry has one."""
    consts, carry, xs = parts(operands, n_consts, n_carry)
    of_consts, of_xs = iter(of_consts), iter(of_xs)
    return [
        *[next(of_consts) if is_undefined(x) else None for x in consts],
        *[value if is_undefined(x) else None for x, value in zip(carry, of_carry, strict=True)],
        *[next(of_xs) if is_undefined(x) else None for x in xs],
    ]


# ---- the known and the unknown half -------------------------------------------------------------------------------


def _split(unknown_in, eqn: Eqn) -> EqnSplit:
    """A scan of the known half of a step, and a scan of the unknown half.

    What is the same in every step is computed once, outside; slices of known `xs` are taken from there. Of the rest the known
    scan stacks what a minimum cut says, and the unknown one does cheap equations again from that.
    """
    params = eqn.params
    jaxpr, n_consts, n_carry = params["jaxpr"], params["n_consts"], params["n_carry"]
    u_consts, u_carry, u_xs = parts(unknown_in, n_consts, n_carry)
    n_ys = len(jaxpr.outs) - n_carry

    def split_for(carry) -> Split:
        return partial_eval(jaxpr, (*u_consts, *carry, *u_xs), (*carry, *[False] * n_ys))

    u_carry = grown(u_carry, lambda carry: split_for(carry).out_unknown[:n_carry])
    split = split_for(u_carry)
    if all(split.out_unknown):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))
    unknown = [*u_consts, *u_carry, *u_xs]
    known_atoms = [a for a, u in zip(eqn.invars, unknown, strict=True) if not u]
    known_outs = [v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if not u]
    k_consts, k_carry = u_consts.count(False), u_carry.count(False)
    known = split.known
    invariant = _invariant(known, k_consts, k_carry)
    slices = list(known.invars[k_consts + k_carry :])
    wanted = [v for v in known.outs[len(known_outs) :] if type(v) is Var]
    stacked = Recomputation(known.eqns, {*invariant, *slices}, wanted, _cost_again).kept(OPERATIONS_PER_BYTE)
    body, used = known_again(split, [*invariant, *slices, *stacked])
    flags = parts(used, len(invariant), len(slices))
    invariant, slices, stacked = [
        [v for v, is_used in zip(values, taken, strict=True) if is_used]
        for values, taken in zip((invariant, slices, stacked), flags, strict=True)
    ]
    once, fixed = _computed_once(known, known.invars[: k_consts + k_carry], invariant, known_atoms[: k_consts + k_carry])
    sliced = [known_atoms[known.invars.index(v)] for v in slices]
    stacks = [Var(_stacked_aval(v.aval, params["length"])) for v in stacked]

    known_body = intern(checked(dce(Jaxpr(known.invars, known.eqns, [*known.outs[: len(known_outs)], *stacked]))))
    known_params = {**params, "jaxpr": known_body, "n_consts": k_consts, "n_carry": k_carry}
    known_eqn = Eqn(scan_p, tuple(known_atoms), tuple([*known_outs, *stacks]), known_params, eqn.source)

    given = parts(body.invars, len(invariant), len(slices) + len(stacked), u_consts.count(True), u_carry.count(True))
    held, from_slices, consts_in, carry_in, xs_in = given
    body = rearranged(body, [*held, *consts_in, *carry_in, *from_slices, *xs_in])
    unknown_atoms = [a for a, u in zip(eqn.invars, unknown, strict=True) if u]
    consts, carry, xs = parts(unknown_atoms, len(consts_in), len(carry_in))
    unknown_params = {**params, "jaxpr": body, "n_consts": len(fixed) + len(consts), "n_carry": len(carry)}
    unknown_eqn = Eqn(
        scan_p,
        tuple([*fixed, *consts, *carry, *sliced, *stacks, *xs]),
        tuple([v for v, u in zip(eqn.outvars, split.out_unknown, strict=True) if u]),
        unknown_params,
        eqn.source,
    )
    return EqnSplit([*once, known_eqn], [unknown_eqn], list(split.out_unknown))


def _invariant(known: Jaxpr, n_consts: int, n_carry: int) -> list[Var]:
    """What is the same in every step: consts, what a step leaves in the carry as it is, and what follows from these."""
    carry = known.invars[n_consts : n_consts + n_carry]
    same = [*known.invars[:n_consts], *[v for v, left in zip(carry, known.outs, strict=False) if v is left]]
    fixed = dict.fromkeys(same)
    for eqn in known.eqns:
        if not effectful(eqn) and all(type(a) is not Var or a in fixed for a in eqn.invars):
            fixed.update(dict.fromkeys(eqn.outvars))
    return list(fixed)


def _cost_again(eqn: Eqn) -> int | None:
    """The operations of an equation that is better computed again in a step than stacked, if it is cheap."""
    return operations(eqn) if is_cheap(eqn) else None


def _computed_once(jaxpr: Jaxpr, inputs: Sequence[Var], wanted: list[Var], atoms: list) -> tuple[list[Eqn], list]:
    """The equations that lead from some inputs of `jaxpr` to the variables `wanted`, on other atoms; and those."""
    needed, kept = set(wanted), []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            kept.append(eqn)
            needed.update(eqn.invars)
    return inlined(Jaxpr(inputs, kept[::-1], wanted), atoms)
