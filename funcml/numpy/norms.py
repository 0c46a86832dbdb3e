"""The Euclidean norm with the right derivatives at 0.

    euclidean : (x, axes) -> sqrt(sum of |x|^2 over axes)

At 0 the norm r has no derivative; 0 is the one that symmetry suggests, and it makes f(r) right to first order for every
even f. To second order, f(r)'' v w = f'(r) (v . w) / r + ..., where f'(r) / r is 0 / 0 in numbers and f''(0) in truth. So
when a derivative is differentiated again, r is not 0 there but a tiny number, small enough not to be seen and large enough
for the quotient: the hessian of exp(-|x|^2 / 2) at 0 is -1.

    norm'   = u . x'     beside the value of norm_of_derivative
    norm_of_derivative   the same function, whose derivative stands beside the value of positive_norm
    positive_norm        the norm, tiny where it would be 0
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, reduce_sum
from funcml.primitives.powers import sqrt, square
from funcml.primitives.shaping import concatenate
from funcml.primitives.tangents import scalar_of
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["euclidean"]

# Its inverse to the power of the order of the derivative must be finite.
_TINY = {dtypes.float32: 1e-12, dtypes.float64: 1e-60}


def euclidean(x, axes):
    """The Euclidean norm of `x` over `axes` (non-negative ints); floats narrower than 32 bits are widened inside."""
    if dtypes.is_complex(aval_of(x).dtype):
        if not axes:
            return ew.abs(x)
        x = concatenate([ew.real(x), ew.imag(x)], axes[0])
    dtype = aval_of(x).dtype
    wide = dtype if dtype in _TINY else dtypes.float32
    return ew.convert(_norm(ew.convert(x, wide), tuple(axes)), dtype)


def _sum_of_squares(x, axes):
    return reduce_sum(square(x), axes)


def _along(x, axes, t):
    """u . t over `axes`, with u = x / |x|, and 0 where x is 0."""
    aval = aval_of(x)
    kept = tuple([i for i in range(aval.ndim) if i not in axes])
    size = broadcast_in_dim(_positive_norm(x, axes), aval.shape, kept)
    return reduce_sum(ew.mul(ew.div(x, size), t), axes)


def _norm(x, axes):
    return sqrt(_sum_of_squares(x, axes))


def _norm_of_derivative(x, axes):
    return sqrt(_sum_of_squares(x, axes))


def _positive_norm(x, axes):
    s = _sum_of_squares(x, axes)
    aval = aval_of(s)
    tiny = broadcast_in_dim(scalar_of(aval, _TINY[aval.dtype] ** 2), aval.shape)
    return sqrt(ew.select(ew.eq(s, 0), tiny, s))


_norm, _norm_of_derivative, _positive_norm = (
    custom_jvp(f, nondiff_argnums=(1,)) for f in (_norm, _norm_of_derivative, _positive_norm)
)


@_norm.defjvp
def _norm_jvp(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    return _norm_of_derivative(x, axes), _along(x, axes, t)


def _positive_jvp(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    return _positive_norm(x, axes), _along(x, axes, t)


_norm_of_derivative.defjvp(_positive_jvp)
_positive_norm.defjvp(_positive_jvp)
