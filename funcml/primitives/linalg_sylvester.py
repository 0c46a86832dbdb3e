"""Sylvester's equation.

    sylvester : a [.., m, m], b [.., n, n], c [.., m, n] -> x [.., m, n]        a x + x b = c
"""

from __future__ import annotations

from funcml.core.linear import is_undefined, is_zero
from funcml.core.tracing import bind
from funcml.primitives.elementwise import add_any, neg
from funcml.primitives.matrices import MatrixPrimitive, product, transposed
from funcml.primitives.tangents import zero_tangent

__all__ = ["sylvester", "sylvester_p"]


class Sylvester(MatrixPrimitive):
    """x, linear in c; nan where a sum of an eigenvalue of a and one of b is below `tol` in absolute value."""

    def type_rule(self, a, b, c, *, tol):
        self.batch_of(a, b, c)
        self.square(a)
        self.square(b)
        if c.shape[-2:] != (a.shape[-1], b.shape[-1]):
            raise ValueError(f"sylvester expects a [.., m, m], b [.., n, n] and c [.., m, n], got {a}, {b} and {c}")
        return c.strong()

    # a x' + x' b = c' - a' x - x b'
    def jvp_rule(self, primals, tangents, *, tol):
        a, b, _ = primals
        x = sylvester(*primals, tol=tol)
        ta, tb, tc = tangents
        parts = [] if is_zero(tc) else [tc]
        if not is_zero(ta):
            parts.append(neg(product(ta, x)))
        if not is_zero(tb):
            parts.append(neg(product(x, tb)))
        if not parts:
            return x, zero_tangent(x)
        total = parts[0]
        for part in parts[1:]:
            total = add_any(total, part)
        return x, sylvester(a, b, total, tol=tol)

    # a^T ct_c + ct_c b^T = ct
    def transpose_rule(self, ct, a, b, c, *, tol):
        if is_undefined(a) or is_undefined(b):
            raise TypeError("sylvester is linear in its last operand alone")
        return [None, None, sylvester(transposed(a), transposed(b), ct, tol=tol)]


sylvester_p = Sylvester("sylvester", (2, 2, 2))


def sylvester(a, b, c, *, tol: float = 0.0):
    """x with a x + x b = c."""
    return bind(sylvester_p, (a, b, c), {"tol": tol})
