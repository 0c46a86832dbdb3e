"""StableHLO of `control_flow.host`: a custom call that names a function of the host by its index."""

from __future__ import annotations

import functools

from funcml.control_flow import host
from funcml.core.avals import ShapedArray
from funcml.lowering.emit import TOKEN, lowers, tensor_type

_TARGETS = {"cpu": "xla_ffi_python_cpu_callback", "cuda": "xla_ffi_python_gpu_callback", "gpu": "xla_ffi_python_gpu_callback"}


@lowers(host.pure_callback_p, host.io_callback_p, host.debug_callback_p)
def _call(emit, eqn, operands):
    outs = [v.aval for v in eqn.outvars]
    return _host_call(emit, eqn, operands, [a.aval for a in eqn.invars], outs, functools.partial(_plain, eqn))


@lowers(host.ordered_callback_p, host.ordered_debug_callback_p)
def _ordered_call(emit, eqn, operands):
    ins, outs = [None, *[a.aval for a in eqn.invars]], [None, *[v.aval for v in eqn.outvars]]
    found = _host_call(emit, eqn, [emit.token(), *operands], ins, outs, functools.partial(_with_token, eqn))
    emit.last_token = found[0]
    return found[1:]


def _plain(eqn, *arrays):
    return eqn.params["function"].call(eqn.params["out_avals"], *arrays)


def _with_token(eqn, token, *arrays):
    return (token, *_plain(eqn, *arrays))


def _host_call(emit, eqn, operands, ins, outs, function) -> list[str]:
    """The custom call; None among the types is a token."""
    target = _TARGETS.get(emit.platform)
    if target is None:
        raise NotImplementedError(f"{eqn.params['function'].who}: programs for {emit.platform} cannot call the host")
    emit.callbacks.append(function)
    effect = "has_side_effect = true, " if eqn.primitive.has_effect else ""
    layouts = f"operand_layouts = [{_layouts(ins)}], result_layouts = [{_layouts(outs)}]"
    return emit.ops(
        f"stablehlo.custom_call @{target}({', '.join(operands)}) {{{effect}api_version = 4 : i32, backend_config = "
        f"{{index = {len(emit.callbacks) - 1} : ui64}}, {layouts}}} : ({_types(ins)}) -> {_results(outs)}",
        len(outs),
    )


def _types(avals: list[ShapedArray | None]) -> str:
    return ", ".join(TOKEN if a is None else tensor_type(a) for a in avals)


def _results(avals: list[ShapedArray | None]) -> str:
    return _types(avals) if len(avals) == 1 else f"({_types(avals)})"


def _layouts(avals: list[ShapedArray | None]) -> str:
    """Row-major for each array."""
    return ", ".join(_layout(0 if a is None else a.ndim) for a in avals)


def _layout(ndim: int) -> str:
    order = ", ".join(map(str, reversed(range(ndim))))
    return f"dense<[{order}]> : tensor<{ndim}xindex>" if ndim > 1 else f"dense<{'0' if ndim else ''}> : tensor<{ndim}xindex>"
