"""Factorisations of batches of matrices, as primitives give them: strict about dtypes and shapes."""

__all__: list[str] = []
