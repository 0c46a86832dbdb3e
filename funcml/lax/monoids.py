"""Reductions by a function that the caller gives, over axes and over windows; sums, products and extremes are recognised.

    reduce        : (tree of [.., n, ..], tree of [], (tree, tree) -> tree) -> tree of [.., ..]
    reduce_window : (tree of [W..],       tree of [], (tree, tree) -> tree) -> tree of [V..]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes, tree
from funcml.core.avals import shaped
from funcml.core.ir import Jaxpr, intern
from funcml.core.tracing import aval_of, eval_jaxpr, trace, value_of
from funcml.core.values import Array
from funcml.lax.convolution import padtype_to_pads
from funcml.lax.operands import array, unsharded
from funcml.numpy.arguments import axes_of, index_of
from funcml.numpy.promotion import PYTHON_SCALARS, as_array, literal, operand
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import reductions as red
from funcml.primitives import windows
from funcml.primitives.patches import Window, dilated_length
from funcml.transforms import monoids

__all__ = ["reduce", "reduce_window", "reduce_window_shape_tuple"]

#: operation -> the reduction over axes that is made for it
_REDUCTIONS = {
    ew.add: ax.reduce_sum,
    ew.mul: red.reduce_prod,
    ew.max: red.reduce_max,
    ew.min: red.reduce_min,
    ew.and_: red.reduce_and,
    ew.or_: ax.reduce_or,
    ew.xor: red.reduce_xor,
}


def reduce(operands, init_values, computation: Callable, dimensions: Sequence[int], out_sharding=None):
    """A tree of arrays of one shape, reduced over `dimensions` by an associative function of two such trees of scalars.

    `init_values` are its neutral elements. Raises TypeError for a function that gives other types, ValueError for shapes or
    trees that do not fit.

    >>> from funcml import lax, numpy as jnp
    >>> x = jnp.array([3.0, 7.0, 5.0])
    >>> reduce(x, 1.0, lax.mul, (0,))
    Array(105., dtype=float32)
    >>> def later(a, b):
    ...     return lax.select(a[0] >= b[0], a[0], b[0]), lax.select(a[0] >= b[0], a[1], b[1])
    >>> reduce((x, jnp.arange(3)), (-jnp.inf, 0), later, (0,))
    (Array(7., dtype=float32), Array(1, dtype=int32))
    """
    unsharded("reduce", out_sharding)
    xs, inits, treedef = _flat_operands("lax.reduce", operands, init_values)
    axes = axes_of("lax.reduce", tuple(dimensions), xs[0].ndim)
    combine = _program("lax.reduce", computation, treedef, xs)
    operation = _operation(combine)
    if operation in _REDUCTIONS and not (operation is ew.mul and dtypes.is_bool(xs[0].dtype)):
        out = _REDUCTIONS[operation](xs[0], axes)
        return tree.unflatten(treedef, [operation(out, ax.broadcast_in_dim(inits[0], aval_of(out).shape))])
    return tree.unflatten(treedef, monoids.reduce(xs, inits, combine, axes))


def reduce_window(
    operand,
    init_value,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding="VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
):
    """A tree of arrays of one shape, reduced over moving windows by an associative function of two such trees of scalars.

    Windows and what they move over have values for every axis. What a window covers outside the operand, and between its
    elements where `base_dilation` spreads it, plays no part. `init_value` is a neutral element. Raises as `reduce` does.

    >>> from funcml import lax, numpy as jnp
    >>> reduce_window(jnp.array([1.0, 5.0, 2.0, 4.0]), -jnp.inf, lax.max, (2,), (2,))
    Array([5., 4.], dtype=float32)
    """
    name = "lax.reduce_window"
    xs, inits, treedef = _flat_operands(name, operand, init_value)
    window = _window(name, xs[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    windows.check_window(name, xs[0].aval, window)
    combine = _program(name, computation, treedef, xs)
    known = _known_window(_operation(combine), xs[0], inits[0])
    if known is not None:
        return tree.unflatten(treedef, [known(xs[0], window)])
    return tree.unflatten(treedef, monoids.reduce_window(xs, inits, combine, window))


def _known_window(operation, x, init):
    """The reduction that is made for the operation, if the initial value is its neutral element."""
    real = not dtypes.is_complex(x.dtype)
    least, greatest = _bounds(x.dtype) if real else (None, None)
    table = {ew.add: (windows.reduce_window_sum, 0)}
    if real:
        table[ew.max], table[ew.min] = (windows.reduce_window_max, least), (windows.reduce_window_min, greatest)
    function, neutral = table.get(operation, (None, None))
    value = None if function is None else value_of(init)
    return function if value is not None and np.asarray(value) == neutral else None


def _bounds(dtype):
    """(least, greatest) value of a dtype of real numbers or bool."""
    if dtypes.is_bool(dtype):
        return False, True
    if dtypes.is_integer(dtype):
        return dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
    return -np.inf, np.inf


def reduce_window_shape_tuple(
    operand_shape, window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None
) -> tuple[int, ...]:
    """The shape of `reduce_window` of an array of a shape; `padding` is given as (low, high) pairs.

    >>> reduce_window_shape_tuple((5, 8), (2, 3), (1, 2), ((0, 1), (0, 0)))
    (5, 3)
    """
    window = _window(
        "reduce_window_shape_tuple", operand_shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return window.result_shape(operand_shape)


def _window(name, shape, dimensions, strides, padding, base_dilation, window_dilation) -> Window:
    def ints(what, values):
        return (1,) * len(shape) if values is None else tuple([index_of(name, what, v) for v in values])

    dimensions, strides = ints("a window dimension", dimensions), ints("a stride", strides)
    base, dilation = ints("a dilation", base_dilation), ints("a dilation", window_dilation)
    if isinstance(padding, str):
        reach = [dilated_length(k, d) for k, d in zip(dimensions, dilation, strict=False)]
        if not len(reach) == len(strides) == len(shape):
            raise ValueError(f"{name}: window_dimensions and strides must have a value for each of the {len(shape)} axes")
        padding = padtype_to_pads(shape, reach, strides, padding)
    pairs = tuple([(index_of(name, "padding", low), index_of(name, "padding", high)) for low, high in padding])
    return Window(dimensions, strides, pairs, base, dilation)


# ---- operands and the function -----------------------------------------------------------------------------------


def _flat_operands(name, operands, init_values):
    """The leaves of both trees, as arrays of one shape and scalars of their dtypes; and the tree."""
    xs, treedef = tree.flatten(operands)
    inits, init_treedef = tree.flatten(init_values)
    if not xs or len(xs) != len(inits):
        raise ValueError(f"{name} expects operands and an initial value for each operand, got {len(inits)} for {len(xs)}")
    if treedef != init_treedef:
        raise ValueError(f"{name}: Operands must have the same tree structure as init_values, got {treedef} and {init_treedef}")
    xs = [array(name.removeprefix("lax."), x) for x in xs]
    if any(x.shape != xs[0].shape for x in xs):
        raise ValueError(f"{name} expects operands of one shape, got {', '.join(str(x.aval) for x in xs)}")
    return xs, [_initial(name, v, x) for v, x in zip(inits, xs, strict=True)], treedef


def _initial(name, value, x):
    """The initial value as a scalar of the dtype of `x`: a Python number becomes one, of an array the dtype must agree."""
    value = operand(name, value)
    if type(value) in PYTHON_SCALARS:
        return literal(value, x.dtype)
    aval = aval_of(value)
    if aval.shape != ():
        if name == "lax.reduce":
            raise ValueError(f"{name}: reduce found non-scalar initial value {aval}; give a scalar for each operand")
        raise TypeError(f"{name} expected init_values to be scalars but init_values have shapes [{aval.shape}].")
    if aval.dtype != x.dtype:
        if not aval.weak_type:
            raise TypeError(f"{name} expects an initial value of the dtype of its operand {x.aval}, got {aval}")
        return ew.convert(as_array(value), x.dtype)
    return value


def _program(name, computation, treedef, xs) -> Jaxpr:
    """`computation` as a program of scalars: the leaves of its first tree, then those of the second."""
    scalars = [shaped((), x.dtype) for x in xs]
    count = len(xs)

    def flat(*values):
        out = computation(tree.unflatten(treedef, values[:count]), tree.unflatten(treedef, values[count:]))
        leaves, out_treedef = tree.flatten(out)
        if out_treedef != treedef:
            raise ValueError(
                f"{name} output must have the same tree structure as the operands, {treedef}; the function gives {out_treedef}"
            )
        return [as_array(y) for y in leaves]

    program, captured = trace(flat, scalars * 2, name)
    if captured:
        constants = [_constant(name, c) for c in captured]
        program, _ = trace(lambda *values: eval_jaxpr(program, [*constants, *values]), scalars * 2, name)
    outs = [a.strong() for a in program.out_avals]
    if outs != scalars:
        shown = " and ".join(", ".join(map(str, avals)) for avals in (scalars, outs))
        raise TypeError(f"{name}: the function must give scalars of the types that it takes; these are {shown}")
    return intern(program)


def _constant(name, x):
    """A value that the function closes over, as a literal of its program."""
    value = value_of(x) if isinstance(x, Array) else x
    if value is None or np.ndim(value):
        raise NotImplementedError(
            f"{name}: the function closes over {aval_of(x)}, but a reduction can use known scalars only; give what it needs as a "
            "further operand"
        )
    return np.asarray(value)[()]


def _operation(combine: Jaxpr):
    """The primitive of a program that applies one to its two inputs, and does no more."""
    if len(combine.eqns) != 1 or len(combine.invars) != 2:
        return None
    (eqn,) = combine.eqns
    plain = combine.outs == eqn.outvars and set(eqn.invars) == set(combine.invars)
    return eqn.primitive if plain else None
