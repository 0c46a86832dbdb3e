"""The exponential of a matrix and its derivative.

    exp A = (r(A / 2^s))^(2^s)      r the diagonal Pade approximant of order 13 (f64) or 7 (f32), s the least number of halvings
                                    for which r is exact to rounding

N. Higham, The scaling and squaring method for the matrix exponential revisited, 2005. Derivatives are those of these steps.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from funcml import dtypes, lax
from funcml import numpy as jnp
from funcml.core.values import Array
from funcml.derivatives import jvp
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.scipy.linalg.operands import plainly, product, solved, square
from funcml.scipy.linalg.systems import solve_triangular

__all__ = ["expm", "expm_frechet"]

# dtype of the norm -> order, and the greatest norm for which the approximant of that order is exact to rounding
_ORDERS = {dtypes.float32: (7, 3.925724783138660), dtypes.float64: (13, 5.371920351148152)}


def _coefficients(order: int) -> list[float]:
    """c_k of the numerator sum of c_k x^k; the denominator has (-1)^k c_k."""
    return [
        float(Fraction(factorial(2 * order - k) * factorial(order), factorial(2 * order) * factorial(k) * factorial(order - k)))
        for k in range(order + 1)
    ]


def expm(A, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices `A` [.., n, n]; nan where more than `max_squarings` squarings are needed.

    `upper_triangular` says that A is.

    >>> expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    (a,) = square("expm", A)
    return _expm(a, bool(upper_triangular), index_of("expm", "max_squarings", max_squarings))


@plainly
@fused(static=("upper_triangular", "max_squarings"))
def _expm(a, upper_triangular, max_squarings):
    if a.size == 0:
        return a
    real = dtypes.real_dtype(a.dtype)
    if real not in _ORDERS:
        raise TypeError(f"expm expects f32, f64, c64 or c128, got {a.aval}; convert with `.astype`")
    order, limit = _ORDERS[real]
    size = jnp.max(jnp.sum(lax.stop_gradient(jnp.abs(a)), axis=-2), axis=-1)
    squarings = jnp.maximum(jnp.ceil(jnp.log2(size / limit)), 0)[..., None, None]
    # where no number of squarings will do, a scale that keeps the steps finite
    halvings = jnp.exp2(-jnp.where(squarings <= max_squarings, squarings, 0))
    out = _pade(a * halvings.astype(a.dtype), order, upper_triangular)
    out = _squared(out, squarings, max_squarings)
    return jnp.where(squarings <= max_squarings, out, jnp.nan)


# r = (v - u)^-1 (v + u) = 1 + 2 (v - u)^-1 u,  u the odd terms and v the even ones
def _pade(a, order, upper_triangular):
    u, v = _parts(a, _coefficients(order))
    if upper_triangular:
        ratio = solve_triangular(v - u, u)
    else:
        ratio = solved(v - u, u)
    return _eye(a) + 2 * ratio


def _eye(a):
    return jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)


def _parts(a, c):
    """The odd and the even terms of sum of c_k a^k, by few products."""
    a2 = product(a, a)
    a4 = product(a2, a2)
    a6 = product(a4, a2)
    low = [_eye(a), a2, a4, a6]
    odd = sum(c[2 * k + 1] * x for k, x in enumerate(low))
    even = sum(c[2 * k] * x for k, x in enumerate(low))
    if len(c) > 8:
        high = low[1:]
        odd = odd + product(a6, sum(c[2 * k + 9] * x for k, x in enumerate(high)))
        even = even + product(a6, sum(c[2 * k + 8] * x for k, x in enumerate(high)))
    return product(a, odd), even


def _squared(x, times, limit):
    """`x` squared as often as `times` [.., 1, 1] says, at most `limit` times."""
    most = jnp.max(jnp.where(times <= limit, times, 0))

    def step(x, i):
        return lax.cond(i < most, lambda x: jnp.where(i < times, product(x, x), x), lambda x: x, x), None

    return lax.scan(step, x, jnp.arange(limit, dtype=times.dtype))[0]


def expm_frechet(A, E, *, method: str | None = None, compute_expm: bool = True):
    """(expm(A), its derivative at A in the direction E), or the derivative alone, for matrices [.., n, n].

    `method` has no effect.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    a, e = square("expm_frechet", A, E)
    if a.shape != e.shape:
        raise ValueError(f"expm_frechet: expected A and E to be the same shape, got {a.aval} and {e.aval}")
    both = _expm_frechet(a, e)
    return both if compute_expm else both[1]


@plainly
@fused
def _expm_frechet(a, e):
    return jvp(expm, (a,), (e,))
