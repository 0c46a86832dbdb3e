"""Annotations: the array types of funcml, and jaxtyping's, which check shapes and dtypes while tracing too.

>>> from funcml.typing import Array, Float, jaxtyped
>>> def scale(x: Float[Array, "batch dim"]) -> Float[Array, "batch dim"]:
...     return 2 * x
"""

from typing import Any

import numpy as np
from jaxtyping import (
    BFloat16,
    Bool,
    Complex,
    Complex64,
    Complex128,
    Float,
    Float16,
    Float32,
    Float64,
    Inexact,
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
    Integer,
    Key,
    Num,
    Real,
    Shaped,
    UInt,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    jaxtyped,
)

from funcml.core.values import Array

ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
DTypeLike = Any
PyTree = Any
Scalar = Shaped[Array, ""]
ScalarLike = Shaped[ArrayLike, ""]
PRNGKeyArray = Key[Array, ""] | UInt32[Array, "2"]

__all__ = [
    "Array",
    "ArrayLike",
    "BFloat16",
    "Bool",
    "Complex",
    "Complex128",
    "Complex64",
    "DTypeLike",
    "Float",
    "Float16",
    "Float32",
    "Float64",
    "Inexact",
    "Int",
    "Int16",
    "Int32",
    "Int64",
    "Int8",
    "Integer",
    "Key",
    "Num",
    "PRNGKeyArray",
    "PyTree",
    "Real",
    "Scalar",
    "ScalarLike",
    "Shaped",
    "UInt",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt8",
    "jaxtyped",
]
