"""`SparseMatrix`: the values at the places of a pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcml import numpy as jnp
from funcml.core.registry import on_load, register_pytree_node_class
from funcml.sparsity.patterns import Pattern

__all__ = ["SparseMatrix"]


class SparseMatrix:
    """A matrix by its entries: `data[k]` stands in row `rows[k]` and column `columns[k]`; in row-major order, each place once.

    It is a tree with the leaf `data`; places are known, NumPy's. For SciPy:
    `scipy.sparse.coo_array((m.data, (m.rows, m.columns)), shape=m.shape)`.

    >>> import funcml.numpy as jnp
    >>> SparseMatrix(jnp.float32([1, 2]), Pattern.of([0, 1], [1, 0], (2, 2))).todense().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """

    __slots__ = ("data", "pattern")

    def __init__(self, data: Any, pattern: Pattern):
        self.data, self.pattern = data, pattern

    @property
    def rows(self) -> np.ndarray:
        """The row of each entry."""
        return self.pattern.rows

    @property
    def columns(self) -> np.ndarray:
        """The column of each entry."""
        return self.pattern.columns

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.pattern.nnz

    def todense(self):
        """The array with all its zeros."""
        return jnp.zeros(self.shape, self.data.dtype).at[self.rows, self.columns].set(self.data)

    def __matmul__(self, vector):
        """The product with a vector."""
        terms = self.data * jnp.asarray(vector)[self.columns]
        return jnp.zeros(self.shape[0], terms.dtype).at[self.rows].add(terms)

    def __repr__(self) -> str:
        return f"SparseMatrix({self.data.dtype}, {self.nnz} entries of {self.shape[0]} x {self.shape[1]})"

    def tree_flatten(self):
        """The values, and where they stand."""
        return (self.data,), self.pattern

    @classmethod
    def tree_unflatten(cls, pattern, children):
        """The inverse of `tree_flatten`."""
        return cls(children[0], pattern)


on_load(lambda: register_pytree_node_class(SparseMatrix))
