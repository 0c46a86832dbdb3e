"""A value of funcml inside a program that JAX is recording.

    as_jax : array or tracer of ours -> tracer of JAX

It stands there as the operation `funcml_value`, without operands; the translation of the program puts the value in its place. So
a function of JAX may close over a traced array of ours, and is differentiated with respect to it.
"""

from __future__ import annotations

import functools

from funcml.core.tracing import aval_of
from funcml.interop.jaxprs import jax_struct

__all__ = ["as_jax"]


class _Box:
    """A value as a static parameter: compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __repr__(self) -> str:
        return str(aval_of(self.value))


@functools.cache
def _value_p():
    import jax
    import jax.extend.core as jax_core

    primitive = jax_core.Primitive("funcml_value")

    @primitive.def_abstract_eval
    def type_rule(*, box):
        struct = jax_struct(aval_of(box.value))
        return jax.core.ShapedArray(struct.shape, struct.dtype, weak_type=struct.weak_type)

    return primitive


def as_jax(value):
    """`value` in the program that JAX is recording (`jaxprs.is_recording`)."""
    return _value_p().bind(box=_Box(value))
