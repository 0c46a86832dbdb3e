"""Functions with the names and the meaning of SciPy's."""

from funcml.scipy import fft, linalg, signal, special

__all__ = ["fft", "linalg", "signal", "special"]
