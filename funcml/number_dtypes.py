"""The dtypes of numbers and bool, and of what has no derivative; which of them are of one kind."""

from __future__ import annotations

import ml_dtypes
import numpy as np

__all__ = [
    "COMPLEX", "FLOATS", "NUMERIC", "SIGNED", "SMALL_FLOATS", "UNSIGNED", "bfloat16", "bool_", "complex128",
    "complex64", "float0", "float16", "float32", "float4_e2m1fn", "float64", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "int16", "int2", "int32", "int4", "int64", "int8", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8",
]

bool_ = np.dtype(np.bool_)
int2 = np.dtype(ml_dtypes.int2)
int4 = np.dtype(ml_dtypes.int4)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint2 = np.dtype(ml_dtypes.uint2)
uint4 = np.dtype(ml_dtypes.uint4)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
float8_e3m4 = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e4m3b11fnuz = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)
float0 = np.dtype([("float0", np.void, 0)])

SIGNED = (int2, int4, int8, int16, int32, int64)
UNSIGNED = (uint2, uint4, uint8, uint16, uint32, uint64)
SMALL_FLOATS = (float4_e2m1fn, float8_e3m4, float8_e4m3, float8_e4m3fn, float8_e4m3fnuz, float8_e4m3b11fnuz,
                float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu)
FLOATS = (*SMALL_FLOATS, bfloat16, float16, float32, float64)
COMPLEX = (complex64, complex128)
NUMERIC = (*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)
