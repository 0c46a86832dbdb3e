"""StableHLO of `primitives.indexing`.

StableHLO moves a window inside the operand; the starts are clamped all the same, because XLA forgets to when it
fuses one dynamic slice with another (CPU, jaxlib 0.10).
"""

from __future__ import annotations

from funcml.core.ir import Literal
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.primitives import indexing


def _clamped_starts(emit, atoms, names, shape, sizes) -> list[str]:
    """The start indices, each moved into [0, length - size]."""
    clamped = []
    for atom, name, n, size in zip(atoms, names, shape, sizes, strict=True):
        aval, t = atom.aval, tensor_type(atom.aval)
        if type(atom) is Literal:
            name = emit.constant(min(max(int(atom.value), 0), n - size), aval)
        else:
            low, high = emit.constant(0, aval), emit.constant(n - size, aval)
            name = emit.op(f"stablehlo.clamp {low}, {name}, {high} : ({t}, {t}, {t}) -> {t}")
        clamped.append(name)
    return clamped


@lowers(indexing.dynamic_slice_p)
def _dynamic_slice(emit, eqn, operands):
    (x, *starts), (out,) = eqn.invars, eqn.outvars
    sizes = eqn.params["slice_sizes"]
    names = _clamped_starts(emit, starts, operands[1:], x.aval.shape, sizes)
    types = ", ".join(tensor_type(a.aval) for a in eqn.invars)
    return emit.op(
        f"stablehlo.dynamic_slice {operands[0]}, {', '.join(names)}, sizes = [{numbers(sizes)}] : "
        f"({types}) -> {tensor_type(out.aval)}"
    )


@lowers(indexing.dynamic_update_slice_p)
def _dynamic_update_slice(emit, eqn, operands):
    (x, update, *starts), (out,) = eqn.invars, eqn.outvars
    names = _clamped_starts(emit, starts, operands[2:], x.aval.shape, update.aval.shape)
    types = ", ".join(tensor_type(a.aval) for a in eqn.invars)
    return emit.op(
        f"stablehlo.dynamic_update_slice {operands[0]}, {operands[1]}, {', '.join(names)} : ({types}) -> {tensor_type(out.aval)}"
    )
