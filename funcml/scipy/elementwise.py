"""What a function of `funcml.scipy` is that acts element by element: a kernel on floats of one type and shape.

    @elementwise
    def betaln(a, b): ...

Its operands are promoted to one dtype (integers become floats) and broadcast; float16 and bfloat16 are computed in float32.
Called on arrays it runs as one program.
"""

from __future__ import annotations

import functools
import inspect

from funcml import dtypes, tree
from funcml.core import config
from funcml.core.tracing import aval_of
from funcml.lowering.execute import fused
from funcml.numpy.promotion import as_array, promote, settle, spread
from funcml.primitives import elementwise as ew
from funcml.primitives.rows import list_of

__all__ = ["elementwise"]


def elementwise(kernel=None, *, name: str = "", static: tuple[str, ...] = (), wide: bool = False, takes_complex: bool = False):
    """Makes a kernel a function of anything that promotes; the parameters named in `static` are passed to it as they are.

    `name` is what errors call it, if not its own name; complex operands are errors unless it `takes_complex`. A `wide` one
    computes in float64 what comes in float32.

    >>> @elementwise
    ... def product(x, y=2):
    ...     "x y."
    ...     return x * y
    >>> product(1.5)
    Array(3., dtype=float32, weak_type=True)
    """
    if kernel is None:
        return functools.partial(elementwise, name=name, static=static, wide=wide, takes_complex=takes_complex)
    name = name or kernel.__name__
    signature = inspect.signature(kernel)
    fixed = frozenset(static)

    def whole(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = dict(bound.arguments)
        names = [n for n in values if n not in fixed]
        operands = promote(name, *[values[n] for n in names], inexact=True)
        weak = all([aval_of(x).weak_type for x in operands])
        dtype = aval_of(operands[0]).dtype
        shape = next((s for s in (aval_of(x).shape for x in operands) if s), ())
        if dtypes.is_complex(dtype) and not takes_complex:
            raise TypeError(f"{name} expects real numbers, got {list_of(map(aval_of, operands))}; take the real part first")
        inner = _inner_dtype(dtype, wide)
        for n, x in zip(names, operands, strict=True):
            values[n] = ew.convert(as_array(spread(x, shape)), inner)
        with config.numpy_dtype_promotion("standard"), config.numpy_rank_promotion("allow"):
            out = kernel(**values)
        return tree.map(lambda y: _finished(y, inner, dtype, weak), out)

    whole.__name__ = kernel.__name__
    whole = fused(whole, static=static)

    @functools.wraps(kernel)
    def function(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        names = [n for n in given if n not in fixed]
        settled = settle(name, *[given[n] for n in names])
        return whole(**{**given, **dict(zip(names, settled, strict=True))})

    return function


def _inner_dtype(dtype, wide: bool):
    """The dtype in which a kernel computes."""
    if not dtypes.is_float(dtype) or dtypes.bit_width(dtype) > 32:
        return dtype
    return dtypes.float64 if wide else dtypes.float32


def _finished(y, inner, dtype, weak: bool):
    """A result of the kernel in the dtype of the operands, weakly typed if they all were."""
    found = aval_of(y).dtype
    if found == inner:
        return ew.convert(y, dtype, weak)
    return y
