"""Where arrays are: devices, and moving values to them and back."""

from __future__ import annotations

import numpy as np

from funcml import tree
from funcml.arguments import is_array_like
from funcml.core.errors import user_facing
from funcml.core.tracing import Tracer
from funcml.dtypes import is_key
from funcml.lowering import pjrt
from funcml.lowering.array import DeviceArray, asarray

__all__ = [
    "block_until_ready",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
]

devices = pjrt.devices
local_devices = pjrt.local_devices
default_backend = pjrt.default_backend
process_index = pjrt.process_index
process_count = pjrt.process_count


def device_count(backend: str | None = None) -> int:
    """How many devices there are, over all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has."""
    return len(local_devices(backend=backend))


@user_facing
def device_put(x, device=None):
    """The tree `x` with its leaves as arrays on `device` (by default, where they are or the default device).

    NumPy arrays keep their dtype, 64-bit ones too. Inside a trace a traced leaf stays as it is.

    >>> import funcml, numpy as np
    >>> funcml.device_put({"w": np.ones(2)})["w"].dtype
    dtype('float64')
    """
    return tree.map(lambda leaf: _put(leaf, device), x)


def _put(x, device):
    if isinstance(x, Tracer):
        return x
    if not is_array_like(x):
        raise TypeError(f"device_put expects arrays and numbers, got {x!r} of type {type(x).__name__}")
    return asarray(x, device=device)


@user_facing
def device_get(x):
    """The tree `x` with its arrays as NumPy arrays on the host; random keys, which NumPy does not know, stay what they are."""
    return tree.map(lambda leaf: np.asarray(leaf) if is_array_like(leaf) and not _holds_keys(leaf) else leaf, x)


def _holds_keys(leaf) -> bool:
    return isinstance(leaf, DeviceArray) and is_key(leaf.dtype)


@user_facing
def block_until_ready(x):
    """Waits until every array of the tree `x` has been computed; gives `x`."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, DeviceArray) or hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x
