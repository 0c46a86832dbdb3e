"""Factorisations of batches of matrices, as primitives give them: strict about dtypes and shapes."""

from funcml.lax.linalg.spectral import eigh, svd
from funcml.primitives.linalg_spectral import EighImplementation, SvdAlgorithm

__all__ = ["EighImplementation", "SvdAlgorithm", "eigh", "svd"]
