"""The dtypes under their names: `float32` is what a dtype argument takes, and called it makes an array of that dtype."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.numpy.creation import array

__all__ = ["DefaultType", "ScalarType", "scalar_types"]


class ScalarType:
    """A dtype that can be called: `float32(x)` is `array(x, float32)`. It equals the `np.dtype` that it names.

    >>> import numpy as np
    >>> ScalarType(np.dtype("int8"))(3)
    Array(3, dtype=int8)
    """

    def __init__(self, dtype):
        self.dtype = dtype
        self.__name__ = dtype.name
        self.__doc__ = f"The dtype {dtype.name}; called, it makes an array of that dtype."

    def __call__(self, x=0) -> Array:
        return array(x, self.dtype)

    def __eq__(self, other) -> bool:
        if isinstance(other, ScalarType):
            return self.dtype == other.dtype
        try:
            return self.dtype == other
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"funcml.numpy.{self.__name__}"


class DefaultType(ScalarType):
    """The dtype that Python's numbers of one type have by default: of 32 bits, or 64 under `config.enable_x64`."""

    def __init__(self, name: str, find):
        self.find = find
        self.__name__ = name
        self.__doc__ = f"The default dtype of its kind: {name[:-1]}32, or {name[:-1]}64 under `config.enable_x64`."

    @property
    def dtype(self):
        """The dtype now."""
        return self.find()

    __hash__ = object.__hash__


def scalar_types() -> dict[str, ScalarType]:
    """name -> scalar type, for every dtype with a name of its own."""
    return {name: ScalarType(dtype) for name, dtype in dtypes.SCALAR_TYPES}
