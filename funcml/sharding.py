"""Where arrays are, in the words of `jax.sharding`: meshes of devices, and how an array lies over one.

    Mesh, AbstractMesh, AxisType                       devices with named axes
    PartitionSpec                                      which axis of an array goes over which axis of a mesh
    NamedSharding, SingleDeviceSharding, Sharding      where an array lies: `x.sharding`, and what `device_put` takes

The classes are those of the backend, so that arrays and meshes can be handed to and fro; they are imported at first use. Programs
run on one device: `device_put` takes a sharding over one device, and refuses one over several.

>>> import funcml, funcml.numpy as jnp
>>> mesh = funcml.make_mesh((1,), ("x",), devices=funcml.devices()[:1])
>>> one = funcml.sharding.NamedSharding(mesh, funcml.sharding.PartitionSpec("x"))
>>> funcml.device_put(jnp.arange(3), one).sharding.device_set == one.device_set
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from funcml.core.errors import user_facing
from funcml.lowering import meshes

if TYPE_CHECKING:
    from jax.sharding import (
        AbstractMesh,
        AxisType,
        Mesh,
        NamedSharding,
        PartitionSpec,
        Sharding,
        SingleDeviceSharding,
    )

__all__ = [
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "make_mesh",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return meshes.sharding_class(name)


@user_facing
def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence | None = None,
) -> Mesh:
    """A mesh of devices with named axes of these lengths, its axes laid along the network where there is one.

    ValueError where there are fewer devices than the mesh needs, or another number of names than of lengths.

    >>> import funcml
    >>> dict(funcml.make_mesh((1, 1), ("x", "y"), devices=funcml.devices()[:1]).shape)
    {'x': 1, 'y': 1}
    """
    if len(axis_shapes) != len(axis_names):
        raise ValueError(f"make_mesh: expected a name for each axis, got lengths {tuple(axis_shapes)} and names "
                         f"{tuple(axis_names)}")
    return meshes.make_mesh(tuple(axis_shapes), tuple(axis_names), axis_types, devices)
