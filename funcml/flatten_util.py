"""Trees of arrays as vectors, and back.

    ravel_pytree : tree -> (vector [n], vector [n] -> tree)
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from funcml import dtypes, tree
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.creation import zeros
from funcml.numpy.promotion import as_array, operand
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, _Unravel]:
    """All leaves of a tree in one vector, in the dtype to which they promote, and the function that takes such a vector back.

    That function is equal to, and hashes like, those made of trees of the same form. Where all leaves have one dtype, it takes
    vectors of any; else the leaves get their own dtypes back, and it raises TypeError for a vector of another dtype. A tree
    without leaves is an empty vector of dtype float32.

    >>> vector, unravel = ravel_pytree({"w": np.ones((1, 2), "float32"), "b": np.zeros(1, "float32")})
    >>> vector
    Array([0., 1., 1.], dtype=float32)
    >>> unravel(2 * vector)
    {'b': Array([0.], dtype=float32), 'w': Array([[2., 2.]], dtype=float32)}
    """
    leaves, treedef = tree.flatten(pytree)
    leaves = [operand("ravel_pytree", x) for x in leaves]
    found = [dtypes.dtype_of(x)[0] for x in leaves]
    dtype = dtypes.result_type(*found) if found else dtypes.float32
    own = None if all(d == dtype for d in found) else tuple(found)
    unravel = _Unravel(treedef, tuple([np.shape(x) for x in leaves]), dtype, own)
    return (_ravel(leaves, dtype) if leaves else zeros(0, dtype)), unravel


@fused(static=("dtype",))
def _ravel(leaves, dtype):
    flat = [as_array(x) for x in leaves]
    return shaping.concatenate([ax.reshape(ew.convert(x, dtype), (x.size,)) for x in flat], 0)


@dataclass(frozen=True)
class _Unravel:
    """A vector of the elements of all leaves -> a tree of them; `own` are their dtypes, if they are not all `dtype`."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtype: Any
    own: tuple | None

    def __call__(self, flat) -> Any:
        flat = as_array(operand("unravel", flat))
        size = sum(map(math.prod, self.shapes))
        if flat.shape != (size,):
            raise ValueError(f"unravel: expected a vector of {size} elements, got {flat.aval}")
        if self.own is not None and flat.dtype != self.dtype:
            raise TypeError(
                f"unravel: got {flat.aval}, but expected dtype {dtypes.short_name(self.dtype)}, since the leaves have different "
                f"dtypes; convert it first"
            )
        return tree.unflatten(self.treedef, _unravel(flat, self.shapes, self.own) if self.shapes else [])


@fused(static=("shapes", "own"))
def _unravel(flat, shapes, own):
    pieces = shaping.split(flat, tuple(map(math.prod, shapes)), 0)
    pieces = [ax.reshape(x, shape) for x, shape in zip(pieces, shapes, strict=True)]
    return [_back(x, dtype) for x, dtype in zip(pieces, own or itertools.repeat(None), strict=False)]


def _back(x, dtype):
    if dtype is None or x.dtype == dtype:
        return x
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        x = ew.real(x)
    return ew.ne(x, 0) if dtypes.is_bool(dtype) else ew.convert(x, dtype)
