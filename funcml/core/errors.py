"""The errors of funcml, and the filter that hides internal frames from tracebacks.

    user_facing : (function) -> function      the same function; its tracebacks show the user's frames
"""

from __future__ import annotations

import functools
import types

from funcml.core.config import config
from funcml.core.source import is_internal_file

__all__ = [
    "ConcretizationError",
    "FuncmlError",
    "LeakedTracerError",
    "MissingRuleError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
    "user_facing",
]


class FuncmlError(Exception):
    """Base of the errors that only funcml raises."""


class ConcretizationError(FuncmlError, TypeError):
    """Python asked for the value of a traced array that has none."""


class TracerBoolConversionError(ConcretizationError):
    """Python asked whether a traced array is true."""


class TracerIntegerConversionError(ConcretizationError):
    """Python asked for a traced array as an integer."""


class TracerArrayConversionError(ConcretizationError):
    """NumPy asked for the elements of a traced array."""


class NonConcreteBooleanIndexError(FuncmlError, IndexError):
    """A boolean mask whose value is not known while tracing would give a result of unknown shape."""


class LeakedTracerError(FuncmlError):
    """A traced value was used after its transform had ended."""


UnexpectedTracerError = LeakedTracerError


class MissingRuleError(FuncmlError, NotImplementedError):
    """A primitive lacks the rule that a transform asked for."""


def user_facing(function):
    """Wraps `function` so that funcml's own frames are cut from the traceback of what it raises."""

    @functools.wraps(function)
    def filtered(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_internal_frames(error)
            raise

    return filtered


def hide_internal_frames(error: BaseException) -> None:
    """Cuts the internal frames out of `error`'s traceback, unless traceback filtering is off."""
    if config.traceback_filtering == "off":
        return
    frames = []
    entry = error.__traceback__
    while entry is not None:
        if not is_internal_file(entry.tb_frame.f_code.co_filename):
            frames.append(entry)
        entry = entry.tb_next
    kept = None
    for entry in reversed(frames):
        kept = types.TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = kept
