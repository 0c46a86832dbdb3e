"""Which inputs each element of a value depends on: sets of pairs (row, column), kept as sorted numbers.

    Pattern : rows = elements of a value in row-major order, columns = elements of the input
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

__all__ = ["MAX_ENTRIES", "Pattern"]

#: the largest pattern that is worked out: beyond it a matrix is not sparse
MAX_ENTRIES = 100_000_000


class Pattern:
    """The places of a matrix that may be other than zero.

    >>> p = Pattern.of([0, 2], [1, 1], (3, 4))
    >>> p.rows.tolist(), p.columns.tolist(), p.shape
    ([0, 2], [1, 1], (3, 4))
    """

    __slots__ = ("keys", "shape")

    def __init__(self, keys: np.ndarray, shape: tuple[int, int]):
        self.keys, self.shape = keys, shape

    def __eq__(self, other) -> bool:
        return isinstance(other, Pattern) and self.shape == other.shape and np.array_equal(self.keys, other.keys)

    def __hash__(self) -> int:
        return hash((self.shape, self.keys.tobytes()))

    def __repr__(self) -> str:
        return f"Pattern({self.nnz} places of {self.shape[0]} x {self.shape[1]})"

    @staticmethod
    def of(rows, columns, shape: tuple[int, int]) -> Pattern:
        """The pattern of these places, each as often as one likes."""
        keys = np.asarray(rows, np.int64) * shape[1] + np.asarray(columns, np.int64)
        return Pattern(np.unique(keys), shape)

    @staticmethod
    def identity(n: int) -> Pattern:
        """Each element depends on itself."""
        return Pattern(np.arange(n, dtype=np.int64) * (n + 1), (n, n))

    @staticmethod
    def empty(size: int, n: int) -> Pattern:
        """Nothing depends on anything."""
        return Pattern(np.zeros(0, np.int64), (size, n))

    @property
    def rows(self) -> np.ndarray:
        """The row of each place, in order."""
        return self.keys // max(self.shape[1], 1)

    @property
    def columns(self) -> np.ndarray:
        """The column of each place."""
        return self.keys % max(self.shape[1], 1)

    @property
    def nnz(self) -> int:
        """The number of places."""
        return self.keys.size

    def take(self, rows: np.ndarray) -> Pattern:
        """Row i of the result is row `rows[i]` of this; none where that is negative."""
        return self.gathered(np.arange(rows.size), rows.reshape(-1), rows.size)

    def gathered(self, to: np.ndarray, rows: np.ndarray, size: int) -> Pattern:
        """Row `to[i]` of the result takes in row `rows[i]` of this, for each i where that is not negative."""
        live = rows >= 0
        to, rows = to[live], rows[live]
        starts = np.searchsorted(self.keys, np.arange(self.shape[0] + 1, dtype=np.int64) * self.shape[1])
        counts = (starts[1:] - starts[:-1])[rows]
        total = int(counts.sum())
        _check_size(total)
        ends = np.cumsum(counts)
        places = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(starts[:-1][rows], counts)
        return Pattern.of(np.repeat(to, counts), self.columns[places], (size, self.shape[1]))

    def merged(self, group: np.ndarray, size: int) -> Pattern:
        """Row g of the result takes in all rows i with `group[i]` = g."""
        return Pattern.of(group.reshape(-1)[self.rows], self.columns, (size, self.shape[1]))

    def everywhere(self, size: int) -> Pattern:
        """Each of `size` rows takes in all rows of this."""
        columns = np.unique(self.columns)
        _check_size(size * columns.size)
        keys = np.arange(size, dtype=np.int64)[:, None] * self.shape[1] + columns[None]
        return Pattern(keys.reshape(-1), (size, self.shape[1]))

    def transposed(self) -> Pattern:
        """Rows and columns exchanged."""
        return Pattern.of(self.columns, self.rows, self.shape[::-1])

    def without_columns(self, columns: Sequence[int] | np.ndarray) -> Pattern:
        """The places in other columns than these."""
        return Pattern(self.keys[~np.isin(self.columns, columns)], self.shape)

    @staticmethod
    def union(patterns: Iterable[Pattern]) -> Pattern:
        """The places of any of these, which have one shape."""
        first, *others = patterns
        if not others:
            return first
        return Pattern(np.unique(np.concatenate([first.keys, *[p.keys for p in others]])), first.shape)


def _check_size(entries: int) -> None:
    if entries > MAX_ENTRIES:
        raise ValueError(
            f"a pattern of {entries} places is not sparse: some operation lets (nearly) every element depend on every other; use "
            "`jacfwd`, `jacrev` or `hessian` with chunk_size=, or give the pattern as sparsity="
        )
