"""Minima of functions by quasi-Newton methods.

    minimize : (function of a vector, start, args, method) -> OptimizeResults
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.derivatives import value_and_grad
from funcml.lax.loops import scan, while_loop
from funcml.numpy.creation import array, zeros
from funcml.numpy.diagonals import eye
from funcml.numpy.floats import isfinite
from funcml.numpy.joining import concatenate
from funcml.numpy.linalg import norm as norm_of
from funcml.numpy.linear import dot, outer
from funcml.numpy.promotion import as_array, operand, to_inexact
from funcml.numpy.selection import where
from funcml.numpy.ufuncs import conj
from funcml.primitives import elementwise as ew
from funcml.scipy.optimize.line_search import inner, line_search

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(NamedTuple):
    """What a minimisation found.

    x: the last point. fun, jac: the function and its gradient there. success: whether the gradient is as small as was asked for.
    status: 0 if so, 1 after the greatest number of iterations; BFGS: 3 or 5 if the line search failed; L-BFGS: 2 or 3 after the
    greatest number of evaluations, 4 if the function hardly decreased, 5 if the line search failed. hess_inv: the estimate of
    the inverse of the second derivative (BFGS). nfev, njev, nit: evaluations of function and gradient, and iterations.
    """

    x: Array
    success: Any
    status: Any
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Any
    njev: Any
    nit: Any


def minimize(
    fun: Callable, x0, args: tuple = (), *, method: str, tol: float | None = None, options: Mapping[str, Any] | None = None
) -> OptimizeResults:
    """A local minimum of `fun(x, *args)`, a differentiable function of a vector, from the start `x0`.

    `method` is 'BFGS', or 'L-BFGS' (also 'l-bfgs-experimental-do-not-rely-on-this') for many or complex variables. `options`:
    `maxiter`, `gtol` (how small the gradient must be, 1e-5 or `tol`) and `norm` (by which norm, inf) for both,
    `line_search_maxiter` for BFGS, `maxcor` (how many steps are remembered), `ftol`, `maxfun`, `maxgrad` and `maxls` for L-BFGS.
    Raises ValueError for an unknown method and what is no vector, TypeError for unknown options.

    >>> import numpy as np
    >>> result = minimize(lambda x: ((x - np.array([1.0, 2.0])) ** 2).sum(), np.zeros(2), method="BFGS")
    >>> result.x.round(4), bool(result.success)
    (Array([1., 2.], dtype=float64), True)
    """
    if not isinstance(args, tuple):
        came = f"{args!r} of type {type(args).__name__}"
        raise TypeError(f"args argument to minimize must be a tuple, got {came}; for one write (x,)")
    x0 = as_array(to_inexact("minimize", array(x0) if isinstance(x0, list | tuple) else operand("minimize", x0)))
    if x0.ndim != 1:
        raise ValueError(f"minimize expects a vector as x0, got {x0.aval}; flatten_util.ravel_pytree makes one of any tree")
    x0 = ew.convert(x0, x0.dtype)
    solver = _SOLVERS.get(method.lower())
    if solver is None:
        raise ValueError(f"minimize: method must be one of {', '.join(map(repr, _SOLVERS))}, got {method!r}")
    given = {**({} if tol is None else {"gtol": tol}), **(options or {})}
    return solver((lambda x: fun(x, *args)) if args else fun, x0, **given)


class _Progress(NamedTuple):
    """What both methods carry from step to step."""

    converged: Any
    failed: Any
    k: Any
    evaluations: Any
    x: Any
    f: Any
    g: Any
    status: Any


def _start(of: Callable, x0, norm, gtol) -> _Progress:
    f, g = of(x0)
    dtype = dtypes.real_dtype(x0.dtype)
    f, g = ew.convert(f, dtype), ew.convert(g, x0.dtype)
    count = array(0, dtypes.int32)
    return _Progress(norm_of(g, norm) < gtol, array(False), count, count + 1, x0, f, g, count)


# ---- BFGS ------------------------------------------------------------------------------------------------------------


# J. Nocedal, S. J. Wright, Numerical Optimization, algorithm 6.1: with s = x' - x, y = g' - g and r = 1 / y.s
# H' = (1 - r s y^T) H (1 - r y s^T) + r s s^T, which stays positive definite where y.s > 0.
def _bfgs(fun, x0, maxiter: int | None = None, norm=np.inf, gtol: float = 1e-5, line_search_maxiter: int = 10) -> OptimizeResults:
    if dtypes.is_complex(x0.dtype):
        raise ValueError(f"minimize: BFGS expects real variables, got {x0.aval}; L-BFGS takes complex ones")
    limit = 200 * x0.size if maxiter is None else maxiter
    of = value_and_grad(fun)
    identity = eye(x0.size, dtype=x0.dtype)

    def turn(carry):
        p, h, before = carry
        direction = -dot(h, p.g, precision="highest")
        descends = inner(p.g, direction) < 0
        direction = where(descends, direction, -p.g)
        found = line_search(fun, p.x, direction, p.f, before, p.g, maxiter=line_search_maxiter)
        s, y = found.a_k * direction, found.g_k - p.g
        h = _updated(where(descends, h, identity), s, y, identity)
        converged = norm_of(found.g_k, norm) < gtol
        new = _Progress(converged, found.failed & ~converged, p.k + 1, p.evaluations + found.nfev, p.x + s, found.f_k, found.g_k,
                        found.status)
        return new, h, p.f

    start = _start(of, x0, norm, gtol)
    more = lambda carry: ~carry[0].converged & ~carry[0].failed & (carry[0].k < limit)
    last, h, _ = while_loop(more, turn, (start, identity, start.f + norm_of(start.g) / 2))
    status = where(last.converged, 0, where(last.failed, 2 + last.status, 1)).astype("int32")
    return _results(last, status, h)


def _updated(h, s, y, identity):
    curvature = dot(y, s, precision="highest")
    r = 1 / curvature
    w = identity - r * outer(s, y)
    new = dot(dot(w, h, precision="highest"), w.T, precision="highest") + r * outer(s, s)
    return where((curvature > 0) & isfinite(r), new, h)


def _results(last: _Progress, status, h) -> OptimizeResults:
    return OptimizeResults(last.x, last.converged, status, last.f, last.g, h, last.evaluations, last.evaluations, last.k)


# ---- L-BFGS ------------------------------------------------------------------------------------------------------------


class _History(NamedTuple):
    """The latest steps s [maxcor, n], differences y of gradients, and 1 / Re y.s (0: not to be used), the newest last."""

    s: Any
    y: Any
    r: Any
    gamma: Any


# The same, algorithm 7.5; for complex variables: L. Sorber, M. Van Barel, L. De Lathauwer, 2012.
def _lbfgs(
    fun, x0, maxiter: int | None = None, norm=np.inf, maxcor: int = 10, ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-5, maxfun: int | None = None, maxgrad: int | None = None, maxls: int = 20,
) -> OptimizeResults:
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = 200 * x0.size
    of = value_and_grad(fun)
    dtype = dtypes.real_dtype(x0.dtype)

    def turn(carry):
        p, history = carry
        direction = _direction(history, p.g)
        direction = where(inner(p.g, direction) < 0, direction, -conj(p.g))
        found = line_search(fun, p.x, direction, p.f, None, p.g, maxiter=maxls)
        s, y = ew.convert(found.a_k, x0.dtype) * direction, found.g_k - p.g
        converged = norm_of(found.g_k, norm) < gtol
        status = where(p.f - found.f_k < ftol, 4, 0)
        for code, counted, limit in ((3, p.evaluations, maxgrad), (2, p.evaluations, maxfun), (1, p.k, maxiter)):
            status = status if limit is None else where(counted >= limit, code, status)
        status = where(converged, 0, where(found.failed, 5, status)).astype("int32")
        new = _Progress(converged, status > 0, p.k + 1, p.evaluations + found.nfev, p.x + s, found.f_k, found.g_k, status)
        return new, _remembered(history, s, y)

    start = _start(of, x0, norm, gtol)
    empty = zeros((maxcor, x0.size), x0.dtype)
    history = _History(empty, empty, zeros(maxcor, dtype), array(1, dtype))
    more = lambda carry: ~carry[0].converged & ~carry[0].failed
    last, _ = while_loop(more, turn, (start, history))
    return _results(last, last.status, None)


def _remembered(history: _History, s, y) -> _History:
    curvature = inner(y, s)
    usable = (curvature > 0) & isfinite(1 / curvature)
    r = where(usable, 1 / where(usable, curvature, 1), 0)
    gamma = where(usable, curvature / where(usable, inner(conj(y), y), 1), history.gamma)
    push = lambda old, new: concatenate([old[1:], new[None]])
    return _History(push(history.s, s), push(history.y, y), push(history.r, r), gamma)


def _direction(history: _History, g):
    """- H conj(g), by two passes through the history."""

    def back(q, step):
        s, y, r = step
        a = r * inner(conj(s), q)
        return q - ew.convert(a, q.dtype) * conj(y), a

    def forth(q, step):
        s, y, r, a = step
        return q + ew.convert(a - r * inner(y, q), q.dtype) * s, None

    q, parts = scan(back, -conj(g), (history.s, history.y, history.r), reverse=True)
    return scan(forth, ew.convert(history.gamma, g.dtype) * q, (history.s, history.y, history.r, parts))[0]


_SOLVERS: dict[str, Callable[..., OptimizeResults]] = {
    "bfgs": _bfgs, "l-bfgs": _lbfgs, "l-bfgs-experimental-do-not-rely-on-this": _lbfgs,
}
