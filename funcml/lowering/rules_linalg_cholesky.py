"""StableHLO of `primitives.linalg_cholesky`."""

from __future__ import annotations

import numpy as np

from funcml.core.avals import shaped
from funcml.core.tracing import aval_of
from funcml.lowering.compositions import composed, repeated
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.matrix_calls import is_cuda, lapack_name, matrix_call, nan_unless, succeeded, u8
from funcml.primitives import linalg_cholesky as lc
from funcml.primitives.axes import broadcast_in_dim, reshape
from funcml.primitives.elementwise import abs, add, div, eq, max, mul, select, sub
from funcml.primitives.indexing import dynamic_slice, dynamic_update_slice
from funcml.primitives.matrices import lower, upper
from funcml.primitives.powers import sqrt, square
from funcml.primitives.tangents import scalar_of


@lowers(lc.cholesky_p)
def _cholesky(emit, eqn, operands):
    (a,) = (v.aval for v in eqn.invars)
    if a.size == 0:
        return emit.constant(0, a)
    if emit.platform == "cpu":
        l = _by_call(emit, lapack_name("potrf", a.dtype), operands, a, {"uplo": u8("L")})
    elif is_cuda(emit):
        l = _by_call(emit, "cusolver_potrf_ffi", operands, a, {"lower": "true"})
    else:
        l = emit.op(f"stablehlo.cholesky {operands[0]}, lower = true : {tensor_type(a)}")
    return composed(emit, lambda x: [lower(x)], [l], [a])[0]


def _by_call(emit, target, operands, a, attributes):
    info = shaped(a.shape[:-2], np.dtype("int32"))
    l, code = matrix_call(emit, target, operands, [a], [a, info], attributes=attributes, reuses={0: 0})
    return nan_unless(emit, succeeded(emit, code, info), l, a, info.shape)


@lowers(lc.cholesky_update_p)
def _cholesky_update(emit, eqn, operands):
    r, w = avals = [v.aval for v in eqn.invars]
    if is_cuda(emit) and r.ndim == 2 and r.size:
        operands = [*composed(emit, lambda x: [upper(x)], operands[:1], [r]), operands[1]]
        s, _ = matrix_call(emit, "cu_cholesky_update_ffi", operands, avals, avals, reuses={0: 0, 1: 1}, by_columns=False)
        return s
    start = composed(emit, lambda x: [upper(x)], operands[:1], [r])
    s = repeated(emit, r.shape[-1], _rotate, [], [], [*start, operands[1]], avals)[0]
    return composed(emit, lambda x: [upper(x)], [s], [r])[0]


# Givens rotations that turn w, component by component, into r
def _rotate(i, r, w):
    n, batch = aval_of(r).shape[-1], aval_of(r).shape[:-2]
    zeros = [0] * len(batch)
    row = reshape(dynamic_slice(r, [*zeros, i, 0], (*batch, 1, n)), (*batch, n))
    x, y = (dynamic_slice(v, [*zeros, i], (*batch, 1)) for v in (row, w))
    c, s = _rotation(x, y)
    c, s = (broadcast_in_dim(v, (*batch, n), tuple(range(len(batch) + 1))) for v in (c, s))
    turned = add(mul(c, row), mul(s, w))
    left = sub(mul(c, w), mul(s, row))
    return dynamic_update_slice(r, reshape(turned, (*batch, 1, n)), [*zeros, i, 0]), left


def _rotation(x, y):
    """(x, y) / |(x, y)|, and (1, 0) where y is 0."""
    aval = aval_of(x)
    one = broadcast_in_dim(scalar_of(aval, 1), aval.shape)
    zero = sub(one, one)
    still = eq(y, zero)
    size = max(abs(x), abs(y))
    size = select(still, one, size)
    x, y = div(x, size), div(y, size)
    length = sqrt(add(square(x), square(y)))
    return select(still, one, div(x, length)), select(still, zero, div(y, length))
