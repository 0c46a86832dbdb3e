"""Polar factors of batches of matrices."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.lax.operands import array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.polar import polar_factors

__all__ = ["qdwh"]


def qdwh(
    x,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """(u, h, steps, converged): x = u h with u^H u the identity and h positive semidefinite, for x [.., m, n] with m >= n.

    `steps` is an int32 [], `converged` a bool []: whether the last step changed every u by less than (5 eps)^(1/3). At most
    `max_iterations` steps (10 by default) are made. `is_hermitian` has no effect; `dynamic_shape` must be None.

    >>> import funcml.numpy as jnp
    >>> jnp.round(qdwh(jnp.array([[0.0, -2.0], [3.0, 0.0]]))[0])
    Array([[ 0., -1.],
           [ 1.,  0.]], dtype=float32)
    """
    x = array("linalg.qdwh", x)
    if dynamic_shape is not None:
        raise NotImplementedError(f"lax.linalg.qdwh has no shapes known only at run time, got dynamic_shape={dynamic_shape!r}")
    if x.ndim < 2 or x.shape[-2] < x.shape[-1]:
        raise ValueError(f"lax.linalg.qdwh: The input matrix must be [.., m, n] with m >= n, got {x.aval}; take its adjoint")
    limit = 10 if max_iterations is None else index_of("lax.linalg.qdwh", "max_iterations", max_iterations)
    return _qdwh(x, limit, float(dtypes.finfo(x.dtype).eps if eps is None else eps))


@fused(static=("limit", "eps"))
def _qdwh(x, limit, eps):
    u, h, steps, converged = polar_factors(x, limit, eps)
    return u, h, broadcast_in_dim(dtypes.int32.type(steps), ()), converged
