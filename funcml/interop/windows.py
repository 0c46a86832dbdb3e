"""What the windowed primitives of JAX, and its reductions by a function, are in funcml: rows of the table of translations."""

from __future__ import annotations

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.derivatives import vjp
from funcml.interop.jaxprs import aval_from_jax, dtype_from_jax, opened
from funcml.interop.programs import program_of
from funcml.interop.translations import TABLE, rule
from funcml.primitives import contraction, windows
from funcml.primitives.axes import broadcast_in_dim, reduce_sum, reshape
from funcml.primitives.convolution import ConvDimensionNumbers, ConvWindow, conv_general_dilated
from funcml.primitives.elementwise import eq, neg, select
from funcml.primitives.patches import Window, patches
from funcml.primitives.reductions import argmax
from funcml.primitives.shaping import iota
from funcml.primitives.tangents import scalar_of, zeros
from funcml.transforms import monoids

__all__: list[str] = []


@rule("conv_general_dilated")
def _conv(
    eqn, lhs, rhs, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
    batch_group_count, precision=None, preferred_element_type=None,
):  # fmt: skip
    window = ConvWindow(*map(tuple, (window_strides, padding, lhs_dilation, rhs_dilation)))
    numbers = ConvDimensionNumbers(*map(tuple, dimension_numbers))
    levels = contraction.canonical_precision(precision)
    wanted = None if preferred_element_type is None else dtype_from_jax(preferred_element_type)
    wanted = None if wanted == aval_of(lhs).dtype else wanted
    return conv_general_dilated(lhs, rhs, window, numbers, feature_group_count, batch_group_count, levels, wanted)


def _window(ndim, window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None) -> Window:
    ones = (1,) * ndim
    return Window(
        tuple(window_dimensions), tuple(window_strides), tuple(map(tuple, padding)), tuple(base_dilation or ones),
        tuple(window_dilation or ones),
    )  # fmt: skip


def _windowed(function):
    return lambda eqn, x, **moves: function(x, _window(aval_of(x).ndim, **moves))


TABLE["reduce_window_sum"] = _windowed(windows.reduce_window_sum)
TABLE["reduce_window_max"] = _windowed(windows.reduce_window_max)
TABLE["reduce_window_min"] = _windowed(windows.reduce_window_min)


@rule("reduce")
def _reduce(eqn, *operands, jaxpr, dimensions, **rest):
    xs, inits = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    return monoids.reduce(xs, inits, _scalar_program(eqn, jaxpr), dimensions)


@rule("reduce_window")
def _reduce_window(eqn, *operands, jaxpr, consts=(), **moves):
    xs, inits = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    return monoids.reduce_window(xs, inits, _scalar_program(eqn, jaxpr), _window(aval_of(xs[0]).ndim, **moves))


def _scalar_program(eqn, jaxpr):
    program, consts = opened(jaxpr)
    scalars = [aval_from_jax(v.aval).strong() for v in program.invars]
    return program_of(program, consts, scalars, eqn.primitive.name)[0]


@rule("select_and_gather_add")
def _select_and_gather(eqn, tangents, operand, *, select_prim, **moves):
    """The tangent at the first extreme element of each window."""
    window = _window(aval_of(operand).ndim, **moves)
    sign = neg if select_prim.name == "le" else (lambda x: x)
    lowest = scalar_of(aval_of(operand), float("-inf"))
    rows = [patches(x, fill, window) for x, fill in ((sign(operand), lowest), (tangents, scalar_of(aval_of(tangents), 0)))]
    shape = aval_of(rows[0]).shape[len(window.dimensions) :]
    values, moving = (reshape(x, (window.size, *shape)) for x in rows)
    place = broadcast_in_dim(argmax(values, 0), (window.size, *shape), tuple(range(1, len(shape) + 1)))
    chosen = eq(iota(dtypes.int32, (window.size, *shape), 0), place)
    return reduce_sum(select(chosen, moving, zeros(aval_of(moving))), (0,))


@rule("select_and_scatter_add")
def _select_and_scatter(eqn, source, operand, *, select_prim, **moves):
    """Each element of `source`, added where its window has its first extreme element."""

    def gathered(t):
        return _select_and_gather(eqn, t, operand, select_prim=select_prim, **moves)

    return vjp(gathered, zeros(aval_of(operand)))[1](source)[0]
