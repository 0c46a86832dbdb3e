"""`while`: a program applied to its own result as long as another one says so.

    while[cond_jaxpr, body_jaxpr, n_cond, n_body, max_steps]  cond consts, body consts, carry  ->  carry

    cond_jaxpr: (cond consts..., carry...) -> bool[]        body_jaxpr: (body consts..., carry...) -> (carry...)

Linearisation leaves a `while` that counts its steps, and a `repeat` of as many steps, which can be transposed. Under `vmap` with
a predicate for each example the loop goes on while any of them does; the carry of those that are done stays, and where the
body contains a loop itself it is given a live example in their place. With an effect in it the loop runs for each example alone.
"""

from __future__ import annotations

from funcml import dtypes
from funcml.control_flow.cond import cond
from funcml.control_flow.lanes import each_example, has_loop, live_examples, select_examples
from funcml.control_flow.programs import check_carry, grown, joined_carry, moved_body, parts, rearranged, recorded
from funcml.control_flow.repeat import repeat_p, step_again
from funcml.control_flow.scan import scan
from funcml.core.avals import shaped
from funcml.core.ir import Eqn, Jaxpr, Literal, Primitive, Var, has_effects, intern, memoised
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind, eval_jaxpr
from funcml.primitives.axes import reduce_or
from funcml.primitives.batching import spread_at_front
from funcml.primitives.elementwise import add, convert
from funcml.primitives.tangents import instantiate, tangent_aval
from funcml.transforms.call import call_p, split_call
from funcml.transforms.jet import coefficients_of, gathered, jet_jaxpr, moves
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.partial_eval import EqnSplit, partial_eval
from funcml.transforms.policies import Automatic
from funcml.transforms.remat import checkpointed_call
from funcml.transforms.simplify import dce
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["while_loop", "while_p"]

_COUNT = shaped((), dtypes.int32)


class While(Primitive):
    """See the module."""

    multiple_results = True
    holds_jaxpr = True
    length_varies = True

    def type_rule(self, *avals, cond_jaxpr, body_jaxpr, n_cond, n_body, max_steps):
        cond_consts, body_consts, carry = parts(avals, n_cond, n_body)
        for what, jaxpr, given in (("cond", cond_jaxpr, [*cond_consts, *carry]), ("body", body_jaxpr, [*body_consts, *carry])):
            expected = jaxpr.in_avals
            if [a.strong() for a in expected] != [a.strong() for a in given]:
                raise TypeError(f"while: the program of the {what} takes {expected}, got {given}")
        if [a.strong() for a in cond_jaxpr.out_avals] != [shaped((), dtypes.bool_)]:
            raise TypeError(f"while: the condition must give one bool[], not {cond_jaxpr.out_avals}")
        check_carry("while", carry, body_jaxpr.out_avals)
        return joined_carry(carry, body_jaxpr.out_avals)

    def jvp_rule(self, primals, tangents, *, cond_jaxpr, body_jaxpr, n_cond, n_body, max_steps):
        _, t_consts, t_carry = parts(tangents, n_cond, n_body)
        move_consts, move_carry = [[type(t) is not Zero for t in ts] for ts in (t_consts, t_carry)]
        move_carry = grown(move_carry, lambda carry: jvp_jaxpr(body_jaxpr, (*move_consts, *carry)).info)
        new, captured, _ = jvp_jaxpr(body_jaxpr, (*move_consts, *move_carry), tuple(move_carry))
        t_consts = [t for t in t_consts if type(t) is not Zero]
        t_carry = [instantiate(t) for t, moves in zip(t_carry, move_carry, strict=True) if moves]
        n_carry = len(move_carry)
        body, of_carry = moved_body(new, len(captured), n_body, n_carry, len(t_consts))
        test = rearranged(cond_jaxpr, [*cond_jaxpr.invars, *[Var(v.aval) for v in of_carry]])
        cond_consts, body_consts, init = parts(primals, n_cond, n_body)
        outs = while_loop(test, body, cond_consts, [*captured, *body_consts, *t_consts], [*init, *t_carry], max_steps)
        moving = iter(outs[n_carry:])
        avals = body_jaxpr.out_avals
        return outs[:n_carry], [next(moving) if m else Zero(tangent_aval(a)) for m, a in zip(move_carry, avals, strict=True)]

    def jet_rule(self, order, inputs, *, cond_jaxpr, body_jaxpr, n_cond, n_body, max_steps):
        _, consts, carry = parts([moves(x) for x in inputs], n_cond, n_body)
        carry = grown(carry, lambda carry: jet_jaxpr(body_jaxpr, order, (*consts, *carry)).info)
        new, captured, has = jet_jaxpr(body_jaxpr, order, (*consts, *carry), tuple(carry))
        n_carry = len(carry)
        body, above_carry = moved_body(new, len(captured), n_body, n_carry, order * sum(consts))
        test = rearranged(cond_jaxpr, [*cond_jaxpr.invars, *[Var(v.aval) for v in above_carry]])
        of_cond, body_consts, init = parts(inputs, n_cond, n_body)
        body_values = [*captured, *[x[0] for x in body_consts], *coefficients_of(body_consts, consts)]
        init_values = [*[x[0] for x in init], *coefficients_of(init, carry)]
        outs = while_loop(test, body, [x[0] for x in of_cond], body_values, init_values, max_steps)
        return gathered(order, outs[:n_carry], outs[n_carry:], has)

    def batch_rule(self, axis, operands, dims, **params):
        n_cond, n_body = params["n_cond"], params["n_body"]
        carry = params["body_jaxpr"].invars[n_body:]
        kept = [out is v for out, v in zip(params["body_jaxpr"].outs, carry, strict=True)]
        if not any(kept) or all(kept):
            return self._batched(axis, operands, dims, **params)
        held = [_with_kept(values, kept, n_cond, n_body) for values in (operands, dims)]
        outs, out_dims = self._batched(axis, *held, **_kept_as_consts(kept, **params))
        rest, rest_dims = iter(outs), iter(out_dims)
        start = parts(operands, n_cond, n_body)[2], parts(dims, n_cond, n_body)[2]
        outs = [x if k else next(rest) for x, k in zip(start[0], kept, strict=True)]
        return outs, [d if k else next(rest_dims) for d, k in zip(start[1], kept, strict=True)]

    def _batched(self, axis, operands, dims, *, cond_jaxpr, body_jaxpr, n_cond, n_body, max_steps):
        cond_consts, body_consts, init = parts(operands, n_cond, n_body)
        cond_dims, body_dims, carry_dims = parts(dims, n_cond, n_body)

        def at(mapped):
            return [0 if m else None for m in mapped]

        def step(mapped):
            return [d is not None for d in vmap_jaxpr(body_jaxpr, axis, (*body_dims, *at(mapped))).info]

        mapped = grown([d is not None for d in carry_dims], step)
        (test_dim,) = vmap_jaxpr(cond_jaxpr, axis, (*cond_dims, *at(mapped))).info
        if test_dim is not None and (has_effects(cond_jaxpr) or has_effects(body_jaxpr)):
            programs = {"cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr}
            params = {**programs, "n_cond": n_cond, "n_body": n_body, "max_steps": max_steps}
            return each_example(axis, self, operands, dims, params, "while of a batch")
        if test_dim is not None:
            mapped = [True] * len(mapped)
        init = [spread_at_front(axis, x, d) if m else x for x, d, m in zip(init, carry_dims, mapped, strict=True)]
        test, test_captured, _ = vmap_jaxpr(cond_jaxpr, axis, (*cond_dims, *at(mapped)), (None if test_dim is None else 0,))
        body, captured, _ = vmap_jaxpr(body_jaxpr, axis, (*body_dims, *at(mapped)), tuple(at(mapped)))
        cond_consts, body_consts = [*test_captured, *cond_consts], [*captured, *body_consts]
        if test_dim is None:
            return while_loop(intern(test), intern(body), cond_consts, body_consts, init, max_steps), at(mapped)
        consts = (cond_consts, body_consts)
        return _while_any(axis, test, body, *consts, init, has_loop(body_jaxpr), max_steps), at(mapped)

    def partial_eval_rule(self, unknown_in, eqn):
        return (_split if eqn.params["max_steps"] is None else _split_stored)(unknown_in, eqn)

    def transpose_rule(self, cts, *operands, **params):
        raise NotImplementedError(
            "transposition of a `while` whose condition depends on what it is linear in; only a loop whose number of steps "
            "does not depend on the linear inputs is linear"
        )


while_p = While("while")


def while_loop(
    cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, cond_consts, body_consts, init, max_steps: int | None = None
) -> list:
    """The carry after the last step; the programs are interned."""
    programs = {"cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr}
    params = {**programs, "n_cond": len(cond_consts), "n_body": len(body_consts), "max_steps": max_steps}
    return bind(while_p, [*cond_consts, *body_consts, *init], params)


def _with_kept(values, kept, n_cond: int, n_body: int) -> list:
    """The values of operands, where the parts of the carry that every step gives back are consts of both programs."""
    of_test, of_body, carry = parts(values, n_cond, n_body)
    held = [x for x, k in zip(carry, kept, strict=True) if k]
    return [*of_test, *held, *of_body, *held, *[x for x, k in zip(carry, kept, strict=True) if not k]]


def _kept_as_consts(kept, *, cond_jaxpr, body_jaxpr, n_cond: int, n_body: int, max_steps) -> dict:
    """The parameters of the loop on what `_with_kept` gives."""
    test_inputs = _with_kept(cond_jaxpr.invars, kept, n_cond, 0)
    body_inputs = _with_kept(body_jaxpr.invars, kept, 0, n_body)
    n = sum(kept)
    outs = [x for x, k in zip(body_jaxpr.outs, kept, strict=True) if not k]
    return {
        "cond_jaxpr": rearranged(cond_jaxpr, [*test_inputs[: n_cond + n], *test_inputs[n_cond + 2 * n :]]),
        "body_jaxpr": rearranged(body_jaxpr, body_inputs[n:], outs),
        "n_cond": n_cond + n,
        "n_body": n_body + n,
        "max_steps": max_steps,
    }


def _while_any(axis, test, body, cond_consts, body_consts, init, nested: bool, max_steps) -> list:
    """A loop over a batch with a predicate for each example, which stands in front of the carry."""
    n_cond, n_body = len(cond_consts), len(body_consts)

    def step(*values):
        of_test, of_body, (going, *carry) = parts(values, n_cond, n_body)
        given = live_examples(axis, going, carry) if nested else carry
        moved = eval_jaxpr(body, [*of_body, *given])
        carry = [select_examples(going, new, old) for new, old in zip(moved, carry, strict=True)]
        return [*eval_jaxpr(test, [*of_test, *carry]), *carry]

    going = eval_jaxpr(test, [*cond_consts, *init])
    consts, carry_avals = [*test.in_avals[:n_cond], *body.in_avals[:n_body]], body.in_avals[n_body:]
    flags = test.out_avals[0]
    new_body, _ = recorded(step, [*consts, flags, *carry_avals], "while of a batch")
    new_test, _ = recorded(lambda going, *carry: [reduce_or(going, (0,))], [flags, *carry_avals], "while of a batch")
    return while_loop(new_test, new_body, [], [*cond_consts, *body_consts], [*going, *init], max_steps)[1:]


def _split(unknown_in, eqn: Eqn) -> EqnSplit:
    """A `while` of the known carry that counts its steps, and a `repeat` of the whole carry, without effects."""
    cond_jaxpr, body_jaxpr = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    n_cond, n_body = eqn.params["n_cond"], eqn.params["n_body"]
    u_test, u_consts, u_carry = parts(unknown_in, n_cond, n_body)

    def split_for(carry):
        return partial_eval(body_jaxpr, (*u_consts, *carry), tuple(carry))

    u_carry = grown(u_carry, lambda carry: split_for(carry).out_unknown)
    test_split = partial_eval(cond_jaxpr, (*u_test, *u_carry))
    if test_split.out_unknown[0] or all(u_carry):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))
    known = split_for(u_carry).known
    n_known = u_carry.count(False)
    step = dce(Jaxpr(known.invars, known.eqns, known.outs[:n_known]))
    test_atoms, const_atoms, init = parts(eqn.invars, n_cond, n_body)
    k_consts, k_init = [
        [a for a, u in zip(atoms, unknown, strict=True) if not u]
        for atoms, unknown in ((const_atoms, u_consts), (init, u_carry))
    ]
    n_consts = len(k_consts)

    def counted(*values):
        consts, (count, *carry) = parts(values, n_consts)
        return [add(count, 1), *eval_jaxpr(step, [*consts, *carry])]

    body, _ = recorded(counted, [*step.in_avals[:n_consts], _COUNT, *step.in_avals[n_consts:]], "counted loop")
    test = test_split.known
    test = rearranged(test, [*test.invars[:n_cond], Var(_COUNT), *test.invars[n_cond:]], test.outs[:1])
    count = Var(_COUNT)
    known_outs = [v for v, u in zip(eqn.outvars, u_carry, strict=True) if not u]
    zero = Literal(dtypes.int32.type(0), _COUNT)
    counting = Eqn(
        while_p,
        (*test_atoms, *k_consts, zero, *k_init),
        (count, *known_outs),
        {"cond_jaxpr": test, "body_jaxpr": body, "n_cond": n_cond, "n_body": n_consts, "max_steps": None},
        eqn.source,
    )
    outs = tuple([v if u else Var(v.aval) for v, u in zip(eqn.outvars, u_carry, strict=True)])
    replayed = {"jaxpr": step_again(body_jaxpr), "n_consts": n_body}
    again = Eqn(repeat_p, (count, *const_atoms, *init), outs, replayed, eqn.source)
    return EqnSplit([counting], [again], u_carry)


def _split_stored(unknown_in, eqn: Eqn) -> EqnSplit:
    """The two halves of `_stored`, as calls; of the loop itself where its condition is unknown."""
    params = eqn.params
    n_cond, n_body = params["n_cond"], params["n_body"]
    plain = _split(unknown_in, eqn._replace(params={**params, "max_steps": None}))
    if not plain.known:
        return EqnSplit([], [eqn], plain.out_unknown)
    program = _stored(params["cond_jaxpr"], params["body_jaxpr"], n_cond, n_body, params["max_steps"])
    as_call = eqn._replace(primitive=call_p, params={"jaxpr": program, "name": "while_stored"})
    return split_call(call_p, unknown_in, as_call)


@memoised
def _stored(cond_jaxpr: Jaxpr, body_jaxpr: Jaxpr, n_cond: int, n_body: int, max_steps: int) -> Jaxpr:
    """The loop as `max_steps` steps of a scan, each a branch, and a `while` for those beyond."""

    def run(*values):
        of_test, of_body, init = parts(values, n_cond, n_body)

        def take(*values):
            of_test, of_body, (_, *carry) = parts(values, n_cond, n_body)
            carry = checkpointed_call(body_jaxpr, [*of_body, *carry], "step", Automatic(None), prevent_cse=False)
            return [*eval_jaxpr(cond_jaxpr, [*of_test, *carry]), *carry]

        consts = [*of_test, *of_body]
        going = eval_jaxpr(cond_jaxpr, [*of_test, *init])
        avals = [*[aval_of(x) for x in consts], *[aval_of(x).strong() for x in (*going, *init)]]
        taken, _ = recorded(take, avals, "step of a while")
        kept, _ = recorded(lambda *values: list(values[len(consts) :]), avals, "end of a while")
        body, _ = recorded(
            lambda *values: cond(convert(values[len(consts)], dtypes.int32), (kept, taken), values), avals, "stored while"
        )
        _, *carry = scan(body, consts, [*going, *init], [], length=max_steps)
        return while_loop(cond_jaxpr, body_jaxpr, of_test, of_body, carry)

    program, _ = recorded(run, [*cond_jaxpr.in_avals[:n_cond], *body_jaxpr.in_avals], "stored while")
    return program
