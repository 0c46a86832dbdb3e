"""What the array API standard asks of a namespace about itself: its version, dtypes, devices and capabilities."""

from __future__ import annotations

from typing import Any

from funcml import dtypes
from funcml.lowering import pjrt

__all__ = ["VERSION", "ArrayNamespaceInfo"]

VERSION = "2024.12"

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_UNIONS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


class ArrayNamespaceInfo:
    """Answers to the questions of the array API standard, as of `__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """What works outside of `jit`; under it a shape must not depend on values. 64 axes are what XLA can do."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """The device of arrays that are made without saying where."""
        return pjrt.default_device()

    def devices(self) -> list:
        """The devices of this process."""
        return list(pjrt.local_devices())

    def default_dtypes(self, *, device=None) -> dict[str, Any]:
        """The dtypes of what is made without saying which; the same on every device."""
        return {
            "real floating": dtypes.default_float(),
            "complex floating": dtypes.default_complex(),
            "integral": dtypes.default_int(),
            "indexing": dtypes.default_int(),
        }

    def dtypes(self, *, device=None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The dtypes of the standard by name, of one kind, of several, or all; the same on every device.

        >>> sorted(ArrayNamespaceInfo().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        kinds = tuple(_KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in _KINDS and k not in _UNIONS]
        if unknown:
            raise ValueError(f"dtypes: kind must be one of {', '.join(map(repr, [*_KINDS, *_UNIONS]))}, got {unknown[0]!r}")
        single = [one for k in kinds for one in _UNIONS.get(k, (k,))]
        return {name: dtypes.canonical(name) for k in single for name in _KINDS[k]}
