"""Polar factors: a = u p with u a partial isometry and p positive semidefinite."""

from __future__ import annotations

from funcml.core.values import Array
from funcml.lax import linalg as factors
from funcml.lowering.execute import fused
from funcml.primitives.spectra import inverse_or_zero
from funcml.scipy.linalg.operands import adjoint, matrices, plainly, product
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["polar"]


def polar(
    a, side: str = "right", *, method: str = "qdwh", eps: float | None = None, max_iterations: int | None = None
) -> tuple[Array, Array]:
    """(u, p) with a = u p ('right', p [.., n, n]) or a = p u ('left', p [.., m, m]), for `a` [.., m, n].

    u has orthonormal columns (m >= n) or rows. Both methods, 'qdwh' and 'svd', go by way of the singular value decomposition;
    `eps` and `max_iterations` have no effect. The derivative of u is finite where a has full rank.

    >>> import funcml.numpy as jnp
    >>> polar(jnp.array([[0.0, -2.0], [3.0, 0.0]]))[1]
    Array([[3., 0.],
           [0., 2.]], dtype=float32)
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: The argument `side` must be either 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: method must be 'qdwh' or 'svd', got {method!r}")
    (a,) = matrices("polar", a)
    return _polar(a, side)


@plainly
@fused(static=("side",))
def _polar(a, side):
    wide = a.shape[-2] < a.shape[-1]
    u = adjoint(_isometry(adjoint(a))) if wide else _isometry(a)
    p = product(adjoint(u), a) if side == "right" else product(a, adjoint(u))
    return u, 0.5 * (p + adjoint(p))


@custom_jvp
def _isometry(a):
    u, _, vh = factors.svd(a, full_matrices=False)
    return product(u, vh)


# With a = u s v^H of full column rank and w = u v^H:
#   w' = u (G * (u^H a' v - (u^H a' v)^H)) v^H + (1 - u u^H) a' v s^-1 v^H,  G_ij = 1 / (s_i + s_j)
# (S. Gudmundsson, C. Kenney and A. Laub, Small-sample statistical estimates for the sensitivity of eigenvalue problems, 1997)
@_isometry.defjvp
@plainly
def _isometry_jvp(primals, tangents):
    (a,), (t,) = primals, tangents
    u, s, vh = factors.svd(a, full_matrices=False)
    tv = product(t, adjoint(vh))
    inside = product(adjoint(u), tv)
    sums = inverse_or_zero(s[..., :, None] + s[..., None, :])
    turned = product(u, sums * (inside - adjoint(inside)))
    outside = (tv - product(u, inside)) * inverse_or_zero(s)[..., None, :]
    return product(u, vh), product(turned + outside, vh)
