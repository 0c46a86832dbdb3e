"""The type of every array value that a user holds, concrete or traced.

`Array` is what `isinstance(x, funcml.Array)` asks for. It has two subclasses: `core.tracing.Tracer` (a value
of a program being recorded) and `lowering.array.DeviceArray` (a buffer on a device). Both have an `aval`;
arithmetic, indexing and methods are installed on this class by `funcml.numpy.array_methods`.
"""

from __future__ import annotations

from funcml.core.avals import ShapedArray

__all__ = ["Array"]


class Array:
    """An immutable n-dimensional array on a device, or the trace of one.

    Attributes: `aval` (its abstract value), `shape`, `dtype`, `ndim`, `size`, `weak_type`.
    """

    __slots__ = ()
    __array_priority__ = 100
    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self):
        """The element type, an `np.dtype` (or a key dtype)."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype came from a Python scalar and gives way in promotion."""
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize
