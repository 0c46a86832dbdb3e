"""Rotations of space: how they are composed, applied, averaged and interpolated.

    Rotation : one ([4]) or several ([n, 4]) rotations, kept as unit quaternions (x, y, z, w)
    Slerp    : rotations at given times -> rotations between them, at constant speed about one axis

Both are trees of arrays, so functions of them can be compiled, mapped and differentiated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import index_of
from funcml.numpy.creation import array, ones, zeros
from funcml.numpy.joining import concatenate, stack
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.numpy.selection import take
from funcml.numpy.sorting import searchsorted
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew
from funcml.primitives.contraction import dot_general
from funcml.primitives.linalg_spectral import eigh
from funcml.random import normal
from funcml.scipy.spatial import quaternions

__all__ = ["Rotation", "Slerp"]


def _floats(name: str, x, length: int, ndim: int = 1) -> Array:
    """`x` as an array of floats whose last `ndim` axes have this length; ValueError for other shapes."""
    x = as_array(to_inexact(name, array(x) if isinstance(x, list | tuple) else operand(name, x)))
    if x.shape[-ndim:] != (length,) * ndim or dtypes.is_complex(x.dtype):
        wanted = ", ".join([str(length)] * ndim)
        raise ValueError(f"{name} expects real numbers of shape [.., {wanted}], got {x.aval}")
    return x


def _axes(name: str, seq: str) -> tuple[tuple[int, ...], bool]:
    """The axes of a sequence as numbers, and whether they turn along; ValueError for other letters or equal neighbours."""
    intrinsic = re.fullmatch("[XYZ]{1,3}", seq) is not None
    if not intrinsic and re.fullmatch("[xyz]{1,3}", seq) is None:
        raise ValueError(f"{name} expects one to three axes, 'xyz' (fixed) or 'XYZ' (turning along), got {seq!r}")
    axes = tuple(["xyz".index(c) for c in seq.lower()])
    if any(a == b for a, b in zip(axes, axes[1:], strict=False)):
        raise ValueError(f"{name} expects neighbouring axes to be different, got {seq!r}")
    return axes, intrinsic


class Rotation(NamedTuple):
    """A rotation of space, or several: unit quaternions (x, y, z, w) in the last axis of `quat`.

    Made by `from_quat`, `from_matrix`, `from_rotvec`, `from_euler`, `from_mrp`, `identity` and `random`; `p * q` is the rotation
    by q, then by p.

    >>> import numpy as np
    >>> quarter = Rotation.from_euler("z", np.float64(90.0), degrees=True)
    >>> np.round(np.asarray(quarter.apply(np.array([1.0, 0.0, 0.0]))), 6)
    array([0., 1., 0.])
    >>> (quarter * quarter).magnitude()
    Array(3.14159265, dtype=float64)
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """All rotations one after the other."""
        return cls(concatenate([r.quat if r.quat.ndim > 1 else r.quat[None] for r in rotations]))

    @classmethod
    def from_quat(cls, quat, *, scalar_first: bool = False) -> Rotation:
        """Rotations by quaternions (x, y, z, w), which are divided by their norm; (w, x, y, z) if `scalar_first`."""
        quat = _floats("Rotation.from_quat", quat, 4)
        return cls(quaternions.normalised(stack([quat[..., i] for i in (1, 2, 3, 0)], -1) if scalar_first else quat))

    @classmethod
    def from_matrix(cls, matrix) -> Rotation:
        """Rotations by orthogonal matrices of determinant 1."""
        return cls(quaternions.from_matrix(_floats("Rotation.from_matrix", matrix, 3, 2)))

    @classmethod
    def from_rotvec(cls, rotvec, degrees: bool = False) -> Rotation:
        """Rotations about vectors by angles as large as the vectors are long."""
        return cls(quaternions.from_rotvec(_floats("Rotation.from_rotvec", rotvec, 3), bool(degrees)))

    @classmethod
    def from_mrp(cls, mrp) -> Rotation:
        """Rotations by modified Rodrigues parameters: vectors along the axis of length tan(angle / 4)."""
        return cls(quaternions.from_mrp(_floats("Rotation.from_mrp", mrp, 3)))

    @classmethod
    def from_euler(cls, seq: str, angles, degrees: bool = False) -> Rotation:
        """Rotations about one to three coordinate axes: 'xyz' about fixed axes, 'XYZ' about axes that turn along.

        `angles` are [.., axes]; for one axis a number or a vector will do.
        """
        axes, intrinsic = _axes("Rotation.from_euler", seq)
        angles = as_array(array(angles) if isinstance(angles, list | tuple) else operand("Rotation.from_euler", angles))
        if len(axes) == 1 and (angles.ndim == 0 or (angles.ndim == 1 and angles.size != 1)):
            angles = angles[..., None]
        angles = _floats(f"Rotation.from_euler({seq!r})", angles, len(axes))
        return cls(quaternions.from_euler(angles, axes, intrinsic, bool(degrees)))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that moves nothing, `num` times if a number is given."""
        count = () if num is None else (index_of("Rotation.identity", "num", num),)
        return cls(concatenate([zeros((*count, 3), dtype), ones((*count, 1), dtype)], -1))

    @classmethod
    def random(cls, random_key, num: int | None = None) -> Rotation:
        """Rotations from the uniform distribution: directions of normally distributed quaternions."""
        count = () if num is None else (index_of("Rotation.random", "num", num),)
        return cls(quaternions.normalised(normal(random_key, (*count, 4))))

    def __getitem__(self, indexer) -> Rotation:  # type: ignore[override]
        """The rotations at an index."""
        if self.single:
            raise TypeError("a single Rotation has no index; it holds one rotation")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """How many rotations these are."""
        if self.single:
            raise TypeError("a single Rotation has no length")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """The rotation by `other`, then by this one."""
        return Rotation(quaternions.normalised(quaternions.product(self.quat, other.quat)))

    def apply(self, vectors, inverse: bool = False) -> Array:
        """Vectors [.., 3], rotated (by the inverse)."""
        return quaternions.moved(self.quat, _floats("Rotation.apply", vectors, 3), bool(inverse))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions (x, y, z, w), or (w, x, y, z); with `canonical`, w or else x, y or z is positive."""
        return quaternions.ordered(quaternions.canonical(self.quat) if canonical else self.quat, bool(scalar_first))

    def as_matrix(self) -> Array:
        """Matrices [.., 3, 3]."""
        return quaternions.to_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors along the axes, as long as the angles are large."""
        return quaternions.to_rotvec(self.quat, bool(degrees))

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters: vectors along the axes of length tan(angle / 4)."""
        return quaternions.to_mrp(self.quat)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles [.., 3] of rotations about three coordinate axes, 'xyz' fixed or 'XYZ' turning along."""
        axes, intrinsic = _axes("Rotation.as_euler", seq)
        if len(axes) != 3:
            raise ValueError(f"Rotation.as_euler expects three axes, got {seq!r}")
        return quaternions.to_euler(self.quat, axes, not intrinsic, bool(degrees))

    def inv(self) -> Rotation:
        """The inverse rotations."""
        return Rotation(quaternions.conjugate(self.quat))

    def magnitude(self) -> Array:
        """The angles, from 0 to pi."""
        return quaternions.magnitude(self.quat)

    def mean(self, weights=None) -> Rotation:
        """The rotation nearest to all of these, by the squares of the distances of matrices, times `weights` [n] if given.

        It is the eigenvector of the largest eigenvalue of sum w q q^T (F. L. Markley et al., Averaging quaternions, 2007).
        """
        count = len(self)
        w = ones(count, self.quat.dtype) if weights is None else array(weights, dtype=self.quat.dtype)
        if w.shape != (count,):
            raise ValueError(f"Rotation.mean expects a weight for each of {count} rotations, got {w.aval}")
        return Rotation(_mean(self.quat, w))

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not several."""
        return self.quat.ndim == 1


@fused
def _mean(quats, weights):
    weighted = ew.mul(quats, ax.broadcast_in_dim(weights, quats.shape, (0,)))
    vectors, _ = eigh(dot_general(weighted, quats, (((0,), (0,)), ((), ())), ("highest", "highest")))
    return vectors[:, -1]


class Slerp(NamedTuple):
    """Rotations between given ones: from each to the next about one axis at constant speed. Made by `Slerp.init`.

    >>> import numpy as np
    >>> turn = Rotation.from_rotvec(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> Slerp.init(np.array([0.0, 2.0]), turn)(0.5).as_rotvec()
    Array([0.  , 0.  , 0.25], dtype=float64)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times, rotations: Rotation) -> Slerp:
        """The interpolation of two or more rotations at strictly increasing times."""
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp.init expects a Rotation, got {type(rotations).__name__}")
        if rotations.single or len(rotations) < 2:
            raise ValueError("Slerp.init expects two or more rotations")
        times = array(times, dtype=rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(f"Slerp.init expects a time for each of {len(rotations)} rotations, got {times.aval}")
        first, second = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, times[1:] - times[:-1], first, (first.inv() * second).as_rotvec())

    def __call__(self, times) -> Rotation:
        """The rotations at `times`, a number or a vector."""
        times = array(times, dtype=self.times.dtype)
        if times.ndim > 1:
            raise ValueError(f"Slerp expects a time or a vector of times, got {times.aval}")
        return Rotation(_between(times, self.times, self.timedelta, self.rotations.quat, self.rotvecs))


@fused
def _between(at, times, steps, quats, rotvecs):
    i = ew.clamp(0, ew.sub(searchsorted(times, at), 1), steps.shape[0] - 1)
    start, step, quat, rotvec = (take(x, i, 0, mode="promise_in_bounds") for x in (times, steps, quats, rotvecs))
    part = ax.expand_dims(ew.div(ew.sub(at, start), step), (at.ndim,))
    turned = quaternions.from_rotvec(rotvec * part, False)
    return quaternions.normalised(quaternions.product(quat, turned))
