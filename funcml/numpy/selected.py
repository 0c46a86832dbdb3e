"""`x[mask]` while tracing, where nobody knows how many elements that is.

    Selected         : (values, mask, axis)       stands for the elements
    reduce_selected  : (function, Selected, ...)  a reduction reduces the values where the mask is true
    combine_selected : (function, operands)       an elementwise function acts on the values, and keeps the mask

Whatever else is asked of the elements needs their number, which decides the shape, and raises an error that names what to
write instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcml import dtypes
from funcml.core.errors import NonConcreteBooleanIndexError
from funcml.core.ir import Literal
from funcml.core.tracing import Tracer, aval_of
from funcml.core.values import Array
from funcml.numpy.promotion import as_array, spread
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew

__all__ = ["Selected", "combine_selected", "reduce_selected", "same_mask"]


class Selected:
    """The elements of `values` where `mask` is true: an array whose axes from `axis` on, as many as the mask has, are one.

    It has the reductions sum, prod, max, min, mean, var, std, any, all, ptp (as methods and as functions of `funcml.numpy`),
    `size` (a traced number), and elementwise functions and operators with numbers and with other elements under the same mask.
    """

    __slots__ = ("values", "mask", "axis")
    __array_priority__ = 200

    def __init__(self, values: Array, mask: Array, axis: int):
        self.values = values
        self.mask = mask
        self.axis = axis

    @property
    def dtype(self):
        """The dtype of the elements."""
        return self.values.dtype

    @property
    def size(self) -> Array:
        """The number of elements, a traced number."""
        return ax.reduce_sum(ew.convert(self.spread_mask(), dtypes.default_int()), tuple(range(self.values.ndim)))

    def astype(self, dtype) -> Selected:
        """The elements as another dtype."""
        return self.map(lambda x: ew.convert(x, dtypes.canonical(dtype)))

    @property
    def ndim(self) -> int:
        """The number of axes, of which the one along the elements has a length that is not known."""
        return self.values.ndim - self.mask.ndim + 1

    def spread_mask(self) -> Array:
        """The mask, of the shape of the values."""
        places = range(self.axis, self.axis + self.mask.ndim)
        return ax.broadcast_in_dim(self.mask, self.values.shape, tuple(places))

    def axes_of_values(self, axis) -> tuple[int, ...]:
        """The axes of the values that make up the given axes (all, if None)."""
        rank, width = self.ndim, self.mask.ndim
        if axis is None:
            return tuple(range(self.values.ndim))
        given = axis if isinstance(axis, tuple | list) else (axis,)
        out: list[int] = []
        for a in given:
            if not -rank <= a < rank:
                raise ValueError(f"axis {a} is out of bounds for {self!r}, which has {rank} dimensions")
            a %= rank
            out.extend(range(a, a + width) if a == self.axis else [a if a < self.axis else a + width - 1])
        return tuple(out)

    def map(self, function) -> Selected:
        """An elementwise function of the elements."""
        return Selected(function(self.values), self.mask, self.axis)

    def unknown(self, wanted: str) -> NonConcreteBooleanIndexError:
        """The error for what needs the number of elements."""
        where = self.mask.frame.name if isinstance(self.mask, Tracer) else "this trace"
        return NonConcreteBooleanIndexError(
            f"{wanted} of x[mask] for x {self.values.aval} and a traced mask {self.mask.aval}: the number of true elements "
            f"decides the shape, and in {where} it is not known. Write `jnp.where(mask, x, other)` for a result of the shape "
            "of x, `x[jnp.nonzero(mask, size=n)]` for n elements; reductions (sum, mean, max, any, ...) and elementwise "
            "functions of x[mask] work, and so does `x.at[mask].set(v)` with a v that is the same for all elements, or of the "
            "shape of x."
        )

    def __repr__(self) -> str:
        return f"Selected<elements of {self.values.aval} under {self.mask.aval}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_funcml") or name in ("aval", "__array_interface__", "__array_struct__", "__buffer__", "__index__"):
            raise AttributeError(name)
        raise self.unknown(f"`{name}`")

    def __array__(self, dtype=None, copy=None):
        raise self.unknown("the elements for NumPy")

    def __jax_array__(self):
        raise self.unknown("an array")

    def __len__(self) -> int:
        raise self.unknown("len()")

    def __iter__(self):
        raise self.unknown("iteration")

    def __getitem__(self, index):
        raise self.unknown("a part")

    def __bool__(self) -> bool:
        raise self.unknown("the truth value")

    __hash__ = None  # type: ignore[assignment]


def combine_selected(name: str, function, *xs):
    """An elementwise function of several operands, some of which are `Selected`, under one mask."""
    chosen = [x for x in xs if isinstance(x, Selected)]
    first = chosen[0]
    for x in chosen[1:]:
        if not same_mask(x.mask, first.mask) or x.axis != first.axis:
            raise first.unknown(f"{name} with elements under another mask")
    given = []
    for x in xs:
        if isinstance(x, Selected):
            given.append(x.values)
        elif x is None or np.ndim(x) == 0 or _stands_behind(x, first):
            given.append(x)
        else:
            raise first.unknown(f"{name} with an array {aval_of(x)}")
    return Selected(function(*given), first.mask, first.axis)


def same_mask(a, b) -> bool:
    """Whether two masks are one value: the same variable, or the same operations on the same variables."""
    if a is b:
        return True
    if not isinstance(a, Tracer) or not isinstance(b, Tracer) or a.frame is not b.frame:
        return False
    made = {v: (eqn, i) for eqn in a.frame.eqns for i, v in enumerate(eqn.outvars)}
    return _same_atom(a.variable, b.variable, made)


def _same_atom(a, b, made) -> bool:
    if a is b:
        return True
    if type(a) is Literal or type(b) is Literal:
        return type(a) is type(b) and a.key() == b.key()
    if a not in made or b not in made:
        return False
    (left, i), (right, j) = made[a], made[b]
    same = i == j and left.primitive is right.primitive and left.params == right.params and not left.primitive.has_effect
    return same and all(_same_atom(x, y, made) for x, y in zip(left.invars, right.invars, strict=True))


def _stands_behind(x, chosen: Selected) -> bool:
    """Whether an operand broadcasts along the axes after those of the mask only."""
    return np.ndim(x) <= chosen.values.ndim - chosen.axis - chosen.mask.ndim


def reduce_selected(function: Callable, chosen: Selected, axis=None, keepdims: bool = False, where=None, **options):
    """`function`, a reduction with the arguments axis, keepdims and where, of the elements; `Selected` if they keep their axis.

    The derivative is that of the reduction of the values where the mask is true.
    """
    axes = chosen.axes_of_values(axis)
    if chosen.axis not in axes:
        if where is not None:
            raise chosen.unknown("a reduction with `where`")
        out = function(chosen.values, axis=axes, keepdims=keepdims, **options)
        moved = 0 if keepdims else sum(a < chosen.axis for a in axes)
        return Selected(out, chosen.mask, chosen.axis - moved)
    marked = chosen.spread_mask()
    if where is not None:
        if isinstance(where, Selected) and same_mask(where.mask, chosen.mask):
            where = where.values
        elif isinstance(where, Selected) or not _stands_behind(where, chosen):
            raise chosen.unknown("a reduction with `where` that is not of these elements")
        marked = ew.and_(marked, spread(as_array(where), marked.shape))
    out = function(chosen.values, axis=axes, keepdims=keepdims, where=marked, **options)
    if not keepdims:
        return out
    places = range(chosen.axis + 1, chosen.axis + chosen.mask.ndim)
    return ax.squeeze(out, tuple(places))
