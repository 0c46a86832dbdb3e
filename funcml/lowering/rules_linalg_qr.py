"""StableHLO of `primitives.linalg_qr`."""

from __future__ import annotations

import functools

from funcml.core.tracing import aval_of
from funcml.lowering.compositions import composed
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.matrix_calls import is_cuda, lapack_name, matrix_call
from funcml.primitives import linalg_qr
from funcml.primitives.matrices import eye


def _target(emit, cpu_name, dtype, cuda_name):
    """The custom call of this platform; None where there is none."""
    if emit.platform == "cpu":
        return lapack_name(cpu_name, dtype)
    return cuda_name if is_cuda(emit) else None


def _tpu_call(emit, target, operands, ins, outs):
    types = tensor_type(outs[0]) if len(outs) == 1 else f"({', '.join(map(tensor_type, outs))})"
    ins = ", ".join(map(tensor_type, ins))
    return emit.ops(f"stablehlo.custom_call @{target}({', '.join(operands)}) : ({ins}) -> {types}", len(outs))


@lowers(linalg_qr.geqrf_p)
def _geqrf(emit, eqn, operands):
    (a,), outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    if a.size == 0:
        return [emit.constant(0, v) for v in outs]
    target = _target(emit, "geqrf", a.dtype, "cusolver_geqrf_ffi")
    if target is None:
        return _tpu_call(emit, "Qr", operands, [a], outs)
    return matrix_call(emit, target, operands, [a], outs, reuses={0: 0})


@lowers(linalg_qr.geqp3_p)
def _geqp3(emit, eqn, operands):
    ins, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    if ins[0].size == 0:
        places = emit.iota(ins[1], ins[1].ndim - 1)
        one = emit.constant(1, ins[1])
        counted = emit.op(f"stablehlo.add {places}, {one} : {tensor_type(ins[1])}")
        return [emit.constant(0, outs[0]), counted, emit.constant(0, outs[2])]
    target = _target(emit, "geqp3", ins[0].dtype, "cuhybrid_geqp3")
    if target is None:
        raise NotImplementedError("geqp3: a pivoted QR is computed on CPU and CUDA only; use qr without pivoting, or svd")
    magma = {None: '"auto"', True: '"on"', False: '"off"'}[eqn.params["use_magma"]]
    attributes = {"magma": magma} if is_cuda(emit) else {}
    return matrix_call(emit, target, operands, ins, outs, attributes=attributes, reuses={0: 0, 1: 1})


@lowers(linalg_qr.householder_product_p)
def _householder_product(emit, eqn, operands):
    ins, (out,) = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    if out.size == 0:
        return emit.constant(0, out)
    if ins[1].size == 0:
        return composed(emit, lambda x: [eye(aval_of(x))], operands[:1], ins[:1])
    target = _target(emit, "orgqr", out.dtype, "cusolver_orgqr_ffi")
    if target is None:
        return _tpu_call(emit, "ProductOfElementaryHouseholderReflectors", operands, ins, [out])[0]
    return matrix_call(emit, target, operands, ins, [out], reuses={0: 0})[0]


@lowers(linalg_qr.ormqr_p)
def _ormqr(emit, eqn, operands):
    ins, (out,) = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
    if out.size == 0 or ins[1].size == 0:
        return operands[2]
    target = _target(emit, "ormqr", out.dtype, "cusolver_ormqr_ffi")
    if target is None:
        return composed(emit, functools.partial(linalg_qr.reflected, **eqn.params), operands, ins)
    attributes = {name: str(eqn.params[name]).lower() for name in ("left", "transpose")}
    return matrix_call(emit, target, operands, ins, [out], attributes=attributes, reuses={2: 0})[0]


@lowers(linalg_qr.qr_p)
def _qr(emit, eqn, operands):
    by_reflections = functools.partial(linalg_qr.qr_by_reflections, **eqn.params)
    return composed(emit, by_reflections, operands, [v.aval for v in eqn.invars])
