"""Putting elements in order along an axis.

    sort  : ([.., n, ..], ..) -> ([.., n, ..], ..)         the first `num_keys` operands decide, the others follow
    top_k : [.., n, ..] -> (values [.., k, ..], indices [.., k, ..])

The order of floats is that of numbers with nan last and 0 equal to -0; complex numbers compare by real, then by imaginary part.
"""

from __future__ import annotations

import operator

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.linear import is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import canonical_axis
from funcml.primitives.batching import spread_at_front
from funcml.primitives.indexing import take_along_axis
from funcml.primitives.shaping import iota
from funcml.primitives.tangents import zero_tangent

__all__ = ["sort", "top_k"]


class Sort(Primitive):
    """The operands, permuted alike along `dimension` so that their first `num_keys` are in lexicographic order."""

    multiple_results = True

    def type_rule(self, *avals, dimension, is_stable, num_keys):
        if not avals or any(a.shape != avals[0].shape for a in avals):
            raise TypeError(
                f"sort expects one or more operands of one shape, got {', '.join(map(str, avals))}"
            )
        if not 1 <= num_keys <= len(avals):
            raise TypeError(
                f"sort of {len(avals)} operands: num_keys must be from 1 to {len(avals)}, got {num_keys}"
            )
        if any(dtypes.is_key(a.dtype) for a in avals[:num_keys]):
            raise TypeError(f"sort: random keys have no order, got {', '.join(map(str, avals))}")
        if not 0 <= dimension < avals[0].ndim:
            raise TypeError(
                f"sort of {avals[0]}: dimension must be in range({avals[0].ndim}), got {dimension}"
            )
        return avals

    # out = x[p], p the permutation that sorts  =>  out' = x'[p]
    def jvp_rule(self, primals, tangents, *, dimension, is_stable, num_keys):
        params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
        if all(map(is_zero, tangents)):
            outs = bind(self, primals, params)
            return outs, list(map(zero_tangent, outs))
        places = iota(dtypes.int32, aval_of(primals[0]).shape, dimension)
        *outs, places = bind(self, (*primals, places), params)
        return outs, [
            zero_tangent(out) if is_zero(t) else take_along_axis(t, places, dimension)
            for out, t in zip(outs, tangents, strict=True)
        ]

    def batch_rule(self, axis, operands, dims, *, dimension, is_stable, num_keys):
        d = dims[0]
        if any(other != d for other in dims):
            operands, d = [spread_at_front(axis, x, dim) for x, dim in zip(operands, dims, strict=True)], 0
        params = {"dimension": dimension + (dimension >= d), "is_stable": is_stable, "num_keys": num_keys}
        return bind(self, operands, params), [d] * len(operands)


class TopK(Primitive):
    """The k greatest elements along `axis`, greatest first, and where they stand; nan counts as greatest, ties by place."""

    multiple_results = True

    def type_rule(self, x, *, k, axis):
        if dtypes.is_complex(x.dtype) or dtypes.is_key(x.dtype):
            raise TypeError(f"top_k expects real numbers or bool, got {x}")
        if not 0 <= axis < x.ndim:
            raise TypeError(f"top_k of {x}: axis must be in range({x.ndim}), got {axis}")
        if not 0 <= k <= x.shape[axis]:
            raise ValueError(
                f"top_k of {x}: k must be from 0 to the {x.shape[axis]} elements of axis {axis}, got {k}"
            )
        if x.shape[axis] > dtypes.iinfo(dtypes.int32).max:
            raise ValueError(f"top_k of {x}: top_k returns int32 indices, which will overflow along axis {axis}; split it first")
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return shaped(shape, x.dtype, x.weak_type), shaped(shape, dtypes.int32)

    # values = x[i]  =>  values' = x'[i]
    def jvp_rule(self, primals, tangents, *, k, axis):
        values, indices = bind(self, primals, {"k": k, "axis": axis})
        (t,) = tangents
        moved = zero_tangent(values) if is_zero(t) else take_along_axis(t, indices, axis)
        return [values, indices], [moved, zero_tangent(indices)]

    def batch_rule(self, mapped, operands, dims, *, k, axis):
        (d,) = dims
        return bind(self, operands, {"k": k, "axis": axis + (axis >= d)}), [d, d]


sort_p = Sort("sort")
top_k_p = TopK("top_k")


def sort(operand, dimension: int = -1, is_stable: bool = True, num_keys: int = 1):
    """`operand`, an array or a sequence of arrays of one shape, in ascending order along `dimension`.

    Of a sequence the first `num_keys` are compared, the others are permuted with them; the result is then a tuple. Equal
    elements keep their order if `is_stable`.
    """
    several = isinstance(operand, tuple | list)
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("sort expects at least one operand, got an empty sequence")
    dimension = canonical_axis(dimension, aval_of(operands[0]), "sort")
    params = {"dimension": dimension, "is_stable": bool(is_stable), "num_keys": operator.index(num_keys)}
    outs = bind(sort_p, operands, params)
    return tuple(outs) if several else outs[0]


def top_k(x, k: int, axis: int = -1):
    """(values, indices): the `k` greatest elements of `x` along `axis`, greatest first, and where they stand (int32)."""
    axis = canonical_axis(axis, aval_of(x), "top_k")
    return tuple(bind(top_k_p, (x,), {"k": operator.index(k), "axis": axis}))
