"""The incomplete gamma and beta functions, and the logarithm of the Poisson probability that both stand on.

    log_poisson(a, x) = a log x - x - log gamma(a + 1)
    igamma   = P(a, x),   igammac = 1 - P(a, x)                                         DLMF 8.2.4
    betainc  = I_x(a, b)                                                                DLMF 8.17.2

Each is a `Smooth` primitive, with derivatives of every order: by x they have closed forms, by a and b the lowering makes them.
"""

from __future__ import annotations

import itertools
import math

from funcml.core.tracing import aval_of
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.elementwise import add, div, eq, le, lt, max, mul, neg, or_, select, sub
from funcml.primitives.smooth import Smooth
from funcml.primitives.special import digamma, lgamma, polygamma
from funcml.primitives.tangents import scalar_of
from funcml.primitives.transcendental import exp, log, log1p

__all__ = [
    "betainc", "betainc_p", "igamma", "igamma_grad_a", "igamma_p", "igammac", "log_betainc", "log_beta_density",
    "log_binomial_term", "log_gamma_density", "log_igamma", "log_poisson", "log_poisson_p", "random_gamma_grad",
]


def _like(x, value):
    aval = aval_of(x)
    return broadcast_in_dim(scalar_of(aval, value), aval.shape)


# (d/da)^i (d/db)^j exp(g) = exp(g) B_ij, with B_00 = 1 and, by the rule of Leibniz for exp(g)' = g' exp(g),
# B_(n + e) = sum over m <= n of binomial(n, m) B_(n - m) g^(m + e)
def _factor(orders, slope):
    """B of these orders; `slope(orders)` is that derivative of g. None stands for 1."""
    if not any(orders):
        return None
    axis = next(i for i, n in enumerate(orders) if n)
    unit = tuple(int(i == axis) for i in range(len(orders)))
    rest = tuple(n - u for n, u in zip(orders, unit, strict=True))
    total = None
    for m in itertools.product(*[range(n + 1) for n in rest]):
        ways = math.prod([math.comb(n, k) for n, k in zip(rest, m, strict=True)])
        term = slope(tuple(k + u for k, u in zip(m, unit, strict=True)))
        inner = _factor(tuple(n - k for n, k in zip(rest, m, strict=True)), slope)
        term = term if inner is None else mul(term, inner)
        term = term if ways == 1 else mul(float(ways), term)
        total = term if total is None else add(total, term)
    return total


def _times(t, value, factor):
    return mul(t, value if factor is None else mul(value, factor))


def _minus_log(slope, log_value, orders, log):
    """g = log density - log F has these slopes where the logarithm of F is meant."""
    return sub(slope, log_value(orders)) if log else slope


# ---- the Poisson probability -------------------------------------------------------------------------------


#: by x: (a - x) / x, which is -1 for a = 0, at x = 0 too                by a: log x - digamma(a + 1)
def _log_poisson_by_x(t, ans, a, x, *, orders):
    if orders != (0, 0):
        raise NotImplementedError("log_poisson is differentiated by its formulas only")
    none = eq(a, 0.0)
    return mul(t, select(none, _like(x, -1), div(sub(a, x), select(none, _like(x, 1), x))))


def _log_poisson_by_a(t, ans, a, x, *, orders):
    return mul(t, sub(log(x), digamma(add(a, 1.0))))


log_poisson_p = Smooth("log_poisson", 2, {0: _log_poisson_by_a, 1: _log_poisson_by_x})


def log_poisson(a, x):
    """a log x - x - lgamma(a + 1), without the cancellation of large terms."""
    return log_poisson_p(a, x, orders=(0, 0))


# ---- the incomplete gamma function -------------------------------------------------------------------------


def log_gamma_density(a, x):
    """(a - 1) log x - x - lgamma(a), with its limits at x = 0."""
    at_0 = select(eq(a, 1.0), _like(a, 0), select(lt(a, 1.0), _like(a, math.inf), _like(a, -math.inf)))
    inside = sub(add(log_poisson(a, x), log(a)), log(x))
    return select(eq(x, 0.0), at_0, inside)


# P_x = p(a, x), and with F = P: (log F)_x = p / F; for Q = 1 - P the sign is the other
def _igamma_by_x(t, ans, a, x, *, orders, upper, log):
    def log_value(orders):
        return igamma_p(a, x, orders=(orders[0], 0), upper=upper, log=True)

    def slope(orders):
        k = orders[0]
        g = sub(_log(x), digamma(a)) if k == 1 else neg(polygamma(_like(a, k - 1), a))
        return _minus_log(g, log_value, orders, log)

    density = log_gamma_density(a, x)
    density = exp(sub(density, log_value((0,))) if log else density)
    return _times(neg(t) if upper else t, density, _factor((orders[0],), slope))


_log = log
igamma_p = Smooth("igamma", 2, {1: _igamma_by_x})


def igamma(a, x):
    """P(a, x), the probability that a gamma variable with shape a is below x."""
    return igamma_p(a, x, orders=(0, 0), upper=False, log=False)


def igammac(a, x):
    """Q(a, x) = 1 - P(a, x), exact where it is small."""
    return igamma_p(a, x, orders=(0, 0), upper=True, log=False)


def igamma_grad_a(a, x):
    """The derivative of P(a, x) by a."""
    return igamma_p(a, x, orders=(1, 0), upper=False, log=False)


def log_igamma(a, x, upper: bool):
    """log P(a, x), or log Q(a, x) if `upper`."""
    return igamma_p(a, x, orders=(0, 0), upper=upper, log=True)


#: the x with P(a, x) = u moves with a by -P_a / P_x, where u is held
def random_gamma_grad(a, x):
    """The derivative by a of a gamma sample x with shape a, its randomness being held.

    In the tail where less is, as a ratio of logarithmic derivatives, which do not underflow.
    """
    low = le(x, a)
    lower, upper = (igamma_p(a, x, orders=(1, 0), upper=u, log=True) for u in (False, True))
    log_f = select(low, log_igamma(a, x, False), log_igamma(a, x, True))
    moved = mul(select(low, neg(lower), upper), exp(sub(log_f, log_gamma_density(a, x))))
    return select(or_(eq(x, 0.0), eq(a, 0.0)), _like(a, 0), moved)


# ---- the incomplete beta function --------------------------------------------------------------------------


def log_binomial_term(a, b, x):
    """log(x^a (1 - x)^b gamma(n + 1) / (gamma(a + 1) gamma(b + 1))), n = a + b: by three Poisson probabilities."""
    n = add(a, b)
    both = add(log_poisson(a, mul(n, x)), log_poisson(b, mul(n, sub(1.0, x))))
    return sub(both, log_poisson(n, n))


def _times_log(x, log_y):
    """x log y, and 0 where x is 0."""
    return select(eq(x, 0.0), _like(x, 0), mul(x, log_y))


def log_beta_density(a, b, x):
    """(a - 1) log x + (b - 1) log(1 - x) - log B(a, b), with its limits at 0 and 1."""
    n = add(a, b)
    by_terms = sub(sub(log_binomial_term(a, b, x), log(div(n, mul(a, b)))), add(log(x), log1p(neg(x))))
    log_b = sub(add(lgamma(a), lgamma(b)), lgamma(n))
    direct = sub(add(_times_log(sub(a, 1.0), log(x)), _times_log(sub(b, 1.0), log1p(neg(x)))), log_b)
    at_end = or_(le(x, 0.0), eq(x, 1.0))
    return select(or_(at_end, le(max(a, b), 10.0)), direct, by_terms)


def _betainc_by_x(t, ans, a, b, x, *, orders, upper, log):
    def log_value(orders):
        return betainc_p(a, b, x, orders=(*orders, 0), upper=upper, log=True)

    # g = (a - 1) log x + (b - 1) log(1 - x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    def slope(orders):
        i, j = orders
        n = add(a, b)
        if i and j:
            g = _lgamma_slope(n, i + j)
        elif i:
            g = sub(_lgamma_slope(n, i), _lgamma_slope(a, i))
            g = add(g, _log(x)) if i == 1 else g
        else:
            g = sub(_lgamma_slope(n, j), _lgamma_slope(b, j))
            g = add(g, log1p(neg(x))) if j == 1 else g
        return _minus_log(g, log_value, orders, log)

    density = log_beta_density(a, b, x)
    density = exp(sub(density, log_value((0, 0))) if log else density)
    return _times(neg(t) if upper else t, density, _factor(orders[:2], slope))


def _lgamma_slope(x, order: int):
    return digamma(x) if order == 1 else polygamma(_like(x, order - 1), x)


betainc_p = Smooth("betainc", 3, {2: _betainc_by_x})


def betainc(a, b, x):
    """I_x(a, b), the probability that a beta variable is below x."""
    return betainc_p(a, b, x, orders=(0, 0, 0), upper=False, log=False)


def log_betainc(a, b, x, upper: bool):
    """log I_x(a, b), or log(1 - I_x(a, b)) if `upper`."""
    return betainc_p(a, b, x, orders=(0, 0, 0), upper=upper, log=True)
