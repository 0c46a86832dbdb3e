"""Functions with the names and the meaning of SciPy's."""

from funcml.scipy import fft, linalg, ndimage, signal, special

__all__ = ["fft", "linalg", "ndimage", "signal", "special"]
