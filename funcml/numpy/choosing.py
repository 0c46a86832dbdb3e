"""Choosing among several arrays or functions: by a number, by conditions.

    choose    : (numbers, choices)            -> the choice with that number
    piecewise : (x, conditions, functions)    -> the function whose condition holds
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import concrete, no_out
from funcml.numpy.broadcasting import vectorize
from funcml.numpy.creation import array
from funcml.numpy.promotion import as_array, broadcast_shapes, operand, promote_dtypes, settle, spread
from funcml.primitives import elementwise as ew

__all__ = ["choose", "piecewise"]

_MODES = ("raise", "wrap", "clip")


def choose(a, choices, out=None, mode: str = "raise") -> Array:
    """out[i] = choices[a[i]][i], where all broadcast to one shape.

    Numbers out of range: with mode 'raise' ValueError, so they must be known; with 'wrap' and 'clip' as the words say.

    >>> choose(np.array([1, 0, 1]), [np.array([1, 2, 3]), np.array([10, 20, 30])]).tolist()
    [10, 2, 30]
    """
    no_out("choose", out)
    a = array(a, copy=False) if isinstance(a, list | tuple) else operand("choose", a)
    choices = list(array(choices, copy=False)) if isinstance(choices, Array | np.ndarray) else list(choices)
    if not choices:
        raise ValueError("choose expects at least one choice")
    if not dtypes.is_integer(aval_of(a).dtype):
        raise ValueError(f"choose expects integers as `a`, got {aval_of(a)}")
    if mode not in _MODES:
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    if mode == "raise":
        known = concrete("choose", "`a` (with mode='raise'; 'wrap' and 'clip' take traced ones)", a)
        wrong = known[(known < 0) | (known >= len(choices))]
        if wrong.size:
            raise ValueError(f"choose: invalid entry in choice array: {wrong.flat[0]} of {len(choices)} choices")
    choices = [array(c, copy=False) if isinstance(c, list | tuple) else c for c in choices]
    return _choose(a, settle("choose", *choices), mode)


@fused(static=("mode",))
def _choose(a, choices, mode):
    choices = [as_array(c) for c in promote_dtypes("choose", *choices)]
    shape = broadcast_shapes(aval_of(a).shape, *[c.shape for c in choices])
    n = len(choices)
    a = ew.convert(as_array(a), dtypes.int64 if dtypes.bit_width(aval_of(a).dtype) == 64 else dtypes.int32)
    if mode == "wrap":
        rest = ew.rem(a, n)
        a = ew.select(ew.lt(rest, 0), ew.add(rest, n), rest)
    a, choices = spread(a, shape), [spread(c, shape) for c in choices]
    out = choices[-1]
    for i in reversed(range(n - 1)):
        out = ew.select(ew.le(a, i), choices[i], out)
    return out


def piecewise(x, condlist, funclist: Sequence, *args, **kw) -> Array:
    """The value at `x` of the function whose condition holds, of the last one if several do; of a default (0) if none does.

    A function is called with an element of `x` and the further arguments; a number stands for a constant function. One
    more function than conditions is the default. The result has the dtype of `x`.

    >>> piecewise(np.array([-2.0, 3.0]), [np.array([True, False])], [lambda v: -v, 0.5]).tolist()
    [2.0, 0.5]
    """
    x = array(x, copy=False) if isinstance(x, list | tuple) else as_array(operand("piecewise", x))
    conditions = list(condlist)
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        n = len(conditions)
        raise ValueError(f"piecewise: with {n} condition(s), either {n} or {n + 1} functions are expected; got {len(funclist)}")
    default = funclist[-1] if len(funclist) > len(conditions) else 0
    conditions = [array(c, dtypes.bool_, copy=False) for c in conditions]
    functions = tuple([f if callable(f) else None for f in (default, *funclist)])
    constants = [0 if callable(f) else operand("piecewise", f) for f in (default, *funclist)]
    return _piecewise(x, conditions, constants, functions[: len(conditions) + 1], args, tuple(kw), tuple(kw.values()))


@fused(static=("functions", "names"))
def _piecewise(x, conditions, constants, functions, args, names, options):
    keywords = dict(zip(names, options, strict=True))
    pieces = [
        _piece(value if function is None else function, x, args, keywords)
        for function, value in zip(functions, constants, strict=False)
    ]
    out = pieces[0]
    for condition, piece in zip(conditions, pieces[1:], strict=True):
        shape = broadcast_shapes(condition.shape, x.shape)
        out = ew.select(spread(condition, shape), spread(piece, shape), spread(out, shape))
    return out


def _piece(function, x, args, kw) -> Array:
    """One function at every element of `x`."""
    value = vectorize(lambda v: function(v, *args, **kw))(x) if callable(function) else function
    return spread(ew.convert(as_array(operand("piecewise", value)), x.dtype), x.shape)
