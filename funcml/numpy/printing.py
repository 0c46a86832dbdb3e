"""Arrays as text. The options of NumPy's printing hold for arrays of this package too."""

from __future__ import annotations

from numpy import get_printoptions, printoptions, set_printoptions

from funcml.core.tracing import Tracer
from funcml.numpy.promotion import as_array, operand

__all__ = ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"]


def _shown(name: str, show, arr, max_line_width, precision, suppress_small) -> str:
    x = as_array(operand(name, arr))
    if isinstance(x, Tracer):
        return show(x)
    asked = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with printoptions(**{option: value for option, value in asked.items() if value is not None}):
        return show(x)


def array_repr(arr, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None) -> str:
    """The text of an array with its dtype, as `repr` has it.

    >>> import numpy as np
    >>> array_repr(np.array([0.25, 1.0], np.float32))
    'Array([0.25, 1.  ], dtype=float32)'
    """
    return _shown("array_repr", repr, arr, max_line_width, precision, suppress_small)


def array_str(a, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None) -> str:
    """The text of the elements of an array, as `str` has it.

    >>> import numpy as np
    >>> array_str(np.array([0.123, 1.0]), precision=1)
    '[0.1 1. ]'
    """
    return _shown("array_str", str, a, max_line_width, precision, suppress_small)
