"""A batch in chunks: `vmap` in the memory of `chunk_size` examples at a time.

    chunked_jaxpr : a -> b   |->   [n] a -> [n] b       a scan over chunks, and the examples left over
"""

from __future__ import annotations

from funcml.control_flow.programs import rearranged
from funcml.control_flow.scan import scan
from funcml.core.ir import Jaxpr, MappedAxis
from funcml.core.tracing import aval_of, eval_jaxpr, trace
from funcml.primitives.axes import moveaxis, reshape
from funcml.primitives.batching import batched_aval
from funcml.primitives.shaping import concatenate, slice_in_dim
from funcml.transforms.rewriting import Rewritten, remembered
from funcml.transforms.vmap import vmap_jaxpr

__all__ = ["chunked_jaxpr"]


@remembered
def chunked_jaxpr(
    jaxpr: Jaxpr, axis: MappedAxis, dims: tuple[int | None, ...], out_dims: tuple[int | None, ...], chunk_size: int
) -> Rewritten:
    """The program of a batch that `vmap_jaxpr` makes, but for `chunk_size` examples at a time; fewer than there are.

    in:   captured..., inputs with the mapped axis at `dims`
    out:  outputs with the mapped axis at `out_dims`
    """
    turns, rest = divmod(axis.size, chunk_size)
    whole = turns * chunk_size
    in_front = tuple([None if d is None else 0 for d in dims])
    out_front = tuple([None if d is None else 0 for d in out_dims])

    def batched(*inputs):
        fixed = [x for x, d in zip(inputs, dims, strict=True) if d is None]
        mapped = [moveaxis(x, d, 0) for x, d in zip(inputs, dims, strict=True) if d is not None]
        body, captured = _of_chunk(jaxpr, MappedAxis(chunk_size, axis.name), in_front, out_front)
        chunks = [_regrouped(slice_in_dim(x, 0, whole), (turns, chunk_size)) for x in mapped]
        outs = scan(body, [*captured, *fixed], [], chunks, length=turns)
        outs = [_first(y) if d is None else _regrouped(y, (whole,), 2) for y, d in zip(outs, out_dims, strict=True)]
        if rest:
            body, captured = _of_chunk(jaxpr, MappedAxis(rest, axis.name), in_front, out_front)
            last = eval_jaxpr(body, [*captured, *fixed, *[slice_in_dim(x, whole, axis.size) for x in mapped]])
            outs = [y if d is None else concatenate([y, z], 0) for y, z, d in zip(outs, last, out_dims, strict=True)]
        return [y if d is None else moveaxis(y, 0, d) for y, d in zip(outs, out_dims, strict=True)]

    avals = [batched_aval(v.aval, axis, d) for v, d in zip(jaxpr.invars, dims, strict=True)]
    new, captured = trace(batched, avals, "vmap")
    return Rewritten(new, captured, out_dims)


def _of_chunk(jaxpr: Jaxpr, axis: MappedAxis, dims: tuple, out_dims: tuple) -> tuple[Jaxpr, list]:
    """The program of a chunk, with inputs (captured..., those that all examples share..., those that are mapped...)."""
    program, captured, _ = vmap_jaxpr(jaxpr, axis, dims, out_dims)
    n = len(captured)
    inputs = list(zip(program.invars[n:], dims, strict=True))
    shared, mapped = [v for v, d in inputs if d is None], [v for v, d in inputs if d is not None]
    return rearranged(program, [*program.invars[:n], *shared, *mapped]), list(captured)


def _regrouped(x, leading: tuple[int, ...], replaced: int = 1):
    """`x` with its first `replaced` axes as axes of the lengths `leading`."""
    return reshape(x, (*leading, *aval_of(x).shape[replaced:]))


def _first(y):
    return reshape(slice_in_dim(y, 0, 1), aval_of(y).shape[1:])
