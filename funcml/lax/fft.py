"""Fourier transforms under `lax`'s name: the primitive, and the conversion of its operand."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.lax.operands import array
from funcml.primitives import elementwise as ew
from funcml.primitives import fft as primitive
from funcml.primitives.fft import FftType

__all__ = ["FftType", "fft"]


def fft(x, fft_type: FftType | str, fft_lengths) -> Array:
    """The discrete Fourier transform of `x` over its last `len(fft_lengths)` axes.

    `fft_type` is a FftType or its name; `fft_lengths` are the lengths of the signal: those of the input, for IRFFT those of the
    result. RFFT takes real numbers [.., n] to [.., n // 2 + 1], IRFFT the other way; these lengths are checked
    (ValueError), nothing is cut or padded. The inverse transforms divide by the number of elements.

    >>> import numpy as np
    >>> fft(np.ones(4, "float32"), "RFFT", (4,))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    fft_type = _type_of(fft_type)
    x = array("fft", x)
    if fft_type is FftType.RFFT:
        if dtypes.is_complex(x.dtype):
            raise ValueError(f"lax.fft: RFFT takes real numbers only, got {x.aval}; use FFT")
        x = ew.convert(x, dtypes.inexact_dtype(x.dtype))
    else:
        x = ew.convert(x, dtypes.complex_dtype(dtypes.inexact_dtype(x.dtype)))
    return primitive.fft(x, fft_type, tuple(fft_lengths))


def _type_of(fft_type) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    if not isinstance(fft_type, str):
        raise TypeError(f"lax.fft expects a FftType or its name as fft_type, got {fft_type!r}")
    if fft_type.upper() not in FftType.__members__:
        raise ValueError(f"lax.fft: fft_type must be one of {', '.join(FftType.__members__)}, got {fft_type!r}")
    return FftType[fft_type.upper()]
