"""Operations that leave the values alone and tell something to a transform or to the compiler.

    copy                 : x -> x     in memory of its own
    stop_gradient        : x -> x     a constant to differentiation
    name                 : x -> x     a residual that checkpoint policies may ask for by name
    optimization_barrier : xs -> xs   computed before anything that uses them is; not moved, merged or removed
"""

from __future__ import annotations

from funcml.core.ir import Primitive
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import bind
from funcml.primitives.rows import ALL, unary

__all__ = ["copy", "copy_p", "name", "name_p", "optimization_barrier", "optimization_barrier_p", "stop_gradient"]


copy_p = unary("copy", ALL, lambda t, ans, x: copy(t), lambda ct, x: ct)
stop_gradient = unary("stop_gradient", ALL)
name_p = unary("name", ALL, lambda t, ans, x, *, name: t, lambda ct, x, *, name: ct)


def copy(x):
    """`x` in a buffer of its own."""
    return copy_p(x)


def name(x, name: str):
    """`x`, known to checkpoint policies as `name`."""
    return bind(name_p, (x,), {"name": name})


class OptimizationBarrier(Primitive):
    """(x, y, ...) -> (x, y, ...), the same values."""

    multiple_results = True

    def type_rule(self, *xs):
        return xs

    # The tangents have a barrier of their own, so that they stay as apart as the values.
    def jvp_rule(self, primals, tangents):
        outs = bind(self, primals)
        moving = iter(optimization_barrier([t for t in tangents if type(t) is not Zero]))
        return outs, [t if type(t) is Zero else next(moving) for t in tangents]

    def transpose_rule(self, cts, *operands):
        moving = iter(optimization_barrier([ct for ct in cts if type(ct) is not Zero]))
        through = [ct if type(ct) is Zero else next(moving) for ct in cts]
        return [ct if is_undefined(x) else None for ct, x in zip(through, operands, strict=True)]

    def batch_rule(self, axis, operands, dims):
        return bind(self, operands), list(dims)


optimization_barrier_p = OptimizationBarrier("optimization_barrier")


def optimization_barrier(xs):
    """The values `xs` (a sequence), which XLA computes before it goes on to whatever uses them."""
    return bind(optimization_barrier_p, tuple(xs)) if xs else []
