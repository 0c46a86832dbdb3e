"""Making arrays: from values, from a shape, from a rule for the elements.

A dtype that is asked for is honoured; without one, the defaults are 32 bits wide unless `config.enable_x64`.
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import Tracer, aval_of, bind, current_frame
from funcml.core.values import Array
from funcml.lowering import array as device_array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, concrete, dtype_or, index_of, no_sharding, shape_of
from funcml.numpy.promotion import (
    PYTHON_SCALARS,
    as_array,
    broadcast_shapes,
    literal,
    operand,
    promote,
    promote_dtypes,
    settle,
    spread,
)
from funcml.primitives import elementwise as ew
from funcml.primitives import identities, shaping
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import broadcast_in_dim, broadcast_in_dim_p, moveaxis, reshape
from funcml.primitives.identities import optimization_barrier
from funcml.primitives.keys import filled_keys

__all__ = [
    "arange",
    "array",
    "asarray",
    "astype",
    "copy",
    "empty",
    "empty_like",
    "from_dlpack",
    "full",
    "full_like",
    "geomspace",
    "indices",
    "ix_",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def on_device(x: Array, device) -> Array:
    """`x` on a device, if one is asked for. Inside a trace it stays where the program runs."""
    return x if device is None or isinstance(x, Tracer) else device_array.asarray(x, device=device)


# ---- from values -------------------------------------------------------------------------------------------------


def array(
    object, dtype=None, copy: bool = True, order: str | None = "K", ndmin: int = 0, *, device=None, out_sharding=None
) -> Array:
    """An array of the elements of `object`: an array of any library, a number, or nested sequences of these.

    Without `dtype` a NumPy array keeps its own; Python numbers take the defaults and are weakly typed when they stand
    alone. Raises TypeError for what is no array, and OverflowError for an integer that the dtype does not hold.

    >>> array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    no_sharding("array", out_sharding)
    if order not in ("K", "C", "A", "F", None):
        raise ValueError(f"array: order must be 'K', 'A', 'C' or 'F', got {order!r}")
    dtype = None if dtype is None else dtypes.canonical(dtype)
    x = _from_value(object, dtype)
    if copy and x is object:
        x = identities.copy(x) if isinstance(x, Tracer) else x.__copy__()
    if x.ndim < ndmin:
        x = reshape(x, (1,) * (ndmin - x.ndim) + x.shape)
    return on_device(x, device)


def _from_value(x, dtype) -> Array:
    if not isinstance(x, Array | np.ndarray | list | tuple) and hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    if isinstance(x, Array):
        return x if dtype is None else ew.convert(x, dtype)
    if isinstance(x, list | tuple) and _holds_tracer(x):
        return _stacked(x, dtype)
    if current_frame() is not None and type(x) in PYTHON_SCALARS:
        return as_array(x) if dtype is None else _filled(literal(x, dtype), ())
    return device_array.asarray(x, dtype)


def _holds_tracer(x) -> bool:
    return any(isinstance(y, Tracer) or (isinstance(y, list | tuple) and _holds_tracer(y)) for y in x)


def _stacked(x, dtype) -> Array:
    """Nested sequences with traced elements: the parts become arrays, then one."""
    parts = [_from_value(y, dtype) for y in x]
    shapes = {p.shape for p in parts}
    if len(shapes) > 1:
        raise ValueError(f"array: the elements of a sequence must have one shape, got {sorted(shapes)}")
    parts = promote_dtypes("array", *parts)
    return shaping.concatenate([reshape(ew.convert(p, p.dtype), (1, *p.shape)) for p in parts], 0)


def asarray(a, dtype=None, order: str | None = None, *, copy: bool | None = None, device=None, out_sharding=None) -> Array:
    """`array`, without a copy where `a` is an array of that dtype already (`copy=None` or False).

    >>> asarray(2.5)
    Array(2.5, dtype=float32, weak_type=True)
    """
    no_sharding("asarray", out_sharding)
    return array(a, dtype, copy=bool(copy), order=order, device=device)


def copy(a, order: str | None = None) -> Array:
    """An array with the same elements in memory of its own."""
    return array(a, copy=True, order=order)


def astype(x, dtype, /, *, copy: bool = False, device=None) -> Array:
    """`x` as an array of another dtype; from complex to real the imaginary part is dropped."""
    given = as_array(operand("astype", x))
    out = ew.convert(given, dtype_or(dtype, dtypes.default_float()))
    return on_device(array(out) if copy and out is given else out, device)


def from_dlpack(x, /, *, device=None, copy: bool | None = None) -> Array:
    """The array of an object with `__dlpack__`; its memory is shared where possible."""
    return device_array.from_dlpack(x, device, copy)


# ---- from a shape ------------------------------------------------------------------------------------------------


def _filled(value, shape: tuple[int, ...]) -> Array:
    """A scalar of the right dtype, everywhere."""
    return bind(broadcast_in_dim_p, (value,), {"shape": shape, "broadcast_dimensions": ()})


def _constant(value: int, name: str, shape, dtype, device) -> Array:
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        call = f"{name}({shape}, {dtype})", f"{name}(({shape}, {dtype}))"
        raise TypeError(f"{name}: {dtype} is no dtype; did you accidentally write `{call[0]}` when you meant `{call[1]}`?")
    dtype, shape = dtype_or(dtype, dtypes.default_float()), shape_of(name, shape)
    x = filled_keys(shape, dtype, value) if dtypes.is_key(dtype) else _filled(literal(value, dtype), shape)
    return on_device(x, device)


def zeros(shape, dtype=None, *, device=None, out_sharding=None) -> Array:
    """An array of zeros; `shape` is an int or a sequence of ints.

    >>> zeros((2, 3)).dtype
    dtype('float32')
    """
    no_sharding("zeros", out_sharding)
    return _constant(0, "zeros", shape, dtype, device)


def ones(shape, dtype=None, *, device=None, out_sharding=None) -> Array:
    """An array of ones."""
    no_sharding("ones", out_sharding)
    return _constant(1, "ones", shape, dtype, device)


def empty(shape, dtype=None, *, device=None, out_sharding=None) -> Array:
    """An array of zeros: there is no uninitialised memory."""
    no_sharding("empty", out_sharding)
    return _constant(0, "empty", shape, dtype, device)


def full(shape, fill_value, dtype=None, *, device=None, out_sharding=None) -> Array:
    """An array of one value, or of `fill_value` broadcast to `shape`."""
    no_sharding("full", out_sharding)
    shape = shape_of("full", shape)
    value = operand("full", fill_value)
    found, weak = dtypes.dtype_of(value)
    dtype, weak = (found, weak) if dtype is None else (dtypes.canonical(dtype), False)
    if dtypes.is_key(dtype) and not dtypes.is_key(found):
        x = filled_keys(shape, dtype, concrete("full", "a word of keys", value).item())
    elif np.ndim(value) == 0 and not isinstance(value, Array):
        x = _filled(literal(value, dtype, weak), shape)
    else:
        x = spread(ew.convert(as_array(value), dtype, weak), _checked_spread("full", value, shape))
    return on_device(x, device)


def _checked_spread(name, x, shape):
    if broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"{name}: {aval_of(x)} does not broadcast to the shape {shape}")
    return shape


def _like(name: str, a, dtype, shape):
    a = a if hasattr(a, "shape") and hasattr(a, "dtype") else operand(name, a)
    shape = np.shape(a) if shape is None else shape_of(name, shape)
    found, weak = dtypes.dtype_of(a)
    return (found, weak, shape) if dtype is None else (dtypes.canonical(dtype), False, shape)


def full_like(a, fill_value, dtype=None, shape=None, *, device=None, out_sharding=None) -> Array:
    """An array of one value, with the shape and dtype of `a` where these are not given."""
    no_sharding("full_like", out_sharding)
    dtype, weak, shape = _like("full_like", a, dtype, shape)
    x = full(shape, fill_value, dtype, device=device)
    return ew.convert(x, dtype, True) if weak else x


def zeros_like(a, dtype=None, shape=None, *, device=None, out_sharding=None) -> Array:
    """An array of zeros, with the shape and dtype of `a` where these are not given."""
    no_sharding("zeros_like", out_sharding)
    return full_like(a, 0, dtype, shape, device=device)


def ones_like(a, dtype=None, shape=None, *, device=None, out_sharding=None) -> Array:
    """An array of ones, with the shape and dtype of `a` where these are not given."""
    no_sharding("ones_like", out_sharding)
    return full_like(a, 1, dtype, shape, device=device)


def empty_like(prototype, dtype=None, shape=None, *, device=None) -> Array:
    """An array of zeros, with the shape and dtype of `prototype` where these are not given."""
    return full_like(prototype, 0, dtype, shape, device=device)


# ---- ranges ------------------------------------------------------------------------------------------------------

_EXACT_IN_I32 = 2**31


def arange(start, stop=None, step=None, dtype=None, *, device=None, out_sharding=None) -> Array:
    """start, start + step, ... below stop (0, 1, ... below start, if that is all there is).

    The length is NumPy's, ceil((stop - start) / step). All arguments must be known values, since they decide the shape.

    >>> arange(4)
    Array([0, 1, 2, 3], dtype=int32)
    """
    no_sharding("arange", out_sharding)
    given = [x for x in (start, stop, step) if x is not None]
    dtype = dtypes.result_type(*given) if dtype is None else dtypes.canonical(dtype)
    if stop is None:
        start, stop = 0, start
    start, stop, step = (
        concrete("jnp.arange", what, x) for what, x in (("start", start), ("stop", stop), ("step", 1 if step is None else step))
    )
    if any(x.dtype.kind == "c" for x in (start, stop, step)):
        raise ValueError("arange: complex numbers have no order; start, stop and step must be real (start + step * arange(n))")
    if any(x.ndim for x in (start, stop, step)):
        raise TypeError(f"arange expects numbers, got arrays of shapes {start.shape}, {stop.shape}, {step.shape}")
    if step == 0:
        raise ValueError("arange: step must not be zero")
    start, stop, step = (_number(x) for x in (start, stop, step))
    length = _length(start, stop, step)
    x = _counted(start, step, length, dtype)
    return on_device(x, device)


def _length(start, stop, step) -> int:
    """NumPy's ceil((stop - start) / step); of complex numbers, the lesser of what both parts give."""
    if _are_ints(start, stop, step):
        return len(range(start, stop, step))
    steps = (stop - start) / step
    if isinstance(steps, complex):
        return max(0, min(math.ceil(steps.real), math.ceil(steps.imag)))
    return max(0, math.ceil(steps))


def _number(x: np.ndarray):
    """A NumPy scalar as a Python number, by way of float64 where Python does not know its dtype."""
    value = x.item()
    return value if isinstance(value, int | float | complex) else float(x.astype(np.float64))


def _are_ints(*values) -> bool:
    return all(isinstance(v, int) for v in values)


def _counted(start, step, length: int, dtype) -> Array:
    """start + i step: counted in integers on the device where that is exact, else in float64 on the host."""
    exact = start == int(start) and step == int(step)
    if not exact or dtypes.is_complex(dtype) or dtypes.is_bool(dtype):
        return device_array.asarray(start + np.arange(length) * step, dtype)
    start, step = int(start), int(step)
    if dtypes.is_integer(dtype):
        counter = dtype
    else:
        small = max(abs(start), abs(start + step * length)) < _EXACT_IN_I32
        counter = dtypes.int32 if small else dtypes.int64
    return _count(length, start, step, counter, dtype)


@fused(static=("length", "start", "step", "counter", "dtype"))
def _count(length, start, step, counter, dtype):
    x = shaping.iota(counter, (length,))
    if step != 1:
        x = ew.mul(x, literal(step, counter))
    if start != 0:
        x = ew.add(x, literal(start, counter))
    return ew.convert(x, dtype)


def linspace(start, stop, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype=None, axis: int = 0, *,
             device=None):
    """`num` evenly spaced values from start to stop, along a new axis at `axis`; with `retstep`, also their distance.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = index_of("linspace", "num", num)
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}")
    inexact = dtypes.inexact_dtype(dtypes.result_type(operand("linspace", start), operand("linspace", stop)))
    dtype = dtype_or(dtype, inexact)
    if not isinstance(start, Array) and not isinstance(stop, Array):
        values, step = np.linspace(start, stop, num, endpoint, retstep=True, axis=axis)
        values = np.floor(values) if dtypes.is_integer(dtype) else values
        out, step = device_array.asarray(values, dtype, device), device_array.asarray(np.asarray(step), inexact, device)
    else:
        out, step = _linspace(*settle("linspace", start, stop), num, endpoint, dtype, axis)
    return (out, step) if retstep else out


# x_i = start (n - i) / n + stop i / n. The barrier keeps both shares rounded alike, so that the middle of (-a, a) is 0; both
# ends are put in as they are.
@fused(static=("num", "endpoint", "dtype", "axis"))
def _linspace(start, stop, num, endpoint, dtype, axis):
    start, stop = promote("linspace", start, stop, inexact=True, full=True)
    shape, inexact = aval_of(start).shape, aval_of(start).dtype
    intervals = num - 1 if endpoint else num
    scale = literal(1 / intervals if intervals else math.nan, inexact)
    step = ew.mul(ew.sub(stop, start), scale)
    real = dtypes.real_dtype(inexact)
    n, place = literal(max(intervals, 1), real), shaping.iota(real, (num,))
    shares = optimization_barrier((ew.div(ew.sub(n, place), n), ew.div(place, n)))
    thin = [reshape(x, (1, *shape)) for x in (start, stop)]
    out = ew.add(*[
        ew.mul(spread(x, (num, *shape)), broadcast_in_dim(ew.convert(share, inexact), (num, *shape), (0,)))
        for x, share in zip(thin, shares, strict=True)
    ])
    if num:
        ends = (thin[0], *thin[1:][: endpoint and num > 1])
        inside = shaping.slice_in_dim(out, 1, num + 1 - len(ends))
        out = shaping.concatenate([ends[0], inside, *ends[1:]], 0)
    if dtypes.is_integer(dtype):
        out = ew.floor(out)
    return ew.convert(moveaxis(out, 0, axis_of("linspace", axis, len(shape) + 1)), dtype), step


def logspace(start, stop, num: int = 50, endpoint: bool = True, base=10.0, dtype=None, axis: int = 0) -> Array:
    """base ** x for `num` evenly spaced x from start to stop."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    base, exponents = settle("logspace", base, exponents)
    return _powers(base, exponents, dtype_or(dtype, exponents.dtype))


@fused(static=("dtype",))
def _powers(base, exponents, dtype):
    base, exponents = promote("logspace", base, exponents, full=True)
    return ew.convert(tr.pow(base, exponents), dtype)


def geomspace(start, stop, num: int = 50, endpoint: bool = True, dtype=None, axis: int = 0) -> Array:
    """`num` values from start to stop whose ratios are equal; both ends have one sign (or are complex)."""
    if isinstance(start, Array) or isinstance(stop, Array):
        return _geomspace(*settle("geomspace", start, stop), num, endpoint, dtype, axis)
    inexact = dtypes.inexact_dtype(dtypes.result_type(operand("geomspace", start), operand("geomspace", stop)))
    return device_array.asarray(np.geomspace(start, stop, num, endpoint, axis=axis), dtype_or(dtype, inexact))


# x_i = s exp(log(start / s) + i step), s = sign of start
@fused(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start, stop, num, endpoint, dtype, axis):
    start, stop = promote("geomspace", start, stop, inexact=True, full=True)
    sign = ew.sign(start)
    logs = linspace(tr.log(ew.div(start, sign)), tr.log(ew.div(stop, sign)), num, endpoint, axis=axis)
    sign = reshape(sign, [*sign.shape[: axis_of("geomspace", axis, logs.ndim)], 1,
                          *sign.shape[axis_of("geomspace", axis, logs.ndim):]])
    out = ew.mul(tr.exp(logs), spread(sign, logs.shape))
    return ew.convert(out, dtype_or(dtype, logs.dtype))


# ---- grids and index arrays --------------------------------------------------------------------------------------


def meshgrid(*xi, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Coordinate arrays of the grid that vectors span; 'xy' swaps the first two axes of the result, 'ij' does not."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    xs = [as_array(operand("meshgrid", x)) for x in xi]
    if any(x.ndim > 1 for x in xs):
        raise ValueError(f"meshgrid expects vectors, got {', '.join(str(x.aval) for x in xs)}")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) >= 2:
        order[:2] = 1, 0
    lengths = [1] * len(xs)
    for axis, x in zip(order, xs, strict=True):
        lengths[axis] = x.size
    thin = [reshape(x, [x.size if i == axis else 1 for i in range(len(xs))]) for axis, x in zip(order, xs, strict=True)]
    return thin if sparse else [spread(x, tuple(lengths)) for x in thin]


def indices(dimensions, dtype=None, sparse: bool = False):
    """The index along each axis of a grid, stacked in front: [axes, *dimensions]; with `sparse`, a tuple of thin arrays."""
    dimensions = shape_of("indices", dimensions)
    dtype = dtype_or(dtype, dtypes.default_int())
    if sparse:
        return tuple([reshape(shaping.iota(dtype, (n,)), [n if i == axis else 1 for i in range(len(dimensions))])
                      for axis, n in enumerate(dimensions)])
    return _indices(dimensions, dtype)


@fused(static=("dimensions", "dtype"))
def _indices(dimensions, dtype):
    if not dimensions:
        return _filled(literal(0, dtype), (0,))
    return shaping.concatenate([shaping.iota(dtype, (1, *dimensions), axis + 1) for axis in range(len(dimensions))], 0)


def ix_(*args) -> tuple[Array, ...]:
    """Vectors, shaped so that indexing with them takes the grid that they span; of a bool vector, its true places."""
    out = []
    for i, x in enumerate(args):
        x = as_array(x) if isinstance(x, Array) else device_array.asarray(np.asarray(x, None if np.size(x) else int))
        if x.ndim != 1:
            raise ValueError(f"ix_ expects vectors, got {x.aval}")
        if dtypes.is_bool(x.dtype):
            x = device_array.asarray(np.flatnonzero(concrete("ix_", "a bool vector", x)), dtypes.default_int())
        out.append(reshape(x, [x.size if j == i else 1 for j in range(len(args))]))
    return tuple(out)
