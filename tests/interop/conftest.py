"""The oracle here is JAX; what it compiles is kept between runs, beside what funcml compiles."""

import os
from pathlib import Path

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def _kept_oracles():
    folder = Path(os.environ["FUNCML_DISK_CACHE_DIR"]).parent / "oracles"
    settings = {"jax_compilation_cache_dir": str(folder), "jax_persistent_cache_min_compile_time_secs": 0.2}
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
