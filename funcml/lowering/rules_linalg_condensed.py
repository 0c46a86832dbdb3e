"""StableHLO of `primitives.linalg_condensed`: LAPACK on CPU, for the tridiagonal form cuSOLVER on CUDA."""

from __future__ import annotations

from funcml import dtypes
from funcml.lowering.emit import lowers
from funcml.lowering.matrix_calls import failed_as_nan, info_of, is_cuda, lapack_name, matrix_call, not_offered, u8
from funcml.primitives import linalg_condensed as condensed


def _operand(emit, eqn, where="CPU"):
    """The type of the operand, and those of the results; None if there is nothing to compute."""
    if emit.platform != "cpu" and not (is_cuda(emit) and "CUDA" in where):
        raise not_offered(emit, eqn.primitive.name, where)
    return eqn.invars[0].aval.strong(), [v.aval for v in eqn.outvars]


@lowers(condensed.schur_p)
def _schur(emit, eqn, operands):
    x, outs = _operand(emit, eqn)
    if x.size == 0:
        return [emit.constant(0, a) for a in outs]
    info, values = info_of(x), x.update(shape=x.shape[:-1])
    eigenvalues = [values] if dtypes.is_complex(x.dtype) else [values, values]
    attributes = {"mode": u8("V" if eqn.params["vectors"] else "N"), "sort": u8("N")}
    t, q, *_, status = matrix_call(
        emit,
        lapack_name("gees", x.dtype),
        operands,
        [x],
        [x, x, *eigenvalues, info, info],
        attributes=attributes,
        reuses={0: 0},
    )
    return failed_as_nan(emit, status, info, [t, q][: len(outs)], outs)


@lowers(condensed.hessenberg_p)
def _hessenberg(emit, eqn, operands):
    x, outs = _operand(emit, eqn)
    if x.size == 0:
        return [emit.constant(0, a) for a in outs]
    info = info_of(x)
    attributes = {"high": f"{x.shape[-1]} : i32", "low": "1 : i32"}
    *found, status = matrix_call(
        emit, lapack_name("gehrd", x.dtype), operands, [x], [*outs, info], attributes=attributes, reuses={0: 0}
    )
    return failed_as_nan(emit, status, info, found, outs)


@lowers(condensed.tridiagonal_p)
def _tridiagonal(emit, eqn, operands):
    x, outs = _operand(emit, eqn, "CPU and CUDA")
    if x.size == 0:
        return [emit.constant(0, a) for a in outs]
    info, is_lower = info_of(x), eqn.params["lower"]
    if is_cuda(emit):
        target, attributes = "cusolver_sytrd_ffi", {"lower": str(is_lower).lower()}
    else:
        target = lapack_name("hetrd" if dtypes.is_complex(x.dtype) else "sytrd", x.dtype)
        attributes = {"uplo": u8("L" if is_lower else "U")}
    *found, status = matrix_call(emit, target, operands, [x], [*outs, info], attributes=attributes, reuses={0: 0})
    return failed_as_nan(emit, status, info, found, outs)
