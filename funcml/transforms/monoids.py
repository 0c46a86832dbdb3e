"""Reductions by an associative function of scalars, which stands in the program as a program.

    reduce        : ([.., n, ..].., []..) -> ([.., ..]..)     over axes
    reduce_window : ([W..].., []..) -> ([V..]..)              over windows, whose holes play no part

Several operands, all of one shape, are reduced together: `combine` maps (x.., y..) to as many scalars. The initial values stand
before the first element; they should be neutral elements, since a backend may combine with them more than once. For derivatives
a reduction is written out as combining neighbours, log2(n) times: there the tangents of `combine` apply to whole arrays.
"""

from __future__ import annotations

import math

import numpy as np

from funcml.core.avals import shaped
from funcml.core.ir import Jaxpr, MappedAxis, Primitive, intern, memoised
from funcml.core.linear import is_zero
from funcml.core.tracing import aval_of, bind, eval_jaxpr, trace
from funcml.primitives.axes import broadcast_in_dim, reshape, transpose
from funcml.primitives.batching import example_aval, spread_at_front
from funcml.primitives.elementwise import or_, select
from funcml.primitives.patches import patches
from funcml.primitives.shaping import concatenate, slice_in_dim
from funcml.primitives.tangents import zero_tangent
from funcml.primitives.windows import check_window
from funcml.transforms.jvp import evaluate_jvp
from funcml.transforms.partial_eval import EqnSplit
from funcml.transforms.vmap import evaluate_vmap, vmap_jaxpr

__all__ = ["reduce", "reduce_window"]


class _Monoid(Primitive):
    """A reduction of operands (xs.., initial values..) by the program `combine`; a subclass says of what."""

    multiple_results = True
    holds_jaxpr = True

    def check(self, avals, combine):
        """The operands' types, checked to fit `combine`."""
        count = len(avals) // 2
        xs, inits = avals[:count], avals[count:]
        if not xs or len(avals) % 2 or any(x.shape != xs[0].shape for x in xs):
            raise TypeError(f"{self.name} expects operands of one shape, and as many initial values, got {_list(avals)}")
        if any(v.shape != () or v.dtype != x.dtype for v, x in zip(inits, xs, strict=True)):
            raise TypeError(f"{self.name} expects initial values that are scalars of the operands' dtypes, got {_list(avals)}")
        want = [shaped((), x.dtype) for x in xs]
        if [a.strong() for a in combine.in_avals] != want * 2 or [a.strong() for a in combine.out_avals] != want:
            raise TypeError(f"{self.name}: the function must map {_list(want * 2)} to {_list(want)}, it is\n{combine}")
        return xs

    def write_out(self, xs, inits, combine, where) -> list:
        """The results by ordinary operations; `where` is the parameter beside `combine`."""
        raise NotImplementedError

    # the tangents of the program that is written out
    def jvp_rule(self, primals, tangents, **params):
        if all(map(is_zero, tangents)):
            outs = bind(self, primals, params)
            return outs, list(map(zero_tangent, outs))
        program = _written_out(params["combine"], self, tuple(map(aval_of, primals)), _where(params))
        return evaluate_jvp(program, primals, tangents)

    def batch_rule(self, axis, operands, dims, **params):
        count = len(operands) // 2
        if any(d is not None for d in dims[count:]):
            avals = tuple([example_aval(aval_of(x), d) for x, d in zip(operands, dims, strict=True)])
            return evaluate_vmap(_written_out(params["combine"], self, avals, _where(params)), axis, operands, dims)
        xs = [spread_at_front(axis, x, d) for x, d in zip(operands[:count], dims[:count], strict=True)]
        outs = bind(self, (*xs, *operands[count:]), self.with_axis(params))
        return outs, [0] * count

    def with_axis(self, params) -> dict:
        """The parameters for operands with one more axis in front."""
        raise NotImplementedError

    def partial_eval_rule(self, unknown_in, eqn):
        return EqnSplit([], [eqn], [True] * len(eqn.outvars))


def _list(avals) -> str:
    return ", ".join(map(str, avals))


def _where(params):
    """What is reduced over: the parameter beside `combine`."""
    return next(value for key, value in params.items() if key != "combine")


@memoised
def _written_out(combine: Jaxpr, primitive: _Monoid, avals, where) -> Jaxpr:
    count = len(avals) // 2
    program, _ = trace(lambda *v: primitive.write_out(v[:count], v[count:], combine, where), avals, primitive.name)
    return intern(program)


# ---- by ordinary operations --------------------------------------------------------------------------------


def _fold(combine: Jaxpr, xs, inits, axes, covered=None) -> list:
    """`xs` with `axes` folded: pairs of neighbours are combined until one is left, then it with the initial value.

    `covered`, of the shape of `xs`, tells which elements count; None: all of them.
    """
    shape = aval_of(xs[0]).shape
    kept = [i for i in range(len(shape)) if i not in axes]
    out, n = tuple([shape[i] for i in kept]), math.prod(shape[a] for a in axes)
    if n == 0:
        return [broadcast_in_dim(v, out) for v in inits]
    rows = [*xs] if covered is None else [*xs, covered]
    rows = [reshape(transpose(x, (*axes, *kept)), (n, *out)) for x in rows]
    join = _join if covered is None else _join_covered
    while n > 1:
        even = n - n % 2
        evens, odds = ([slice_in_dim(x, start, even, 2) for x in rows] for start in (0, 1))
        pairs = join(combine, evens, odds)
        rows = [concatenate([p, slice_in_dim(x, even, n)], 0) if n % 2 else p for p, x in zip(pairs, rows, strict=True)]
        n = (n + 1) // 2
    starts = [broadcast_in_dim(v, (1, *out)) for v in ([*inits] if covered is None else [*inits, np.True_])]
    return [reshape(x, out) for x in join(combine, starts, rows)[: len(xs)]]


def _join(combine: Jaxpr, left, right) -> list:
    """The program of scalars applied to each element of arrays of one shape."""
    shape, size = aval_of(left[0]).shape, aval_of(left[0]).size
    if size == 0:
        return left
    flat = [reshape(x, (size,)) for x in (*left, *right)]
    program, captured, _ = vmap_jaxpr(combine, MappedAxis(size), (0,) * len(flat), (0,) * len(left))
    return [reshape(x, shape) for x in eval_jaxpr(program, [*captured, *flat])]


def _join_covered(combine: Jaxpr, left, right) -> list:
    """`_join` where both count, else the one that does; and where one of them does."""
    (*xs, in_x), (*ys, in_y) = left, right
    joined = zip(_join(combine, xs, ys), xs, ys, strict=True)
    return [*[select(in_y, select(in_x, z, y), x) for z, x, y in joined], or_(in_x, in_y)]


# ---- the primitives ----------------------------------------------------------------------------------------


class Reduce(_Monoid):
    """outs = `combine` of all that lies along `axes`."""

    def type_rule(self, *avals, combine, axes):
        xs = self.check(avals, combine)
        if any(not 0 <= a < xs[0].ndim for a in axes) or len(set(axes)) != len(axes):
            raise TypeError(f"reduce of {_list(xs)}: axes must be distinct and in range({xs[0].ndim}), got {axes}")
        shape = tuple([n for i, n in enumerate(xs[0].shape) if i not in axes])
        return tuple([shaped(shape, x.dtype) for x in xs])

    def write_out(self, xs, inits, combine, where):
        return _fold(combine, xs, inits, where)

    def with_axis(self, params):
        return {**params, "axes": tuple([a + 1 for a in params["axes"]])}


class ReduceWindow(_Monoid):
    """outs = `combine` of the initial value and what each window covers; holes play no part."""

    def type_rule(self, *avals, combine, window):
        xs = self.check(avals, combine)
        check_window("reduce_window", xs[0], window)
        return tuple([shaped(window.result_shape(xs[0].shape), x.dtype) for x in xs])

    def write_out(self, xs, inits, combine, where):
        laid_out = [patches(x, v, where) for x, v in zip(xs, inits, strict=True)]
        covered = None
        if any(map(any, where.padding)) or any(b > 1 for b in where.base_dilation):
            covered = patches(broadcast_in_dim(np.True_, aval_of(xs[0]).shape), np.False_, where)
        return _fold(combine, laid_out, inits, tuple(range(len(where.dimensions))), covered)

    def with_axis(self, params):
        return {**params, "window": params["window"].at(0)}


reduce_p = Reduce("reduce")
reduce_window_p = ReduceWindow("reduce_window")


def reduce(xs, inits, combine: Jaxpr, axes) -> list:
    """Arrays of one shape, reduced together over `axes` (non-negative ints) by the interned program `combine`."""
    if not axes:
        return _join(combine, [broadcast_in_dim(v, aval_of(x).shape) for v, x in zip(inits, xs, strict=True)], xs)
    return bind(reduce_p, (*xs, *inits), {"combine": combine, "axes": tuple(axes)})


def reduce_window(xs, inits, combine: Jaxpr, window) -> list:
    """Arrays of one shape, reduced together over what a `patches.Window` covers, by the interned program `combine`."""
    return bind(reduce_window_p, (*xs, *inits), {"combine": combine, "window": window})
