"""Matrices made of given elements: Toeplitz and its kin, companion matrices, blocks on a diagonal.

Leading axes of the operands are batch axes.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import numpy as jnp
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.numpy.promotion import as_array, operand, operands, promote_dtypes, to_inexact
from funcml.scipy.linalg.operands import plainly

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "fiedler", "fiedler_companion", "hankel", "leslie", "toeplitz",
]


def _vectors(x) -> Array:
    """`x` with at least one axis."""
    return jnp.atleast_1d(as_array(x))


def block_diag(*arrs) -> Array:
    """The matrix with the given matrices (vectors are rows, numbers 1 x 1) along its diagonal and zeros elsewhere.

    >>> block_diag(1.0, jnp.ones((1, 2)))
    Array([[1., 0., 0.],
           [0., 1., 1.]], dtype=float32)
    """
    if not arrs:
        return jnp.zeros((1, 0))
    blocks = [jnp.atleast_2d(as_array(x)) for x in promote_dtypes("block_diag", *arrs)]
    for i, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(f"block_diag expects arrays of at most 2 dimensions, got {x.aval} as argument {i}")
    return _block_diag(blocks)


@plainly
@fused
def _block_diag(blocks):
    total, rows, before = sum([x.shape[1] for x in blocks]), [], 0
    for x in blocks:
        width = x.shape[1]
        rows.append(jnp.pad(x, ((0, 0), (before, total - before - width))))
        before += width
    return jnp.concatenate(rows, axis=0)


def _batched(*xs) -> list[Array]:
    """The operands with one batch shape."""
    batch = np.broadcast_shapes(*[x.shape[:-1] for x in xs])
    return [jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in xs]


def _windows(elements, rows: int, columns: int, step: int) -> Array:
    """[.., rows, columns] of `elements` [.., rows + columns - 1]: at i + j (step 1), i - j + columns - 1 (step -1)."""
    if rows == 0 or columns == 0:
        return jnp.zeros((*elements.shape[:-1], rows, columns), elements.dtype)
    across = jnp.arange(columns)
    places = jnp.arange(rows)[:, None] + (across if step == 1 else columns - 1 - across)
    return jnp.take(elements, places, axis=-1)


def toeplitz(c, r=None) -> Array:
    """The matrix [.., m, n] with first column `c` [.., m] and first row `r` [.., n], and constant diagonals; r[0] is not read.

    Without `r`, the row is the conjugate of `c`.

    >>> toeplitz(jnp.array([1, 2, 3]), jnp.array([0, 4]))
    Array([[1, 4],
           [2, 1],
           [3, 2]], dtype=int32)
    """
    c = _vectors(operand("toeplitz", c))
    r = jnp.conj(c) if r is None else _vectors(operand("toeplitz", r))
    return _toeplitz(*promote_dtypes("toeplitz", c, r))


@plainly
@fused
def _toeplitz(c, r):
    c, r = _batched(c, r)
    elements = jnp.concatenate([r[..., :0:-1], c], axis=-1)
    return _windows(elements, c.shape[-1], r.shape[-1], -1)


def hankel(c, r=None) -> Array:
    """The matrix [.., m, n] with first column `c` [.., m] and last row `r` [.., n] (zeros by default), constant along its
    anti-diagonals; r[0] is not read.

    >>> hankel(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    c = as_array(operand("hankel", c))
    r = jnp.zeros_like(c) if r is None else as_array(operand("hankel", r))
    for name, x in (("c", c), ("r", r)):
        if x.ndim == 0:
            raise ValueError(f"hankel: {name} must be at least 1-dimensional, got the scalar {x.aval}")
    return _hankel(*promote_dtypes("hankel", c, r))


@plainly
@fused
def _hankel(c, r):
    c, r = _batched(c, r)
    return _windows(jnp.concatenate([c, r[..., 1:]], axis=-1), c.shape[-1], r.shape[-1], 1)


@plainly
@fused
def circulant(c) -> Array:
    """The matrix [.., n, n] with first column `c` [.., n], each further column turned by one place: c[(i - j) mod n].

    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c = _vectors(operand("circulant", c))
    n = c.shape[-1]
    return _windows(jnp.concatenate([c[..., 1:], c], axis=-1), n, n, -1)


def _below_first_row(first, below) -> Array:
    """The matrix with this first row [.., n], and `below` [.., n - 1] on its first subdiagonal."""
    n = first.shape[-1]
    places = jnp.arange(n)
    column, row = places, places[:, None]
    below = jnp.concatenate([jnp.zeros_like(first[..., :1]), below], axis=-1)[..., :, None]  # row i holds below[i - 1]
    rest = jnp.where(row == column + 1, below, jnp.zeros_like(below))
    return jnp.where(row == 0, first[..., None, :], rest)


def leslie(f, s) -> Array:
    """The Leslie matrix [.., n, n], n >= 2: first row `f` [.., n] (births), first subdiagonal `s` [.., n - 1] (survival)."""
    f, s = (_vectors(x) for x in promote_dtypes("leslie", *operands("leslie", (f, s))))
    n = f.shape[-1]
    if n < 2:
        raise ValueError(f"leslie: the length of f along the last axis must be at least 2, got {f.aval}")
    if s.shape[-1] != n - 1:
        raise ValueError(
            f"leslie: Incorrect lengths for f and s: {s.aval} should have one element less along its last axis than {f.aval}"
        )
    return _leslie(f, s)


@plainly
@fused
def _leslie(f, s):
    return _below_first_row(*_batched(f, s))


@plainly
@fused
def companion(a) -> Array:
    """The companion matrix [.., n - 1, n - 1] of the polynomial with coefficients `a` [.., n], highest first, n >= 2.

    Its first row is -a[1:] / a[0], its first subdiagonal ones; its eigenvalues are the roots.

    >>> companion(jnp.array([1.0, -10.0, 31.0, -30.0]))
    Array([[ 10., -31.,  30.],
           [  1.,   0.,   0.],
           [  0.,   1.,   0.]], dtype=float32)
    """
    a = _vectors(to_inexact("companion", operand("companion", a)))
    if a.shape[-1] < 2:
        raise ValueError(f"companion: the length of `a` along the last axis must be at least 2, got {a.aval}")
    first = -a[..., 1:] / a[..., :1]
    return _below_first_row(first, jnp.ones_like(first[..., 1:]))


@plainly
@fused
def fiedler(a) -> Array:
    """The Fiedler matrix [.., n, n] of |a_i - a_j|, for `a` [.., n]."""
    a = _vectors(operand("fiedler", a))
    return jnp.abs(a[..., :, None] - a[..., None, :])


@plainly
@fused
def fiedler_companion(a) -> Array:
    """A matrix [.., n - 1, n - 1] of five diagonals whose eigenvalues are the roots of the polynomial with coefficients `a`
    [.., n], highest first (M. Fiedler, A note on companion matrices, 2003)."""
    a = _vectors(to_inexact("fiedler_companion", operand("fiedler_companion", a)))
    n = a.shape[-1] - 1
    if n < 0:
        raise ValueError(f"fiedler_companion: the last axis of `a` must have nonzero length, got {a.aval}")
    if n == 0:
        return jnp.zeros((*a.shape[:-1], 0, 0), a.dtype)
    coefficients = -a / a[..., :1]
    which, ones = _fiedler_pattern(n)
    picked = jnp.take(coefficients, jnp.array(np.maximum(which, 0)), axis=-1)
    return jnp.where(jnp.array(which > 0), picked, jnp.array(ones, a.dtype))


def _fiedler_pattern(n: int):
    """Which coefficient stands at (i, j) (0: none), and where ones stand."""
    which, ones = np.zeros((n, n), np.int32), np.zeros((n, n))
    which[0, 0] = 1
    if n > 1:
        ones[1, 0] = 1
    for i in range(n):
        if i % 2 == 0:
            for j, k in ((i + 1, i + 2), (i - 1, i + 1)):
                if 0 <= j < n and (j > i or i >= 2):
                    which[i, j] = k
            if i + 2 < n:
                ones[i, i + 2] = 1
        elif i >= 3:
            ones[i, i - 2] = 1
    return which, ones


def convolution_matrix(a, n: int, mode: str = "full") -> Array:
    """The matrix [.., k, n] whose product with a vector v is `convolve(a, v, mode)`, for `a` [.., m].

    k is m + n - 1 ('full'), max(m, n) ('same') or max(m, n) - min(m, n) + 1 ('valid').

    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    n = index_of("convolution_matrix", "n", n)
    a = as_array(operand("convolution_matrix", a))
    if n <= 0:
        raise ValueError(f"convolution_matrix: n must be a positive integer, got {n}")
    if a.ndim == 0:
        raise ValueError(f"convolution_matrix: a must be at least 1-dimensional, got the scalar {a.aval}")
    if a.shape[-1] < 1:
        raise ValueError(f"convolution_matrix: len(a) must be at least 1, got {a.aval}")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolution_matrix: mode must be one of 'full', 'valid', 'same'; got {mode!r}")
    return _convolution_matrix(a, n, mode)


@plainly
@fused(static=("n", "mode"))
def _convolution_matrix(a, n, mode):
    m = a.shape[-1]
    shorter = min(m, n) - 1
    above, below = {"full": (0, 0), "valid": (shorter, shorter), "same": (shorter // 2, math.ceil(shorter / 2))}[mode]
    zeros = jnp.zeros((*a.shape[:-1], n - 1), a.dtype)
    elements = jnp.concatenate([zeros, a, zeros], axis=-1)  # element (i, j) is a[i - j]
    rows = m + n - 1 - above - below
    return _windows(elements[..., above : above + rows + n - 1], rows, n, -1)
