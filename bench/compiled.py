"""How fast the compiled code is: one call of a compiled function, on the same numbers, until the results are there.

Training steps (`value_and_grad`) of an MLP, a CNN, a transformer and an LSTM written out, a filter by FFT with its derivative,
and linear algebra with its derivative. The last row is the geometric mean of the ratios.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy
import models
import numpy
from timing import Row, Sample, interleaved

import funcml
import funcml.numpy

__all__ = ["rows"]


class Library(NamedTuple):
    """A library as the models see it."""

    package: object
    np: object
    asarray: Callable
    finish: Callable


_FUNCML = Library(funcml, funcml.numpy, funcml.numpy.asarray, funcml.block_until_ready)
_JAX = Library(jax, jax.numpy, jax.numpy.asarray, jax.block_until_ready)


def rows(quick: bool = False) -> Iterator[Row]:
    """A row a program, and their geometric mean."""
    ratios = []
    for name, (model, inputs) in models.compiled().items():
        ours, theirs = _step(_FUNCML, model, inputs), _step(_JAX, model, inputs)
        found = interleaved({"funcml": ours, "JAX": theirs}, rounds=11 if quick else 51)
        row = Row("compiled step", name, found["funcml"], "JAX", found["JAX"])
        ratios.append(row.ratio)
        yield row
    mean = math.exp(numpy.mean(numpy.log(ratios)))
    yield Row("compiled step", "geometric mean", Sample(1.0, len(ratios)), "JAX", Sample(mean, len(ratios)), goal=1 / 1.02)


def _step(library: Library, model: Callable, inputs) -> Callable:
    params, *rest = library.package.tree.map(library.asarray, inputs)
    step = library.package.jit(library.package.value_and_grad(lambda *args: model(library, *args)))
    return lambda: library.finish(step(params, *rest))
