"""What the primitives of linear algebra share: operands that are batches of matrices, and the algebra their rules speak in.

    [.., m, n]      leading axes are batch axes, of equal lengths for all operands of a primitive
    transposed, adjoint : [.., m, n] -> [.., n, m]
    lower, upper        : [.., m, n] -> [.., m, n]     one triangle, zeros in the other
    product             : [.., m, k] x [.., k, n] -> [.., m, n]     at full precision
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml import dtypes
from funcml.core.avals import ShapedArray
from funcml.core.ir import Primitive
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, moveaxis, reshape, transpose
from funcml.primitives.batching import spread_at_front
from funcml.primitives.contraction import DotDimensions, dot_general
from funcml.primitives.elementwise import add, complex, conj_p, ge, real, select
from funcml.primitives.rows import list_of
from funcml.primitives.shaping import iota
from funcml.primitives.tangents import scalar_of, zeros

__all__ = [
    "MATRIX_DTYPES", "MatrixMap", "MatrixPrimitive", "adjoint", "conjugate", "diagonal_mask", "eye", "lower", "product",
    "real_part", "transposed", "triangle_mask", "upper",
]

#: the dtypes that factorisations exist for
MATRIX_DTYPES = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


class MatrixPrimitive(Primitive):
    """A primitive whose operand i has `ranks[i]` axes (2: a matrix, 1: a vector) behind the batch axes.

    Operands have one dtype, except for those at the places `indices`, whose dtype the type rule checks. Type rules call
    `batch_of`; the batch rule puts the mapped axis in front of the batch axes.
    """

    def __init__(self, name: str, ranks: Sequence[int], indices: Sequence[int] = ()):
        super().__init__(name)
        self.indices = tuple(indices)
        self.ranks = tuple(ranks)

    def batch_of(self, *avals: ShapedArray) -> tuple[int, ...]:
        """The batch axes of the operands; TypeError for dtypes without factorisations, ValueError for shapes."""
        first = avals[0]
        floats = [a for i, a in enumerate(avals) if i not in self.indices]
        if any(a.dtype not in MATRIX_DTYPES for a in floats):
            raise TypeError(
                f"{self.name} expects f32, f64, c64 or c128, got {list_of(avals)}; convert with `.astype`"
            )
        if any(a.dtype != floats[0].dtype for a in floats):
            raise TypeError(f"{self.name} expects operands of one dtype, got {list_of(avals)}; convert them with `.astype`")
        for a, rank in zip(avals, self.ranks, strict=True):
            if a.ndim < rank:
                wanted = {1: "vectors [.., n]", 2: "matrices [.., m, n]"}[rank]
                raise TypeError(f"{self.name} expects {wanted}, got {list_of(avals)}")
        batches = [a.shape[: a.ndim - rank] for a, rank in zip(avals, self.ranks, strict=True)]
        if any(b != batches[0] for b in batches):
            raise ValueError(f"{self.name} expects operands with the same batch axes, got {list_of(avals)}; broadcast them")
        return first.shape[: first.ndim - self.ranks[0]]

    def square(self, aval: ShapedArray) -> None:
        """Raises ValueError unless `aval` is of square matrices."""
        if aval.shape[-1] != aval.shape[-2]:
            raise ValueError(f"{self.name} expects square matrices [.., n, n], got {aval}")

    def batch_rule(self, axis, operands, dims, **params):
        moved = [spread_at_front(axis, x, d) for x, d in zip(operands, dims, strict=True)]
        out = bind(self, moved, params)
        return (out, [0] * len(out)) if self.multiple_results else (out, 0)


class MatrixMap(MatrixPrimitive):
    """A primitive linear in its last operand, whose columns are mapped one by one, by a matrix that the others give."""

    def by_columns(self, params) -> bool:
        """Whether the columns are mapped (else the rows)."""
        return True

    # one matrix for the whole batch: more columns (or rows) for it
    def batch_rule(self, axis, operands, dims, **params):
        if any(d is not None for d in dims[:-1]):
            return super().batch_rule(axis, operands, dims, **params)
        x = operands[-1]
        place = aval_of(x).ndim - (2 if self.by_columns(params) else 3)
        x = moveaxis(x, dims[-1], place)
        shape = aval_of(x).shape
        merged = (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
        out = bind(self, (*operands[:-1], reshape(x, merged)), params)
        return reshape(out, shape), place


# ---- algebra -----------------------------------------------------------------------------------------------------


def transposed(x):
    """`x` with its last two axes swapped."""
    n = aval_of(x).ndim
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def conjugate(x):
    """The complex conjugate of `x`; itself, if it is real."""
    return conj_p(x) if dtypes.is_complex(aval_of(x).dtype) else x


def adjoint(x):
    """The conjugate transpose of `x`."""
    return conjugate(transposed(x))


def real_part(x):
    """`x` without its imaginary part, in its own dtype."""
    return complex(real(x), 0.0) if dtypes.is_complex(aval_of(x).dtype) else x


def product(x, y):
    """The product of matrices of one batch, at the highest precision that the device has."""
    n = aval_of(x).ndim
    batch = tuple(range(n - 2))
    return dot_general(x, y, DotDimensions(((n - 1,), (n - 2,)), (batch, batch)), ("highest", "highest"))


def triangle_mask(shape, offset: int = 0):
    """bool [.., m, n]: true at (i, j) with j - i <= offset."""
    places = shape[-2:]
    row, column = iota(dtypes.int32, places, 0), iota(dtypes.int32, places, 1)
    mask = ge(add(row, dtypes.int32.type(offset)), column)
    return broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))


def lower(x, offset: int = 0):
    """The elements of `x` at (i, j) with j - i <= offset, zero elsewhere."""
    aval = aval_of(x)
    return select(triangle_mask(aval.shape, offset), x, zeros(aval))


def upper(x, offset: int = 0):
    """The elements of `x` at (i, j) with j - i >= offset, zero elsewhere."""
    aval = aval_of(x)
    return select(triangle_mask(aval.shape, offset - 1), zeros(aval), x)


def diagonal_mask(shape):
    """bool [.., m, n]: true at (i, i)."""
    from_below, from_above = triangle_mask(shape), triangle_mask(shape, -1)
    return select(from_above, zeros(aval_of(from_below)), from_below)


def eye(aval: ShapedArray):
    """Ones at (i, i), zeros elsewhere, of this type."""
    ones = broadcast_in_dim(scalar_of(aval, 1), aval.shape)
    return select(diagonal_mask(aval.shape), ones, zeros(aval))
