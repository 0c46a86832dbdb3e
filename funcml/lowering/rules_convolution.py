"""StableHLO of `primitives.convolution`. Complex numbers are convolved in their parts."""

from __future__ import annotations

from funcml import dtypes
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.primitives import convolution


@lowers(convolution.conv_general_dilated_p)
def _conv_general_dilated(emit, eqn, operands):
    avals, out = [v.aval for v in eqn.invars], eqn.outvars[0].aval
    if 0 in (out.size, avals[0].size, avals[1].size):
        return emit.constant(out.dtype.type(0), out)
    if dtypes.is_complex(avals[0].dtype):
        return _complex(emit, eqn, operands, avals, out)
    return _convolution(emit, eqn.params, operands, avals, out)


def _convolution(emit, params, operands, avals, out):
    window, levels = params["window"], params["precision"]
    axes = "x".join(map(_axes, params["dimension_numbers"][:2], ("bf", "oi")))
    moves = (
        f"stride = [{numbers(window.strides)}], pad = [{', '.join(f'[{low}, {high}]' for low, high in window.padding)}], "
        f"lhs_dilate = [{numbers(window.lhs_dilation)}], rhs_dilate = [{numbers(window.rhs_dilation)}]"
    )
    shown = ", ".join(f"#stablehlo<precision {level.upper()}>" for level in levels or ())
    return emit.op(
        f"stablehlo.convolution({', '.join(operands)}) dim_numbers = {axes}->{_axes(params['dimension_numbers'][2], 'bf')}, "
        f"window = {{{moves if window.strides else ''}}} {{batch_group_count = {params['batch_group_count']} : i64, "
        f"feature_group_count = {params['feature_group_count']} : i64{f', precision_config = [{shown}]' if shown else ''}}} : "
        f"({', '.join(map(tensor_type, avals))}) -> {tensor_type(out)}"
    )


def _axes(spec, letters: str) -> str:
    """The meaning of each axis: `[b, 0, 1, f]`."""
    meanings = dict(zip(spec, [*letters, *map(str, range(len(spec) - 2))], strict=True))
    return f"[{', '.join(meanings[i] for i in range(len(spec)))}]"


# (a + ib) * (c + id) = (a * c - b * d) + i (a * d + b * c)
def _complex(emit, eqn, operands, avals, out):
    parts = [a.update(dtype=dtypes.real_dtype(a.dtype)) for a in avals]
    real = out.update(dtype=dtypes.real_dtype(out.dtype))
    t = tensor_type(real)
    (a, b), (c, d) = [
        [emit.op(f"stablehlo.{name} {x} : ({tensor_type(whole)}) -> {tensor_type(part)}") for name in ("real", "imag")]
        for x, whole, part in zip(operands, avals, parts, strict=True)
    ]

    def product(x, y):
        return _convolution(emit, eqn.params, [x, y], parts, real)

    re = emit.op(f"stablehlo.subtract {product(a, c)}, {product(b, d)} : {t}")
    im = emit.op(f"stablehlo.add {product(a, d)}, {product(b, c)} : {t}")
    return emit.op(f"stablehlo.complex {re}, {im} : {tensor_type(out)}")
