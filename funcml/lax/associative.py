"""`associative_scan`: running combinations in logarithmically many steps."""

from __future__ import annotations

from collections.abc import Callable

from funcml import tree
from funcml.core.errors import user_facing
from funcml.core.tracing import aval_of
from funcml.lax.bodies import flatten_arrays
from funcml.lax.shaping import concatenate, reshape, rev, slice_in_dim, stack

__all__ = ["associative_scan"]


@user_facing
def associative_scan(fn: Callable, elems, reverse: bool = False, axis: int = 0):
    """The combinations of the first k elements along `axis`, for each k, in about 2 log2(n) levels of `fn` on whole arrays.

    fn: an associative function of two trees like `elems`, vectorised over `axis`, giving one like them. `reverse` combines from
    the end. The scheme is that of R. Ladner and M. Fischer, Parallel prefix computation (1980).

    >>> import funcml.numpy as jnp
    >>> from funcml import lax
    >>> lax.associative_scan(jnp.add, jnp.arange(5)).tolist()
    [0, 1, 3, 6, 10]
    """
    who = "lax.associative_scan"
    if not callable(fn):
        raise TypeError(f"{who} expects a callable, got {fn!r} of type {type(fn).__name__}")
    leaves, treedef = flatten_arrays(who, "elems", elems)
    axes = [_axis(who, x, axis) for x in leaves]
    lengths = {aval_of(x).shape[a] for x, a in zip(leaves, axes, strict=True)}
    if len(lengths) > 1:
        shapes = ", ".join(str(aval_of(x)) for x in leaves)
        raise ValueError(f"{who}: all arrays must have one length along axis {axis}, got {shapes}")

    def combine(a, b):
        found = fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b))
        outs, out_treedef = flatten_arrays(who, "the result of fn", found)
        if out_treedef != treedef:
            raise TypeError(f"{who}: fn must give a tree like its arguments; {tree.explain_difference(out_treedef, treedef)}")
        return outs

    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)]
    if lengths:
        leaves = _running(combine, leaves, axes)
    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)]
    return tree.unflatten(treedef, leaves)


def _axis(who: str, x, axis: int) -> int:
    aval = aval_of(x)
    if not -aval.ndim <= axis < aval.ndim:
        raise ValueError(f"{who}: {aval} has no axis {axis}")
    return axis % aval.ndim


def _running(combine, xs: list, axes: list[int]) -> list:
    """Pairs are combined, the results scanned; those are the odd places, and one more combination gives the even ones."""
    n = aval_of(xs[0]).shape[axes[0]]
    if n < 2:
        return xs

    def cut(xs, start, stop, step=1):
        return [slice_in_dim(x, start, stop, step, a) for x, a in zip(xs, axes, strict=True)]

    odd = _running(combine, combine(cut(xs, 0, n - 1, 2), cut(xs, 1, n, 2)), axes)
    first = cut(xs, 0, 1)
    if n == 2:
        even = first
    else:
        rest = combine(cut(odd, 0, (n - 1) // 2), cut(xs, 2, n, 2))
        even = [concatenate([f, r], a) for f, r, a in zip(first, rest, axes, strict=True)]
    return [_interleaved(e, o, a, n) for e, o, a in zip(even, odd, axes, strict=True)]


def _interleaved(even, odd, axis: int, n: int):
    if n % 2:
        last = slice_in_dim(even, n // 2, n // 2 + 1, axis=axis)
        odd = concatenate([odd, last], axis)
    pairs = stack([even, odd], axis + 1)
    shape = aval_of(even).shape
    flat = reshape(pairs, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]))
    return slice_in_dim(flat, 0, n, axis=axis)
