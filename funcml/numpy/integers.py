"""Divisors and multiples of integers."""

from __future__ import annotations

from funcml import dtypes
from funcml.control_flow.programs import recorded
from funcml.control_flow.while_loop import while_loop
from funcml.core.tracing import aval_of
from funcml.numpy.rows import binary, fill
from funcml.primitives import axes as ax
from funcml.primitives import elementwise as ew

__all__ = ["gcd", "lcm"]


def _check(name: str, x) -> None:
    if not dtypes.is_integer(aval_of(x).dtype):
        raise ValueError(f"{name} expects integers, got {aval_of(x)}")


def _remains(larger, smaller):
    return [ax.reduce_or(ew.ne(smaller, 0), tuple(range(aval_of(smaller).ndim)))]


def _euclid_step(larger, smaller):
    done = ew.eq(smaller, 0)
    rest = ew.rem(larger, ew.select(done, fill(smaller, 1), smaller))
    return [ew.select(done, larger, smaller), ew.select(done, smaller, rest)]


def _size(x):
    return ew.abs(x) if dtypes.is_signed(aval_of(x).dtype) else x


# gcd(x, y) = gcd(y, x mod y), gcd(x, 0) = x; the least integer has no |x|, but what it leaves has
def _gcd(x, y):
    _check("gcd", x)
    init = [ew.convert(_size(v), aval_of(v).dtype) for v in (x, y)]
    avals = [aval_of(v) for v in init]
    (test, _), (body, _) = recorded(_remains, avals, "gcd"), recorded(_euclid_step, avals, "gcd")
    return _size(while_loop(test, body, [], [], init)[0])


# lcm(x, y) = |x| / gcd(x, y) |y|
def _lcm(x, y):
    _check("lcm", x)
    divisor = _gcd(x, y)
    none = ew.eq(divisor, 0)
    return ew.mul(ew.div(_size(x), ew.select(none, fill(divisor, 1), divisor)), _size(y))


gcd = binary("gcd", _gcd, "The greatest common divisor of |x| and |y|; 0 where both are 0.")
lcm = binary("lcm", _lcm, "The least common multiple of |x| and |y|; 0 where one of them is 0.")
