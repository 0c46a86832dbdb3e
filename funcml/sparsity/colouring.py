"""Colours of the columns of a matrix: columns of one colour have no row in common, so one product gives them all.

    columns_coloured   : pattern -> colour of each column            first fit, the fullest columns first
    symmetric_coloured : pattern -> colours, hubs                    full columns of a symmetric matrix have their own

A. H. Gebremedhin, F. Manne, A. Pothen, What color is your Jacobian? SIAM Review 47 (2005).
"""

from __future__ import annotations

import numpy as np

from funcml.sparsity.patterns import Pattern

__all__ = ["columns_coloured", "symmetric_coloured"]


def columns_coloured(pattern: Pattern) -> tuple[np.ndarray, int]:
    """The colour of each column, -1 for an empty one; and the number of colours.

    >>> colours, n = columns_coloured(Pattern.of([0, 0, 1, 1, 2], [0, 1, 1, 2, 2], (3, 3)))
    >>> n
    2
    """
    n = pattern.shape[1]
    by_column = pattern.transposed()
    starts = np.searchsorted(by_column.keys, np.arange(n + 1, dtype=np.int64) * pattern.shape[0]).tolist()
    rows = by_column.columns.tolist()
    taken = [0] * pattern.shape[0]  # of each row: the colours of its columns, as bits
    colours = [-1] * n
    order = np.argsort(-np.diff(starts), kind="stable").tolist()
    for j in order:
        own = rows[starts[j] : starts[j + 1]]
        if not own:
            continue
        used = 0
        for r in own:
            used |= taken[r]
        free = ~used & (used + 1)  # the lowest bit that is not set
        colours[j] = free.bit_length() - 1
        for r in own:
            taken[r] |= free
    return np.asarray(colours, np.int32), max(colours, default=-1) + 1


def symmetric_coloured(pattern: Pattern) -> tuple[np.ndarray, int, np.ndarray]:
    """Colours of the columns of a symmetric matrix, their number, and the columns (hubs) with a colour of their own.

    An entry of a row or column that is a hub is read from the hub's product, so rows of hubs bind the other columns to nothing.
    As many of the fullest columns are hubs as make the sum of hubs and of the fullest row of the others least.
    """
    n = pattern.shape[1]
    filling = np.bincount(pattern.columns, minlength=n)
    order = np.argsort(-filling, kind="stable")
    fullest = np.append(filling[order], 0)
    count = int(np.argmin(np.arange(n + 1) + fullest))
    hubs = np.sort(order[:count])
    others = pattern.without_columns(hubs).transposed().without_columns(hubs)
    colours, used = columns_coloured(others)
    colours[hubs] = used + np.arange(count, dtype=np.int32)
    return colours, used + count, hubs
