"""Reversing, padding, slicing, joining, splitting and counting: elements move, or are made, along axes.

rev         : [.., n, ..] -> [.., n, ..]                  its own transpose
pad         : ([.., n, ..], []) -> [.., lo + n + (n - 1) interior + hi, ..]     its transpose is slice_
slice_      : [.., n, ..] -> [.., ceil((limit - start) / stride), ..]           its transpose is pad
concatenate : [.., n_i, ..]... -> [.., sum n_i, ..]       its transpose is slice_ for each operand
split       : [.., sum n_i, ..] -> [.., n_i, ..]...       its transpose is concatenate
iota        : () -> shape                                 the index along one axis
"""

from __future__ import annotations

import operator

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.linear import Zero, is_undefined, is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import AxisPrimitive, broadcast_in_dim, canonical_axes, canonical_axis, reduce_sum
from funcml.primitives.batching import spread_at_front
from funcml.primitives.elementwise import select
from funcml.primitives.rows import PYTHON_SCALARS
from funcml.primitives.tangents import instantiate, scalar_of, tangent_aval, zero_tangent, zeros

__all__ = ["concatenate", "iota", "pad", "rev", "slice_", "slice_in_dim", "split"]


# ---- rev ---------------------------------------------------------------------------------------------------


class Rev(AxisPrimitive):
    """out_i = x_{n - 1 - i} along each of `dimensions`."""

    def type_rule(self, x, *, dimensions):
        if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < x.ndim for d in dimensions):
            raise TypeError(
                f"rev of {x}: dimensions must be distinct and in range({x.ndim}), got {dimensions}"
            )
        return x

    def transpose_rule(self, ct, x, *, dimensions):
        return [rev(ct, dimensions)]

    def transpose_mask(self, mask, index, operands, *, dimensions):
        return rev(mask, dimensions)

    def batch_rule(self, axis, operands, dims, *, dimensions):
        (d,) = dims
        return rev(operands[0], [r + (r >= d) for r in dimensions]), d


rev_p = Rev("rev")


def rev(x, dimensions):
    """`x` with the order of its elements reversed along `dimensions` (ints, negative from the end)."""
    dimensions = canonical_axes(dimensions, aval_of(x), "rev")
    return bind(rev_p, (x,), {"dimensions": dimensions}) if dimensions else x


# ---- pad ---------------------------------------------------------------------------------------------------


class Pad(Primitive):
    """x spread out by `interior` fill elements between neighbours, with `low` and `high` more at the ends.

    `padding_config` has (low, high, interior) for each axis; negative `low` and `high` cut elements off.
    """

    def type_rule(self, x, fill, *, padding_config):
        if fill.shape != () or fill.dtype != x.dtype:
            raise TypeError(f"pad expects a scalar fill of the dtype of {x}, got {fill}; convert it first")
        if len(padding_config) != x.ndim or any(interior < 0 for _, _, interior in padding_config):
            raise TypeError(
                f"pad of {x}: padding_config must have {x.ndim} triples (low, high, interior >= 0), got {padding_config}"
            )
        shape = tuple([_padded_length(n, *c) for n, c in zip(x.shape, padding_config, strict=True)])
        if any(n < 0 for n in shape):
            raise TypeError(
                f"pad of {x} by {padding_config} would have the shape {shape}: it cuts off more than there is"
            )
        return shaped(shape, x.dtype, x.weak_type and fill.weak_type)

    # out' = pad(x', fill')
    def jvp_rule(self, primals, tangents, *, padding_config):
        out = pad(*primals, padding_config)
        if all(map(is_zero, tangents)):
            return out, zero_tangent(out)
        return out, pad(*map(instantiate, tangents), padding_config)

    # ct_x = the elements of ct that came from x;  ct_fill = sum of the others
    def transpose_rule(self, ct, x, fill, *, padding_config):
        ct_x = _unpad(ct, padding_config, scalar_of(aval_of(ct), 0)) if is_undefined(x) else None
        if not is_undefined(fill):
            return [ct_x, None]
        aval = aval_of(ct)
        filled = _is_fill(aval_of(x).shape, padding_config)
        return [ct_x, reduce_sum(select(filled, ct, zeros(aval)), tuple(range(aval.ndim)))]

    def transpose_mask(self, mask, index, operands, *, padding_config):
        return _unpad(mask, padding_config, np.False_) if index == 0 else None

    def batch_rule(self, axis, operands, dims, *, padding_config):
        (x, fill), (d, fill_dim) = operands, dims
        if fill_dim is None:
            return pad(x, fill, (*padding_config[:d], (0, 0, 0), *padding_config[d:])), d
        unbatched_shape = [n for i, n in enumerate(aval_of(x).shape) if i != d]
        padded = pad(spread_at_front(axis, x, d), scalar_of(aval_of(x), 0), ((0, 0, 0), *padding_config))
        shape = aval_of(padded).shape
        filled = broadcast_in_dim(
            _is_fill(unbatched_shape, padding_config), shape, tuple(range(1, len(shape)))
        )
        return select(filled, broadcast_in_dim(fill, shape, (0,)), padded), 0


def _padded_length(n, low, high, interior):
    return low + n + max(n - 1, 0) * interior + high


def _unpad(x, padding_config, fill):
    """The elements of `x` that `pad` moved there; `fill` for those that it cut off."""
    whole = pad(x, fill, [(-low, -high, 0) for low, high, _ in padding_config])
    strides = [interior + 1 for _, _, interior in padding_config]
    return slice_(whole, (0,) * len(strides), aval_of(whole).shape, strides)


def _is_fill(shape, padding_config):
    """Where the result of padding an array of this shape holds the fill."""
    return pad(broadcast_in_dim(np.False_, shape), np.True_, padding_config)


pad_p = Pad("pad")


def pad(x, fill, padding_config):
    """`x` with `fill` around and between its elements: (low, high, interior) for each axis, low and high may be negative."""
    config = tuple([tuple(map(operator.index, c)) for c in padding_config])
    if type(fill) in PYTHON_SCALARS:
        fill = scalar_of(aval_of(x), fill)
    if config and not any(map(any, config)):
        return x
    return bind(pad_p, (x, fill), {"padding_config": config})


# ---- slice -------------------------------------------------------------------------------------------------


class Slice(AxisPrimitive):
    """out_i = x_{start + i stride}, start <= start + i stride < limit, along each axis."""

    def type_rule(self, x, *, start_indices, limit_indices, strides):
        if not len(start_indices) == len(limit_indices) == len(strides) == x.ndim:
            raise TypeError(
                f"slice_ of {x} expects {x.ndim} starts, limits and strides, got {start_indices}, {limit_indices}, {strides}"
            )
        for i, (start, limit, stride, n) in enumerate(
            zip(start_indices, limit_indices, strides, x.shape, strict=True)
        ):
            if not 0 <= start <= limit <= n or stride < 1:
                raise TypeError(
                    f"slice_ of {x}: axis {i} expects 0 <= start <= limit <= {n} and stride >= 1, "
                    f"got {start}:{limit}:{stride}"
                )
        bounds = zip(start_indices, limit_indices, strides, strict=True)
        return shaped(
            tuple([-(-(limit - start) // stride) for start, limit, stride in bounds]), x.dtype, x.weak_type
        )

    # ct_x = ct, spread out by the strides, zero elsewhere
    def transpose_rule(self, ct, x, **params):
        return [_unslice(ct, x.aval.shape, scalar_of(aval_of(ct), 0), **params)]

    def transpose_mask(self, mask, index, operands, **params):
        return _unslice(mask, operands[0].aval.shape, np.False_, **params)

    def batch_rule(self, axis, operands, dims, *, start_indices, limit_indices, strides):
        (d,) = dims

        def with_axis(values, value):
            return (*values[:d], value, *values[d:])

        return slice_(
            operands[0],
            with_axis(start_indices, 0),
            with_axis(limit_indices, axis.size),
            with_axis(strides, 1),
        ), d


def _unslice(x, shape, fill, *, start_indices, limit_indices, strides):
    config = []
    for n, length, start, stride in zip(shape, aval_of(x).shape, start_indices, strides, strict=True):
        spread = _padded_length(length, 0, 0, stride - 1)
        config.append((start, n - start - spread, stride - 1))
    return pad(x, fill, config)


slice_p = Slice("slice")


def slice_(x, start_indices, limit_indices, strides=None):
    """`x[start:limit:stride]` along every axis; bounds are static, non-negative and within `x`, strides positive."""
    start, limit = (tuple(map(operator.index, v)) for v in (start_indices, limit_indices))
    strides = (1,) * len(start) if strides is None else tuple(map(operator.index, strides))
    if limit == aval_of(x).shape and not any(start) and all(s == 1 for s in strides) and limit:
        return x
    return bind(slice_p, (x,), {"start_indices": start, "limit_indices": limit, "strides": strides})


def slice_in_dim(x, start: int, limit: int, stride: int = 1, axis: int = 0):
    """`x[start:limit:stride]` along `axis`, all of the other axes."""
    shape = aval_of(x).shape
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, limit, stride
    return slice_(x, starts, limits, strides)


# ---- concatenate and split ---------------------------------------------------------------------------------


class Concatenate(Primitive):
    """The operands one after another along `dimension`."""

    def type_rule(self, *avals, dimension):
        if not avals:
            raise TypeError("concatenate expects at least one operand, got none")
        first = avals[0]
        if not 0 <= dimension < first.ndim:
            raise TypeError(
                f"concatenate of {_list(avals)}: dimension must be in range({first.ndim}), got {dimension}"
            )
        if any(a.dtype != first.dtype for a in avals):
            raise TypeError(
                f"concatenate expects operands of one dtype, got {_list(avals)}; convert them first"
            )
        if any(
            _without(a.shape, dimension) != _without(first.shape, dimension) or a.ndim != first.ndim
            for a in avals
        ):
            raise TypeError(
                f"concatenate expects operands that differ along axis {dimension} only, got {_list(avals)}"
            )
        length = sum(a.shape[dimension] for a in avals)
        shape = (*first.shape[:dimension], length, *first.shape[dimension + 1 :])
        return shaped(shape, first.dtype, all(a.weak_type for a in avals))

    # out' = (x_0', x_1', ..)
    def jvp_rule(self, primals, tangents, *, dimension):
        out = concatenate(primals, dimension)
        if all(map(is_zero, tangents)):
            return out, zero_tangent(out)
        return out, concatenate(list(map(instantiate, tangents)), dimension)

    # ct_i = the part of ct where operand i stands
    def transpose_rule(self, ct, *operands, dimension):
        bounds = _bounds(operands, dimension)
        return [
            slice_in_dim(ct, start, limit, axis=dimension) if is_undefined(x) else None
            for x, (start, limit) in zip(operands, bounds, strict=True)
        ]

    def transpose_mask(self, mask, index, operands, *, dimension):
        return slice_in_dim(mask, *_bounds(operands, dimension)[index], axis=dimension)

    def batch_rule(self, axis, operands, dims, *, dimension):
        d = dims[0]
        if d is None or any(other != d for other in dims):
            operands, d = [spread_at_front(axis, x, dim) for x, dim in zip(operands, dims, strict=True)], 0
        return concatenate(operands, dimension + (dimension >= d)), d


def _without(shape, axis):
    return (*shape[:axis], *shape[axis + 1 :])


def _bounds(operands, dimension):
    """(start, limit) of each operand along the joined axis."""
    limits = np.cumsum([aval_of(x).shape[dimension] for x in operands]).tolist()
    return list(zip([0, *limits[:-1]], limits, strict=True))


def _list(avals) -> str:
    return ", ".join(map(str, avals))


concatenate_p = Concatenate("concatenate")


def concatenate(operands, dimension: int):
    """The arrays `operands`, of one dtype and equal but for `dimension`, joined along it."""
    operands = list(operands)
    if operands:
        dimension = canonical_axis(dimension, aval_of(operands[0]), "concatenate")
    return operands[0] if len(operands) == 1 else bind(concatenate_p, operands, {"dimension": dimension})


class Split(Primitive):
    """x cut along `axis` into pieces of the given `sizes`."""

    multiple_results = True
    takes_masks = True

    def type_rule(self, x, *, sizes, axis):
        if not 0 <= axis < x.ndim:
            raise TypeError(f"split of {x}: axis must be in range({x.ndim}), got {axis}")
        if sum(sizes) != x.shape[axis] or any(n < 0 for n in sizes):
            raise TypeError(
                f"split of {x}: sizes along axis {axis} must be >= 0 and sum to {x.shape[axis]}, got {sizes}"
            )
        return tuple(
            [shaped((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type) for n in sizes]
        )

    # out_i' = x' where piece i stands
    def jvp_rule(self, primals, tangents, **params):
        outs = bind(self, primals, params)
        if is_zero(tangents[0]):
            return outs, [zero_tangent(out) for out in outs]
        return outs, bind(self, tangents, params)

    # ct = (ct_0, ct_1, ..), and so its mask
    def transpose_rule(self, cts, x, *, masks, sizes, axis):
        if all(map(is_zero, cts)):
            return [Zero(tangent_aval(x.aval))], [None]
        joined = concatenate(list(map(instantiate, cts)), axis)
        if all(m is None for m in masks):
            return [joined], [None]
        shapes = [(*x.aval.shape[:axis], n, *x.aval.shape[axis + 1 :]) for n in sizes]
        full = [
            broadcast_in_dim(np.bool_(not is_zero(ct)), shape) if m is None else m
            for ct, m, shape in zip(cts, masks, shapes, strict=True)
        ]
        return [joined], [concatenate(full, axis)]

    def batch_rule(self, mapped, operands, dims, *, sizes, axis):
        (d,) = dims
        outs = bind(self, operands, {"sizes": sizes, "axis": axis + (axis >= d)})
        return outs, [d] * len(outs)


split_p = Split("split")


def split(x, sizes, axis: int = 0):
    """The pieces of `x` along `axis`, of lengths `sizes` that sum to its length, as a list."""
    sizes = tuple(map(operator.index, sizes))
    axis = canonical_axis(axis, aval_of(x), "split")
    return bind(split_p, (x,), {"sizes": sizes, "axis": axis})


# ---- iota --------------------------------------------------------------------------------------------------


class Iota(Primitive):
    """out_{.. i ..} = i along `dimension`; it has no operands, so no derivative."""

    def type_rule(self, *, dtype, shape, dimension):
        if not dtypes.is_numeric(dtype):
            raise TypeError(f"iota counts in numbers, got the dtype {dtype}")
        if not 0 <= dimension < len(shape):
            raise TypeError(
                f"iota: dimension must be in range({len(shape)}) for shape {shape}, got {dimension}"
            )
        return shaped(shape, dtype)

    def jvp_rule(self, primals, tangents, **params):
        out = bind(self, (), params)
        return out, zero_tangent(out)

    def batch_rule(self, axis, operands, dims, **params):
        return bind(self, (), params), None


iota_p = Iota("iota")


def iota(dtype, shape, dimension: int = 0):
    """The array of this dtype and shape whose elements are their index along `dimension`."""
    shape = tuple(map(operator.index, shape))
    aval = shaped(shape, dtypes.canonical(dtype))
    dimension = canonical_axis(dimension, aval, "iota")
    return bind(iota_p, (), {"dtype": aval.dtype, "shape": shape, "dimension": dimension})
