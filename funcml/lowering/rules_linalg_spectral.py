"""StableHLO of `primitives.linalg_spectral`: LAPACK on CPU, cuSOLVER on CUDA; on TPU Jacobi's and Halley's methods."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.lowering.compositions import composed
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.lowering.matrix_calls import failed_as_nan, info_of, is_cuda, lapack_name, matrix_call, not_offered, u8
from funcml.lowering.rules_reductions import select
from funcml.primitives import elementwise as ew
from funcml.primitives import linalg_spectral as spectral
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.linalg_qr import qr
from funcml.primitives.linalg_spectral import EighImplementation, SvdAlgorithm, eigh
from funcml.primitives.matrices import adjoint, product
from funcml.primitives.polar import polar_factors
from funcml.primitives.shaping import concatenate, rev, slice_in_dim
from funcml.primitives.spectra import along_columns, diagonal
from funcml.primitives.tangents import scalar_of, zeros

# ---- eigh --------------------------------------------------------------------------------------------------------


@lowers(spectral.eigh_p)
def _eigh(emit, eqn, operands):
    x, outs, params = eqn.invars[0].aval.strong(), [v.aval for v in eqn.outvars], eqn.params
    if x.size == 0:
        return [emit.constant(0, a) for a in outs]
    values = outs[-1]
    if emit.platform == "tpu":
        return _eigh_jacobi(emit, operands[0], x, values, params)[-len(outs) :]
    if emit.platform != "cpu" and not is_cuda(emit):
        raise not_offered(emit, "eigh", "CPU, CUDA and TPU")
    target, attributes = _eigh_call(emit, x.dtype, params)
    info = info_of(x)
    v, w, status = matrix_call(
        emit, target, operands, [x], [x, values, info], attributes=attributes, reuses={0: 0}
    )
    return failed_as_nan(emit, status, info, [v, w][-len(outs) :], outs)


def _eigh_call(emit, dtype, params):
    algorithm = params["algorithm"]
    if algorithm is EighImplementation.QDWH:
        raise not_offered(emit, "eigh by EighImplementation.QDWH", "TPU")
    if is_cuda(emit):
        number = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}[algorithm]
        return "cusolver_syevd_ffi", {"algorithm": f"{number} : ui8", "lower": str(params["lower"]).lower()}
    if algorithm is EighImplementation.JACOBI:
        raise not_offered(emit, "eigh by EighImplementation.JACOBI", "CUDA and TPU")
    name = "heevd" if dtypes.is_complex(dtype) else "syevd"
    return lapack_name(name, dtype), {
        "mode": u8("V" if params["vectors"] else "N"),
        "uplo": u8("L" if params["lower"] else "U"),
    }


def _eigh_jacobi(emit, operand, x, values, params):
    if params["algorithm"] not in (None, EighImplementation.JACOBI):
        raise not_offered(emit, f"eigh by {params['algorithm']}", "other platforms")
    config = f"{int(params['lower'])},{int(params['sort_eigenvalues'])},100,1e-6"
    return emit.ops(
        f'stablehlo.custom_call @Eigh({operand}) {{backend_config = "{config}"}} : ({tensor_type(x)}) -> '
        f"({tensor_type(x)}, {tensor_type(values)})",
        2,
    )


# ---- svd ---------------------------------------------------------------------------------------------------------


@lowers(spectral.svd_p)
def _svd(emit, eqn, operands):
    x, outs, params = eqn.invars[0].aval.strong(), [v.aval for v in eqn.outvars], eqn.params
    if x.size == 0:
        return [_identity(emit, a) if a.ndim == x.ndim else emit.constant(0, a) for a in outs]
    if emit.platform == "tpu":
        return _svd_tpu(emit, operands, x, params)
    m, n = x.shape[-2:]
    k, batch, full = min(m, n), x.shape[:-2], params["full_matrices"]
    values = x.update(shape=(*batch, k), dtype=dtypes.real_dtype(x.dtype))
    left = x.update(shape=(*batch, m, m if full else k))
    right = x.update(shape=(*batch, n if full else k, n))
    if emit.platform == "cpu":
        found, status = _svd_lapack(emit, operands, x, (left, values, right), params)
    elif is_cuda(emit):
        found, status = _svd_cuda(emit, operands, x, (left, values, right), params)
    else:
        raise not_offered(emit, "svd", "CPU, CUDA and TPU")
    return failed_as_nan(emit, status, info_of(x), found if params["vectors"] else found[1:2], outs)


def _identity(emit, aval):
    """Identity matrices: a basis that an empty matrix has."""
    places = aval.update(shape=aval.shape, dtype=dtypes.int32)
    bools = aval.update(dtype=dtypes.bool_)
    row, column = emit.iota(places, aval.ndim - 2), emit.iota(places, aval.ndim - 1)
    t = tensor_type(places)
    same = emit.op(f"stablehlo.compare EQ, {row}, {column}, SIGNED : ({t}, {t}) -> {tensor_type(bools)}")
    return select(emit, same, emit.constant(1, aval), emit.constant(0, aval), aval)


_LAPACK_SVD = {
    None: "gesdd",
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}


def _svd_lapack(emit, operands, x, avals, params):
    name = _LAPACK_SVD.get(params["algorithm"])
    if name is None:
        raise not_offered(emit, f"svd by {params['algorithm']}", "CUDA")
    left, values, right = avals
    mode = "N" if not params["vectors"] else "A" if params["full_matrices"] else "S"
    outs = [x, values, left, right, info_of(x)]
    _, s, u, vh, status = matrix_call(
        emit, lapack_name(name, x.dtype), operands, [x], outs, attributes={"mode": u8(mode)}, reuses={0: 0}
    )
    return [u, s, vh], status


def _svd_cuda(emit, operands, x, avals, params):
    m, n = x.shape[-2:]
    algorithm = params["algorithm"]
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER:
        raise not_offered(emit, f"svd by {algorithm}", "CPU")
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        algorithm = SvdAlgorithm.JACOBI if max(m, n) <= 1024 else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.QR:
        return _svd_gesvd(emit, operands, x, avals, params)
    return _svd_of_v(emit, operands, x, avals, params, algorithm)


def _truth(value) -> str:
    return str(bool(value)).lower()


def _svd_gesvd(emit, operands, x, avals, params):
    """gesvd takes tall matrices by columns: a wide one is read by rows, which is its transpose, and u and vh change places."""
    left, values, right = avals
    if not params["vectors"]:
        left = right = x.update(shape=())
    wide = x.shape[-2] < x.shape[-1]
    attributes = {
        "compute_uv": _truth(params["vectors"]),
        "full_matrices": _truth(params["full_matrices"]),
        "transposed": _truth(wide),
    }
    outs = [x, values, *((right, left) if wide else (left, right)), info_of(x)]
    _, s, first, second, status = matrix_call(
        emit, "cusolver_gesvd_ffi", operands, [x], outs, attributes=attributes, reuses={0: 0}, by_columns=not wide
    )
    return [second, s, first] if wide else [first, s, second], status


def _svd_of_v(emit, operands, x, avals, params, algorithm):
    """gesvdj and gesvdp give v rather than its adjoint, and always need room for the vectors."""
    left, values, right = avals
    m, n = x.shape[-2:]
    k, batch = min(m, n), x.shape[:-2]
    economical = not params["full_matrices"]
    if algorithm is SvdAlgorithm.JACOBI:  # its routine for many small matrices knows no economical form
        economical = economical and m > 32 and n > 32
    u_aval = x.update(shape=(*batch, m, k if economical else m))
    v_aval = x.update(shape=(*batch, n, k if economical else n))
    name = "gesvdj" if algorithm is SvdAlgorithm.JACOBI else "gesvdp"
    attributes = {"compute_uv": _truth(params["vectors"]), "full_matrices": _truth(not economical)}
    outs = [x, values, u_aval, v_aval, info_of(x)]
    _, s, u, v, status = matrix_call(
        emit, f"cusolver_{name}_ffi", operands, [x], outs, attributes=attributes, reuses={0: 0}
    )
    if not params["vectors"]:
        return [u, s, v], status
    return [_leading(emit, u, u_aval, left), s, _leading(emit, *_adjoint(emit, v, v_aval), right)], status


def _adjoint(emit, x, aval):
    order = [*range(aval.ndim - 2), aval.ndim - 1, aval.ndim - 2]
    out = aval.update(shape=tuple([aval.shape[i] for i in order]))
    t = tensor_type(out)
    x = emit.op(f"stablehlo.transpose {x}, dims = [{numbers(order)}] : ({tensor_type(aval)}) -> {t}")
    return (emit.op(f"chlo.conj {x} : {t} -> {t}") if dtypes.is_complex(aval.dtype) else x), out


def _leading(emit, x, aval, wanted):
    """The first elements along each axis."""
    if aval.shape == wanted.shape:
        return x
    ranges = ", ".join(f"0:{n}" for n in wanted.shape)
    return emit.op(f"stablehlo.slice {x} [{ranges}] : ({tensor_type(aval)}) -> {tensor_type(wanted)}")


# ---- svd by polar factors ----------------------------------------------------------------------------------------


def _svd_tpu(emit, operands, x, params):
    if params["algorithm"] not in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.POLAR):
        raise not_offered(emit, f"svd by {params['algorithm']}", "other platforms")

    def decomposed(x):
        u, s, vh = svd_by_polar(x, params["full_matrices"] and params["vectors"])
        return (u, s, vh) if params["vectors"] else (s,)

    return composed(emit, decomposed, operands, [x])


# x = p h, h = v diag(s) v^H:  x = (p v) diag(s) v^H. Of a tall matrix, the triangle of its QR factors is decomposed.
# (Y. Nakatsukasa and N. Higham, Stable and efficient spectral divide and conquer algorithms, 2013, section 3)
def svd_by_polar(x, full_matrices: bool):
    """(u, s, vh) of matrices that are not empty, by Halley's method and the eigenvalues of a Hermitian matrix."""
    aval = aval_of(x)
    m, n = aval.shape[-2:]
    if m < n:
        u, s, vh = svd_by_polar(adjoint(x), full_matrices)
        return adjoint(vh), s, adjoint(u)
    axis = aval.ndim - 1
    if m == n:
        return _svd_of_square(x)
    q, r = qr(x, full_matrices=full_matrices)
    u, s, vh = _svd_of_square(slice_in_dim(r, 0, n, axis=axis - 1))
    first = product(slice_in_dim(q, 0, n, axis=axis), u)
    return (concatenate([first, slice_in_dim(q, n, m, axis=axis)], axis) if full_matrices else first), s, vh


def _svd_of_square(x):
    aval = aval_of(x)
    p, h, _, _ = polar_factors(x, 10, float(dtypes.finfo(aval.dtype).eps))
    v, w = eigh(h)
    s = rev(ew.max(w, zeros(aval_of(w))), (aval.ndim - 2,))
    v = rev(v, (aval.ndim - 1,))
    # where x is singular, p v is not unitary: the nearest q of its QR factors, with the signs of r's diagonal, is
    u, r = qr(product(p, v), full_matrices=False)
    sign = ew.sign(diagonal(r))
    at_zero = ew.eq(sign, zeros(aval_of(sign)))
    sign = ew.select(at_zero, broadcast_in_dim(scalar_of(aval, 1), aval_of(sign).shape), sign)
    return ew.mul(u, along_columns(sign, aval.shape)), s, adjoint(v)
