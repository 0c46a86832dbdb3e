"""Functions of small arrays as functions of large ones: mapped over all other axes, by `vmap`.

    vectorize        : function of scalars (or of arrays, by a signature) -> function of arrays that broadcast
    apply_along_axis : (function of a vector, axis, array) -> array
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Collection, Sequence

import numpy as np

from funcml.core.config import config
from funcml.core.values import Array
from funcml.numpy.arguments import axes_of, axis_of, shape_of
from funcml.numpy.creation import arange, array
from funcml.numpy.promotion import as_array, broadcast_shapes, operand
from funcml.primitives import axes as ax
from funcml.vectorise import vmap

__all__ = ["apply_along_axis", "apply_over_axes", "fromfunction", "vectorize"]


def vectorize(pyfunc: Callable, *, excluded: Collection = frozenset(), signature: str | None = None) -> Callable:
    """`pyfunc`, a function of scalars, as one of arrays that broadcast.

    With a signature such as "(n,m),(m)->(n)" it is a function of arrays of these core axes, which stand last; the axes before
    them broadcast. Arguments named in `excluded` (places and keywords) are passed as they are. Raises ValueError where the
    arguments do not fit the signature.

    >>> dot = vectorize(lambda a, b: (a * b).sum(), signature="(n),(n)->()")
    >>> dot(np.ones((2, 1, 3)), np.ones((4, 3))).shape
    (2, 4)
    """
    if any(isinstance(e, bool) or not isinstance(e, str | int) for e in excluded):
        raise TypeError(f"vectorize: excluded must hold places (ints) and keywords (strings), got {excluded!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"vectorize: places in excluded must not be negative, got {excluded!r}")
    cores = None if signature is None else _Signature(signature)
    name = f"vectorize of {getattr(pyfunc, '__name__', 'function')}"

    @functools.wraps(pyfunc)
    def vectorized(*args, **kwargs):
        return _vectorized(name, pyfunc, excluded, cores, args, kwargs)

    return vectorized


def _vectorized(name: str, pyfunc: Callable, excluded: Collection, cores: _Signature | None, args: tuple, kwargs: dict):
    places = [i for i in range(len(args)) if i not in excluded]
    dims = [()] * len(places) if cores is None else cores.inputs
    if len(dims) != len(places):
        raise TypeError(f"{name}: wrong number of positional arguments: expected {len(dims)}, got {len(places)}")
    missing = {i for i, d in zip(places, dims, strict=True) if args[i] is None and d}
    if cores is not None and missing:
        raise ValueError(f"{name}: Cannot pass None at locations {missing} with signature={cores.text!r}: core axes belong there")
    mapped = [(i, d) for i, d in zip(places, dims, strict=True) if args[i] is not None]
    keywords = [k for k in kwargs if k not in excluded]
    given = [_array(name, x) for x in (*[args[i] for i, _ in mapped], *[kwargs[k] for k in keywords])]
    sizes: dict[str, int] = {}
    if cores is not None:
        for x, (_, d) in zip(given, mapped, strict=False):
            cores.check(sizes, x.shape, d, name, is_input=True)

    def of_cores(*examples):
        full = list(args)
        for (i, _), x in zip(mapped, examples, strict=False):
            full[i] = x
        out = pyfunc(*full, **kwargs | dict(zip(keywords, examples[len(mapped) :], strict=True)))
        if cores is not None:
            cores.check_outputs(dict(sizes), out, name)
        return out

    return _broadcast(name, of_cores, given, [*[len(d) for _, d in mapped], *[0] * len(keywords)])


def _array(name: str, x) -> Array:
    return array(x, copy=False) if isinstance(x, list | tuple) else as_array(operand(name, x))


def _broadcast(name: str, function: Callable, xs: list[Array], core_ranks: list[int]):
    """The function mapped over the axes in front of the core axes; an axis of length 1 is not mapped, but shared."""
    outer = [x.shape[: x.ndim - r] for x, r in zip(xs, core_ranks, strict=True)]
    _check_ranks(name, xs, outer)
    shape = broadcast_shapes(*outer)
    short = [tuple([i for i, n in enumerate(s) if n == 1]) for s in outer]
    squeezed = [ax.squeeze(x, gone) for x, gone in zip(xs, short, strict=True)]
    new: list[int] = []
    for axis in reversed(range(len(shape))):  # vmap over the last axis first: it is the innermost
        lengths = [(1,) * (len(shape) - len(s)) + s for s in outer]
        in_axes = tuple([None if s[axis] == 1 else 0 for s in lengths])
        if all(a is None for a in in_axes):
            new.append(axis)
        else:
            function = vmap(function, in_axes)
    out = function(*squeezed)
    if not new:
        return out
    return tuple([ax.expand_dims(x, tuple(new)) for x in out]) if isinstance(out, tuple) else ax.expand_dims(out, tuple(new))


def _check_ranks(name: str, xs, outer) -> None:
    if config.numpy_rank_promotion == "allow" or len({len(s) for s, x in zip(outer, xs, strict=True) if x.ndim}) < 2:
        return
    message = (
        f"{name}: operands with shapes {[x.shape for x in xs]} require rank promotion and numpy_rank_promotion is "
        f"{config.numpy_rank_promotion!r}; add axes with x[None], or set it to 'allow'"
    )
    if config.numpy_rank_promotion == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=4)


_CORE = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_CORES = rf"\s*{_CORE}\s*(?:,\s*{_CORE}\s*)*"


class _Signature:
    """The names of the core axes of inputs and outputs: "(n,m),(m)->(n)"."""

    def __init__(self, text: str):
        if not re.fullmatch(rf"(?:{_CORES}|\s*)->{_CORES}", text):
            raise ValueError(f"vectorize: not a valid gufunc signature: {text!r}; write for example '(n,m),(m)->(n)'")
        self.text = text
        self.inputs, self.outputs = (
            [tuple(re.findall(r"\w+", core)) for core in re.findall(_CORE, side)] for side in text.split("->")
        )

    def check(self, sizes: dict[str, int], shape, dims, name: str, *, is_input: bool) -> None:
        """Notes the lengths of core axes; raises ValueError where they contradict each other, or axes are missing."""
        if len(shape) < len(dims) if is_input else len(shape) != len(dims):
            trouble = "does not have enough dimensions for all core dimensions" if is_input else "does not match core dimensions"
            kind = "input with" if is_input else "output"
            raise ValueError(f"{name}: {kind} shape {tuple(shape)} {trouble} {dims} of the signature {self.text!r}")
        for dim, n in zip(dims, shape[len(shape) - len(dims) :], strict=True):
            if sizes.setdefault(dim, n) != n:
                raise ValueError(
                    f"{name}: inconsistent size for core dimension {dim!r} of the signature {self.text!r}: {n} and {sizes[dim]}"
                )

    def check_outputs(self, sizes: dict[str, int], out, name: str) -> None:
        """Raises where the outputs do not fit the signature."""
        if len(self.outputs) > 1 and not isinstance(out, tuple):
            raise TypeError(f"{name}: output must be a tuple when multiple outputs are expected, got: {out!r}")
        outs = out if isinstance(out, tuple) else (out,)
        if len(outs) != len(self.outputs):
            raise TypeError(f"{name}: wrong number of output arguments: expected {len(self.outputs)}, got {len(outs)}")
        for x, dims in zip(outs, self.outputs, strict=True):
            self.check(sizes, np.shape(x), dims, name, is_input=False)


def apply_along_axis(func1d: Callable, axis: int, arr, *args, **kwargs):
    """`func1d(v, *args, **kwargs)` of every vector `v` along an axis of `arr`; what it gives stands in place of that axis.

    >>> apply_along_axis(lambda v: v[::-1], 0, np.array([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    arr = _array("apply_along_axis", arr)
    axis = axis_of("apply_along_axis", axis, arr.ndim)

    def of_vector(v):
        return func1d(v, *args, **kwargs)

    function = of_vector
    for i in range(1, arr.ndim - axis):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(axis):
        function = vmap(function)
    return function(arr)


def apply_over_axes(func: Callable, a, axes: int | Sequence[int]) -> Array:
    """`func(x, axis)` applied for one axis after the other; an axis that it drops comes back with length 1."""
    a = _array("apply_over_axes", a)
    for axis in axes_of("apply_over_axes", list(axes) if np.iterable(axes) else axes, a.ndim):
        out = as_array(func(a, axis))
        if out.ndim not in (a.ndim, a.ndim - 1):
            raise ValueError(
                f"apply_over_axes: function is not returning an array of the correct shape: of {a.aval} it made {out.aval}, "
                "but may drop one axis only"
            )
        a = out if out.ndim == a.ndim else ax.expand_dims(out, (axis,))
    return a


def fromfunction(function: Callable, shape, *, dtype=float, **kwargs):
    """`function(i, j, ...)` of the index of each element of an array of this shape; the indices come as scalars.

    >>> fromfunction(lambda i, j: i + j, (2, 3), dtype=int).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    shape = shape_of("fromfunction", shape)

    def of_indices(*indices):
        return function(*indices, **kwargs)

    mapped = of_indices
    for axis in reversed(range(len(shape))):
        mapped = vmap(mapped, in_axes=tuple([0 if i == axis else None for i in range(len(shape))]))
    return mapped(*[arange(n, dtype=dtype) for n in shape])
