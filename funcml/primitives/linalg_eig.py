"""Eigenvalues of square matrices.

    eig : [.., n, n] -> (w [.., n], left [.., n, n], right [.., n, n])      A right_j = w_j right_j,  left_j^H A = w_j left_j^H

Results are complex. A vector has length 1, and its component of greatest absolute value is real.
"""

from __future__ import annotations

import enum
import math

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.linear import is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, reduce_sum
from funcml.primitives.linalg_lu import lu
from funcml.primitives.linalg_solve import factored_solve
from funcml.primitives.matrices import MatrixPrimitive, adjoint, conjugate, product
from funcml.primitives.reductions import argmax, reduce_max
from funcml.primitives.shaping import iota
from funcml.primitives.spectra import along_columns, along_rows, diagonal, inverse_or_zero
from funcml.primitives.tangents import scalar_of, zero_tangent, zeros

__all__ = ["EigImplementation", "eig", "eig_p"]


class EigImplementation(enum.Enum):
    """Whose routine finds the eigenvalues of square matrices."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig(MatrixPrimitive):
    """Eigenvalues, and the vectors asked for."""

    multiple_results = True

    def type_rule(self, x, *, left, right, implementation):
        self.batch_of(x)
        self.square(x)
        dtype = dtypes.complex_dtype(x.dtype)
        vectors = shaped(x.shape, dtype)
        return (shaped(x.shape[:-1], dtype), *[vectors] * (left + right))

    # R the right vectors, P = R^-1 A' R:   w' = diag P    R' = R (F * P) + R c,  F_ij = 1 / (w_j - w_i)
    # (M. Giles, An extended collection of matrix derivative results, 2008, section 3.1; c keeps the vectors normalised)
    # The left vectors are the right ones of A^H, whose eigenvalues are conj w.
    def jvp_rule(self, primals, tangents, *, left, right, implementation):
        (t,) = tangents
        params = {"left": left, "right": right, "implementation": implementation}
        if is_zero(t):
            outs = bind(self, primals, params)
            return outs, list(map(zero_tangent, outs))
        if left and not right:
            w, vl = bind(self, primals, params)
            dw, dvl = _tangents(conjugate(w), vl, adjoint(t))
            return [w, vl], [conjugate(dw), dvl]
        w, *vl, vr = bind(self, primals, {**params, "right": True})
        dw, dvr = _tangents(w, vr, t)
        outs, moves = [w], [dw]
        if left:
            outs, moves = [w, *vl], [dw, _tangents(conjugate(w), vl[0], adjoint(t))[1]]
        return (outs + [vr], moves + [dvr]) if right else (outs, moves)


def _tangents(w, v, t):
    """w' and v' for a matrix with these eigenvalues and vectors that changes by `t`."""
    aval = aval_of(v)
    p = product(ew.convert(t, aval.dtype), v)
    factors, _, permutation = lu(v)
    p = factored_solve(v, factors, permutation, p)
    u = product(v, ew.mul(_differences_inverted(w, aval.shape), p))
    return diagonal(p), ew.add(u, ew.mul(v, along_columns(_normalising(v, u), aval.shape)))


def _differences_inverted(w, shape):
    """1 / (w_j - w_i), and 0 where these are equal to rounding."""
    difference = ew.sub(along_columns(w, shape), along_rows(w, shape))
    gap = ew.abs(difference)
    aval = aval_of(gap)
    largest = reduce_max(ew.abs(w), (aval.ndim - 2,))
    tolerance = 4 * float(dtypes.finfo(aval.dtype).eps) * math.sqrt(shape[-1])
    limit = ew.mul(broadcast_in_dim(largest, shape, tuple(range(aval.ndim - 2))), scalar_of(aval, tolerance))
    return inverse_or_zero(ew.select(ew.le(gap, limit), zeros(aval_of(difference)), difference))


# u_j + c_j v_j keeps the length: Re c_j = -Re v_j^H u_j; and component k real: Im c_j = -Im u_kj / v_kj
def _normalising(v, u):
    aval = aval_of(v)
    axis = aval.ndim - 2
    largest = argmax(ew.abs(v), axis)
    places = iota(dtypes.int32, aval.shape, axis)
    chosen = ew.eq(places, broadcast_in_dim(largest, aval.shape, (*range(axis), axis + 1)))
    u_k, v_k = (reduce_sum(ew.select(chosen, x, zeros(aval)), (axis,)) for x in (u, v))
    stretch = ew.real(reduce_sum(ew.mul(conjugate(v), u), (axis,)))
    return ew.complex(ew.neg(stretch), ew.neg(ew.div(ew.imag(u_k), ew.real(v_k))))


eig_p = Eig("eig", (2,))


def eig(x, *, left: bool = False, right: bool = True, implementation: EigImplementation | None = None):
    """(w, left vectors, right vectors) of `x`, the vectors where asked for."""
    params = {"left": bool(left), "right": bool(right), "implementation": implementation}
    return tuple(bind(eig_p, (x,), params))
