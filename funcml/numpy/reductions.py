"""Reductions over axes, with NumPy's `axis`, `keepdims`, `dtype`, `initial` and `where`.

Sums and products of bools and narrow integers are taken in the default integer type; those of float16 and bfloat16 in
float32, and rounded once at the end.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.lowering.array import DeviceArray
from funcml.lowering.execute import by_type, fused
from funcml.numpy.arguments import axes_of, axis_of, no_out
from funcml.numpy.norms import euclidean
from funcml.numpy.promotion import as_array, broadcast_shapes, exact, literal, operand, promote, spread
from funcml.numpy.rows import fill
from funcml.numpy.selected import Selected, combine_selected, reduce_selected
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import powers
from funcml.primitives import reductions as red

__all__ = [
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
]


def static_axis(axis):
    """An axis argument as a hashable one."""
    if axis is None or isinstance(axis, int):
        return axis
    return tuple(map(operator.index, axis)) if isinstance(axis, tuple | list) else operator.index(axis)


def _kept(x_shape, axes, out):
    """`out` with the reduced axes back, of length 1."""
    return ax.reshape(out, [1 if i in axes else n for i, n in enumerate(x_shape)])


def _masked(name: str, x, where, value):
    """`x` broadcast against `where`, and `value` where that is false."""
    if where is None:
        return x
    where = as_array(operand(name, where))
    _check_where(name, where)
    shape = broadcast_shapes(aval_of(x).shape, where.shape)
    x = spread(x, shape)
    return ew.select(spread(where, shape), x, fill(x, value))


def _check_where(name: str, where) -> None:
    if where is not None and not dtypes.is_bool(aval_of(where).dtype):
        raise ValueError(f"jnp.{name}: where must be None or a boolean array, got {aval_of(where)}; compare it first: where != 0")


def _initial(name: str, initial, dtype, out):
    """`initial`, a number, as an array like `out`."""
    initial = as_array(initial)
    if initial.ndim:
        raise ValueError(f"{name}: initial value must be a scalar. Got array of shape {initial.shape}")
    return spread(as_dtype(initial, dtype), aval_of(out).shape)


def _accumulator(dtype):
    """The dtype in which 16-bit floats are summed."""
    return dtypes.float32 if dtypes.is_float(dtype) and dtypes.bit_width(dtype) < 32 else dtype


def sum_dtype(dtype, asked, promote_integers: bool):
    """The dtype of a sum or product."""
    if asked is not None:
        return dtypes.canonical(asked)
    if dtypes.is_bool(dtype):
        return dtypes.default_int()
    if promote_integers and dtypes.is_integer(dtype):
        wide = dtypes.default_int()
        if dtypes.bit_width(dtype) < dtypes.bit_width(wide):
            return wide if dtypes.is_signed(dtype) else (dtypes.uint64 if wide == dtypes.int64 else dtypes.uint32)
    return dtype


# ---- sums and products -------------------------------------------------------------------------------------------


def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    """The sum of `a` over the given axes (all, if None), plus `initial`; of the elements that `where` marks.

    >>> sum(np.arange(6).reshape(2, 3), axis=0)
    Array([3, 5, 7], dtype=int64)
    """
    if type(a) is DeviceArray and out is dtype is initial is where is None and promote_integers and type(axis) in _PLAIN_AXES:
        return _plain_total(a, "sum", axis, bool(keepdims))
    no_out("sum", out)
    if type(a) is Selected:
        return reduce_selected(sum, a, axis, keepdims, where, dtype=dtype, initial=initial, promote_integers=promote_integers)
    return _total(operand("sum", a), exact(initial), where, "sum", static_axis(axis), dtype, bool(keepdims), promote_integers)


def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None, promote_integers=True):
    """The product of `a` over the given axes (all, if None), times `initial`; of the elements that `where` marks."""
    no_out("prod", out)
    if type(a) is Selected:
        return reduce_selected(prod, a, axis, keepdims, where, dtype=dtype, initial=initial, promote_integers=promote_integers)
    return _total(operand("prod", a), exact(initial), where, "prod", static_axis(axis), dtype, bool(keepdims), promote_integers)


_PLAIN_AXES = (type(None), int)  # what `by_type` can tell apart cheaply
_TOTALS = {"sum": (ax.reduce_sum, ew.add, 0), "prod": (red.reduce_prod, ew.mul, 1)}


@fused(static=("name", "axis", "dtype", "keepdims", "promote_integers"))
def _total(a, initial, where, name, axis, dtype, keepdims, promote_integers):
    reduce, combine, unit = _TOTALS[name]
    a = as_array(a)
    dtype = sum_dtype(a.dtype, dtype, promote_integers)
    x = _masked(name, as_dtype(a, _accumulator(dtype)), where, unit)
    axes = axes_of(name, axis, aval_of(x).ndim)
    out = reduce(x, axes)
    if initial is not None:
        out = combine(out, _initial(name, initial, aval_of(x).dtype, out))
    out = as_dtype(out, dtype)
    return _kept(aval_of(x).shape, axes, out) if keepdims else out


def as_dtype(x, dtype):
    """`x` as `dtype`, for good: not weakly typed. Whether numbers are zero is what they are as bools."""
    if dtypes.is_bool(dtype) and not dtypes.is_bool(aval_of(x).dtype):
        return ew.ne(x, 0)
    return ew.convert(x, dtype)


# ---- extremes ----------------------------------------------------------------------------------------------------


@by_type(static=3)
def _plain_total(a, name, axis, keepdims):
    return _total(a, None, None, name, axis, None, keepdims, True)


def max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The greatest element over the given axes (all, if None), or `initial` if that is greater; nan if there is one.

    Raises ValueError if there is no element and no `initial`; with `where`, `initial` has to be given.
    The derivative is shared among equal elements.
    """
    no_out("max", out)
    if type(a) is Selected:
        return _extreme_of_selected(max, a, axis, keepdims, where, initial)
    return _extreme(operand("max", a), exact(initial), where, "max", static_axis(axis), bool(keepdims))


def min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The least element over the given axes (all, if None), or `initial` if that is less; nan if there is one.

    Raises ValueError if there is no element and no `initial`; with `where`, `initial` has to be given.
    The derivative is shared among equal elements.
    """
    no_out("min", out)
    if type(a) is Selected:
        return _extreme_of_selected(min, a, axis, keepdims, where, initial)
    return _extreme(operand("min", a), exact(initial), where, "min", static_axis(axis), bool(keepdims))


amax, amin = max, min


def _lowest(dtype, name: str):
    """The neutral element of max (or min)."""
    if dtypes.is_bool(dtype):
        return name == "min"
    if dtypes.is_integer(dtype):
        limits = dtypes.iinfo(dtype)
        return int(limits.min if name == "max" else limits.max)
    return -math.inf if name == "max" else math.inf


def _extreme_of_selected(function, a, axis, keepdims, where, initial):
    """The greatest or least of x[mask] while tracing; of no element, the neutral one, since nobody knows whether there is one."""
    neutral = a.dtype.type(_lowest(a.dtype, function.__name__))
    return reduce_selected(function, a, axis, keepdims, where, initial=neutral if initial is None else initial)


@fused(static=("name", "axis", "keepdims"))
def _extreme(a, initial, where, name, axis, keepdims):
    a = ew.convert(as_array(a), aval_of(a).dtype)
    reduce, combine = (red.reduce_max, ew.max) if name == "max" else (red.reduce_min, ew.min)
    if where is not None and initial is None:
        raise ValueError(f"{name}: with `where`, `initial` must be given, for the case that nothing is marked")
    x = _masked(name, a, where, _lowest(a.dtype, name))
    axes = axes_of(name, axis, aval_of(x).ndim)
    shape = aval_of(x).shape
    if initial is None and math.prod([shape[i] for i in axes]) == 0:
        raise ValueError(f"{name} of {a.aval}: there is no element over the axes {axes}; give `initial`")
    out = reduce(x, axes)
    if initial is not None:
        out = combine(out, _initial(name, initial, a.dtype, out))
    return _kept(shape, axes, out) if keepdims else out


def ptp(a, axis=None, out=None, keepdims=False):
    """The greatest less the least element over the given axes."""
    no_out("ptp", out)
    if type(a) is Selected:
        return ew.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))
    return _ptp(operand("ptp", a), static_axis(axis), bool(keepdims))


@fused(static=("axis", "keepdims"))
def _ptp(a, axis, keepdims):
    return ew.sub(_extreme(a, None, None, "max", axis, keepdims), _extreme(a, None, None, "min", axis, keepdims))


def argmax(a, axis=None, out=None, keepdims=None):
    """The index of the first greatest element along an axis, or in `a` flattened; a nan counts as the greatest."""
    no_out("argmax", out)
    return _arg(operand("argmax", a), "argmax", static_axis(axis), bool(keepdims), dtypes.default_int())


def argmin(a, axis=None, out=None, keepdims=None):
    """The index of the first least element along an axis, or in `a` flattened; a nan counts as the least."""
    no_out("argmin", out)
    return _arg(operand("argmin", a), "argmin", static_axis(axis), bool(keepdims), dtypes.default_int())


@fused(static=("name", "axis", "keepdims", "index_dtype"))
def _arg(a, name, axis, keepdims, index_dtype):
    a = as_array(a)
    find = red.argmax if name == "argmax" else red.argmin
    if dtypes.is_complex(a.dtype):
        extreme = _extreme(a, None, None, name[3:], axis, True)
        a, find = ew.or_(ew.eq(a, spread(extreme, a.shape)), ew.ne(a, a)), red.argmax
    if axis is None:
        out = find(ax.reshape(a, (a.size,)), 0, index_dtype)
        return ax.reshape(out, (1,) * a.ndim) if keepdims else out
    axis = axis_of(name, axis, a.ndim)
    out = find(a, axis, index_dtype)
    return _kept(a.shape, (axis,), out) if keepdims else out


# ---- logic -------------------------------------------------------------------------------------------------------


def all(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether no element over the given axes is 0, of those that `where` marks."""
    no_out("all", out)
    if type(a) is Selected:
        return reduce_selected(all, a, axis, keepdims, where)
    return _logic(operand("all", a), where, "all", static_axis(axis), bool(keepdims))


def any(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether some element over the given axes is not 0, of those that `where` marks."""
    no_out("any", out)
    if type(a) is Selected:
        return reduce_selected(any, a, axis, keepdims, where)
    return _logic(operand("any", a), where, "any", static_axis(axis), bool(keepdims))


@fused(static=("name", "axis", "keepdims"))
def _logic(a, where, name, axis, keepdims):
    reduce = red.reduce_and if name == "all" else ax.reduce_or
    x = _masked(name, as_dtype(as_array(a), dtypes.bool_), where, name == "all")
    axes = axes_of(name, axis, aval_of(x).ndim)
    out = reduce(x, axes)
    return _kept(aval_of(x).shape, axes, out) if keepdims else out


def count_nonzero(a, axis=None, keepdims=False):
    """How many elements over the given axes are not 0."""
    if type(a) is Selected:
        return sum(a.map(lambda x: as_dtype(x, dtypes.bool_)), axis, keepdims=keepdims)
    return _count_nonzero(operand("count_nonzero", a), static_axis(axis), bool(keepdims), dtypes.default_int())


@fused(static=("axis", "keepdims", "dtype"))
def _count_nonzero(a, axis, keepdims, dtype):
    return _total(as_dtype(as_array(a), dtypes.bool_), None, None, "sum", axis, dtype, keepdims, True)


# ---- moments -----------------------------------------------------------------------------------------------------


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """The arithmetic mean over the given axes, of the elements that `where` marks; nan if there is none."""
    if type(a) is DeviceArray and out is dtype is where is None and type(axis) in _PLAIN_AXES:
        return _plain_mean(a, axis, bool(keepdims))
    no_out("mean", out)
    if type(a) is Selected:
        return reduce_selected(mean, a, axis, keepdims, where, dtype=dtype)
    return _mean(operand("mean", a), where, static_axis(axis), dtype, bool(keepdims))


@by_type(static=2)
def _plain_mean(a, axis, keepdims):
    return _mean(a, None, axis, None, keepdims)


def _count(x, where, axes, keepdims, dtype):
    """How many elements are reduced: a number, or an array if `where` marks them."""
    shape = aval_of(x).shape
    if where is None:
        return literal(math.prod([shape[i] for i in axes]), dtype)
    marked = spread(as_array(where), shape)
    return _total(marked, None, None, "sum", axes, dtype, keepdims, True)


@fused(static=("axis", "dtype", "keepdims"))
def _mean(a, where, axis, dtype, keepdims):
    a = as_array(a)
    dtype = dtypes.inexact_dtype(a.dtype) if dtype is None else dtypes.canonical(dtype)
    wide = _accumulator(dtype)
    x = _masked("mean", as_dtype(a, wide), where, 0)
    shape = aval_of(x).shape
    axes = axes_of("mean", axis, len(shape))
    total = ew.convert(ax.reduce_sum(x, axes), dtypes.inexact_dtype(wide))
    total = _kept(shape, axes, total) if keepdims else total
    return ew.convert(ew.div(total, _count(x, where, axes, keepdims, aval_of(total).dtype)), dtype)


def _ddof(name: str, ddof, correction):
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError(f"{name}: ddof and correction mean the same; give one of them")
    return correction


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None):
    """The mean of |a - mean(a)|^2 over the given axes, the sum divided by n - ddof; nan if that is not positive.

    `mean`, if known, must have kept its axes; `correction` is another name of `ddof`.
    """
    no_out("var", out)
    if type(a) is Selected:
        return reduce_selected(var, a, axis, keepdims, where, dtype=dtype, ddof=_ddof("var", ddof, correction), mean=mean)
    ddof = _ddof("var", ddof, correction)
    return _deviation(operand("var", a), where, exact(mean), "var", static_axis(axis), dtype, ddof, bool(keepdims))


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None):
    """The square root of the variance; where that is 0, its derivative is 0 and its second derivatives are right.

    `mean`, if known, must have kept its axes; `correction` is another name of `ddof`.
    """
    no_out("std", out)
    if type(a) is Selected:
        return reduce_selected(std, a, axis, keepdims, where, dtype=dtype, ddof=_ddof("std", ddof, correction), mean=mean)
    ddof = _ddof("std", ddof, correction)
    return _deviation(operand("std", a), where, exact(mean), "std", static_axis(axis), dtype, ddof, bool(keepdims))


# var = |c|^2 / (n - ddof), std = |c| / sqrt(n - ddof), with c = a - mean
@fused(static=("name", "axis", "dtype", "ddof", "keepdims"))
def _deviation(a, where, mean, name, axis, dtype, ddof, keepdims):
    _check_where(name, where)
    a = as_array(a)
    asked = None if dtype is None else dtypes.canonical(dtype)
    dtype = dtypes.inexact_dtype(a.dtype) if asked is None else asked
    if not dtypes.is_inexact(dtype):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex, got {dtype}")
    if dtypes.is_complex(a.dtype) and not dtypes.is_complex(dtype):
        raise ValueError(f"{name}: dtype {dtype} does not hold the complex numbers of {a.aval}; take a complex dtype")
    x = as_dtype(a, _accumulator(dtype))
    if where is not None:
        x = spread(x, broadcast_shapes(a.shape, np.shape(where)))
    axes = axes_of(name, axis, aval_of(x).ndim)
    center = _mean(x, where, axes, None, True) if mean is None else as_dtype(as_array(mean), aval_of(x).dtype)
    centered = _masked(name, ew.sub(x, spread(center, aval_of(x).shape)), where, 0)
    real = dtypes.real_dtype(aval_of(x).dtype)
    if name == "var":
        size = powers.square(ew.abs(centered)) if dtypes.is_complex(dtype) else powers.square(centered)
        total = ax.reduce_sum(size, axes)
    else:
        total = euclidean(centered, axes)
    total = _kept(aval_of(x).shape, axes, total) if keepdims else total
    freedom = ew.sub(_full(_count(x, where, axes, keepdims, real), total), literal(ddof, real))
    known = ew.gt(freedom, 0)
    freedom = ew.select(known, freedom, fill(freedom, 1))
    out = ew.div(total, freedom if name == "var" else powers.sqrt(freedom))
    return ew.convert(ew.select(known, out, fill(out, math.nan)), dtypes.real_dtype(dtype) if asked is None else dtype)


def _full(x, like):
    return spread(x, aval_of(like).shape)


def average(a, axis=None, weights=None, returned: bool = False, keepdims: bool = False):
    """The mean over the given axes, weighted; with `returned`, also the sums of the weights.

    `weights` have the shape of `a`, or of the given axes in their order.
    """
    a = operand("average", a)
    weights = None if weights is None else operand("average", weights)
    out, total = _average(a, weights, static_axis(axis), bool(keepdims))
    return (out, total) if returned else out


@fused(static=("axis", "keepdims"))
def _average(a, weights, axis, keepdims):
    if weights is None:
        out = _mean(a, None, axis, None, keepdims)
        count = aval_of(as_array(a)).size // (aval_of(out).size or 1)
        return out, fill(out, count)
    aval, weights = aval_of(as_array(a)), as_array(weights)
    if weights.shape != aval.shape:
        axes = axes_of("average", axis, aval.ndim)
        if axis is None or weights.ndim != len(axes):
            raise TypeError(f"average: weights {weights.aval} must have the shape of {aval}, or that of the given axes")
        if weights.shape != tuple([aval.shape[i] for i in axes]):
            raise ValueError(f"average: weights {weights.aval} must have the lengths of the axes {axes} of {aval}")
        order = sorted(axes)
        weights = ax.broadcast_in_dim(ax.transpose(weights, [axes.index(i) for i in order]), aval.shape, order)
    a, weights = promote("average", a, weights, inexact=True, full=True)
    total = _total(weights, None, None, "sum", axis, None, keepdims, True)
    return ew.div(_total(ew.mul(a, weights), None, None, "sum", axis, None, keepdims, True), total), total


# ---- without nan -------------------------------------------------------------------------------------------------


def _without_nan(name: str, x, where=None):
    """(`x`, where it counts): not at nan, and where `where` says so."""
    if type(x) is Selected:
        return x, combine_selected(name, _and_not_nan, x, where) if dtypes.is_inexact(x.dtype) else where
    x = as_array(operand(name, x))
    if where is not None:
        where = as_array(operand(name, where))
        _check_where(name, where)
    return x, _and_not_nan(x, where) if dtypes.is_inexact(x.dtype) else where


@fused
def _and_not_nan(x, where=None):
    if where is None:
        return ew.eq(x, x)
    shape = broadcast_shapes(x.shape, np.shape(where))
    return ew.and_(spread(ew.eq(x, x), shape), spread(as_array(where), shape))


def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """The sum of the elements that are not nan."""
    a, where = _without_nan("nansum", a, where)
    return sum(a, axis, dtype, out, keepdims, initial, where)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """The product of the elements that are not nan."""
    a, where = _without_nan("nanprod", a, where)
    return prod(a, axis, dtype, out, keepdims, initial, where)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """The mean of the elements that are not nan."""
    a, where = _without_nan("nanmean", a, where)
    return mean(a, axis, dtype, out, keepdims, where=where)


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """The variance of the elements that are not nan."""
    a, where = _without_nan("nanvar", a, where)
    return var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """The standard deviation of the elements that are not nan."""
    a, where = _without_nan("nanstd", a, where)
    return std(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)


def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The greatest of the elements that are not nan; nan if there is no other."""
    no_out("nanmax", out)
    return _nan_extreme(operand("nanmax", a), exact(initial), where, "max", static_axis(axis), bool(keepdims))


def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The least of the elements that are not nan; nan if there is no other."""
    no_out("nanmin", out)
    return _nan_extreme(operand("nanmin", a), exact(initial), where, "min", static_axis(axis), bool(keepdims))


@fused(static=("name", "axis", "keepdims"))
def _nan_extreme(a, initial, where, name, axis, keepdims):
    _check_where(f"nan{name}", where)
    a = as_array(a)
    if not dtypes.is_float(a.dtype):
        return _extreme(a, initial, where, name, axis, keepdims)
    missing = ew.ne(a, a)
    out = _extreme(ew.select(missing, fill(a, _lowest(a.dtype, name)), a), initial, where, name, axis, keepdims)
    if initial is not None:
        return out
    return ew.select(_logic(missing, None, "all", axis, keepdims), fill(out, math.nan), out)


def nanargmax(a, axis=None, out=None, keepdims=None):
    """The index of the first greatest element that is not nan; -1 if there is no other."""
    no_out("nanargmax", out)
    return _nan_arg(operand("nanargmax", a), "argmax", static_axis(axis), bool(keepdims), dtypes.default_int())


def nanargmin(a, axis=None, out=None, keepdims=None):
    """The index of the first least element that is not nan; -1 if there is no other."""
    no_out("nanargmin", out)
    return _nan_arg(operand("nanargmin", a), "argmin", static_axis(axis), bool(keepdims), dtypes.default_int())


@fused(static=("name", "axis", "keepdims", "index_dtype"))
def _nan_arg(a, name, axis, keepdims, index_dtype):
    a = as_array(a)
    if not dtypes.is_float(a.dtype):
        return _arg(a, name, axis, keepdims, index_dtype)
    missing = ew.ne(a, a)
    worst = fill(a, _lowest(a.dtype, name[3:]))
    out = _arg(ew.select(missing, worst, a), name, axis, keepdims, index_dtype)
    return ew.select(_logic(missing, None, "all", axis, keepdims), fill(out, -1), out)
