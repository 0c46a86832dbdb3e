"""Functions with the names and the meaning of SciPy's."""

from funcml.scipy import linalg, special

__all__ = ["linalg", "special"]
