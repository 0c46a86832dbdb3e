"""Taylor mode: derivatives of any order along a curve, at a cost that grows with the square of the order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from funcml import dtypes, tree
from funcml.arguments import as_value, evaluate, flatten_call, is_array_like, origin_of, trace_call
from funcml.core.errors import user_facing
from funcml.core.tracing import aval_of
from funcml.lowering.array import asarray
from funcml.primitives.elementwise import convert, mul
from funcml.transforms.jet import jet_jaxpr

__all__ = ["fact", "jet", "zero_series"]


def fact(n: int) -> float:
    """n!, as a float.

    >>> fact(4)
    24.0
    """
    return float(math.factorial(n))


class ZeroSeries:
    """A series that is zero throughout."""


zero_series = ZeroSeries()


@user_facing
def jet(fun: Callable, primals: Sequence, series: Sequence, **kwargs: Any) -> tuple[Any, Any]:
    """The derivatives of f(x(t)) at t = 0, of order 0 and 1..n, given those of the curve x.

    primals:  x(0), one for each argument (a tree each)
    series:   for each argument its derivatives [x', x'', ..., x^(n)]: a list of trees like it, or for each of its leaves a list
    returns:  f(x(0)), and the derivatives [d f/dt, ..., d^n f/dt^n]: a list for each leaf of the result

    Derivatives, not Taylor coefficients: d^k f = k! times the coefficient. All arguments have the same n; `zero_series` in the
    place of a series stands for a constant. Cost: O(n^2), where nested `jvp` costs O(2^n). See `funcml.transforms.jet`.

    >>> import funcml.numpy as jnp
    >>> y, (d1, d2) = jet(jnp.sin, (0.0,), ((1.0, 0.0),))
    >>> float(y), float(d1), float(d2)
    (0.0, 1.0, 0.0)
    """
    primals, series = tuple(primals), tuple(series)
    if len(primals) != len(series):
        raise ValueError(f"jet: {len(primals)} primals but {len(series)} series; give one series for each primal")
    call = flatten_call(fun, primals, kwargs, "jet")
    values = call.inputs()
    if not all(call.traced):
        call = call._replace(leaves=[as_value(x) if is_array_like(x) else x for x in call.leaves])
        call = call._replace(traced=[is_array_like(x) for x in call.leaves])
        values = call.inputs()
    rows = [row for x, s in zip(primals, series, strict=True) for row in _rows(x, s)]
    rows += [None] * (len(values) - len(rows))
    order = _order(rows)
    moving = tuple([row is not None and dtypes.is_inexact(aval_of(x).dtype) for row, x in zip(rows, values, strict=True)])
    traced = trace_call(call, [aval_of(x) for x in values])
    above = [
        _coefficient(c, x, k) for row, x, m in zip(rows, values, moving, strict=True) if m for k, c in enumerate(row or (), 1)
    ]
    n = len(traced.captured)
    program, captured, _ = jet_jaxpr(traced.jaxpr, order, (*[False] * n, *moving), (True,) * len(traced.jaxpr.outs))
    outs = evaluate(program, [*captured, *traced.captured, *values, *above], origin_of(fun))
    count = len(traced.jaxpr.outs)
    derivatives = [
        [_derivative(c, k) for k, c in enumerate(outs[count + i * order : count + (i + 1) * order], 1)] for i in range(count)
    ]
    return traced.rebuild(outs[:count]), traced.rebuild(derivatives)


def _rows(primal: Any, series: Any) -> list:
    """The derivatives of each leaf of an argument, or None where they are zero."""
    leaves, treedef = tree.flatten(primal)
    if series is zero_series:
        return [None] * len(leaves)
    if tree.treedef_is_leaf(treedef):
        return [list(series)]
    if isinstance(series, list | tuple) and all(tree.structure(s) == treedef for s in series):
        return [list(row) for row in zip(*map(tree.leaves, series), strict=True)]
    return [list(row) for row in _lists(series, treedef)]


def _lists(series: Any, treedef: Any) -> list:
    """A tree like the argument with a list for each leaf."""
    leaves, found = tree.flatten(series, is_leaf=lambda x: isinstance(x, list | tuple) and all(map(is_array_like, x)))
    if found != treedef:
        raise ValueError(f"jet: {tree.explain_difference(found, treedef, 'the structure of a series')}")
    return leaves


def _order(rows: list) -> int:
    orders = {len(row) for row in rows if row is not None}
    if len(orders) > 1:
        raise ValueError(f"jet: all series must have one length, got {sorted(orders)}")
    return orders.pop() if orders else 0


def _coefficient(derivative, primal, k: int):
    """x^(k) / k!, of the type of x."""
    aval = aval_of(primal)
    value = asarray(derivative) if not hasattr(derivative, "aval") else derivative
    if aval_of(value).shape != aval.shape:
        raise ValueError(f"jet: a derivative of {aval} has the type {aval_of(value)}; it must have the same shape")
    return mul(convert(value, aval.dtype), aval.dtype.type(1 / math.factorial(k)))


def _derivative(coefficient, k: int):
    """k! times a coefficient."""
    return mul(coefficient, aval_of(coefficient).dtype.type(math.factorial(k)))
