"""What a smooth primitive is: an elementwise function with its derivatives of every order.

`orders` says which derivative it is. A row may give the tangent by an operand in closed form; by the others the lowering
differentiates its own program, forward and element by element.
"""

from __future__ import annotations

from funcml.core.tracing import bind
from funcml.primitives.elementwise import mul
from funcml.primitives.rows import FLOAT, Elementwise

__all__ = ["Smooth"]


class Smooth(Elementwise):
    """An elementwise function and all its derivatives: `orders[i]` times by operand i.

    `closed[i](t, ans, *operands, orders, **params)` is the tangent by operand i where a formula is better than the next order.
    """

    def __init__(self, name: str, arity: int, closed=None):
        closed = closed or {}
        super().__init__(name, arity, FLOAT, tangents=[closed.get(i) or self._next(i) for i in range(arity)])

    def type_rule(self, *avals, orders, **params):
        return super().type_rule(*avals)

    # D^n f' = sum over i of (D^(n + e_i) f) x_i'
    def _next(self, i: int):
        def tangent(t, ans, *operands, orders, **params):
            raised = (*orders[:i], orders[i] + 1, *orders[i + 1 :])
            return mul(t, bind(self, operands, {"orders": raised, **params}))

        return tangent
