"""Functions that a backend may know by name: `composite : (function, name) -> function`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable

import numpy as np

from funcml import dtypes, tree
from funcml.core.avals import shaped
from funcml.core.ir import intern
from funcml.core.tracing import aval_of, trace
from funcml.core.values import Array
from funcml.lax.operands import array
from funcml.lowering.emit import element_type, scalar_text, tensor_type
from funcml.numpy.arguments import index_of
from funcml.numpy.promotion import as_array
from funcml.transforms import composite as primitive

__all__ = ["composite"]


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """The function `decomposition` as an operation `name` of the compiled program, for backends that have one of that name.

    Others run the function. Positional arguments are its inputs (trees of arrays), keyword arguments static attributes of the
    operation: numbers, text, dtypes, NumPy arrays, lists and dicts of these; None is left out. TypeError for other attributes.

    >>> from funcml import lax, numpy as jnp
    >>> tangent = composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> tangent(jnp.array([0.0, 1.0]))
    Array([0.       , 1.5574077], dtype=float32)
    """
    version = index_of("lax.composite", "version", version)

    @functools.wraps(decomposition)
    def operation(*args, **attributes):
        xs, treedef = tree.flatten(args)
        xs = [array("composite", x) for x in xs]
        trees = []

        def flat(*values):
            leaves, out_tree = tree.flatten(decomposition(*tree.unflatten(treedef, values), **attributes))
            trees.append(out_tree)
            return [as_array(y) for y in leaves]

        text = _fields(name, attributes)
        program, captured = trace(flat, [x.aval for x in xs], name)
        outs = primitive.composite(intern(program), [*captured, *xs], name, text, version)
        return tree.unflatten(trees[0], outs)

    return operation


def _fields(name: str, attributes: dict) -> str:
    return ", ".join(f"{key} = {_attribute(name, key, value)}" for key, value in attributes.items() if value is not None)


def _attribute(name: str, key: str, value) -> str:
    """An attribute as MLIR writes it."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, int | float):
        value = np.int64(value) if isinstance(value, int) else np.float32(value)
    if isinstance(value, dict):
        return f"{{{_fields(name, value)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_attribute(name, key, v) for v in value)}]"
    if isinstance(value, np.generic):
        return f"{scalar_text(value, value.dtype)} : {element_type(value.dtype)}"
    if isinstance(value, np.ndarray):
        return f"dense<{_nested(value)}> : {tensor_type(shaped(value.shape, value.dtype))}"
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return element_type(dtypes.canonical(value))
    what = f"an array {aval_of(value)}" if isinstance(value, Array) else f"{value!r}"
    raise TypeError(
        f"lax.composite {name}: the attribute {key} must be a number, text, a dtype, a NumPy array, or a list or dict of these, "
        f"got {what}; what is computed is a positional argument"
    )


def _nested(values: np.ndarray) -> str:
    if values.size == 0:
        return ""
    if values.ndim == 0:
        return scalar_text(values[()], values.dtype)
    return f"[{', '.join(map(_nested, values))}]"
