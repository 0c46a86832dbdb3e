"""Two markers that rules of differentiation meet.

`Zero(aval)` is a tangent or cotangent known to be zero: nothing is computed for it.
`UndefinedPrimal(aval)` stands, in a transpose rule, for an operand in which the equation is linear.
"""

from __future__ import annotations

from funcml.core.avals import ShapedArray

__all__ = ["UndefinedPrimal", "Zero", "is_undefined", "is_zero"]


class Zero:
    """A tangent or cotangent that is zero without being computed."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of zeros that this stands for."""
        return self.aval.shape

    @property
    def dtype(self):
        """The dtype of the array of zeros that this stands for."""
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """An operand of a linear equation whose value is not known, only its aval."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


def is_zero(x) -> bool:
    """Whether `x` is a symbolic zero."""
    return type(x) is Zero


def is_undefined(x) -> bool:
    """Whether `x` is a linear operand."""
    return type(x) is UndefinedPrimal
