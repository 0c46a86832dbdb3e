"""Collectives: what the examples of a named axis tell each other.

    psum, pmax, pmin : x -> the sum, maximum, minimum over the axes              psum is its own transpose
    all_gather       : x -> [n] of all examples, at a new axis                   its transpose is reduce_scatter
    reduce_scatter   : [n] -> element `axis_index` of the sum                    its transpose is all_gather
    exchange         : [n] -> element j of example i is element i of example j   its own transpose
    ppermute         : x -> x of the example that sends to this one, or 0        its transpose sends it back
    axis_index       : -> the number of this example

`axis_names` are the names, `groups` a partition of the axis whose parts communicate apart (None: one part), each a tuple of
the numbers of its examples; n is the size of a group. Under `vmap` they become sums, copies and permutations along the mapped
axis. A derivative is that of the function of the whole batch: each example may have used what the others sent.
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Primitive
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import AxisPrimitive, broadcast_in_dim, moveaxis, reduce_sum, reshape
from funcml.primitives.batching import spread_at_front
from funcml.primitives.elementwise import convert, div, eq, mul, select
from funcml.primitives.reductions import reduce_max, reduce_min
from funcml.primitives.shaping import concatenate, iota, slice_in_dim
from funcml.primitives.tangents import filled, zero_tangent, zeros

__all__ = ["all_gather", "axis_index", "exchange", "pmax", "pmin", "ppermute", "psum", "reduce_scatter"]

Groups = tuple[tuple[int, ...], ...] | None


def _rows(x, sources):
    """Row `sources[i]` of `x` as row i, zeros where it is None: runs of rows that follow each other are copied as one."""
    if not sources:
        return x
    pieces, i = [], 0
    while i < len(sources):
        first, j = sources[i], i + 1
        while j < len(sources) and sources[j] == (None if first is None else first + j - i):
            j += 1
        if first is None:
            aval = aval_of(x)
            pieces.append(zeros(aval.update(shape=(j - i, *aval.shape[1:]))))
        else:
            pieces.append(slice_in_dim(x, first, first + j - i))
        i = j
    return concatenate(pieces, 0) if len(pieces) > 1 else pieces[0]


def _by_groups(x, groups: tuple[tuple[int, ...], ...]):
    """[examples, ..] -> [groups, members, ..]"""
    ordered = _rows(x, [i for group in groups for i in group])
    return reshape(ordered, (len(groups), len(groups[0]), *aval_of(x).shape[1:]))


def _from_groups(x, groups: tuple[tuple[int, ...], ...]):
    """[groups, members, ..] -> [examples, ..]"""
    flat = [i for group in groups for i in group]
    places = sorted(range(len(flat)), key=flat.__getitem__)
    return _rows(reshape(x, (len(flat), *aval_of(x).shape[2:])), places)


def _shared_in_groups(x, size: int):
    """[groups, ..] -> [groups, members, ..]: what each member of a group has alike."""
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (shape[0], size, *shape[1:]), (0, *range(2, len(shape) + 1)))


class AlongOneAxis(AxisPrimitive):
    """A collective over one named axis whose result may differ from example to example."""

    def along(self, x, n: int, **params):
        """The result for all n examples of the axis, which is in front of `x`; and where the mapped axis is in it."""
        raise NotImplementedError

    def batch_rule(self, mapped, operands, dims, *, axis_names, **params):
        if mapped.name in axis_names:
            return self.along(spread_at_front(mapped, operands[0], dims[0]), mapped.size, **params)
        x = moveaxis(operands[0], dims[0], 0)
        shifted = {**params, "axis": params["axis"] + 1} if "axis" in params else params
        return bind(self, (x,), {"axis_names": axis_names, **shifted}), 0


class Reducing(AxisPrimitive):
    """The reduction of x over the axes `axis_names`, which each example gets."""

    def type_rule(self, x, *, axis_names, groups):
        return x

    def reduce(self, x, axes):
        """The reduction of the mapped axis."""
        raise NotImplementedError

    def repeat(self, x, n: int):
        """The reduction of n equal examples."""
        return x

    def batch_rule(self, axis, operands, dims, *, axis_names, groups):
        (x,), (d,) = operands, dims
        rest = tuple([a for a in axis_names if a != axis.name])
        if len(rest) == len(axis_names):
            return bind(self, (x,), {"axis_names": axis_names, "groups": groups}), d
        if d is None:
            out, d = self.repeat(x, axis.size if groups is None else len(groups[0])), None
        elif groups is None:
            out, d = self.reduce(x, (d,)), None
        else:
            reduced = self.reduce(_by_groups(moveaxis(x, d, 0), groups), (1,))
            out, d = _from_groups(_shared_in_groups(reduced, len(groups[0])), groups), 0
        return (bind(self, (out,), {"axis_names": rest, "groups": None}) if rest else out), d


class Psum(Reducing):
    """The sum; out' = psum(x')."""

    def reduce(self, x, axes):
        return reduce_sum(x, axes)

    def repeat(self, x, n):
        return mul(x, filled(aval_of(x), n))

    # out_i = sum_j x_j for each i  =>  ct_j = sum_i ct_i
    def transpose_rule(self, ct, x, *, axis_names, groups):
        return [psum(ct, axis_names, groups)]


class Extreme(Reducing):
    """The largest or smallest."""

    def __init__(self, name, reduction):
        super().__init__(name)
        self.reduction = reduction

    def reduce(self, x, axes):
        return self.reduction(x, axes)

    # out' = mean of x'_j over the j with x_j = out
    def jvp_rule(self, primals, tangents, *, axis_names, groups):
        out = bind(self, primals, {"axis_names": axis_names, "groups": groups})
        (x,), (t,) = primals, tangents
        if type(t) is Zero:
            return out, zero_tangent(out)
        chosen = eq(x, out)
        count = psum(convert(chosen, aval_of(t).dtype), axis_names, groups)
        return out, div(psum(select(chosen, t, zeros(aval_of(t))), axis_names, groups), count)


class AllGather(AlongOneAxis):
    """x of each example of the group, along a new axis `axis` of length `size`."""

    def type_rule(self, x, *, axis_names, axis, size, groups):
        return x.update(shape=(*x.shape[:axis], size, *x.shape[axis:]))

    # out_i[j] = x_j  =>  ct_j = sum_i ct_i[j]
    def transpose_rule(self, ct, x, *, axis_names, axis, size, groups):
        return [reduce_scatter(ct, axis_names, axis, size, groups)]

    def along(self, x, n, *, axis, size, groups):
        if groups is None:
            return moveaxis(x, 0, axis), None
        out = _from_groups(_shared_in_groups(_by_groups(x, groups), size), groups)
        return moveaxis(out, 1, axis + 1), 0


class ReduceScatter(AlongOneAxis):
    """The sum over the group of x[.., own number, ..] at axis `axis` of length `size`, which goes."""

    def type_rule(self, x, *, axis_names, axis, size, groups):
        return shaped((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype, x.weak_type)

    # out_i = sum_j x_j[i]  =>  ct_j[i] = ct_i
    def transpose_rule(self, ct, x, *, axis_names, axis, size, groups):
        return [all_gather(ct, axis_names, axis, size, groups)]

    def along(self, x, n, *, axis, size, groups):
        if groups is None:
            return reduce_sum(x, (0,)), axis
        sums = moveaxis(reduce_sum(_by_groups(x, groups), (1,)), axis + 1, 1)
        return _from_groups(sums, groups), 0


class Exchange(AlongOneAxis):
    """Element j of the result of example i is element i of example j, along axis `axis` of length `size`."""

    def type_rule(self, x, *, axis_names, axis, size, groups):
        return x

    # out_i[j] = x_j[i]  =>  ct_j[i] = ct_i[j]
    def transpose_rule(self, ct, x, *, axis_names, axis, size, groups):
        return [exchange(ct, axis_names, axis, size, groups)]

    def along(self, x, n, *, axis, size, groups):
        if groups is None:
            return moveaxis(x, 0, axis), axis + 1
        x = moveaxis(_by_groups(x, groups), axis + 2, 1)
        return _from_groups(moveaxis(x, 2, axis + 2), groups), 0


class Ppermute(AlongOneAxis):
    """x of the example `source` for each (source, destination) of `pairs`, 0 for those to whom nothing is sent."""

    def type_rule(self, x, *, axis_names, pairs):
        return x

    # out_d = x_s  =>  ct_s = ct_d
    def transpose_rule(self, ct, x, *, axis_names, pairs):
        return [ppermute(ct, axis_names, tuple([(d, s) for s, d in pairs]))]

    def along(self, x, n, *, pairs):
        source = {d: s for s, d in pairs}
        return _rows(x, [source.get(i) for i in range(n)]), 0


class AxisIndex(Primitive):
    """The number of this example along the axis, as i32; it has no derivative."""

    def type_rule(self, *, axis_names):
        return shaped((), dtypes.int32)

    def jvp_rule(self, primals, tangents, **params):
        out = bind(self, (), params)
        return out, zero_tangent(out)

    def batch_rule(self, mapped, operands, dims, *, axis_names):
        return iota(dtypes.int32, (mapped.size,)), 0


psum_p = Psum("psum")
pmax_p = Extreme("pmax", reduce_max)
pmin_p = Extreme("pmin", reduce_min)
all_gather_p = AllGather("all_gather")
reduce_scatter_p = ReduceScatter("reduce_scatter")
exchange_p = Exchange("all_to_all")
ppermute_p = Ppermute("ppermute")
axis_index_p = AxisIndex("axis_index")


def psum(x, axis_names: tuple, groups: Groups = None):
    """The sum of `x` over the axes, within each group."""
    return bind(psum_p, (x,), {"axis_names": axis_names, "groups": groups})


def pmax(x, axis_names: tuple, groups: Groups = None):
    """The maximum of `x` over the axes, within each group."""
    return bind(pmax_p, (x,), {"axis_names": axis_names, "groups": groups})


def pmin(x, axis_names: tuple, groups: Groups = None):
    """The minimum of `x` over the axes, within each group."""
    return bind(pmin_p, (x,), {"axis_names": axis_names, "groups": groups})


def all_gather(x, axis_names: tuple, axis: int, size: int, groups: Groups = None):
    """`x` of each of the `size` examples of a group, along a new axis."""
    return bind(all_gather_p, (x,), {"axis_names": axis_names, "axis": axis, "size": size, "groups": groups})


def reduce_scatter(x, axis_names: tuple, axis: int, size: int, groups: Groups = None):
    """The sum over a group of the element with the example's own number, along an axis of length `size` that goes."""
    return bind(reduce_scatter_p, (x,), {"axis_names": axis_names, "axis": axis, "size": size, "groups": groups})


def exchange(x, axis_names: tuple, axis: int, size: int, groups: Groups = None):
    """Element j of example i becomes element i of example j, along an axis of length `size`."""
    return bind(exchange_p, (x,), {"axis_names": axis_names, "axis": axis, "size": size, "groups": groups})


def ppermute(x, axis_names: tuple, pairs: tuple[tuple[int, int], ...]):
    """`x` of the example that sends to this one, by (source, destination); 0 where none does."""
    return bind(ppermute_p, (x,), {"axis_names": axis_names, "pairs": pairs})


def axis_index(name):
    """The number of this example along an axis, as i32."""
    return bind(axis_index_p, (), {"axis_names": (name,)})
