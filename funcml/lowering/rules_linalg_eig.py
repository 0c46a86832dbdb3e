"""StableHLO of `primitives.linalg_eig`: LAPACK on CPU, and on CUDA LAPACK on the host, MAGMA or cuSOLVER."""

from __future__ import annotations

from funcml import dtypes
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.matrix_calls import failed_as_nan, info_of, is_cuda, lapack_name, matrix_call, not_offered, u8
from funcml.primitives.linalg_eig import EigImplementation, eig_p


@lowers(eig_p)
def _eig(emit, eqn, operands):
    x, outs, params = eqn.invars[0].aval.strong(), [v.aval for v in eqn.outvars], eqn.params
    if x.size == 0:
        return [emit.constant(0, a) for a in outs]
    if emit.platform == "cpu":
        target, attributes = _on_cpu(x, params)
    elif is_cuda(emit):
        target, attributes = _on_cuda(emit, x, params)
    else:
        raise not_offered(emit, "eig", "CPU and CUDA")
    vectors, info = x.update(dtype=dtypes.complex_dtype(x.dtype)), info_of(x)
    values = x.update(shape=x.shape[:-1])
    is_complex = dtypes.is_complex(x.dtype)
    found = [values, vectors, vectors, info] if is_complex else [values, values, vectors, vectors, info]
    *w, left, right, status = matrix_call(emit, target, operands, [x], found, attributes=attributes)
    t = tensor_type(values)
    w = w[0] if is_complex else emit.op(f"stablehlo.complex {w[0]}, {w[1]} : ({t}, {t}) -> {tensor_type(outs[0])}")
    wanted = [w, *[left] * params["left"], *[right] * params["right"]]
    return failed_as_nan(emit, status, info, wanted, outs)


def _on_cpu(x, params):
    if params["implementation"] not in (None, EigImplementation.LAPACK):
        raise ValueError(f"eig on CPU is LAPACK's, got {params['implementation']}")
    compute = {"compute_left": u8("V" if params["left"] else "N"), "compute_right": u8("V" if params["right"] else "N")}
    return lapack_name("geev", x.dtype), compute


_MAGMA = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}


def _on_cuda(emit, x, params):
    if params["implementation"] not in _MAGMA:
        raise not_offered(emit, f"eig by {params['implementation']}", "no platform")
    target = "cuhybrid_eig_comp" if dtypes.is_complex(x.dtype) else "cuhybrid_eig_real"
    return target, {
        "left": str(params["left"]).lower(),
        "magma": f'"{_MAGMA[params["implementation"]]}"',
        "right": str(params["right"]).lower(),
    }
