"""Reductions over axes, the index of an extreme element, and running (cumulative) reductions along one axis.

    reduce_prod, reduce_max, reduce_min : shape -> shape less axes
    reduce_and, reduce_xor              : shape -> shape less axes         (bits and bool; no derivative)
    argmax, argmin                      : shape -> shape less one axis     (an integer; no derivative)
    cumsum, cumprod, cummax, cummin, cumlogsumexp : shape -> shape         out_k is the reduction of x_0 .. x_k
    linear_recurrence                   : (a, b) -> h,  h_0 = b_0,  h_k = a_k h_{k-1} + b_k

`linear_recurrence` is what the derivatives of the cumulative operations are made of; it is linear in b, its own derivative in
a, and its own transpose, run backwards. `reverse=True` runs from the last element to the first; "previous" below means
previous in the direction of the run.

At a tie the derivative of a maximum or minimum is shared equally among the elements that attain it, so that it sums to 1.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.linear import is_undefined, is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import (
    BitReduction,
    Reduction,
    broadcast_in_dim,
    canonical_axes,
    canonical_axis,
    reduce_sum,
    reshape,
    transpose,
)
from funcml.primitives.batching import spread_at_front
from funcml.primitives.elementwise import add_any, convert, div, eq, mul, select, sub
from funcml.primitives.rows import FLOAT, NUMERIC, REAL
from funcml.primitives.shaping import pad
from funcml.primitives.tangents import scalar_of, zero_tangent, zeros
from funcml.primitives.transcendental import exp

__all__ = [
    "argmax",
    "argmin",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "linear_recurrence",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_xor",
]


# ---- reductions over axes ----------------------------------------------------------------------------------


class ReduceProd(Reduction):
    """out = product of x over `axes`."""

    def type_rule(self, x, *, axes):
        if not dtypes.is_numeric(x.dtype):
            raise TypeError(f"reduce_prod expects numbers, got {x}; for bool use reduce_and")
        return super().type_rule(x, axes=axes)

    # out' = sum_i (prod_{j<i} x_j) (prod_{j>i} x_j) x_i'          right where elements are zero: nothing is divided
    def jvp_rule(self, primals, tangents, *, axes):
        (x,), (t,) = primals, tangents
        out = bind(self, primals, {"axes": axes})
        if is_zero(t):
            return out, zero_tangent(out)
        x, t = _join_axes(x, axes), _join_axes(t, axes)
        last = aval_of(x).ndim - 1
        before = cumprod(_shift(x, 1, last, False), last)
        after = cumprod(_shift(x, 1, last, True), last, reverse=True)
        return out, reduce_sum(mul(t, mul(before, after)), (last,))


def _join_axes(x, axes):
    """`x` with the axes `axes` joined into one, at the end."""
    aval = aval_of(x)
    others = [i for i in range(aval.ndim) if i not in axes]
    length = math.prod(aval.shape[a] for a in axes)
    return reshape(transpose(x, (*others, *sorted(axes))), [*(aval.shape[i] for i in others), length])


class ReduceExtreme(Reduction):
    """out = the greatest (least) element of x over `axes`, nan if there is one; complex numbers compare lexicographically."""

    def type_rule(self, x, *, axes):
        if dtypes.is_key(x.dtype):
            raise TypeError(f"{self.name} expects numbers or bool, got {x}")
        return super().type_rule(x, axes=axes)

    # out' = mean of x' over the elements that are equal to out
    def jvp_rule(self, primals, tangents, *, axes):
        (x,), (t,) = primals, tangents
        out = bind(self, primals, {"axes": axes})
        if is_zero(t):
            return out, zero_tangent(out)
        aval = aval_of(x)
        kept = [i for i in range(aval.ndim) if i not in axes]
        attained = eq(x, broadcast_in_dim(out, aval.shape, kept))
        count = convert(reduce_sum(convert(attained, dtypes.int32), axes), aval.dtype)
        return out, div(reduce_sum(select(attained, t, zeros(aval_of(t))), axes), count)


reduce_prod_p = ReduceProd("reduce_prod")
reduce_max_p = ReduceExtreme("reduce_max")
reduce_min_p = ReduceExtreme("reduce_min")
reduce_and_p = BitReduction("reduce_and")
reduce_xor_p = BitReduction("reduce_xor")


def _reduce(primitive, x, axes):
    axes = canonical_axes(axes, aval_of(x), primitive.name)
    return bind(primitive, (x,), {"axes": axes}) if axes else x


def reduce_prod(x, axes):
    """The product of `x` over `axes` (ints); 1 over an empty axis."""
    return _reduce(reduce_prod_p, x, axes)


def reduce_max(x, axes):
    """The greatest element of `x` over `axes` (ints), nan if there is one; over an empty axis the least value of the dtype."""
    return _reduce(reduce_max_p, x, axes)


def reduce_min(x, axes):
    """The least element of `x` over `axes` (ints), nan if there is one; over an empty axis the greatest value of the dtype."""
    return _reduce(reduce_min_p, x, axes)


def reduce_and(x, axes):
    """The bitwise (for bool: logical) and of `x` over `axes` (ints)."""
    return _reduce(reduce_and_p, x, axes)


def reduce_xor(x, axes):
    """The bitwise (for bool: logical) exclusive or of `x` over `axes` (ints)."""
    return _reduce(reduce_xor_p, x, axes)


# ---- the index of an extreme element -----------------------------------------------------------------------


class ArgExtreme(Primitive):
    """out = the first index along `axis` of the greatest (least) element; a nan counts as the extreme one."""

    def type_rule(self, x, *, axis, index_dtype):
        if dtypes.is_complex(x.dtype) or dtypes.is_key(x.dtype):
            raise TypeError(f"{self.name} expects real numbers or bool, got {x}")
        if not 0 <= axis < x.ndim:
            raise TypeError(f"{self.name} of {x}: axis must be in range({x.ndim}), got {axis}")
        if x.shape[axis] == 0:
            raise ValueError(
                f"attempt to get {self.name} of an empty sequence: argmin and argmax require non-empty reduced dimension; "
                f"axis {axis} of {x} is empty"
            )
        if not dtypes.is_integer(index_dtype) or x.shape[axis] - 1 > dtypes.iinfo(index_dtype).max:
            raise TypeError(
                f"{self.name} of {x}: index_dtype must be an integer type that holds indices up to "
                f"{x.shape[axis] - 1}, got {index_dtype}"
            )
        return shaped((*x.shape[:axis], *x.shape[axis + 1 :]), index_dtype)

    def jvp_rule(self, primals, tangents, **params):
        out = bind(self, primals, params)
        return out, zero_tangent(out)

    def batch_rule(self, mapped, operands, dims, *, axis, index_dtype):
        (d,) = dims
        shifted = axis + (axis >= d)
        return bind(self, operands, {"axis": shifted, "index_dtype": index_dtype}), d - (shifted < d)


argmax_p = ArgExtreme("argmax")
argmin_p = ArgExtreme("argmin")


def _arg_extreme(primitive, x, axis, index_dtype):
    axis = canonical_axis(axis, aval_of(x), primitive.name)
    return bind(primitive, (x,), {"axis": axis, "index_dtype": dtypes.canonical(index_dtype)})


def argmax(x, axis: int, index_dtype=dtypes.int32):
    """The first index along `axis` of the greatest element of `x`, or of the first nan; ValueError if the axis is empty."""
    return _arg_extreme(argmax_p, x, axis, index_dtype)


def argmin(x, axis: int, index_dtype=dtypes.int32):
    """The first index along `axis` of the least element of `x`, or of the first nan; ValueError if the axis is empty."""
    return _arg_extreme(argmin_p, x, axis, index_dtype)


# ---- running reductions ------------------------------------------------------------------------------------


def _shift(x, fill, axis, reverse):
    """`x` moved one step forward along `axis`: at k what was at the previous place, `fill` at the first."""
    config = [(0, 0, 0)] * aval_of(x).ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, scalar_of(aval_of(x), fill), config) if aval_of(x).shape[axis] else x


class Running(Primitive):
    """Base of the operations that run along `axis`, from the end if `reverse`; all operands have the type of the result."""

    accepts = NUMERIC

    def type_rule(self, *avals, axis, reverse):
        x = avals[0]
        if any(a.shape != x.shape or a.dtype != x.dtype for a in avals):
            raise TypeError(f"{self.name} expects operands of one type, got {', '.join(map(str, avals))}")
        if not self.accepts.test(x.dtype):
            raise TypeError(f"{self.name} expects {self.accepts.words}, got {x}; convert it first")
        if not 0 <= axis < x.ndim:
            raise TypeError(f"{self.name} of {x}: axis must be in range({x.ndim}), got {axis}")
        return shaped(x.shape, x.dtype, all(a.weak_type for a in avals))

    def jvp_rule(self, primals, tangents, *, axis, reverse):
        out = bind(self, primals, {"axis": axis, "reverse": reverse})
        if all(map(is_zero, tangents)):
            return out, zero_tangent(out)
        return out, self.tangent(out, primals, tangents, axis, reverse)

    def tangent(self, out, primals, tangents, axis, reverse):
        """The tangent of `out`."""
        raise self.missing("jvp_rule", "differentiation")

    def batch_rule(self, mapped, operands, dims, *, axis, reverse):
        d = dims[0]
        if any(other != d for other in dims):
            operands, d = [spread_at_front(mapped, x, dim) for x, dim in zip(operands, dims, strict=True)], 0
        return bind(self, operands, {"axis": axis + (axis >= d), "reverse": reverse}), d


class LinearRecurrence(Running):
    """h_0 = b_0, h_k = a_k h_{k-1} + b_k; the first element of a plays no part."""

    # h_k' = a_k h_{k-1}' + (a_k' h_{k-1} + b_k')
    def tangent(self, h, primals, tangents, axis, reverse):
        (a, _), (ta, tb) = primals, tangents
        if is_zero(ta):
            return linear_recurrence(a, tb, axis, reverse)
        step = mul(ta, _shift(h, 0, axis, reverse))
        return linear_recurrence(a, step if is_zero(tb) else add_any(step, tb), axis, reverse)

    # ct_b_k = ct_k + a_{k+1} ct_b_{k+1}
    def transpose_rule(self, ct, a, b, *, axis, reverse):
        if is_undefined(a):
            raise self.missing("transpose_rule for its first operand", "reverse-mode differentiation")
        return [None, linear_recurrence(_shift(a, 0, axis, not reverse), ct, axis, not reverse)]


class Cumsum(Running):
    """out_k = x_0 + .. + x_k."""

    # out' = cumsum(x')
    def tangent(self, out, primals, tangents, axis, reverse):
        return cumsum(tangents[0], axis, reverse)

    # ct_x_k = ct_k + ct_{k+1} + ..
    def transpose_rule(self, ct, x, *, axis, reverse):
        return [cumsum(ct, axis, not reverse)]


class Cumprod(Running):
    """out_k = x_0 .. x_k."""

    # out_k = x_k out_{k-1}  =>  out_k' = x_k out_{k-1}' + x_k' out_{k-1}
    def tangent(self, out, primals, tangents, axis, reverse):
        return linear_recurrence(primals[0], mul(tangents[0], _shift(out, 1, axis, reverse)), axis, reverse)


class CumulativeExtreme(Running):
    """out_k = the greatest (least) of x_0 .. x_k, nan from the first nan on."""

    accepts = REAL

    # out_k' = mean of x_j' over the j <= k where x_j = out_k. These lie where out has had its present value: sum and count
    # are recurrences that start anew (a_k = 0) where out changes.
    def tangent(self, out, primals, tangents, axis, reverse):
        (x,), (t,) = primals, tangents
        attained, same = eq(x, out), eq(out, _shift(out, 0, axis, reverse))
        total = linear_recurrence(
            convert(same, aval_of(t).dtype), select(attained, t, zeros(aval_of(t))), axis, reverse
        )
        count = linear_recurrence(convert(same, dtypes.int32), convert(attained, dtypes.int32), axis, reverse)
        return div(total, convert(count, aval_of(t).dtype))


class Cumlogsumexp(Running):
    """out_k = log(exp(x_0) + .. + exp(x_k)), without overflow."""

    accepts = FLOAT

    # out_k' = exp(out_{k-1} - out_k) out_{k-1}' + exp(x_k - out_k) x_k'. Where the difference is of equal infinities, the
    # element takes the whole weight and the previous result what is left.
    def tangent(self, out, primals, tangents, axis, reverse):
        (x,), (t,) = primals, tangents
        one = broadcast_in_dim(scalar_of(aval_of(x), 1), aval_of(x).shape)
        previous = _shift(out, -np.inf, axis, reverse)
        weight = select(eq(x, out), one, exp(sub(x, out)))
        kept = select(eq(previous, out), sub(one, weight), exp(sub(previous, out)))
        return linear_recurrence(kept, mul(t, weight), axis, reverse)


linear_recurrence_p = LinearRecurrence("linear_recurrence")
cumsum_p = Cumsum("cumsum")
cumprod_p = Cumprod("cumprod")
cummax_p = CumulativeExtreme("cummax")
cummin_p = CumulativeExtreme("cummin")
cumlogsumexp_p = Cumlogsumexp("cumlogsumexp")


def _run(primitive, operands, axis, reverse):
    axis = canonical_axis(axis, aval_of(operands[0]), primitive.name)
    return bind(primitive, operands, {"axis": axis, "reverse": bool(reverse)})


def linear_recurrence(a, b, axis: int = 0, reverse: bool = False):
    """h with h_0 = b_0 and h_k = a_k h_{k-1} + b_k along `axis`; `a` and `b` have one shape and dtype, a_0 plays no part."""
    return _run(linear_recurrence_p, (a, b), axis, reverse)


def cumsum(x, axis: int = 0, reverse: bool = False):
    """The running sum of `x` along `axis`."""
    return _run(cumsum_p, (x,), axis, reverse)


def cumprod(x, axis: int = 0, reverse: bool = False):
    """The running product of `x` along `axis`."""
    return _run(cumprod_p, (x,), axis, reverse)


def cummax(x, axis: int = 0, reverse: bool = False):
    """The running maximum of `x` along `axis`; nan from the first nan on."""
    return _run(cummax_p, (x,), axis, reverse)


def cummin(x, axis: int = 0, reverse: bool = False):
    """The running minimum of `x` along `axis`; nan from the first nan on."""
    return _run(cummin_p, (x,), axis, reverse)


def cumlogsumexp(x, axis: int = 0, reverse: bool = False):
    """The running log of the sum of exponentials of `x` along `axis`."""
    return _run(cumlogsumexp_p, (x,), axis, reverse)
