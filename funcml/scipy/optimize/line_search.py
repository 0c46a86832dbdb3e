"""A step along a direction that satisfies the strong Wolfe conditions.

    phi(a) = f(x + a p):   phi(a) <= phi(0) + c1 a phi'(0)   and   |phi'(a)| <= c2 |phi'(0)|

First steps are doubled until an interval must hold such a point, then it is narrowed by interpolation (J. Nocedal, S. J.
Wright, Numerical Optimization, algorithms 3.5 and 3.6). Both are states of one loop, with one evaluation of f a turn. Where
rounding hides the decrease of phi, its slopes decide (W. W. Hager, H. Zhang, 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.derivatives import value_and_grad
from funcml.lax.loops import while_loop
from funcml.numpy.creation import array
from funcml.numpy.floats import isfinite
from funcml.numpy.linear import dot
from funcml.numpy.selection import where
from funcml.numpy.ufuncs import abs as absolute
from funcml.numpy.ufuncs import maximum, minimum, real, sqrt
from funcml.primitives import elementwise as ew

__all__ = ["LineSearchResults", "line_search", "inner"]


class LineSearchResults(NamedTuple):
    """The step `a_k`, f and its gradient there, how often they were computed, and 0 or why there is no such step:
    1 if the interval became too small, 3 if there was none after `maxiter` steps. Then `a_k` is the best step that was seen."""

    failed: Array
    nit: Array
    nfev: Array
    ngev: Array
    k: Array
    a_k: Array
    f_k: Array
    g_k: Array
    status: Array


class _Point(NamedTuple):
    """A step, phi and phi' there, and the gradient of f."""

    a: Any
    phi: Any
    slope: Any
    g: Any


class _State(NamedTuple):
    """Of the loop: `low` and `high` are the ends of the interval, `low` the lower one; before there is one, `low` is the
    last step. `other` is the point that was an end before, for cubic interpolation."""

    narrowing: Any
    done: Any
    failed: Any
    step: Any
    narrowed: Any
    low: _Point
    high: _Point
    other: _Point
    accepted: _Point


_MOST_NARROWINGS = 60


def inner(g, p):
    """The derivative along p of a real function of real or complex variables with the gradient g."""
    return real(dot(g, p, precision="highest"))


def line_search(
    f: Callable, xk, pk, old_fval=None, old_old_fval=None, gfk=None, c1: float = 1e-4, c2: float = 0.9, maxiter: int = 20
) -> LineSearchResults:
    """A step along `pk`, a direction in which f decreases, from the vector `xk`.

    `old_fval` and `gfk` are f and its gradient there, `old_old_fval` the value of f one step before, which tells how long
    the first step should be. f must be differentiable.
    """
    dtype = pk.dtype
    of = value_and_grad(f)

    def at(a) -> _Point:
        value, g = of(xk + ew.convert(a, dtype) * pk)
        g = ew.convert(g, dtype)
        return _Point(a, ew.convert(value, a.dtype), inner(g, pk), g)

    zero = array(0, dtypes.real_dtype(dtype))
    known = old_fval is not None and gfk is not None
    start = _Point(zero, ew.convert(array(old_fval), zero.dtype), inner(gfk, pk), gfk) if known else at(zero)
    first = _first_step(start, old_old_fval)
    more = lambda s: ~s.done & ~s.failed & (s.step <= maxiter)
    turn = lambda s: _turn(s, at(_next_step(s, first)), start, c1, c2)
    counter = array(0, dtypes.int32)
    no = array(False)
    state = while_loop(more, turn, _State(no, no, no, counter + 1, counter, start, start, start, start))
    used = state.step - 1 + state.narrowed + (0 if known else 1)
    failed = state.failed | ~state.done
    status = where(state.failed, 1, where(state.done, 0, 3)).astype("int32")
    best = _chosen(state.done, state.accepted, _chosen(state.low.phi < start.phi, state.low, start))
    return LineSearchResults(failed, state.step - 1, used, used, state.step, best.a, best.phi, best.g, status)


def _first_step(start: _Point, before):
    """What a parabola through the last decrease says, at most 1."""
    one = array(1, start.a.dtype)
    if before is None:
        return one
    guess = 1.01 * 2 * (start.phi - ew.convert(array(before), start.phi.dtype)) / start.slope
    return where(isfinite(guess) & (guess > 0), minimum(guess, one), one)


def _chosen(condition, a: _Point, b: _Point) -> _Point:
    return _Point(*[where(condition, x, y) for x, y in zip(a, b, strict=True)])


def _next_step(s: _State, first):
    """The step to try: longer, or between the ends of the interval."""
    longer = where(s.step == 1, first, 2 * s.low.a)
    return where(s.narrowing, _between(s), longer)


# A minimum of the cubic, else of the parabola, that is not too near an end, else the middle.
def _between(s: _State):
    width = absolute(s.high.a - s.low.a)
    left, right = minimum(s.low.a, s.high.a), maximum(s.low.a, s.high.a)
    cubic, parabola = _minimum_of_cubic(s.low, s.high, s.other), _minimum_of_parabola(s.low, s.high)
    inside = lambda a, margin: (a > left + margin * width) & (a < right - margin * width)
    middle = 0.5 * (s.low.a + s.high.a)
    return where(inside(cubic, 0.2) & (s.narrowed > 0), cubic, where(inside(parabola, 0.1), parabola, middle))


# phi(a + d) = phi + phi' d + C d^2 + B d^3 through two more points
def _minimum_of_cubic(p: _Point, q: _Point, r: _Point):
    d, e = q.a - p.a, r.a - p.a
    u, v = q.phi - p.phi - p.slope * d, r.phi - p.phi - p.slope * e
    scale = d * d * e * e * (d - e)
    b = (e * e * u - d * d * v) / scale
    c = (d * d * d * v - e * e * e * u) / scale
    return p.a + (sqrt(c * c - 3 * b * p.slope) - c) / (3 * b)


def _minimum_of_parabola(p: _Point, q: _Point):
    d = q.a - p.a
    return p.a - p.slope * d * d / (2 * (q.phi - p.phi - p.slope * d))


def _turn(s: _State, new: _Point, start: _Point, c1: float, c2: float) -> _State:
    """One evaluation further. A phi that is no number counts as too high."""
    flat = absolute(new.slope) <= -c2 * start.slope
    tiny = 8 * float(np.finfo(start.phi.dtype).eps)
    nearly = (new.phi <= start.phi + tiny * absolute(start.phi)) & (new.slope <= (2 * c1 - 1) * start.slope)
    not_lower = ~(new.phi < s.low.phi) & (s.narrowing | (s.step > 1))
    too_high = ~(new.phi <= start.phi + c1 * new.a * start.slope) | not_lower
    accept = flat & (~too_high | nearly)
    turned = new.slope * where(s.narrowing, s.high.a - s.low.a, 1) >= 0
    to_high = too_high & ~accept
    to_low = ~too_high & ~accept
    high = _chosen(to_high, new, _chosen(to_low & turned, s.low, s.high))
    other = _chosen(to_high | turned, s.high, s.low)
    low = _chosen(to_low, new, s.low)
    narrowing = s.narrowing | to_high | (to_low & turned)
    small = absolute(high.a - low.a) <= 4 * tiny * maximum(absolute(high.a), absolute(low.a))
    narrowed = s.narrowed + s.narrowing.astype("int32")
    failed = ~accept & narrowing & (small | (narrowed >= _MOST_NARROWINGS))
    step = s.step + (~s.narrowing).astype("int32")
    return _State(narrowing, accept, failed, step, narrowed, low, high, other, new)
