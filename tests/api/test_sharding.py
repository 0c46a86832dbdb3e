"""Meshes and shardings are those of the backend, and arrays go where one over a single device says."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import funcml
from funcml import sharding
from funcml.sharding import NamedSharding, PartitionSpec


@pytest.mark.parametrize("name", [n for n in sharding.__all__ if n != "make_mesh"])
def test_the_classes_are_those_of_the_backend(name):
    assert getattr(sharding, name) is getattr(jax.sharding, name)


def test_other_names_are_no_attributes():
    with pytest.raises(AttributeError, match="NoSharding"):
        _ = sharding.NoSharding


def test_an_array_goes_to_the_device_of_a_mesh_of_one():
    mesh = funcml.make_mesh((1,), ("x",), (sharding.AxisType.Auto,), devices=jax.devices()[-1:])
    x = funcml.device_put(np.arange(3.0), NamedSharding(mesh, PartitionSpec("x")))
    assert x.dtype == np.float64 and x.devices() == set(jax.devices()[-1:])


@pytest.mark.parametrize("shape, names, words", [
    ((1,), ("x", "y"), "a name for each axis"),
    ((1 << 20,), ("x",), "devices"),
])  # fmt: skip
def test_meshes_that_cannot_be(shape, names, words):
    with pytest.raises(ValueError, match=words):
        funcml.make_mesh(shape, names)


def test_a_sharding_over_two_devices_is_refused():
    program = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"
import numpy as np, funcml
from funcml.sharding import NamedSharding, PartitionSpec
mesh = funcml.make_mesh((2,), ("x",))
try:
    funcml.device_put(np.arange(4.0), NamedSharding(mesh, PartitionSpec("x")))
except ValueError as error:
    assert "a sharding over one device" in str(error), error
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n", done.stderr
