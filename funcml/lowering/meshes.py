"""Meshes and shardings of the backend, by public names of jax; importing them starts no client.

    sharding_class : name -> the class of `jax.sharding`
    make_mesh      : lengths, names -> Mesh of the devices there are
"""

from __future__ import annotations

from typing import Any

__all__ = ["make_mesh", "sharding_class"]


def sharding_class(name: str) -> Any:
    """The class that `jax.sharding` calls `name`."""
    import jax

    return getattr(jax.sharding, name)


def make_mesh(axis_shapes: tuple, axis_names: tuple, axis_types: tuple | None, devices) -> Any:
    """A mesh of `devices` (None: all there are), its axes laid along the network."""
    import jax

    return jax.make_mesh(axis_shapes, axis_names, axis_types, devices=devices)
