"""What functions of `lax` take: arrays of exactly the right dtypes, and Python numbers that fit beside them.

    array    : (name, x) -> Array
    matched  : (name, x, y, ..) -> operands of one dtype; shapes may differ by lengths of 1, and scalars are spread
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.avals import dtype_text
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.numpy.promotion import PYTHON_SCALARS, as_array, match_scalar, operand, operands, spread

__all__ = ["array", "matched", "unsharded"]


def array(name: str, x) -> Array:
    """`x` as an Array; TypeError for what is no array or number."""
    return x if isinstance(x, Array) else as_array(operand(f"lax.{name}", x))


def matched(name: str, *xs) -> list:
    """Operands of an elementwise operation, checked to have one dtype and shapes that fit.

    A Python number takes the dtype of the arrays beside it, if promotion would give it that; a float beside integers is an
    error, and so are two Python numbers of different types.
    """
    values = operands(f"lax.{name}", xs)
    arrays = [x for x in values if type(x) not in PYTHON_SCALARS]
    if not arrays:
        if len({type(x) for x in values}) > 1:
            raise TypeError(_dtypes_differ(name, values))
        return values
    aval = aval_of(arrays[0])
    fitting = [_beside(name, aval, x, values) if type(x) in PYTHON_SCALARS else x for x in values]
    shapes = [aval_of(x).shape for x in arrays]
    if all(s == shapes[0] for s in shapes):
        return fitting
    shape = _common_shape(name, [s for s in shapes if s], arrays)
    return [spread(x, shape) if isinstance(x, Array | np.ndarray) else x for x in fitting]


def _beside(name, aval, x, xs):
    found = match_scalar(aval, x)
    if found is None:
        raise TypeError(_dtypes_differ(name, xs))
    return found


def _dtypes_differ(name, xs) -> str:
    found = ", ".join(dtype_text(dtypes.dtype_of(x)[0]) for x in xs)
    return (
        f"lax.{name} requires arguments to have the same dtypes, got {found}; convert them, or use funcml.numpy, which promotes"
    )


def _common_shape(name, shapes, arrays) -> tuple[int, ...]:
    fits = len({len(s) for s in shapes}) == 1 and all(len({*lengths} - {1}) <= 1 for lengths in zip(*shapes, strict=True))
    if not fits:
        found = ", ".join(str(aval_of(x)) for x in arrays)
        raise TypeError(
            f"lax.{name} expects operands of one rank, and of equal lengths or length 1, got {found}; broadcast them, or use "
            "the function of funcml.numpy, which does"
        )
    return tuple([next((n for n in lengths if n != 1), 1) for lengths in zip(*shapes, strict=True)])


def unsharded(name: str, out_sharding) -> None:
    """Raises for the argument `out_sharding`, which is not taken where an array is made."""
    if out_sharding is not None:
        raise NotImplementedError(f"lax.{name}: out_sharding must be None; place the result with device_put, got {out_sharding}")
