"""`numpy`, on arrays that can be differentiated, vectorised and compiled: the names, arguments and results of NumPy.

Arrays are immutable; promotion follows the lattice of `funcml.dtypes`, where Python's numbers give way. A dtype that is asked
for is honoured; without one the defaults are 32 bits wide, unless `config.enable_x64`.
"""

# isort: off
from numpy import (
    character, complexfloating, dtype, flexible, floating, generic, inexact, integer, number, object_,
    signedinteger, unsignedinteger,
)
from numpy.exceptions import ComplexWarning
from numpy import e, euler_gamma, inf, nan, newaxis, pi

from funcml import dtypes as _dtypes
from funcml.core.values import Array as ndarray
from funcml.dtypes import can_cast, finfo, iinfo, isdtype, issubdtype, promote_types, result_type
from funcml.numpy import array_methods, fft, linalg
from funcml.numpy.array_api import VERSION as __array_api_version__
from funcml.numpy.array_api import ArrayNamespaceInfo as __array_namespace_info__
from funcml.numpy.convolutions import convolve, correlate
from funcml.numpy.bitpacking import packbits, unpackbits
from funcml.numpy.covariance import corrcoef, cov
from funcml.numpy.creation import (
    arange, array, asarray, astype, copy, empty, empty_like, from_dlpack, full, full_like, geomspace, indices, ix_,
    linspace, logspace, meshgrid, ones, ones_like, zeros, zeros_like,
)
from funcml.numpy.diagonals import (
    diag, diag_indices, diag_indices_from, diagflat, diagonal, eye, fill_diagonal, identity, mask_indices, tri,
    tril, tril_indices, tril_indices_from, triu, triu_indices, triu_indices_from,
)
from funcml.numpy.fitting import poly, polyfit, roots
from funcml.numpy.floats import (
    copysign, frexp, heaviside, isfinite, isinf, isnan, isneginf, isposinf, ldexp, nan_to_num, nextafter, signbit,
    spacing,
)
from funcml.numpy.histograms import bincount, histogram, histogram2d, histogram_bin_edges, histogramdd
from funcml.numpy.integers import gcd, lcm
from funcml.numpy.linear import (
    cross, dot, einsum, einsum_path, inner, kron, matmul, matvec, outer, tensordot, trace, vdot, vecdot, vecmat,
)
from funcml.numpy.logic import (
    allclose, array_equal, array_equiv, isclose, iscomplex, iscomplexobj, isreal, isrealobj, isscalar, iterable,
)
from funcml.numpy.joining import append, block, column_stack, concat, concatenate, dstack, hstack, stack, vstack
from funcml.numpy.polynomials import polyadd, polyder, polydiv, polyint, polymul, polysub, polyval, trim_zeros, vander
from funcml.numpy.running import cumprod, cumsum, cumulative_prod, cumulative_sum, nancumprod, nancumsum
from funcml.numpy.storage import frombuffer, fromfile, fromiter, fromstring, load, save, savez
from funcml.numpy.grids import c_, index_exp, mgrid, ogrid, r_, s_
from funcml.numpy.editing import delete, insert, place, put, put_along_axis
from funcml.numpy.choosing import choose, piecewise
from funcml.numpy.broadcasting import apply_along_axis, apply_over_axes, fromfunction, vectorize
from funcml.numpy.printing import array_repr, array_str, get_printoptions, printoptions, set_printoptions
from funcml.numpy.universal import (
    add, bitwise_and, bitwise_or, bitwise_xor, divide, fmax, fmin, frompyfunc, logaddexp, logaddexp2, logical_and,
    logical_or, logical_xor, maximum, minimum, multiply, negative, pow, power, subtract, true_divide, ufunc,
)
from funcml.numpy.manipulation import (
    array_split, atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_to, dsplit, expand_dims, flip, fliplr,
    flipud, hsplit, matrix_transpose, moveaxis, ndim, permute_dims, ravel, ravel_multi_index, reshape, resize, roll,
    rollaxis, rot90, shape, size, split, squeeze, swapaxes, tile, transpose, unravel_index, unstack, vsplit,
)
from funcml.numpy.padding import pad
from funcml.numpy.promotion import broadcast_shapes
from funcml.numpy.reductions import (
    all, amax, amin, any, argmax, argmin, average, count_nonzero, max, mean, min, nanargmax, nanargmin, nanmax,
    nanmean, nanmin, nanprod, nanstd, nansum, nanvar, prod, ptp, std, sum, var,
)
from funcml.numpy.sampled import diff, ediff1d, gradient, interp, trapezoid, unwrap
from funcml.numpy.selection import argwhere, compress, extract, flatnonzero, nonzero, repeat, select, take, take_along_axis, where
from funcml.numpy.sets import (
    intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts, unique_inverse,
    unique_values,
)
from funcml.numpy.sorting import argpartition, argsort, digitize, lexsort, partition, searchsorted, sort, sort_complex
from funcml.numpy.statistics import median, nanmedian, nanpercentile, nanquantile, percentile, quantile
from funcml.numpy.ufuncs import (
    abs, absolute, acos, acosh, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, around, asin, asinh,
    atan, atan2, atanh, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_right_shift, cbrt, ceil,
    clip, conj, conjugate, cos, cosh, deg2rad, degrees, divmod, equal, exp, exp2, expm1, fabs, float_power, floor,
    floor_divide, fmod, greater, greater_equal, hypot, i0, imag, invert, left_shift, less, less_equal, log, log10,
    log1p, log2, logical_not, mod, modf, not_equal, positive, rad2deg, radians, real, reciprocal, remainder,
    right_shift, rint, round, sign, sin, sinc, sinh, sqrt, square, tan, tanh, trunc,
)
from funcml.numpy.windows import bartlett, blackman, hamming, hanning, kaiser
from funcml.numpy.scalar_types import DefaultType as _DefaultType
from funcml.numpy.scalar_types import scalar_types as _scalar_types
# isort: on

_types = _scalar_types()
bool_ = _types["bool_"]
int2 = _types["int2"]
int4 = _types["int4"]
int8 = _types["int8"]
int16 = _types["int16"]
int32 = _types["int32"]
int64 = _types["int64"]
uint2 = _types["uint2"]
uint4 = _types["uint4"]
uint8 = _types["uint8"]
uint16 = _types["uint16"]
uint32 = _types["uint32"]
uint64 = _types["uint64"]
float4_e2m1fn = _types["float4_e2m1fn"]
float8_e3m4 = _types["float8_e3m4"]
float8_e4m3 = _types["float8_e4m3"]
float8_e4m3fn = _types["float8_e4m3fn"]
float8_e4m3fnuz = _types["float8_e4m3fnuz"]
float8_e4m3b11fnuz = _types["float8_e4m3b11fnuz"]
float8_e5m2 = _types["float8_e5m2"]
float8_e5m2fnuz = _types["float8_e5m2fnuz"]
float8_e8m0fnu = _types["float8_e8m0fnu"]
bfloat16 = _types["bfloat16"]
float16 = _types["float16"]
float32 = _types["float32"]
float64 = _types["float64"]
complex64 = _types["complex64"]
complex128 = _types["complex128"]
bool = bool_
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_ = _DefaultType("int_", _dtypes.default_int)
uint = _DefaultType("uint", lambda: _dtypes.uint64 if _dtypes.default_int() == _dtypes.int64 else _dtypes.uint32)
float_ = _DefaultType("float_", _dtypes.default_float)
complex_ = _DefaultType("complex_", _dtypes.default_complex)

__all__ = [
    # making arrays
    "arange",
    "array",
    "asarray",
    "astype",
    "copy",
    "empty",
    "empty_like",
    "from_dlpack",
    "full",
    "full_like",
    "geomspace",
    "indices",
    "ix_",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
    # parts and classes of floats
    "copysign",
    "frexp",
    "heaviside",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "ldexp",
    "nan_to_num",
    "nextafter",
    "signbit",
    "spacing",
    # sums of products
    "convolve",
    "correlate",
    "cross",
    "dot",
    "einsum",
    "einsum_path",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
    # comparison of whole arrays
    "allclose",
    "array_equal",
    "array_equiv",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isreal",
    "isrealobj",
    "isscalar",
    "iterable",
    # shapes and places
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "dsplit",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "ravel_multi_index",
    "reshape",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "shape",
    "size",
    "split",
    "squeeze",
    "swapaxes",
    "tile",
    "transpose",
    "unravel_index",
    "unstack",
    "vsplit",
    # more elements around
    "pad",
    # promotion
    "broadcast_shapes",
    # reductions
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
    # choosing elements
    "argwhere",
    "compress",
    "extract",
    "flatnonzero",
    "nonzero",
    "repeat",
    "select",
    "take",
    "take_along_axis",
    "where",
    # orders
    "argpartition",
    "argsort",
    "digitize",
    "lexsort",
    "partition",
    "searchsorted",
    "sort",
    "sort_complex",
    # order statistics
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
    # element by element
    "abs",
    "absolute",
    "acos",
    "acosh",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_right_shift",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmod",
    "greater",
    "greater_equal",
    "hypot",
    "i0",
    "imag",
    "invert",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "mod",
    "modf",
    "not_equal",
    "positive",
    "rad2deg",
    "radians",
    "real",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "round",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    # diagonals and triangles
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "eye",
    "fill_diagonal",
    "identity",
    "mask_indices",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "triu",
    "triu_indices",
    "triu_indices_from",
    # joining
    "append",
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "stack",
    "vstack",
    # bytes, text and files
    "frombuffer",
    # functions known by samples
    "diff",
    "ediff1d",
    "gradient",
    "interp",
    "trapezoid",
    "unwrap",
    # windows
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
    "kaiser",
    # counts
    "bincount",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    # covariances
    "corrcoef",
    "cov",
    # bits as bytes
    "packbits",
    "unpackbits",
    # grids and index tricks
    "c_",
    "index_exp",
    "mgrid",
    "ogrid",
    "r_",
    "s_",
    # elements put in and left out
    "delete",
    "insert",
    "place",
    "put",
    "put_along_axis",
    # one of several
    "choose",
    "piecewise",
    # functions mapped over arrays
    "apply_along_axis",
    "apply_over_axes",
    "fromfunction",
    "vectorize",
    # sets
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    # polynomials
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
    "trim_zeros",
    "vander",
    # divisors
    "gcd",
    "lcm",
    # functions with methods
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "divide",
    "fmax",
    "fmin",
    "frompyfunc",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "pow",
    "power",
    "subtract",
    "true_divide",
    "ufunc",
    # running sums and products
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "nancumprod",
    "nancumsum",
    # the array type and dtypes
    "bfloat16",
    "bool",
    "bool_",
    "can_cast",
    "cdouble",
    "complex128",
    "complex64",
    "complex_",
    "csingle",
    "double",
    "dtype",
    "finfo",
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float_",
    "iinfo",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "int_",
    "isdtype",
    "issubdtype",
    "ndarray",
    "promote_types",
    "result_type",
    "single",
    "uint",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    # abstract scalar types
    "character",
    "complexfloating",
    "flexible",
    "floating",
    "generic",
    "inexact",
    "integer",
    "number",
    "object_",
    "signedinteger",
    "unsignedinteger",
    # warnings
    "ComplexWarning",
    # constants
    "e",
    "euler_gamma",
    "inf",
    "nan",
    "newaxis",
    "pi",
    # printing
    "array_repr",
    "array_str",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
    # modules
    "fft",
    "linalg",
]
