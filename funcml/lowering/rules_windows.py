"""StableHLO of `primitives.windows`.

XLA's CPU backend visits the elements of a window one by one. Small windows are there written as an operation on slices of the
array, which it vectorises; long ones along each axis by itself, by windows of half the length.
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.lowering.emit import lowers, numbers, tensor_type
from funcml.lowering.rules_reductions import greatest, least
from funcml.lowering.rules_shaping import slice_text
from funcml.primitives import windows
from funcml.primitives.patches import Window, dilated_length

#: the most slices that a window is read by
_FEW = 36


def window_attributes(window: Window) -> str:
    """The window as attributes of `stablehlo.reduce_window`."""
    pairs = ", ".join(f"[{low}, {high}]" for low, high in window.padding)
    padding = f", padding = dense<[{pairs}]> : tensor<{len(window.padding)}x2xi64>" if window.padding else ""
    fields = (
        ("window_dimensions", window.dimensions),
        ("window_strides", window.strides),
        ("base_dilations", window.base_dilation),
        ("window_dilations", window.window_dilation),
    )
    return ", ".join(f"{name} = array<i64{':' if v else ''} {numbers(v)}>" for name, v in fields) + padding


def _windowed(operation: str, unit):
    """The rule of a reduction by one StableHLO operation; `unit(dtype)` is its neutral element."""

    def rule(emit, eqn, operands):
        (x,), (out,), window = eqn.invars, eqn.outvars, eqn.params["window"]
        neutral = unit(x.aval.dtype)
        if 0 in (x.aval.size, out.aval.size):
            return emit.constant(neutral, out.aval)
        if emit.platform == "cpu":
            return _on_cpu(emit, operation, neutral, operands[0], x.aval, window, out.aval)
        return _by_window(emit, operation, neutral, operands[0], x.aval, window, out.aval)

    return rule


def _on_cpu(emit, operation, neutral, x, aval, window, out):
    """Sums of short floats are summed in f32."""
    wide = dtypes.float32 if operation == "add" and dtypes.is_float(aval.dtype) and aval.dtype.itemsize < 4 else aval.dtype
    given, summed = aval.update(dtype=wide), out.update(dtype=wide)
    x = x if given is aval else emit.convert(x, aval, given)
    for part in _separate(window) if window.size > _FEW else [window]:
        there = summed if part is window else given.update(shape=part.result_shape(given.shape))
        x, given = _best(part)(emit, operation, neutral, x, given, part, there), there
    return x if wide == aval.dtype else emit.convert(x, summed, out)


def _best(window: Window):
    """The way to write a window: few slices, doubling where many windows overlap, or the operation itself."""
    if window.size <= _FEW:
        return _by_slices
    (axis,) = [d for d, k in enumerate(window.dimensions) if k > 1]
    return _by_doubling if 4 * window.strides[axis] <= window.size else _by_window


def _separate(window: Window):
    """Windows along one axis each, which one after another do the same."""
    still = (1, 1, (0, 0), 1, 1)
    for d, moves in enumerate(zip(*window, strict=True)):
        if moves != still:
            rows = [moves if i == d else still for i in range(len(window.dimensions))]
            yield Window(*zip(*rows, strict=True))


def _by_slices(emit, operation, neutral, x, aval, window, out):
    x, aval = _padded(emit, x, aval, emit.constant(neutral, shaped((), aval.dtype)), window)
    total = None
    for bounds in window.slices(out.shape):
        part = slice_text(emit, x, aval, out, *bounds)
        total = part if total is None else emit.op(f"stablehlo.{operation} {total}, {part} : {tensor_type(out)}")
    return total


def _by_doubling(emit, operation, neutral, x, aval, window, out):
    """Windows of 1, 2, 4, .. elements along the one axis, each made of two of half the length; those that the binary digits
    of the length name are put one behind the other."""
    (axis,) = [d for d, k in enumerate(window.dimensions) if k > 1]
    length, step = window.dimensions[axis], window.window_dilation[axis]

    def joined(left, right, apart):
        """What covers `left`, then `right` from `apart` elements on."""
        (x, x_aval), (y, y_aval) = left, right
        n = min(x_aval.shape[axis], y_aval.shape[axis] - apart * step)
        to = x_aval.update(shape=(*x_aval.shape[:axis], n, *x_aval.shape[axis + 1 :]))
        parts = [_part_along(emit, v, a, to, axis, start) for v, a, start in ((x, x_aval, 0), (y, y_aval, apart * step))]
        return emit.op(f"stablehlo.{operation} {', '.join(parts)} : {tensor_type(to)}"), to

    power = _padded(emit, x, aval, emit.constant(neutral, shaped((), aval.dtype)), window)
    found, covered, size = None, 0, 1
    while covered < length:
        if length & size:
            found = power if found is None else joined(found, power, covered)
            covered += size
        if covered < length:
            power, size = joined(power, power, size), 2 * size
    return _part_along(emit, *found, out, axis, 0, window.strides[axis])


def _part_along(emit, x, aval, out, axis, start, stride=1):
    """The part of `x` from `start` on along `axis` that has the shape of `out`."""
    starts, limits, strides = [0] * aval.ndim, list(aval.shape), [1] * aval.ndim
    starts[axis], strides[axis] = start, stride
    limits[axis] = start + (out.shape[axis] - 1) * stride + 1
    return slice_text(emit, x, aval, out, starts, limits, strides)


def _padded(emit, x, aval, fill, window: Window):
    """(x with the scalar `fill` in the holes that the window sees, its aval)."""
    if not any(map(any, window.padding)) and all(b == 1 for b in window.base_dilation):
        return x, aval
    low, high = zip(*window.padding, strict=True)
    interior = [b - 1 for b in window.base_dilation]
    lengths = [dilated_length(n, b) for n, b in zip(aval.shape, window.base_dilation, strict=True)]
    out = aval.update(shape=tuple([n + a + b for n, a, b in zip(lengths, low, high, strict=True)]))
    text = (
        f"stablehlo.pad {x}, {fill}, low = [{numbers(low)}], high = [{numbers(high)}], interior = [{numbers(interior)}] : "
        f"({tensor_type(aval)}, {tensor_type(shaped((), aval.dtype))}) -> {tensor_type(out)}"
    )
    return emit.op(text), out


def _by_window(emit, operation, neutral, x, aval, window, out):
    start = emit.constant(neutral, shaped((), aval.dtype))
    s, a, b = tensor_type(shaped((), aval.dtype)), emit.fresh(), emit.fresh()

    def body(emit):
        emit.lines.append(f"stablehlo.return {emit.op(f'stablehlo.{operation} {a}, {b} : {s}')} : {s}")

    return emit.op(
        f'"stablehlo.reduce_window"({x}, {start}) <{{{window_attributes(window)}}}> ({{\n'
        f"^bb0({a}: {s}, {b}: {s}):\n{emit.region(body)}\n}}) : ({tensor_type(aval)}, {s}) -> {tensor_type(out)}"
    )


lowers(windows.reduce_window_sum_p)(_windowed("add", lambda dtype: 0))
lowers(windows.reduce_window_max_p)(_windowed("maximum", least))
lowers(windows.reduce_window_min_p)(_windowed("minimum", greatest))
