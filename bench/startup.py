"""What a fresh process waits for: the import, and the first call of a gradient with an empty and with a full disk cache.

    python bench/startup.py funcml        one such process: prints its stages in seconds, as JSON

Stages of the first call: import, start (the first array: jax is loaded and its client made), trace (to StableHLO), compile (or
load from disk), run. JAX takes part with its persistent compilation cache turned on, in a folder of its own.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator

from timing import Row, Sample, in_processes, median

__all__ = ["rows"]

STAGES = ("import", "start", "trace", "compile", "run")
_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def rows(quick: bool = False) -> Iterator[Row]:
    """The import, then the stages of cold and warm first calls."""
    yield from _imports(5 if quick else 15)
    yield from _first_calls(3 if quick else 7)


def _imports(rounds: int) -> Iterator[Row]:
    commands = {name: [sys.executable, "-c", _IMPORT.format(name)] for name in ("funcml", "jax")}
    in_processes(commands, 1, _environment())
    found = {name: _sample(seconds) for name, seconds in in_processes(commands, rounds, _environment()).items()}
    yield Row("import", "import funcml", found["funcml"], "a budget of 0.3 s", Sample(0.3, 1), goal=1.0)
    yield Row("import", "import funcml", found["funcml"], "import jax", found["jax"])


def _sample(seconds: list[float]) -> Sample:
    return Sample(median(seconds), len(seconds))


def _first_calls(rounds: int) -> Iterator[Row]:
    cold: dict[str, list] = {"funcml": [], "JAX": []}
    warm: dict[str, list] = {"funcml": [], "JAX": []}
    commands = {
        "funcml": [sys.executable, __file__, "funcml"],
        "JAX": [sys.executable, __file__, "jax"],
    }
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for found in (cold, warm):
                for name, printed in in_processes(commands, 1, _with_caches(folder)).items():
                    found[name] += printed
    for stage in (*STAGES, "whole"):
        ours = {name: _sample([p[stage] for p in found["funcml"]]) for name, found in (("cold", cold), ("warm", warm))}
        theirs = {name: _sample([p[stage] for p in found["JAX"]]) for name, found in (("cold", cold), ("warm", warm))}
        for state in ("cold", "warm"):
            yield Row("first call in a process", f"{stage}, {state} cache", ours[state], "JAX", theirs[state])
        if stage == "compile":
            yield Row("first call in a process", "compile, warm cache", ours["warm"], "cold cache", ours["cold"], goal=10.0)


def _environment() -> dict[str, str]:
    """This process's environment, with bytecode kept as it is on a machine where nobody forbade it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _with_caches(folder: str) -> dict[str, str]:
    return {
        **_environment(),
        "FUNCML_DISK_CACHE_DIR": os.path.join(folder, "funcml"),
        "JAX_COMPILATION_CACHE_DIR": os.path.join(folder, "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


# ---- inside the fresh process --------------------------------------------------------------------------------------


def _first_call(library: str) -> dict[str, float]:
    """Seconds of each stage of the gradient of an MLP, and of the whole."""
    import models

    inputs = models.mlp_inputs(layers=6)
    times = [time.perf_counter()]

    def tick():
        times.append(time.perf_counter())

    if library == "funcml":
        import funcml as lib
        import funcml.numpy as np
    else:
        import jax as lib
        import jax.numpy as np
    tick()
    np.asarray(1.0)
    tick()
    arrays = lib.tree.map(np.asarray, inputs)
    lowered = lib.jit(lib.value_and_grad(lambda *args: models.mlp(np, *args))).lower(*arrays)
    tick()
    compiled = lowered.compile()
    tick()
    float(compiled(*arrays)[0])
    tick()
    stages = dict(zip(STAGES, [b - a for a, b in zip(times, times[1:])]))
    return {**stages, "whole": times[-1] - times[0]}


if __name__ == "__main__":
    print(json.dumps(_first_call(sys.argv[1])))
