"""Taylor mode: a program becomes the program of its result's Taylor series along a curve.

    jet_jaxpr : a -> b   |->   (a_0, .., a_n) -> (b_0, .., b_n)          x(t) = sum of x_k t^k  |->  f(x(t))

There is no table of rules: they follow from `jvp_rule`. For y = f(x), y' = D(x, x') is a program of primitives too, so

    y_k = (coefficient k - 1 of D(x(t), x'(t))) / k

and coefficients are computed on demand, each once: where D uses y again (exp), or a function whose derivative uses y (tanh),
lower coefficients are there already. So n coefficients cost O(n^2), not O(2^n) as n nested derivatives do. Three kinds of
operations need no D, and are recognised by it: linear ones, where D does not depend on x; bilinear ones, which are
convolutions; and div. (A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., 2008, chapter 13.)
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml import dtypes
from funcml.core.ir import Eqn, Jaxpr, Var, intern, memoised
from funcml.core.tracing import aval_of, rebind, require_frame, trace
from funcml.primitives.elementwise import add_any, div, mul, sub
from funcml.primitives.tangents import zeros
from funcml.transforms.call import Call
from funcml.transforms.custom_call import CustomCall
from funcml.transforms.jvp import jvp_jaxpr
from funcml.transforms.rewriting import Rewritten, remembered
from funcml.transforms.simplify import dce

__all__ = ["coefficients_of", "evaluate_jet", "gathered", "jet_jaxpr", "moves"]


class _Series:
    """The Taylor coefficients of a value, computed when asked for; None stands for zero. `moves` is false for a constant."""

    moves = True

    def __init__(self):
        self.found: list = []

    def coefficient(self, k: int):
        """Coefficient k."""
        while len(self.found) <= k:
            self.found.append(self.compute(len(self.found)))
        return self.found[k]

    def compute(self, k: int):
        """Coefficient k, given that the lower ones are known."""
        raise NotImplementedError


class _Given(_Series):
    """A value whose coefficients are given."""

    def __init__(self, coefficients: Sequence):
        super().__init__()
        self.found = list(coefficients)
        self.moves = any(c is not None for c in coefficients[1:])

    def compute(self, k: int):
        return None


class _Derivative(_Series):
    """x' for x: coefficient k is (k + 1) x_{k+1}."""

    def __init__(self, of: _Series):
        super().__init__()
        self.of = of

    def compute(self, k: int):
        return _scaled(self.of.coefficient(k + 1), k + 1)


class _Result(_Series):
    """Result `index` of an equation."""

    def __init__(self, application: _Application, index: int, moves: bool):
        super().__init__()
        self.application, self.index, self.moves = application, index, moves

    def compute(self, k: int):
        if k and not self.moves:
            return None
        return self.application.coefficients(k)[self.index]


class _Application:
    """An equation applied to series, one for each operand that is no literal."""

    def __init__(self, graph: _Graph, eqn: Eqn, operands: Sequence[_Series]):
        self.graph, self.eqn, self.operands = graph, eqn, operands
        self.moving = tuple([x.moves for x in operands])
        self.known: list[list] = []
        self.through: list[_Series | None] | None = None
        single = _single(eqn)
        has_tangent = jvp_jaxpr(single, self.moving).info if any(self.moving) else (False,) * len(eqn.outvars)
        self.results = [_Result(self, i, has) for i, has in enumerate(has_tangent)]
        self.kind = _kind(single, self.moving) if any(has_tangent) else "constant"

    def coefficients(self, k: int) -> list:
        """Coefficient k of each result."""
        while len(self.known) <= k:
            self.known.append(self.compute(len(self.known)))
        return self.known[k]

    def compute(self, k: int) -> list:
        if k == 0:
            return self.applied([x.coefficient(0) for x in self.operands])
        return getattr(self, self.kind)(k)

    def applied(self, values: Sequence) -> list:
        """The equation on values."""
        rest = iter(values)
        return rebind(self.eqn, [next(rest) if type(a) is Var else a for a in self.eqn.invars])

    def linear(self, k: int) -> list:
        """y_k = D(x_0, x_k), where D depends on what does not move only."""
        tangents = [x.coefficient(k) if x.moves else None for x in self.operands]
        return self.tangent_program(tangents)

    def tangent_program(self, tangents: Sequence) -> list:
        nonzero = tuple([t is not None for t in tangents])
        if not any(nonzero):
            return [None] * len(self.results)
        program, captured, has_tangent = _tangents(_single(self.eqn), nonzero)
        primals = [x.coefficient(0) for x in self.operands]
        outs = iter(_evaluated(program, [*captured, *primals, *[t for t in tangents if t is not None]]))
        return [next(outs) if has else None for has in has_tangent]

    def bilinear(self, k: int) -> list:
        """y_k = sum over i + j = k of f(a_i, b_j)."""
        a, b = self.operands
        total = None
        for i in range(k + 1):
            x, y = a.coefficient(i), b.coefficient(k - i)
            if x is not None and y is not None:
                (term,) = self.applied([x, y])
                total = _sum(total, term)
        return [total]

    def quotient(self, k: int) -> list:
        """b y = a   =>   y_k = (a_k - sum over j = 1..k of b_j y_{k-j}) / b_0."""
        b = self.operands[-1]
        above = self.operands[0].coefficient(k) if len(self.operands) == 2 else None
        total = None
        for j in range(1, k + 1):
            x, y = b.coefficient(j), self.results[0].coefficient(k - j)
            if x is not None and y is not None:
                total = _sum(total, mul(x, y))
        if total is not None:
            above = sub(_like(above, total), total)
        return [None if above is None else div(above, _like(b.coefficient(0), above))]

    def by_derivative(self, k: int) -> list:
        """y_k = (coefficient k - 1 of D(x, x')) / k."""
        if self.through is None:
            program, captured, has_tangent = _tangents(_single(self.eqn), self.moving)
            inputs = [*[_Given([c]) for c in captured], *self.operands, *[_Derivative(x) for x in self.operands if x.moves]]
            found = iter(self.graph.apply(program, inputs))
            self.through = [next(found) if has else None for has in has_tangent]
        return [None if d is None else _scaled(d.coefficient(k - 1), 1 / k) for d in self.through]

    def constant(self, k: int) -> list:
        return [None] * len(self.results)


class _Graph:
    """Series by what they are: one application of a primitive to the same series is one object."""

    def __init__(self, order: int):
        self.order = order
        self.applications: dict[tuple, _Application] = {}

    def apply(self, jaxpr: Jaxpr, inputs: Sequence[_Series]) -> list[_Series]:
        """The outputs of a program on series."""
        env: dict[Var, _Series] = dict(zip(jaxpr.invars, inputs, strict=True))
        frame = require_frame()
        outer_stamp = frame.stamp
        for eqn in jaxpr.eqns:
            frame.stamp = outer_stamp or eqn.source
            env.update(zip(eqn.outvars, self.results(eqn, env), strict=True))
        frame.stamp = outer_stamp
        return [env[a] if type(a) is Var else _Given([a]) for a in jaxpr.outs]

    def results(self, eqn: Eqn, env: dict[Var, _Series]) -> Sequence[_Series]:
        primitive = eqn.primitive
        operands = [env[a] if type(a) is Var else _Given([a]) for a in eqn.invars]
        if isinstance(primitive, Call) and not isinstance(primitive, CustomCall) and any(x.moves for x in operands):
            return self.apply(eqn.params["jaxpr"], operands)
        if primitive.holds_jaxpr and not isinstance(primitive, Call) and any(x.moves for x in operands):
            return self.whole(eqn, operands)
        key = (
            primitive,
            tuple(eqn.params.items()),
            *[id(env[a]) if type(a) is Var else a.key() for a in eqn.invars],
        )
        found = self.applications.get(key)
        if found is None:
            variables = [x for x, a in zip(operands, eqn.invars, strict=True) if type(a) is Var]
            found = self.applications[key] = _Application(self, eqn, variables)
            for result in found.results:
                result.coefficient(0)
        return found.results

    def whole(self, eqn: Eqn, operands: Sequence[_Series]) -> Sequence[_Series]:
        """The results of control flow: its `jet_rule` takes and gives all coefficients at once."""
        given = [[x.coefficient(k) for k in range(self.order + 1)] for x in operands]
        outs = eqn.primitive.jet_rule(self.order, given, **eqn.params)
        return [_Given(coefficients) for coefficients in outs]


def _scaled(x, factor: float):
    if x is None or factor == 1:
        return x
    return mul(x, aval_of(x).dtype.type(factor))


def _sum(total, term):
    return term if total is None else add_any(total, term)


def _like(x, other):
    """`x` in the shape of `other`: zeros for None, and a scalar literal as it is."""
    return zeros(aval_of(other)) if x is None else x


def _evaluated(jaxpr: Jaxpr, values: Sequence) -> list:
    env: dict = dict(zip(jaxpr.invars, values, strict=True))
    for eqn in jaxpr.eqns:
        outs = rebind(eqn, [env[a] if type(a) is Var else a for a in eqn.invars])
        env.update(zip(eqn.outvars, outs, strict=True))
    return [env[a] if type(a) is Var else a for a in jaxpr.outs]


# ---- what kind of operation an equation is -------------------------------------------------------------------------


def _single(eqn: Eqn) -> Jaxpr:
    """The interned program of one equation, of its operands that are no literals."""
    atoms = tuple([Var(a.aval) if type(a) is Var else a for a in eqn.invars])
    return intern(Jaxpr([a for a in atoms if type(a) is Var], [eqn._replace(invars=atoms, source=None)], eqn.outvars))


def _tangents(single: Jaxpr, nonzero: tuple[bool, ...]) -> Rewritten:
    """The program (captured, primals, tangents) -> tangents of a program of one equation."""
    fused, captured, has_tangent = jvp_jaxpr(single, nonzero)
    outs = fused.outs[len(single.outs) :]
    return Rewritten(intern(dce(Jaxpr(fused.invars, fused.eqns, outs))), captured, has_tangent)


@memoised
def _kind(single: Jaxpr, moving: tuple[bool, ...]) -> str:
    """How the coefficients of an operation follow from those of the operands that move."""
    (eqn,) = single.eqns
    if eqn.primitive is div and moving[-1] and type(eqn.invars[1]) is Var:
        return "quotient"
    if _is_linear(single, moving):
        return "linear"
    if len(moving) == 2 and all(moving) and len(single.outs) == 1:
        if _is_linear(single, (True, False)) and _is_linear(single, (False, True)):
            return "bilinear"
    return "by_derivative"


def _is_linear(single: Jaxpr, moving: tuple[bool, ...]) -> bool:
    """Whether the derivative does not depend on the operands that move."""
    program, captured, _ = _tangents(single, moving)
    used = {a for eqn in program.eqns for a in eqn.invars} | set(program.outs)
    primals = program.invars[len(captured) : len(captured) + len(moving)]
    return not any(m and v in used for m, v in zip(moving, primals, strict=True))


# ---- the pass --------------------------------------------------------------------------------------------------


def evaluate_jet(jaxpr: Jaxpr, order: int, inputs: Sequence[Sequence]) -> list[list]:
    """Binds the Taylor coefficients of the outputs of `jaxpr` in the current frame.

    in:  for each input its coefficients 0..order; None for one that is zero
    out: the same for each output
    """
    graph = _Graph(order)
    outs = graph.apply(jaxpr, [_Given(x) for x in inputs])
    applications = list(graph.applications.values())
    for k in range(order + 1):  # in this order nothing has to be computed by deep recursion
        for application in applications:
            for result in application.results:
                if k == 0 or result.moves:
                    result.coefficient(k)
    return [[x.coefficient(k) for k in range(order + 1)] for x in outs]


@remembered
def jet_jaxpr(
    jaxpr: Jaxpr, order: int, moving: tuple[bool, ...], instantiated: tuple[bool, ...] | None = None
) -> Rewritten:
    """The program of Taylor coefficients.

    moving:       which inputs have coefficients above 0
    instantiated: which outputs must have them even where they are zero
    in:   captured..., coefficients 0 of all inputs..., coefficients 1..order of each moving input...
    out:  coefficients 0 of all outputs..., coefficients 1..order of each output for which `info` is true...
    info: which outputs have coefficients above 0
    """
    n = len(jaxpr.invars)
    found: list[bool] = []

    def series(*values):
        rest = iter(values[n:])
        inputs = [[x, *[next(rest) if m else None for _ in range(order)]] for x, m in zip(values[:n], moving, strict=True)]
        outs = evaluate_jet(jaxpr, order, inputs)
        found.extend(any(c is not None for c in out[1:]) for out in outs)
        if instantiated is not None:
            found[:] = [f or i for f, i in zip(found, instantiated, strict=True)]
        kept = [out[1:] for out, has in zip(outs, found, strict=True) if has]
        likes = [out[0] for out, has in zip(outs, found, strict=True) if has]
        above = [zeros(aval_of(x)) if c is None else c for x, cs in zip(likes, kept, strict=True) for c in cs]
        return [*[out[0] for out in outs], *above]

    avals = [v.aval for v in jaxpr.invars]
    above = [a for a, m in zip(avals, moving, strict=True) if m for _ in range(order)]
    if not all(dtypes.is_inexact(a.dtype) for a in above):
        raise TypeError("only inexact values have Taylor coefficients")
    new, captured = trace(series, [*avals, *above], "jet")
    return Rewritten(new, captured, tuple(found))


# ---- for the rules of control flow: (order, coefficients of each operand, **params) -> coefficients of each result ----


def moves(coefficients: Sequence) -> bool:
    """Whether some coefficient above 0 is not zero."""
    return any(c is not None for c in coefficients[1:])


def coefficients_of(inputs: Sequence[Sequence], moving: Sequence[bool]) -> list:
    """Coefficients 1..order of the `moving` inputs, in the order in which `jet_jaxpr` takes them; zeros as arrays."""
    return [
        zeros(aval_of(x[0])) if c is None else c for x, m in zip(inputs, moving, strict=True) if m for c in x[1:]
    ]


def gathered(order: int, outs: Sequence, above: Sequence, has: Sequence[bool]) -> list[list]:
    """The coefficients of each output, from what a program of `jet_jaxpr` gave."""
    rest = iter(above)
    return [[x, *[next(rest) if h else None for _ in range(order)]] for x, h in zip(outs, has, strict=True)]
