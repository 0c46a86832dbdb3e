"""StableHLO of `primitives.contraction`."""

from __future__ import annotations

from funcml.lowering.emit import element_type, lowers, tensor_type
from funcml.lowering.rules_axes import numbers
from funcml.primitives import contraction

# name -> (dtype to which elements are rounded, that of the sum, number of products, whether the sum may be imprecise);
# no dtype: that of the operands, that of the result
_ALGORITHMS = {
    "ANY_F8_ANY_F8_F32": (None, "f32", 1, False),
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": (None, "f32", 1, True),
    "ANY_F8_ANY_F8_ANY": (None, None, 1, False),
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM": (None, None, 1, True),
    "F16_F16_F16": ("f16", "f16", 1, False),
    "F16_F16_F32": ("f16", "f32", 1, False),
    "BF16_BF16_BF16": ("bf16", "bf16", 1, False),
    "BF16_BF16_F32": ("bf16", "f32", 1, False),
    "BF16_BF16_F32_X3": ("bf16", "f32", 3, False),
    "BF16_BF16_F32_X6": ("bf16", "f32", 6, False),
    "BF16_BF16_F32_X9": ("bf16", "f32", 9, False),
    "TF32_TF32_F32": ("tf32", "f32", 1, False),
    "TF32_TF32_F32_X3": ("tf32", "f32", 3, False),
    "F32_F32_F32": ("f32", "f32", 1, False),
    "F64_F64_F64": ("f64", "f64", 1, False),
}


@lowers(contraction.dot_general_p)
def _dot_general(emit, eqn, operands):
    (lhs, rhs), (out,) = eqn.invars, eqn.outvars
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    batching = f", batching_dims = [{numbers(lb)}] x [{numbers(rb)}]" if lb else ""
    return emit.op(
        f"stablehlo.dot_general {', '.join(operands)}{batching}, contracting_dims = [{numbers(lc)}] x [{numbers(rc)}]"
        f"{precision_text(eqn.params['precision'], lhs.aval, out.aval)} : ({tensor_type(lhs.aval)}, {tensor_type(rhs.aval)}) -> "
        f"{tensor_type(out.aval)}"
    )


def precision_text(precision, operand_aval, out_aval) -> str:
    """`, precision = [..]`, and `, algorithm = <..>` for a named algorithm; nothing for None."""
    if precision is None:
        return ""
    if isinstance(precision, tuple):
        return f", precision = [{', '.join(precision).upper()}]"
    part, accumulation, products, imprecise = _ALGORITHMS[precision]
    part = part or element_type(operand_aval.dtype)
    accumulation = accumulation or element_type(out_aval.dtype)
    return (
        f", precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = {part}, rhs_precision_type = {part}, "
        f"accumulation_type = {accumulation}, lhs_component_count = 1, rhs_component_count = 1, "
        f"num_primitive_operations = {products}, allow_imprecise_accumulation = {str(imprecise).lower()}>"
    )
