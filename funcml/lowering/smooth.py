"""Lowering of `Smooth` primitives: a program of primitives, and its forward derivatives.

    smooth : (kernel) -> rule                   for every order of every operand
    cases  : ((mask, value), ..., otherwise) -> value of the first mask that holds
"""

from __future__ import annotations

import functools

from funcml import dtypes
from funcml.core.tracing import aval_of, trace
from funcml.lowering.rules_elementwise import full, written
from funcml.primitives import elementwise as ew
from funcml.primitives.tangents import instantiate, zero_tangent
from funcml.transforms.jvp import evaluate_jvp

__all__ = ["cases", "smooth"]


def smooth(kernel, wide: bool = False):
    """The rule of a `Smooth` primitive: `kernel(*operands, **params)` is written with primitives that have forward derivatives.

    A `wide` one is computed in float64 whatever its operands are.
    """

    @functools.cache
    def of(orders, params):
        function = functools.partial(kernel, **dict(params))
        for i, n in enumerate(orders):
            for _ in range(n):
                function = _derivative(function, i)

        def whole(*xs):
            dtype = aval_of(xs[0]).dtype
            return ew.convert(function(*[ew.convert(x, dtypes.float64) for x in xs]), dtype) if wide else function(*xs)

        whole.__name__ = kernel.__name__
        return written(whole)

    def rule(emit, eqn, operands):
        params = dict(eqn.params)
        orders = params.pop("orders")
        return of(orders, tuple(params.items()))(emit, eqn, operands)

    return rule


def _derivative(function, i: int):
    def derivative(*xs):
        jaxpr, captured = trace(lambda *ys: [function(*ys)], [aval_of(x) for x in xs], "derivative")
        given = [*map(zero_tangent, captured), *[full(1, x) if j == i else zero_tangent(x) for j, x in enumerate(xs)]]
        _, tangents = evaluate_jvp(jaxpr, [*captured, *xs], given)
        return instantiate(tangents[0])

    return derivative


def cases(*choices):
    """The value of the first case (mask, value) that holds; the last one is a value."""
    *choices, out = choices
    for mask, value in reversed(choices):
        out = ew.select(mask, value if hasattr(value, "aval") else full(value, out), out)
    return out
