"""The shape and dtype of an array, without the array."""

from __future__ import annotations

import numpy as np

from funcml.core.avals import shaped
from funcml.core.tracing import aval_of

__all__ = ["ShapeDtypeStruct"]


class ShapeDtypeStruct:
    """The shape and dtype of an array, without the array: what `eval_shape` gives, and `.lower` takes."""

    __slots__ = ("shape", "dtype", "weak_type")

    def __init__(self, shape, dtype, *, weak_type: bool = False):
        self.shape = tuple(shape)
        self.dtype = dtype if getattr(dtype, "kind", None) == "K" else np.dtype(dtype)
        self.weak_type = weak_type

    @classmethod
    def like(cls, x) -> ShapeDtypeStruct:
        """That of an array, a tracer, a NumPy value or a Python scalar.

        >>> ShapeDtypeStruct.like(np.ones((2, 3), np.float32))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        aval = aval_of(x)
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type)

    def update(self, *, shape=None, dtype=None, weak_type=None) -> ShapeDtypeStruct:
        """This one with another shape, dtype or weak type."""
        given = shape, dtype, weak_type
        held = self.shape, self.dtype, self.weak_type
        shape, dtype, weak = [old if new is None else new for old, new in zip(held, given, strict=True)]
        return ShapeDtypeStruct(shape, dtype, weak_type=weak)

    @property
    def aval(self):
        """The abstract value it describes."""
        return shaped(self.shape, self.dtype, self.weak_type)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"

    def __eq__(self, other) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self.aval is other.aval

    def __hash__(self) -> int:
        return hash(self.aval)
