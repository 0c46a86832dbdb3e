"""Collectives over named axes: what the examples of `vmap(axis_name=...)` tell each other.

    psum, pmean, pmax, pmin          reductions, which every example gets
    all_gather, psum_scatter         all elements, or a share of the sum
    all_to_all, pswapaxes            each example sends another element to each other
    ppermute, pshuffle, pbroadcast   from one example to another
    axis_index, axis_size            which example this is, and of how many

Functions of trees treat each leaf alike. An axis may be a tuple of names: the first counts slowest. `axis_index_groups` are
lists of the numbers of examples, all of one length, which together name each once: the groups communicate apart.
"""

from __future__ import annotations

import math
import numbers
import operator

import numpy as np

from funcml import dtypes, tree
from funcml.core import named_axes
from funcml.core.tracing import aval_of
from funcml.lax.operands import array
from funcml.primitives import collectives
from funcml.primitives.axes import canonical_axis, moveaxis, reshape
from funcml.primitives.elementwise import add, convert, div, mul
from funcml.primitives.shaping import slice_in_dim
from funcml.primitives.tangents import filled

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax", "pmean", "pmin", "ppermute",
    "pshuffle", "psum", "psum_scatter", "pswapaxes",
]  # fmt: skip


def axis_size(axis_name) -> int:
    """The number of examples along a named axis, or the product of those along several.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: x / funcml.lax.axis_size("i"), axis_name="i")(jnp.ones(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return math.prod([named_axes.axis_size(a, "axis_size") for a in _names(axis_name)])


def axis_index(axis_name):
    """The number of this example along a named axis, as i32; along several, the first counts slowest.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: x + funcml.lax.axis_index("i"), axis_name="i")(jnp.zeros(3)).tolist()
    [0.0, 1.0, 2.0]
    """
    names = _names(axis_name)
    sizes = [named_axes.axis_size(a, "axis_index") for a in names]
    index = None
    for name, size in zip(names, sizes, strict=True):
        one = collectives.axis_index(name)
        index = one if index is None else add(mul(index, np.int32(size)), one)
    return np.int32(0) if index is None else index


def psum(x, axis_name, *, axis_index_groups=None):
    """The sum of `x` over named axes, which each example gets; bools are counted. A Python number gives one.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: x / funcml.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    names, groups, size = _where("psum", axis_name, axis_index_groups)
    return tree.map(lambda leaf: _sum(leaf, names, groups, size), x)


def _sum(x, names, groups, size):
    if isinstance(x, numbers.Number) and not isinstance(x, np.generic):
        return x * size
    x = array("psum", x)
    if dtypes.is_bool(x.dtype):
        x = convert(x, dtypes.int32)
    return collectives.psum(x, names, groups) if names else x


def pmean(x, axis_name, *, axis_index_groups=None):
    """The mean of `x` over named axes, which each example gets; of integers as floats.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: x - funcml.lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    names, groups, size = _where("pmean", axis_name, axis_index_groups)
    return tree.map(lambda leaf: _mean(leaf, names, groups, size), x)


def _mean(x, names, groups, size):
    x = array("pmean", x)
    if not dtypes.is_inexact(x.dtype):
        x = convert(x, dtypes.float32)
    return div(_sum(x, names, groups, size), filled(aval_of(x), size))


def pmax(x, axis_name, *, axis_index_groups=None):
    """The maximum of `x` over named axes, which each example gets; its derivative is shared by those that have it.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: funcml.lax.pmax(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])).tolist()
    [3.0, 3.0]
    """
    names, groups, _ = _where("pmax", axis_name, axis_index_groups)
    return tree.map(lambda leaf: collectives.pmax(array("pmax", leaf), names, groups), x)


def pmin(x, axis_name, *, axis_index_groups=None):
    """The minimum of `x` over named axes, which each example gets; its derivative is shared by those that have it.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: funcml.lax.pmin(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])).tolist()
    [1.0, 1.0]
    """
    names, groups, _ = _where("pmin", axis_name, axis_index_groups)
    return tree.map(lambda leaf: collectives.pmin(array("pmin", leaf), names, groups), x)


def all_gather(x, axis_name, *, axis_index_groups=None, axis: int = 0, tiled: bool = False):
    """`x` of every example: along a new axis, or with `tiled` one after the other along the axis that `x` has.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: funcml.lax.all_gather(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])).tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """
    names, groups, size = _where("all_gather", axis_name, axis_index_groups)

    def gather(leaf):
        x = array("all_gather", leaf)
        aval = aval_of(x)
        new = aval.update(shape=(*aval.shape, 1))
        at = canonical_axis(axis, aval if tiled else new, "all_gather")
        for name, n in reversed(_sized(names, groups, size, "all_gather")):
            x = collectives.all_gather(x, (name,), at, n, groups)
        behind = (size * aval.shape[at], *aval.shape[at + 1 :]) if tiled else (size, *aval.shape[at:])
        return reshape(x, (*aval.shape[:at], *behind))

    return tree.map(gather, x)


def psum_scatter(x, axis_name, *, scatter_dimension: int = 0, axis_index_groups=None, tiled: bool = False):
    """A share of the sum of `x`: of its axis `scatter_dimension` element `axis_index`, or with `tiled` that block.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: funcml.lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """
    names, groups, size = _where("psum_scatter", axis_name, axis_index_groups)

    def scatter(leaf):
        x = array("psum_scatter", leaf)
        at = canonical_axis(scatter_dimension, aval_of(x), "psum_scatter")
        x = _split("psum_scatter", x, at, size, tiled)
        sized = _sized(names, groups, size, "psum_scatter")
        shape = aval_of(x).shape
        x = reshape(x, (*shape[:at], *[n for _, n in sized], *shape[at + 1 :]))
        for name, n in sized:
            x = collectives.reduce_scatter(x, (name,), at, n, groups)
        return x

    return tree.map(scatter, x)


def all_to_all(x, axis_name, split_axis: int, concat_axis: int, *, axis_index_groups=None, tiled: bool = False):
    """Sends part j of `x`, split along `split_axis`, to example j, and puts what comes along `concat_axis`.

    Without `tiled` the axis `split_axis` has one element for each example and goes, `concat_axis` is new; with it both stay, the
    one shorter and the other longer by the number of examples.

    >>> import funcml, funcml.numpy as jnp
    >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> funcml.vmap(lambda x: funcml.lax.all_to_all(x, "i", 0, 0), axis_name="i")(x).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    names, groups, size = _where("all_to_all", axis_name, axis_index_groups)

    def send(leaf):
        x = array("all_to_all", leaf)
        start = canonical_axis(split_axis, aval_of(x), "all_to_all")
        end = canonical_axis(concat_axis, aval_of(x), "all_to_all")
        x = moveaxis(_split("all_to_all", x, start, size, tiled), start, 0)
        sized, shape = _sized(names, groups, size, "all_to_all"), aval_of(x).shape
        x = reshape(x, (*[n for _, n in sized], *shape[1:]))
        for i, (name, n) in enumerate(sized):
            x = collectives.exchange(x, (name,), i, n, groups)
        x = moveaxis(reshape(x, shape), 0, end)
        shape = aval_of(x).shape
        return reshape(x, (*shape[:end], size * shape[end + 1], *shape[end + 2 :])) if tiled else x

    return tree.map(send, x)


def pswapaxes(x, axis_name, axis: int, *, axis_index_groups=None):
    """Swaps the named axis with axis `axis` of `x`, which has as many elements as there are examples.

    >>> import funcml, funcml.numpy as jnp
    >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> funcml.vmap(lambda x: funcml.lax.pswapaxes(x, "i", 0), axis_name="i")(x).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x, axis_name, perm):
    """`x` of another example: for each pair (source, destination) of `perm`; zeros for those to whom nothing is sent.

    >>> import funcml, funcml.numpy as jnp
    >>> ring = [(0, 1), (1, 2), (2, 0)]
    >>> funcml.vmap(lambda x: funcml.lax.ppermute(x, "i", ring), axis_name="i")(jnp.array([1.0, 2.0, 3.0])).tolist()
    [3.0, 1.0, 2.0]
    """
    name = _one_name("ppermute", axis_name)
    size = named_axes.axis_size(name, "ppermute")
    pairs = tuple([(operator.index(s), operator.index(d)) for s, d in perm])
    sources, destinations = [s for s, _ in pairs], [d for _, d in pairs]
    if len(set(sources)) != len(pairs) or len(set(destinations)) != len(pairs):
        raise ValueError(f"ppermute sources and destinations must be unique, got perm {list(pairs)}")
    if any(not 0 <= i < size for i in (*sources, *destinations)):
        raise ValueError(f"ppermute over {name!r}: perm must name examples in range({size}), got {list(pairs)}")
    return tree.map(lambda leaf: collectives.ppermute(array("ppermute", leaf), (name,), pairs), x)


def pshuffle(x, axis_name, perm):
    """`x` of the example `perm[i]`, for example i; `perm` orders all examples.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: funcml.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([1.0, 2.0, 3.0])).tolist()
    [3.0, 1.0, 2.0]
    """
    if sorted(perm) != list(range(len(perm))) or len(perm) != axis_size(axis_name):
        raise ValueError(f"pshuffle: `perm` does not represent a permutation of the {axis_size(axis_name)} examples: {perm}")
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pbroadcast(x, axis_name, source: int):
    """`x` of the example `source`, for each example.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: funcml.lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([1.0, 2.0, 3.0])).tolist()
    [2.0, 2.0, 2.0]
    """
    size = axis_size(axis_name)
    if not 0 <= operator.index(source) < size:
        raise ValueError(f"pbroadcast over {axis_name!r}: source must be in range({size}), got {source}")

    def of_source(leaf):
        x = all_gather(leaf, axis_name)
        return reshape(slice_in_dim(x, source, source + 1), aval_of(x).shape[1:])

    return tree.map(of_source, x)


def pcast(x, axis_name, *, to: str):
    """`x` itself: under `vmap` arrays need no cast to vary over an axis. `to` is "varying", "reduced" or "unreduced".

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.vmap(lambda x: funcml.lax.pcast(x, "i", to="varying"), axis_name="i")(jnp.arange(2.0)).tolist()
    [0.0, 1.0]
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(f"pcast: `to` must be 'varying', 'reduced' or 'unreduced', got {to!r}")
    for name in _names(axis_name):
        named_axes.axis_size(name, "pcast")
    return tree.map(lambda leaf: array("pcast", leaf), x)


# ---- names, groups and sizes


def _names(axis_name) -> tuple:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def _one_name(who: str, axis_name):
    names = _names(axis_name)
    if len(names) != 1:
        raise NotImplementedError(f"{who} goes over one named axis, got {names}; apply it to one after the other")
    return names[0]


def _where(who: str, axis_name, groups) -> tuple[tuple, collectives.Groups, int]:
    """The names, the groups as tuples, and how many examples communicate."""
    names = _names(axis_name)
    size = math.prod([named_axes.axis_size(a, who) for a in names])
    if groups is None:
        return names, None, size
    name = _one_name(f"{who} with axis_index_groups", axis_name)
    found = tuple([tuple(map(operator.index, g)) for g in groups])
    if sorted(i for g in found for i in g) != list(range(size)):
        raise ValueError(f"{who}: axis_index_groups must cover all indices of the axis {name!r}, each of range({size}) once, "
                         f"got {list(groups)}")
    if len({len(g) for g in found}) != 1:
        raise ValueError(f"{who}: axis_index_groups must all be the same size, got {list(groups)}")
    return names, found, len(found[0])


def _sized(names, groups, size: int, who: str) -> list[tuple]:
    """Each name with the number of examples along it that communicate."""
    return [(name, size if groups else named_axes.axis_size(name, who)) for name in names]


def _split(who: str, x, axis: int, size: int, tiled: bool):
    """`x` with `size` elements along `axis`, blocks behind it if `tiled`; ValueError if it cannot be split so."""
    aval = aval_of(x)
    n = aval.shape[axis]
    if not tiled and n != size:
        raise ValueError(f"{who} of {aval}: axis {axis} must have one element for each of the {size} examples of the group, "
                         f"it has {n}; use tiled=True for blocks")
    if size == 0 or n % size:
        raise ValueError(f"{who} of {aval}: the length {n} of axis {axis} must be divisible by the {size} examples of the group")
    return reshape(x, (*aval.shape[:axis], size, n // size, *aval.shape[axis + 1 :])) if tiled else x
