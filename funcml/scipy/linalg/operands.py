"""Bringing operands to matrices: dtypes that factorisations exist for, square shapes, one batch shape; and their products."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from funcml import dtypes
from funcml import numpy as jnp
from funcml.core.config import config, numpy_dtype_promotion, numpy_rank_promotion
from funcml.core.values import Array
from funcml.numpy.promotion import as_array, operands, promote_dtypes
from funcml.primitives.linalg_lu import lu
from funcml.primitives.linalg_solve import factored_solve

__all__ = ["adjoint", "batched_together", "complex_of", "inexact_arrays", "matrices", "plainly", "product", "solved", "square"]


def plainly(function: Callable) -> Callable:
    """`function` under NumPy's rules of promotion, also where users have chosen stricter ones for their own code."""
    relaxed = numpy_rank_promotion("allow")(numpy_dtype_promotion("standard")(function))

    @functools.wraps(function)
    def call(*args, **kwargs):
        if config.numpy_rank_promotion == "allow" and config.numpy_dtype_promotion == "standard":
            return function(*args, **kwargs)
        return relaxed(*args, **kwargs)

    return call


def inexact_arrays(name: str, *xs) -> list[Array]:
    """The operands as arrays of one float or complex dtype."""
    first = xs[0]
    if isinstance(first, Array) and dtypes.is_inexact(first.dtype):
        if all([isinstance(x, Array) and x.dtype == first.dtype for x in xs]):
            return list(xs)
    return [as_array(x) for x in promote_dtypes(name, *operands(name, xs), inexact=True)]


def matrices(name: str, *xs) -> list[Array]:
    """The operands as arrays [.., m, n] of one float or complex dtype; TypeError, ValueError for what is none."""
    arrays = inexact_arrays(name, *xs)
    for x in arrays:
        if x.ndim < 2:
            raise ValueError(f"{name} expects matrices [.., m, n], got {x.aval}")
    return arrays


def square(name: str, *xs) -> list[Array]:
    """`matrices`, each of them square."""
    arrays = matrices(name, *xs)
    for x in arrays:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError(f"{name}: expected square matrices [.., n, n], got {x.aval}")
    return arrays


def batched_together(*xs) -> list[Array]:
    """Matrices with one batch shape."""
    batch = np.broadcast_shapes(*[x.shape[:-2] for x in xs])
    return [jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in xs]


def complex_of(x) -> Array:
    """`x` in the complex dtype of its precision."""
    return x if dtypes.is_complex(x.dtype) else x.astype(dtypes.complex_dtype(x.dtype))


def adjoint(x) -> Array:
    """The conjugate transpose of `x`."""
    return jnp.conj(jnp.matrix_transpose(x))


def product(x, y) -> Array:
    """The matrix product at the highest precision."""
    return jnp.matmul(x, y, precision="highest")


def solved(a, b) -> Array:
    """x with a x = b, for matrices of one batch."""
    packed, _, permutation = lu(a)
    return factored_solve(a, packed, permutation, b)
