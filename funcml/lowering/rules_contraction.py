"""StableHLO of `primitives.contraction`."""

from __future__ import annotations

from funcml import dtypes
from funcml.lowering.emit import element_type, lowers, numbers, tensor_type
from funcml.primitives import contraction

_F16, _BF16, _F32, _F64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64

# name -> (type to which elements are rounded; dtypes in which operands may be given, others are converted to the first;
# dtype of the sum; number of products; whether the sum may be imprecise). None: as the operands are.
_ALGORITHMS = {
    "ANY_F8_ANY_F8_F32": (None, None, _F32, 1, False),
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": (None, None, _F32, 1, True),
    "ANY_F8_ANY_F8_ANY": (None, None, _F32, 1, False),
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM": (None, None, _F32, 1, True),
    "F16_F16_F16": ("f16", (_F16,), _F16, 1, False),
    "F16_F16_F32": ("f16", (_F16,), _F32, 1, False),
    "BF16_BF16_BF16": ("bf16", (_BF16, _F32), _BF16, 1, False),
    "BF16_BF16_F32": ("bf16", (_BF16, _F32), _F32, 1, False),
    "BF16_BF16_F32_X3": ("bf16", (_F32,), _F32, 3, False),
    "BF16_BF16_F32_X6": ("bf16", (_F32,), _F32, 6, False),
    "BF16_BF16_F32_X9": ("bf16", (_F32,), _F32, 9, False),
    "TF32_TF32_F32": ("tf32", (_F32,), _F32, 1, False),
    "TF32_TF32_F32_X3": ("tf32", (_F32,), _F32, 3, False),
    "F32_F32_F32": ("f32", (_F32,), _F32, 1, False),
    "F64_F64_F64": ("f64", (_F64,), _F64, 1, False),
}


@lowers(contraction.dot_general_p)
def _dot_general(emit, eqn, operands):
    (lhs, rhs), out = (v.aval for v in eqn.invars), eqn.outvars[0].aval
    precision = eqn.params["precision"]
    if isinstance(precision, str):
        return _by_algorithm(emit, eqn, operands, (lhs, rhs), out, precision)
    levels = f", precision = [{', '.join(precision).upper()}]" if precision else ""
    return _dot(emit, eqn, operands, (lhs, rhs), out, levels)


def _dot(emit, eqn, operands, avals, out, how):
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    batching = f", batching_dims = [{numbers(lb)}] x [{numbers(rb)}]" if lb else ""
    return emit.op(
        f"stablehlo.dot_general {', '.join(operands)}{batching}, contracting_dims = [{numbers(lc)}] x [{numbers(rc)}]{how} : "
        f"({', '.join(map(tensor_type, avals))}) -> {tensor_type(out)}"
    )


def _by_algorithm(emit, eqn, operands, avals, out, name):
    """A product by a named algorithm: operands and result are converted to dtypes that it works in."""
    part, allowed, total, products, imprecise = _ALGORITHMS[name]
    given = [a if allowed is None or a.dtype in allowed else a.update(dtype=allowed[0]) for a in avals]
    operands = [
        x if g is a else emit.convert(x, a, g) for x, a, g in zip(operands, avals, given, strict=True)
    ]
    part = part or element_type(avals[0].dtype)
    how = (
        f", precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = {part}, rhs_precision_type = {part}, "
        f"accumulation_type = {element_type(total)}, lhs_component_count = 1, rhs_component_count = 1, "
        f"num_primitive_operations = {products}, allow_imprecise_accumulation = {str(imprecise).lower()}>"
    )
    summed = out.update(dtype=total)
    product = _dot(emit, eqn, operands, given, summed, how)
    return product if total == out.dtype else emit.convert(product, summed, out)
