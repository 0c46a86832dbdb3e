"""x log y and what is made of it: entropies, divergences, logits, and the power transformation of Box and Cox."""

from __future__ import annotations

import math

from funcml import dtypes
from funcml import numpy as jnp
from funcml.core.linear import is_zero
from funcml.lowering.expansions import deviance
from funcml.primitives import transcendental as tr
from funcml.scipy.elementwise import elementwise
from funcml.transforms.custom_jvp import custom_jvp

__all__ = ["boxcox", "boxcox1p", "entr", "expit", "kl_div", "logit", "rel_entr", "xlog1py", "xlogy"]


@elementwise(takes_complex=True)
def expit(x):
    """1 / (1 + exp(-x)).

    >>> expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return tr.logistic(x)


@elementwise(takes_complex=True)
def logit(x):
    """log(x / (1 - x)), the inverse of expit.

    >>> logit(0.75)
    Array(1.0986123, dtype=float32, weak_type=True)
    """
    return log_odds(x)


def log_odds(x):
    """log(x / (1 - x)), exact near 1 / 2."""
    if dtypes.is_complex(x.dtype):
        return jnp.log(x) - jnp.log1p(-x)
    near = jnp.abs(x - 0.5) < 0.25
    middle = 2 * jnp.arctanh(2 * (jnp.where(near, x, 0.5) - 0.5))
    return jnp.where(near, middle, jnp.log(x) - jnp.log1p(-x))


def _times_log(log, argument):
    """x log(y), and 0 where x is 0 and y no nan.  z' = log(y) x' + x / a(y) y', whose last term is 0 where x and a(y) are;
    a(y) is what the logarithm is taken of.
    """

    @custom_jvp
    def product(x, y):
        zero = (x == 0) & (y == y)
        return jnp.where(zero, 0.0, x * log(y))

    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        parts = [] if is_zero(tx) else [tx * log(y)]
        if not is_zero(ty):
            a = argument(y)
            empty = (x == 0) & (a == 0)
            parts.append(ty * (x / jnp.where(empty, 1.0, a)))
        return product(x, y), parts[0] if len(parts) == 1 else parts[0] + parts[1]

    product.defjvp(rule, symbolic_zeros=True)
    return product


times_log = _times_log(jnp.log, lambda y: y)
times_log1p = _times_log(jnp.log1p, lambda y: 1 + y)


@elementwise(takes_complex=True)
def xlogy(x, y):
    """x log(y); 0 where x = 0, unless y is nan.

    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return times_log(x, y)


@elementwise(takes_complex=True)
def xlog1py(x, y):
    """x log(1 + y); 0 where x = 0, unless y is nan.

    >>> xlog1py(0.0, -1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return times_log1p(x, y)


@elementwise
def entr(x):
    """-x log(x); 0 where x = 0, -inf where x < 0.

    >>> entr(1.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    return jnp.where(x < 0, -math.inf, -times_log(x, x))


def _relative(p, q, where_positive, where_p_is_0):
    """A function of p and q: inf where one is negative, or where q alone is 0."""
    positive = (p > 0) & (q > 0)
    value = where_positive(jnp.where(positive, p, 1.0), jnp.where(positive, q, 1.0))
    value = jnp.where(positive, value, jnp.where((p == 0) & (q >= 0), where_p_is_0, math.inf))
    return jnp.where((p != p) | (q != q), math.nan, value)


@elementwise
def rel_entr(p, q):
    """p log(p / q); 0 where p = 0 and q >= 0, inf where p or q is negative, or q alone is 0.

    >>> rel_entr(2.0, 1.0)
    Array(1.3862944, dtype=float32, weak_type=True)
    """
    return _relative(p, q, lambda p, q: p * jnp.log(p / q), 0.0)


@elementwise
def kl_div(p, q):
    """p log(p / q) - p + q; q where p = 0 and q >= 0, inf where p or q is negative, or q alone is 0.

    >>> kl_div(2.0, 1.0)
    Array(0.38629436, dtype=float32, weak_type=True)
    """
    return _relative(p, q, lambda p, q: p * deviance(q, p), q)


# ((exp(y))^lmbda - 1) / lmbda = y (expm1(s) / s) with s = lmbda y
def _power_transform(y, lmbda):
    s = lmbda * y
    safe = jnp.where(jnp.abs(s) < 1e-3, 1.0, s)
    # the mean of exp from 0 to s, by its series near 0, so that derivatives exist there too
    series = 1 + s / 2 * (1 + s / 3 * (1 + s / 4 * (1 + s / 5 * (1 + s / 6))))
    ratio = jnp.where(jnp.abs(s) < 1e-3, series, jnp.expm1(safe) / safe)
    at_zero = lmbda == 0
    infinite = jnp.abs(y) == math.inf
    value = jnp.where(infinite & ~at_zero, jnp.expm1(s) / jnp.where(at_zero, 1.0, lmbda), jnp.where(infinite, 0.0, y) * ratio)
    return jnp.where(infinite & at_zero, y, value)


@elementwise
def boxcox(x, lmbda):
    """(x^lmbda - 1) / lmbda, and log(x) where lmbda is 0. Box and Cox (1964).

    >>> boxcox(4.0, 0.5)
    Array(2., dtype=float32, weak_type=True)
    """
    return _power_transform(jnp.log(x), lmbda)


@elementwise
def boxcox1p(x, lmbda):
    """((1 + x)^lmbda - 1) / lmbda, and log(1 + x) where lmbda is 0.

    >>> boxcox1p(3.0, 0.5)
    Array(2., dtype=float32, weak_type=True)
    """
    return _power_transform(jnp.log1p(x), lmbda)
