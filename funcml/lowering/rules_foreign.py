"""StableHLO of `control_flow.foreign`: a custom call of a kernel by its name.

    attribute_text : value -> text of an MLIR attribute       1 -> `1 : i64`, {"a": True} -> `{a = true}`
    foreign_call   : appends the call
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from funcml import dtypes
from funcml.control_flow.foreign import CallText, Layouts, foreign_call_p, foreign_effect_p
from funcml.core.avals import ShapedArray, shaped
from funcml.lowering.emit import Emitter, element_type, lowers, scalar_text, tensor_type
from funcml.lowering.matrix_calls import aliases_text

__all__ = ["attribute_text", "foreign_call"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*\Z")


def attribute_text(value: Any, where: str) -> str:
    """A Python or NumPy value as an attribute; `where` names it in the error for what cannot be one."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{where} is {value}, which does not fit into the 64 bits of an attribute")
        return f"{value} : i64"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        return _dictionary((_key(k, where), attribute_text(v, f"{where}[{k!r}]")) for k, v in value.items())
    if isinstance(value, tuple | list):
        parts = [attribute_text(v, f"{where}[{i}]") for i, v in enumerate(value)]
        return f"[{', '.join(parts)}]"
    if isinstance(value, float) and not isinstance(value, np.generic):
        value = np.float64(value)
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OSUMmc":
        value = value.astype(bool) if value.dtype == dtypes.float0 else value
        return f"dense<{_elements(value)}> : {tensor_type(shaped(value.shape, value.dtype))}"
    if isinstance(value, np.generic) and not dtypes.is_complex(value.dtype):
        return f"{scalar_text(value, value.dtype)} : {element_type(value.dtype)}"
    raise TypeError(
        f"{where} is {value!r} of type {type(value).__name__}, and attributes are numbers, strings, NumPy arrays, and dicts and "
        "tuples of those; pass other arrays as operands"
    )


def _elements(array: np.ndarray) -> str:
    if array.ndim == 0:
        return scalar_text(array[()], array.dtype)
    return f"[{', '.join(map(_elements, array))}]" if array.size else ""


def _dictionary(items: Iterable[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{name} = {text}' for name, text in items)}}}"


def _key(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{where} has the key {name!r}; keys of attributes are strings")
    return name if _IDENTIFIER.match(name) else _quoted(name)


def _quoted(text: str) -> str:
    """A string of MLIR: bytes outside printable ASCII, quotes and backslashes as two hexadecimal digits."""
    plain = [chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode()]
    return f'"{"".join(plain)}"'


@lowers(foreign_call_p, foreign_effect_p)
def _foreign(emit, eqn, operands):
    ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    return foreign_call(emit, eqn.params["target_name"], operands, ins, outs, eqn.params["call"], eqn.primitive.has_effect)


def foreign_call(
    emit: Emitter, target: str, operands: Sequence[str], ins: Sequence[ShapedArray], outs: Sequence[ShapedArray],
    call: CallText, has_effect: bool,
) -> list[str]:
    """Appends the call of the kernel `target`; gives the names of its results."""
    if call.api_version >= 4:
        config = f"backend_config = {_dictionary((_key(k, target), text) for k, text in call.attributes)}, "
    else:
        config = "" if call.backend_config is None else f"backend_config = {_quoted(call.backend_config)}, "
    effect = "has_side_effect = true, " if has_effect else ""
    results = ", ".join(map(tensor_type, outs))
    arrow = results if len(outs) == 1 else f"({results})"
    name = target if _IDENTIFIER.match(target) else _quoted(target)
    return emit.ops(
        f"stablehlo.custom_call @{name}({', '.join(operands)}) "
        f"{{{effect}{config}api_version = {call.api_version} : i32, operand_layouts = [{_layouts(ins, call.in_layouts)}], "
        f"result_layouts = [{_layouts(outs, call.out_layouts)}]{aliases_text(dict(call.aliases), len(outs))}}} : "
        f"({', '.join(map(tensor_type, ins))}) -> {arrow}",
        len(outs),
    )


def _layouts(avals: Sequence[ShapedArray], layouts: Layouts) -> str:
    """For each array its axes from the fastest to the slowest."""
    chosen = layouts or [None] * len(avals)
    orders = [list(range(a.ndim) if given is None else given)[::-1] for a, given in zip(avals, chosen, strict=True)]
    return ", ".join(f"dense<{order or ''}> : tensor<{len(order)}xindex>" for order in orders)
