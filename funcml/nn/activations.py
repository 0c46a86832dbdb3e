"""Activations: functions of each element, with the derivative at kinks that `docs/kinks.md` lists.

Integers and bool become floats first, except where the result of an integer is one (relu, identity).
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of
from funcml.numpy.promotion import as_array, operand, promote, to_inexact
from funcml.numpy.rows import fill
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping, special
from funcml.primitives import transcendental as tr
from funcml.primitives.powers import sqrt, square
from funcml.transforms.custom_jvp import custom_jvp

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu",
    "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh",
]


def _program(function: Callable | None = None, *, static: tuple[str, ...] = ()) -> Callable:
    """`fused`, with the first argument checked before it is traced."""
    if function is None:
        return functools.partial(_program, static=static)
    program, name = fused(function, static=static), function.__name__

    @functools.wraps(function)
    def public(x, *more, **named):
        return program(operand(name, x), *more, **named)

    return public


def _of_floats(kernel: Callable) -> Callable:
    """A public function whose array arguments arrive in `kernel` as floats of one dtype and shape."""
    name, signature = kernel.__name__, inspect.signature(kernel)

    @functools.wraps(kernel)
    def whole(*given, **named):
        arguments = signature.bind(*given, **named)
        arguments.apply_defaults()
        return kernel(*map(as_array, promote(name, *arguments.args, inexact=True, full=True)))

    return _program(whole)


def _choose(condition, x, y):
    """`select` with numbers among the cases."""
    like = x if isinstance(x, Array) else y
    return ew.select(condition, *[z if isinstance(z, Array) else fill(like, z) for z in (x, y)])


# z = x g  =>  z' = g x' + x g'. Where x is infinite, g is constant: 0 g' is 0, not inf 0.
@custom_jvp
def _gated(x, gate):
    """x gate, for a gate that closes faster than x grows: at -inf it is 0, the limit."""
    return ew.mul(_choose(ew.eq(x, -math.inf), 0, x), gate)


_gated.defjvps(
    lambda t, ans, x, gate: ew.mul(t, gate),
    lambda t, ans, x, gate: ew.mul(t, _choose(ew.eq(ew.abs(x), math.inf), 0, x)),
)


# ---- piecewise linear ----------------------------------------------------------------------------------------


def identity(x) -> Array:
    """x."""
    return as_array(operand("identity", x))


@_program
def relu(x) -> Array:
    """max(x, 0), with derivative 0 at 0.

    >>> import numpy as np
    >>> relu(np.float32([-1, 0, 2]))
    Array([0., 0., 2.], dtype=float32)
    """
    x = as_array(x)
    return _choose(ew.le(x, 0), 0, x)


@_of_floats
def relu6(x) -> Array:
    """min(max(x, 0), 6), with derivative 0 at 0 and at 6."""
    return _choose(ew.le(x, 0), 0, _choose(ew.ge(x, 6), 6, x))


@_of_floats
def leaky_relu(x, negative_slope=0.01) -> Array:
    """x where x >= 0, else negative_slope x."""
    return ew.select(ew.ge(x, 0), x, ew.mul(negative_slope, x))


@_of_floats
def hard_tanh(x) -> Array:
    """-1 where x < -1, 1 where x > 1, else x."""
    return _choose(ew.gt(x, 1), 1, _choose(ew.lt(x, -1), -1, x))


@_of_floats
def hard_sigmoid(x) -> Array:
    """relu6(x + 3) / 6."""
    return ew.div(relu6(ew.add(x, 3.0)), 6.0)


@_of_floats
def hard_silu(x) -> Array:
    """x hard_sigmoid(x)."""
    return _gated(x, hard_sigmoid(x))


hard_swish = hard_silu


@_of_floats
def sparse_plus(x) -> Array:
    """0 where x <= -1, (x + 1)^2 / 4 where -1 < x < 1, x where x >= 1."""
    return _choose(ew.le(x, -1), 0, ew.select(ew.ge(x, 1), x, ew.div(square(ew.add(x, 1.0)), 4.0)))


@_of_floats
def sparse_sigmoid(x) -> Array:
    """0 where x <= -1, (x + 1) / 2 where -1 < x < 1, 1 where x >= 1: the derivative of `sparse_plus`."""
    return _choose(ew.le(x, -1), 0, _choose(ew.ge(x, 1), 1, ew.mul(ew.add(x, 1.0), 0.5)))


# ---- exponential ---------------------------------------------------------------------------------------------


def _expm1_below_0(x, slope):
    """x where x > 0, else slope(expm1 of x): the argument is 0 where it is not used, so that nothing overflows."""
    positive = ew.gt(x, 0)
    return ew.select(positive, x, slope(_choose(positive, 0, x)))


@_of_floats
def elu(x, alpha=1.0) -> Array:
    """x where x > 0, else alpha (exp(x) - 1)."""
    return _expm1_below_0(x, lambda z: ew.mul(alpha, tr.expm1(z)))


@_of_floats
def celu(x, alpha=1.0) -> Array:
    """x where x > 0, else alpha (exp(x / alpha) - 1)."""
    return _expm1_below_0(x, lambda z: ew.mul(alpha, tr.expm1(ew.div(z, alpha))))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@_of_floats
def selu(x) -> Array:
    """1.0507 elu(x, 1.6733), which keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    return ew.mul(_SELU_SCALE, elu(x, _SELU_ALPHA))


def tanh(x) -> Array:
    """The hyperbolic tangent."""
    return tr.tanh(as_array(to_inexact("tanh", x)))


def sigmoid(x) -> Array:
    """1 / (1 + exp(-x))."""
    return tr.logistic(as_array(to_inexact("sigmoid", x)))


# softplus' = sigmoid. By the rule, derivatives of every order are smooth at 0, where max and |x| have kinks.
@custom_jvp
def _softplus(x):
    return ew.add(_choose(ew.gt(x, 0), x, 0), tr.log1p(tr.exp(ew.neg(ew.abs(x)))))


_softplus.defjvps(lambda t, ans, x: ew.mul(t, tr.logistic(x)))


@_of_floats
def softplus(x) -> Array:
    """log(1 + exp(x))."""
    return _softplus(x)


@_of_floats
def log_sigmoid(x) -> Array:
    """log(sigmoid(x)) = -softplus(-x)."""
    return ew.neg(_softplus(ew.neg(x)))


@_of_floats
def silu(x) -> Array:
    """x sigmoid(x)."""
    return _gated(x, tr.logistic(x))


swish = silu


@_of_floats
def mish(x) -> Array:
    """x tanh(softplus(x)) (Misra 2019)."""
    return _gated(x, tr.tanh(_softplus(x)))


@custom_jvp
def _log1mexp(x):
    return ew.select(
        ew.lt(x, math.log(2)), tr.log(ew.neg(tr.expm1(ew.neg(x)))), tr.log1p(ew.neg(tr.exp(ew.neg(x))))
    )


_log1mexp.defjvps(lambda t, ans, x: ew.div(t, tr.expm1(x)))


@_of_floats
def log1mexp(x) -> Array:
    """log(1 - exp(-x)) for x >= 0, exact near 0 and far from it (Maechler 2012)."""
    return _log1mexp(x)


# ---- others --------------------------------------------------------------------------------------------------

_SIGMOID_IS_ONE = 100.0


# With u = sqrt(2 / pi) (x + 0.044715 x^3): (1 + tanh u) / 2 is sigmoid(2 u), which does not cancel for u < 0.
@_program(static=("approximate",))
def gelu(x, approximate: bool = True) -> Array:
    """x P(x), P the normal distribution function; approximately x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.

    Source: Hendrycks and Gimpel (2016).
    """
    x = as_array(to_inexact("gelu", x))
    if not approximate:
        return ew.mul(0.5, _gated(x, special.erfc(ew.mul(ew.neg(x), math.sqrt(0.5)))))
    twice = ew.mul(2 * math.sqrt(2 / math.pi), ew.add(x, ew.mul(0.044715, ew.mul(x, square(x)))))
    bound = aval_of(x).dtype.type(_SIGMOID_IS_ONE)
    return _gated(x, tr.logistic(ew.clamp(-bound, twice, bound)))


@_of_floats
def soft_sign(x) -> Array:
    """x / (1 + |x|)."""
    size = ew.abs(x)
    infinite = ew.eq(size, math.inf)
    inside = _choose(infinite, 0, x)
    return ew.select(infinite, ew.sign(x), ew.div(inside, ew.add(1.0, ew.abs(inside))))


# For x < 0 the difference is written as b / (2 (sqrt(x^2 + b) - x)), which does not cancel. Where x^2 overflows, the root
# is |x|.
@_of_floats
def squareplus(x, b=4.0) -> Array:
    """(x + sqrt(x^2 + b)) / 2 (Barron 2021)."""
    size = ew.abs(x)
    far = ew.gt(size, math.sqrt(float(dtypes.finfo(aval_of(x).dtype).max)) / 2)
    root = ew.select(far, size, sqrt(ew.add(square(_choose(far, 0, x)), b)))
    negative = ew.lt(x, 0)
    divisor = ew.mul(2.0, ew.sub(root, _choose(negative, x, 0)))
    return ew.select(negative, ew.div(b, _choose(negative, divisor, 1)), ew.div(ew.add(x, root), 2.0))


@_program(static=("axis",))
def glu(x, axis: int = -1) -> Array:
    """First half times sigmoid of second half of `x` along `axis`; ValueError for an odd length."""
    x = as_array(to_inexact("glu", x))
    axis = axis_of("glu", axis, x.ndim)
    half, rest = divmod(x.shape[axis], 2)
    if rest:
        raise ValueError(f"glu of {x.aval}: expected an even length of axis {axis}, got {x.shape[axis]}")
    value, gate = shaping.split(x, (half, half), axis)
    return ew.mul(value, tr.logistic(gate))
