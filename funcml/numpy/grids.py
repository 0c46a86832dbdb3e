"""Grids and index tricks: `mgrid[0:3]`, `r_[1:4, 0]`, `s_[::2]`.

    mgrid, ogrid : slices -> arrays of coordinates        r_, c_ : slices and arrays -> one array
"""

from __future__ import annotations

import numpy as np

from funcml.core.config import numpy_dtype_promotion
from funcml.core.values import Array
from funcml.numpy.arguments import concrete
from funcml.numpy.creation import arange, array, linspace, meshgrid
from funcml.numpy.joining import concatenate, stack
from funcml.numpy.manipulation import expand_dims
from funcml.numpy.promotion import as_array, promote_dtypes

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]


def _range(name: str, s: slice) -> Array:
    """start, start + step, ...; with a complex step, that many values from start to stop, both included."""
    if not isinstance(s, slice):
        raise TypeError(f"{name} expects slices, got {s!r} of type {type(s).__name__}")
    start, stop, step = (_bound(name, part, getattr(s, part)) for part in ("start", "stop", "step"))
    start, step = (0 if start is None else start), (1 if step is None else step)
    start, stop, step = (x.item() if isinstance(x, np.generic) else x for x in (start, stop, step))
    return linspace(start, stop, int(abs(step))) if isinstance(step, complex) else arange(start, stop, step)


def _bound(name: str, part: str, x):
    return None if x is None else concrete(name, f"slice {part} of jnp.{name}", x)[()]


class _Grid:
    """Coordinates of the grid that slices span."""

    def __init__(self, name: str, sparse: bool):
        self.name = name
        self.sparse = sparse
        self.__doc__ = _GRID_DOCS[name]

    def __getitem__(self, key):
        if isinstance(key, slice):
            return _range(self.name, key)
        ranges = [_range(self.name, s) for s in key]
        if not ranges:
            return [] if self.sparse else arange(0)
        with numpy_dtype_promotion("standard"):
            ranges = [as_array(x) for x in promote_dtypes(self.name, *ranges)]
        coordinates = meshgrid(*ranges, indexing="ij", sparse=self.sparse)
        return coordinates if self.sparse else stack(coordinates)

    def __repr__(self) -> str:
        return f"funcml.numpy.{self.name}"


_GRID_DOCS = {
    "mgrid": "`mgrid[a:b, c:d]`: the coordinates of each point of a grid, stacked in front. A complex step counts points.",
    "ogrid": "`ogrid[a:b, c:d]`: the coordinates of a grid as a list of thin arrays that broadcast.",
}

mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _Joiner:
    """Slices, numbers and arrays, joined along an axis."""

    def __init__(self, name: str, axis: int, ndmin: int, place: int, doc: str):
        self.name = name
        self.defaults = (axis, ndmin, place)
        self.__doc__ = doc

    def __getitem__(self, key) -> Array:
        items = key if isinstance(key, tuple) else (key,)
        axis, ndmin, place, matrix = *self.defaults, None
        if isinstance(items[0], str):
            axis, ndmin, place, matrix = self._directive(items[0])
            items = items[1:]
        out = concatenate([self._part(x, ndmin, place) for x in items], axis)
        return expand_dims(out, matrix) if matrix is not None and out.ndim == 1 else out

    def _directive(self, text: str):
        """(axis, least number of axes, where a part's own axes go, where a matrix gets its other axis) of a string."""
        if text in ("r", "c"):
            return *self.defaults, ("r", "c").index(text)
        try:
            numbers = [int(x) for x in text.split(",")[:3]]
        except ValueError:
            known = "'axis,ndmin,place', 'r' or 'c'"
            raise ValueError(f"{self.name}: could not understand directive {text!r}; write {known}") from None
        return *numbers, *self.defaults[len(numbers):], None

    def _part(self, x, ndmin: int, place: int) -> Array:
        if isinstance(x, str):
            raise ValueError(f"{self.name}: a string directive must be placed at the beginning, got {x!r}")
        part = _range(self.name, x) if isinstance(x, slice) else array(x, copy=False)
        new = ndmin - part.ndim
        if new <= 0:
            return part
        start = place + new + 1 if place < 0 else place
        if not 0 <= start <= new:
            raise ValueError(f"{self.name}: an array of {part.ndim} axes cannot stand at axis {place} of {ndmin} axes")
        return expand_dims(part, [*range(start), *range(start + part.ndim, ndmin)])

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"funcml.numpy.{self.name}"


r_ = _Joiner("r_", 0, 1, -1, "`r_[1:4, 0, x]`: slices as ranges, numbers and arrays, joined along the first axis.")
c_ = _Joiner("c_", -1, 2, 0, "`c_[x, y]`: slices as ranges, numbers and arrays as columns, joined along the last axis.")

s_ = np.s_
index_exp = np.index_exp
