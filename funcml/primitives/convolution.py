"""Sums of products over windows that move along spatial axes: convolution (without reversal) in every layout.

    conv_general_dilated : [N, C, W..] x [O, C/G, K..] -> [N, O, V..]

    out[n, o, v] = sum over c, k of lhs[n, c, v stride + k rhs_dilation - low] rhs[o, c, k]

where lhs has `lhs_dilation - 1` zeros between its elements and zeros around them, and the axes of each operand may stand in
any order. With G = `feature_group_count` the channels of lhs and the features of rhs are G groups that meet one by one; with
`batch_group_count` the batch of lhs and the features of rhs are.

The result is linear in each operand; its derivatives are again convolutions: with N and C exchanged, with strides and dilations
exchanged, and with a group of one kind for a group of the other.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

from funcml import dtypes
from funcml.core.avals import ShapedArray, shaped
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, moveaxis, reshape
from funcml.primitives.batching import batched_aval, example_aval
from funcml.primitives.bilinear import Bilinear
from funcml.primitives.elementwise import convert
from funcml.primitives.patches import dilated_length, strided_length
from funcml.primitives.shaping import rev
from funcml.primitives.tangents import scalar_of, zeros

__all__ = ["ConvDimensionNumbers", "ConvWindow", "conv_general_dilated"]


class ConvDimensionNumbers(NamedTuple):
    """The axes (batch, feature, spatial..) of lhs and of the result, (output feature, input feature, spatial..) of rhs."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


class ConvWindow(NamedTuple):
    """How the window moves: for each spatial axis a stride, (low, high) padding of lhs, and the dilations of both operands."""

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]


# ---- types -------------------------------------------------------------------------------------------------


class ConvGeneralDilated(Bilinear):
    """The convolution of lhs with rhs, in the dtype `preferred_element_type`.

    Parameters: `window` (a ConvWindow), `dimension_numbers` (a ConvDimensionNumbers), `feature_group_count`,
    `batch_group_count` (one of them is 1), `precision` (see `contraction.canonical_precision`), `preferred_element_type` (a
    dtype, or None for that of the operands).
    """

    def type_rule(
        self, lhs, rhs, *, window, dimension_numbers, feature_group_count, batch_group_count, precision, preferred_element_type
    ):
        if lhs.dtype != rhs.dtype or not dtypes.is_numeric(lhs.dtype):
            raise TypeError(
                f"conv_general_dilated expects operands of one numeric dtype, got {lhs} and {rhs}; convert them first"
            )
        _check_layout(lhs, rhs, dimension_numbers, window)
        _check_groups(lhs, rhs, dimension_numbers, feature_group_count, batch_group_count)
        dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
        _check_preferred(lhs, dtype)
        lengths = _lengths(lhs, rhs, dimension_numbers, window)
        batch = lhs.shape[dimension_numbers.lhs_spec[0]] // batch_group_count
        return shaped(_placed((batch, rhs.shape[dimension_numbers.rhs_spec[0]], *lengths), dimension_numbers.out_spec), dtype)

    def cotangent(self, ct, aval, other, side, **params):
        return _cotangent((_lhs_cotangent, _rhs_cotangent)[side], ct, aval, other, **params)

    # One more group where both are mapped; else the mapped axis joins the batch, or the output features.
    def batch_rule(self, axis, operands, dims, **params):
        numbers, (lhs, rhs), (dl, dr) = params["dimension_numbers"], operands, dims
        kind = "batch_group_count" if params["batch_group_count"] > 1 else "feature_group_count"
        groups, (n, c, *_), o = params[kind], numbers.lhs_spec, numbers.rhs_spec[0]
        if axis.size == 0:
            avals = [example_aval(aval_of(x), d) for x, d in zip(operands, dims, strict=True)]
            return zeros(batched_aval(self.infer(tuple(avals), params), axis, 0)), 0
        grouped = n if kind == "batch_group_count" else c
        if dr is None:
            batch_groups = params["batch_group_count"]
            out = bind(self, (_folded(lhs, dl, n, batch_groups), rhs), params)
            return _unfolded(out, numbers.out_spec[0], axis.size, 1), numbers.out_spec[0]
        if dl is None:
            out = bind(self, (lhs, _folded(rhs, dr, o, groups)), params)
            return _unfolded(out, numbers.out_spec[1], axis.size, groups), numbers.out_spec[1]
        folded = _folded(lhs, dl, grouped, 1), _folded(rhs, dr, o, 1)
        out = bind(self, folded, {**params, kind: groups * axis.size})
        return _unfolded(out, numbers.out_spec[1], axis.size, 1), numbers.out_spec[1]


def _placed(values, spec) -> tuple:
    """`values` in the order of the axes, of which `spec` tells the places."""
    found = dict(zip(spec, values, strict=True))
    return tuple([found[i] for i in range(len(spec))])


def _check_layout(lhs, rhs, numbers, window):
    ndim = lhs.ndim
    if rhs.ndim != ndim:
        raise ValueError(f"conv_general_dilated lhs and rhs must have the same number of dimensions, got {lhs} and {rhs}")
    if ndim < 2 or any(sorted(spec) != list(range(ndim)) for spec in numbers):
        raise ValueError(
            f"conv_general_dilated expects operands of rank 2 at least, and dimension numbers that order their axes; got "
            f"{lhs}, {rhs} and {tuple(numbers)}"
        )
    for name, values in window._asdict().items():
        if len(values) != ndim - 2:
            raise ValueError(
                f"conv_general_dilated of {lhs} and {rhs}: window {name} must have {ndim - 2} values, one for each spatial "
                f"axis, got {values}"
            )
    if any(d < 1 for d in (*window.strides, *window.lhs_dilation, *window.rhs_dilation)):
        raise ValueError(f"conv_general_dilated expects positive strides and dilations, got {window}")


def _check_groups(lhs, rhs, numbers, feature_groups, batch_groups):
    n, c = (lhs.shape[i] for i in numbers.lhs_spec[:2])
    o, i = (rhs.shape[k] for k in numbers.rhs_spec[:2])
    said = f"conv_general_dilated of {lhs} and {rhs}"
    if feature_groups < 1 or batch_groups < 1:
        raise ValueError(f"{said}: group counts must be positive, got {feature_groups} and {batch_groups}")
    if feature_groups > 1 and batch_groups > 1:
        raise ValueError(
            f"{said}: feature_group_count ({feature_groups}) or batch_group_count ({batch_groups}) may be above 1, not both"
        )
    if c % feature_groups or c // feature_groups != i:
        raise ValueError(
            f"{said}: the {c} features of lhs (axis {numbers.lhs_spec[1]}) must be feature_group_count ({feature_groups}) times "
            f"the {i} input features of rhs (axis {numbers.rhs_spec[1]})"
        )
    if o % feature_groups or o % batch_groups:
        raise ValueError(
            f"{said}: the {o} output features of rhs (axis {numbers.rhs_spec[0]}) must be a multiple of the group count "
            f"{feature_groups * batch_groups}"
        )
    if n % batch_groups:
        raise ValueError(f"{said}: the batch {n} of lhs must be a multiple of batch_group_count ({batch_groups})")


def _check_preferred(lhs, dtype):
    for is_kind in (dtypes.is_integer, dtypes.is_float, dtypes.is_complex):
        if is_kind(lhs.dtype) and is_kind(dtype) and dtypes.bit_width(dtype) >= dtypes.bit_width(lhs.dtype):
            return
    if dtypes.is_integer(lhs.dtype) and dtypes.is_float(dtype):
        return
    raise TypeError(
        f"conv_general_dilated: preferred_element_type must be of the kind of the operands ({lhs}) and not narrower, got "
        f"{dtype}; convert the result with `.astype` instead"
    )


def _lengths(lhs: ShapedArray, rhs: ShapedArray, numbers, window) -> list[int]:
    """The spatial lengths of the result."""
    found = []
    for i, k, stride, (low, high), ld, rd in zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], *window, strict=True):
        padded = dilated_length(lhs.shape[i], ld) + low + high
        if padded < 0:
            raise ValueError(
                f"conv_general_dilated of {lhs}: the padding ({low}, {high}) takes more away from axis {i} than there is"
            )
        found.append(strided_length(padded, dilated_length(rhs.shape[k], rd), stride))
    return found


# ---- cotangents --------------------------------------------------------------------------------------------


def _cotangent(rule, ct, aval, other, *, preferred_element_type, precision, **params):
    """The cotangent of the operand of type `aval` by `rule`, computed in the dtype of `ct`."""
    if 0 in (aval.size, aval_of(other).size, aval_of(ct).size):
        return broadcast_in_dim(scalar_of(aval, 0), aval.shape)
    out = rule(ct, aval, convert(other, aval_of(ct).dtype), precision=precision, **params)
    return convert(out, aval.dtype, aval.weak_type)


# ct_lhs[n, c, w] = sum over o, k with v stride + k rhs_dilation = w lhs_dilation + low of ct[n, o, v] rhs[o, c, k]
def _lhs_cotangent(ct, lhs, rhs, *, window, dimension_numbers, feature_group_count, batch_group_count, precision):
    numbers, groups = dimension_numbers, feature_group_count * batch_group_count
    o, i, *spatial = numbers.rhs_spec
    padding = []
    for k, w, v, stride, (low, _), ld, rd in zip(
        spatial, numbers.lhs_spec[2:], numbers.out_spec[2:], *window, strict=True
    ):
        reach = dilated_length(aval_of(rhs).shape[k], rd) - 1
        needed = dilated_length(lhs.shape[w], ld) + reach
        padding.append((reach - low, needed - dilated_length(aval_of(ct).shape[v], stride) - (reach - low)))
    kernel = _regrouped(rev(rhs, spatial), o, i, groups)
    ct_window = ConvWindow(window.lhs_dilation, tuple(padding), window.strides, window.rhs_dilation)
    ct_numbers = ConvDimensionNumbers(numbers.out_spec, (i, o, *spatial), numbers.lhs_spec)
    out = _bind_conv(ct, kernel, ct_window, ct_numbers, groups, 1, precision, None)
    return _regrouped(out, numbers.lhs_spec[1], numbers.lhs_spec[0], batch_group_count)


# ct_rhs[o, c, k] = sum over n, v of ct[n, o, v] lhs[n, c, v stride + k rhs_dilation - low]
def _rhs_cotangent(ct, rhs, lhs, *, window, dimension_numbers, feature_group_count, batch_group_count, precision):
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    padding = []
    for k, w, v, stride, (low, _), ld, rd in zip(rhs_spec[2:], lhs_spec[2:], out_spec[2:], *window, strict=True):
        needed = dilated_length(rhs.shape[k], rd) + dilated_length(aval_of(ct).shape[v], stride) - 1
        padding.append((low, needed - dilated_length(aval_of(lhs).shape[w], ld) - low))
    ct_window = ConvWindow(window.rhs_dilation, tuple(padding), window.lhs_dilation, window.strides)
    ct_numbers = ConvDimensionNumbers(*[(b, a, *spatial) for a, b, *spatial in (lhs_spec, out_spec, rhs_spec)])
    return _bind_conv(lhs, ct, ct_window, ct_numbers, batch_group_count, feature_group_count, precision, None)


# ---- groups and mapped axes --------------------------------------------------------------------------------


def _regrouped(x, source: int, target: int, groups: int):
    """`x` with the `groups` (major) of axis `source` made those of axis `target`."""
    if groups == 1:
        return x
    shape = list(aval_of(x).shape)
    shape[source] //= groups
    x = reshape(x, (*shape[:source], groups, *shape[source:]))
    return _folded(x, source, target, 1)


def _folded(x, dim: int, into: int, groups: int):
    """`x` with its axis `dim` made a part of axis `into` (counted without it), behind the `groups` of that."""
    x = moveaxis(x, dim, into)
    shape = aval_of(x).shape
    size, n = shape[into], shape[into + 1]
    if groups > 1:
        x = reshape(x, (*shape[: into + 1], groups, n // groups, *shape[into + 2 :]))
        x = moveaxis(x, into, into + 1)
    return reshape(x, (*shape[:into], size * n, *shape[into + 2 :]))


def _unfolded(x, axis: int, size: int, groups: int):
    """`x` with the part of length `size`, behind the `groups` of `axis`, as an axis of its own in front of it."""
    shape = aval_of(x).shape
    rest = shape[axis] // (size * groups)
    if groups > 1:
        x = moveaxis(reshape(x, (*shape[:axis], groups, size, rest, *shape[axis + 1 :])), axis + 1, axis)
    return reshape(x, (*shape[:axis], size, groups * rest, *shape[axis + 1 :]))


conv_general_dilated_p = ConvGeneralDilated("conv_general_dilated")


def _bind_conv(lhs, rhs, window, numbers, feature_groups, batch_groups, precision, preferred):
    params = {
        "window": window,
        "dimension_numbers": numbers,
        "feature_group_count": feature_groups,
        "batch_group_count": batch_groups,
        "precision": precision,
        "preferred_element_type": preferred,
    }
    return bind(conv_general_dilated_p, (lhs, rhs), params)


def conv_general_dilated(
    lhs,
    rhs,
    window: ConvWindow,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision=None,
    preferred_element_type=None,
):
    """The convolution of `lhs` with `rhs` (one dtype), axes as `dimension_numbers` says.

    `precision` is as `contraction.canonical_precision` gives it, `preferred_element_type` a dtype or None. Raises TypeError for
    dtypes that do not fit, ValueError for shapes, groups or windows that do not.
    """
    groups = operator.index(feature_group_count), operator.index(batch_group_count)
    return _bind_conv(lhs, rhs, window, dimension_numbers, *groups, precision, preferred_element_type)
