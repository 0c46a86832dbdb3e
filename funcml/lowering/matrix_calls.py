"""Custom calls on batches of matrices: LAPACK on CPU, cuSOLVER and its like on CUDA.

These libraries take matrices by columns: operands and results that are matrices behind the batch axes have their last two
axes swapped in memory, all else is by rows. A failed factorisation says so in its result `info`; `nan_unless` shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funcml import dtypes
from funcml.core.avals import ShapedArray
from funcml.lowering.emit import Emitter, tensor_type

__all__ = [
    "aliases_text",
    "failed_as_nan", "info_of", "is_cuda", "lapack_name", "matrix_call", "nan_unless", "not_offered", "succeeded", "u8",
]

_PREFIXES = {
    dtypes.float32: "s",
    dtypes.float64: "d",
    dtypes.complex64: "c",
    dtypes.complex128: "z",
}


def is_cuda(emit: Emitter) -> bool:
    """Whether the text is for NVIDIA's devices."""
    return emit.platform in ("cuda", "gpu")


def lapack_name(name: str, dtype) -> str:
    """The target that calls the LAPACK function `name` for this dtype; `orgqr` is `ungqr` for complex numbers."""
    if dtypes.is_complex(dtype) and name.startswith("or"):
        name = "un" + name[2:]
    return f"lapack_{_PREFIXES[dtype]}{name}_ffi"


def u8(character: str) -> str:
    """A character as LAPACK's calls take it: an attribute of 8 bits."""
    return f"{ord(character)} : ui8"


def matrix_call(
    emit: Emitter,
    target: str,
    operands: Sequence[str],
    ins: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    *,
    attributes: dict[str, str] | None = None,
    reuses: dict[int, int] | None = None,
    by_columns: bool = True,
    batch: int | None = None,
) -> list[str]:
    """Appends the call of `target`; gives the names of its results.

    Operands and results of the highest rank among the operands are matrices, stored by columns. `reuses` says which operand's
    memory becomes which result. `attributes` has the text of each attribute. `batch` is the number of batch axes, along which
    the call may be divided among devices: by default all but two of an operand's.
    """
    highest = max(a.ndim for a in ins)
    rank = highest if by_columns else -1
    batch = highest - 2 if batch is None else batch
    shown = ", ".join(f"{name} = {text}" for name, text in (attributes or {}).items())
    types = f"({', '.join(map(tensor_type, ins))}) -> "
    types += tensor_type(outs[0]) if len(outs) == 1 else f"({', '.join(map(tensor_type, outs))})"
    return emit.ops(
        f"stablehlo.custom_call @{target}({', '.join(operands)}) {{api_version = 4 : i32, backend_config = {{{shown}}}, "
        f"operand_layouts = [{', '.join(_layout(a, rank) for a in ins)}], "
        f"result_layouts = [{', '.join(_layout(a, rank) for a in outs)}]"
        f"{aliases_text(reuses, len(outs))}{_division(batch, ins, outs)}}} : {types}",
        len(outs),
    )


def aliases_text(reuses: dict[int, int] | None, results: int) -> str:
    """The attribute that gives the memory of operands to results (operand: result); nothing, if none is given."""
    shown = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{'' if results == 1 else out}], operand_index = {operand}, "
        f"operand_tuple_indices = []>"
        for operand, out in (reuses or {}).items()
    )
    return f", output_operand_aliases = [{shown}]" if shown else ""


def _layout(aval: ShapedArray, matrix_rank: int) -> str:
    """The axes from the fastest to the slowest in memory."""
    order = list(range(aval.ndim))[::-1]
    if aval.ndim == matrix_rank:
        order[:2] = order[1::-1]
    return f"dense<{order or ''}> : tensor<{len(order)}xindex>"


_FACTORS = "ijklmnopqrstuvwxyz"


def _division(batch: int, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> str:
    """The attributes that let the batch axes, and no others, be divided among devices."""
    names, sizes = iter(_FACTORS[batch:]), {}

    def factors(aval):
        own = [*_FACTORS[:batch], *[next(names) for _ in range(aval.ndim - batch)]]
        sizes.update(zip(own, aval.shape, strict=True))
        return f"[{', '.join(own)}]"

    avals = (*ins, *outs)
    if not batch or batch + sum(a.ndim - batch for a in avals) > len(_FACTORS):
        return ""
    left, right = (", ".join(map(factors, group)) for group in (ins, outs))
    lengths = ", ".join(f"{name}={n}" for name, n in sizes.items())
    return (
        f', mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}, '
        f"sdy.sharding_rule = #sdy.op_sharding_rule<({left})->({right}) {{{lengths}}}, custom>"
    )


def succeeded(emit: Emitter, info: str, aval: ShapedArray, how: str = "EQ") -> str:
    """bool [batch]: whether `info` is 0; with GE, whether it is not negative."""
    bools = aval.update(dtype=dtypes.bool_)
    zero = emit.constant(0, aval)
    return emit.op(
        f"stablehlo.compare {how}, {info}, {zero}, SIGNED : ({tensor_type(aval)}, {tensor_type(aval)}) -> {tensor_type(bools)}"
    )


def nan_unless(emit: Emitter, ok: str, x: str, aval: ShapedArray, batch: Sequence[int]) -> str:
    """`x`, or nan for those of the batch that are not `ok` (bool [batch])."""
    wide = aval.update(dtype=dtypes.bool_)
    of_batch = wide.update(shape=tuple(batch))
    spread = emit.broadcast(ok, of_batch, wide, range(len(batch)))
    value = complex(np.nan, np.nan) if dtypes.is_complex(aval.dtype) else np.nan
    t = tensor_type(aval)
    return emit.op(f"stablehlo.select {spread}, {x}, {emit.constant(value, aval)} : {tensor_type(wide)}, {t}")


def not_offered(emit, what: str, where: str):
    """The error for a decomposition that this platform has no routine for."""
    return NotImplementedError(f"{what} is offered on {where}, not on {emit.platform}; move the operand with `device_put`")


def info_of(aval, rank: int = 2):
    """The type of the result `info` of a call on this operand: i32 [batch]."""
    return aval.update(shape=aval.shape[: aval.ndim - rank], dtype=dtypes.int32, weak_type=False)


def failed_as_nan(emit, info, info_aval, results, avals) -> list[str]:
    """The results, nan for the members of the batch whose `info` is not 0."""
    ok = succeeded(emit, info, info_aval)
    return [nan_unless(emit, ok, x, a, info_aval.shape) for x, a in zip(results, avals, strict=True)]
