"""What holds for every test: the CPU backend, checked programs, fixed seeds, a cache of its own."""

import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Kept in the repository between runs and shared by the workers of one run: the second run compiles little.
os.environ.setdefault("FUNCML_DISK_CACHE_DIR", str(Path(__file__).parent.parent / ".cache" / "programs"))

import hypothesis
import jax
import numpy as np
import pytest

import funcml
from funcml.core.config import config
from funcml.lowering.pjrt import map_pressure

hypothesis.settings.register_profile("funcml", deadline=None, derandomize=True)
hypothesis.settings.load_profile("funcml")


config.update("check_jaxprs", True)  # the output of every pass, in every test


def pytest_addoption(parser):
    parser.addoption("--programs", type=int, default=80, help="how many random programs tests/fuzz checks")


@pytest.fixture(autouse=True)
def _same_start():
    """Each test starts from the same settings and the same state of NumPy's global generator."""
    settings = config.values()
    np.random.seed(0)
    yield
    for name, value in settings.items():
        if getattr(config, name) != value:
            config.update(name, value)


@pytest.fixture(autouse=True, scope="module")
def _few_executables():
    """Gives back the executables of JAX, the oracle, which keeps each; a process that holds too many is killed (see pjrt)."""
    yield
    if map_pressure() > 0.3:
        funcml.clear_caches()
        jax.clear_caches()


@pytest.fixture
def rng():
    """A NumPy generator, the same for each test."""
    return np.random.default_rng(0)
