"""What is known of a value before it is computed: its shape, dtype and weak type.

    shaped : (shape, dtype, weak_type) -> ShapedArray

Avals are interned: two that are equal are the same object, so they hash and compare by identity and
may stand in every cache key of the system at no cost.
"""

from __future__ import annotations

import math

__all__ = ["ShapedArray", "dtype_text", "shaped"]

_KIND_LETTER = {"f": "f", "i": "i", "u": "u", "c": "c"}


def dtype_text(dtype) -> str:
    """The short name of a dtype in IR notation: `f32`, `bf16`, `i8`, `c64`, `bool`, `key<fry>`.

    >>> import numpy as np
    >>> dtype_text(np.dtype("float32")), dtype_text(np.dtype("bool"))
    ('f32', 'bool')
    """
    text = _dtype_texts.get(dtype)
    if text is None:
        text = _dtype_texts[dtype] = _spell(dtype)
    return text


_dtype_texts: dict = {}


def _spell(dtype) -> str:
    name = dtype.name
    kind = getattr(dtype, "kind", "")
    if name == "bool" or kind == "K":
        return name
    if getattr(dtype, "names", None) == ("float0",):
        return "float0"
    if name == "bfloat16":
        return "bf16"
    if name.startswith("float8_") or name.startswith("float4_") or name.startswith("float6_"):
        return "f" + name[5:]
    for long, short in (("uint", "u"), ("int", "i")):
        if name.startswith(long):
            return short + name[len(long) :]
    if kind in _KIND_LETTER:
        return f"{_KIND_LETTER[kind]}{dtype.itemsize * 8}"
    return name


class ShapedArray:
    """An abstract array. Make it with `shaped`, never with the constructor: equality is identity."""

    __slots__ = ("shape", "dtype", "weak_type", "ndim", "size", "_text", "__weakref__")

    def __init__(self, shape: tuple[int, ...], dtype, weak_type: bool):
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type
        self.ndim = len(shape)
        self.size = math.prod(shape)
        self._text = f"{dtype_text(dtype)}[{','.join(map(str, shape))}]"

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text + ("{weak}" if self.weak_type else "")

    def __reduce__(self):
        return shaped, (self.shape, self.dtype, self.weak_type)

    def update(self, **changes) -> ShapedArray:
        """The same aval with `shape=`, `dtype=` or `weak_type=` replaced."""
        return shaped(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
        )

    def strong(self) -> ShapedArray:
        """The same aval without its weak type."""
        return shaped(self.shape, self.dtype) if self.weak_type else self


_interned: dict[tuple, ShapedArray] = {}


def shaped(shape: tuple[int, ...], dtype, weak_type: bool = False) -> ShapedArray:
    """The one aval of this shape (a tuple of ints), dtype (an `np.dtype` or key dtype) and weak type.

    >>> import numpy as np
    >>> shaped((3, 4), np.dtype("float32")) is shaped((3, 4), np.dtype("float32"))
    True
    """
    key = (shape, dtype, weak_type)
    aval = _interned.get(key)
    if aval is None:
        aval = _interned.setdefault(key, ShapedArray(tuple(map(int, shape)), dtype, bool(weak_type)))
    return aval
