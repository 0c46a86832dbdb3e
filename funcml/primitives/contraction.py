"""Sums of products over pairs of axes: matrix products in every layout.

    dot_general : [batch.., free.., contracted..] x [batch.., free.., contracted..] -> [batch, lhs free, rhs free]

where the axes of each operand may stand in any order. The result is linear in each operand; all its derivatives are
again `dot_general`, with a permutation of axes behind it.
"""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.config import config, default_matmul_precision
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import canonical_axes, transpose
from funcml.primitives.bilinear import Bilinear
from funcml.primitives.elementwise import convert

__all__ = ["DotDimensions", "canonical_dimensions", "canonical_precision", "dot_general"]


class DotDimensions(NamedTuple):
    """((lhs contracted, rhs contracted), (lhs batch, rhs batch)): pairs of axes of equal length."""

    contract: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]]

    def free(self, side: int, ndim: int) -> tuple[int, ...]:
        """The axes of the operand on `side` (0: lhs, 1: rhs) that are neither contracted nor batched, in order."""
        used = {*self.contract[side], *self.batch[side]}
        return tuple([i for i in range(ndim) if i not in used])


# ---- precision ---------------------------------------------------------------------------------------------

_SAME_PRECISION = {
    "bfloat16": "default",
    "fastest": "default",
    "tensorfloat32": "high",
    "bfloat16_3x": "high",
    "float32": "highest",
}
_LEVELS = ("default", "high", "highest")
_ALGORITHMS = {name.lower(): name for name in default_matmul_precision.choices if name.isupper()}


def canonical_precision(precision):
    """A precision as parameters hold it: None, a level for each operand, or the name of a dot algorithm.

    Takes None (what `config.default_matmul_precision` says), 'default', 'high', 'highest' or another name that the setting
    knows, an enumeration member so named, or a pair of levels. Raises ValueError for anything else.

    >>> canonical_precision("float32"), canonical_precision("BF16_BF16_F32_X3")
    (('highest', 'highest'), 'BF16_BF16_F32_X3')
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, tuple | list) and len(precision) == 2:
        return (_level(precision[0], precision), _level(precision[1], precision))
    name = getattr(precision, "name", precision)
    algorithm = _ALGORITHMS.get(name.lower()) if isinstance(name, str) else None
    return algorithm or (_level(precision, precision),) * 2


def _level(precision, given) -> str:
    name = getattr(precision, "name", "default" if precision is None else precision)
    name = name.lower() if isinstance(name, str) else name
    name = _SAME_PRECISION.get(name, name)
    if name not in _LEVELS:
        known = ", ".join([*_LEVELS, *_SAME_PRECISION, *_ALGORITHMS.values()])
        raise ValueError(
            f"precision: expected None, one of {known}, or a pair of the levels {_LEVELS}; got {given!r}"
        )
    return name


# ---- dot_general -------------------------------------------------------------------------------------------


class DotGeneral(Bilinear):
    """out [batch, lhs free, rhs free] = sum over the contracted axes of lhs . rhs, in the dtype `preferred_element_type`.

    Parameters: `dimension_numbers` (a DotDimensions), `precision` (see `canonical_precision`), `preferred_element_type` (a
    dtype, or None for that of the operands).
    """

    def type_rule(self, lhs, rhs, *, dimension_numbers, precision, preferred_element_type):
        if lhs.dtype != rhs.dtype or not dtypes.is_numeric(lhs.dtype):
            raise TypeError(
                f"dot_general expects operands of one numeric dtype, got {lhs} and {rhs}; convert them first"
            )
        _check_dimensions(lhs, rhs, dimension_numbers)
        dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
        _check_preferred(lhs, dtype)
        left, right = dimension_numbers.free(0, lhs.ndim), dimension_numbers.free(1, rhs.ndim)
        shape = [lhs.shape[i] for i in (*dimension_numbers.batch[0], *left)] + [rhs.shape[i] for i in right]
        weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
        return shaped(tuple(shape), dtype, weak)

    # ct [batch, lhs free, rhs free]
    # ct_lhs = ct . rhs over rhs free    [batch, lhs free, contracted in the order of rhs], then in the order of lhs
    # ct_rhs = lhs . ct over lhs free    [batch, contracted in the order of lhs, rhs free], then in the order of rhs
    def cotangent(self, ct, aval, other, side, **params):
        return _cotangent(ct, aval, other, side, **params)

    # both mapped: one more batch axis, in front; one mapped: one more free axis of that operand
    def batch_rule(self, axis, operands, dims, *, dimension_numbers, **params):
        numbers = DotDimensions(
            *[
                tuple([_shifted(axes, d) for axes, d in zip(pair, dims, strict=True)])
                for pair in dimension_numbers
            ]
        )
        if None in dims:
            side = 0 if dims[1] is None else 1
            out_dim = len(numbers.batch[0]) + numbers.free(side, aval_of(operands[side]).ndim).index(
                dims[side]
            )
            if side == 1:
                out_dim += len(numbers.free(0, aval_of(operands[0]).ndim))
        else:
            numbers = numbers._replace(
                batch=tuple([(d, *axes) for d, axes in zip(dims, numbers.batch, strict=True)])
            )
            out_dim = 0
        return bind(self, operands, {"dimension_numbers": numbers, **params}), out_dim


def _shifted(axes, dim):
    return axes if dim is None else tuple([a + (a >= dim) for a in axes])


def _check_dimensions(lhs, rhs, numbers):
    for word, (left, right) in zip(("contracted", "batch"), numbers, strict=True):
        if len(left) != len(right) or [lhs.shape[i] for i in left] != [rhs.shape[j] for j in right]:
            raise TypeError(
                f"dot_general expects {word} axes of equal lengths, got axes {left} of {lhs} with lengths "
                f"{[lhs.shape[i] for i in left]} and axes {right} of {rhs} with lengths {[rhs.shape[j] for j in right]}"
            )


def _check_preferred(lhs, dtype):
    for is_kind in (dtypes.is_integer, dtypes.is_float, dtypes.is_complex):
        if is_kind(lhs.dtype) and is_kind(dtype) and dtypes.bit_width(dtype) >= dtypes.bit_width(lhs.dtype):
            return
    if dtypes.is_integer(lhs.dtype) and dtypes.is_float(dtype):
        return
    raise TypeError(
        f"dot_general: preferred_element_type must be of the kind of the operands ({lhs}) and not narrower, got {dtype}; "
        "convert the result with `.astype` instead"
    )


def _cotangent(ct, aval, y, side, *, dimension_numbers, precision, preferred_element_type):
    """The cotangent of the operand of type `aval` on `side`, the other one being `y`."""
    y_aval = aval_of(y)
    numbers, permutation = _cotangent_layout(dimension_numbers, side, aval.ndim, y_aval.ndim)
    y = convert(y, aval_of(ct).dtype)
    product = _bind_dot(*((ct, y) if side == 0 else (y, ct)), numbers, precision, None)
    return convert(transpose(product, permutation), aval.dtype, aval.weak_type)


@functools.lru_cache(maxsize=4096)
def _cotangent_layout(numbers: DotDimensions, side: int, x_ndim: int, y_ndim: int):
    """The dimension numbers of the product of ct and y, and the permutation that gives it the axes of x."""
    other = 1 - side
    x_free, y_free = numbers.free(side, x_ndim), numbers.free(other, y_ndim)
    batch_axes = tuple(range(len(numbers.batch[0])))
    first = len(batch_axes) if side == 1 else len(batch_axes) + len(x_free)
    ct_axes = tuple(range(first, first + len(y_free)))
    by_y = sorted(range(len(numbers.contract[other])), key=numbers.contract[other].__getitem__)
    contracted = [numbers.contract[side][k] for k in by_y]
    if side == 0:
        product_numbers = DotDimensions((ct_axes, y_free), (batch_axes, numbers.batch[other]))
        order = (*numbers.batch[side], *x_free, *contracted)
    else:
        product_numbers = DotDimensions((y_free, ct_axes), (numbers.batch[other], batch_axes))
        order = (*numbers.batch[side], *contracted, *x_free)
    return product_numbers, tuple(sorted(range(len(order)), key=order.__getitem__))


def _bind_dot(lhs, rhs, numbers, precision, preferred_element_type):
    params = {
        "dimension_numbers": numbers,
        "precision": precision,
        "preferred_element_type": preferred_element_type,
    }
    return bind(dot_general_p, (lhs, rhs), params)


dot_general_p = DotGeneral("dot_general")


def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None):
    """The product of `lhs` and `rhs` summed over pairs of axes, [batch, lhs free, rhs free].

    `dimension_numbers` is ((lhs contracted, rhs contracted), (lhs batch, rhs batch)), each a sequence of axes; a
    `DotDimensions` is taken as it is, in tuples of non-negative axes. Operands have one
    numeric dtype; the result has that dtype, or the wider `preferred_element_type` of the same kind in which it is then
    summed (int8 to int32, bfloat16 to float32). `precision` is read by `canonical_precision`. Raises TypeError for unequal
    dtypes or lengths, ValueError for axes that do not exist, occur twice, or an unknown precision.
    """
    numbers = dimension_numbers
    if type(numbers) is not DotDimensions:
        numbers = canonical_dimensions(aval_of(lhs), aval_of(rhs), numbers)
    preferred = None if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    return _bind_dot(lhs, rhs, numbers, canonical_precision(precision), preferred)


def canonical_dimensions(lhs, rhs, dimension_numbers) -> DotDimensions:
    """Dimension numbers of operands of these types, in tuples of non-negative ints."""
    try:
        (lc, rc), (lb, rb) = [
            [tuple(map(operator.index, axes)) for axes in pair] for pair in dimension_numbers
        ]
    except (TypeError, ValueError):
        raise TypeError(
            "dot_general: dimension_numbers must be ((lhs contracted, rhs contracted), (lhs batch, rhs batch)), each a "
            f"sequence of ints, got {dimension_numbers!r}"
        ) from None
    left = canonical_axes((*lc, *lb), lhs, "dot_general: the left operand")
    right = canonical_axes((*rc, *rb), rhs, "dot_general: the right operand")
    return DotDimensions((left[: len(lc)], right[: len(rc)]), (left[len(lc) :], right[len(rc) :]))
