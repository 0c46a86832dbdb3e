"""Polynomials as vectors of their coefficients, that of the highest power first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcml import dtypes
from funcml.control_flow.programs import recorded
from funcml.control_flow.scan import scan
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.lowering.execute import fused
from funcml.numpy.arguments import concrete, index_of
from funcml.numpy.promotion import as_array, broadcast_shapes, literal, operand, promote_dtypes, settle, spread, to_inexact
from funcml.numpy.rows import fill
from funcml.numpy.ufuncs import power
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives import transcendental as tr

__all__ = [
    "from_roots", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval", "trim_zeros", "vander",
]


def _vectors(name: str, *xs, inexact: bool = False) -> list[Array]:
    arrays = [as_array(x) for x in promote_dtypes(name, *xs, inexact=inexact)]
    for x in arrays:
        if x.ndim > 1:
            raise ValueError(f"{name} expects vectors of coefficients, got {x.aval}")
    return [ax.reshape(x, (x.size,)) for x in arrays]


# ---- sums and products -------------------------------------------------------------------------------------------


def _padded(x, before: int, behind: int):
    return shaping.pad(x, literal(0, x.dtype), [(before, behind, 0)])


@fused
def _sum(a1, a2):
    a, b = _vectors("polyadd", a1, a2)
    n = max(a.size, b.size)
    a, b = _padded(a, n - a.size, 0), _padded(b, n - b.size, 0)
    return ew.or_(a, b) if dtypes.is_bool(a.dtype) else ew.add(a, b)


def polyadd(a1, a2) -> Array:
    """The coefficients of the sum.

    >>> polyadd(np.array([1, 2]), np.array([3]))
    Array([1, 5], dtype=int64)
    """
    return _sum(*settle("polyadd", a1, a2))


@fused
def _difference(a1, a2):
    a, b = _vectors("polysub", a1, a2)
    return _sum(a, ew.neg(b))


def polysub(a1, a2) -> Array:
    """The coefficients of the difference."""
    return _difference(*settle("polysub", a1, a2))


def polymul(a1, a2, *, trim_leading_zeros: bool = False) -> Array:
    """The coefficients of the product; with `trim_leading_zeros`, zeros in front of both are left out, if these are known.

    >>> polymul(np.array([1.0, 1.0]), np.array([1.0, -1.0]))
    Array([ 1.,  0., -1.], dtype=float64)
    """
    a, b = settle("polymul", a1, a2)
    if trim_leading_zeros and max(np.size(a), np.size(b)) > 1:
        a, b = trim_zeros(a, "f"), trim_zeros(b, "f")
    return _product(a, b)


# Row i of the outer product stands i places further to the right: rows written one after another, each one element too
# long, are read as rows of the right length. Then columns are summed.
@fused
def _product(a1, a2):
    a, b = _vectors("polymul", a1, a2, inexact=True)
    a, b = [x if x.size else _padded(x, 1, 0) for x in (a, b)]
    n, m = sorted((a.size, b.size))
    short, long = (a, b) if a.size == n else (b, a)
    rows = ew.mul(ax.broadcast_in_dim(short, (n, m), (0,)), ax.broadcast_in_dim(long, (n, m), (1,)))
    rows = shaping.pad(rows, literal(0, rows.dtype), [(0, 0, 0), (0, n, 0)])
    flat = shaping.slice_in_dim(ax.reshape(rows, (n * (n + m),)), 0, n * (n + m - 1))
    return ax.reduce_sum(ax.reshape(flat, (n, n + m - 1)), (0,))


def polydiv(u, v, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """(quotient, rest) of a division of polynomials: u = quotient v + rest.

    The rest has as many coefficients as `u`, unless `trim_leading_zeros` leaves out those in front that are nearly 0.

    >>> polydiv(np.array([1.0, 0.0, -1.0]), np.array([1.0, 1.0]))
    (Array([ 1., -1.], dtype=float64), Array([0., 0., 0.], dtype=float64))
    """
    quotient, rest = _quotient(*settle("polydiv", u, v))
    if trim_leading_zeros:
        known = concrete("polydiv", "the rest (with trim_leading_zeros)", rest)
        small = np.abs(known) < math.sqrt(float(dtypes.finfo(rest.dtype).eps))
        rest = shaping.slice_in_dim(rest, known.size if small.all() else int(small.argmin()), known.size)
    return quotient, rest


# The leading coefficient of what is left, divided by that of v, is the next one of the quotient.
@fused
def _quotient(u, v):
    u, v = _vectors("polydiv", u, v, inexact=True)
    if not v.size:
        raise ValueError(f"polydiv: the divisor has no coefficients, got {v.aval}")
    steps, m = u.size - v.size + 1, v.size
    if steps < 1:
        return ax.broadcast_in_dim(literal(0, u.dtype), (1,)), u

    def step(divisor, left, new):
        left = shaping.concatenate([left, ax.reshape(new, (1,))], 0)
        factor = ew.div(shaping.slice_in_dim(left, 0, 1), shaping.slice_in_dim(divisor, 0, 1))
        left = ew.sub(left, ew.mul(spread(factor, (m,)), divisor))
        return [shaping.slice_in_dim(left, 1, m), ax.reshape(factor, ())]

    first, others = shaping.slice_in_dim(u, 0, m - 1), shaping.slice_in_dim(u, m - 1, u.size)
    program, _ = recorded(step, [v.aval, first.aval, aval_of(ax.reshape(shaping.slice_in_dim(v, 0, 1), ()))], "polydiv")
    left, factors = scan(program, [v], [first], [others], length=steps)
    return factors, _padded(left, steps, 0)


def from_roots(roots) -> Array:
    """The coefficients of the polynomial with these roots and the leading coefficient 1.

    >>> from_roots(np.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float64)
    """
    return _from_roots(operand("poly", roots))


# multiplied with (x - r) for one root after another
@fused
def _from_roots(roots):
    roots = as_array(to_inexact("poly", roots))
    (roots,) = _vectors("poly", roots)
    n = roots.size
    one = _padded(ax.broadcast_in_dim(literal(1, roots.dtype), (1,)), 0, n)
    if not n:
        return ax.reshape(one, ())

    def step(coefficients, root):
        moved = _padded(shaping.slice_in_dim(coefficients, 0, n), 1, 0)
        return [ew.sub(coefficients, ew.mul(spread(root, (n + 1,)), moved))]

    program, _ = recorded(step, [one.aval, aval_of(ax.reshape(shaping.slice_in_dim(roots, 0, 1), ()))], "poly")
    return scan(program, [], [one], [roots], length=n)[0]


# ---- values, slopes and integrals --------------------------------------------------------------------------------


def polyval(p, x, *, unroll: int = 16) -> Array:
    """The values at `x` of the polynomial whose coefficients stand along the first axis of `p`; other axes broadcast.

    `unroll` steps of Horner's scheme are done in one.

    >>> polyval(np.array([1, 0, -2]), 3)
    Array(7, dtype=int64)
    """
    return _value(*settle("polyval", p, x), index_of("polyval", "unroll", unroll))


# (.. (p_0 x + p_1) x + ..) x + p_n
@fused(static=("unroll",))
def _value(p, x, unroll):
    p, x = [as_array(v) for v in promote_dtypes("polyval", p, x)]
    if not p.ndim:
        raise ValueError(f"polyval expects a vector of coefficients, got {p.aval}")
    if dtypes.is_bool(p.dtype):
        p, x = ew.convert(p, dtypes.int32), ew.convert(x, dtypes.int32)
    shape = broadcast_shapes(p.shape[1:], x.shape)
    x = ew.convert(spread(x, shape), x.dtype)
    start = fill(x, 0)
    if p.shape[0] == 0:
        return start

    def step(x, value, coefficient):
        return [ew.add(ew.mul(value, x), spread(coefficient, shape))]

    p = ew.convert(p, p.dtype)
    one = ax.reshape(shaping.slice_in_dim(p, 0, 1), p.shape[1:])
    if p.shape[0] <= unroll:
        parts = shaping.split(p, (1,) * p.shape[0], 0)
        value = spread(one, shape)
        for part in parts[1:]:
            (value,) = step(x, value, ax.reshape(part, p.shape[1:]))
        return value
    program, _ = recorded(step, [x.aval, start.aval, aval_of(one)], "polyval")
    return scan(program, [x], [start], [p], length=p.shape[0], unroll=unroll)[0]


def polyder(p, m: int = 1) -> Array:
    """The coefficients of the m-th derivative.

    >>> polyder(np.array([1.0, 2.0, 3.0]))
    Array([2., 2.], dtype=float64)
    """
    m = index_of("polyder", "m", m)
    if m < 0:
        raise ValueError(f"polyder: order of derivative must be positive, got m={m} (see polyint)")
    return _derivative(operand("polyder", p), m)


def _falling(n: int, m: int) -> np.ndarray:
    """k (k - 1) .. (k - m + 1) for k = n - 1, .., m: what x^k is multiplied by when it is differentiated m times."""
    powers = np.arange(n - 1, m - 1, -1, dtype=np.float64)
    return np.prod([powers - i for i in range(m)], axis=0) if m else np.ones_like(powers)


@fused(static=("m",))
def _derivative(p, m):
    (p,) = _vectors("polyder", p, inexact=True)
    if m == 0:
        return p
    n = p.size
    left = shaping.slice_in_dim(p, 0, max(n - m, 0))
    return ew.mul(left, asarray(_falling(n, m), p.dtype)) if n > m else left


def polyint(p, m: int = 1, k=None) -> Array:
    """The coefficients of the m-th integral; `k` holds the constants of integration, one for all or m of them (0).

    >>> polyint(np.array([2.0, 2.0]))
    Array([1., 2., 0.], dtype=float64)
    """
    m = index_of("polyint", "m", m)
    if m < 0:
        raise ValueError(f"polyint: order of integral must be positive, got m={m} (see polyder)")
    k = np.asarray(k) if isinstance(k, list | tuple) else k
    return _integral(*settle("polyint", p, 0 if k is None else k), m)


@fused(static=("m",))
def _integral(p, k, m):
    p, k = _vectors("polyint", p, k, inexact=True)
    if k.size == 1:
        k = spread(k, (m,))
    if k.size != m:
        raise ValueError(f"polyint: k must be a number or a vector of length 1 or {m}, got {k.aval}")
    if m == 0:
        return p
    n = p.size + m
    factors = np.concatenate([_falling(n, m), *[[math.factorial(i)] for i in range(m - 1, -1, -1)]])
    return ew.div(shaping.concatenate([p, k], 0), asarray(factors, p.dtype))


# ---- other forms -------------------------------------------------------------------------------------------------


def vander(x, N: int | None = None, increasing: bool = False) -> Array:
    """The powers x^(N-1), .., x, 1 of each element of a vector, a row each; the other way around if `increasing`.

    >>> vander(np.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int64)
    """
    count = None if N is None else index_of("vander", "N", N)
    if count is not None and count < 0:
        raise ValueError(f"vander: N must be nonnegative, got {count}")
    return _vander(operand("vander", x), count, bool(increasing))


@fused(static=("count", "increasing"))
def _vander(x, count, increasing):
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError(f"vander expects a vector, got {x.aval}")
    x = ew.convert(x, dtypes.int32) if dtypes.is_bool(x.dtype) else x
    count = x.size if count is None else count
    exponent = shaping.iota(dtypes.int32, (x.size, count), 1)
    exponent = exponent if increasing else ew.sub(count - 1, exponent)
    base = ax.broadcast_in_dim(x, (x.size, count), (0,))
    return tr.pow(base, exponent) if dtypes.is_inexact(x.dtype) else power(base, ew.convert(exponent, x.dtype))


def trim_zeros(filt, trim: str = "fb", axis: Any = None) -> Array:
    """`filt`, whose values are known, without the zeros in front ('f' in `trim`) and behind ('b'), along the given axes.

    >>> trim_zeros(np.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int64)
    """
    filt = as_array(operand("trim_zeros", filt))
    known = concrete("trim_zeros", "the array", filt)
    axes = range(filt.ndim) if axis is None else (axis if isinstance(axis, tuple | list) else (axis,))
    for i in (index_of("trim_zeros", "axis", a) % max(filt.ndim, 1) for a in axes):
        there = np.flatnonzero((known != 0).any(tuple([j for j in range(filt.ndim) if j != i])))
        start = (there[0] if there.size else 0) if "f" in trim.lower() else 0
        stop = (there[-1] + 1 if there.size else 0) if "b" in trim.lower() else filt.shape[i]
        if not there.size and set("fb").intersection(trim.lower()):
            start = stop = 0
        filt = shaping.slice_in_dim(filt, int(start), int(stop), axis=i)
    return filt
