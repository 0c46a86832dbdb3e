"""The operations themselves, one primitive each: strict about dtypes and shapes, where `funcml.numpy` promotes.

A Python number may stand beside arrays; everything else has to be of the dtype and shape that an operation expects.
"""

# isort: off
from funcml.lax import linalg
from funcml.lax.bits import RandomAlgorithm, rng_bit_generator
from funcml.lax.collectives import (
    all_gather, all_to_all, axis_index, axis_size, pbroadcast, pcast, pmax, pmean, pmin, ppermute, pshuffle, psum, psum_scatter,
    pswapaxes,
)
from funcml.lax.composites import composite
from funcml.lax.convolution import (
    ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers, conv, conv_dimension_numbers, conv_general_dilated,
    conv_general_dilated_local, conv_general_dilated_patches, conv_general_permutations, conv_general_shape_tuple,
    conv_shape_tuple, conv_transpose, conv_transpose_shape_tuple, conv_with_general_padding, padtype_to_pads,
)
from funcml.lax.associative import associative_scan
from funcml.lax.conditionals import cond, platform_dependent, switch
from funcml.lax.implicit import custom_linear_solve, custom_root
from funcml.lax.loops import fori_loop, map, scan, while_loop
from funcml.lax.elementwise import (
    RoundingMethod, abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bessel_i0e, bessel_i1e,
    bitcast_convert_type, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, cbrt, ceil, clamp, clz, complex, conj,
    convert_element_type, cos, cosh, digamma, div, eq, erf, erf_inv, erfc, exp, exp2, expm1, floor, ge, gt, imag,
    integer_pow, is_finite, le, lgamma, log, log1p, logistic, lt, max, min, mul, mulhi, ne, neg, nextafter, polygamma,
    population_count, pow, real, reciprocal, reduce_precision, rem, round, rsqrt, select, select_n, shift_left,
    shift_right_arithmetic, shift_right_logical, sign, sin, sinh, sqrt, square, sub, tan, tanh, zeta,
)
from funcml.lax.fft import FftType, fft
from funcml.lax.monoids import reduce, reduce_window, reduce_window_shape_tuple
from funcml.lax.precision import AccuracyMode, DotAlgorithm, DotAlgorithmPreset, Precision, PrecisionLike, Tolerance
from funcml.lax.ragged import DotDimensionNumbers, RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general, scaled_dot
from funcml.lax.reductions import (
    approx_max_k, approx_min_k, argmax, argmin, batch_matmul, cumlogsumexp, cummax, cummin, cumprod, cumsum, dot,
    dot_general, optimization_barrier, reduce_and, reduce_max, reduce_min, reduce_or, reduce_prod, reduce_sum, reduce_xor,
    sort, sort_key_val, stop_gradient, top_k,
)
from funcml.lax.shaping import (
    broadcast, broadcast_in_dim, broadcast_like, broadcast_shapes, broadcast_to_rank, broadcasted_iota, collapse,
    concatenate, dtype,
    dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_update_index_in_dim, dynamic_update_slice,
    dynamic_update_slice_in_dim, empty, expand_dims, full, full_like, gather, index_in_dim, index_take, iota, pad,
    reshape, rev, scatter, scatter_add, scatter_apply, scatter_max, scatter_min, scatter_mul, scatter_sub,
    shape_as_value, slice, slice_in_dim, split, squeeze, stack, stage, tile, transpose, unstack, zeros_like_array,
)
from funcml.lax.special import betainc, igamma, igamma_grad_a, igammac, random_gamma_grad
from funcml.lowering.emit import RULES
from funcml.primitives.gather_scatter import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
# isort: on

__all__ = [
    # control flow
    "associative_scan",
    "cond",
    "custom_linear_solve",
    "custom_root",
    "fori_loop",
    "map",
    "platform_dependent",
    "scan",
    "switch",
    "while_loop",
    # collectives over named axes
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    # element by element
    "RoundingMethod",
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bessel_i0e",
    "bessel_i1e",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "complex",
    "conj",
    "convert_element_type",
    "cos",
    "cosh",
    "digamma",
    "div",
    "eq",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "ge",
    "gt",
    "imag",
    "integer_pow",
    "is_finite",
    "le",
    "lgamma",
    "log",
    "log1p",
    "logistic",
    "lt",
    "max",
    "min",
    "mul",
    "mulhi",
    "ne",
    "neg",
    "nextafter",
    "polygamma",
    "population_count",
    "pow",
    "real",
    "reciprocal",
    "reduce_precision",
    "rem",
    "round",
    "rsqrt",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
    "zeta",
    # special functions of several parameters
    "betainc",
    "igamma",
    "igamma_grad_a",
    "igammac",
    "random_gamma_grad",
    # reductions, sorting, products, identities
    "AccuracyMode",
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "RaggedDotDimensionNumbers",
    "Tolerance",
    "approx_max_k",
    "approx_min_k",
    "argmax",
    "argmin",
    "batch_matmul",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dot",
    "dot_general",
    "optimization_barrier",
    "ragged_dot",
    "ragged_dot_general",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_window",
    "reduce_window_shape_tuple",
    "reduce_xor",
    "scaled_dot",
    "sort",
    "sort_key_val",
    "stop_gradient",
    "top_k",
    # Fourier transforms
    "FftType",
    "fft",
    # shapes, windows and places
    "broadcast",
    "broadcast_in_dim",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "concatenate",
    "dtype",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "empty",
    "expand_dims",
    "full",
    "full_like",
    "gather",
    "index_in_dim",
    "index_take",
    "iota",
    "pad",
    "reshape",
    "rev",
    "scatter",
    "scatter_add",
    "scatter_apply",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
    "shape_as_value",
    "slice",
    "slice_in_dim",
    "split",
    "squeeze",
    "stack",
    "stage",
    "tile",
    "transpose",
    "unstack",
    "zeros_like_array",
    # bits and operations of a backend
    "RandomAlgorithm",
    "composite",
    "rng_bit_generator",
    # convolution
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
    "padtype_to_pads",
    # dimension numbers and modes
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    # modules
    "linalg",
]

#: JAX's name of a primitive -> its name here, where they differ
_RENAMED = {
    "convert_element_type": "convert",
    "bitcast_convert_type": "bitcast_convert",
    "regularized_incomplete_beta": "betainc",
}


_PRIMITIVES = {primitive.name: primitive for primitive in reversed(RULES)}


def __getattr__(name: str):
    """The primitive `<name>_p`, as JAX calls it: what `eqn.primitive` of a program is compared with."""
    if name.endswith("_p") and not name.startswith("_"):
        found = _PRIMITIVES.get(_RENAMED.get(name[:-2], name[:-2]))
        if found is not None:
            return found
    raise AttributeError(f"module 'funcml.lax' has no attribute {name!r}")
