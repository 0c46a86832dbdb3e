"""Sums of products: vectors, matrices and tensors.

`precision` and `preferred_element_type` are those of `lax.dot_general`; products of bools are logical.
"""

from __future__ import annotations

import functools

import numpy as np
import opt_einsum

from funcml import dtypes
from funcml.core.config import config
from funcml.core.tracing import aval_of, bind
from funcml.core.values import Array
from funcml.lowering.execute import by_type, fused
from funcml.numpy.arguments import axes_of, axis_of, no_out, no_sharding
from funcml.numpy.diagonals import diagonal
from funcml.numpy.promotion import as_array, broadcast_shapes, operand, operands, promote, promote_dtypes, settle, spread
from funcml.numpy.reductions import sum as sum_of
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives.contraction import DotDimensions, canonical_precision, dot_general, dot_general_p

__all__ = [
    "cross", "dot", "einsum", "einsum_path", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace", "vdot",
    "vecdot", "vecmat",
]


def _product(a, b, numbers, precision, preferred):
    """`dot_general` of operands of one dtype, bools included."""
    if dtypes.is_bool(aval_of(a).dtype):
        a, b = ew.convert(a, dtypes.int32), ew.convert(b, dtypes.int32)
        return ew.ne(dot_general(a, b, numbers, precision), 0)
    return dot_general(a, b, numbers, precision, preferred)


def _pair(name: str, a, b):
    a, b = promote_dtypes(name, a, b)
    return as_array(a), as_array(b)


def _dtype_or_none(dtype):
    return None if dtype is None else dtypes.canonical(dtype)


def _precision(precision):
    return tuple(precision) if isinstance(precision, list) else precision


_STATIC = ("precision", "preferred")
@functools.cache
def _matrix_product(ndim: int, batch: int, precision) -> dict:
    """The parameters of a product [batch.., free.., k] x [batch.., k, n], made once since eager calls are short."""
    axes = tuple(range(batch))
    return {
        "dimension_numbers": DotDimensions(((ndim - 1,), (batch,)), (axes, axes)),
        "precision": canonical_precision(precision),
        "preferred_element_type": None,
    }


@by_type
def _plain_matmul(a, b):
    """The product of matrices, or of stacks of as many, of one dtype."""
    ndim = aval_of(a).ndim
    return bind(dot_general_p, (a, b), _matrix_product(ndim, aval_of(b).ndim - 2, config.default_matmul_precision))


# ---- matrix products ---------------------------------------------------------------------------------------------


def matmul(a, b, *, precision=None, preferred_element_type=None, out_sharding=None) -> Array:
    """The matrix product [.., m, k] x [.., k, n] -> [.., m, n]; a vector is a row on the left and a column on the right.

    Leading axes broadcast. Raises TypeError for operands without axes, ValueError for lengths that do not match.

    >>> matmul(np.eye(2), np.ones(2)).shape
    (2,)
    """
    no_sharding("matmul", out_sharding)
    if isinstance(a, Array) and isinstance(b, Array) and precision is preferred_element_type is None:
        x, y = a.aval, b.aval
        if x.dtype is y.dtype and x.ndim > 1 < y.ndim and x.shape[-1] == y.shape[-2] and dtypes.is_inexact(x.dtype):
            batch = y.ndim - 2
            if not batch or (x.ndim == y.ndim and x.shape[:batch] == y.shape[:batch]):
                return _plain_matmul(a, b)
    return _matmul(operand("matmul", a), operand("matmul", b), _precision(precision), _dtype_or_none(preferred_element_type))


@fused(static=_STATIC)
def _matmul(a, b, precision, preferred):
    a, b = _pair("matmul", a, b)
    if not a.ndim or not b.ndim:
        raise TypeError(f"matmul expects at least 1 dimension, got {a.aval} and {b.aval}; use multiply")
    row, column = a.shape[-1], b.shape[max(b.ndim - 2, 0)]
    if row != column:
        raise ValueError(f"matmul: the last axis of {a.aval} and the {'only' if b.ndim == 1 else 'second last'} axis of "
                         f"{b.aval} must have one length")
    if a.ndim <= 2 and b.ndim <= 2:
        return _product(a, b, (((a.ndim - 1,), (max(b.ndim - 2, 0),)), ((), ())), precision, preferred)
    return _batched_matmul(a, b, precision, preferred)


# An axis that only one operand has (or has with length > 1) is a free axis of that operand: nothing is broadcast.
def _batched_matmul(a, b, precision, preferred):
    a_batch, b_batch = a.shape[:-2], b.shape[:-2]
    shape = broadcast_shapes(a_batch, b_batch)
    lhs, a_axes = _without_ones(a, a_batch, len(shape))
    rhs, b_axes = _without_ones(b, b_batch, len(shape))
    shared = [d for d in range(len(shape)) if d in a_axes and d in b_axes]
    numbers = (
        ((lhs.ndim - 1,), (max(rhs.ndim - 2, 0),)),
        ([a_axes.index(d) for d in shared], [b_axes.index(d) for d in shared]),
    )
    out = _product(lhs, rhs, numbers, precision, preferred)
    made = [*shared, *[d for d in a_axes if d not in shared], *["row"] * (a.ndim > 1)]
    made += [*[d for d in b_axes if d not in shared], *["column"] * (b.ndim > 1)]
    wanted = sorted(d for d in made if isinstance(d, int)) + [d for d in ("row", "column") if d in made]
    out = ax.transpose(out, [made.index(d) for d in wanted])
    return ax.reshape(out, (*shape, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ())))


def _without_ones(x, batch, rank: int):
    """`x` without its leading axes of length 1, and the place of each of the others in a batch of `rank` axes."""
    ones = [i for i, n in enumerate(batch) if n == 1]
    places = [i + rank - len(batch) for i, n in enumerate(batch) if n != 1]
    return ax.squeeze(x, ones), places


def dot(a, b, *, precision=None, preferred_element_type=None, out_sharding=None) -> Array:
    """Numbers: their product. Else the sum of products over the last axis of `a` and the second last (only) one of `b`."""
    no_sharding("dot", out_sharding)
    return _dot(*settle("dot", a, b), _precision(precision), _dtype_or_none(preferred_element_type))


@fused(static=_STATIC)
def _dot(a, b, precision, preferred):
    a, b = promote_dtypes("dot", a, b)
    if not aval_of(a).ndim or not aval_of(b).ndim:
        x, y = promote("dot", a, b)
        out = ew.and_(x, y) if dtypes.is_bool(aval_of(x).dtype) else ew.mul(x, y)
        return out if preferred is None else ew.convert(out, preferred)
    a, b = as_array(a), as_array(b)
    return _contract("dot", a, b, (a.ndim - 1,), (max(b.ndim - 2, 0),), precision, preferred)


def _contract(name, a, b, a_axes, b_axes, precision, preferred):
    if [a.shape[i] for i in a_axes] != [b.shape[i] for i in b_axes]:
        raise ValueError(f"{name}: the axes {tuple(a_axes)} of {a.aval} and {tuple(b_axes)} of {b.aval} must have equal lengths")
    return _product(a, b, ((tuple(a_axes), tuple(b_axes)), ((), ())), precision, preferred)


def inner(a, b, *, precision=None, preferred_element_type=None) -> Array:
    """The sum of products over the last axis of both; of numbers, their product."""
    return _inner(*settle("inner", a, b), _precision(precision), _dtype_or_none(preferred_element_type))


@fused(static=_STATIC)
def _inner(a, b, precision, preferred):
    a, b = _pair("inner", a, b)
    if not a.ndim or not b.ndim:
        return _dot(a, b, precision, preferred)
    return _contract("inner", a, b, (a.ndim - 1,), (b.ndim - 1,), precision, preferred)


def vdot(a, b, *, precision=None, preferred_element_type=None) -> Array:
    """The sum of conj(a) b over all elements."""
    return _vdot(*settle("vdot", a, b), _precision(precision), _dtype_or_none(preferred_element_type))


@fused(static=_STATIC)
def _vdot(a, b, precision, preferred):
    a, b = [ax.reshape(x, (x.size,)) for x in _pair("vdot", a, b)]
    a = ew.conj(a) if dtypes.is_complex(a.dtype) else a
    return _contract("vdot", a, b, (0,), (0,), precision, preferred)


def vecdot(x1, x2, /, *, axis: int = -1, precision=None, preferred_element_type=None) -> Array:
    """The sum of conj(x1) x2 over one axis; the others broadcast."""
    return _vecdot(operand("vecdot", x1), operand("vecdot", x2), axis, _precision(precision),
                   _dtype_or_none(preferred_element_type))


@fused(static=("axis", *_STATIC))
def _vecdot(x1, x2, axis, precision, preferred):
    x1, x2 = _pair("vecdot", x1, x2)
    if not x1.ndim or not x2.ndim:
        raise ValueError(f"vecdot expects at least 1 dimension, got {x1.aval} and {x2.aval}")
    i, j = axis_of("vecdot", axis, x1.ndim), axis_of("vecdot", axis, x2.ndim)
    if x1.shape[i] != x2.shape[j]:
        raise ValueError(f"vecdot: axis {axis} of {x1.aval} and of {x2.aval} must have one length")
    x1, x2 = ax.moveaxis(x1, i, x1.ndim - 1), ax.moveaxis(x2, j, x2.ndim - 1)
    x1 = ew.conj(x1) if dtypes.is_complex(x1.dtype) else x1
    out = _matmul(ax.expand_dims(x1, (x1.ndim - 1,)), ax.expand_dims(x2, (x2.ndim,)), precision, preferred)
    return ax.squeeze(out, (out.ndim - 2, out.ndim - 1))


def matvec(x1, x2, /) -> Array:
    """Matrices times vectors: [.., m, n] x [.., n] -> [.., m]."""
    x2 = as_array(operand("matvec", x2))
    out = matmul(x1, ax.expand_dims(x2, (x2.ndim,)))
    return ax.squeeze(out, (out.ndim - 1,))


def vecmat(x1, x2, /) -> Array:
    """Conjugated vectors times matrices: [.., m] x [.., m, n] -> [.., n]."""
    x1 = as_array(operand("vecmat", x1))
    x1 = ew.conj(x1) if dtypes.is_complex(x1.dtype) else x1
    out = matmul(ax.expand_dims(x1, (x1.ndim - 1,)), x2)
    return ax.squeeze(out, (out.ndim - 2,))


_TENSORDOT_AXES = "tensordot axes argument must be an int, a pair of ints, or a pair of lists of ints, got {}"


def tensordot(a, b, axes=2, *, precision=None, preferred_element_type=None, out_sharding=None) -> Array:
    """The sum of products over pairs of axes: the last n of `a` with the first n of `b`, or those that two lists name."""
    no_sharding("tensordot", out_sharding)
    if isinstance(axes, list | tuple):
        if len(axes) != 2:
            raise TypeError(_TENSORDOT_AXES.format(repr(axes)))
        axes = tuple([tuple(x) if isinstance(x, list | tuple) else (x,) for x in axes])
        if len(axes[0]) != len(axes[1]):
            raise TypeError(f"tensordot requires axes lists to have equal length, got {axes}")
        if not all(hasattr(x, "__index__") for pair in axes for x in pair):
            raise TypeError(f"tensordot requires both axes lists to be either ints, tuples or lists of ints, got {axes}")
    elif not hasattr(axes, "__index__"):
        raise TypeError(_TENSORDOT_AXES.format(repr(axes)))
    return _tensordot(operand("tensordot", a), operand("tensordot", b), axes, _precision(precision),
                      _dtype_or_none(preferred_element_type))


@fused(static=("axes", *_STATIC))
def _tensordot(a, b, axes, precision, preferred):
    a, b = _pair("tensordot", a, b)
    if isinstance(axes, tuple):
        a_axes, b_axes = axes_of("tensordot", axes[0], a.ndim), axes_of("tensordot", axes[1], b.ndim)
    else:
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise TypeError(f"Number of tensordot axes (axes={axes}) exceeds input ranks, or is negative: {a.aval} and {b.aval}")
        a_axes, b_axes = range(a.ndim - axes, a.ndim), range(axes)
    return _contract("tensordot", a, b, tuple(a_axes), tuple(b_axes), precision, preferred)


@fused
def _outer(a, b):
    a, b = _pair("outer", a, b)
    a, b = ax.reshape(a, (a.size, 1)), ax.reshape(b, (1, b.size))
    a, b = promote("outer", a, b)
    return ew.and_(a, b) if dtypes.is_bool(aval_of(a).dtype) else ew.mul(a, b)


def outer(a, b, out=None) -> Array:
    """The product of each element of `a` with each of `b`: [size of a, size of b]."""
    no_out("outer", out)
    return _outer(*settle("outer", a, b))


def kron(a, b) -> Array:
    """The Kronecker product: each element of `a` times the array `b`, in the place of that element."""
    return _kron(*settle("kron", a, b))


@fused
def _kron(a, b):
    a, b = _pair("kron", a, b)
    rank = max(a.ndim, b.ndim)
    a, b = [ax.reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in (a, b)]
    shape = tuple([n * m for n, m in zip(a.shape, b.shape, strict=True)])
    a = ax.reshape(a, [k for n in a.shape for k in (n, 1)])
    b = ax.reshape(b, [k for n in b.shape for k in (1, n)])
    a, b = promote("kron", a, b)
    return ax.reshape(ew.and_(a, b) if dtypes.is_bool(aval_of(a).dtype) else ew.mul(a, b), shape)


def trace(a, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None, out=None) -> Array:
    """The sum of the elements (i, i + offset) of two axes."""
    no_out("trace", out)
    return _trace(operand("trace", a), offset, axis1, axis2, _dtype_or_none(dtype))


@fused(static=("offset", "axis1", "axis2", "dtype"))
def _trace(a, offset, axis1, axis2, dtype):
    return sum_of(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def cross(a, b, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The vector product along one axis of length 3 (or 2, the third component then being 0)."""
    if axis is not None:
        axisa = axisb = axisc = axis
    return _cross(operand("cross", a), operand("cross", b), axisa, axisb, axisc)


# c_i = a_j b_k - a_k b_j, (i, j, k) cyclic
@fused(static=("axisa", "axisb", "axisc"))
def _cross(a, b, axisa, axisb, axisc):
    a, b = _pair("cross", a, b)
    a = ax.moveaxis(a, axis_of("cross", axisa, a.ndim), a.ndim - 1)
    b = ax.moveaxis(b, axis_of("cross", axisb, b.ndim), b.ndim - 1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(f"cross expects vectors of 2 or 3 components, got {a.aval} and {b.aval}")
    shape = broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, b = [[spread(ax.squeeze(part, (part.ndim - 1,)), shape) for part in shaping.split(x, (1,) * x.shape[-1], -1)]
            for x in (a, b)]

    def minor(j, k):
        products = []
        for u, v in ((j, k), (k, j)):
            products.append(ew.mul(a[u], b[v]) if u < len(a) and v < len(b) else None)
        if products[0] is None and products[1] is None:
            return ax.broadcast_in_dim(a[0].dtype.type(0), shape)
        if products[0] is None:
            return ew.neg(products[1])
        return products[0] if products[1] is None else ew.sub(*products)

    if len(a) == len(b) == 2:
        return minor(0, 1)
    out = shaping.concatenate([ax.expand_dims(minor(j, k), (len(shape),)) for j, k in ((1, 2), (2, 0), (0, 1))], len(shape))
    return ax.moveaxis(out, len(shape), axis_of("cross", axisc, len(shape) + 1))


# ---- einsum ------------------------------------------------------------------------------------------------------


def einsum(
    subscripts, /, *operands_, out=None, optimize="auto", precision=None, preferred_element_type=None, out_sharding=None
) -> Array:
    """Sums of products in Einstein's notation: a letter for each axis, summed unless it stands behind the arrow.

    The order of pairwise contractions is found by opt_einsum; `optimize=False` takes the operands from left to right.

    >>> einsum("ij,jk->ik", np.ones((2, 3)), np.ones((3, 4))).shape
    (2, 4)
    """
    no_sharding("einsum", out_sharding)
    no_out("einsum", out)
    spec, arrays = _subscripts(subscripts, operands_)
    return _einsum(arrays, spec, _strategy(optimize), _precision(precision), _dtype_or_none(preferred_element_type))


def _subscripts(subscripts, given) -> tuple[str, list]:
    """The subscripts with every letter spelled out, and the operands; also of the form (a, [0, 1], b, [1, 2], [0, 2])."""
    if isinstance(subscripts, str):
        arrays = operands("einsum", given)
        form = (subscripts, *[np.shape(x) for x in arrays])
    else:
        interleaved = [subscripts, *given]
        at = range(0, len(interleaved) // 2 * 2, 2)
        arrays = operands("einsum", [interleaved[i] for i in at])
        for i, x in zip(at, arrays, strict=True):
            interleaved[i] = np.shape(x)
        form = tuple(interleaved)
    try:
        inputs, output, _ = opt_einsum.parser.parse_einsum_input(form, shapes=True)
    except (ValueError, IndexError) as error:
        raise TypeError(f"einsum {form[0]!r}: {error}") from None
    return f"{inputs}->{output}", arrays


@functools.lru_cache(maxsize=1024)
def _path(spec: str, shapes: tuple, optimize) -> tuple:
    if optimize is False:
        return ()
    if isinstance(optimize, tuple):
        return _checked_path(optimize, len(shapes))
    return tuple(opt_einsum.contract_path(spec, *shapes, shapes=True, optimize="optimal" if optimize is True else optimize)[0])


def _checked_path(path: tuple, count: int) -> tuple:
    for step in path:
        if not step or len(set(step)) != len(step) or not all(0 <= i < count for i in step):
            raise ValueError(f"einsum: the path {list(path)} takes the operands {step} where there are {count}")
        count -= len(step) - 1
    return path


def _strategy(optimize):
    """A strategy by name, or the contractions of a path, with or without NumPy's word in front."""
    if isinstance(optimize, str | bool):
        return optimize
    return tuple([tuple(step) for step in optimize if step != "einsum_path"])


def einsum_path(subscripts, /, *operands_, optimize="auto"):
    """(path, report): the order of contractions that `einsum` takes, each as the places of its operands; and what it costs.

    >>> einsum_path("ij,jk,kl", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 2)))[0]
    [(1, 2), (0, 1)]
    """
    spec, arrays = _subscripts(subscripts, operands_)
    strategy = {True: "optimal", False: "auto"}.get(optimize, optimize) if isinstance(optimize, bool) else _strategy(optimize)
    strategy = list(strategy) if isinstance(strategy, tuple) else strategy
    return opt_einsum.contract_path(spec, *[np.shape(x) for x in arrays], shapes=True, optimize=strategy)


@fused(static=("spec", "optimize", *_STATIC))
def _einsum(arrays, spec, optimize, precision, preferred):
    arrays = [as_array(x) for x in promote_dtypes("einsum", *arrays)]
    inputs, output = spec.split("->")
    terms = _without_spread_axes(spec, list(zip(inputs.split(","), arrays, strict=True)))
    spec = f"{','.join([letters for letters, _ in terms])}->{output}"
    path = _path(spec, tuple([x.shape for _, x in terms]), optimize)
    steps = [*path, *[(0, 1)] * (len(terms) - 1 - sum(len(step) - 1 for step in path))]
    for step in steps or [(0,)]:
        chosen = [terms.pop(i) for i in sorted(step, reverse=True)]
        needed = set(output).union(*[letters for letters, _ in terms])
        while len(chosen) > 1:
            rest = needed.union(*[letters for letters, _ in chosen[2:]])
            chosen[:2] = [_contract_pair(chosen[1], chosen[0], rest, precision, preferred)]
        terms.append(_reduce_term(chosen[0], needed))
    letters, out = terms[0]
    out = ax.transpose(out, [letters.index(c) for c in output])
    return out if preferred is None else ew.convert(out, preferred)


def _without_spread_axes(spec: str, terms) -> list:
    """The terms without the axes of length 1 whose letter has another length elsewhere: these broadcast."""
    lengths: dict[str, int] = {}
    for letters, x in terms:
        if len(letters) != x.ndim:
            raise ValueError(f"einsum {spec!r}: {letters!r} has {len(letters)} letters for an operand {x.aval}")
        for c, n in zip(letters, x.shape, strict=True):
            known = lengths.get(c, 1)
            if 1 not in (n, known) and known != n:
                raise ValueError(f"einsum {spec!r}: the axis {c} has the lengths {known} and {n}")
            lengths[c] = n if known == 1 else known
    thin = []
    for letters, x in terms:
        gone = [i for i, c in enumerate(letters) if x.shape[i] != lengths[c]]
        thin.append(("".join([c for i, c in enumerate(letters) if i not in gone]), ax.squeeze(x, gone) if gone else x))
    return thin


def _reduce_term(term, needed):
    """A term without repeated letters, summed over the letters that nobody needs."""
    letters, x = term
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            x = diagonal(x, 0, i, j)
            letters = letters[:i] + letters[i + 1 : j] + letters[j + 1 :] + c
    gone = [i for i, c in enumerate(letters) if c not in needed]
    if gone:
        x = ew.ne(ax.reduce_sum(ew.convert(x, dtypes.int32), gone), 0) if dtypes.is_bool(x.dtype) else ax.reduce_sum(x, gone)
    return "".join([c for c in letters if c in needed]), x


def _contract_pair(left, right, needed, precision, preferred):
    """Two terms as one: batch letters are in both and needed, contracted ones in both only."""
    a, x = _reduce_term(left, needed.union(right[0]))
    b, y = _reduce_term(right, needed.union(left[0]))
    batch = [c for c in a if c in b and c in needed]
    contract = [c for c in a if c in b and c not in needed]
    numbers = tuple([([a.index(c) for c in group], [b.index(c) for c in group]) for group in (contract, batch)])
    out = _product(x, y, numbers, precision, preferred)
    free = [c for c in a if c not in b] + [c for c in b if c not in a]
    return "".join([*batch, *free]), out
