"""The errors that only funcml raises; see each for when, and for what to write instead."""

from funcml.core.check import InvalidJaxprError
from funcml.core.errors import (
    ConcretizationError,
    FuncmlError,
    LeakedTracerError,
    MissingRuleError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from funcml.dtypes import TypePromotionError

ConcretizationTypeError = ConcretizationError

__all__ = [
    "ConcretizationError",
    "ConcretizationTypeError",
    "FuncmlError",
    "InvalidJaxprError",
    "LeakedTracerError",
    "MissingRuleError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
]
