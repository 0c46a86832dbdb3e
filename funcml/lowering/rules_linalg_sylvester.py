"""StableHLO of `primitives.linalg_sylvester`: Schur forms of both matrices, then column by column.

    r = u^H a u, s = v^H b v upper triangular:  r y + y s = u^H c v,  x = u y v^H
    column j: (r + s_jj) y_j = f_j - sum over k < j of y_k s_kj

(R. Bartels and G. Stewart, Solution of the matrix equation AX + XB = C, 1972.)
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.tracing import aval_of
from funcml.lowering.compositions import composed, repeated
from funcml.lowering.emit import lowers
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, expand_dims, reduce_or, reduce_sum
from funcml.primitives.linalg_condensed import schur
from funcml.primitives.linalg_solve import triangular_solve
from funcml.primitives.linalg_sylvester import sylvester_p
from funcml.primitives.matrices import adjoint, diagonal_mask, product
from funcml.primitives.shaping import iota
from funcml.primitives.spectra import along_columns, along_rows, diagonal
from funcml.primitives.tangents import scalar_of, zeros


@lowers(sylvester_p)
def _sylvester(emit, eqn, operands):
    avals, out = [v.aval.strong() for v in eqn.invars], eqn.outvars[0].aval
    if out.size == 0:
        return emit.constant(0, out)
    dtype = dtypes.complex_dtype(out.dtype)
    a, b, c = (x.update(dtype=dtype) for x in avals)
    r, u, s, v, f = composed(emit, _triangular, operands, avals)
    start = emit.constant(0, c)
    (y,) = repeated(emit, c.shape[-1], _column, [r, s, f], [a, b, c], [start], [c])
    shapes = [a, a, b, b, c]
    return composed(
        emit, lambda r, u, s, v, y: [_back(r, u, s, v, y, out.dtype, eqn.params["tol"])], [r, u, s, v, y], shapes
    )


def _triangular(a, b, c):
    a, b, c = (ew.convert(x, dtypes.complex_dtype(aval_of(x).dtype)) for x in (a, b, c))
    r, u = schur(a)
    s, v = schur(b)
    return r, u, s, v, product(product(adjoint(u), c), v)


def _column(j, r, s, f, y):
    """`y` with its column j."""
    aval = aval_of(f)
    f_j, s_j = _picked(f, j), _picked(s, j)
    known = ew.sub(expand_dims(f_j, (aval.ndim - 1,)), product(y, expand_dims(s_j, (aval.ndim - 1,))))
    s_jj = _picked(expand_dims(diagonal(s), (aval.ndim - 2,)), j)
    square = aval_of(r).shape
    shift = broadcast_in_dim(s_jj, square, (*range(aval.ndim - 2), aval.ndim - 2))
    shifted = ew.add(r, ew.select(diagonal_mask(square), shift, zeros(aval_of(r))))
    found = triangular_solve(shifted, known, left_side=True, lower=False)
    found = broadcast_in_dim(found, aval.shape, tuple(range(aval.ndim)))
    return [ew.select(_is_column(aval.shape, j), found, y)]


def _is_column(shape, j):
    return ew.eq(iota(dtypes.int32, shape, len(shape) - 1), broadcast_in_dim(j, shape, ()))


def _picked(x, j):
    """Column j of `x`."""
    aval = aval_of(x)
    return reduce_sum(ew.select(_is_column(aval.shape, j), x, zeros(aval)), (aval.ndim - 1,))


def _back(r, u, s, v, y, dtype, tol):
    x = product(product(u, y), adjoint(v))
    aval = aval_of(x)
    sums = ew.abs(ew.add(along_rows(diagonal(r), aval.shape), along_columns(diagonal(s), aval.shape)))
    limit = broadcast_in_dim(scalar_of(aval_of(sums), tol), aval.shape)
    singular = reduce_or(ew.lt(sums, limit), (aval.ndim - 2, aval.ndim - 1))
    singular = broadcast_in_dim(singular, aval.shape, tuple(range(aval.ndim - 2)))
    x = ew.real(x) if not dtypes.is_complex(dtype) else x
    nan = broadcast_in_dim(scalar_of(shaped((), dtype), float("nan")), aval.shape)
    return ew.select(singular, nan, x)
