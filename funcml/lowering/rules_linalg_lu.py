"""StableHLO of `primitives.linalg_lu`."""

from __future__ import annotations

import numpy as np

from funcml.core.avals import shaped
from funcml.core.tracing import aval_of
from funcml.lowering.compositions import repeated
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.matrix_calls import is_cuda, lapack_name, matrix_call, nan_unless, succeeded
from funcml.primitives import linalg_lu
from funcml.primitives.axes import broadcast_in_dim, reduce_sum
from funcml.primitives.elementwise import eq, select
from funcml.primitives.indexing import dynamic_slice
from funcml.primitives.shaping import iota
from funcml.primitives.tangents import zeros


@lowers(linalg_lu.lu_p)
def _lu(emit, eqn, operands):
    (a,) = (v.aval for v in eqn.invars)
    packed, pivots, permutation = outs = [v.aval for v in eqn.outvars]
    if a.size == 0:
        return [emit.constant(0, packed), emit.constant(0, pivots), emit.iota(permutation, permutation.ndim - 1)]
    if emit.platform != "cpu" and not is_cuda(emit):
        types = f"({tensor_type(a)}) -> ({', '.join(map(tensor_type, outs))})"
        return emit.ops(f"stablehlo.custom_call @LuDecomposition({operands[0]}) {{api_version = 2 : i32}} : {types}", 3)
    target = "cusolver_getrf_ffi" if is_cuda(emit) else lapack_name("getrf", a.dtype)
    info = shaped(a.shape[:-2], np.dtype("int32"))
    lu, found, code = matrix_call(emit, target, operands, [a], [packed, pivots, info], reuses={0: 0})
    lu = nan_unless(emit, succeeded(emit, code, info, "GE"), lu, packed, info.shape)
    found = emit.op(f"stablehlo.subtract {found}, {emit.constant(1, pivots)} : {tensor_type(pivots)}")  # they count from 1
    return [lu, found, _permutation(emit, found, pivots, permutation)]


@lowers(linalg_lu.lu_pivots_to_permutation_p)
def _lu_pivots_to_permutation(emit, eqn, operands):
    return _permutation(emit, operands[0], eqn.invars[0].aval, eqn.outvars[0].aval)


def _permutation(emit, pivots, pivots_aval, aval):
    if is_cuda(emit) and pivots_aval.size:
        target, batch = "cu_lu_pivots_to_permutation", aval.ndim - 1
        return matrix_call(emit, target, [pivots], [pivots_aval], [aval], by_columns=False, batch=batch)[0]
    start = emit.iota(aval, aval.ndim - 1)
    times = pivots_aval.shape[-1] if pivots_aval.size else 0
    return repeated(emit, times, _exchange, [pivots], [pivots_aval], [start], [aval])[0] if times else start


def _exchange(i, pivots, permutation):
    aval = aval_of(permutation)
    batch = aval.shape[:-1]

    def at_place(x):
        return broadcast_in_dim(dynamic_slice(x, [*[0] * len(batch), i], (*batch, 1)), aval.shape, tuple(range(aval.ndim)))

    place = at_place(pivots)
    here = at_place(permutation)
    numbers = iota(aval.dtype, aval.shape, aval.ndim - 1)
    is_there = eq(numbers, place)
    there = reduce_sum(select(is_there, permutation, zeros(aval)), (aval.ndim - 1,))
    there = broadcast_in_dim(there, aval.shape, tuple(range(aval.ndim - 1)))
    is_here = eq(numbers, broadcast_in_dim(i, aval.shape))
    return [select(is_here, there, select(is_there, here, permutation))]
