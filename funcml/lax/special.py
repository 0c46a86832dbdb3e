"""Special functions of several parameters, element by element."""

from __future__ import annotations

from funcml.core.tracing import aval_of
from funcml.lax.operands import matched
from funcml.lowering.execute import fused
from funcml.numpy.promotion import as_array, settle, spread
from funcml.primitives import incomplete

__all__ = ["betainc", "igamma", "igamma_grad_a", "igammac", "random_gamma_grad"]


def _apply(function, *operands):
    return _run(function, *settle(f"lax.{function.__name__}", *operands))


@fused(static=("function",))
def _run(function, *operands):
    operands = matched(function.__name__, *operands)
    shape = next((s for s in (aval_of(x).shape for x in operands) if s), ())
    return function(*[as_array(spread(x, shape)) for x in operands])


def igamma(a, x):
    """The lower incomplete gamma function over gamma(a), P(a, x). DLMF 8.2.4.

    >>> igamma(1.0, 2.0)
    Array(0.86466473, dtype=float32, weak_type=True)
    """
    return _apply(incomplete.igamma, a, x)


def igammac(a, x):
    """The upper incomplete gamma function over gamma(a), Q(a, x) = 1 - P(a, x). DLMF 8.2.4.

    >>> igammac(1.0, 2.0)
    Array(0.13533527, dtype=float32, weak_type=True)
    """
    return _apply(incomplete.igammac, a, x)


def igamma_grad_a(a, x):
    """The derivative of `igamma` by a.

    >>> igamma_grad_a(1.0, 2.0)
    Array(-0.2208257, dtype=float32, weak_type=True)
    """
    return _apply(incomplete.igamma_grad_a, a, x)


def random_gamma_grad(a, x):
    """The derivative by a of a sample x of the gamma distribution with shape a, its randomness being held.

    >>> random_gamma_grad(1.0, 2.0)
    Array(1.6316931, dtype=float32)
    """
    return _apply(incomplete.random_gamma_grad, a, x)


def betainc(a, b, x):
    """The incomplete beta function over beta(a, b), I_x(a, b), for 0 <= x <= 1. DLMF 8.17.2.

    >>> betainc(2.0, 2.0, 0.25)
    Array(0.15625015, dtype=float32, weak_type=True)
    """
    return _apply(incomplete.betainc, a, b, x)
