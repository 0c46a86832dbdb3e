"""Initial values of weights: functions that make `init : key, shape, dtype -> array`.

For the same key the values are those of JAX. A fan is the number of inputs or outputs of a unit; of a convolution the
axes that are neither input nor output count for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes, random
from funcml import numpy as fnp
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import axis_of, dtype_or, shape_of
from funcml.numpy.promotion import literal
from funcml.primitives import elementwise as ew
from funcml.primitives.powers import sqrt
from funcml.primitives.transcendental import exp, log
from funcml.random.keys import several

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal",
    "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform",
    "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]

Initializer = Callable[..., Array]

# ---- plain ---------------------------------------------------------------------------------------------------


def zeros(key, shape, dtype=None) -> Array:
    """An array of zeros."""
    return fnp.zeros(shape, dtype)


def ones(key, shape, dtype=None) -> Array:
    """An array of ones."""
    return fnp.ones(shape, dtype)


def constant(value, dtype=None) -> Initializer:
    """An initialiser to `value`, a number or an array that broadcasts to the shape."""

    def init(key, shape, dtype=dtype):
        return fnp.full(shape, value, dtype_or(dtype, dtypes.default_float()))

    return init


def _scaled(sample: Callable, scale, dtype) -> Initializer:
    """An initialiser to samples times `scale`."""

    def init(key, shape, dtype=dtype):
        dtype = dtype_or(dtype, dtypes.default_float())
        return fnp.multiply(sample(key, shape_of("init", shape), dtype), _factor(scale, dtype))

    return init


def _factor(scale, dtype):
    return fnp.asarray(scale, dtype) if isinstance(scale, Array) else literal(scale, dtype)


def uniform(scale=1e-2, dtype=None) -> Initializer:
    """An initialiser to uniform samples in [0, scale)."""
    return _scaled(random.uniform, scale, dtype)


def normal(stddev=1e-2, dtype=None) -> Initializer:
    """An initialiser to normal samples of standard deviation `stddev`."""
    return _scaled(random.normal, stddev, dtype)


def truncated_normal(stddev=1e-2, dtype=None, lower=-2.0, upper=2.0) -> Initializer:
    """An initialiser to `stddev` times normal samples that lie between `lower` and `upper`."""
    return _scaled(lambda key, shape, dtype: random.truncated_normal(key, lower, upper, shape, dtype), stddev, dtype)


# ---- scaled by the fan ---------------------------------------------------------------------------------------


def _fans(shape, in_axis, out_axis, batch_axis) -> tuple[int, int]:
    """(inputs, outputs) of a unit; ValueError for axes that the shape does not have."""
    try:
        named = [[range(len(shape))[i] for i in _as_tuple(axes)] for axes in (in_axis, out_axis, batch_axis)]
    except IndexError:
        raise ValueError(
            f"variance_scaling: the shape {shape} has no axes in_axis={in_axis}, out_axis={out_axis}, "
            f"batch_axis={batch_axis}; weights need an axis of inputs and one of outputs"
        ) from None
    inputs, outputs, _ = (math.prod([shape[i] for i in axes]) for axes in named)
    field = math.prod([n for i, n in enumerate(shape) if not any(i in axes for axes in named)])
    return inputs * field, outputs * field


def _as_tuple(axes) -> tuple[int, ...]:
    return (axes,) if isinstance(axes, int) else tuple(axes)


_MODES = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
    "fan_geo_avg": lambda inputs, outputs: math.sqrt(inputs * outputs),
}


# Standard deviations of the normal distribution truncated to (-2, 2), and of the complex one to |z| < 2.
_TRUNCATED, _TRUNCATED_COMPLEX = 0.87962566103423978, 0.95311164380491208


# Each gives samples, and the factor that makes their variance the one that is wanted.
def _truncated(key, shape, dtype, variance):
    if dtypes.is_complex(dtype):
        return _turned(key, shape, dtype, _rayleigh_below_2), np.sqrt(variance) / dtype.type(_TRUNCATED_COMPLEX)
    return random.truncated_normal(key, -2, 2, shape, dtype), np.sqrt(variance) / dtype.type(_TRUNCATED)


def _untruncated(key, shape, dtype, variance):
    return random.normal(key, shape, dtype), np.sqrt(variance)


def _uniform(key, shape, dtype, variance):
    if dtypes.is_complex(dtype):
        return _turned(key, shape, dtype, _root_of_double), np.sqrt(variance)
    return random.uniform(key, shape, dtype, -1), np.sqrt(dtype.type(3) * variance)


def _rayleigh_below_2(u):
    """|z| of a complex normal sample of variance 1, given that it is below 2."""
    return sqrt(ew.neg(log(ew.sub(1.0, ew.mul(1 - math.exp(-4.0), u)))))


def _root_of_double(u):
    """|z| of a uniform sample in the disk of variance 1."""
    return sqrt(ew.mul(2.0, u))


@fused(static=("shape", "dtype", "radius"))
def _turned(key, shape, dtype, radius):
    """radius(u) exp(2 pi i v) with u and v uniform."""
    key_radius, key_angle = several(key, 2)
    u, v = (random.uniform(k, shape, dtypes.real_dtype(dtype)) for k in (key_radius, key_angle))
    return ew.mul(ew.complex(radius(u), 0.0), exp(ew.complex(0.0, ew.mul(2 * math.pi, v))))


_DISTRIBUTIONS = {"truncated_normal": _truncated, "normal": _untruncated, "uniform": _uniform}


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype=None,
) -> Initializer:
    """An initialiser to samples of mean 0 and variance scale / n, n the fan that `mode` names.

    `mode` is "fan_in", "fan_out", "fan_avg" or "fan_geo_avg" (arithmetic and geometric mean); `distribution` is "normal",
    "truncated_normal" (to two standard deviations) or "uniform" (complex: in a disk). Axes that are named nowhere are the
    field of a convolution; those of `batch_axis` count for nothing.
    """
    for what, value, known in (("mode", mode, _MODES), ("distribution", distribution, _DISTRIBUTIONS)):
        if value not in known:
            raise ValueError(f"variance_scaling: expected a {what} among {', '.join(known)}, got {value!r}")

    def init(key, shape, dtype=dtype):
        shape, dtype = shape_of("init", shape), dtype_or(dtype, dtypes.default_float())
        fan = _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        sample, factor = _DISTRIBUTIONS[distribution](key, shape, dtype, np.array(scale / fan, dtype)[()])
        return fnp.multiply(sample, literal(factor, dtype))

    return init


def _scheme(name: str, who: str, scale: float, mode: str, distribution: str):
    def scheme(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    scheme.__name__ = scheme.__qualname__ = name
    scheme.__doc__ = f"`variance_scaling({scale}, {mode!r}, {distribution!r})` ({who})."
    return scheme


_GLOROT, _LECUN, _HE = "Glorot and Bengio 2010", "LeCun et al. 1998", "He et al. 2015"
glorot_uniform = _scheme("glorot_uniform", _GLOROT, 1.0, "fan_avg", "uniform")
glorot_normal = _scheme("glorot_normal", _GLOROT, 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scheme("lecun_uniform", _LECUN, 1.0, "fan_in", "uniform")
lecun_normal = _scheme("lecun_normal", _LECUN, 1.0, "fan_in", "truncated_normal")
he_uniform = _scheme("he_uniform", _HE, 2.0, "fan_in", "uniform")
he_normal = _scheme("he_normal", _HE, 2.0, "fan_in", "truncated_normal")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal

# ---- orthogonal --------------------------------------------------------------------------------------------------


def orthogonal(scale=1.0, column_axis: int = -1, dtype=None) -> Initializer:
    """An initialiser to `scale` times uniform orthogonal matrices (Saxe, McClelland and Ganguli 2013).

    The axis `column_axis` is that of the columns, all others together are rows; the shorter side is orthonormal.
    """

    def init(key, shape, dtype=dtype):
        shape, dtype = shape_of("init", shape), dtype_or(dtype, dtypes.default_float())
        if len(shape) < 2:
            raise ValueError(f"orthogonal: expected a shape of at least 2 axes, got {shape}")
        axis = axis_of("orthogonal", column_axis, len(shape))
        others = (*shape[:axis], *shape[axis + 1 :])
        if 0 in shape:
            return fnp.zeros(shape, dtype)
        matrix = random.orthogonal(key, math.prod(others), (), dtype, shape[axis])
        matrix = fnp.moveaxis(fnp.reshape(matrix, (*others, shape[axis])), -1, axis)
        return fnp.multiply(_factor(scale, dtype), matrix)

    return init


def delta_orthogonal(scale=1.0, column_axis: int = -1, dtype=None) -> Initializer:
    """An initialiser of convolution kernels [*field, inputs, outputs], zero but for an orthogonal matrix in the middle.

    The field has 1 to 3 axes and there are at least as many outputs as inputs (Xiao et al. 2018).
    """

    def init(key, shape, dtype=dtype):
        shape, dtype = shape_of("init", shape), dtype_or(dtype, dtypes.default_float())
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal: expected a shape of 3 to 5 axes, got {shape}")
        if shape[-1] < shape[-2]:
            raise ValueError(f"delta_orthogonal: expected at least as many outputs as inputs, got {shape[-1]} for {shape[-2]}")
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        middle = tuple([(n - 1) // 2 for n in shape[:-2]])
        return fnp.zeros(shape, dtype).at[middle].set(matrix)

    return init
