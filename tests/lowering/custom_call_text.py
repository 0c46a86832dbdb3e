"""What a text says of its custom calls: target, attributes, layouts, shared memory, types. Ours and JAX's compare equal."""

import re

import jax

from funcml.core.avals import shaped
from funcml.core.tracing import trace
from funcml.lowering.emit import to_stablehlo

__all__ = ["calls_of", "jax_calls", "our_calls"]

_PARTS = ("operand_layouts", "result_layouts", "output_operand_aliases")


def calls_of(text: str) -> list[dict]:
    """Each custom call of the text."""
    return [_read(line) for line in text.splitlines() if "stablehlo.custom_call" in line]


def _read(line: str) -> dict:
    found = {"target": re.search(r"custom_call @(\w+)", line)[1], "types": line.rsplit(" : ", 1)[1].strip()}
    config = re.search(r"backend_config = \{(.*?)\}", line) or re.search(r'backend_config = "(.*?)"', line)
    found["attributes"] = sorted(config[1].split(", ")) if config else []
    for part in _PARTS:
        value = re.search(part + r" = (\[.*?\])(?=, \w|\}| :|, sdy| \})", line)
        found[part] = value and re.sub(r"<\[(\d+)\]>", r"<\1>", value[1])
    return found


def our_calls(fn, *types, platform: str) -> list[dict]:
    """The custom calls of `fn`, a function of arrays of these (shape, dtype), for this platform."""
    jaxpr, _ = trace(lambda *xs: list(fn(*xs)), [shaped(s, d) for s, d in types], "f")
    return calls_of(to_stablehlo(jaxpr, platform=platform))


def jax_calls(fn, *types, platform: str) -> list[dict]:
    """The same of a function of JAX."""
    traced = jax.jit(fn).trace(*[jax.ShapeDtypeStruct(s, d) for s, d in types])
    return calls_of(traced.lower(lowering_platforms=(platform,)).as_text())
