"""Random indices: each a function of a seeded generator and a shape, so that every run tries the same ones."""

from __future__ import annotations

import numpy as np


def random_slice(rng, n: int) -> slice:
    def bound():
        return None if rng.random() < 0.4 else int(rng.integers(-n - 2, n + 3))

    step = [None, 1, 2, 3, -1, -2][rng.integers(6)]
    return slice(bound(), bound(), step)


def random_index(rng, shape, arrays: bool = True):
    """An index of an array of this shape: ints, slices, None, an ellipsis, integer and boolean arrays."""
    rows = tuple(map(int, rng.integers(1, 4, size=rng.integers(1, 3))))
    items: list = []
    axis, stop = 0, int(rng.integers(0, len(shape) + 1))
    while axis < stop:
        kind = rng.random()
        n = shape[axis]
        if kind < 0.3 or n == 0:
            items.append(random_slice(rng, n))
        elif kind < 0.5:
            items.append(int(rng.integers(-n, n)))
        elif kind < 0.6:
            items.append(None)
            continue
        elif kind < 0.85 and arrays:
            kept = [1 if rng.random() < 0.2 else m for m in rows[int(rng.integers(0, len(rows))) :]]
            items.append(rng.integers(-n, n, size=kept))
        elif kind < 0.95 and arrays and rows[-1] <= n:
            mask = np.zeros(n, bool)
            mask[rng.permutation(n)[: rows[-1]]] = True
            items.append(mask)
        else:
            items.append(slice(None))
        axis += 1
    if rng.random() < 0.3:
        items.insert(int(rng.integers(0, len(items) + 1)), Ellipsis)
        if rng.random() < 0.5:
            items.append(None)
    if arrays and rng.random() < 0.05:
        items.insert(0, True)
    return items[0] if len(items) == 1 and rng.random() < 0.5 else tuple(items)


def cases(seed: int, count: int, arrays: bool = True):
    """(shape, index) pairs, each valid for NumPy."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        shape = tuple(map(int, rng.choice([0, 1, 2, 3, 4, 5], p=[0.03, 0.12, 0.2, 0.25, 0.2, 0.2], size=rng.integers(1, 5))))
        index = random_index(rng, shape, arrays)
        try:
            np.zeros(shape)[index]
        except IndexError:
            continue
        found.append((shape, index))
    return found
