"""Reductions, running reductions, sorting and products: `lax`'s names over the primitives."""

from __future__ import annotations

from funcml import dtypes, tree
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lax.operands import array, unsharded
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axes_of, axis_of, index_of
from funcml.numpy.promotion import operand
from funcml.primitives import axes as ax
from funcml.primitives import contraction, identities, sorting
from funcml.primitives import elementwise as ew
from funcml.primitives import reductions as red

__all__ = [
    "approx_max_k", "approx_min_k", "argmax", "argmin", "batch_matmul", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum",
    "dot", "dot_general", "optimization_barrier", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
    "reduce_sum", "reduce_xor", "sort", "sort_key_val", "stop_gradient", "top_k",
]


# ---- over axes ---------------------------------------------------------------------------------------------------


def _reduction(name: str, reduce, doc: str):
    def function(operand, axes):
        x = array(name, operand)
        return reduce(x, axes_of(f"lax.{name}", tuple(axes), x.ndim))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "funcml.lax"
    function.__doc__ = doc
    return function


_reduce_sum = _reduction("reduce_sum", ax.reduce_sum, "The sum over axes, in the dtype of the operand.")


def reduce_sum(operand, axes, *, out_sharding=None):
    """The sum over axes, in the dtype of the operand."""
    unsharded("reduce_sum", out_sharding)
    return _reduce_sum(operand, axes)


reduce_prod = _reduction("reduce_prod", red.reduce_prod, "The product over axes, in the dtype of the operand.")
reduce_max = _reduction("reduce_max", red.reduce_max, "The greatest element over axes, nan if there is one.")
reduce_min = _reduction("reduce_min", red.reduce_min, "The least element over axes, nan if there is one.")
reduce_and = _reduction("reduce_and", red.reduce_and, "The bitwise (for bool: logical) and over axes.")
reduce_or = _reduction("reduce_or", ax.reduce_or, "The bitwise (for bool: logical) or over axes.")
reduce_xor = _reduction("reduce_xor", red.reduce_xor, "The bitwise (for bool: logical) exclusive or over axes.")


def argmax(operand, axis: int, index_dtype):
    """The first index along `axis` of the greatest element, or of the first nan."""
    x = array("argmax", operand)
    return red.argmax(x, axis_of("lax.argmax", axis, x.ndim), dtypes.canonical(index_dtype))


def argmin(operand, axis: int, index_dtype):
    """The first index along `axis` of the least element, or of the first nan."""
    x = array("argmin", operand)
    return red.argmin(x, axis_of("lax.argmin", axis, x.ndim), dtypes.canonical(index_dtype))


# ---- along one axis ----------------------------------------------------------------------------------------------


def _running(name: str, run, doc: str):
    def function(operand, axis: int = 0, reverse: bool = False):
        x = array(name, operand)
        return run(x, axis_of(f"lax.{name}", axis, x.ndim), bool(reverse))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "funcml.lax"
    function.__doc__ = doc
    return function


cumsum = _running("cumsum", red.cumsum, "The sums of the elements up to each along an axis, or from each on.")
cumprod = _running("cumprod", red.cumprod, "The products of the elements up to each along an axis, or from each on.")
cummax = _running("cummax", red.cummax, "The greatest of the elements up to each along an axis, or from each on.")
cummin = _running("cummin", red.cummin, "The least of the elements up to each along an axis, or from each on.")
cumlogsumexp = _running("cumlogsumexp", red.cumlogsumexp, "The log of the running sums of exp along an axis.")


def sort(operand, dimension: int = -1, is_stable: bool = True, num_keys: int = 1):
    """An array in ascending order along an axis; or several, permuted alike so that the first `num_keys` are in order."""
    if isinstance(operand, tuple | list):
        operand = tuple([array("sort", x) for x in operand])
    else:
        operand = array("sort", operand)
    return sorting.sort(operand, dimension, is_stable, num_keys)


def sort_key_val(keys, values, dimension: int = -1, is_stable: bool = True):
    """(keys in ascending order along an axis, values permuted with them)."""
    return sort((keys, values), dimension, is_stable, 1)


def top_k(operand, k: int, *, axis: int = -1):
    """(values, indices): the k greatest elements along an axis, greatest first, and where they stand."""
    values, indices = sorting.top_k(array("top_k", operand), index_of("lax.top_k", "k", k), axis)
    return [values, indices]


def approx_max_k(
    operand,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
):
    """(values, indices): the k greatest elements along an axis, greatest first. They are exact: every recall target is met.

    The last two parameters steer how accelerators approximate; here they change nothing. Raises TypeError for what is no float,
    ValueError for a recall target that is not in (0, 1].
    """
    return _approximate("approx_max_k", operand, k, reduction_dimension, recall_target)


def approx_min_k(
    operand,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
):
    """(values, indices): the k least elements along an axis, least first. They are exact, as for `approx_max_k`."""
    return _approximate("approx_min_k", operand, k, reduction_dimension, recall_target)


def _approximate(name, operand, k, axis, recall_target):
    x = array(name, operand)
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"lax.{name} expects floats, got {x.aval}")
    if not 0 < recall_target <= 1:
        raise ValueError(f"lax.{name}: recall_target must be in (0, 1], got {recall_target}")
    k, axis = index_of(f"lax.{name}", "k", k), axis_of(f"lax.{name}", axis, x.ndim)
    if name == "approx_max_k":
        return list(sorting.top_k(x, k, axis))
    return _least(x, k, axis)


@fused(static=("k", "axis"))
def _least(x, k, axis):
    values, indices = sorting.top_k(ew.neg(x), k, axis)
    return [ew.neg(values), indices]


# ---- products ----------------------------------------------------------------------------------------------------


def dot_general(
    lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, *, out_sharding=None
) -> Array:
    """The sum of products over pairs of axes, [batch, lhs free, rhs free].

    `dimension_numbers` is ((lhs contracted, rhs contracted), (lhs batch, rhs batch)). Of operands of two dtypes the one of
    smaller range is converted first; `preferred_element_type` is the dtype in which products are summed and given.
    """
    unsharded("dot_general", out_sharding)
    lhs, rhs = _of_one_dtype("dot_general", lhs, rhs)
    return contraction.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def _of_one_dtype(name: str, lhs, rhs):
    lhs, rhs = array(name, lhs), array(name, rhs)
    if lhs.dtype == rhs.dtype:
        return lhs, rhs
    dtype = sorted((lhs.dtype, rhs.dtype), key=_range)[1]
    return ew.convert(lhs, dtype), ew.convert(rhs, dtype)


def _range(dtype) -> tuple:
    """What orders dtypes by the numbers that they hold: complex, floats by exponent then mantissa, integers by width and sign."""
    if not dtypes.is_numeric(dtype):
        return (False, -2, 0, 0, False)
    part = dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else dtype
    exponent, mantissa = (dtypes.finfo(part).maxexp, dtypes.finfo(part).nmant) if dtypes.is_float(part) else (-1, -1)
    return (dtypes.is_complex(dtype), exponent, mantissa, dtypes.bit_width(part), not dtypes.is_unsigned(part))


def dot(
    lhs, rhs, *, dimension_numbers=None, precision=None, preferred_element_type=None, out_sharding=None
) -> Array:
    """The product of vectors and matrices; with `dimension_numbers`, `dot_general`."""
    unsharded("dot", out_sharding)
    lhs, rhs = _of_one_dtype("dot", lhs, rhs)
    if dimension_numbers is None:
        if not (1 <= lhs.ndim <= 2 and 1 <= rhs.ndim <= 2 and lhs.shape[-1] == rhs.shape[0]):
            raise TypeError(f"lax.dot expects vectors or matrices with matching inner lengths, got {lhs.aval} and {rhs.aval}")
        dimension_numbers = (((lhs.ndim - 1,), (0,)), ((), ()))
    return contraction.dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs, rhs, precision=None) -> Array:
    """Matrix products over equal leading axes: [.., m, k] x [.., k, n] -> [.., m, n]."""
    lhs, rhs = array("batch_matmul", lhs), array("batch_matmul", rhs)
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise ValueError(f"lax.batch_matmul expects operands of one rank, at least 2, got {lhs.aval} and {rhs.aval}")
    batch = tuple(range(lhs.ndim - 2))
    return contraction.dot_general(lhs, rhs, (((lhs.ndim - 1,), (lhs.ndim - 2,)), (batch, batch)), precision)


# ---- identities --------------------------------------------------------------------------------------------------


def stop_gradient(x):
    """`x` (a tree), constant to differentiation."""
    return tree.map(_constant, x)


def _constant(x):
    x = operand("lax.stop_gradient", x)
    return identities.stop_gradient(x) if dtypes.is_inexact(aval_of(x).dtype) else x


def optimization_barrier(operand, /):
    """The values of a tree, computed before anything that uses them is; not moved, merged or removed by the compiler."""
    xs, treedef = tree.flatten(operand)
    return tree.unflatten(treedef, identities.optimization_barrier([array("optimization_barrier", x) for x in xs]))
