"""How exactly to compute: levels and algorithms of products, tolerances of functions of one operand.

Wherever a product takes a `precision`, it may be a level (`Precision`), a pair of levels, an algorithm (`DotAlgorithm`, one of
`DotAlgorithmPreset`), or the name of one of these.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from funcml import dtypes

__all__ = [
    "AccuracyMode", "DotAlgorithm", "DotAlgorithmPreset", "Precision", "PrecisionLike", "Tolerance", "check_accuracy",
]


class Precision(enum.Enum):
    """How exactly a product of float32 is computed where the hardware offers a choice."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __str__(self) -> str:
        return self.name


# name -> (type to which elements are rounded, dtype of the sum, number of products, whether the sum may be imprecise)
_PRESETS: dict[str, tuple] = {
    "F16_F16_F16": ("float16", "float16", 1, False),
    "F16_F16_F32": ("float16", "float32", 1, False),
    "BF16_BF16_BF16": ("bfloat16", "bfloat16", 1, False),
    "BF16_BF16_F32": ("bfloat16", "float32", 1, False),
    "BF16_BF16_F32_X3": ("bfloat16", "float32", 3, False),
    "BF16_BF16_F32_X6": ("bfloat16", "float32", 6, False),
    "BF16_BF16_F32_X9": ("bfloat16", "float32", 9, False),
    "F32_F32_F32": ("float32", "float32", 1, False),
    "F64_F64_F64": ("float64", "float64", 1, False),
}


class DotAlgorithm(NamedTuple):
    """An algorithm of products, by its parts: what operands are rounded to, the dtype of sums, how often it multiplies.

    >>> DotAlgorithm("bfloat16", "bfloat16", "float32", num_primitive_operations=3).name
    'BF16_BF16_F32_X3'
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    @property
    def name(self) -> str:
        """The preset that this is; ValueError if it is none."""
        lhs, rhs, total = (dtypes.canonical(d).name for d in self[:3])
        if lhs.startswith("float8") and rhs.startswith("float8") and total == "float32" and self[3:6] == (1, 1, 1):
            return "ANY_F8_ANY_F8_F32_FAST_ACCUM" if self.allow_imprecise_accumulation else "ANY_F8_ANY_F8_F32"
        key = (lhs, total, self.num_primitive_operations, bool(self.allow_imprecise_accumulation))
        found = next((name for name, parts in _PRESETS.items() if parts == key), None)
        if found is None or lhs != rhs or self.lhs_component_count != 1 or self.rhs_component_count != 1:
            known = ", ".join(DotAlgorithmPreset.__members__)
            raise ValueError(f"no backend computes products by {tuple(self)}; known are {known}")
        return found


class DotAlgorithmPreset(enum.Enum):
    """The algorithms of products that some backend has, named for the types of lhs, rhs and the sum.

    `_X3` and its like multiply that often, to be more exact than their operands' type. Operands are converted to the type that
    an algorithm works in, and its sum to the dtype of the result.
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def accumulation_type(self):
        """The dtype of sums; None where it is that of the result."""
        if self.name == "DEFAULT" or "F8_ANY" in self.name.removeprefix("ANY_F8_"):
            return None
        return dtypes.canonical(_PRESETS[self.name][1] if self.name in _PRESETS else "float32")

    @property
    def supported_lhs_types(self):
        """The dtypes in which lhs is taken as it is; None for any. Others are converted to the first."""
        if self.name == "DEFAULT" or self.name.startswith("ANY"):
            return None
        if self.name in ("BF16_BF16_BF16", "BF16_BF16_F32"):
            return dtypes.bfloat16, dtypes.float32
        return (dtypes.canonical({"F16": "float16", "F64": "float64"}.get(self.name[:3], "float32")),)

    @property
    def supported_rhs_types(self):
        """The dtypes in which rhs is taken as it is; None for any. Others are converted to the first."""
        return self.supported_lhs_types


#: what `precision` may be
PrecisionLike = None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset


class AccuracyMode(enum.Enum):
    """How exactly a function of one operand is computed where the hardware offers a choice."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """What error of a function of one operand is allowed: an absolute one, a relative one, in units of the last place."""

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if min(atol, rtol, ulps) < 0 or max(atol, rtol, ulps) == 0:
            raise ValueError(f"Tolerance expects non-negative numbers, one of them positive, got {atol}, {rtol}, {ulps}")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def check_accuracy(name: str, accuracy) -> None:
    """TypeError for what is no AccuracyMode, Tolerance or None. Functions have one implementation, the most exact there is."""
    if accuracy is not None and not isinstance(accuracy, AccuracyMode | Tolerance):
        raise TypeError(f"lax.{name}: accuracy must be an AccuracyMode, a Tolerance or None, got {accuracy!r}")
