"""Products of matrices whose elements are kept in few bits, with a scale for each block along the contracted axis.

    scaled_matmul      : quantised operands and their scales -> product
    scaled_dot_general : operands of usual dtypes -> quantised, multiplied; and so are the cotangents

Quantisation of a block x of n elements to a dtype with the maximum M:    scale = max |x| / M,    q = x / scale.

Source: Rouhani et al., "Microscaling data formats for deep learning" (2023).
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import dtype_or
from funcml.numpy.promotion import as_array, operand, spread
from funcml.numpy.rows import fill
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, reshape, transpose
from funcml.primitives.bits import bitcast_convert, shift_left, shift_right_logical
from funcml.primitives.contraction import DotDimensions, dot_general
from funcml.primitives.identities import optimization_barrier
from funcml.primitives.reductions import reduce_max
from funcml.transforms.custom_vjp import custom_vjp

__all__ = ["BlockScaleConfig", "get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]

_F32 = dtypes.float32


class BlockScaleConfig(NamedTuple):
    """How an operand is quantised: `block_size` elements of `data_type` have one scale of `scale_type`.

    With a `global_scale` [1] the operand is divided by it first, so that the scales of blocks stay in range.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


def get_scaled_dot_general_config(mode: str, global_scale=None) -> BlockScaleConfig:
    """The configuration of a format: "mxfp8" or "nvfp4", the latter with a `global_scale` f32[1], 1 by default.

    >>> get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, dtypes.float8_e4m3fn, dtypes.float8_e8m0fnu)
    if mode == "nvfp4":
        scale = np.ones(1, np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, dtypes.float4_e2m1fn, dtypes.float8_e4m3fn, scale)
    raise ValueError(f"get_scaled_dot_general_config: expected the mode 'mxfp8' or 'nvfp4', got {mode!r}")


# ---- scaled_matmul ---------------------------------------------------------------------------------------------


def scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=np.float32) -> Array:
    """The product [B, M, K] x [B, N, K] -> [B, M, N] of operands with scales [B, M, K / n] and [B, N, K / n].

    Each scale is that of n neighbours along K; elements and scales may be of any dtype. It is computed in float32 at least.
    Raises ValueError for shapes that do not fit.

    >>> import numpy as np
    >>> a, scale = np.ones((1, 1, 4), np.float32), np.float32([[[2, 3]]])
    >>> scaled_matmul(a, a, scale, scale).tolist()
    [[[26.0]]]
    """
    arrays = [as_array(operand("scaled_matmul", x)) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    _check_scales(*arrays)
    return _scaled_matmul(*arrays, dtypes.canonical(preferred_element_type))


def _check_scales(a, b, a_scales, b_scales) -> None:
    shown = f"{a.aval}, {b.aval} with scales {a_scales.aval}, {b_scales.aval}"
    if any(x.ndim != 3 for x in (a, b, a_scales, b_scales)):
        raise ValueError(f"scaled_matmul: expected arrays of 3 axes, got {shown}")
    if a.shape[::2] != b.shape[::2]:
        raise ValueError(f"scaled_matmul: expected operands [B, M, K] and [B, N, K] with equal B and K, got {shown}")
    blocks = a_scales.shape[2]
    if any(x.shape[:2] != s.shape[:2] for x, s in ((a, a_scales), (b, b_scales))) or b_scales.shape[2] != blocks:
        raise ValueError(f"scaled_matmul: expected scales [B, M, K / n] and [B, N, K / n], got {shown}")
    if not blocks or a.shape[2] % blocks:
        raise ValueError(f"scaled_matmul: the length of K is no multiple of the number of scales along it: {shown}")


@fused(static=("preferred",))
def _scaled_matmul(a, b, a_scales, b_scales, preferred):
    wide = dtypes.float64 if any(x.dtype == dtypes.float64 for x in (a, b, a_scales, b_scales)) else _F32
    a, b = (_unscaled(x, s, wide) for x, s in ((a, a_scales), (b, b_scales)))
    return ew.convert(dot_general(a, b, DotDimensions(((2,), (2,)), ((0,), (0,)))), preferred)


def _unscaled(x, scales, dtype):
    """The numbers that x [B, M, K] stands for, in a wide dtype."""
    shape = aval_of(x).shape
    blocks = (*aval_of(scales).shape, shape[2] // aval_of(scales).shape[2])
    x, scales = reshape(ew.convert(x, dtype), blocks), ew.convert(scales, dtype)
    return reshape(ew.mul(x, broadcast_in_dim(scales, blocks, (0, 1, 2))), shape)


# ---- quantisation ----------------------------------------------------------------------------------------------


class _Format(NamedTuple):
    """The static part of a configuration."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any


def _quantized(x, kind: _Format, global_scale):
    """(q, scales) of x [B, M, K]."""
    shape, dtype = aval_of(x).shape, aval_of(x).dtype
    if shape[2] % kind.block_size or not shape[2]:
        raise ValueError(
            f"scaled_dot_general: the contracted length {shape[2]} is no multiple of the block size {kind.block_size} of "
            f"{kind.mode}"
        )
    greatest = float(dtypes.finfo(kind.data_type).max)
    x = ew.convert(x, _F32)
    if global_scale is not None:
        x = ew.div(x, spread(global_scale, shape))
    blocks = reshape(x, (*shape[:2], shape[2] // kind.block_size, kind.block_size))
    scales = ew.div(reduce_max(ew.abs(blocks), (3,)), greatest)
    if kind.mode == "mxfp8":
        scales, divisor = _power_of_two_above(scales)
    else:
        scales = ew.min(scales, float(dtypes.finfo(kind.scale_type).max))
        (scales,) = optimization_barrier([ew.convert(scales, kind.scale_type)])
        divisor = ew.convert(scales, _F32)
    divisor = ew.select(ew.eq(divisor, 0.0), fill(divisor, 1), divisor)
    scaled = ew.div(blocks, broadcast_in_dim(divisor, aval_of(blocks).shape, (0, 1, 2)))
    limited = ew.convert(ew.clamp(np.float32(-greatest), scaled, np.float32(greatest)), dtype)
    return reshape(ew.convert(limited, kind.data_type), shape), scales


# The exponent bits of a float32 are those of e8m0; a mantissa that is not 0 rounds up, except at both ends.
def _power_of_two_above(x):
    """(the least power of two that is not below x as e8m0, the same as float32)."""
    bits = bitcast_convert(x, dtypes.uint32)
    exponent, mantissa = shift_right_logical(bits, 23), ew.and_(bits, 2**23 - 1)
    at_end = ew.or_(ew.eq(exponent, 0xFE), ew.and_(ew.eq(exponent, 0), ew.le(mantissa, 2**22)))
    exponent = ew.select(ew.and_(ew.gt(mantissa, 0), ew.not_(at_end)), ew.add(exponent, 1), exponent)
    value = bitcast_convert(shift_left(exponent, 23), _F32)
    value = ew.select(ew.eq(exponent, 0), fill(value, 2.0**-127), value)
    return bitcast_convert(ew.convert(exponent, dtypes.uint8), dtypes.float8_e8m0fnu), value


# ---- scaled_dot_general ----------------------------------------------------------------------------------------


def scaled_dot_general(
    lhs, rhs, dimension_numbers, preferred_element_type=np.float32, configs=None, implementation=None
) -> Array:
    """`lax.dot_general` of operands that are quantised in blocks along the contracted axes, and so in the backward pass.

    `configs` are those of `lhs`, `rhs` and the cotangent, made by `get_scaled_dot_general_config`; without them the product
    is the plain one. With "nvfp4" the backward pass multiplies in full precision, and the derivative is 0 where an operand
    was out of range. Raises TypeError for a result dtype other than float32, bfloat16 and float16, ValueError for a
    contracted length that is no multiple of the block size.
    """
    if implementation is not None:
        warnings.warn("scaled_dot_general: `implementation` has no effect", DeprecationWarning, stacklevel=2)
    lhs, rhs = (as_array(operand("scaled_dot_general", x)) for x in (lhs, rhs))
    if configs is None:
        return dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    preferred = dtype_or(preferred_element_type, dtypes.promote_types(lhs.dtype, rhs.dtype))
    if preferred not in (_F32, dtypes.bfloat16, dtypes.float16):
        raise TypeError(
            f"scaled_dot_general: expected float32, bfloat16 or float16 as result, got {dtypes.short_name(preferred)}"
        )
    if len(configs) != 3:
        raise ValueError(f"scaled_dot_general: expected configs of lhs, rhs and cotangent, got {len(configs)} of them")
    (lc, rc), (lb, rb) = [[tuple(axes) for axes in pair] for pair in dimension_numbers]
    numbers = DotDimensions((lc, rc), (lb, rb))
    kinds = tuple([_Format(c.mode, c.block_size, dtypes.canonical(c.data_type), dtypes.canonical(c.scale_type)) for c in configs])
    scales = tuple([None if c.global_scale is None else as_array(c.global_scale) for c in configs])
    return _scaled_dot(lhs, rhs, scales, numbers, preferred, kinds)


def _flattened(x, contracted, batch):
    """x as [batch, free, contracted], the axes of each kind in the order given, free ones in order."""
    shape = aval_of(x).shape
    free = tuple([i for i in range(len(shape)) if i not in contracted and i not in batch])
    sizes = [math.prod([shape[i] for i in axes]) for axes in (batch, free, contracted)]
    return reshape(transpose(x, (*batch, *free, *contracted)), sizes)


def _product(lhs, rhs, numbers: DotDimensions, preferred, kinds, scales):
    """The quantised product; `kinds` and `scales` are those of both operands."""
    (lc, rc), (lb, rb) = numbers
    pairs = [
        _quantized(_flattened(x, contracted, batch), kind, scale)
        for x, contracted, batch, kind, scale in zip((lhs, rhs), (lc, rc), (lb, rb), kinds, scales, strict=True)
    ]
    (a, a_scales), (b, b_scales) = pairs
    whole = any(s is not None for s in scales)
    out = _scaled_matmul(a, b, a_scales, b_scales, _F32 if whole else preferred)
    for scale in scales:
        out = out if scale is None else ew.mul(out, spread(scale, aval_of(out).shape))
    left, right = aval_of(lhs).shape, aval_of(rhs).shape
    free = [s[i] for s, side in ((left, 0), (right, 1)) for i in numbers.free(side, len(s))]
    return ew.convert(reshape(out, (*[left[i] for i in lb], *free)), preferred)


def _forward(lhs, rhs, scales, numbers, preferred, kinds):
    return _product(lhs, rhs, numbers, preferred, kinds[:2], scales[:2])


_scaled_dot = custom_vjp(_forward, nondiff_argnums=(3, 4, 5))


# z = x y^T  =>  ct_x = ct y,  ct_y = ct^T x
def _backward(numbers, preferred, kinds, residuals, ct):
    lhs, rhs, scales = residuals
    cts = [
        _cotangent(ct, x, y, side, numbers, kinds[2], kinds[1 - side], scales[2], scales[1 - side])
        for side, (x, y) in enumerate(((lhs, rhs), (rhs, lhs)))
    ]
    for i, x in enumerate((lhs, rhs)):
        if scales[i] is not None:
            limits = [float(dtypes.finfo(d).max) for d in (kinds[i].data_type, kinds[i].scale_type)]
            bound = ew.mul(spread(ew.convert(scales[i], _F32), aval_of(x).shape), math.prod(limits))
            cts[i] = ew.select(ew.le(ew.abs(ew.convert(x, _F32)), bound), cts[i], fill(cts[i], 0))
    return cts[0], cts[1], None


def _cotangent(ct, x, y, side, numbers: DotDimensions, ct_kind, y_kind, ct_scale, y_scale):
    """The cotangent of the operand x on `side`, from that of the result [batch, lhs free, rhs free]."""
    x_contract, y_contract = numbers.contract[side], numbers.contract[1 - side]
    x_batch, y_batch = numbers.batch[side], numbers.batch[1 - side]
    ndim, other = aval_of(x).ndim, aval_of(y).ndim
    y_free = numbers.free(1 - side, other)
    count, free = len(x_batch), ndim - len(x_contract) - len(x_batch)
    start = count + (free if side == 0 else 0)
    ct_free = tuple(range(start, start + len(y_free)))
    back = DotDimensions((ct_free, y_free), (tuple(range(count)), y_batch))
    if ct_kind.mode == "nvfp4":
        wide = (ew.convert(ct, _F32), ew.convert(y, _F32))
        product = dot_general(*wide, back)
    else:
        product = _product(ct, y, back, _F32, (ct_kind, y_kind), (ct_scale, y_scale))
    # the axes of the product: batch, free of x, and those of y that x was contracted with, in the order of y
    met = sorted(range(len(y_contract)), key=y_contract.__getitem__)
    places = (*x_batch, *numbers.free(side, ndim), *[x_contract[i] for i in met])
    return ew.convert(transpose(product, tuple(sorted(range(ndim), key=places.__getitem__))), aval_of(x).dtype)


_scaled_dot.defvjp(
    lambda lhs, rhs, scales, numbers, preferred, kinds: (
        _forward(lhs, rhs, scales, numbers, preferred, kinds), (lhs, rhs, scales)
    ),
    _backward,
)
