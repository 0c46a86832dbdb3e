"""StableHLO of `primitives.keys`.

A key is one number of its size, whose low half is word 0: ui32, ui64, or for four words complex<f64>, which XLA moves about as
it is.
"""

from __future__ import annotations

from funcml.core.avals import shaped
from funcml.dtypes import float64, uint32, uint64
from funcml.lowering.emit import lowers, tensor_type
from funcml.lowering.rules_random_bits import bitcast, reshaped
from funcml.primitives import keys


@lowers(keys.random_wrap_p)
def _wrap(emit, eqn, operands):
    words, key = eqn.invars[0].aval, eqn.outvars[0].aval
    if key.dtype.stored == uint64:
        return bitcast(emit, operands[0], words, key)
    if key.dtype.stored == uint32:
        return reshaped(emit, operands[0], words, key)
    shape = key.shape
    halves, floats, part = shaped((*shape, 2, 2), uint32), shaped((*shape, 2), float64), shaped(shape, float64)
    pairs = bitcast(emit, reshaped(emit, operands[0], words, halves), halves, floats)
    column = shaped((*shape, 1), float64)
    parts = []
    for i in range(2):
        limits = ", ".join([*[f"0:{n}" for n in shape], f"{i}:{i + 1}"])
        column_i = emit.op(f"stablehlo.slice {pairs} [{limits}] : ({tensor_type(floats)}) -> {tensor_type(column)}")
        parts.append(reshaped(emit, column_i, column, part))
    t = tensor_type(part)
    return emit.op(f"stablehlo.complex {', '.join(parts)} : ({t}, {t}) -> {tensor_type(key)}")


@lowers(keys.random_unwrap_p)
def _unwrap(emit, eqn, operands):
    key, words = eqn.invars[0].aval, eqn.outvars[0].aval
    if key.dtype.stored == uint64:
        return bitcast(emit, operands[0], key, words)
    if key.dtype.stored == uint32:
        return reshaped(emit, operands[0], key, words)
    half, axis = shaped((*key.shape, 2), uint32), key.ndim
    part, t = shaped(key.shape, float64), tensor_type(half)
    types = f"({tensor_type(key)}) -> {tensor_type(part)}"
    parts = [emit.op(f"stablehlo.{name} {operands[0]} : {types}") for name in ("real", "imag")]
    parts = [bitcast(emit, x, part, half) for x in parts]
    return emit.op(f"stablehlo.concatenate {', '.join(parts)}, dim = {axis} : ({t}, {t}) -> {tensor_type(words)}")

