"""What nested `jit` costs: the time until the StableHLO of a gradient is there, by the depth of nesting.

    chain : each level calls the one below it once           f_n(x) = f_(n-1)(sin(x) w) + x
    tree  : each level calls the one below it twice          f_n(x) = f_(n-1)(sin(x)) * f_(n-1)(cos(x))

The functions are new each time and funcml forgets its programs, so that all is traced, differentiated and lowered anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy
import numpy
from timing import Row, interleaved

import funcml
import funcml.numpy
from funcml.core.ir import clear_interned

__all__ = ["rows"]

_CHAINS = (2, 8, 32)
_TREES = (4, 8, 12)


def rows(quick: bool = False) -> Iterator[Row]:
    """Chains, then trees, each of three depths."""
    rounds = 3 if quick else 9
    for shape, make, depths in (("chain", _chain, _CHAINS), ("tree", _tree, _TREES)):
        for depth in depths:
            found = interleaved(
                {"funcml": _lower(funcml, make, depth), "JAX": _lower(jax, make, depth)}, rounds=rounds
            )
            yield Row("nested jit", f"{shape} of depth {depth}", found["funcml"], "JAX", found["JAX"])


def _lower(library, make: Callable, depth: int) -> Callable:
    x = library.numpy.asarray(numpy.ones(8, "float32"))

    def lower():
        if library is funcml:
            clear_interned()
        f = make(library, depth)
        return library.jit(library.value_and_grad(lambda x: library.numpy.sum(f(x)))).lower(x)

    return lower


def _chain(library, depth: int) -> Callable:
    np = library.numpy
    f = np.tanh
    for level in range(depth):
        f = library.jit(lambda x, f=f, level=level: f(np.sin(x) * (level + 1.5)) + x)
    return f


def _tree(library, depth: int) -> Callable:
    np = library.numpy
    f = np.tanh
    for _ in range(depth):
        f = library.jit(lambda x, f=f: f(np.sin(x)) * f(np.cos(x)))
    return f
