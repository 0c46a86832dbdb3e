"""Universal functions with their methods: `add.reduce`, `maximum.accumulate`, `subtract.outer`, `multiply.at`, `add.reduceat`.

    ufunc      : (function of scalars, how many operands, how many results) -> ufunc
    frompyfunc : the same

Called, a ufunc is the function that it stands for. Where an operation has a reduction of its own (`sum`) its methods use that;
others go from element to element, in order.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from funcml import dtypes
from funcml.control_flow.programs import recorded
from funcml.control_flow.scan import scan
from funcml.core.avals import shaped
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy import reductions, running, ufuncs
from funcml.numpy.arguments import axes_of, axis_of, concrete, no_out
from funcml.numpy.broadcasting import vectorize
from funcml.numpy.creation import array
from funcml.numpy.index_update import IndexUpdateRef
from funcml.numpy.promotion import as_array, operand, spread
from funcml.numpy.rows import fill
from funcml.numpy.selection import take
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import reductions as red
from funcml.primitives import shaping

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "fmax", "fmin", "frompyfunc", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "pow", "power", "subtract",
    "true_divide", "ufunc",
]  # fmt: skip


class ufunc(functools.partial):
    """A function that acts on each element, and what can be made of it: reductions, running results, tables.

    `nin` operands (`nargs`, if given, is for show), `nout` results. `identity` is what leaves the other operand as it is; the
    methods reduce, accumulate, at and reduceat can be given where there are better ones than step by step.

    >>> add.reduce(np.array([1.0, 2.0, 3.0])), multiply.outer(np.array([1.0, 2.0]), np.array([3.0])).tolist()
    (Array(6., dtype=float64), [[3.0], [6.0]])
    """

    __name__: str
    __qualname__: str
    _static: dict[str, Any]
    _own: dict[str, Callable | None]

    nin = property(lambda self: self._static["nin"], doc="The number of operands.")
    nout = property(lambda self: self._static["nout"], doc="The number of results.")
    nargs = property(lambda self: self._static["nargs"], doc="The number of operands, or what was given for show.")
    identity = property(lambda self: self._static["identity"], doc="What leaves the other operand as it is, or None.")
    _func = property(lambda self: self._static["func"])

    def __new__(
        cls,
        func: Callable,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable | None = None,
        reduce: Callable | None = None,
        accumulate: Callable | None = None,
        at: Callable | None = None,
        reduceat: Callable | None = None,
    ):
        self = super().__new__(cls, vectorize(func) if call is None else call)
        self._static = {
            "func": func,
            "nin": operator.index(nin),
            "nout": operator.index(nout),
            "nargs": operator.index(nin if nargs is None else nargs),
            "identity": identity,
        }
        self.__name__ = self.__qualname__ = getattr(func, "__name__", "ufunc") if name is None else name
        self.__module__ = "funcml.numpy"
        self.__doc__ = func.__doc__
        self._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        return self

    def __eq__(self, other) -> bool:
        if isinstance(other, ufunc):
            return self._identification() == other._identification()
        return self.func == other

    def __hash__(self) -> int:
        return hash(self._func)

    def _identification(self) -> tuple:
        return (self._func, self.__name__, self.nin, self.nout, self.identity)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __reduce__(self):
        if globals().get(self.__name__) is self:
            return self.__name__
        return _remade, (self._func, self.nin, self.nout, self.__name__, self.identity)

    def _method(self, name: str) -> Callable | None:
        """The own version of a method, if there is one; ValueError for a method that only ufuncs of two operands have."""
        if name != "at" and self.nin != 2:
            raise ValueError(f"{self.__name__}.{name}: {name} only supported for binary ufuncs, this one has nin={self.nin}")
        if name != "at" and self.nout != 1:
            raise ValueError(f"{self.__name__}.{name}: {name} only supported for functions returning a single value")
        return self._own.get(name)

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
        """The elements along `axis` (all, if None) joined by the function, from the first on; of those that `where` marks.

        Raises ValueError if there is no element and neither `initial` nor an identity.
        """
        own = self._method("reduce")
        no_out(f"{self.__name__}.reduce", out)
        a = as_array(operand(f"{self.__name__}.reduce", a))
        if where is not None:
            if initial is None and self.identity is None:
                raise ValueError(
                    f"reduction operation {self.__name__!r} does not have an identity, so to use a where mask one has to specify "
                    "'initial'"
                )
            where = as_array(operand(f"{self.__name__}.reduce", where))
            if not dtypes.is_bool(where.dtype):
                raise ValueError(f"{self.__name__}.reduce: where must be bool, got {where.aval}")
        if own is not None:
            return own(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        return _reduce(a, initial, where, self, reductions.static_axis(axis), dtype, bool(keepdims))

    def accumulate(self, a, axis: int = 0, dtype=None, out=None) -> Array:
        """The results of `reduce` up to each element along `axis`."""
        own = self._method("accumulate")
        no_out(f"{self.__name__}.accumulate", out)
        a = as_array(operand(f"{self.__name__}.accumulate", a))
        if axis is None or isinstance(axis, tuple | list):
            raise ValueError(f"{self.__name__}.accumulate: accumulate does not allow multiple axes, got axis={axis!r}")
        return own(a, axis=axis, dtype=dtype) if own is not None else _accumulate(a, self, axis, dtype)

    def at(self, a, indices, b=None, /, *, inplace: bool = True) -> Array:
        """`a` with the function applied at the indices, with `b` as second operand; once for each time an element is named.

        Arrays are immutable, so this needs `inplace=False`.
        """
        own = self._method("at")
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at: arrays are immutable; write x = jnp.{self.__name__}.at(x, indices, b, inplace=False)"
            )
        a = as_array(operand(f"{self.__name__}.at", a))
        if own is not None:
            return own(a, indices) if b is None else own(a, indices, b)
        return _at(self, a, indices, () if b is None else (as_array(operand(f"{self.__name__}.at", b)),))

    def reduceat(self, a, indices, axis: int = 0, dtype=None, out=None) -> Array:
        """For each of the indices i the elements along `axis` from i up to the next index joined; a[i] if that is not larger."""
        own = self._method("reduceat")
        no_out(f"{self.__name__}.reduceat", out)
        a = as_array(operand(f"{self.__name__}.reduceat", a))
        indices = as_array(np.asarray(indices) if isinstance(indices, list) else indices)
        if isinstance(axis, tuple | list) or axis is None:
            raise ValueError(f"{self.__name__}.reduceat: reduceat requires a single integer axis, got {axis!r}")
        if not a.ndim or indices.ndim != 1:
            raise ValueError(f"{self.__name__}.reduceat: expected an array and a vector of indices, got {a.aval}, {indices.aval}")
        if own is not None:
            return own(a, indices, axis=axis, dtype=dtype)
        return _reduceat(a, indices, self, axis_of(f"{self.__name__}.reduceat", axis, a.ndim), dtype)

    def outer(self, A, B, /) -> Array:
        """The function of every pair of an element of `A` and one of `B`: [axes of A.., axes of B..]."""
        self._method("outer")
        A, B = (as_array(operand(f"{self.__name__}.outer", x)) for x in (A, B))
        return self(ax.reshape(A, A.shape + (1,) * B.ndim), ax.reshape(B, (1,) * A.ndim + B.shape))


def _remade(func, nin, nout, name, identity) -> ufunc:
    return ufunc(func, nin, nout, name=name, identity=identity)


def frompyfunc(func: Callable, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """The ufunc of a function of `nin` scalars with `nout` results, mapped over arrays that broadcast.

    >>> frompyfunc(lambda x, y: x + 10 * y, 2, 1).accumulate(np.array([1, 2, 3])).tolist()
    [1, 21, 51]
    """
    return ufunc(func, nin, nout, identity=identity)


# ---- step by step ------------------------------------------------------------------------------------------------


def _dtype_of_result(op: ufunc, dtype, *asked) -> Any:
    """The dtype of the function of two scalars of `dtype`, unless another is asked for."""
    if asked and asked[0] is not None:
        return dtypes.canonical(asked[0])
    program, _ = recorded(lambda x, y: [op(x, y)], [shaped((), dtype)] * 2, op.__name__)
    return program.out_avals[0].dtype


def _loop(op: ufunc, step: Callable, carry: list, xs: list, length: int) -> list:
    """`step(carry..., one row of each of xs...) -> new carry..., outputs...` over the rows."""
    avals = [*[aval_of(c) for c in carry], *[shaped(x.shape[1:], x.dtype) for x in xs]]
    program, captured = recorded(step, avals, op.__name__)
    return scan(program, captured, carry, xs, length=length)


@fused(static=("op", "axis", "dtype", "keepdims"))
def _reduce(a, initial, where, op, axis, dtype, keepdims):
    axes = axes_of(f"{op.__name__}.reduce", axis, a.ndim)
    kept = tuple([1 if i in axes else n for i, n in enumerate(a.shape) if keepdims or i not in axes])
    dtype = _dtype_of_result(op, a.dtype, dtype)
    rows = _rows(ew.convert(a, dtype), axes)
    marks = None if where is None else _rows(spread(where, a.shape), axes)
    first = op.identity if initial is None else initial
    if first is not None:
        start = spread(ew.convert(as_array(first), dtype), rows.shape[1:])
    elif not rows.shape[0]:
        raise ValueError(f"zero-size array to reduction operation {op.__name__} which has no identity")
    else:
        start, rows = ax.squeeze(shaping.slice_in_dim(rows, 0, 1), (0,)), shaping.slice_in_dim(rows, 1, rows.shape[0])

    def step(carry, row, *mark):
        new = ew.convert(op(carry, row), dtype)
        return [ew.select(mark[0], new, carry) if mark else new]

    if rows.shape[0]:
        (start,) = _loop(op, step, [start], [rows] if marks is None else [rows, marks], rows.shape[0])
    return ax.reshape(start, kept)


def _rows(a, axes):
    """[elements over `axes`, others..]."""
    others = [i for i in range(a.ndim) if i not in axes]
    return ax.reshape(ax.transpose(a, (*axes, *others)), (math.prod([a.shape[i] for i in axes]), *[a.shape[i] for i in others]))


@fused(static=("op", "axis", "dtype"))
def _accumulate(a, op, axis, dtype):
    axis = axis_of(f"{op.__name__}.accumulate", axis, a.ndim)
    dtype = _dtype_of_result(op, a.dtype, dtype)
    rows = ax.moveaxis(ew.convert(a, dtype), axis, 0)
    if not a.size:
        return ax.moveaxis(rows, 0, axis)

    def step(carry, row):
        new = ew.convert(op(carry, row), dtype)
        return [new, new]

    first, rest = shaping.slice_in_dim(rows, 0, 1), shaping.slice_in_dim(rows, 1, rows.shape[0])
    if rest.shape[0]:
        _, running = _loop(op, step, [ax.squeeze(first, (0,))], [rest], rest.shape[0])
        first = shaping.concatenate([first, running], 0)
    return ax.moveaxis(first, 0, axis)


def _at(op: ufunc, a, indices, second: tuple):
    """One index after the other, since an element may be named more than once."""
    dtype = a.dtype if not second else _dtype_of_result(op, dtypes.result_type(a, *second))
    a, index = ew.convert(a, dtype), _index_items(op, indices, a.ndim)
    arrays = [i for i in index if isinstance(i, Array)]
    rows = np.broadcast_shapes(*[i.shape for i in arrays])
    old = IndexUpdateRef(a, index).get()
    second = tuple([spread(ew.convert(b, b.dtype), old.shape) for b in second])
    if not rows:
        return IndexUpdateRef(a, index).set(ew.convert(op(old, *second), dtype))
    count = math.prod(rows)
    at = [i for i, x in enumerate(index) if not isinstance(x, slice)]
    lead = at[0] if at[-1] - at[0] + 1 == len(at) else 0
    columns = [ax.reshape(spread(i, rows), (count,)) for i in arrays]
    columns += [_rows_first(b, lead, len(rows)) for b in second]

    def step(carry, *row):
        given = iter(row[: len(arrays)])
        place = tuple([next(given) if isinstance(i, Array) else i for i in index])
        old = IndexUpdateRef(carry, place).get()
        return [IndexUpdateRef(carry, place).set(ew.convert(op(old, *row[len(arrays):]), dtype))]

    return _loop(op, step, [a], columns, count)[0] if count else a


def _rows_first(b, lead: int, rank: int):
    """[before.., rows.., after..] as [row, before.., after..]."""
    order = [*range(lead, lead + rank), *range(lead), *range(lead + rank, b.ndim)]
    moved = ax.transpose(b, order)
    return ax.reshape(moved, (math.prod(moved.shape[:rank]), *moved.shape[rank:]))


def _index_items(op: ufunc, indices, ndim: int) -> tuple:
    """The parts of an index, each an int, a slice or an array of ints; as many slices as an ellipsis stands for."""
    items: list = []
    for i in _plain_index(indices) if isinstance(indices, tuple) else (_plain_index(indices),):
        if i is None:
            raise NotImplementedError(f"{op.__name__}.at: new axes in an index are not offered")
        if i is Ellipsis or isinstance(i, slice | int):
            items.append(i)
            continue
        x = as_array(i)
        if dtypes.is_bool(x.dtype):
            found = np.nonzero(concrete(f"{op.__name__}.at", "a mask", x))
            items.extend(as_array(k.astype(np.int32)) for k in found)
        else:
            items.append(x)
    if Ellipsis in [i for i in items if not isinstance(i, Array)]:
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        items[at : at + 1] = [slice(None)] * (ndim - len(items) + 1)
    return tuple(items)


@fused(static=("op", "axis", "dtype"))
def _reduceat(a, indices, op, axis, dtype):
    dtype = _dtype_of_result(op, a.dtype, dtype)
    rows = ax.moveaxis(ew.convert(a, dtype), axis, 0)
    out = take(rows, indices, 0)
    if not out.size:
        return ax.moveaxis(out, 0, axis)
    start, end = _segments(indices, rows.shape[0])

    def step(carry, i, row):
        at = spread(i, start.shape)
        inside = ew.and_(ew.gt(at, start), ew.lt(at, end))
        inside = ax.broadcast_in_dim(inside, carry.shape, (0,))
        return [ew.select(inside, ew.convert(op(carry, ax.expand_dims(row, (0,))), dtype), carry)]

    (out,) = _loop(op, step, [out], [shaping.iota(dtypes.int32, (rows.shape[0],)), rows], rows.shape[0])
    return ax.moveaxis(out, 0, axis)


def _segments(indices, n: int):
    """Start and end of the elements that belong to each index."""
    start = ew.convert(indices, dtypes.int32)
    last = as_array(np.full(min(1, start.shape[0]), n, np.int32))
    return start, shaping.concatenate([shaping.slice_in_dim(start, min(1, start.shape[0]), start.shape[0]), last], 0)


# ---- operations with reductions of their own ---------------------------------------------------------------------


def _bits(reduce: Callable, combine: Callable, unit: int, on_truth: bool = False) -> Callable:
    """The reduction of a bitwise operation, of bools if `on_truth`."""

    @fused(static=("axis", "dtype", "keepdims"))
    def reduction(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        a = ew.convert(a, dtypes.canonical(dtype)) if dtype is not None else a
        if on_truth and not dtypes.is_bool(a.dtype):
            a = ew.ne(a, 0)
        if where is not None:
            a = ew.select(spread(where, a.shape), a, fill(a, bool(unit) if dtypes.is_bool(a.dtype) else unit))
        axes = axes_of("reduce", axis, a.ndim)
        out = reduce(a, axes)
        if initial is not None:
            out = combine(out, spread(ew.convert(as_array(initial), out.dtype), out.shape))
        return ax.reshape(out, [1 if i in axes else n for i, n in enumerate(a.shape)]) if keepdims else out

    return reduction


def _running(run: Callable) -> Callable:
    @fused(static=("axis", "dtype"))
    def accumulate(a, axis=0, dtype=None):
        a = ew.convert(a, a.dtype if dtype is None else dtypes.canonical(dtype))
        return run(a, axis_of("accumulate", axis, a.ndim))

    return accumulate


def _updating(name: str) -> Callable:
    return lambda a, indices, b: getattr(IndexUpdateRef(a, _plain_index(indices)), name)(b)


def _plain_index(indices):
    """Lists in an index as arrays."""
    if isinstance(indices, tuple):
        return tuple([array(i, copy=False) if isinstance(i, list) else i for i in indices])
    return array(indices, copy=False) if isinstance(indices, list) else indices


def _lowest(a):
    """The neutral element of max."""
    return dtypes.iinfo(a.dtype).min if dtypes.is_integer(a.dtype) else False if dtypes.is_bool(a.dtype) else -np.inf


def _highest(a):
    """The neutral element of min."""
    return dtypes.iinfo(a.dtype).max if dtypes.is_integer(a.dtype) else True if dtypes.is_bool(a.dtype) else np.inf


def _marked(reduce: Callable, neutral: Callable | None = None) -> Callable:
    """`reduceat` as a reduction with marks [index, element]."""

    def reduceat(a, indices, axis=0, dtype=None):
        axis = axis_of("reduceat", axis, a.ndim)
        n, m = a.shape[axis], indices.shape[0]
        start, end = _segments(indices, n)
        i = ax.broadcast_in_dim(shaping.iota(dtypes.int32, (n,)), (m, n), (1,))
        start, end = (ax.broadcast_in_dim(x, (m, n), (0,)) for x in (start, ew.max(end, ew.add(start, 1))))
        marks = ew.and_(ew.ge(i, start), ew.lt(i, end))
        shape = (*a.shape[:axis], m, *a.shape[axis:])
        wide = ax.broadcast_in_dim(a, shape, tuple([d for d in range(len(shape)) if d != axis]))
        marks = ax.broadcast_in_dim(marks, shape, (axis, axis + 1))
        options = {} if neutral is None else {"initial": a.dtype.type(neutral(a))}
        return reduce(wide, axis=axis + 1, where=marks, **options, **({} if dtype is None else {"dtype": dtype}))

    return fused(reduceat, static=("axis", "dtype"))


def _sum(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
    return reductions.sum(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


def _prod(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
    return reductions.prod(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


def _extreme(reduce: Callable) -> Callable:
    def reduction(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        a = a if dtype is None else ew.convert(a, dtypes.canonical(dtype))
        return reduce(a, axis, keepdims=keepdims, initial=initial, where=where)

    return reduction


add = ufunc(
    ufuncs.add, 2, 1, identity=0, call=ufuncs.add, reduce=_sum, at=_updating("add"), reduceat=_marked(_sum),
    accumulate=lambda a, axis, dtype: running.cumsum(a, axis, dtype),
)  # fmt: skip
multiply = ufunc(
    ufuncs.multiply, 2, 1, identity=1, call=ufuncs.multiply, reduce=_prod, at=_updating("multiply"), reduceat=_marked(_prod),
    accumulate=lambda a, axis, dtype: running.cumprod(a, axis, dtype),
)  # fmt: skip
subtract = ufunc(ufuncs.subtract, 2, 1, call=ufuncs.subtract, at=_updating("subtract"))
divide = true_divide = ufunc(ufuncs.divide, 2, 1, call=ufuncs.divide)
power = pow = ufunc(ufuncs.power, 2, 1, call=ufuncs.power)
negative = ufunc(ufuncs.negative, 1, 1, call=ufuncs.negative)
maximum = ufunc(
    ufuncs.maximum, 2, 1, call=ufuncs.maximum, reduce=_extreme(reductions.max), accumulate=_running(red.cummax),
    at=_updating("max"), reduceat=_marked(_extreme(reductions.max), _lowest),
)  # fmt: skip
minimum = ufunc(
    ufuncs.minimum, 2, 1, call=ufuncs.minimum, reduce=_extreme(reductions.min), accumulate=_running(red.cummin),
    at=_updating("min"), reduceat=_marked(_extreme(reductions.min), _highest),
)  # fmt: skip
fmax = ufunc(ufuncs.fmax, 2, 1, call=ufuncs.fmax)
fmin = ufunc(ufuncs.fmin, 2, 1, call=ufuncs.fmin)
logaddexp = ufunc(
    ufuncs.logaddexp, 2, 1, identity=-np.inf, call=ufuncs.logaddexp, accumulate=_running(red.cumlogsumexp)
)  # fmt: skip
logaddexp2 = ufunc(ufuncs.logaddexp2, 2, 1, identity=-np.inf, call=ufuncs.logaddexp2)
logical_and = ufunc(
    ufuncs.logical_and, 2, 1, identity=True, call=ufuncs.logical_and, reduce=_bits(red.reduce_and, ew.and_, 1, True)
)  # fmt: skip
logical_or = ufunc(
    ufuncs.logical_or, 2, 1, identity=False, call=ufuncs.logical_or, reduce=_bits(ax.reduce_or, ew.or_, 0, True)
)  # fmt: skip
logical_xor = ufunc(
    ufuncs.logical_xor, 2, 1, identity=False, call=ufuncs.logical_xor, reduce=_bits(red.reduce_xor, ew.xor, 0, True)
)  # fmt: skip
bitwise_and = ufunc(
    ufuncs.bitwise_and, 2, 1, identity=-1, call=ufuncs.bitwise_and, reduce=_bits(red.reduce_and, ew.and_, -1)
)  # fmt: skip
bitwise_or = ufunc(ufuncs.bitwise_or, 2, 1, identity=0, call=ufuncs.bitwise_or, reduce=_bits(ax.reduce_or, ew.or_, 0))
bitwise_xor = ufunc(ufuncs.bitwise_xor, 2, 1, identity=0, call=ufuncs.bitwise_xor, reduce=_bits(red.reduce_xor, ew.xor, 0))
