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

    u has orthonormal columns (m >= n) or rows. 'qdwh' is Halley's method (see `lax.linalg.qdwh`, also for `eps` and
    `max_iterations`), 'svd' goes by way of singular values. The derivative of u is finite where a has full rank.

    >>> import funcml.numpy as jnp
    >>> polar(jnp.array([[0.0, -2.0], [3.0, 0.0]]), method="svd")[1]
    Array([[3., 0.],
           [0., 2.]], dtype=float32)
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: The argument `side` must be either 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: method must be 'qdwh' or 'svd', got {method!r}")
    (a,) = matrices("polar", a)
    return _polar(a, side, (method, eps, max_iterations))


@plainly
@fused(static=("side", "how"))
def _polar(a, side, how):
    wide = a.shape[-2] < a.shape[-1]
    u = adjoint(_isometry(how, adjoint(a))) if wide else _isometry(how, a)
    p = product(adjoint(u), a) if side == "right" else product(a, adjoint(u))
    return u, 0.5 * (p + adjoint(p))


def _isometry(how, a):
    method, eps, max_iterations = how
    if method == "qdwh":
        return factors.qdwh(a, eps=eps, max_iterations=max_iterations)[0]
    u, _, vh = factors.svd(a, full_matrices=False)
    return product(u, vh)


_isometry = custom_jvp(_isometry, nondiff_argnums=(0,))


# With p = u^H a = v diag(s) v^H and k = u^H a' - (u^H a')^H, of full column rank:
#   u' = u v (G * v^H k v) v^H + (1 - u u^H) a' v s^-1 v^H,  G_ij = 1 / (s_i + s_j)
# (for a' = u' p + u p', multiplied by u^H, less its adjoint, says u^H u' p + p u^H u' = k)
@_isometry.defjvp
@plainly
def _isometry_jvp(how, primals, tangents):
    (a,), (t,) = primals, tangents
    u = _isometry(how, a)
    v, s = factors.eigh(product(adjoint(u), a))
    inside = product(adjoint(u), t)
    turn = product(product(adjoint(v), inside - adjoint(inside)), v)
    turn = turn * inverse_or_zero(s[..., :, None] + s[..., None, :])
    outside = product(t - product(u, inside), v) * inverse_or_zero(s)[..., None, :]
    return u, product(product(product(u, v), turn) + outside, adjoint(v))
