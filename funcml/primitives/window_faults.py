"""What is wrong with the dimension numbers of a gather or scatter, in words: nothing is yielded for a right one.

    gather_faults  : (operand, indices, dimension numbers, window) -> texts
    scatter_faults : (operand, indices, updates, dimension numbers) -> texts

A later test may rely on the earlier ones, so only the first text of an iterator means anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from funcml import dtypes

__all__ = ["gather_faults", "scatter_faults"]


def gather_faults(x, indices, d, sizes) -> Iterator[str]:
    limit = len(d.offset_dims) + indices.ndim - 1
    for place, i in enumerate(d.offset_dims):
        if not 0 <= i < limit:
            yield f"Offset dimension {place} in gather op is out of bounds: it must be in [0, {limit}), got {i}"
    yield from _faults("gather", x, indices, d)
    if len(sizes) != x.ndim:
        yield f"Gather op must have one slice size for every input dimension, {x.ndim}"
    if x.ndim != len(d[0]) + len(d[1]) + len(d[3]):
        yield (
            "All components of the offset index in a gather op must either be a offset dimension or explicitly "
            f"collapsed/batching: offset_dims, collapsed_slice_dims and operand_batching_dims must be {x.ndim} together"
        )
    for i, (size, length) in enumerate(zip(sizes, x.shape, strict=True)):
        if not 0 <= size <= length:
            yield f"Slice size at index {i} in gather op is out of range, must be within [0, {length}], got {size}"
    for text, dims in (("collapse slice dims with bound 1", d[1]), ("have operand batching dims with bound 0/1", d[3])):
        for place, i in enumerate(dims):
            if sizes[i] > 1:
                yield f"Gather op can only {text}, but bound is {sizes[i]} for index {i} at position {place}."


def scatter_faults(x, indices, updates, d) -> Iterator[str]:
    rank = indices.ndim - 1 + len(d.update_window_dims)
    if updates.ndim != rank:
        yield f"Updates tensor must be of rank {rank}; got {updates.ndim}."
    yield from _range("scatter", "update_window_dims", d.update_window_dims, rank)
    yield from _faults("scatter", x, indices, d)
    size = len(d[0]) + len(d[1]) + len(d[3])
    if size != x.ndim:
        yield f"Scatter op has window of size {size}; doesn't match operand of rank {x.ndim}."
    free = [i for i in range(x.ndim) if i not in d[1] + d[3]]
    for i, j in zip(d.update_window_dims, free, strict=True):
        if updates.shape[i] > x.shape[j]:
            yield (
                "Bounds of the window dimensions of updates must not exceed those of the operand: "
                f"axis {i} of updates has length {updates.shape[i]}, axis {j} of the operand {x.shape[j]}"
            )
    rows = tuple([n for i, n in enumerate(updates.shape) if i not in d.update_window_dims])
    if rows != indices.shape[:-1]:
        yield (
            "Bounds of the scatter dimensions of updates must be those of the indices: "
            f"updates must have the rows {indices.shape[:-1]} of the indices, got {rows}"
        )


def _faults(op, x, indices, d) -> Iterator[str]:
    """What gather and scatter have in common: the axes that the dimension numbers name."""
    windows, dropped, starts, batching, rows = type(d)._fields
    yield from _order(op, windows, d[0])
    for name, dims in ((dropped, d[1]), (batching, d[3])):
        yield from _order(op, name, dims)
        yield from _range(op, name, dims, x.ndim)
    for name, dims in ((dropped, d[1]), (starts, d[2])):
        if set(dims) & set(d[3]):
            yield f"{name} and {batching} in {op} op must be disjoint"
    if not dtypes.is_integer(indices.dtype) or indices.ndim == 0:
        yield f"expects integer indices [.., {len(d[2])}]"
    if indices.shape[-1] != len(d[2]):
        yield (
            f"{op.capitalize()} op has {len(d[2])} elements in {starts} and the bound of dimension "
            f"index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. These two numbers must be equal."
        )
    for place, i in enumerate(d[2]):
        if not 0 <= i < x.ndim:
            yield f"Invalid {starts} mapping; valid range is [0, {x.ndim}), got {place}->{i}"
    yield from _distinct(op, starts, d[2])
    yield from _batching_faults(op, x, indices, d)


def _batching_faults(op, x, indices, d) -> Iterator[str]:
    *_, batching, rows = type(d)._fields
    yield from _distinct(op, rows, d[4])
    if indices.ndim - 1 in d[4]:
        yield f"{op.capitalize()} op cannot have the index vector dimension as a batching dimension; got {rows}={d[4]}"
    yield from _range(op, rows, d[4], indices.ndim - 1)
    if len(d[3]) != len(d[4]):
        yield f"{op.capitalize()} op requires equal numbers of {batching} and {rows}"
    lengths = tuple([x.shape[i] for i in d[3]]), tuple([indices.shape[i] for i in d[4]])
    if lengths[0] != lengths[1]:
        yield (
            f"{op.capitalize()} op requires operand batching dimensions and indices batching dimensions to have the "
            f"same shape, got {lengths[0]} and {lengths[1]}"
        )


def _order(op, name, dims) -> Iterator[str]:
    yield from _distinct(op, name, dims)
    if tuple(sorted(dims)) != tuple(dims):
        yield f"{name} in {op} op must be sorted"


def _distinct(op, name, dims) -> Iterator[str]:
    if len(set(dims)) != len(dims):
        yield f"{name} in {op} op must not repeat"


def _range(op, name, dims, limit) -> Iterator[str]:
    for i in dims:
        if not 0 <= i < limit:
            yield f"Invalid {name} set in {op} op; valid range is [0, {limit}), got {i}"
