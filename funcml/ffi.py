"""Kernels in C or C++ in the middle of a program, through XLA's foreign function interface, under JAX's names.

Write the kernel with the headers in `include_dir()`, compile it to a shared library, register it with `register_ffi_target`, and
call it with `ffi_call`. The notebook `2_a_primitive_and_its_kernel` goes through all steps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcml.arguments import as_value, is_array_like
from funcml.control_flow.foreign import VMAP_METHODS, CallText, foreign_call_p, foreign_effect_p
from funcml.core.avals import ShapedArray, shaped
from funcml.core.errors import user_facing
from funcml.core.tracing import aval_of, bind
from funcml.lowering import pjrt
from funcml.lowering.rules_foreign import attribute_text, foreign_call

__all__ = ["ffi_call", "ffi_lowering", "include_dir", "pycapsule", "register_ffi_target", "register_ffi_type"]


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Makes a kernel callable as `name` in programs for `platform`, until the process ends.

    fn: the capsule of a function pointer (`pycapsule`), or a dict of them by stage ("instantiate", "prepare", "initialize",
    "execute"). `api_version` 1 is the typed interface (`XLA_FFI_DEFINE_HANDLER_SYMBOL`), 0 the custom call before it.

    >>> import ctypes
    >>> register_ffi_target("my_kernel", pycapsule(ctypes.CDLL("./kernel.so").MyKernel))   # doctest: +SKIP
    """
    pjrt.register_ffi_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: dict[str, Any], platform: str = "cpu") -> None:
    """Makes a type that kernels for `platform` keep as state known: a dict with the capsules "type_id" and "type_info"."""
    pjrt.register_ffi_type(name, type_registration, platform)


def pycapsule(funcptr: Any) -> Any:
    """The capsule of a function that ctypes loaded from a shared library, for `register_ffi_target`.

    >>> import ctypes
    >>> type(pycapsule(ctypes.pythonapi.Py_IsInitialized)).__name__
    'PyCapsule'
    """
    destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, destructor)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    return make(ctypes.cast(funcptr, ctypes.c_void_p), None, destructor(0))


def include_dir() -> str:
    """The folder of the headers that come with jaxlib: `#include "xla/ffi/api/ffi.h"`.

    >>> import os
    >>> os.path.exists(os.path.join(include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return pjrt.include_dir()


@user_facing
def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable:
    """The function of arrays that calls the kernel registered as `target_name`; keyword arguments are its attributes.

    result_shape_dtypes: what has `shape` and `dtype` (an array, a `ShapeDtypeStruct`), or a sequence of such for several
    results. Attributes are bool, int (i64), float (f64), str, NumPy scalars and arrays of the dtype they have, dicts and tuples.

    `vmap_method` says what a batch does: 'sequential' calls the kernel for each example, 'expand_dims' and 'broadcast_all' once
    with a leading axis on all operands, of length 1 or of the batch where an operand is not mapped; 'legacy_vectorized' with
    one on those that are mapped. Without it the examples are computed one after the other, with a warning. A layout is the order
    of the axes in memory from the slowest to the fastest, None for rows. `input_output_aliases` gives the memory of operand i to
    result o ({i: o}): the kernel finds the operand there. With `has_side_effect` it is called although no result is used.

    It has no derivative: wrap it in `custom_jvp` or `custom_vjp`, or see `funcml.extend`.

    >>> import numpy as np, funcml
    >>> x = np.float32([[4, 2], [2, 3]])
    >>> struct = funcml.ShapeDtypeStruct
    >>> call = ffi_call("lapack_spotrf_ffi", (struct((2, 2), np.float32), struct((), np.int32)), input_output_aliases={0: 0},
    ...     input_layouts=[(1, 0)], output_layouts=[(1, 0), None])
    >>> funcml.numpy.tril(call(x, uplo=np.uint8(ord("L")))[0]).round(3).tolist()
    [[2.0, 0.0], [1.0, 1.4140000343322754]]
    """
    if vmap_method not in (None, *VMAP_METHODS):
        raise ValueError(f"ffi_call: vmap_method must be one of {', '.join(VMAP_METHODS)} or None, got {vmap_method!r}")
    if custom_call_api_version >= 4 and legacy_backend_config is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; got "
            f"{custom_call_api_version}. Attributes of the typed interface are keyword arguments of the call"
        )
    single = not isinstance(result_shape_dtypes, tuple | list)
    out_avals = _result_avals((result_shape_dtypes,) if single else result_shape_dtypes)
    out_layouts = (output_layouts,) if single and output_layouts is not None else output_layouts

    @user_facing
    def call(*args: Any, **attributes: Any):
        if attributes and custom_call_api_version < 4:
            raise ValueError(
                "The use of ffi_call attributes requires a custom call API version of at least 4; got "
                f"custom_call_api_version={custom_call_api_version}"
            )
        operands = [_operand(target_name, i, x) for i, x in enumerate(args)]
        ins = [aval_of(x) for x in operands]
        text = CallText(
            _checked_layouts(target_name, "input", ins, input_layouts),
            _checked_layouts(target_name, "output", out_avals, out_layouts),
            (),
            _attributes(target_name, attributes),
            custom_call_api_version,
            legacy_backend_config,
        )
        text = text._replace(aliases=_aliases(target_name, input_output_aliases, ins, out_avals, text))
        params = {"target_name": target_name, "out_avals": out_avals, "vmap_method": vmap_method, "call": text}
        outs = bind(foreign_effect_p if has_side_effect else foreign_call_p, operands, params)
        return outs[0] if single else type(result_shape_dtypes)(outs)

    return call


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    operand_output_aliases: dict[int, int] | None = None,
    has_side_effect: bool = False,
    api_version: int = 4,
    backend_config: Any = None,
) -> Callable:
    """The lowering of a primitive of `funcml.extend` to a call of a kernel; the parameters of the equation are its attributes.

    Layouts are orders of axes from the fastest to the slowest, as in XLA and in JAX's function of this name. `backend_config` has
    attributes that are always the same, or, for `api_version` below 4, is the string that the kernel takes.

    >>> from funcml import extend
    >>> double = extend.Primitive("double", type_rule=lambda x: x, lowering=ffi_lowering("double_kernel"))
    """

    def rule(emit, eqn, operands):
        ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        typed = api_version >= 4
        attributes = {**(backend_config or {}), **eqn.params} if typed else {}
        call = CallText(
            _checked_layouts(call_target_name, "input", ins, _slowest_first(operand_layouts)),
            _checked_layouts(call_target_name, "output", outs, _slowest_first(result_layouts)),
            tuple((operand_output_aliases or {}).items()),
            _attributes(call_target_name, attributes),
            api_version,
            None if typed else backend_config,
        )
        return foreign_call(emit, call_target_name, operands, ins, outs, call, has_side_effect)

    return rule


def _slowest_first(layouts):
    """Layouts given as in XLA, from the fastest axis; objects of a layout have their own order."""
    return layouts and [x if x is None or hasattr(x, "major_to_minor") else tuple(x)[::-1] for x in layouts]


def _operand(target: str, position: int, x):
    if not is_array_like(x):
        raise TypeError(
            f"ffi_call of `{target}`: operand {position} is {x!r} of type {type(x).__name__}, not an array; what is known when "
            "the program is written is an attribute, passed by keyword"
        )
    return as_value(x)


def _result_avals(results: Sequence) -> tuple[ShapedArray, ...]:
    for i, x in enumerate(results):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise ValueError(
                f"All elements of result_shape_dtypes must have 'shape' and 'dtype', as a ShapeDtypeStruct has; got {x!r} at "
                f"position {i}"
            )
    return tuple([shaped(tuple(x.shape), np.dtype(x.dtype)) for x in results])


def _attributes(target: str, attributes: dict) -> tuple[tuple[str, str], ...]:
    named = sorted(attributes.items())
    return tuple([(name, attribute_text(value, f"ffi_call of `{target}`: attribute {name}")) for name, value in named])


def _checked_layouts(target: str, what: str, avals: Sequence[ShapedArray], layouts) -> tuple | None:
    if layouts is None:
        return None
    if len(layouts) != len(avals):
        raise ValueError(
            f"ffi_call of `{target}`: The number of {what}s ({len(avals)}) must equal the number of {what} layouts "
            f"({len(layouts)})"
        )
    return tuple([_layout(target, what, i, *pair) for i, pair in enumerate(zip(avals, layouts, strict=True))])


def _layout(target: str, what: str, position: int, aval: ShapedArray, layout) -> tuple[int, ...] | None:
    if layout is None:
        return None
    order = tuple(getattr(layout, "major_to_minor", layout))
    if sorted(order) != list(range(aval.ndim)):
        raise ValueError(
            f"ffi_call of `{target}`: the layout of {what} {position} ({aval}) must name each of its axes once, from the slowest "
            f"to the fastest, got {order}"
        )
    return order


def _aliases(target: str, aliases: dict[int, int] | None, ins, outs, text: CallText) -> tuple[tuple[int, int], ...]:
    pairs = sorted((int(i), int(o)) for i, o in (aliases or {}).items())
    for i, o in pairs:
        said = f"ffi_call of `{target}`: input_output_aliases contains the mapping '{i}:{o}'"
        for kind, n, avals in (("input", i, ins), ("output", o, outs)):
            if not 0 <= n < len(avals):
                raise ValueError(f"{said} with {kind} index {n} outside the range [0, {len(avals)})")
        if ins[i].strong() is not outs[o].strong():
            raise ValueError(
                f"{said} referring to an input with abstract value {ins[i]} and an output with a different abstract value "
                f"{outs[o]}"
            )
        orders = [layouts[n] if layouts else None for layouts, n in ((text.in_layouts, i), (text.out_layouts, o))]
        rows = tuple(range(ins[i].ndim))
        if (orders[0] or rows) != (orders[1] or rows):
            raise ValueError(
                f"{said} referring to an input with layout {orders[0] or rows} and an output with a different layout "
                f"{orders[1] or rows}"
            )
    return tuple(pairs)
