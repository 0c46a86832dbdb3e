"""Systems whose matrix is known by its products with vectors."""

from funcml.scipy.sparse import linalg

__all__ = ["linalg"]
