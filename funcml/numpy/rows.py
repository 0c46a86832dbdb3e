"""What a ufunc is: a kernel on operands of one type, under a function that brings any operands to it.

    unary(name, kernel, doc)  : Ufunc of one operand
    binary(name, kernel, doc) : Ufunc of two operands

A kernel is a primitive, or a function written with primitives (a composite); composites run as one program when nothing
is being traced, and get operands of full shape. The usual cases (two arrays of one type, an array and a Python number)
reach the primitive without a detour.
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.ir import Primitive
from funcml.core.tracing import aval_of, bind
from funcml.core.values import Array
from funcml.lowering.execute import fused, unary_by_type
from funcml.numpy.promotion import (
    PYTHON_SCALARS,
    as_array,
    literal,
    match_scalar,
    operand,
    promote,
    settle,
    settled,
    spread,
    to_inexact,
)
from funcml.numpy.selected import Selected, combine_selected
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim

__all__ = ["binary", "fill", "unary"]

_INEXACT = frozenset((*dtypes.FLOATS, *dtypes.COMPLEX))
_ALL = frozenset((dtypes.bool_, *dtypes.NUMERIC))


def _named(function, name: str, doc: str):
    function.__name__ = function.__qualname__ = name
    function.__module__ = "funcml.numpy"
    function.__doc__ = doc
    return function


def _not_offered(name: str, out) -> NotImplementedError:
    if out is not None:
        return NotImplementedError(f"{name}: arrays are immutable, so there is no `out`; use the result: x = {name}(...)")
    return NotImplementedError(f"{name}: there is no `where`, which leaves elements undefined; write jnp.where(c, {name}(..), x)")


def fill(x, value):
    """An array of `value` with the type of `x`."""
    aval = aval_of(x)
    return broadcast_in_dim(literal(value, aval.dtype), aval.shape)


def _as_weak_as(out, *xs):
    """The result of a composite, weakly typed if all its operands are: constants inside the kernel are not."""
    aval = aval_of(out)
    if aval.weak_type or dtypes.is_bool(aval.dtype) or not all([aval_of(x).weak_type for x in xs]):
        return out
    return ew.convert(out, aval.dtype, True)


def unary(name: str, kernel, doc: str, *, inexact: bool = False):
    """The ufunc of one operand; with `inexact`, integers and bool become floats first."""
    direct_dtypes = (_INEXACT if inexact else _ALL) if isinstance(kernel, Primitive) else frozenset()

    def whole(x):
        x = to_inexact(name, x) if inexact else operand(name, x)
        return kernel(x) if isinstance(kernel, Primitive) else _as_weak_as(kernel(as_array(x)), x)

    whole = fused(_named(whole, name, doc))

    def ufunc(x, /, out=None, where=None):
        if out is not None or where is not None:
            raise _not_offered(name, out)
        if isinstance(x, Array) and x.aval.dtype in direct_dtypes:
            return bind(kernel, (x,))
        if type(x) is Selected:
            return x.map(ufunc)
        return whole(operand(name, x))

    return unary_by_type(_named(ufunc, name, doc))


def binary(name: str, kernel, doc: str, *, on_bool=None, on_complex=None, inexact: bool = False):
    """The ufunc of two operands; `on_bool` and `on_complex` are the kernels for these, where they differ."""
    is_primitive = isinstance(kernel, Primitive)
    special: dict = {dtypes.bool_: on_bool} if on_bool is not None else {}
    if on_complex is not None:
        special.update(dict.fromkeys(dtypes.COMPLEX, on_complex))
    direct_dtypes = (_INEXACT if inexact else _ALL).difference(special) if is_primitive else frozenset()

    def whole(x, y):
        x, y = promote(name, x, y, inexact=inexact)
        chosen = special.get(aval_of(x).dtype, kernel)
        if isinstance(chosen, Primitive):
            return bind(chosen, (x, y))
        shape = aval_of(x).shape or aval_of(y).shape
        return _as_weak_as(chosen(as_array(spread(x, shape)), as_array(spread(y, shape))), x, y)

    whole = fused(_named(whole, name, doc))

    def ufunc(x1, x2, /, out=None, where=None):
        if out is not None or where is not None:
            raise _not_offered(name, out)
        x, y = x1, x2
        if isinstance(x, Array):
            aval = x.aval
            if isinstance(y, Array):
                if y.aval is aval and aval.dtype in direct_dtypes:
                    return bind(kernel, (x, y))
                return whole(x, y)
            elif type(y) in PYTHON_SCALARS:
                scalar = match_scalar(aval, y)
                if scalar is not None:
                    if aval.dtype in direct_dtypes:
                        return bind(kernel, (x, scalar))
                    y = settled(scalar)
        elif isinstance(y, Array) and type(x) in PYTHON_SCALARS:
            aval = y.aval
            scalar = match_scalar(aval, x)
            if scalar is not None:
                if aval.dtype in direct_dtypes:
                    return bind(kernel, (scalar, y))
                x = settled(scalar)
        if type(x) is Selected or type(y) is Selected:
            return combine_selected(name, ufunc, x, y)
        return whole(*settle(name, x, y))

    return _named(ufunc, name, doc)
