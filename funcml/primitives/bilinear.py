"""What products and convolutions share: the rules of an operation that is linear in each of two operands."""

from __future__ import annotations

from funcml.core.ir import Primitive
from funcml.core.linear import is_undefined, is_zero
from funcml.core.tracing import bind
from funcml.primitives.elementwise import add_any
from funcml.primitives.tangents import zero_tangent

__all__ = ["Bilinear"]


class Bilinear(Primitive):
    """f(x, y), linear in x and in y. A subclass gives the `cotangent` of either operand."""

    # z' = f(x', y) + f(x, y')
    def jvp_rule(self, primals, tangents, **params):
        (x, y), (tx, ty) = primals, tangents
        out = bind(self, primals, params)
        left = None if is_zero(tx) else bind(self, (tx, y), params)
        right = None if is_zero(ty) else bind(self, (x, ty), params)
        if left is None or right is None:
            part = right if left is None else left
            return out, zero_tangent(out) if part is None else part
        return out, add_any(left, right)

    def transpose_rule(self, ct, x, y, **params):
        if is_undefined(x) == is_undefined(y):
            raise TypeError(f"{self.name} is linear in one operand at a time, not in both together")
        if is_undefined(x):
            return [self.cotangent(ct, x.aval, y, 0, **params), None]
        return [None, self.cotangent(ct, y.aval, x, 1, **params)]

    def cotangent(self, ct, aval, other, side: int, **params):
        """The cotangent of the operand of type `aval` on `side` (0: left, 1: right), `other` being the other one."""
        raise self.missing("cotangent", "reverse-mode differentiation")
