"""Determinants and their logarithms.

    det(a)' = tr(adj(a) a')           log |det(a)|' = Re tr(a^-1 a')

The adjugate exists for singular matrices too, where det(a) a^-1 is 0 / 0. There, with the singular value decomposition
a = u s v^H of the point at which the derivative is taken, u and v held fixed: a = u m v^H, adj(a) = det(u v^H) v adj(m) u^H,
where m is diagonal at that point. Let e mark the two smallest singular values, and all that are zero to rounding, and
b = m + r e, r the largest. Then b is regular, and with w = b^-1 and c = 1 - r e w e = (1 - e) + e m w e

    det(m) = det(b) det(c)          adj(m) = det(b) (det(c) w + r w e adj(c) e w)

c is diagonal at the point. What its elements off the diagonal do is right to the first order in adj(c), which is all there is if
two are marked: derivatives of the determinant are right to the second order, and at rank n - 2 or more to every order.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from funcml import dtypes
from funcml.control_flow.cond import cond
from funcml.control_flow.programs import recorded
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.linalg.operands import check_square, matrix_of, narrow, wide
from funcml.numpy.linalg.systems import solved
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import linalg_lu, linalg_qr, linalg_solve, reductions, shaping
from funcml.primitives import transcendental as tr
from funcml.primitives.identities import stop_gradient
from funcml.primitives.linalg_spectral import svd
from funcml.primitives.matrices import adjoint, diagonal_mask, eye, product, transposed
from funcml.primitives.spectra import along_columns, along_rows, diagonal
from funcml.primitives.tangents import scalar_of, zeros
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["SlogdetResult", "det", "slogdet"]


class SlogdetResult(NamedTuple):
    """The sign (or phase) of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


def _filled(aval, value):
    return ax.broadcast_in_dim(scalar_of(aval, value), aval.shape)


# ---- det ---------------------------------------------------------------------------------------------------------


@fused
def det(a) -> Array:
    """The determinants of square matrices [.., n, n]; 1 for n = 0.

    Derivatives are right for singular matrices too. Raises ValueError for matrices that are not square.

    >>> import numpy as np
    >>> det(np.float32([[1, 2], [3, 4]]))
    Array(-2., dtype=float32)
    """
    a = check_square("det", matrix_of("det", a))
    n = a.shape[-1]
    if n == 0:
        return _filled(a.aval.update(shape=a.shape[:-2]), 1)
    x = wide(a)
    return narrow(_expanded(x, tuple(range(n)), tuple(range(n))) if n < 5 else _det(x), a.dtype)


def _at(a, i, j):
    batch = len(a.shape) - 2
    element = shaping.slice_in_dim(shaping.slice_in_dim(a, i, i + 1, axis=batch), j, j + 1, axis=batch + 1)
    return ax.squeeze(element, (batch, batch + 1))


def _minor(a, i, j, k, l):
    return ew.sub(ew.mul(_at(a, i, k), _at(a, j, l)), ew.mul(_at(a, i, l), _at(a, j, k)))


def _expanded(a, rows, columns):
    """The determinant of up to 4 rows and columns as a sum of products, by pairs of rows (Laplace)."""
    if len(rows) == 1:
        return _at(a, rows[0], columns[0])
    if len(rows) == 2:
        return _minor(a, *rows, *columns)
    top = len(rows) - 2
    total = None
    for chosen in itertools.combinations(range(len(columns)), top):
        others = [k for k in range(len(columns)) if k not in chosen]
        first = _expanded(a, rows[:top], [columns[k] for k in chosen])
        term = ew.mul(first, _minor(a, *rows[top:], *[columns[k] for k in others]))
        odd = (sum(chosen) - sum(range(top))) % 2
        total = term if total is None else (ew.sub if odd else ew.add)(total, term)
    return total


def _parity(pivots, dtype):
    """1 or -1: the sign of the permutation that exchanging row i with row `pivots[i]` makes."""
    aval = pivots.aval
    last = aval.ndim - 1
    moved = ew.ne(pivots, shaping.iota(aval.dtype, aval.shape, last))
    signs = ew.select(moved, _filled(aval.update(dtype=dtype), -1), _filled(aval.update(dtype=dtype), 1))
    return reductions.reduce_prod(signs, (last,))


def _of_factors(lu, pivots):
    d = diagonal(lu)
    return ew.mul(reductions.reduce_prod(d, (d.ndim - 1,)), _parity(pivots, lu.dtype))


@custom_jvp
def _det(a):
    lu, pivots, _ = linalg_lu.lu(a)
    return _of_factors(lu, pivots)


# det' = tr(adj(a) a'), which is det tr(a^-1 a') where no matrix of the batch is near to a singular one
@_det.defjvp
def _det_jvp(primals, tangents):
    (a,), (t,) = primals, tangents
    lu, pivots, permutation = linalg_lu.lu(stop_gradient(a))
    regular = _is_regular(lu)
    spread = ax.broadcast_in_dim(regular, lu.shape, tuple(range(regular.ndim)))
    operands = (a, ew.select(spread, lu, eye(lu.aval)), pivots, permutation, t)
    avals = [x.aval for x in operands]
    branches = [recorded(f, avals, "det")[0] for f in (_slope_by_adjugate, _slope_by_inverse)]
    all_regular = ew.convert(reductions.reduce_and(regular, tuple(range(regular.ndim))), dtypes.int32)
    return _det(a), cond(all_regular, branches, operands)[0]


def _is_regular(lu):
    """Whether the pivots tell that a matrix is far from singular ones."""
    size = ew.abs(diagonal(lu))
    last = (size.ndim - 1,)
    least, largest = reductions.reduce_min(size, last), reductions.reduce_max(size, last)
    limit = _filled(least.aval, 10 * lu.shape[-1] * float(dtypes.finfo(least.dtype).eps))
    return ew.gt(least, ew.mul(limit, largest))


def _slope_by_inverse(a, lu, pivots, permutation, t):
    value = _factored_det(a, lu, pivots, permutation)
    return [ew.mul(value, _trace(linalg_solve.factored_solve(a, lu, permutation, t)))]


def _slope_by_adjugate(a, lu, pivots, permutation, t):
    return [_sum_of_products(transposed(_adjugate(a)), t)]


@custom_jvp
def _factored_det(a, lu, pivots, permutation):
    return _of_factors(lu, pivots)


@_factored_det.defjvp
def _factored_det_jvp(primals, tangents):
    value = _factored_det(*primals)
    a, lu, _, permutation = primals
    return value, ew.mul(value, _trace(linalg_solve.factored_solve(a, lu, permutation, tangents[0])))


def _regular_det(a):
    """The determinant of matrices that are not singular."""
    lu, pivots, permutation = linalg_lu.lu(stop_gradient(a))
    return _factored_det(a, lu, pivots, permutation)


def _sum_of_products(x, y):
    return ax.reduce_sum(ew.mul(x, y), (x.ndim - 2, x.ndim - 1))


def _trace(x):
    d = diagonal(x)
    return ax.reduce_sum(d, (d.ndim - 1,))


def _adjugate(a):
    """adj(a), for matrices of every rank."""
    u, s, vh = svd(stop_gradient(a), full_matrices=False)
    phase = _of_factors(*linalg_lu.lu(product(u, vh))[:2])
    adj, scale = _adjugate_near_diagonal(product(product(adjoint(u), a), adjoint(vh)), s)
    adj = product(product(adjoint(vh), adj), adjoint(u))
    factor = ew.mul(phase, scale)
    return ew.mul(adj, ax.broadcast_in_dim(factor, adj.shape, tuple(range(factor.ndim))))


# See the head of this file for the names.
def _adjugate_near_diagonal(m, s):
    """(x, f) with adj(m) = f x, for matrices `m` that are diagonal at the point, with `s` on the diagonal."""
    shape, real = m.aval.shape, s.aval
    largest = reductions.reduce_max(s, (s.ndim - 1,))
    largest = ew.select(ew.eq(largest, 0), _filled(largest.aval, 1), largest)
    r = along_rows(largest, real.shape)
    limit = scalar_of(real, real.shape[-1] * float(dtypes.finfo(real.dtype).eps))
    places = shaping.iota(dtypes.int32, real.shape, len(real.shape) - 1)
    is_last = ew.ge(places, _filled(places.aval, real.shape[-1] - 2))
    e = ew.convert(ew.or_(is_last, ew.le(s, ew.mul(r, limit))), m.dtype)
    rows, columns = along_rows(e, shape), along_columns(e, shape)
    shift = ew.convert(along_rows(r, shape), m.dtype)
    one = eye(m.aval)
    b = ew.add(m, ew.mul(ew.mul(one, rows), shift))
    w = solved(b, one)
    c = ew.add(ew.sub(one, ew.mul(one, rows)), ew.mul(ew.mul(product(m, w), rows), columns))
    det_c, adj_c = _of_almost_diagonal(c)
    inner = ew.mul(product(product(ew.mul(w, columns), adj_c), ew.mul(rows, w)), shift)
    out = ew.add(ew.mul(w, ax.broadcast_in_dim(det_c, shape, tuple(range(det_c.ndim)))), inner)
    return out, _regular_det(b)


def _of_almost_diagonal(c):
    """det(c) to the second and adj(c) to the first order in the elements off the diagonal."""
    shape = c.aval.shape
    last = len(shape) - 1
    on_diagonal = diagonal_mask(shape)
    off = ew.select(on_diagonal, zeros(c.aval), c)
    d = diagonal(c)
    rows = ew.select(on_diagonal, _filled(c.aval, 1), along_columns(d, shape))
    before = reductions.cumprod(_shifted(rows, False), last)
    after = reductions.cumprod(_shifted(rows, True), last, reverse=True)
    others = ew.mul(before, after)  # at (i, j): the product of all elements of the diagonal but those at i and j
    pairs = _sum_of_products(ew.mul(off, transposed(off)), others)
    det_c = ew.sub(reductions.reduce_prod(d, (last - 1,)), ew.mul(pairs, _filled(pairs.aval, 0.5)))
    return det_c, ew.select(on_diagonal, others, ew.neg(ew.mul(off, others)))


def _shifted(x, back: bool):
    """`x` moved by one place along its last axis, with a one at the free end."""
    last, n = x.ndim - 1, x.shape[-1]
    one = _filled(x.aval.update(shape=(*x.shape[:-1], 1)), 1)
    if back:
        return shaping.concatenate([shaping.slice_in_dim(x, 1, n, axis=last), one], last)
    return shaping.concatenate([one, shaping.slice_in_dim(x, 0, n - 1, axis=last)], last)


# ---- slogdet -----------------------------------------------------------------------------------------------------


def slogdet(a, *, method: str | None = None) -> SlogdetResult:
    """(sign, logabsdet) of square matrices [.., n, n], with det = sign exp(logabsdet); a singular one gives (0, -inf).

    The sign of a complex determinant is its phase. `method` is 'lu' (the default) or 'qr'.

    >>> import numpy as np
    >>> slogdet(np.float32([[1, 2], [3, 4]])).sign
    Array(-1., dtype=float32)
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be 'lu' or 'qr', got {method!r}")
    return SlogdetResult(*_slogdet(a, "qr" if method == "qr" else "lu"))


@fused(static=("method",))
def _slogdet(a, method):
    a = check_square("slogdet", matrix_of("slogdet", a))
    sign, size = _sign_and_log(wide(a), method)
    return narrow(sign, a.dtype), narrow(size, a.dtype)


def _sign_and_log_value(a, method):
    if method == "qr":
        d, sign = _by_reflections(a)
    else:
        lu, pivots, _ = linalg_lu.lu(a)
        d, sign = diagonal(lu), _parity(pivots, a.dtype)
    last = d.ndim - 1
    sign = ew.mul(sign, reductions.reduce_prod(ew.sign(d), (last,)))
    return sign, ax.reduce_sum(tr.log(ew.abs(d)), (last,))


def _by_reflections(a):
    """The diagonal of r, and det(q): each reflection contributes -tau / conj(tau), or 1 if tau is 0."""
    packed, taus = linalg_qr.geqrf(a)
    still = ew.eq(taus, zeros(taus.aval))
    phase = ew.sign(taus)
    turned = ew.neg(ew.mul(phase, phase))
    return diagonal(packed), reductions.reduce_prod(ew.select(still, _filled(taus.aval, 1), turned), (taus.ndim - 1,))


_sign_and_log = custom_jvp(_sign_and_log_value, nondiff_argnums=(1,))


# log(det)' = tr(a^-1 a'), of which the real part is that of log |det|, the imaginary part that of the phase
@_sign_and_log.defjvp
def _sign_and_log_jvp(method, primals, tangents):
    (a,), (t,) = primals, tangents
    sign, size = _sign_and_log(a, method)
    change = _trace(solved(a, t))
    if not dtypes.is_complex(aval_of(a).dtype):
        return (sign, size), (zeros(sign.aval), change)
    turn = ew.complex(zeros(size.aval), ew.imag(change))
    return (sign, size), (ew.mul(sign, turn), ew.real(change))
