"""Unit quaternions (x, y, z, w) in the last axis of an array, and the other forms of a rotation.

    normalised, product, conjugate, canonical : quaternions -> quaternions
    to_* and from_*                           : [.., 4] <-> matrices [.., 3, 3], rotation vectors, Rodrigues parameters,
                                                Euler angles [.., 3]
    moved                                     : vectors [.., 3], rotated

All are smooth where the rotation is, at the identity too.
"""

from __future__ import annotations

import math

from funcml.lowering.execute import fused
from funcml.numpy.joining import stack
from funcml.numpy.norms import euclidean
from funcml.numpy.promotion import as_array, broadcast_shapes, promote_dtypes
from funcml.numpy.reductions import argmax
from funcml.numpy.rows import fill
from funcml.numpy.selection import take_along_axis, where
from funcml.numpy.ufuncs import arctan2, cos, hypot, sin, sinc, sqrt
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew

__all__ = [
    "canonical", "conjugate", "from_euler", "from_matrix", "from_mrp", "from_rotvec", "magnitude", "moved", "normalised",
    "product", "to_euler", "to_matrix", "to_mrp", "to_rotvec",
]


def _components(x) -> list:
    """The elements of the last axis, each an array of the other axes."""
    return [x[..., i] for i in range(x.shape[-1])]


def _together(name: str, *xs):
    """Arrays of one dtype whose axes but the last broadcast."""
    arrays = [as_array(x) for x in promote_dtypes(name, *xs, inexact=True)]
    shape = broadcast_shapes(*[x.shape[:-1] for x in arrays])
    last = len(shape)
    return [ax.broadcast_in_dim(x, (*shape, x.shape[-1]), range(last + 1 - x.ndim, last + 1)) for x in arrays]


@fused
def normalised(q):
    """q / |q|."""
    return q / sqrt((q * q).sum(-1, keepdims=True))


@fused
def conjugate(q):
    """(-x, -y, -z, w): the inverse rotation."""
    x, y, z, w = _components(q)
    return stack([-x, -y, -z, w], -1)


@fused
def product(p, q):
    """The rotation by q, then by p."""
    p, q = _together("Rotation", p, q)
    (a, b, c, d), (x, y, z, w) = _components(p), _components(q)
    return stack([
        d * x + a * w + b * z - c * y,
        d * y - a * z + b * w + c * x,
        d * z + a * y - b * x + c * w,
        d * w - a * x - b * y - c * z,
    ], -1)


@fused
def canonical(q):
    """Of q and -q, which mean one rotation, the one whose last element that is not 0 among w, x, y, z is positive."""
    x, y, z, w = _components(q)
    negative = fill(ew.lt(w, 0), False)
    for part in (z, y, x, w):
        negative = (part < 0) | ((part == 0) & negative)
    return where(negative[..., None], -q, q)


@fused(static=("scalar_first",))
def ordered(q, scalar_first):
    """(w, x, y, z) if `scalar_first`."""
    return stack([q[..., i] for i in (3, 0, 1, 2)], -1) if scalar_first else q


@fused
def magnitude(q):
    """The angle, from 0 to pi."""
    return 2 * arctan2(euclidean(q[..., :3], (q.ndim - 1,)), abs(q[..., 3]))


# ---- matrices ------------------------------------------------------------------------------------------------------


@fused
def to_matrix(q):
    """The matrix whose columns are the rotated axes."""
    x, y, z, w = _components(q)
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), w * w - x * x + y * y - z * z, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), w * w - x * x - y * y + z * z],
    ]
    return stack([stack(row, -1) for row in rows], -2)


# Of 4 x^2, 4 y^2, 4 z^2, 4 w^2, which the diagonal gives, the largest is used, so that nothing cancels (S. W. Shepperd, 1978).
@fused
def from_matrix(m):
    """The quaternion of a rotation matrix."""
    e = [[m[..., i, j] for j in range(3)] for i in range(3)]
    trace = e[0][0] + e[1][1] + e[2][2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        q = [trace] * 4
        q[i] = 1 - trace + 2 * e[i][i]
        q[j] = e[j][i] + e[i][j]
        q[k] = e[k][i] + e[i][k]
        q[3] = e[k][j] - e[j][k]
        candidates.append(stack(q, -1))
    candidates.append(stack([e[2][1] - e[1][2], e[0][2] - e[2][0], e[1][0] - e[0][1], 1 + trace], -1))
    largest = argmax(stack([e[0][0], e[1][1], e[2][2], trace], -1), axis=-1)
    chosen = take_along_axis(stack(candidates, -2), largest[..., None, None], axis=-2)[..., 0, :]
    return chosen / sqrt((chosen * chosen).sum(-1, keepdims=True))


@fused(static=("inverse",))
def moved(q, v, inverse):
    """v + 2 w (u x v) + 2 u x (u x v), u = (x, y, z), which is -u for the inverse."""
    q, v = _together("Rotation.apply", q, v)
    x, y, z, w = _components(-q if inverse else q)
    w = -w if inverse else w
    a, b, c = _components(v)
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    return stack([
        a + 2 * (w * d + y * f - z * e), b + 2 * (w * e + z * d - x * f), c + 2 * (w * f + x * e - y * d),
    ], -1)


# ---- rotation vectors and Rodrigues parameters -----------------------------------------------------------------------


# (u / |u|) sin(r / 2) = u sinc(r / 2 pi) / 2 with r = |u|
@fused(static=("degrees",))
def from_rotvec(u, degrees):
    """The rotation about u by the angle |u|."""
    u = u * (math.pi / 180) if degrees else u
    r = euclidean(u, (u.ndim - 1,))[..., None]
    scale = 0.5 * sinc(r / (2 * math.pi))
    scaled = scale * u
    return stack([*_components(scaled), cos(0.5 * r[..., 0])], -1)


# With w >= 0, u = v 2 atan2(n, w) / n, n = |v|. Near the identity atan(t) / t = 1 - t^2 / 3 + t^4 / 5 - t^6 / 7, t = n / w.
@fused(static=("degrees",))
def to_rotvec(q, degrees):
    """The vector along the axis, as long as the angle is large."""
    q = where(q[..., 3:] < 0, -q, q)
    v, w = q[..., :3], q[..., 3:]
    square = (v * v).sum(-1, keepdims=True)
    near = square < 1e-4 * w * w
    t = where(near, square, 0) / where(near, w * w, 1)
    series = (1 - t * (1 / 3 - t * (1 / 5 - t * (1 / 7)))) / where(near, w, 1)
    n = sqrt(where(near, 1, square))
    scale = 2 * where(near, series, arctan2(n, w) / n)
    return v * (scale * (180 / math.pi) if degrees else scale)


@fused
def to_mrp(q):
    """The vector along the axis of length tan(angle / 4)."""
    q = where(q[..., 3:] < 0, -q, q)
    return q[..., :3] / (1 + q[..., 3:])


@fused
def from_mrp(m):
    """The rotation of Rodrigues parameters: (2 m, 1 - |m|^2) / (1 + |m|^2)."""
    square = (m * m).sum(-1)
    scaled = 2 * m / (1 + square[..., None])
    return stack([*_components(scaled), (1 - square) / (1 + square)], -1)


# ---- Euler angles ----------------------------------------------------------------------------------------------------


@fused(static=("axes", "intrinsic", "degrees"))
def from_euler(angles, axes, intrinsic, degrees):
    """Rotations about coordinate axes, one after the other: about fixed axes, or about those that turn along."""
    half = 0.5 * (angles * (math.pi / 180) if degrees else angles)
    out = None
    for i, axis in enumerate(axes):
        s, c = sin(half[..., i]), cos(half[..., i])
        parts = [fill(c, 0), fill(c, 0), fill(c, 0), c]
        parts[axis] = s
        one = stack(parts, -1)
        out = one if out is None else (product(out, one) if intrinsic else product(one, out))
    return out


# E. Bernardes, S. Viollet, Quaternion to Euler angles conversion, 2022. Where the second angle is degenerate, only the sum or the
# difference of the others is known, and the third one (of those that turn along: the first) is 0.
@fused(static=("axes", "extrinsic", "degrees"))
def to_euler(q, axes, extrinsic, degrees):
    """The three angles of rotations about coordinate axes that give this one."""
    i, j, k = axes if extrinsic else axes[::-1]
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    p = _components(q)
    if symmetric:
        a, b, c, d = p[3], p[i], p[j], p[k] * sign
    else:
        a, b, c, d = p[3] - p[j], p[i] + p[k] * sign, p[j] + p[3], p[k] * sign - p[i]
    second = 2 * arctan2(hypot(c, d), hypot(a, b))
    tiny = 1e-7
    none, straight = abs(second) <= tiny, abs(second - math.pi) <= tiny
    half_sum, half_difference = arctan2(b, a), arctan2(d, c)
    alone = where(none, 2 * half_sum, 2 * half_difference * (-1 if extrinsic else 1))
    pair = [half_sum - half_difference, half_sum + half_difference]
    first, third = pair if extrinsic else pair[::-1]
    degenerate = none | straight
    first, third = where(degenerate, alone, first), where(degenerate, 0, third)
    if not symmetric:
        first, third = (first, third * sign) if extrinsic else (first * sign, third)
        second = second - math.pi / 2
    turned = [_wrapped(angle) for angle in (first, second, third)]
    out = stack(turned, -1)
    return out * (180 / math.pi) if degrees else out


def _wrapped(angle):
    """The angle between -pi and pi."""
    return where(angle > math.pi, angle - 2 * math.pi, where(angle < -math.pi, angle + 2 * math.pi, angle))
