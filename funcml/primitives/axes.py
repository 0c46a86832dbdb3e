"""Adding, summing, regrouping and permuting axes: the four operations in which every other rule speaks.

    broadcast_in_dim : [dims of x] -> shape       its transpose is reduce_sum
    reduce_sum       : shape -> shape less axes   its transpose is broadcast_in_dim
    reshape          : row-major regrouping       its transpose is reshape
    transpose        : permutation of axes        its transpose is the inverse permutation
"""

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from funcml import dtypes
from funcml.core.avals import ShapedArray, shaped
from funcml.core.ir import Primitive
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind

__all__ = [
    "AxisPrimitive",
    "BitReduction",
    "Reduction",
    "broadcast_in_dim",
    "canonical_axes",
    "canonical_axis",
    "expand_dims",
    "moveaxis",
    "reduce_or",
    "reduce_sum",
    "reshape",
    "squeeze",
    "transpose",
]


def canonical_axis(axis, aval: ShapedArray, who: str) -> int:
    """`axis` of an array of type `aval` as a non-negative int; AxisError (a ValueError) if there is no such axis."""
    index = operator.index(axis)
    if not -aval.ndim <= index < aval.ndim:
        allowed = f"an axis from {-aval.ndim} to {aval.ndim - 1}" if aval.ndim else "no axis (it is a scalar)"
        raise np.exceptions.AxisError(f"{who} of {aval}: expected {allowed}, got {index}")
    return index + aval.ndim if index < 0 else index


def canonical_axes(axes, aval: ShapedArray, who: str) -> tuple[int, ...]:
    """`axes` (ints) of an array of type `aval` as distinct non-negative ints, in the order given."""
    found = tuple([canonical_axis(a, aval, who) for a in axes])
    if len(set(found)) != len(found):
        raise ValueError(f"{who} of {aval}: expected distinct axes, got {tuple(axes)}")
    return found


class AxisPrimitive(Primitive):
    """An operation linear in its one operand: T(f)(x, dx) = (f(x), f(dx))."""

    def jvp_rule(self, primals, tangents, **params):
        out = bind(self, primals, params)
        (t,) = tangents
        if type(t) is Zero:
            return out, Zero(aval_of(out).update(dtype=t.aval.dtype))
        return out, bind(self, (t,), params)


class BroadcastInDim(AxisPrimitive):
    """x [dims of x] -> out [shape], where axis i of x is axis `broadcast_dimensions[i]` of the result."""

    def type_rule(self, x, *, shape, broadcast_dimensions):
        dims = broadcast_dimensions
        if len(dims) != x.ndim or list(dims) != sorted(set(dims)) or any(not 0 <= d < len(shape) for d in dims):
            raise TypeError(
                f"broadcast_in_dim of {x}: broadcast_dimensions must be {x.ndim} strictly increasing axes of the result "
                f"shape {shape}, got {dims}"
            )
        if any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
            raise TypeError(
                f"broadcast_in_dim of {x} at axes {dims} to shape {shape}: operand dimension sizes must either be 1, or be "
                "equal to their corresponding dimensions in the target broadcast shape"
            )
        return shaped(shape, x.dtype, x.weak_type)

    # out_j = x_i  =>  ct_i = sum of ct over the axes that were made or stretched
    def transpose_rule(self, ct, x, *, shape, broadcast_dimensions):
        return [_sum_to(reduce_sum, ct, x.aval.shape, shape, broadcast_dimensions)]

    def transpose_mask(self, mask, index, operands, *, shape, broadcast_dimensions):
        return _sum_to(reduce_or, mask, operands[0].aval.shape, shape, broadcast_dimensions)

    def batch_rule(self, axis, operands, dims, *, shape, broadcast_dimensions):
        x = moveaxis(operands[0], dims[0], 0)
        return broadcast_in_dim(x, (axis.size, *shape), (0, *[d + 1 for d in broadcast_dimensions])), 0


def _sum_to(reduce, ct, x_shape, shape, dims):
    return reshape(reduce(ct, _added(x_shape, shape, dims)), x_shape)


@functools.lru_cache(maxsize=4096)
def _added(x_shape, shape, dims) -> tuple[int, ...]:
    """The axes of `shape` that a broadcast makes or stretches."""
    stretched = [d for n, d in zip(x_shape, dims, strict=True) if n != shape[d]]
    return tuple([d for d in range(len(shape)) if d not in dims or d in stretched])


class Reduction(AxisPrimitive):
    """A reduction over `axes`; the result has the other axes in order."""

    def type_rule(self, x, *, axes):
        if any(not 0 <= a < x.ndim for a in axes) or len(set(axes)) != len(axes):
            raise TypeError(f"{self.name} of {x}: axes must be distinct and in range({x.ndim}), got {axes}")
        return shaped(tuple([n for i, n in enumerate(x.shape) if i not in axes]), x.dtype, x.weak_type)

    def batch_rule(self, axis, operands, dims, *, axes):
        d = dims[0]
        shifted = tuple([a + (a >= d) for a in axes])
        return bind(self, operands, {"axes": shifted}), d - sum(a < d for a in shifted)


class ReduceSum(Reduction):
    """out = sum of x over `axes`."""

    def type_rule(self, x, *, axes):
        if not dtypes.is_numeric(x.dtype):
            raise TypeError(f"reduce_sum expects numbers, got {x}; convert it first (for bool: to an integer type)")
        return super().type_rule(x, axes=axes)

    # ct_i = ct, for each element that was summed
    def transpose_rule(self, ct, x, *, axes):
        return [_spread(ct, x.aval.shape, axes)]

    def transpose_mask(self, mask, index, operands, *, axes):
        return _spread(mask, operands[0].aval.shape, axes)


class BitReduction(Reduction):
    """out = bitwise (for bool: logical) or, and, xor of x over `axes`; it has no derivative."""

    def type_rule(self, x, *, axes):
        if not (dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
            raise TypeError(f"{self.name} expects integers or bool, got {x}; compare it with 0 first")
        return super().type_rule(x, axes=axes)

    def jvp_rule(self, primals, tangents, *, axes):
        out = bind(self, primals, {"axes": axes})
        return out, Zero(aval_of(out).update(dtype=dtypes.float0))


def _spread(x, shape, axes):
    return broadcast_in_dim(x, shape, _others(axes, len(shape)))


@functools.lru_cache(maxsize=4096)
def _others(axes, ndim: int) -> tuple[int, ...]:
    return tuple([i for i in range(ndim) if i not in axes])


class Reshape(AxisPrimitive):
    """The same elements in row-major order under another shape."""

    def type_rule(self, x, *, shape):
        if math.prod(shape) != x.size or any(n < 0 for n in shape):
            raise TypeError(f"reshape: {x} has {x.size} elements, shape {shape} has {math.prod(shape)}")
        return shaped(shape, x.dtype, x.weak_type)

    def transpose_rule(self, ct, x, *, shape):
        return [reshape(ct, x.aval.shape)]

    def transpose_mask(self, mask, index, operands, *, shape):
        return reshape(mask, operands[0].aval.shape)

    def batch_rule(self, axis, operands, dims, *, shape):
        return reshape(moveaxis(operands[0], dims[0], 0), (axis.size, *shape)), 0


class Transpose(AxisPrimitive):
    """out axis i is x axis `permutation[i]`."""

    def type_rule(self, x, *, permutation):
        if sorted(permutation) != list(range(x.ndim)):
            raise TypeError(f"transpose of {x}: permutation must order range({x.ndim}), got {permutation}")
        return shaped(tuple([x.shape[p] for p in permutation]), x.dtype, x.weak_type)

    def transpose_rule(self, ct, x, *, permutation):
        return [transpose(ct, _inverse(permutation))]

    def transpose_mask(self, mask, index, operands, *, permutation):
        return transpose(mask, _inverse(permutation))

    def batch_rule(self, axis, operands, dims, *, permutation):
        d = dims[0]
        return transpose(operands[0], (d, *[p + (p >= d) for p in permutation])), 0


@functools.lru_cache(maxsize=4096)
def _inverse(permutation):
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


broadcast_in_dim_p = BroadcastInDim("broadcast_in_dim")
reduce_sum_p = ReduceSum("reduce_sum")
reduce_or_p = BitReduction("reduce_or")
reshape_p = Reshape("reshape")
transpose_p = Transpose("transpose")


def broadcast_in_dim(x, shape, broadcast_dimensions=()):
    """`x` with new axes, and axes of length 1 stretched; nothing is recorded where nothing changes."""
    if aval_of(x).shape == tuple(shape) and not _is_scalar(x):
        return x
    return bind(broadcast_in_dim_p, (x,), {"shape": tuple(shape), "broadcast_dimensions": tuple(broadcast_dimensions)})


def _is_scalar(x) -> bool:
    return isinstance(x, bool | int | float | complex)


def reduce_sum(x, axes):
    """The sum of `x` over `axes` (a tuple of non-negative ints)."""
    return bind(reduce_sum_p, (x,), {"axes": tuple(axes)}) if axes else x


def reduce_or(x, axes):
    """The bitwise or of `x` over `axes` (a tuple of non-negative ints)."""
    return bind(reduce_or_p, (x,), {"axes": tuple(axes)}) if axes else x


def reshape(x, shape):
    """`x` under another shape, row-major."""
    shape = tuple(shape)
    return x if aval_of(x).shape == shape else bind(reshape_p, (x,), {"shape": shape})


def transpose(x, permutation):
    """`x` with its axes permuted: axis i of the result is axis `permutation[i]` of `x`."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    return bind(transpose_p, (x,), {"permutation": permutation})


def moveaxis(x, source: int, destination: int):
    """`x` with one axis moved, the others kept in order."""
    if source == destination:
        return x
    order = [i for i in range(aval_of(x).ndim) if i != source]
    order.insert(destination, source)
    return transpose(x, order)


def expand_dims(x, axes):
    """`x` with axes of length 1 that stand at `axes` (a tuple of non-negative ints) of the result."""
    shape = list(aval_of(x).shape)
    for a in sorted(axes):
        shape.insert(a, 1)
    return reshape(x, shape)


def squeeze(x, axes):
    """`x` without its `axes` (non-negative ints), which must have length 1."""
    aval = aval_of(x)
    if any(aval.shape[a] != 1 for a in axes):
        raise ValueError(f"squeeze of {aval}: cannot select an axis to squeeze out unless it has length 1, got {tuple(axes)}")
    return reshape(x, [n for i, n in enumerate(aval.shape) if i not in axes])
