"""Special functions of several parameters, element by element."""

from __future__ import annotations

from funcml.core.tracing import aval_of
from funcml.lax.operands import matched
from funcml.lowering.execute import fused
from funcml.numpy.promotion import as_array, settle, spread
from funcml.primitives import incomplete

__all__ = ["betainc", "igamma", "igamma_grad_a", "igammac", "random_gamma_grad"]


def _function(name: str, function, doc: str):
    @fused
    def whole(*operands):
        operands = matched(name, *operands)
        shape = next((s for s in (aval_of(x).shape for x in operands) if s), ())
        return function(*[as_array(spread(x, shape)) for x in operands])

    if name == "betainc":

        def call(a, b, x):
            return whole(*settle(name, a, b, x))

    else:

        def call(a, x):
            return whole(*settle(name, a, x))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


igamma = _function("igamma", incomplete.igamma, "The lower incomplete gamma function over gamma(a), P(a, x). DLMF 8.2.4.")
igammac = _function("igammac", incomplete.igammac, "The upper incomplete gamma function over gamma(a), Q(a, x) = 1 - P(a, x).")
igamma_grad_a = _function("igamma_grad_a", incomplete.igamma_grad_a, "The derivative of `igamma` by a.")
random_gamma_grad = _function(
    "random_gamma_grad", incomplete.random_gamma_grad, "The derivative by a of a sample x of the gamma distribution of shape a."
)
betainc = _function("betainc", incomplete.betainc, "The incomplete beta function over beta(a, b), I_x(a, b). DLMF 8.17.2.")
