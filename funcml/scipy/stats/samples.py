"""Statistics of samples: the most frequent element, ranks, and the standard error of the mean."""

from __future__ import annotations

import math
from typing import NamedTuple

from funcml import dtypes
from funcml import numpy as jnp
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of
from funcml.numpy.promotion import operand
from funcml.primitives import sorting
from funcml.primitives.reductions import cummax

__all__ = ["ModeResult", "mode", "rankdata", "sem"]

_POLICIES = ("propagate", "omit", "raise")


class ModeResult(NamedTuple):
    """The most frequent elements, and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]


def _check_policy(name: str, nan_policy: str, known: tuple[str, ...]) -> None:
    if nan_policy not in _POLICIES:
        raise ValueError(f"{name}: nan_policy must be one of {', '.join(map(repr, _POLICIES))}, got {nan_policy!r}")
    if nan_policy not in known:
        hint = "look for nan with jnp.isnan first" if nan_policy == "raise" else "take nan out first"
        raise NotImplementedError(f"{name}: nan_policy={nan_policy!r} is not supported, as the values may be traced; {hint}")


def _rows(name, x, axis):
    """(x with the axis last, that axis); all elements as one row for None."""
    if axis is None:
        return x.reshape(x.size), None
    axis = axis_of(name, axis, x.ndim)
    return jnp.moveaxis(x, axis, -1), axis


def mode(a, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent element along `axis` (all, for None) and its count; of equally frequent ones the least.

    Raises NotImplementedError for other nan policies than 'propagate'. nan counts as one value, the largest.

    >>> import numpy as np
    >>> mode(np.int32([3, 1, 3, 2]))
    ModeResult(mode=Array(3, dtype=int32), count=Array(2, dtype=int32))
    """
    _check_policy("mode", nan_policy, ("propagate",))
    found, count = _mode(jnp.asarray(operand("mode", a)), axis=axis, keepdims=bool(keepdims))
    return ModeResult(found, count)


@fused(static=("axis", "keepdims"))
def _mode(x, axis, keepdims):
    x = jnp.atleast_1d(x) if axis is not None else x
    rows, place = _rows("mode", x, axis)
    reduced = range(x.ndim) if place is None else (place,)
    kept = tuple([1 if i in reduced else n for i, n in enumerate(x.shape) if keepdims or i not in reduced])
    if rows.shape[-1] == 0:
        dtype = dtypes.default_float()
        return jnp.full(kept, math.nan, dtype), jnp.zeros(kept, dtype)
    values = jnp.sort(rows, axis=-1)
    length = _positions(values) - _starts(values) + 1
    best = jnp.argmax(length, axis=-1, keepdims=True)
    out = [jnp.take_along_axis(v, best, axis=-1).reshape(kept) for v in (values, length)]
    return out[0], out[1]


def _positions(rows):
    return jnp.broadcast_to(jnp.arange(rows.shape[-1], dtype="int32"), rows.shape)


def _new(rows):
    """Where a run of equal elements begins, in sorted rows; nan equals nan."""
    ahead, behind = rows[..., 1:], rows[..., :-1]
    differ = (ahead != behind) & ~((ahead != ahead) & (behind != behind))
    return jnp.concatenate([jnp.ones((*rows.shape[:-1], 1), bool), differ], axis=-1)


def _starts(rows):
    """For each element the place where its run begins."""
    return cummax(jnp.where(_new(rows), _positions(rows), 0), axis=rows.ndim - 1, reverse=False)


def rankdata(a, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"):
    """The ranks of the elements along `axis` (all, flattened, for None), from 1 on, as floats; all nan in a row with nan.

    Equal elements get the 'average', 'min' or 'max' of their ranks, one rank for each value ('dense'), or ranks in order
    ('ordinal').

    >>> import numpy as np
    >>> rankdata(np.float32([1, 5, 2, 5]))
    Array([1. , 3.5, 2. , 3.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"rankdata: method must be 'average', 'min', 'max', 'dense' or 'ordinal', got {method!r}")
    return _rankdata(jnp.asarray(operand("rankdata", a)), method=method, axis=axis)


@fused(static=("method", "axis"))
def _rankdata(x, method, axis):
    rows, place = _rows("rankdata", x, axis)
    if rows.size == 0:
        return jnp.zeros(x.shape if place is not None else rows.shape, dtypes.default_float())
    last = rows.ndim - 1
    values, order = sorting.sort((rows, _positions(rows)), last)
    inverse = jnp.argsort(order, axis=-1)
    ranks = _ranks_of_sorted(values, method)
    ranks = jnp.take_along_axis(ranks, inverse, axis=-1).astype(dtypes.default_float())
    if dtypes.is_inexact(rows.dtype):
        ranks = jnp.where(jnp.any(jnp.isnan(rows), axis=-1, keepdims=True), math.nan, ranks)
    return ranks if place is None else jnp.moveaxis(ranks, -1, place)


def _ranks_of_sorted(values, method):
    place = _positions(values) + 1
    if method == "ordinal":
        return place
    if method == "dense":
        return jnp.cumsum(_new(values), axis=-1)
    first = _starts(values) + 1
    if method == "min":
        return first
    flipped = values[..., ::-1]
    last = values.shape[-1] - _starts(flipped)[..., ::-1]
    return last if method == "max" else 0.5 * (first + last)


def sem(a, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False):
    """The standard error of the mean along `axis` (all, for None): the standard deviation, with n - ddof, over sqrt(n).

    nan_policy 'omit' leaves nan out.

    >>> import numpy as np
    >>> sem(np.float32([1, 2, 3, 4]))
    Array(0.6454972, dtype=float32)
    """
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    return _sem(operand("sem", a), ddof, axis=axis, omit=nan_policy == "omit", keepdims=bool(keepdims))


@fused(static=("ddof", "axis", "omit", "keepdims"))
def _sem(a, ddof, axis, omit, keepdims):
    x = jnp.atleast_1d(a)
    if omit:
        count = jnp.sum(~jnp.isnan(x), axis=axis, keepdims=keepdims)
        deviation = jnp.nanstd(x, axis=axis, ddof=ddof, keepdims=keepdims)
        return deviation / jnp.sqrt(count.astype(deviation.dtype))
    count = x.size if axis is None else x.shape[axis_of("sem", axis, x.ndim)]
    deviation = jnp.std(x, axis=axis, ddof=ddof, keepdims=keepdims)
    return deviation / math.sqrt(count) if count else deviation
