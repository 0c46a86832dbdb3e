"""Arrays with elements put in, inserted, or left out.

Arrays are immutable: what NumPy does to its first argument is done to a copy here, and `inplace=False` says that one knows.
"""

from __future__ import annotations

import numpy as np

from funcml import dtypes
from funcml.core.tracing import Tracer, aval_of
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, concrete
from funcml.numpy.creation import array
from funcml.numpy.indexing import scatter_update
from funcml.numpy.manipulation import ravel
from funcml.numpy.promotion import as_array, broadcast_shapes, operand, spread
from funcml.numpy.selection import take
from funcml.numpy.sorting import argsort
from funcml.numpy.ufuncs import remainder
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import indexing, shaping, sorting
from funcml.primitives import reductions as red

__all__ = ["delete", "insert", "place", "put", "put_along_axis"]


def _array(name: str, x) -> Array:
    return array(x, copy=False) if isinstance(x, list | tuple) else as_array(operand(name, x))


def _not_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"{name}: arrays are immutable; write `x = jnp.{name}(x, ..., inplace=False)` for an updated copy")


def _along(name: str, arr, axis) -> tuple[Array, int]:
    """The array (flattened, if `axis` is None) and the axis."""
    arr = _array(name, arr)
    return (ravel(arr), 0) if axis is None else (arr, axis_of(name, axis, arr.ndim))


# ---- more and fewer elements -------------------------------------------------------------------------------------


def delete(arr, obj, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """`arr` without the elements `obj` along `axis` (of `arr` flattened, if None): an int, a slice, ints, or a mask.

    How many are left decides the shape, so `obj` must be known; traced ints will do with `assume_unique_indices`. Raises
    IndexError for an index out of bounds.

    >>> delete(np.array([5, 6, 7, 8]), np.array([0, -1])).tolist()
    [6, 7]
    """
    arr, axis = _along("delete", arr, axis)
    n = arr.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    if assume_unique_indices and isinstance(obj, Tracer) and dtypes.is_integer(obj.dtype):
        return _without(arr, ax.reshape(obj, (obj.size,)), axis)
    what = "obj (unless they are unique ints and assume_unique_indices=True)"
    keep = _kept("delete", concrete("delete", what, operand("delete", obj) if not isinstance(obj, list) else obj), n)
    return take(arr, asarray(np.flatnonzero(keep).astype(np.int32)), axis, mode="promise_in_bounds")


def _kept(name: str, obj: np.ndarray, n: int) -> np.ndarray:
    """Which of n elements are left."""
    if obj.dtype == bool and obj.ndim:
        if obj.shape != (n,):
            raise ValueError(f"{name}: a mask must be a vector of the length {n} of the axis, got the shape {obj.shape}")
        return ~obj
    if obj.dtype.kind not in "iu" and obj.size:
        raise ValueError(f"{name} expects ints, a slice or a mask as obj, got an array of dtype {obj.dtype}")
    obj = obj.astype(int) if not obj.size else obj
    outside = obj[(obj < -n) | (obj >= n)]
    if outside.size:
        raise IndexError(f"{name}: index {outside.flat[0]} is out of bounds for an axis of length {n}")
    keep = np.ones(n, bool)
    keep[obj] = False
    return keep


# Sorted, the k-th index less k is the number of elements that stay before it; element i of the result is moved up by the
# number of indices that reach it.
@fused(static=("axis",))
def _without(arr, obj, axis):
    n, gone = arr.shape[axis], obj.shape[0]
    left = max(n - gone, 0)
    obj = ew.convert(obj, dtypes.int32)
    obj = sorting.sort(indexing.wrap_negative(obj, n), 0)
    before = ew.sub(obj, shaping.iota(dtypes.int32, (gone,)))
    i = shaping.iota(dtypes.int32, (left,))
    reached = ew.ge(ax.broadcast_in_dim(i, (left, gone), (0,)), ax.broadcast_in_dim(before, (left, gone), (1,)))
    source = ew.add(i, ax.reduce_sum(ew.convert(reached, dtypes.int32), (1,)))
    return take(arr, source, axis, mode="clip")


def insert(arr, obj, values, axis: int | None = None) -> Array:
    """`arr` with `values` before the elements `obj` along `axis` (of `arr` flattened, if None): an int, a slice or ints.

    An int out of bounds raises IndexError where it is known, and is clipped where it is traced.

    >>> insert(np.array([1, 2, 3]), 1, 9).tolist()
    [1, 9, 2, 3]
    """
    arr, axis = _along("insert", arr, axis)
    n = arr.shape[axis]
    where = _insert_places(obj, n)
    values = array(values, dtype=arr.dtype, copy=False, ndmin=arr.ndim)
    if np.ndim(where) == 0:
        values = ax.moveaxis(values, 0, axis)
    if values.ndim > arr.ndim:
        raise ValueError(f"insert: values {values.aval} have more axes than the array {arr.aval}")
    count = values.shape[axis] if np.size(where) == 1 else broadcast_shapes(np.shape(where), (values.shape[axis],))[0]
    shape = tuple([count if i == axis else m for i, m in enumerate(arr.shape)])
    if broadcast_shapes(values.shape, shape) != shape:
        raise ValueError(f"insert: values {values.aval} do not broadcast to {count} places along axis {axis} of {arr.aval}")
    return _inserted(arr, where, values, axis, count)


def _insert_places(obj, n: int):
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n), dtype=np.int32)
    if not isinstance(obj, Tracer):
        obj = np.asarray(obj)
        obj = obj.astype(np.int32) if not obj.size else obj
    if obj.ndim > 1:
        raise ValueError(f"insert expects an int, a slice or a vector of ints as obj, got the shape {obj.shape}")
    if not dtypes.is_integer(obj.dtype):
        raise ValueError(f"insert expects ints as obj, got {aval_of(obj)}; of a mask take jnp.flatnonzero(mask)")
    if isinstance(obj, np.ndarray) and ((obj < -n) | (obj > n)).any():
        raise IndexError(f"insert: index {obj[(obj < -n) | (obj > n)].flat[0]} is out of bounds for an axis of length {n}")
    return obj


# Element i of the array is sorted by 2 i + 1, a value before element k by 2 k; a stable sort keeps the values in order.
@fused(static=("axis", "count"))
def _inserted(arr, where, values, axis, count):
    n = arr.shape[axis]
    where = ew.convert(as_array(where), dtypes.int32)
    where = spread(where if where.ndim else ax.reshape(where, (1,)), (count,))
    where = ew.clamp(0, indexing.wrap_negative(where, n), n)
    values = spread(values, tuple([count if i == axis else m for i, m in enumerate(arr.shape)]))
    keys = [ew.mul(where, 2), ew.add(ew.mul(shaping.iota(dtypes.int32, (n,)), 2), 1)]
    order = argsort(shaping.concatenate(keys, 0))
    return take(shaping.concatenate([values, arr], axis), order, axis, mode="promise_in_bounds")


# ---- other elements ----------------------------------------------------------------------------------------------


def put(a, ind, v, mode: str | None = None, *, inplace: bool = True) -> Array:
    """`a` with the values `v`, repeated as needed, at the flat indices `ind`. Needs `inplace=False`.

    Out of bounds: mode None is that of `x.at[ind].set`, 'clip' and 'wrap' as for `take`.
    """
    _not_inplace("put", inplace)
    a, ind, v = _array("put", a), ravel(_array("put", ind)), ravel(_array("put", v))
    if mode == "raise":
        raise NotImplementedError("put: mode 'raise' is not offered; known indices are checked without a mode")
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode must be None, 'clip' or 'wrap', got {mode!r}")
    if not a.size or not ind.size or not v.size:
        return a
    if mode == "clip":
        ind = ew.clamp(ind.dtype.type(0), ind, ind.dtype.type(a.size - 1))
    elif mode == "wrap":
        ind = remainder(ind, a.size)
    return ax.reshape(scatter_update(ravel(a), ind, _repeated_to(v, ind.size), "set"), a.shape)


@fused(static=("size",))
def _repeated_to(v, size):
    """The first `size` elements of a vector repeated."""
    times = -(-size // v.shape[0])
    v = ax.reshape(ax.broadcast_in_dim(v, (times, v.shape[0]), (1,)), (times * v.shape[0],))
    return shaping.slice_in_dim(v, 0, size)


def place(arr, mask, vals, *, inplace: bool = True) -> Array:
    """`arr` with the values `vals`, in order and repeated as needed, where `mask` is true. Needs `inplace=False`.

    >>> place(np.zeros(4), np.array([True, False, True, True]), np.array([1.0, 2.0]), inplace=False).tolist()
    [1.0, 0.0, 2.0, 1.0]
    """
    _not_inplace("place", inplace)
    arr, mask, vals = (_array("place", x) for x in (arr, mask, vals))
    if arr.size != mask.size:
        raise ValueError(f"place: the array {arr.aval} and the mask {mask.aval} must have the same number of elements")
    if not vals.size:
        raise ValueError("place: cannot place values from an empty array")
    return _placed(arr, mask, ravel(vals)) if arr.size else arr


# The element at a true place takes the value whose number is that of the true places before it.
@fused
def _placed(arr, mask, vals):
    mask = ax.reshape(mask if dtypes.is_bool(mask.dtype) else ew.ne(mask, 0), arr.shape)
    flat = ax.reshape(ew.convert(mask, dtypes.int32), (arr.size,))
    number = ew.rem(ew.max(ew.sub(red.cumsum(flat, 0), 1), 0), vals.shape[0])
    new = take(ew.convert(vals, arr.dtype), number, mode="promise_in_bounds")
    return ew.select(mask, ax.reshape(new, arr.shape), ew.convert(arr, arr.dtype))


def put_along_axis(arr, indices, values, axis: int | None, inplace: bool = True, *, mode: str | None = None) -> Array:
    """`arr` with arr[.., indices[.., i, ..], ..] = values[.., i, ..] along `axis` (flattened, if None). Needs `inplace=False`.

    The other axes of `arr` and `indices` have equal lengths, or length 1; `values` broadcast to `indices`. `mode` as for `x.at`.
    """
    _not_inplace("put_along_axis", inplace)
    arr, indices = _array("put_along_axis", arr), _array("put_along_axis", indices)
    shape = arr.shape
    arr, axis = _along("put_along_axis", arr, axis)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"put_along_axis expects integers as indices, got {indices.aval}")
    if arr.ndim != indices.ndim:
        raise ValueError(f"put_along_axis: the array {arr.aval} and the indices {indices.aval} must have the same number of axes")
    others = tuple([1 if i == axis else n for i, n in enumerate(arr.shape)])
    lengths = broadcast_shapes(others, indices.shape)
    index = [
        indices if i == axis else np.arange(n, dtype=np.int32).reshape([n if j == i else 1 for j in range(arr.ndim)])
        for i, n in enumerate(arr.shape)
    ]
    values = operand("put_along_axis", array(values, copy=False) if isinstance(values, list | tuple) else values)
    if broadcast_shapes(np.shape(values), lengths) != lengths:
        raise ValueError(f"put_along_axis: values {aval_of(values)} do not broadcast to the indices {indices.aval}")
    return ax.reshape(scatter_update(arr, tuple(index), values, "set", mode=mode), shape)


