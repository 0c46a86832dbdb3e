"""Where in the user's code an equation came from.

    here : () -> Source          the first frame outside funcml

A source is a code object and an instruction offset: two pointers, resolved to a file and a line only when
somebody asks; then the name of the part of the program, where the user gave one (`scoped`).
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from types import CodeType, FrameType

__all__ = ["PACKAGE_DIR", "Source", "describe", "here", "is_internal_file", "scope_of", "scoped"]

Source = tuple[CodeType, int] | tuple[CodeType, int, str]


class _Scope(threading.local):
    name = ""


_scope = _Scope()


@contextmanager
def scoped(name: str | None):
    """A context whose sources have this name behind those of contexts around it; None: no name, nor theirs."""
    outer = _scope.name
    _scope.name = f"{outer}/{name}" if outer and name else name or ""
    try:
        yield
    finally:
        _scope.name = outer


def scope_of(source: Source | None) -> str:
    """The name of the part of the program that a source belongs to, or ''."""
    return source[2] if source is not None and len(source) == 3 else ""


PACKAGE_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_internal: dict[str, bool] = {}
_OUTSIDE = ("functools.py", "contextlib.py")


def is_internal_file(filename: str) -> bool:
    """Whether frames of this file are funcml's own (or Python's glue beneath it)."""
    known = _internal.get(filename)
    if known is None:
        known = filename.startswith(PACKAGE_DIR + os.sep) or filename.endswith(_OUTSIDE)
        _internal[filename] = known
    return known


def here(depth: int = 1) -> Source | None:
    """The user's code object and instruction offset, seen from the caller at `depth`."""
    frame: FrameType | None = sys._getframe(depth)
    internal = _internal
    while frame is not None:
        code = frame.f_code
        known = internal.get(code.co_filename)
        if known is None:
            known = is_internal_file(code.co_filename)
        if not known:
            name = _scope.name
            return (code, frame.f_lasti, name) if name else (code, frame.f_lasti)
        frame = frame.f_back
    return None


def describe(source: Source | None) -> str:
    """`file.py:12 (function)`, or `<unknown>`; a cell of a notebook has no file to name."""
    if source is None:
        return "<unknown>"
    code, offset = source[:2]
    line = code.co_firstlineno
    for start, end, lineno in code.co_lines():
        if start <= offset < end and lineno is not None:
            line = lineno
            break
    place = "<notebook cell>" if "ipykernel_" in code.co_filename else code.co_filename
    return f"{place}:{line} ({code.co_qualname})"
