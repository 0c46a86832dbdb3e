"""Products of which parts are treated apart: groups of rows of lengths known at run time, blocks with a scale of their own.

    ragged_dot : [m, k] x [g, k, n] x sizes [g] -> [m, n]               the rows of group i times matrix i
    scaled_dot : [m, k] x [k, n] x scales [m, k/b] x [k/b, n] -> [m, n]   each block of b summands times its scales
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from funcml import dtypes
from funcml.core.values import Array
from funcml.lax.operands import array
from funcml.lowering.execute import fused
from funcml.primitives import axes as ax
from funcml.primitives import contraction, shaping
from funcml.primitives import elementwise as ew
from funcml.primitives import reductions as red
from funcml.primitives.tangents import zeros

__all__ = ["DotDimensionNumbers", "RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot"]

#: ((lhs contracted, rhs contracted), (lhs batch, rhs batch)), each a sequence of axes
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class RaggedDotDimensionNumbers(NamedTuple):
    """The axes of a ragged product: ((lhs contracted, rhs contracted), (lhs batch, rhs batch)), the one of lhs that is cut into
    groups, and the one of rhs (or none) that has an element for each group."""

    dot_dimension_numbers: tuple
    lhs_ragged_dimensions: tuple[int, ...]
    rhs_group_dimensions: tuple[int, ...]


def ragged_dot(
    lhs, rhs, group_sizes, precision=None, preferred_element_type=None, group_offset=None, out_sharding=None
) -> Array:
    """[m, k] x [g, k, n] -> [m, n]: the first `group_sizes[0]` rows of lhs times rhs[0], the next ones times rhs[1], and so on.

    Rows behind the last group give 0. Raises TypeError or ValueError for shapes and sizes that do not fit.

    >>> from funcml import numpy as jnp
    >>> ragged_dot(jnp.ones((3, 2)), jnp.array([[[1.0], [1.0]], [[5.0], [5.0]]]), jnp.array([1, 2])).ravel()
    Array([ 2., 10., 10.], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision=None, preferred_element_type=None, group_offset=None,
    out_sharding=None,
) -> Array:  # fmt: skip
    """`dot_general` of which an axis of lhs, the ragged one, is cut into g groups of `group_sizes`.

    A free ragged axis: each group has a matrix of its own along the group axis of rhs. A contracted one: each group gives a sum
    of its own, along a first axis of length g. A batch axis: the groups are those of the product itself. `group_sizes` is [g],
    or has in front the batch axes and those of the ragged kind that stand before the ragged axis.
    """
    name = "lax.ragged_dot_general"
    if group_offset is not None or out_sharding is not None:
        raise NotImplementedError(f"{name}: group_offset and out_sharding must be None")
    lhs, rhs, sizes = (array("ragged_dot_general", x) for x in (lhs, rhs, group_sizes))
    try:
        (lc, rc), (lb, rb) = ragged_dot_dimension_numbers.dot_dimension_numbers
        numbers = contraction.DotDimensions((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
        ragged = tuple(ragged_dot_dimension_numbers.lhs_ragged_dimensions)
        group = tuple(ragged_dot_dimension_numbers.rhs_group_dimensions)
    except (AttributeError, TypeError, ValueError):
        raise TypeError(f"{name} expects RaggedDotDimensionNumbers, got {ragged_dot_dimension_numbers!r}") from None
    outer = _check(name, lhs, rhs, sizes, numbers, ragged, group)
    levels = contraction.canonical_precision(precision)
    preferred = None if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    return _ragged_dot(lhs, rhs, sizes, numbers, ragged[0], group, outer, levels, preferred)


def _check(name, lhs, rhs, sizes, numbers, ragged, group) -> tuple[int, ...]:
    """The axes of lhs that `group_sizes` may have before its last one."""
    said = f"{name} of {lhs.aval} and {rhs.aval}"
    if not dtypes.is_integer(sizes.dtype):
        raise TypeError(f"{said}: group_sizes must be integers, got {sizes.aval}")
    for fault in _axis_faults(lhs, rhs, numbers, ragged, group):
        raise TypeError(f"{said}: ragged_dot_general {fault}, got lhs_ragged_dimensions={ragged}, rhs_group_dimensions={group}")
    (axis,) = ragged
    free = numbers.free(0, lhs.ndim)
    kind = free if axis in free else numbers.contract[0] if axis in numbers.contract[0] else numbers.batch[0]
    outer = (*(() if kind is numbers.batch[0] else numbers.batch[0]), *kind[: kind.index(axis)])
    count = rhs.shape[group[0]] if group else sizes.shape[-1] if sizes.ndim else 0
    whole = (*[lhs.shape[i] for i in outer], count)
    if sizes.shape not in ((count,), whole):
        short = "" if whole == (count,) else f" (or {(count,)})"
        raise TypeError(f"{said}: expected group_sizes to have shape {whole}, got {sizes.shape}{short}")
    return outer


def _axis_faults(lhs, rhs, numbers, ragged, group) -> Iterator[str]:
    """What is wrong with the ragged axis and that of the groups; the first text counts."""
    if len(ragged) != 1:
        yield "expects exactly one lhs ragged dimension"
    if not 0 <= ragged[0] < lhs.ndim:
        yield "requires lhs ragged dimension numbers to be nonnegative and less than the number of axes of the lhs"
    if ragged[0] not in numbers.free(0, lhs.ndim):
        if group:
            yield "requires zero group dimensions in the rhs when lhs ragged dimension is contracting or batch"
        return
    if len(group) != 1:
        yield "requires exactly one rhs group dimension when lhs ragged dimension is noncontracting"
    if not 0 <= group[0] < rhs.ndim:
        yield "requires rhs group dimension numbers to be nonnegative and less than the number of axes of the rhs"
    if group[0] in numbers.contract[1] or group[0] in numbers.batch[1]:
        yield "requires rhs group dimension numbers to be distinct from contracting and batch dimensions"


@fused(static=("numbers", "axis", "group", "outer", "precision", "preferred"))
def _ragged_dot(lhs, rhs, sizes, numbers, axis, group, outer, precision, preferred):
    (lc, rc), (lb, rb) = numbers
    if axis in lb:
        return contraction.dot_general(lhs, rhs, numbers, precision, preferred)
    spread = _by_group(lhs, sizes, axis, outer)
    lc, lb = (tuple([i + 1 for i in axes]) for axes in (lc, lb))
    if axis + 1 in lc:
        groups = (sizes.shape[-1], *rhs.shape)
        rhs = ax.broadcast_in_dim(rhs, groups, tuple(range(1, len(groups))))
        rc, rb = (tuple([i + 1 for i in axes]) for axes in (rc, rb))
        both = contraction.DotDimensions((lc, rc), ((0, *lb), (0, *rb)))
    else:
        both = contraction.DotDimensions(((0, *lc), (*group, *rc)), (lb, rb))
    return contraction.dot_general(spread, rhs, both, precision, preferred)


def _by_group(x, sizes, axis, outer):
    """[g, *x.shape]: for each group, x with 0 outside it."""
    shape = (sizes.shape[-1], *x.shape)
    places = tuple([i + 1 for i in outer]) if sizes.ndim > 1 else ()
    order = sorted(range(len(places)), key=places.__getitem__)
    ends = red.cumsum(sizes, sizes.ndim - 1)
    starts = ew.sub(ends, sizes)
    bounds = []
    for bound in (starts, ends):
        bound = ax.transpose(bound, (bound.ndim - 1, *order))
        bounds.append(ax.broadcast_in_dim(bound, shape, (0, *sorted(places))))
    index = shaping.iota(sizes.dtype, shape, axis + 1)
    inside = ew.and_(ew.le(bounds[0], index), ew.lt(index, bounds[1]))
    whole = ax.broadcast_in_dim(x, shape, tuple(range(1, len(shape))))
    return ew.select(inside, whole, zeros(whole.aval))


def scaled_dot(
    lhs, rhs, *, lhs_scale=None, rhs_scale=None, dimension_numbers=None, preferred_element_type=None
) -> Array:
    """The product of `lhs` times its scales and `rhs` times its scales, in bfloat16 or `preferred_element_type`.

    Scales have the axes of their operand; a contracted one may be shorter: each scale then is that of a block of neighbours. By
    default [m, k] x [k, n], or [b, m, k] x [b, k, n]. Raises TypeError for shapes that do not fit.

    >>> from funcml import numpy as jnp
    >>> scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=jnp.array([[1.0, 3.0]]), preferred_element_type="float32")
    Array([[8.]], dtype=float32)
    """
    lhs, rhs = array("scaled_dot", lhs), array("scaled_dot", rhs)
    numbers = dimension_numbers
    if numbers is None:
        if lhs.ndim != rhs.ndim or lhs.ndim not in (2, 3):
            raise TypeError(f"lax.scaled_dot expects two matrices, or two batches of them, got {lhs.aval} and {rhs.aval}")
        batch = tuple(range(lhs.ndim - 2))
        numbers = (((lhs.ndim - 1,), (lhs.ndim - 2,)), (batch, batch))
    dtype = dtypes.bfloat16 if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    scales = [None if s is None else array("scaled_dot", s) for s in (lhs_scale, rhs_scale)]
    for x, scale in zip((lhs, rhs), scales, strict=True):
        _check_scale(x, scale)
    return _scaled_dot(lhs, rhs, *scales, contraction.canonical_dimensions(lhs.aval, rhs.aval, numbers), dtype)


def _check_scale(x, scale):
    if scale is None:
        return
    if scale.ndim != x.ndim or any(s < 1 or n % s for n, s in zip(x.shape, scale.shape, strict=True)):
        raise TypeError(f"lax.scaled_dot: the lengths of the operand {x.aval} must be multiples of its scale's, got {scale.aval}")


@fused(static=("numbers", "dtype"))
def _scaled_dot(lhs, rhs, lhs_scale, rhs_scale, numbers, dtype):
    xs = [_scaled(x, scale) for x, scale in ((lhs, lhs_scale), (rhs, rhs_scale))]
    return ew.convert(contraction.dot_general(*xs, numbers, None, dtypes.float32), dtype)


def _scaled(x, scale):
    """`x` in f32, each block times its scale."""
    wide = ew.convert(x, dtypes.float32)
    if scale is None:
        return wide
    blocks = [length for n, s in zip(x.shape, scale.shape, strict=True) for length in (s, n // s)]
    factors = ax.broadcast_in_dim(ew.convert(scale, dtypes.float32), blocks, tuple(range(0, len(blocks), 2)))
    return ax.reshape(ew.mul(ax.reshape(wide, blocks), factors), x.shape)
