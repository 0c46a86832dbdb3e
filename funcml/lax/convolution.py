"""Convolutions and what windows cover: `lax`'s names over `primitives.convolution` and `primitives.patches`.

Dimension numbers are given as three strings ("NCHW", "OIHW", "NCHW"): the letters of the axes of lhs, rhs and the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from funcml import dtypes
from funcml.core.values import Array
from funcml.lax.operands import array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.primitives import axes as ax
from funcml.primitives import contraction, shaping
from funcml.primitives import convolution as cv
from funcml.primitives import elementwise as ew
from funcml.primitives.convolution import ConvDimensionNumbers, ConvWindow
from funcml.primitives.patches import Window, dilated_length, patches, strided_length
from funcml.primitives.tangents import scalar_of

__all__ = [
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated",
    "conv_general_dilated_local", "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple",
    "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding", "padtype_to_pads",
]

#: what `dimension_numbers` may be
ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


# ---- dimension numbers and padding -------------------------------------------------------------------------------


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers) -> ConvDimensionNumbers:
    """The axes that `dimension_numbers` names: three strings, a ConvDimensionNumbers, or None for "NC..", "OI..", "NC..".

    Raises TypeError where the ranks differ or the strings do not name each axis once.

    >>> conv_dimension_numbers((1, 5, 5, 3), (3, 3, 3, 8), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim:
        raise TypeError(f"a convolution expects lhs and rhs of one rank, got the shapes {lhs_shape} and {rhs_shape}")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    if not isinstance(dimension_numbers, tuple | list) or len(dimension_numbers) != 3:
        raise TypeError(f"convolution dimension_numbers must be three strings or None, got {dimension_numbers!r}")
    if any(not isinstance(spec, str) or len(spec) != ndim for spec in dimension_numbers):
        raise TypeError(
            f"convolution dimension_numbers must be strings with a letter for each of the {ndim} axes, got "
            f"{tuple(dimension_numbers)!r}"
        )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(dimension_numbers):
    """For lhs, rhs and the result: the axes (N, C, spatial..), (O, I, spatial..), (N, C, spatial..), spatial ones as in rhs.

    >>> conv_general_permutations(("NHWC", "HWIO", "NCHW"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3))
    """
    specs = tuple(dimension_numbers)
    for spec, pair in zip(specs, ("NC", "OI", "NC"), strict=True):
        if len(set(spec)) != len(spec) or not set(pair) <= set(spec):
            raise TypeError(f"convolution dimension_numbers: {spec!r} must have {pair[0]}, {pair[1]} and distinct letters")
    letters = [c for c in specs[1] if c not in "OI"]
    if any(set(spec) - set("NC") != set(letters) for spec in (specs[0], specs[2])):
        raise TypeError(f"convolution dimension_numbers must have the same spatial letters, got {specs}")
    return tuple(
        [tuple([spec.index(c) for c in (*pair, *letters)]) for spec, pair in zip(specs, ("NC", "OI", "NC"), strict=True)]
    )


def padtype_to_pads(in_shape, window_shape, window_strides, padding) -> list[tuple[int, int]]:
    """(low, high) padding for each axis: none for "VALID", and for "SAME" so much that there is a window for each stride.

    With "SAME_LOWER" an odd element is added in front instead of behind.

    >>> padtype_to_pads((5, 5), (2, 3), (1, 2), "SAME")
    [(0, 1), (1, 1)]
    """
    kind = getattr(padding, "name", padding)
    kind = kind.upper() if isinstance(kind, str) else kind
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        error = RuntimeError if isinstance(padding, str) else TypeError
        raise error(f"padding must be 'VALID', 'SAME', 'SAME_LOWER' or (low, high) pairs, got {padding!r}")
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    found = []
    for n, k, stride in zip(in_shape, window_shape, window_strides, strict=True):
        n, k, stride = int(n), int(k), int(stride)
        total = max((-(-n // stride) - 1) * stride + k - n, 0)
        half, rest = total // 2, total - total // 2
        found.append((half, rest) if kind == "SAME" else (rest, half))
    return found


def _pairs(name: str, padding):
    try:
        return tuple([(index_of(name, "padding", low), index_of(name, "padding", high)) for low, high in padding])
    except (TypeError, ValueError):
        raise ValueError(f"{name}: the padding argument must be a string or (low, high) pairs of ints, got {padding!r}") from None


def _ints(name: str, what: str, values, default: int) -> tuple[int, ...]:
    return (1,) * default if values is None else tuple([index_of(name, what, v) for v in values])


def _conv_window(name, lhs, rhs, numbers, window_strides, padding, lhs_dilation, rhs_dilation) -> ConvWindow:
    count = max(lhs.ndim - 2, 0)
    strides = _ints(name, "a stride", window_strides, count)
    base = _ints(name, "a dilation", lhs_dilation, count)
    dilation = _ints(name, "a dilation", rhs_dilation, count)
    for what, values in (("window_strides", strides), ("lhs_dilation", base), ("rhs_dilation", dilation)):
        if len(values) != count:
            raise ValueError(
                f"{name}: conv_general_dilated window and {what} must have the same number of dimensions, {count}, got {values}"
            )
    if isinstance(padding, str):
        if any(d != 1 for d in base):
            raise ValueError(f"{name}: with lhs_dilation, padding must be given as (low, high) pairs, or use conv_transpose")
        kernel = [dilated_length(rhs.shape[i], d) for i, d in zip(numbers.rhs_spec[2:], dilation, strict=True)]
        padding = padtype_to_pads([lhs.shape[i] for i in numbers.lhs_spec[2:]], kernel, strides, padding)
    return ConvWindow(strides, _pairs(name, padding), base, dilation)


# ---- convolutions ------------------------------------------------------------------------------------------------


def conv_general_dilated(
    lhs,
    rhs,
    window_strides: Sequence[int],
    padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers=None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
) -> Array:
    """Sums of products of `rhs` and windows of `lhs`, which has zeros around and (`lhs_dilation`) between its elements.

    By default [N, C, spatial..] and [O, C, spatial..] give [N, O, spatial..]; `dimension_numbers` names other orders. Operands
    have one dtype; the result has it too, or `preferred_element_type`. Raises TypeError for dtypes, ValueError for shapes.

    >>> from funcml import numpy as jnp
    >>> conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 3)), (1,), "SAME")
    Array([[[2., 3., 3., 2.]]], dtype=float32)
    """
    name = "lax.conv_general_dilated"
    if out_sharding is not None:
        raise NotImplementedError(f"{name}: out_sharding must be None")
    lhs, rhs = array("conv_general_dilated", lhs), array("conv_general_dilated", rhs)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    window = _conv_window(name, lhs, rhs, numbers, window_strides, padding, lhs_dilation, rhs_dilation)
    levels = contraction.canonical_precision(precision)
    if isinstance(levels, str):
        raise ValueError(f"{name}: precision must be a level or a pair of levels, got the dot algorithm {levels}")
    preferred = None if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    return cv.conv_general_dilated(
        lhs, rhs, window, numbers, feature_group_count, batch_group_count, levels, preferred
    )


def conv(lhs, rhs, window_strides, padding: str, precision=None, preferred_element_type=None) -> Array:
    """`conv_general_dilated` of [N, C, spatial..] with [O, C, spatial..], without dilations."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=None, preferred_element_type=None
) -> Array:
    """`conv_general_dilated` of [N, C, spatial..] with [O, C, spatial..]."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


_CHANNELS_LAST = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs,
    rhs,
    strides: Sequence[int],
    padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers=None,
    transpose_kernel: bool = False,
    precision=None,
    preferred_element_type=None,
    use_consistent_padding: bool = False,
) -> Array:
    """A convolution that moves by fractions: `strides` spread `lhs` out. By default [N, spatial.., C] and [spatial.., I, O].

    "SAME" and "VALID" mean the padding of the convolution of which this is the transpose, and so do pairs if
    `use_consistent_padding`; else pairs are put around the spread out `lhs`. `transpose_kernel` reverses `rhs` and exchanges its
    features, which makes this the gradient of a convolution.

    >>> from funcml import numpy as jnp
    >>> conv_transpose(jnp.ones((1, 3, 1)), jnp.ones((2, 1, 1)), (2,), "VALID").ravel()
    Array([1., 1., 1., 1., 1., 1.], dtype=float32)
    """
    lhs, rhs = array("conv_transpose", lhs), array("conv_transpose", rhs)
    if dimension_numbers is None:
        dimension_numbers = _CHANNELS_LAST.get(lhs.ndim)
        if dimension_numbers is None:
            raise ValueError(f"lax.conv_transpose of {lhs.aval}: dimension_numbers must be given for this rank")
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    spatial = numbers.rhs_spec[2:]
    if use_consistent_padding or (isinstance(padding, str) and padding in ("SAME", "VALID")):
        dilation = _ints("lax.conv_transpose", "a dilation", rhs_dilation, len(spatial))
        pads = [padding] * len(spatial) if isinstance(padding, str) else padding
        kernel = [dilated_length(rhs.shape[i], d) for i, d in zip(spatial, dilation, strict=True)]
        padding = [_transposed_padding(k, s, p) for k, s, p in zip(kernel, strides, pads, strict=True)]
    if transpose_kernel:
        rhs = _transposed_kernel(rhs, numbers)
    return conv_general_dilated(
        lhs, rhs, (1,) * len(spatial), padding, strides, rhs_dilation, numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


@fused(static=("numbers",))
def _transposed_kernel(rhs, numbers):
    o, i, *spatial = numbers.rhs_spec
    order = list(range(rhs.ndim))
    order[o], order[i] = i, o
    return ax.transpose(shaping.rev(rhs, spatial), order)


def _transposed_padding(k: int, stride: int, padding) -> tuple[int, int]:
    """Around the spread out elements, for the padding of the convolution that is transposed."""
    if padding == "SAME":
        total = k + stride - 2
        low = k - 1 if stride > k - 1 else -(-total // 2)
    elif padding == "VALID":
        total, low = k + stride - 2 + max(k - stride, 0), k - 1
    elif isinstance(padding, tuple | list) and len(padding) == 2:
        low, total = k - 1 - padding[0], 2 * (k - 1) - sum(padding)
    else:
        raise ValueError(f"lax.conv_transpose: padding must be 'SAME', 'VALID' or (low, high) pairs, got {padding!r}")
    return low, total - low


# ---- shapes ------------------------------------------------------------------------------------------------------


def conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count: int = 1) -> tuple[int, ...]:
    """The shape [N, O, spatial..] of the convolution of [N, C, spatial..] with [O, C, spatial..].

    >>> conv_shape_tuple((2, 3, 8), (5, 3, 3), (2,), "SAME")
    (2, 5, 4)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"conv_shape_tuple expects {len(lhs_shape) - 2} pairs of padding, got {len(pads)}")
    padded = [int(n + low + high) for n, (low, high) in zip(lhs_shape[2:], pads, strict=True)]
    if any(n < 0 for n in padded):
        raise ValueError(f"conv_shape_tuple: the padding {pads} takes away more than {tuple(lhs_shape[2:])} has")
    lengths = [strided_length(n, int(k), int(s)) for n, k, s in zip(padded, rhs_shape[2:], strides, strict=True)]
    return (int(lhs_shape[0]) // batch_group_count, int(rhs_shape[0]), *lengths)


def _in_layout(rule, lhs_shape, rhs_shape, dimension_numbers, *args) -> tuple[int, ...]:
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    shape = rule([lhs_shape[i] for i in lhs_spec], [rhs_shape[i] for i in rhs_spec], *args)
    return tuple([n for _, n in sorted(zip(out_spec, shape, strict=True))])


def conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers) -> tuple[int, ...]:
    """`conv_shape_tuple` in the layout that the three strings `dimension_numbers` name."""
    return _in_layout(conv_shape_tuple, lhs_shape, rhs_shape, dimension_numbers, window_strides, padding)


def conv_transpose_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers) -> tuple[int, ...]:
    """The shape of `conv_transpose` with these strides, in the layout that `dimension_numbers` names."""
    return _in_layout(_transposed_shape, lhs_shape, rhs_shape, dimension_numbers, window_strides, padding)


def _transposed_shape(lhs_shape, rhs_shape, strides, padding):
    pads = [padding] * len(strides) if isinstance(padding, str) else padding
    lengths = []
    for n, k, stride, pad in zip(lhs_shape[2:], rhs_shape[2:], strides, pads, strict=True):
        low, high = _transposed_padding(k, stride, pad) if isinstance(pad, str) else pad
        lengths.append((n - 1) * stride - k + 2 + low + high)
    return (lhs_shape[0], rhs_shape[0], *lengths)


# ---- patches -----------------------------------------------------------------------------------------------------


def conv_general_dilated_patches(
    lhs,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers=None,
    precision=None,
    preferred_element_type=None,
) -> Array:
    """The windows that a convolution would multiply, laid out along the feature axis: (feature, spatial..), row-major.

    By default [N, C, spatial..] gives [N, C K.., spatial..] for `filter_shape` K.. Elements are moved, not computed with:
    `precision` does not matter, and inf and nan stay where they are.

    >>> from funcml import numpy as jnp
    >>> conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    name = "lax.conv_general_dilated_patches"
    lhs, filter_shape = array("conv_general_dilated_patches", lhs), _ints(name, "a length", filter_shape, 0)
    numbers = conv_dimension_numbers(lhs.shape, (1, 1, *filter_shape), dimension_numbers)
    kernel_spec = ConvDimensionNumbers(numbers.lhs_spec, tuple(range(lhs.ndim)), numbers.out_spec)
    kernel = ax.broadcast_in_dim(scalar_of(lhs.aval, 0), (1, 1, *filter_shape))
    window = _conv_window(name, lhs, kernel, kernel_spec, window_strides, padding, lhs_dilation, rhs_dilation)
    preferred = lhs.dtype if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    return _patches(lhs, filter_shape, window, numbers, preferred)


@fused(static=("filter_shape", "window", "numbers", "dtype"))
def _patches(lhs, filter_shape, window, numbers, dtype):
    strides, padding, base, dilation = window
    one = (1, 1)
    whole = Window(one + filter_shape, one + strides, ((0, 0), (0, 0), *padding), one + base, one + dilation)
    found = patches(ax.transpose(lhs, numbers.lhs_spec), scalar_of(lhs.aval, 0), whole)
    n, c, *counts = found.shape[found.ndim // 2 :]
    found = ax.reshape(found, (*filter_shape, n, c, *counts))
    k = len(filter_shape)
    found = ax.transpose(found, (k, k + 1, *range(k), *range(k + 2, found.ndim)))
    found = ax.reshape(found, (n, c * math.prod(filter_shape), *counts))
    placed = ax.transpose(found, sorted(range(len(numbers.out_spec)), key=numbers.out_spec.__getitem__))
    return ew.convert(placed, dtype)


def conv_general_dilated_local(
    lhs,
    rhs,
    window_strides: Sequence[int],
    padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers=None,
    precision=None,
) -> Array:
    """A convolution with a kernel of its own at each place: [N, C, W..] and [O, C K.., V..] give [N, O, V..].

    The second axis of `rhs` is that of `conv_general_dilated_patches`, its spatial axes are those of the result.
    """
    lhs, rhs = array("conv_general_dilated_local", lhs), array("conv_general_dilated_local", rhs)
    found = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    numbers = conv_dimension_numbers(lhs.shape, (1, 1, *filter_shape), dimension_numbers)
    (n, c, *places), (_, i, *kernels) = numbers.out_spec, numbers.rhs_spec
    out = contraction.dot_general(found, rhs, (((c,), (i,)), (places, kernels)), precision)
    at = {n: len(places), c: len(places) + 1, **{place: j for j, place in enumerate(places)}}
    return ax.transpose(out, [at[k] for k in range(out.ndim)])
