"""Rules of one's own for batches: `custom_vmap`, `sequential_vmap`."""

from __future__ import annotations

from collections.abc import Callable

from funcml import tree
from funcml.lax.loops import map as map_examples
from funcml.transforms.custom_vmap import custom_vmap

__all__ = ["custom_vmap", "sequential_vmap"]


def sequential_vmap(f: Callable) -> custom_vmap:
    """`f`, whose batches are computed one example after the other, by `lax.map`.

    >>> import funcml.numpy as jnp
    >>> from funcml import vmap
    >>> vmap(sequential_vmap(lambda x: x * 2))(jnp.arange(3)).tolist()
    [0, 2, 4]
    """
    made = custom_vmap(f)

    @made.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, treedef = tree.flatten(args)
        flags = tree.leaves(in_batched)
        mapped = [x for x, is_mapped in zip(leaves, flags, strict=True) if is_mapped]

        def example(slices):
            rest = iter(slices)
            return f(*tree.unflatten(treedef, [next(rest) if m else x for x, m in zip(leaves, flags, strict=True)]))

        out = map_examples(example, mapped)
        return out, tree.map(lambda _: True, out)

    return made
