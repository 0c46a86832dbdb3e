"""How long it takes to trace, differentiate and lower a function, until the StableHLO is there.

    jit(value_and_grad(f)).lower(params, ...)       a new function each time, and funcml's interned programs forgotten

JAX ends with an MLIR module, funcml with its text, which XLA parses when it compiles; the rows "and parse" add that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy
import models
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from timing import Row, interleaved

import funcml
import funcml.numpy
from funcml.core.ir import clear_interned

__all__ = ["rows"]

_MODELS = {
    "50-layer MLP": (models.mlp, models.mlp_inputs),
    "12-layer transformer": (models.transformer, models.transformer_inputs),
}


def rows(quick: bool = False) -> Iterator[Row]:
    """One row a model for the text, and one for the parsed text."""
    for name, (model, make_inputs) in _MODELS.items():
        inputs = make_inputs()
        ours = _funcml(model, inputs)
        theirs = _jax(model, inputs)
        found = interleaved(
            {"funcml": ours, "and parse": lambda ours=ours: _parse(ours()), "JAX": theirs}, rounds=5 if quick else 25
        )
        yield Row("trace, differentiate, lower", name, found["funcml"], "JAX", found["JAX"], goal=8.0)
        yield Row("trace, differentiate, lower", f"{name}, and parse", found["and parse"], "JAX", found["JAX"])


def _funcml(model: Callable, inputs) -> Callable[[], str]:
    arrays = funcml.tree.map(funcml.numpy.asarray, inputs)

    def lower():
        clear_interned()
        return funcml.jit(funcml.value_and_grad(lambda *args: model(funcml.numpy, *args))).lower(*arrays).as_text()

    return lower


def _jax(model: Callable, inputs) -> Callable:
    arrays = jax.tree.map(jax.numpy.asarray, inputs)
    return lambda: jax.jit(jax.value_and_grad(lambda *args: model(jax.numpy, *args))).lower(*arrays)


def _parse(text: str) -> ir.Module:
    with make_ir_context():
        return ir.Module.parse(text)
