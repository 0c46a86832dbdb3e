"""Matrices as the functions of this package take them.

    matrix_of : (name, x) -> Array [.., m, n] of floats or complex numbers; integers and bool become floats
    wide      : Array -> Array of a dtype that factorisations exist for; `narrow` takes results back
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.numpy.promotion import as_array, operand, promote_dtypes, to_inexact
from funcml.primitives import elementwise as ew
from funcml.primitives.matrices import MATRIX_DTYPES

__all__ = ["check_square", "matrix_of", "narrow", "pair_of", "wide"]


def matrix_of(name: str, x) -> Array:
    """`x` as floats or complex numbers; ValueError unless it has at least 2 axes."""
    x = as_array(to_inexact(name, operand(name, x)))
    if x.ndim < 2:
        raise ValueError(f"{name} expects matrices [.., m, n], got {x.aval}")
    return x


def check_square(name: str, x: Array) -> Array:
    """`x`; ValueError unless its matrices are square."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name} expects square matrices [.., n, n], got {x.aval}")
    return x


def pair_of(name: str, x, y) -> tuple[Array, Array]:
    """Both as floats or complex numbers of one dtype."""
    x, y = promote_dtypes(name, x, y, inexact=True)
    return as_array(x), as_array(y)


def wide(x):
    """`x`, or in place of floats narrower than 32 bits, f32."""
    return x if x.dtype in MATRIX_DTYPES else ew.convert(x, dtypes.float32)


def narrow(out, dtype):
    """A result for operands of this dtype: what `wide` made wider is made narrow again, real or complex."""
    if dtype in MATRIX_DTYPES or dtypes.is_complex(out.dtype):
        return out
    return ew.convert(out, dtype)
