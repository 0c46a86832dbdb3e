"""What a call of a compiled function costs by itself: trees of 2, 30 and 300 small arrays in, as many out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy
import numpy
from timing import Row, interleaved

import funcml
import funcml.numpy

__all__ = ["rows"]

_TREES: dict[str, Callable] = {
    "tuple": lambda leaves: tuple(leaves),
    "dict": lambda leaves: {f"layer{i}": leaf for i, leaf in enumerate(leaves)},
    "pairs in a dict": lambda leaves: {f"layer{i}": pair for i, pair in enumerate(zip(leaves[::2], leaves[1::2]))},
}


def rows(quick: bool = False) -> Iterator[Row]:
    """A row for each kind of tree and number of leaves."""
    for leaves in (2, 30, 300):
        calls = 200 if leaves < 300 else 40
        for kind, build in _TREES.items():
            contestants = {
                "funcml": _compiled(funcml, funcml.numpy, build, leaves),
                "JAX": _compiled(jax, jax.numpy, build, leaves),
            }
            found = interleaved(
                contestants, rounds=11 if quick else 51, calls=calls, finish=lambda tree: jax.tree.leaves(tree)[-1].item()
            )
            yield Row("dispatch of a compiled function", f"{leaves} leaves, {kind}", found["funcml"], "JAX", found["JAX"],
                      goal=1 / 1.1)


def _compiled(lib, np, build: Callable, leaves: int) -> Callable[[], object]:
    tree = build([np.asarray(numpy.float32(i)) for i in range(leaves)])
    function = lib.jit(lambda tree: lib.tree.map(lambda x: x + 1.0, tree))
    return lambda: function(tree)
