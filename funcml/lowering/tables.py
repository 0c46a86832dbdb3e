"""A vector of constants, for programs that are written with primitives: nodes and weights of a quadrature.

    table : (numbers, dtype) -> array [numbers]
"""

from __future__ import annotations

from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.tracing import bind
from funcml.lowering.emit import lowers, scalar_text, tensor_type

__all__ = ["table"]


def table(numbers, dtype):
    """The numbers as a vector; it stands in the text of the program."""
    return bind(table_p, (), {"numbers": tuple(map(float, numbers)), "dtype": dtype})


class Table(Primitive):
    """table[numbers, dtype] (): it has no operand, so no transform meets it."""

    def type_rule(self, *, numbers, dtype):
        return shaped((len(numbers),), dtype)


table_p = Table("table")


@lowers(table_p)
def _table(emit, eqn, operands):
    digits = ", ".join(scalar_text(x, eqn.params["dtype"]) for x in eqn.params["numbers"])
    return emit.op(f"stablehlo.constant dense<[{digits}]> : {tensor_type(eqn.outvars[0].aval)}")
