"""Factors by reflections.

    geqrf               : a [.., m, n] -> (packed [.., m, n], taus [.., k])                    k = min(m, n)
    geqp3               : (a [.., m, n], places [.., n]) -> (packed, places, taus)             the greatest column first
    householder_product : (packed [.., m, n], taus [.., k]) -> q [.., m, n]                    k <= n <= m
    ormqr               : (packed [.., m, n], taus [.., k], c) -> q c, q^H c, c q or c q^H
    qr                  : a [.., m, n] -> (q, r), or (q, r, permutation)

Reflection i is h_i = 1 - tau_i v_i v_i^H; v_i has zeros, then a one at i, then what stands below the diagonal of column i of
`packed`; r stands on and above the diagonal. q = h_1 h_2 .. h_k = 1 - v t v^H, with t upper triangular and
t^-1 = diag(1 / tau) + striu(v^H v): R. Schreiber and C. Van Loan, A storage-efficient WY representation (1989).
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.linear import is_undefined, is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, reduce_sum
from funcml.primitives.elementwise import add, add_any, eq, neg, select, sub
from funcml.primitives.indexing import take_along_axis
from funcml.primitives.linalg_lu import lu
from funcml.primitives.linalg_solve import factored_solve, triangular_solve
from funcml.primitives.matrices import (
    MatrixMap,
    MatrixPrimitive,
    adjoint,
    conjugate,
    diagonal_mask,
    eye,
    lower,
    product,
    real_part,
    upper,
)
from funcml.primitives.shaping import concatenate, iota, pad, slice_in_dim
from funcml.primitives.tangents import instantiate, scalar_of, zero_tangent, zeros

__all__ = ["geqp3", "geqrf", "householder_product", "ormqr", "qr", "qr_by_reflections", "reflected"]


# ---- parts of matrices -------------------------------------------------------------------------------------------


def _rows(x, start, limit):
    return slice_in_dim(x, start, limit, axis=aval_of(x).ndim - 2)


def _columns(x, start, limit):
    return slice_in_dim(x, start, limit, axis=aval_of(x).ndim - 1)


def _filled(x, rows, columns):
    """`x` with zeros behind it, [.., rows, columns]."""
    *batch, m, n = aval_of(x).shape
    return pad(x, 0.0, [*[(0, 0, 0)] * len(batch), (0, rows - m, 0), (0, columns - n, 0)])


def _diagonal_matrix(d):
    aval = aval_of(d)
    shape = (*aval.shape, aval.shape[-1])
    wide = broadcast_in_dim(d, shape, tuple(range(aval.ndim)))
    return select(diagonal_mask(shape), wide, zeros(aval_of(wide)))


def _diagonal_of(x):
    """The diagonal of square matrices."""
    aval = aval_of(x)
    return reduce_sum(select(diagonal_mask(aval.shape), x, zeros(aval)), (aval.ndim - 1,))


def _columns_taken(x, permutation):
    aval = aval_of(x)
    dims = (*range(aval.ndim - 2), aval.ndim - 1)
    return take_along_axis(x, broadcast_in_dim(permutation, aval.shape, dims), aval.ndim - 1)


def _unit_lower(packed, columns):
    """v [.., m, columns]: the vectors of the first reflections."""
    below = lower(_columns(packed, 0, columns), -1)
    return add(below, eye(aval_of(below)))


# ---- q as a product of reflections -------------------------------------------------------------------------------


class _Reflections:
    """v and t of q = 1 - v t v^H, with their tangents."""

    def __init__(self, packed, taus):
        self.k = aval_of(taus).shape[-1]
        self.taus = taus
        self.v = _unit_lower(packed, self.k)
        d = _diagonal_matrix(taus)
        self.overlaps = upper(product(adjoint(self.v), self.v), 1)
        self.system = add(eye(aval_of(d)), product(d, self.overlaps))
        self.t = self._solve(d)

    # t = (1 + d s)^-1 d, with d = diag(tau), s = striu(v^H v)
    def _solve(self, x):
        return triangular_solve(self.system, x, left_side=True, unit_diagonal=True)

    # (1 + d s) t' = d' - (d' s + d s') t
    def tangents(self, packed_tangent, taus_tangent):
        """(v', t')."""
        tv = lower(_columns(instantiate(packed_tangent), 0, self.k), -1)
        td = _diagonal_matrix(instantiate(taus_tangent))
        half = product(adjoint(self.v), tv)
        ts = upper(add_any(half, adjoint(half)), 1)
        change = add_any(product(td, self.overlaps), product(_diagonal_matrix(self.taus), ts))
        return tv, self._solve(sub(td, product(change, self.t)))


class HouseholderProduct(MatrixPrimitive):
    """The first n columns of q = h_1 .. h_k."""

    def type_rule(self, packed, taus):
        self.batch_of(packed, taus)
        (m, n), k = packed.shape[-2:], taus.shape[-1]
        if not k <= n <= m:
            raise ValueError(
                f"{self.name} expects at least as many rows as columns, and no more taus than columns, got {packed} and {taus}"
            )
        return packed.update(weak_type=False)

    # q' = -(v' t v^H + v t' v^H + v t v'^H), of v^H its first n columns
    def jvp_rule(self, primals, tangents):
        q = bind(self, primals)
        if all(map(is_zero, tangents)):
            return q, zero_tangent(q)
        n = aval_of(q).shape[-1]
        r = _Reflections(*primals)
        tv, tt = r.tangents(*tangents)
        top, top_tangent = adjoint(_rows(r.v, 0, n)), adjoint(_rows(tv, 0, n))
        right = add_any(product(tt, top), product(r.t, top_tangent))
        return q, neg(add_any(product(tv, product(r.t, top)), product(r.v, right)))


householder_product_p = HouseholderProduct("householder_product", (2, 1))


def householder_product(packed, taus):
    """The first n columns of the product of the reflections that `packed` [.., m, n] and `taus` [.., k] have."""
    return bind(householder_product_p, (packed, taus))


class Ormqr(MatrixMap):
    """q c (`left`) or c q, with `transpose` q^H in place of q; q is the product of all reflections, [.., m, m]."""

    def type_rule(self, packed, taus, c, *, left, transpose):
        self.batch_of(packed, taus, c)
        (m, n), k = packed.shape[-2:], taus.shape[-1]
        if k > min(m, n):
            raise ValueError(f"{self.name}: {packed} holds at most {min(m, n)} reflections, got {taus}")
        if c.shape[-2 if left else -1] != m:
            side = "rows" if left else "columns"
            raise ValueError(f"{self.name} by {packed} expects a matrix of {m} {side}, got {c}")
        return c.update(weak_type=False)

    def by_columns(self, params):
        return params["left"]

    # (q c)' = q c' - (v' w v^H + v w' v^H + v w v'^H) c, with w = t, or t^H for q^H
    def jvp_rule(self, primals, tangents, **params):
        packed, taus, c = primals
        tp, ttau, tc = tangents
        out = bind(self, primals, params)
        moved = None if is_zero(tc) else bind(self, (packed, taus, tc), params)
        if is_zero(tp) and is_zero(ttau):
            return out, zero_tangent(out) if moved is None else moved
        r = _Reflections(packed, taus)
        tv, tt = r.tangents(tp, ttau)
        w, tw = (adjoint(r.t), adjoint(tt)) if params["transpose"] else (r.t, tt)
        change = add_any(_sandwich(tv, w, r.v), add_any(_sandwich(r.v, tw, r.v), _sandwich(r.v, w, tv)))
        turned = neg(product(change, c) if params["left"] else product(c, change))
        return out, turned if moved is None else add_any(moved, turned)

    # ct_c = q^T ct = conj(q^H conj(ct))
    def transpose_rule(self, ct, packed, taus, c, *, left, transpose):
        if is_undefined(packed) or is_undefined(taus):
            raise TypeError(f"{self.name} is linear in the matrix that is multiplied alone")
        return [None, None, conjugate(ormqr(packed, taus, conjugate(ct), left=left, transpose=not transpose))]


def _sandwich(x, w, y):
    return product(product(x, w), adjoint(y))


def reflected(packed, taus, c, *, left, transpose):
    """What `ormqr` computes, by products of matrices: c - v t v^H c."""
    r = _Reflections(packed, taus)
    t = adjoint(r.t) if transpose else r.t
    if left:
        return [sub(c, product(r.v, product(t, product(adjoint(r.v), c))))]
    return [sub(c, product(product(product(c, r.v), t), adjoint(r.v)))]


ormqr_p = Ormqr("ormqr", (2, 1, 2))


def ormqr(packed, taus, c, *, left: bool = True, transpose: bool = False):
    """q c, q^H c (`transpose`), c q or c q^H (not `left`), q being the product of reflections that `geqrf` gives."""
    return bind(ormqr_p, (packed, taus, c), {"left": bool(left), "transpose": bool(transpose)})


# ---- the factors -------------------------------------------------------------------------------------------------


# x = q' r + q r'  =>  q^H x r^-1 = q^H q' + r' r^-1, of which the first is antihermitian, the second upper triangular
# with a real diagonal.   J. Townsend, Differentiating the QR decomposition (2018)
def _thin_tangents(q, r, x):
    """(q', r') of a [.., m, n] = q r with m >= n, from its tangent `x`."""
    scaled = triangular_solve(r, x)
    inner = product(adjoint(q), scaled)
    below = lower(inner, -1)
    turn = sub(below, adjoint(below))
    if dtypes.is_complex(aval_of(r).dtype):
        turn = add(turn, select(diagonal_mask(aval_of(inner).shape), sub(inner, real_part(inner)), zeros(aval_of(inner))))
    tq = product(q, turn)
    if aval_of(q).shape[-2] > aval_of(q).shape[-1]:
        tq = add(tq, sub(scaled, product(q, inner)))  # what leaves the span of q
    return tq, product(sub(inner, turn), r)


def _tangents(q, r, x):
    """(q', r') of a = q r with q [.., m, k] and r [.., k, n], k = min(m, n)."""
    m, n = aval_of(x).shape[-2:]
    if m >= n:
        return _thin_tangents(q, r, x)
    tq, tr = _thin_tangents(q, _columns(r, 0, m), _columns(x, 0, m))
    # a_2 = q r_2  =>  r_2' = q^H a_2' + q'^H q r_2
    behind = _columns(r, m, n)
    rest = add(product(adjoint(q), _columns(x, m, n)), product(product(adjoint(tq), q), behind))
    return tq, concatenate([tr, rest], aval_of(tr).ndim - 1)


# The first k columns of 1 - q are v (t v_1^H), v_1 being the first k rows of v: a unit lower triangular matrix times an
# upper triangular one, whose diagonal is tau. With l = v filled up to a square and u = t v_1^H, as for `lu`:
# l^-1 (-q') u^-1 = l^-1 l' + u' u^-1.
def _packed_tangents(packed, taus, x):
    """The tangents of `packed` and `taus`, from that of the matrix (its columns permuted)."""
    m, n = aval_of(packed).shape[-2:]
    k = min(m, n)
    q = householder_product(_columns(packed, 0, k), taus)
    tq, tr = _tangents(q, upper(_rows(packed, 0, k)), x)
    v = _unit_lower(packed, k)
    l = add(_filled(lower(v, -1), m, m), eye(aval_of(v).update(shape=(*aval_of(v).shape[:-1], m))))

    def reduced(y):
        return triangular_solve(l, y, left_side=True, lower=True, unit_diagonal=True)

    u = upper(_rows(reduced(sub(eye(aval_of(q)), q)), 0, k))
    step = neg(reduced(tq))
    no_zero = select(_on_diagonal(eq(u, zeros(aval_of(u)))), eye(aval_of(u)), u)
    left = lower(triangular_solve(no_zero, step), -1)
    tau_tangent = _diagonal_of(_rows(sub(step, product(left, u)), 0, k))
    return add(_filled(product(l, left), m, n), _filled(tr, m, n)), tau_tangent


def _on_diagonal(mask):
    return select(diagonal_mask(aval_of(mask).shape), mask, zeros(aval_of(mask)))


class Geqrf(MatrixPrimitive):
    """(packed, taus) of a = q r."""

    multiple_results = True

    def type_rule(self, a):
        batch = self.batch_of(a)
        return a.update(weak_type=False), shaped((*batch, min(a.shape[-2:])), a.dtype)

    def jvp_rule(self, primals, tangents):
        outs = bind(self, primals)
        (t,) = tangents
        return outs, list(map(zero_tangent, outs)) if is_zero(t) else list(_packed_tangents(*outs, t))


geqrf_p = Geqrf("geqrf", (2,))


def geqrf(a):
    """(packed [.., m, n], taus [.., k]): r above and the reflections below the diagonal."""
    return tuple(bind(geqrf_p, (a,)))


class Geqp3(MatrixPrimitive):
    """(packed, places, taus) of a[:, places - 1] = q r; columns whose given place is not 0 come first.

    `use_magma` says whether a GPU computes it by MAGMA (None: if it is there), else on the host.
    """

    multiple_results = True

    def type_rule(self, a, places, *, use_magma):
        batch = self.batch_of(a, places)
        if places.dtype != dtypes.int32 or places.shape[-1] != a.shape[-1]:
            raise TypeError(f"{self.name} of {a} expects places i32[.., {a.shape[-1]}], got {places}")
        return a.update(weak_type=False), places, shaped((*batch, min(a.shape[-2:])), a.dtype)

    def jvp_rule(self, primals, tangents, **params):
        outs = bind(self, primals, params)
        packed, places, taus = outs
        t = tangents[0]
        if is_zero(t):
            return outs, list(map(zero_tangent, outs))
        ordered = _columns_taken(t, sub(places, _ones(places)))
        tp, ttau = _packed_tangents(packed, taus, ordered)
        return outs, [tp, zero_tangent(places), ttau]


def _ones(x):
    aval = aval_of(x)
    return broadcast_in_dim(scalar_of(aval, 1), aval.shape)


geqp3_p = Geqp3("geqp3", (2, 1), indices=(1,))


def geqp3(a, places, *, use_magma: bool | None = None):
    """(packed, places, taus) with a[:, places - 1] = q r; columns whose given place (i32 [.., n]) is not 0 come first."""
    return tuple(bind(geqp3_p, (a, places), {"use_magma": use_magma}))


class Qr(MatrixPrimitive):
    """(q [.., m, k], r [.., k, n]) with k = min(m, n), or m for `full_matrices`; with `pivoting` the permutation of columns."""

    multiple_results = True

    def type_rule(self, a, *, pivoting, full_matrices, use_magma):
        batch = self.batch_of(a)
        m, n = a.shape[-2:]
        k = m if full_matrices else min(m, n)
        factors = shaped((*batch, m, k), a.dtype), shaped((*batch, k, n), a.dtype)
        return (*factors, shaped((*batch, n), dtypes.int32)) if pivoting else factors

    def jvp_rule(self, primals, tangents, **params):
        outs = bind(self, primals, params)
        (t,) = tangents
        if is_zero(t):
            return outs, list(map(zero_tangent, outs))
        q, r, *permutation = outs
        if permutation:
            t = _columns_taken(t, permutation[0])
        m, n = aval_of(t).shape[-2:]
        if aval_of(q).shape[-1] == min(m, n):
            tq, tr = _tangents(q, r, t)
        else:
            tq, tr = _thin_tangents(_columns(q, 0, n), _rows(r, 0, n), t)
            tq, tr = _completed(q, tq), _filled(tr, m, n)
        return outs, [tq, tr, *map(zero_tangent, permutation)]


# With the blocks q = (q_1 q_2) and q_1 = (q_11 q_21) by n columns and rows, v (t v_1^H) = (1 - q)_1 gives
# q_2 = e_2 - (e_1 - q_1) w, where (1 - q_11)^H w = -q_21^H; so q_2' = q_1' w - (e_1 - q_1) w',
# (1 - q_11)^H w' = q_11'^H w - q_21'^H.
def _completed(q, tq_1):
    """The tangent of the square q of a tall matrix, from that of its first n columns."""
    m, n = aval_of(tq_1).shape[-2:]
    q_1 = _columns(q, 0, n)
    remaining = sub(eye(aval_of(q_1)), q_1)
    matrix = adjoint(_rows(remaining, 0, n))
    factors, _, permutation = lu(matrix)
    w = factored_solve(matrix, factors, permutation, adjoint(_rows(remaining, n, m)))
    right = sub(product(adjoint(_rows(tq_1, 0, n)), w), adjoint(_rows(tq_1, n, m)))
    tw = factored_solve(matrix, factors, permutation, right)
    return concatenate([tq_1, sub(product(tq_1, w), product(remaining, tw))], aval_of(q).ndim - 1)


qr_p = Qr("qr", (2,))


def qr(a, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None):
    """(q, r) of `a` [.., m, n], and with `pivoting` the permutation of its columns for which a[:, permutation] = q r."""
    params = {"pivoting": bool(pivoting), "full_matrices": bool(full_matrices), "use_magma": use_magma}
    return tuple(bind(qr_p, (a,), params))


def qr_by_reflections(a, *, pivoting, full_matrices, use_magma):
    """What `qr` computes, by `geqrf` or `geqp3` and `householder_product`."""
    aval = aval_of(a)
    *batch, m, n = aval.shape
    k = m if full_matrices else min(m, n)
    permutation = []
    if not m or not n:
        q, r = eye(aval.update(shape=(*batch, m, k))), zeros(aval.update(shape=(*batch, k, n)))
        if pivoting:
            permutation = [broadcast_in_dim(iota(dtypes.int32, (n,)), (*batch, n), (len(batch),))]
        return q, r, *permutation
    if pivoting:
        packed, places, taus = geqp3(a, zeros(shaped((*batch, n), dtypes.int32)), use_magma=use_magma)
        permutation = [sub(places, _ones(places))]
    else:
        packed, taus = geqrf(a)
    vectors = _columns(packed, 0, min(m, n))
    q = householder_product(_filled(vectors, m, k), taus)
    return q, upper(_rows(packed, 0, k)), *permutation
