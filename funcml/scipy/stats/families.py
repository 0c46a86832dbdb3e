"""What a distribution is: a few kernels on its standard form, from which all its functions are made.

    continuous(module, title, shapes, kernels...) : {"pdf": function(x, *shapes, loc, scale), ...}
    discrete(module, title, shapes, kernels...)   : {"pmf": function(k, *shapes, loc), ...}

A kernel takes the standardised z = (x - loc) / scale, or k - loc, and the shape parameters, as floats of one shape. It sees only
points inside of the support: outside, and where a parameter is no good, the functions know their values themselves, and have
derivative 0 there. What is not given is made of what is: a density of its logarithm, a probability of its logarithm, and a
logarithm of a probability.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

from funcml import numpy as jnp
from funcml.scipy.elementwise import elementwise

__all__ = ["continuous", "discrete", "log1mexp", "log1p_square"]

_SAYS = {
    "pdf": "The density of the {} distribution at x",
    "logpdf": "The logarithm of the density of the {} distribution at x",
    "pmf": "The probability that a variable of the {} distribution is k",
    "logpmf": "The logarithm of the probability that a variable of the {} distribution is k",
    "cdf": "The probability that a variable of the {} distribution is at most {}",
    "logcdf": "The logarithm of the probability that a variable of the {} distribution is at most {}",
    "sf": "The probability that a variable of the {} distribution is above {}, exact where it is small",
    "logsf": "The logarithm of the probability that a variable of the {} distribution is above {}",
    "ppf": "The value that a variable of the {} distribution exceeds with probability 1 - {}; nan for no probability",
    "isf": "The value that a variable of the {} distribution exceeds with probability {}; nan for no probability",
}


def log1mexp(y):
    """log(1 - exp(-y)) for y >= 0, exact where y is small or large."""
    small = y < math.log(2)
    return jnp.where(small, jnp.log(-jnp.expm1(-jnp.where(small, y, 1.0))), jnp.log1p(-jnp.exp(-jnp.where(small, 1.0, y))))


def log1p_square(x):
    """log(1 + x^2), without overflow."""
    far = jnp.abs(x) > 1
    inverse = 1 / jnp.where(far, x, 2.0)
    large = jnp.log1p(inverse * inverse) - 2 * jnp.log(jnp.abs(inverse))
    return jnp.where(far, large, jnp.log1p(jnp.where(far, 1.0, x) ** 2))


def continuous(
    module: str,
    title: str,
    shapes: tuple[str, ...] = (),
    *,
    support: Callable = lambda *shapes: (-math.inf, math.inf),
    valid: Callable = lambda *shapes: True,
    inside: Callable = lambda *shapes: 0.5,
    located: bool = True,
    names: dict[str, str] | None = None,
    **kernels: Callable,
) -> dict[str, Callable]:
    """The functions of a continuous distribution, for the module of this name.

    `support(*shapes)` gives the ends of the standard form, `inside(*shapes)` a point between them, `valid(*shapes)` tells which
    parameters are good. `names` are those of first arguments that are not x or, for quantiles, q.
    """
    names = names or {}
    kernels = _with_derived(kernels, "logpdf", "pdf")
    functions = {}
    for kind, kernel in kernels.items():
        quantile = kind in ("ppf", "isf")
        first = names.get(kind, "q" if quantile else "x")
        rule = _quantile if quantile else _of_point
        parameters = [first, *shapes, *([("loc", 0), ("scale", 1)] if located else [])]

        def whole(rule=rule, kind=kind, kernel=kernel, **values):
            values = list(values.values())
            loc, scale = values[-2:] if located else (None, None)
            arguments = values[1:-2] if located else values[1:]
            good = jnp.asarray(valid(*arguments)) if scale is None else (scale > 0) & valid(*arguments)
            low, high = support(*arguments)
            z = values[0] if rule is _quantile or scale is None else (values[0] - loc) / scale
            found = rule(kind, kernel, z, arguments, low, high, inside(*arguments))
            if scale is not None:
                found = _scaled(kind, found, loc, scale)
            return jnp.where(good & (values[0] == values[0]), found, math.nan).astype(values[0].dtype)

        functions[kind] = _function(whole, module, title, kind, parameters, first)
    return functions


def _scaled(kind, found, loc, scale):
    """A value of the standard form as one of the distribution with this location and scale."""
    if kind == "pdf":
        return found / scale
    if kind == "logpdf":
        return found - jnp.log(scale)
    return loc + scale * found if kind in ("ppf", "isf") else found


def _with_derived(kernels: dict, log_density: str, density: str) -> dict:
    """The kernels and those that follow from them."""
    kernels = dict(kernels)
    for log_name, name in ((log_density, density), ("logcdf", "cdf"), ("logsf", "sf")):
        if log_name in kernels and name not in kernels:
            kernels[name] = _exp_of(kernels[log_name])
        elif name in kernels and log_name not in kernels and name != density:
            kernels[log_name] = _log_of(kernels[name])
    return kernels


def _exp_of(kernel):
    return lambda *values: jnp.exp(kernel(*values))


def _log_of(kernel):
    return lambda *values: jnp.log(kernel(*values))


#: below the support, above it
_OUTSIDE = {
    "pdf": (0.0, 0.0), "logpdf": (-math.inf, -math.inf), "pmf": (0.0, 0.0), "logpmf": (-math.inf, -math.inf),
    "cdf": (0.0, 1.0), "logcdf": (-math.inf, 0.0), "sf": (1.0, 0.0), "logsf": (0.0, -math.inf),
}  # fmt: skip


def _of_point(kind, kernel, z, shapes, low, high, between):
    below, above = _OUTSIDE[kind]
    within = (z >= low) & (z <= high) & (jnp.abs(z) < math.inf)
    value = kernel(jnp.where(within, z, between), *shapes)
    return jnp.where(within, value, jnp.where(z < low, below, jnp.where(z > high, above, jnp.where(z < 0, below, above))))


def _quantile(kind, kernel, q, shapes, low, high, between):
    inner = (q > 0) & (q < 1)
    value = kernel(jnp.where(inner, q, 0.5), *shapes)
    at_0, at_1 = (low, high) if kind == "ppf" else (high, low)
    return jnp.where(inner, value, jnp.where(q == 0, at_0, jnp.where(q == 1, at_1, math.nan)))


def discrete(
    module: str,
    title: str,
    shapes: tuple[str, ...],
    *,
    support: Callable = lambda *shapes: (0, math.inf),
    valid: Callable,
    located: tuple[str, ...] = ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"),
    wide: bool = False,
    **kernels: Callable,
) -> dict[str, Callable]:
    """The functions of a distribution over whole numbers; those in `located` take a location.

    Between whole numbers the probabilities of points are 0. A `wide` one is computed in float64.
    """
    kernels = _with_derived(kernels, "logpmf", "pmf")
    functions = {}
    for kind, kernel in kernels.items():
        quantile = kind in ("ppf", "isf")
        first = "q" if quantile else "k"
        has_location = kind in located
        parameters = [first, *shapes, *([("loc", 0)] if has_location else [])]

        def whole(kind=kind, kernel=kernel, quantile=quantile, has_location=has_location, **values):
            values = list(values.values())
            x, arguments = values[0], values[1:-1] if has_location else values[1:]
            k = x - values[-1] if has_location else x
            low, high = support(*arguments)
            if quantile:
                found = _quantile(kind, kernel, k, arguments, low - 1, high, 0)
            else:
                point = kind in ("pmf", "logpmf")
                floor = jnp.floor(k)
                found = _of_point(kind, kernel, floor, arguments, low, high, low)
                found = jnp.where(k == floor, found, _OUTSIDE[kind][0]) if point else found
            return jnp.where(jnp.asarray(valid(*arguments)) & (x == x), found, math.nan).astype(x.dtype)

        functions[kind] = _function(whole, module, title, kind, parameters, first, wide)
    return functions


def _function(whole, module, title, kind, parameters, first, wide=False):
    """`whole`, which takes keywords, as the function that users see."""

    def kernel(**values):
        return whole(**values)

    both = inspect.Parameter.POSITIONAL_OR_KEYWORD
    kernel.__signature__ = inspect.Signature([
        inspect.Parameter(p, both) if isinstance(p, str) else inspect.Parameter(p[0], both, default=p[1]) for p in parameters
    ])
    kernel.__name__ = kernel.__qualname__ = kind
    kernel.__module__ = module
    kernel.__doc__ = _SAYS[kind].format(title, first) + "; see the module for the formula."
    return elementwise(kernel, name=f"{module.rpartition('.')[2]}.{kind}", wide=wide)
