"""What the rules of eigenvalues and singular values share: parts of matrices, and spectra whose equal members are set apart.

Eigenvectors change along A' by v_j' = sum over i of v_i F_ij P_ij, with F_ij = 1 / (w_j - w_i). Within a group of equal w they
are not determined, and yet a function such as V g(w) V^H, for which the choice does not matter, has a derivative:
F_ij (g(w_j) - g(w_i)) tends to g'(w). In numbers that is 0 / 0. So where a derivative of vectors is taken, members of a group
are set apart by a part of themselves that is small against the value and large against its rounding errors:

    w_i -> w_i (1 + step k_i)        k_i the place in the group, counted from its middle

The error is of order step in what depends on the w alone, and eps / step^order in what depends on the vectors. Members that
are zero to rounding, which have no size, are set apart by fractions of eps of the largest: right to first order for functions
with g(0) = 0. A spectrum without groups is left as it is.
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim, reduce_sum
from funcml.primitives.identities import stop_gradient
from funcml.primitives.matrices import diagonal_mask
from funcml.primitives.reductions import reduce_max
from funcml.primitives.shaping import iota
from funcml.primitives.tangents import scalar_of, zeros

__all__ = ["along_columns", "along_rows", "apart", "diagonal", "inverse_or_zero", "real_diagonal", "widened"]

# dtype of a spectrum -> the step for derivatives of the first order, and for higher ones
_STEPS = {dtypes.float32: (2.0**-13, 2.0**-8), dtypes.float64: (2.0**-26, 2.0**-17)}


def along_columns(w, shape):
    """`w` [.., n] as [.., m, n], constant in each column."""
    n = len(shape)
    return broadcast_in_dim(w, shape, (*range(n - 2), n - 1))


def along_rows(w, shape):
    """`w` [.., m] as [.., m, n], constant in each row."""
    return broadcast_in_dim(w, shape, tuple(range(len(shape) - 1)))


def diagonal(x):
    """The elements (i, i) of square matrices [.., n, n]."""
    aval = aval_of(x)
    return reduce_sum(ew.select(diagonal_mask(aval.shape), x, zeros(aval)), (aval.ndim - 1,))


def real_diagonal(x):
    """The real part of the diagonal."""
    d = diagonal(x)
    return ew.real(d) if dtypes.is_complex(aval_of(d).dtype) else d


def widened(x, dtype):
    """Real `x` as `dtype`, which may be complex."""
    return ew.complex(x, 0.0) if dtypes.is_complex(dtype) else x


def inverse_or_zero(x):
    """1 / x, and 0 where x is 0."""
    aval = aval_of(x)
    zero = zeros(aval)
    at_zero = ew.eq(x, zero)
    return ew.select(at_zero, zero, ew.div(scalar_of(aval, 1), ew.select(at_zero, _filled(aval, 1), x)))


def _filled(aval, value):
    return broadcast_in_dim(scalar_of(aval, value), aval.shape)


def apart(w, order: int, descending: bool = False):
    """A sorted spectrum [.., n] with the members of each group set apart, for derivatives of the given order.

    Singular values (`descending`) that are zero to rounding become positive.
    """
    aval = aval_of(w)
    n = aval.shape[-1]
    if n < 2 and not descending or n == 0:
        return w
    eps = float(dtypes.finfo(aval.dtype).eps)
    fixed = stop_gradient(w)
    size = ew.abs(fixed)
    largest = reduce_max(size, (aval.ndim - 1,))
    largest = along_rows(ew.select(ew.eq(largest, 0), _filled(aval_of(largest), 1), largest), aval.shape)
    limit = ew.mul(largest, scalar_of(aval, 4 * eps * math.sqrt(n)))
    place, rank = _places(fixed, limit, descending)
    first, further = _STEPS[aval.dtype]
    step = ew.mul(size, scalar_of(aval, first if order == 1 else further))
    least = ew.mul(largest, scalar_of(aval, eps / 4))
    shift = ew.select(ew.le(size, limit), ew.mul(least, rank), ew.mul(step, place))
    return ew.add(w, stop_gradient(shift))


def _places(w, limit, descending):
    """For each member, of those nearer than `limit`: its place counted from the middle, and from the smallest."""
    aval = aval_of(w)
    n, last = aval.shape[-1], aval.ndim
    square = (*aval.shape, n)
    near = ew.le(ew.abs(ew.sub(along_columns(w, square), along_rows(w, square))), along_rows(limit, square))
    near = ew.convert(near, aval.dtype)
    steps = ew.sub(iota(dtypes.int32, (n, n), 0), iota(dtypes.int32, (n, n), 1))
    steps = ew.convert(ew.neg(steps) if descending else steps, aval.dtype)
    steps = broadcast_in_dim(steps, square, (last - 1, last))
    count = reduce_sum(near, (last,))
    middle = ew.div(reduce_sum(ew.mul(near, steps), (last,)), count)
    crowding = ew.max(scalar_of(aval, 1), ew.mul(count, scalar_of(aval, 1 / 16)))  # a large group keeps its width
    rank = reduce_sum(ew.mul(near, ew.convert(ew.gt(steps, 0), aval.dtype)), (last,))
    return ew.div(middle, crowding), ew.add(rank, scalar_of(aval, int(descending)))
