"""StableHLO of `primitives.linalg_solve`."""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.tracing import aval_of
from funcml.lowering.compositions import composed, repeated
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.matrix_calls import is_cuda, lapack_name, matrix_call, nan_unless, succeeded, u8
from funcml.primitives import linalg_solve as ls
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.elementwise import div, mul, sub
from funcml.primitives.indexing import dynamic_slice, dynamic_update_slice
from funcml.primitives.linalg_lu import rows_taken
from funcml.primitives.shaping import iota
from funcml.primitives.sorting import sort

# ---- triangular_solve --------------------------------------------------------------------------------------------


@lowers(ls.triangular_solve_p)
def _triangular_solve(emit, eqn, operands):
    (a, b), p = (v.aval for v in eqn.invars), eqn.params
    if b.size == 0:
        return emit.constant(0, b)
    if emit.platform == "cpu":
        how = "C" if p["conjugate_a"] else "T" if p["transpose_a"] else "N"
        attributes = {
            "diag": u8("U" if p["unit_diagonal"] else "N"),
            "side": u8("L" if p["left_side"] else "R"),
            "trans_x": u8(how),
            "uplo": u8("L" if p["lower"] else "U"),
        }
        return matrix_call(
            emit, lapack_name("trsm", a.dtype), operands, (a, b), (b,), attributes=attributes, reuses={1: 0}
        )[0]
    how = "ADJOINT" if p["conjugate_a"] else "TRANSPOSE" if p["transpose_a"] else "NO_TRANSPOSE"
    flags = ", ".join(f"{n} = {str(p[n]).lower()}" for n in ("left_side", "lower", "unit_diagonal"))
    return emit.op(
        f'"stablehlo.triangular_solve"({", ".join(operands)}) <{{{flags}, transpose_a = #stablehlo<transpose {how}>}}> : '
        f"({tensor_type(a)}, {tensor_type(b)}) -> {tensor_type(b)}"
    )


# ---- factored_solve ----------------------------------------------------------------------------------------------


@lowers(ls.factored_solve_p)
def _factored_solve(emit, eqn, operands):
    solve = _by_transposed_factors if eqn.params["transpose_a"] else _by_factors
    return composed(emit, solve, operands[1:], [v.aval for v in eqn.invars[1:]])


# a[p] = l u  =>  x = u^-1 l^-1 b[p]
def _by_factors(lu, permutation, b):
    y = ls.triangular_solve(lu, rows_taken(b, permutation), left_side=True, lower=True, unit_diagonal=True)
    return [ls.triangular_solve(lu, y, left_side=True)]


# x[p] = l^-T u^-T b
def _by_transposed_factors(lu, permutation, b):
    y = ls.triangular_solve(lu, b, left_side=True, transpose_a=True)
    y = ls.triangular_solve(lu, y, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)
    aval = aval_of(permutation)
    _, inverse = sort((permutation, iota(dtypes.int32, aval.shape, aval.ndim - 1)))
    return [rows_taken(y, inverse)]


# ---- tridiagonal_solve -------------------------------------------------------------------------------------------


@lowers(ls.tridiagonal_solve_p)
def _tridiagonal_solve(emit, eqn, operands):
    avals = [v.aval for v in eqn.invars]
    b = avals[-1]
    if b.size == 0:
        return emit.constant(0, b)
    if eqn.params["perturb_singular"]:
        return _perturbed(emit, operands, avals)
    if emit.platform == "cpu":
        info = shaped(b.shape[:-2], np.dtype("int32"))
        reuses = {i: i for i in range(4)}
        *_, x, code = matrix_call(emit, lapack_name("gtsv", b.dtype), operands, avals, [*avals, info], reuses=reuses)
        return nan_unless(emit, succeeded(emit, code, info), x, b, info.shape)
    if is_cuda(emit) and b.shape[-2] > 2:
        return matrix_call(emit, "cusparse_gtsv2_ffi", operands, avals, [b], reuses={3: 0})[0]
    return _thomas(emit, operands, avals)


def _perturbed(emit, operands, avals):
    if emit.platform != "cpu" and not is_cuda(emit):
        raise NotImplementedError("tridiagonal_solve: perturb_singular is for CPU and CUDA")
    target = "tridiagonal_solve_perturbed_ffi" if emit.platform == "cpu" else "cu_tridiagonal_solve_perturbed"
    return matrix_call(emit, target, operands, avals, [avals[-1]])[0]


# Elimination without exchanges, L. Thomas (1949): c_i = du_i / (d_i - dl_i c_{i-1}),
# y_i = (b_i - dl_i y_{i-1}) / (d_i - dl_i c_{i-1}), and then backwards x_i = y_i - c_i x_{i+1}.
def _thomas(emit, operands, avals):
    dl, d, du, b = avals
    n = b.shape[-2]
    c, y, *_ = repeated(
        emit, n, _eliminate, operands, avals, [emit.constant(0, du), emit.constant(0, b)], [du, b]
    )
    return repeated(emit, n, _substitute, [c, y], [du, b], [emit.constant(0, b)], [b])[0]


def _row(x, i, axis):
    aval = aval_of(x)
    starts = [i if a == axis else 0 for a in range(aval.ndim)]
    sizes = tuple([1 if a == axis else n for a, n in enumerate(aval.shape)])
    return dynamic_slice(x, starts, sizes)


def _with_row(x, row, i, axis):
    return dynamic_update_slice(x, row, [i if a == axis else 0 for a in range(aval_of(x).ndim)])


def _beside(x, like):
    """A row [.., 1] spread over the columns of one [.., 1, m]."""
    aval = aval_of(like)
    return broadcast_in_dim(x, aval.shape, tuple(range(aval.ndim - 1)))


def _eliminate(i, dl, d, du, b, c, y):
    axis = aval_of(d).ndim - 1
    before = sub(i, np.int32(1))  # for i = 0 the first row is read, and is still zero
    low = _row(dl, i, axis)
    pivot = sub(_row(d, i, axis), mul(low, _row(c, before, axis)))
    right = sub(_row(b, i, axis), mul(_beside(low, _row(b, i, axis)), _row(y, before, axis)))
    c = _with_row(c, div(_row(du, i, axis), pivot), i, axis)
    return c, _with_row(y, div(right, _beside(pivot, right)), i, axis)


def _substitute(i, c, y, x):
    axis = aval_of(c).ndim - 1
    n = aval_of(c).shape[-1]
    at = sub(np.int32(n - 1), i)
    behind = sub(np.int32(n), i)  # for i = 0 this is the last row again, still zero
    row = sub(_row(y, at, axis), mul(_beside(_row(c, at, axis), _row(y, at, axis)), _row(x, behind, axis)))
    return [_with_row(x, row, at, axis)]
