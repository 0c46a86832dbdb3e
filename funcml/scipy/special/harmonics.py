"""Spherical harmonics. DLMF 14.30."""

from __future__ import annotations

import math

from funcml import numpy as jnp
from funcml.lowering.execute import fused
from funcml.numpy.arguments import concrete, index_of
from funcml.numpy.promotion import promote_dtypes

__all__ = ["sph_harm_y"]


def sph_harm_y(n, m, theta, phi, diff_n=None, n_max: int | None = None):
    """The spherical harmonic Y_n^m at the polar angle theta and the azimuth phi, complex; its operands broadcast.

    n >= 0 and |m| <= n are whole numbers; `n_max`, the greatest of n, is needed where n is traced, and greater degrees are
    clipped to it. Scalars give an array of one element, as in JAX. `diff_n` must be None: use `funcml.grad`. DLMF 14.30.1.

    >>> import numpy as np
    >>> sph_harm_y(np.array([1]), np.array([0]), np.array([0.0]), np.array([0.0]))
    Array([0.48860251+0.j], dtype=complex128)
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n must be None; differentiate with respect to theta and phi instead")
    if n_max is None:
        n_max = int(concrete("sph_harm_y", "n, which without n_max", n).max(initial=0))
    return _sph_harm_y(n, m, theta, phi, n_max=index_of("sph_harm_y", "n_max", n_max))


@fused(static=("n_max",))
def _sph_harm_y(n, m, theta, phi, n_max):
    n, m = jnp.atleast_1d(n), jnp.atleast_1d(m)
    theta, phi = promote_dtypes("sph_harm_y", jnp.atleast_1d(theta), jnp.atleast_1d(phi), inexact=True)
    n, m, theta, phi = jnp.broadcast_arrays(jnp.minimum(n, n_max), m, theta, phi)
    order = jnp.abs(m)
    legendre = _normalised_legendre(n, order, theta, n_max)
    odd = order % 2 == 1
    legendre = jnp.where((m < 0) & odd, -legendre, legendre)
    angle = m.astype(phi.dtype) * phi
    return legendre * jnp.cos(angle) + 1j * (legendre * jnp.sin(angle))


# With P_n^m normalised by sqrt((2n + 1) / (4 pi) (n - m)! / (n + m)!):
# P_m^m = -sqrt((2m + 1) / (2m)) sin P_(m-1)^(m-1),    P_n^m = a (cos P_(n-1)^m - b P_(n-2)^m),
# a = sqrt((4n^2 - 1) / (n^2 - m^2)), b = sqrt(((n - 1)^2 - m^2) / (4 (n - 1)^2 - 1))                DLMF 14.10.3
def _normalised_legendre(n, m, theta, n_max):
    cos, sin = jnp.cos(theta), jnp.abs(jnp.sin(theta))
    order = m.astype(theta.dtype)
    square = order * order
    start = diagonal = jnp.full_like(theta, math.sqrt(1 / (4 * math.pi)))
    for k in range(1, n_max + 1):
        diagonal = -math.sqrt((2 * k + 1) / (2 * k)) * sin * diagonal
        start = jnp.where(m == k, diagonal, start)
    before, here = jnp.zeros_like(theta), jnp.where(m == 0, start, 0.0)
    out = jnp.where((n == 0) & (m == 0), here, 0.0)
    for k in range(1, n_max + 1):
        above = m < k
        gap = jnp.where(above, k * k - square, 1.0)
        a = jnp.sqrt((4.0 * k * k - 1) / gap)
        inner = jnp.where(above, (k - 1) ** 2 - square, 0.0)
        b = jnp.sqrt(jnp.maximum(inner, 0.0) / (4.0 * (k - 1) ** 2 - 1)) if k > 1 else jnp.zeros_like(theta)
        following = jnp.where(above, a * (cos * here - b * before), jnp.where(m == k, start, 0.0))
        before, here = here, following
        out = jnp.where(n == k, here, out)
    return out
