"""Functions called outside `jit`, from their second call on: operations, indexing, and the transforms.

Arrays are small, so that what is measured is the library and not the arithmetic. If torch is installed, its `torch.func`
runs the same function.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

import jax
import jax.numpy
import models
import numpy
from timing import Row, interleaved

import funcml
import funcml.numpy

__all__ = ["rows"]

# name: function of (np, x [8,8], y [8,8], mask [8,8])
_OPERATIONS: dict[str, Callable] = {
    "x + y": lambda np, x, y, mask: x + y,
    "x * 2.0": lambda np, x, y, mask: x * 2.0,
    "x < y": lambda np, x, y, mask: x < y,
    "-x": lambda np, x, y, mask: -x,
    "x + row": lambda np, x, y, mask: x + y[0],
    "sin(x)": lambda np, x, y, mask: np.sin(x),
    "sum(x)": lambda np, x, y, mask: np.sum(x),
    "sum(x, axis=0)": lambda np, x, y, mask: np.sum(x, axis=0),
    "mean(x)": lambda np, x, y, mask: np.mean(x),
    "x @ y": lambda np, x, y, mask: x @ y,
    "matmul(x, y)": lambda np, x, y, mask: np.matmul(x, y),
    "reshape(x, 64)": lambda np, x, y, mask: np.reshape(x, (64,)),
    "x.T": lambda np, x, y, mask: x.T,
    "where(mask, x, y)": lambda np, x, y, mask: np.where(mask, x, y),
    "concatenate([x, y])": lambda np, x, y, mask: np.concatenate([x, y]),
    "zeros((8, 8))": lambda np, x, y, mask: np.zeros((8, 8)),
    "asarray(1.0)": lambda np, x, y, mask: np.asarray(1.0),
}
_INDEXING: dict[str, Callable] = {
    "x[0]": lambda np, x, y, mask: x[0],
    "x[2:5]": lambda np, x, y, mask: x[2:5],
    "x[:, None]": lambda np, x, y, mask: x[:, None],
    "x[i] (i an array)": lambda np, x, y, mask: x[y[0].astype("int32")],
    "x.at[0].set(1.0)": lambda np, x, y, mask: x.at[0].set(1.0),
}


def rows(quick: bool = False) -> Iterator[Row]:
    """A row an operation, and a row a transform of the function of 30 operations."""
    rounds = 9 if quick else 51
    for section, operations in (("eager operation", _OPERATIONS), ("eager indexing", _INDEXING)):
        for name, operation in operations.items():
            ours, theirs = _bound(operation, funcml.numpy), _bound(operation, jax.numpy)
            found = interleaved({"funcml": ours, "JAX": theirs}, rounds=rounds, calls=50, finish=_wait)
            yield Row(section, name, found["funcml"], "JAX", found["JAX"], goal=1.0)
    yield from _transforms(rounds)


def _bound(operation: Callable, np) -> Callable[[], object]:
    values = numpy.random.default_rng(0).uniform(0.0, 8.0, (2, 8, 8)).astype("float32")
    x, y = np.asarray(values[0]), np.asarray(values[1])
    mask = np.asarray(values[0] > values[1])
    return lambda: operation(np, x, y, mask)


def _wait(result) -> None:
    if hasattr(result, "block_until_ready"):
        result.block_until_ready()


# ---- transforms --------------------------------------------------------------------------------------------------

_TRANSFORMS = {
    "grad": lambda lib, f: lib.grad(f),
    "value_and_grad": lambda lib, f: lib.value_and_grad(f),
    "vmap": lambda lib, f: lib.vmap(f),
    "vmap(grad)": lambda lib, f: lib.vmap(lib.grad(f)),
    "jvp": lambda lib, f: lambda x: lib.jvp(f, (x,), (x,))[1],
    "grad(grad)": lambda lib, f: lib.grad(lambda x: lib.grad(f)(x)[0]),
}
_GOALS = {"grad": 20.0, "value_and_grad": 20.0}


def _transforms(rounds: int) -> Iterator[Row]:
    values = numpy.linspace(0.1, 1.0, 100, dtype="float32")
    batch = numpy.linspace(0.1, 1.0, 800, dtype="float32").reshape(8, 100)
    libraries = {"funcml": (funcml, funcml.numpy), "JAX": (jax, jax.numpy)}
    for name, transform in _TRANSFORMS.items():
        contestants = {
            library: _transformed(transform, lib, np, batch if "vmap" in name else values)
            for library, (lib, np) in libraries.items()
        }
        if importlib.util.find_spec("torch") is not None and name in ("grad", "vmap", "vmap(grad)"):
            contestants["torch.func"] = _torch(transform, batch if "vmap" in name else values)
        found = interleaved(contestants, rounds=rounds, finish=_wait_first)
        for peer in list(found)[1:]:
            goal = _GOALS.get(name) if peer == "JAX" else 1.0 if name == "grad" else None
            yield Row("eager transform of 30 operations", name, found["funcml"], peer, found[peer], goal)


def _transformed(transform: Callable, lib, np, values) -> Callable[[], object]:
    x = np.asarray(values)
    transformed = transform(lib, lambda x: models.thirty(np, x))
    return lambda: transformed(x)


def _torch(transform: Callable, values) -> Callable[[], object]:
    import torch

    transformed = transform(torch.func, lambda x: models.thirty(torch, x))
    x = torch.asarray(values)
    return lambda: transformed(x)


def _wait_first(result) -> None:
    _wait(result[0] if isinstance(result, tuple) else result)
