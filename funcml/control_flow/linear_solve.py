"""`linear_solve`: the solution of A x = b, where A is a program and a user's program solves.

    linear_solve[matvec, vecmat, solve, transpose_solve, counts]  consts of each, b  ->  x, aux

    matvec: (consts, x) -> A x      vecmat: (consts, y) -> A^T y      solve: (consts, b) -> x, aux      transpose_solve likewise

Derivatives follow from the equation, never from how it is solved:

    A x = b   =>   x' = A^-1 (b' - A' x)        b* = A^-T x*
"""

from __future__ import annotations

from typing import Any, NamedTuple

from funcml.control_flow.programs import grown, parts
from funcml.core.ir import Jaxpr, Primitive, intern
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import bind
from funcml.primitives.batching import spread_at_front
from funcml.primitives.elementwise import add_any, neg
from funcml.primitives.tangents import instantiate, tangent_aval, zero_tangent
from funcml.transforms.jvp import evaluate_jvp
from funcml.transforms.partial_eval import EqnSplit
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["Solver", "linear_solve", "linear_solve_p"]


class Solver(NamedTuple):
    """The programs of a solver, each with the values it closes over in front of its inputs."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> Solver:
        """The solver of A^T y = c."""
        return Solver(self.vecmat, self.matvec, self.transpose_solve, self.solve)


class LinearSolve(Primitive):
    """See the module. `counts` tells how many consts each program has."""

    multiple_results = True
    holds_jaxpr = True

    def type_rule(self, *avals, matvec, vecmat, solve, transpose_solve, counts):
        given = [a.strong() for a in (*parts(avals, *counts)[2], *parts(avals, *counts)[4])]
        if given != [a.strong() for a in solve.in_avals]:
            raise TypeError(f"linear_solve: the program of solve takes {solve.in_avals}, got {given}")
        return solve.out_avals

    def jvp_rule(self, primals, tangents, *, counts, **programs):
        consts, b = _divided(primals, counts)
        t_consts, t_b = _divided(tangents, counts)
        outs = self.apply(Solver(**programs), consts, b)
        x, aux = parts(outs, len(b))
        moving = [*t_consts[0], *[Zero(tangent_aval(v.aval)) for v in programs["matvec"].invars[counts[0] :]]]
        _, of_matrix = evaluate_jvp(programs["matvec"], [*consts[0], *x], moving)
        right = [_difference(t, m) for t, m in zip(t_b, of_matrix, strict=True)]
        no_aux = [zero_tangent(a) for a in aux]
        if all(type(r) is Zero for r in right):
            return outs, [*[zero_tangent(v) for v in x], *no_aux]
        found = self.apply(Solver(**programs), consts, [instantiate(r) for r in right])
        return outs, [*found[: len(b)], *no_aux]

    def transpose_rule(self, cts, *operands, counts, **programs):
        consts, b = _divided(operands, counts)
        if programs["transpose_solve"] is None:
            raise NotImplementedError(
                "reverse mode through lax.custom_linear_solve needs transpose_solve= (or symmetric=True): how to solve A^T y = c"
            )
        if any(map(is_undefined, sum(consts, []))):
            raise NotImplementedError("linear_solve is linear in the right-hand side only, not in what its programs close over")
        back = Solver(**programs).transposed()
        consts = [consts[1], consts[0], consts[3], consts[2]]
        outs = self.apply(back, consts, [instantiate(ct) for ct in cts[: len(b)]])
        return [*[None] * sum(counts), *outs[: len(b)]]

    def batch_rule(self, axis, operands, dims, *, counts, **programs):
        consts, b = _divided(operands, counts)
        const_dims, b_dims = _divided(dims, counts)

        def at(mapped):
            return [0 if m else None for m in mapped]

        def step(mapped):  # the mapped axis of x is that of b, and A must give b's back
            of_solve = vmap_jaxpr(programs["solve"], axis, (*const_dims[2], *at(mapped))).info[: len(b)]
            of_matrix = vmap_jaxpr(programs["matvec"], axis, (*const_dims[0], *at(mapped))).info
            return [s is not None or m is not None for s, m in zip(of_solve, of_matrix, strict=True)]

        mapped = grown([d is not None for d in b_dims], step)
        b = [spread_at_front(axis, x, d) if m else x for x, d, m in zip(b, b_dims, mapped, strict=True)]
        n_aux = len(programs["solve"].outs) - len(b)
        made, new_consts = [], []
        for program, values, held in zip(Solver(**programs), consts, const_dims, strict=True):
            if program is None:
                made.append(None)
                new_consts.append(values)
                continue
            out_dims = (*at(mapped), *[0] * (len(program.outs) - len(b)))
            new, captured, _ = vmap_jaxpr(program, axis, (*held, *at(mapped)), out_dims)
            made.append(intern(new))
            new_consts.append([*captured, *values])
        return self.apply(Solver(*made), new_consts, b), [*at(mapped), *[0] * n_aux]

    def partial_eval_rule(self, unknown_in, eqn):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))

    def apply(self, solver: Solver, consts, b) -> list:
        """Binds the solution for another right-hand side."""
        params = {**solver._asdict(), "counts": tuple(map(len, consts))}
        return bind(self, [*sum(map(list, consts), []), *b], params)


linear_solve_p = LinearSolve("linear_solve")


def linear_solve(programs: list[tuple[Jaxpr | None, list]], b) -> list:
    """x and aux; `programs` are matvec, vecmat, solve and transpose_solve with what they close over, as in `Solver`."""
    return linear_solve_p.apply(Solver(*[p for p, _ in programs]), [c for _, c in programs], b)


def _divided(values, counts) -> tuple[list[list], list]:
    *consts, b = parts(values, *counts)
    return consts, b


def _difference(t, moved):
    if type(moved) is Zero:
        return t
    return neg(moved) if type(t) is Zero else add_any(t, neg(moved))
