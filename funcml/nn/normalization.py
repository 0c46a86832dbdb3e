"""Softmax and its relatives, standardisation, and one-hot vectors.

    m = max x,  e = exp(x - m):    softmax = e / sum e    log_softmax = x - m - log sum e    logsumexp = m + log sum e
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, axis_of, dtype_or, index_of
from funcml.numpy.creation import asarray
from funcml.numpy.promotion import as_array, broadcast_shapes, operand, promote, spread, to_inexact
from funcml.numpy.reductions import mean as mean_of
from funcml.numpy.reductions import static_axis
from funcml.numpy.rows import fill
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import expand_dims, reduce_sum, reshape
from funcml.primitives.gather_scatter import index_dtype
from funcml.primitives.identities import stop_gradient
from funcml.primitives.powers import rsqrt, square
from funcml.primitives.reductions import reduce_max
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize"]

# ---- exponentials --------------------------------------------------------------------------------------------


def _operand(name: str, x, where):
    """(x as floats, where as bool), of one shape; what is not marked becomes -inf."""
    x = as_array(to_inexact(name, x))
    if where is None:
        return x, None
    where = as_array(operand(name, where))
    if not dtypes.is_bool(where.dtype):
        raise TypeError(f"{name}: expected bool as `where`, got {where.aval}")
    shape = broadcast_shapes(x.shape, where.shape)
    x, where = spread(x, shape), spread(where, shape)
    return ew.select(where, x, fill(x, -math.inf)), where


def _sum(x, axes):
    """The sum over `axes`, which are kept with length 1."""
    return expand_dims(reduce_sum(x, axes), axes)


def _shift(x, axes):
    """The maximum of (the real part of) x over `axes`, which are kept; 0 where it is infinite. It has no derivative."""
    x = stop_gradient(x)
    top = expand_dims(reduce_max(ew.real(x) if dtypes.is_complex(aval_of(x).dtype) else x, axes), axes)
    return ew.select(ew.is_finite(top), top, fill(top, 0))


def _spread(x, like):
    return spread(x, aval_of(like).shape)


def logsumexp(a, axis=None, b=None, keepdims: bool = False, return_sign: bool = False, where=None):
    """log(sum(b exp(a))) over `axis` (all, if None), of the elements that `where` marks.

    With `return_sign` the pair (log |s|, sign s) of the sum s; without, nan where the sum is negative. Where there is
    nothing to sum, or only exp(-inf), the result is -inf with derivative 0.

    >>> import numpy as np
    >>> logsumexp(np.float32([0, 0]))
    Array(0.6931472, dtype=float32)
    """
    return _logsumexp(operand("logsumexp", a), b, where, static_axis(axis), bool(keepdims), bool(return_sign))


@fused(static=("axis", "keepdims", "return_sign"))
def _logsumexp(a, b, where, axis, keepdims, return_sign):
    if b is not None:
        a, b = promote("logsumexp", a, b, inexact=True, full=True)
    a, where = _operand("logsumexp", a, where)
    axes = axes_of("logsumexp", axis, a.ndim)
    shift, terms = _terms(a, b, axes)
    total = _sum(terms, axes)
    sign = ew.sign(total)
    is_complex = dtypes.is_complex(a.dtype)
    size = ew.abs(total) if return_sign or not is_complex else total
    nothing = ew.eq(size, 0)
    log = ew.select(nothing, fill(size, -math.inf), tr.log(ew.select(nothing, fill(size, 1), size)))
    out = ew.add(log, ew.convert(shift, aval_of(log).dtype))
    if b is not None and not return_sign and not is_complex:
        out = ew.select(ew.lt(sign, 0), fill(out, math.nan), out)
    kept = [i for i in range(a.ndim) if i not in axes]
    outs = [x if keepdims else reshape(x, [a.shape[i] for i in kept]) for x in (out, sign)]
    return tuple(outs) if return_sign else outs[0]


# The exponential of an element whose factor is 0 is limited, so that 0 exp(a) is 0.
def _terms(a, b, axes):
    """(m, exp(a - m) or b exp(a - m)) with m a maximum over `axes`, of the elements whose factor is not 0."""
    if b is None:
        shift = _shift(a, axes)
        return shift, tr.exp(ew.sub(a, _spread(ew.convert(shift, a.dtype), a)))
    unused = ew.eq(b, 0)
    b = spread(b, a.shape)
    shift = _shift(ew.select(unused, fill(a, -math.inf), a), axes)
    exponent = ew.sub(a, _spread(ew.convert(shift, a.dtype), a))
    if not dtypes.is_complex(a.dtype):
        exponent = ew.select(unused, ew.min(exponent, math.log(float(dtypes.finfo(a.dtype).max)) / 2), exponent)
    return shift, ew.mul(b, tr.exp(exponent))


def logmeanexp(x, axis=None, where=None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) over `axis` (all, if None), of the elements that `where` marks."""
    return _logmeanexp(operand("logmeanexp", x), where, static_axis(axis), bool(keepdims))


@fused(static=("axis", "keepdims"))
def _logmeanexp(x, where, axis, keepdims):
    total = _logsumexp(x, None, where, axis, keepdims, False)
    x, where = _operand("logmeanexp", x, where)
    axes = axes_of("logmeanexp", axis, x.ndim)
    real = dtypes.real_dtype(x.dtype)
    if where is None:
        return ew.sub(total, math.log(math.prod([x.shape[i] for i in axes])))
    count = reduce_sum(ew.convert(where, real), axes)
    count = expand_dims(count, axes) if keepdims else count
    return ew.sub(total, ew.convert(tr.log(count), aval_of(total).dtype))


def log_softmax(x, axis=-1, where=None) -> Array:
    """log(softmax(x)): x - logsumexp(x) over `axis`; -inf, with derivative 0, for what `where` does not mark."""
    return _log_softmax(operand("log_softmax", x), where, static_axis(axis))


@fused(static=("axis",))
def _log_softmax(x, where, axis):
    x, where = _operand("log_softmax", x, where)
    axes = axes_of("log_softmax", axis, x.ndim)
    shifted = ew.sub(x, _spread(_shift(x, axes), x))
    out = ew.sub(shifted, _spread(tr.log(_sum(tr.exp(shifted), axes)), x))
    return out if where is None else ew.select(where, out, fill(out, -math.inf))


def softmax(x, axis=-1, where=None) -> Array:
    """exp(x) / sum(exp(x)) over `axis`; 0, with derivative 0, for what `where` does not mark.

    >>> import numpy as np
    >>> softmax(np.float32([0, 0]))
    Array([0.5, 0.5], dtype=float32)
    """
    return _softmax(operand("softmax", x), where, static_axis(axis))


@fused(static=("axis",))
def _softmax(x, where, axis):
    x, where = _operand("softmax", x, where)
    out = _ratio(x, axes_of("softmax", axis, x.ndim))
    return out if where is None else ew.select(where, out, fill(out, 0))


def _ratio_value(x, axes):
    e = tr.exp(ew.sub(x, _spread(_shift(x, axes), x)))
    return ew.div(e, _spread(_sum(e, axes), e))


# y = e / sum e  =>  y' = y (x' - sum(y x')): the result is the only residual
_ratio = custom_jvp(_ratio_value, nondiff_argnums=(1,))


@_ratio.defjvp
def _ratio_jvp(axes, primals, tangents):
    (x,), (t,) = primals, tangents
    y = _ratio(x, axes)
    return y, ew.mul(y, ew.sub(t, _spread(_sum(ew.mul(y, t), axes), t)))


# ---- others --------------------------------------------------------------------------------------------------


def standardize(
    x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *, algorithm: str = "stable"
) -> Array:
    """(x - mean) / sqrt(variance + epsilon), the moments taken over `axis`, of the elements that `where` marks.

    The variance is the mean of (x - mean)^2, which does not cancel; the `algorithm` "fast" is taken for "stable", since it
    saves nothing here.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: expected the algorithm 'fast' or 'stable', got {algorithm!r}")
    return _standardize(operand("standardize", x), mean, variance, epsilon, where, static_axis(axis))


@fused(static=("axis",))
def _standardize(x, mean, variance, epsilon, where, axis):
    x = as_array(to_inexact("standardize", x))
    narrow = dtypes.bit_width(x.dtype) < 32
    if narrow:
        return ew.convert(_standardize(ew.convert(x, dtypes.float32), mean, variance, epsilon, where, axis), x.dtype)
    if mean is None:
        mean = mean_of(x, axis, keepdims=True, where=where)
    x, mean = promote("standardize", x, mean, full=True)
    centred = ew.sub(x, mean)
    if variance is None:
        variance = mean_of(square(centred), axis, keepdims=True, where=where)
    centred, variance, epsilon = promote("standardize", centred, variance, epsilon, full=True)
    return ew.mul(centred, rsqrt(ew.add(variance, epsilon)))


def one_hot(x, num_classes: int, *, dtype=None, axis: int = -1) -> Array:
    """Vectors along a new axis at `axis` with a 1 at place `x` and 0 elsewhere; all 0 where `x` is not in range.

    >>> import numpy as np
    >>> one_hot(np.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    x = asarray(x) if isinstance(x, list | tuple) else operand("one_hot", x)
    aval = aval_of(x)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"one_hot: expected integers, got {aval}; round and convert them first")
    count = index_of("one_hot", "num_classes", num_classes)
    return _one_hot(x, count, dtype_or(dtype, dtypes.default_float()), axis_of("one_hot", axis, aval.ndim + 1))


@fused(static=("num_classes", "dtype", "axis"))
def _one_hot(x, num_classes, dtype, axis):
    x = as_array(x)
    place = expand_dims(ew.convert(x, index_dtype(x.aval)), (axis,))
    shape = (*x.shape[:axis], num_classes, *x.shape[axis:])
    classes = shaping.iota(aval_of(place).dtype, shape, axis)
    return ew.convert(ew.eq(spread(place, shape), classes), dtype)
