"""Bessel functions: the modified ones of orders 0 and 1, and those of the first kind of whole order. DLMF chapter 10."""

from __future__ import annotations

import functools

from funcml import dtypes
from funcml import numpy as jnp
from funcml.numpy.arguments import index_of
from funcml.primitives import special
from funcml.scipy.elementwise import elementwise
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["bessel_jn", "i0", "i0e", "i1", "i1e"]


@elementwise
def i0e(x):
    """exp(-|x|) I0(x), without overflow. DLMF 10.25.2.

    >>> i0e(0.0)
    Array(1.0000001, dtype=float32, weak_type=True)
    """
    return special.bessel_i0e(x)


@elementwise
def i1e(x):
    """exp(-|x|) I1(x), without overflow. DLMF 10.25.2.

    >>> i1e(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return special.bessel_i1e(x)


@elementwise
def i0(x):
    """The modified Bessel function I0 of the first kind. DLMF 10.25.2.

    >>> i0(1.0)
    Array(1.2660658, dtype=float32, weak_type=True)
    """
    return _i0(x)


@elementwise
def i1(x):
    """The modified Bessel function I1 of the first kind. DLMF 10.25.2.

    >>> i1(1.0)
    Array(0.5651591, dtype=float32, weak_type=True)
    """
    return _i1(x)


def _grown(scaled, x):
    return jnp.exp(jnp.abs(x)) * scaled


# I0' = I1, I1' = I0 - I1 / x, where I1 / x is 1/2 at 0                                            DLMF 10.29.3
@custom_jvp
def _i0(x):
    return _grown(special.bessel_i0e(x), x)


@custom_jvp
def _i1(x):
    return _grown(special.bessel_i1e(x), x)


_i0.defjvps(lambda t, ans, x: t * _i1(x))
_i1.defjvps(lambda t, ans, x: t * _grown(special.bessel_i0e(x) - special.bessel_i1e_over_x(x), x))


def bessel_jn(z, *, v: int, n_iter: int = 50):
    """J_0(z), ..., J_v(z) of real z, stacked along a new first axis: [v + 1, *shape of z]. DLMF 10.2.2.

    By Miller's backward recurrence from order `n_iter`, which should be well above both v and |z|. Raises TypeError if v or
    n_iter is no int, and ValueError if z is complex or v is negative.

    >>> bessel_jn(1.0, v=1)
    Array([0.7651977, 0.4400506], dtype=float32, weak_type=True)
    """
    v, n_iter = index_of("bessel_jn", "v", v), index_of("bessel_jn", "n_iter", n_iter)
    if v < 0:
        raise ValueError(f"bessel_jn expects v >= 0, got {v}")
    z = jnp.asarray(z)
    if dtypes.is_complex(z.dtype):
        raise ValueError(f"bessel_jn expects real numbers, got {z.aval}; their complex forms are not supported")
    return jnp.stack(list(_bessel_jn(z, v=v, n_iter=n_iter)))


@elementwise(name="bessel_jn", static=("v", "n_iter"))
def _bessel_jn(z, v, n_iter):
    return _bessel_j_up_to(v, n_iter)(z)


# J_0' = -J_1, J_n' = (J_(n - 1) - J_(n + 1)) / 2                                                  DLMF 10.6.1, 10.6.2
@functools.cache
def _bessel_j_up_to(v: int, n_iter: int):
    @custom_jvp
    def orders(z):
        return _miller(z, v, n_iter)

    @orders.defjvp
    def rule(primals, tangents):
        (z,), (t,) = primals, tangents
        j = _bessel_j_up_to(v + 1, n_iter)(z)
        slopes = [-j[1], *[0.5 * (j[n - 1] - j[n + 1]) for n in range(1, v + 1)]]
        return j[: v + 1], tuple(t * s for s in slopes)

    return orders


# f_(n - 1) = (2 n / z) f_n - f_(n + 1) from f_N = tiny down; J_n = f_n / (f_0 + 2 (f_2 + f_4 + ...))   DLMF 10.74(iv)
def _miller(z, v, n_iter):
    small = jnp.abs(z) < 1e-30
    safe = jnp.where(small, 1.0, z)
    limit = 1e250 if z.dtype == dtypes.float64 else 1e25
    above, here = jnp.zeros_like(z), jnp.full_like(z, 1 / limit)
    total, found = jnp.zeros_like(z), {}
    for n in range(max(n_iter, v + 1), 0, -1):
        below = 2 * n / safe * here - above
        large = jnp.abs(below) > limit ** 0.4
        scale = jnp.where(large, limit**-0.4, 1.0)
        above, here, total = here * scale, below * scale, total * scale
        found = {k: f * scale for k, f in found.items()}
        if n - 1 <= v:
            found[n - 1] = here
        if (n - 1) % 2 == 0:
            total = total + (2.0 if n > 1 else 1.0) * here
    return tuple(jnp.where(small, 1.0 if k == 0 else 0.0, found[k] / total) for k in range(v + 1))
