"""Calls of a kernel of the user's own, in C or C++, by the name under which XLA's foreign function interface knows it.

    foreign_call[target_name, out_avals, vmap_method, call] xs -> ys        no effect: not called where nothing needs `ys`
    foreign_effect[...]                                                     called whatever becomes of `ys`

`call` holds what the text of the call says besides its types.
"""

from __future__ import annotations

from typing import NamedTuple

from funcml.control_flow.lanes import each_example, looped
from funcml.core.ir import Primitive
from funcml.core.tracing import bind
from funcml.primitives.axes import expand_dims
from funcml.primitives.batching import at_front, spread_at_front

__all__ = ["VMAP_METHODS", "CallText", "foreign_call_p", "foreign_effect_p"]

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")

Layouts = tuple[tuple[int, ...] | None, ...] | None


class CallText(NamedTuple):
    """What a call says besides its types: layouts by axis from the slowest to the fastest, None for rows; attributes as text."""

    in_layouts: Layouts = None
    out_layouts: Layouts = None
    aliases: tuple[tuple[int, int], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    api_version: int = 4
    backend_config: str | None = None


class ForeignCall(Primitive):
    """See the module; `vmap_method` says what a batch does."""

    multiple_results = True

    def type_rule(self, *avals, out_avals, **params):
        return out_avals

    def jvp_rule(self, primals, tangents, *, target_name, **params):
        raise ValueError(
            f"The FFI call to `{target_name}` cannot be differentiated: funcml does not see into a kernel. Wrap the call in "
            "`custom_jvp` or `custom_vjp`, or make it a primitive with a rule (`funcml.extend`)"
        )

    def batch_rule(self, axis, operands, dims, *, target_name, out_avals, vmap_method, call):
        params = {"target_name": target_name, "out_avals": out_avals, "vmap_method": vmap_method, "call": call}
        name = f"ffi_call of `{target_name}`"
        if vmap_method is None:
            return looped(axis, self, operands, dims, params, name, "give ffi_call the argument vmap_method=")
        if vmap_method.startswith("sequential"):
            unroll = axis.size if vmap_method == "sequential_unrolled" else 1
            return each_example(axis, self, operands, dims, params, name, max(unroll, 1))
        if vmap_method == "broadcast_all":
            operands, wider = [spread_at_front(axis, x, d) for x, d in zip(operands, dims, strict=True)], [True] * len(dims)
        else:
            operands, wider = [at_front(x, d) for x, d in zip(operands, dims, strict=True)], [d is not None for d in dims]
        if vmap_method == "expand_dims":
            operands = [x if has else expand_dims(x, (0,)) for x, has in zip(operands, wider, strict=True)]
            wider = [True] * len(dims)
        params["out_avals"] = tuple([a.update(shape=(axis.size, *a.shape)) for a in out_avals])
        params["call"] = call._replace(
            in_layouts=_with_slowest(call.in_layouts, wider), out_layouts=_with_slowest(call.out_layouts, [True] * len(out_avals))
        )
        return bind(self, operands, params), [0] * len(out_avals)


def _with_slowest(layouts: Layouts, wider: list[bool]) -> Layouts:
    """Layouts of arrays of which some (`wider`) have one more axis in front, the slowest."""
    if layouts is None:
        return None
    return tuple([
        (0, *[n + 1 for n in layout]) if layout is not None and has else layout
        for layout, has in zip(layouts, wider, strict=True)
    ])


class ForeignEffect(ForeignCall):
    """One that is called for what it does, not only for what it gives."""

    has_effect = True


foreign_call_p = ForeignCall("ffi_call")
foreign_effect_p = ForeignEffect("ffi_call_with_effect")
