"""Looking into compiled programs: `print`, `callback`, `breakpoint`."""

from __future__ import annotations

import pdb
import string
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from funcml import tree
from funcml.arguments import is_array_like
from funcml.callbacks import call_host
from funcml.control_flow import host
from funcml.core.errors import user_facing

__all__ = ["breakpoint", "callback", "print"]


@user_facing
def callback(callback: Callable, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any) -> None:
    """`callback(*args, **kwargs)` on NumPy arrays each time the program passes; what it returns is dropped.

    Under `vmap` it is called for each example; under `grad` with the values of the forward pass. `ordered` callbacks keep their
    order. `partitioned` is accepted for compatibility.

    >>> import funcml
    >>> seen = []
    >>> def f(x):
    ...     funcml.debug.callback(lambda v: seen.append(float(v)), x)
    ...     return x * 2
    >>> float(funcml.jit(f)(3.0)), seen
    (6.0, [3.0])
    """
    primitive = host.ordered_debug_callback_p if ordered else host.debug_callback_p
    call_host(primitive, "debug.callback", callback, NotImplemented, args, kwargs, {})


class _Formatter(string.Formatter):
    """`str.format` that says which arguments a text uses."""

    def __init__(self):
        self.used: set = set()

    def check_unused_args(self, used_args, args, kwargs):
        unused = [str(i) for i in range(len(args)) if i not in used_args] + [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(f"debug.print: the format does not use {', '.join(unused)}")


class _Printer:
    """Prints a format with arrays among fixed arguments; equal to another that prints the same."""

    def __init__(self, text: str, fixed: list, treedef: Any):
        self.text, self.fixed, self.treedef = text, fixed, treedef

    def _key(self) -> tuple:
        return self.text, self.treedef, *map(repr, self.fixed)

    def __eq__(self, other) -> bool:
        return isinstance(other, _Printer) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def filled(self, values) -> str:
        """The text with these arrays."""
        rest = iter(values)
        args, kwargs = tree.unflatten(self.treedef, [next(rest) if x is _ARRAY else x for x in self.fixed])
        return self.text.format(*args, **kwargs)

    def __call__(self, *values: np.ndarray) -> None:
        sys.stdout.write(self.filled(values) + "\n")


_ARRAY = object()


@user_facing
def print(fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, **kwargs: Any):
    """Prints `fmt.format(*args, **kwargs)` with the values that arrays have when the program runs.

    Arguments that are no arrays are formatted as they are. `ordered` keeps the order of prints, within a run and from run to run.

    >>> import funcml
    >>> def f(x):
    ...     funcml.debug.print("x = {x}, of {}", "f", x=x)
    ...     return x
    >>> y = funcml.jit(f)(3.0)
    x = 3.0, of f
    """
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print expects a format as first argument, got {fmt!r}; write debug.print('{{}}', x)")
    leaves, treedef = tree.flatten((args, kwargs))
    printer = _Printer(fmt, [_ARRAY if is_array_like(x) else x for x in leaves], treedef)
    if not skip_format_check:
        checked = tree.unflatten(treedef, [_Anything() if x is _ARRAY else x for x in printer.fixed])
        _Formatter().vformat(fmt, *checked)
    callback(printer, *[x for x in leaves if is_array_like(x)], ordered=ordered, partitioned=partitioned)


class _Anything:
    """Stands for an array while a format is checked."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str):
        return self

    def __getitem__(self, index):
        return self


@user_facing
def breakpoint(*, filter_frames: bool = True, num_frames: int | None = None, backend: Any = None, **kwargs: Any) -> None:
    """Stops when the program passes here, in `pdb`, where the arrays among the caller's local variables have their values.

    Names in `kwargs` are there too. The other arguments are accepted for compatibility.
    """
    frame = sys._getframe(2)
    names = {k: v for k, v in {**frame.f_locals, **kwargs}.items() if is_array_like(v)}
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def stop(**values):
        sys.stdout.write(f"debug.breakpoint at {where}; local arrays: {', '.join(values)}\n")
        pdb.Pdb(stdin=sys.stdin, stdout=sys.stdout).runctx("pass", values, {})

    callback(stop, ordered=True, **names)
