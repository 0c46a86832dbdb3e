"""Samples of the Gumbel distribution, on which the choice among categories rests, with as many bits as are asked for.

    low     : F^-1(u) = -log(-log u), u uniform
    high    : -log(-log(1 - u)), u of twice the digits where it is small
    highest : u a number of 64 bits, rounded towards 0; float32 only, others as high
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.numpy.arguments import shape_of
from funcml.primitives import elementwise as ew
from funcml.primitives import transcendental as tr
from funcml.primitives.axes import reshape
from funcml.primitives.bits import bitcast_convert, clz, shift_left, shift_right_logical
from funcml.primitives.shaping import split
from funcml.random.bits import random_bits
from funcml.random.continuous import uniform_of, uniform_of_pair
from funcml.random.keys import one_key
from funcml.random.parameters import float_dtype

__all__ = ["GUMBEL_MODES", "checked_mode", "gumbel", "gumbel_of"]

GUMBEL_MODES = ("low", "high", "highest")


def gumbel(key, shape=(), dtype=None, mode: str | None = None) -> Array:
    """Samples of the Gumbel distribution with density exp(-x - exp(-x)).

    `mode` says how many bits are drawn, for a right tail of that length: with "low" (as None) no sample of float32 lies above
    16, with "high" none above 32, with "highest" none above 45.
    """
    mode = checked_mode("gumbel", mode)
    return _gumbel(one_key("gumbel", key), shape_of("gumbel", shape), float_dtype("gumbel", dtype), mode)


def checked_mode(name: str, mode: str | None, modes=GUMBEL_MODES) -> str:
    """A mode of drawing bits, "low" for None; ValueError for one that does not exist."""
    if mode is None:
        return "low"
    if mode not in modes:
        raise ValueError(f"{name}: expected the mode {', '.join(map(repr, modes[:-1]))} or {modes[-1]!r}, got {mode!r}")
    return mode


@fused(static=("shape", "dtype", "mode"))
def _gumbel(key, shape, dtype, mode):
    return gumbel_of(key, shape, dtype, mode)


# high: u = u_1 + eps u_2 where u_1 < 1/2, since there u_1 has digits to spare
def gumbel_of(key, shape, dtype, mode):
    """`gumbel` inside a program."""
    limits = dtypes.finfo(dtype)
    if mode == "low":
        return _log_log(tr.log(uniform_of(key, shape, dtype, float(limits.tiny), 1.0)))
    if mode == "highest" and dtype == dtypes.float32:
        return _of_64_bits(key, shape)
    high, low = uniform_of_pair(key, shape, dtype)
    fine = ew.add(ew.add(high, ew.mul(low, 2.0 ** -int(limits.nmant))), float(limits.tiny))
    u = ew.select(ew.ge(high, 0.5), high, fine)
    return _log_log(tr.log1p(ew.neg(u)))


def _log_log(log_u):
    return ew.neg(tr.log(ew.neg(log_u)))


# The bits are u below 1/2 and 1 - u above, so that the number which is rounded is the one near 0.
def _of_64_bits(key, shape):
    words = split(random_bits(key, (2, *shape), 32), (1, 1))
    high, low = (ew.convert(reshape(w, shape), dtypes.uint64) for w in words)
    bits = ew.or_(shift_left(high, 32), low)
    below = ew.lt(high, 2**31)
    x = _truncated(ew.select(below, bits, ew.neg(bits)))
    return _log_log(ew.select(below, tr.log1p(ew.neg(x)), tr.log(x)))


# With z zeros in front: 2^(-1-z) (1 + the next 23 bits / 2^23); the exponent is kept with 127 added.
def _truncated(bits):
    """The number `bits` / 2^64, rounded towards 0 to a float32; 2^-65 for 0."""
    zeros = clz(bits)
    mantissa = ew.and_(shift_right_logical(shift_left(bits, zeros), 40), 2**23 - 1)
    mantissa = ew.select(ew.eq(bits, 0), bits, mantissa)
    exponent = shift_left(ew.sub(126, zeros), 23)
    return bitcast_convert(ew.convert(ew.or_(exponent, mantissa), dtypes.uint32), dtypes.float32)
