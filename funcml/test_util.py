"""Checks of derivatives against central differences, (f(x + h t) - f(x - h t)) / 2h, in one random direction t.

    check_grads : derivatives of any order that funcml finds
    check_jvp   : those of a function (primals, tangents) -> (f(primals), tangent)
    check_vjp   : those of a function (primals) -> (f(primals), cotangent -> cotangents)

Tolerances are numbers, or dicts from dtypes to numbers. The step `eps` is by default the cube root of the spacing at 1 of the
narrowest dtype among the arguments, where the errors of rounding and of the formula are alike. Floating and complex arguments
are moved, others held fixed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcml import dtypes, tree
from funcml.derivatives import jvp, linearize, vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_TOLERANCES = {
    dtypes.bfloat16: 1e-1, dtypes.float16: 1e-2, dtypes.float32: 2e-3, dtypes.float64: 1e-5, dtypes.complex64: 1e-3,
    dtypes.complex128: 1e-5, **dict.fromkeys(dtypes.SMALL_FLOATS, 1e-1),
}


def check_grads(
    f: Callable, args: Sequence, order: int, modes: Sequence[str] = ("fwd", "rev"), atol=None, rtol=None, eps: float | None = None
) -> None:
    """Raises AssertionError if a derivative of `f` at `args` up to the given order differs from central differences.

    `modes` are 'fwd' (jvp), 'rev' (vjp) and 'lin' (linearize); orders above 1 go through every combination of them.

    >>> check_grads(lambda x: x * x, (np.float64(3.0),), order=2)
    """
    for mode in modes:
        if mode not in _MODES:
            raise ValueError(f"check_grads: modes must be among {', '.join(map(repr, _MODES))}, got {mode!r}")
    g, moving = _of_what_moves(f, args)
    _check_orders(g, moving, order, modes, {"atol": atol, "rtol": rtol, "eps": eps}, "")


def _of_what_moves(f, args):
    """`f` as a function of the leaves of `args` that move to a list of those of its result that do, and these leaves."""
    leaves, treedef = tree.flatten(tuple(args))
    at = [i for i, x in enumerate(leaves) if _moves(x)]

    def g(*moving):
        full = list(leaves)
        for i, x in zip(at, moving, strict=True):
            full[i] = x
        return [y for y in tree.leaves(f(*tree.unflatten(treedef, full))) if _moves(y)]

    return g, tuple([leaves[i] for i in at])


def _check_orders(f, args, order, modes, options, path) -> None:
    for mode in modes:
        derivative, check, again = _MODES[mode]
        here = f"{mode} of {path}" if path else mode
        check(f, functools.partial(derivative, f), args, err_msg=here, **options)
        if order > 1:
            g, more = again(f, args)
            _check_orders(g, more, order - 1, modes, options, here)


def _linearized(f, primals, tangents):
    out, linear = linearize(f, *primals)
    return out, linear(*tangents)


def _forward(derivative):
    """The function of primals and tangents to check next, and where."""
    return lambda f, args: (functools.partial(derivative, f), (args, args))


def _backward(f, args):
    """The gradient that belongs to the function's own value as its cotangent."""

    def gradient(*xs):
        out, pullback = vjp(f, *xs)
        return pullback(out)

    return gradient, args


def check_jvp(
    f: Callable, f_jvp: Callable, args: Sequence, atol=None, rtol=None, eps: float | None = None, err_msg: str = ""
) -> None:
    """Raises AssertionError unless `f_jvp(primals, tangents)` gives f's value and its derivative along the tangents."""
    args = tuple(args)
    direction = tree.map(functools.partial(_direction, np.random.default_rng(0)), args)
    out, tangent = f_jvp(args, direction)
    _close(out, f(*args), atol, rtol, f"{err_msg} value".strip())
    _close(tangent, _difference(f, args, direction, eps), atol, rtol, f"{err_msg} tangent".strip())


def check_vjp(
    f: Callable, f_vjp: Callable, args: Sequence, atol=None, rtol=None, eps: float | None = None, err_msg: str = ""
) -> None:
    """Raises AssertionError unless `f_vjp(*primals)` gives f's value and its pullback: <ct, f'(t)> must be <f^T(ct), t>."""
    args = tuple(args)
    rng = np.random.default_rng(0)
    out, pullback = f_vjp(*args)
    _close(out, f(*args), atol, rtol, f"{err_msg} value".strip())
    direction = tree.map(functools.partial(_direction, rng), args)
    ct = tree.map(functools.partial(_direction, rng), out)
    along = _difference(f, args, direction, eps)
    _close(_pairing(pullback(ct), direction), _pairing(ct, along), atol, rtol, f"{err_msg} cotangent".strip())


_MODES = {
    "fwd": (jvp, check_jvp, _forward(jvp)),
    "rev": (lambda f, *args: vjp(f, *args), check_vjp, _backward),
    "lin": (_linearized, check_jvp, _forward(_linearized)),
}


# ---- directions and differences ----------------------------------------------------------------------------------


def _dtype(x):
    return dtypes.dtype_of(x)[0]


def _moves(x) -> bool:
    return _dtype(x) != dtypes.float0 and dtypes.is_inexact(_dtype(x))


def _direction(rng, x):
    if not _moves(x):
        return np.zeros(np.shape(x), dtypes.float0)
    values = rng.normal(size=np.shape(x))
    if dtypes.is_complex(_dtype(x)):
        values = values + 1j * rng.normal(size=np.shape(x))
    moved = np.asarray(values, _dtype(x))
    return moved.item() if isinstance(x, float | complex) and not isinstance(x, np.generic) else moved


def _step(args) -> float:
    narrow = [float(dtypes.finfo(_dtype(x)).eps) for x in tree.leaves(args) if _moves(x)]
    return max(narrow, default=0.0) ** (1 / 3)


def _difference(f, args, direction, step):
    step = _step(args) if step is None else step
    ahead, behind = (f(*tree.map(functools.partial(_moved, h), args, direction)) for h in (step, -step))
    return tree.map(functools.partial(_slope, step), ahead, behind)


def _moved(h, x, t):
    if not _moves(x):
        return x
    moved = (np.asarray(x) + np.asarray(h * np.asarray(t))).astype(_dtype(x))
    return moved.item() if isinstance(x, float | complex) and not isinstance(x, np.generic) else moved


def _slope(step, ahead, behind):
    if not _moves(ahead):
        return np.zeros(np.shape(ahead), dtypes.float0)
    ahead, behind = _wide(ahead), _wide(behind)
    with np.errstate(invalid="ignore"):  # where both are the same infinity, nothing moves
        return np.where(ahead == behind, 0, (ahead - behind) / (2 * step))


def _wide(x):
    return np.asarray(x).astype(np.complex128 if dtypes.is_complex(_dtype(x)) else np.float64)


# A cotangent acts on a tangent by the real part of the product, without conjugation.
def _pairing(cts, tangents):
    pairs = zip(tree.leaves(cts), tree.leaves(tangents), strict=True)
    moving = [(c, t) for c, t in pairs if _moves(c) and _moves(t)]
    total = sum([np.sum(_wide(c) * _wide(t)).real for c, t in moving])
    narrow = [_dtype(c) for c, _ in moving]
    return np.asarray(total, dtypes.real_dtype(min(narrow, key=lambda d: d.itemsize)) if narrow else dtypes.float64)


def _close(found, want, atol, rtol, message) -> None:
    tree.map(functools.partial(_close_leaf, atol, rtol, message), found, want)


def _close_leaf(atol, rtol, message, found, want) -> None:
    assert np.shape(found) == np.shape(want), f"{message}: shape {np.shape(found)}, not {np.shape(want)}"
    if not _moves(found):
        return
    size = max(np.size(want), 1)
    atol, rtol = (size * _tolerance(tol, found, want) for tol in (atol, rtol))
    np.testing.assert_allclose(_wide(found), _wide(want), rtol, atol, err_msg=message)


def _tolerance(given, *xs) -> float:
    if given is not None and not isinstance(given, dict):
        return given
    table: dict[Any, float] = {**_TOLERANCES, **{dtypes.canonical(k): v for k, v in (given or {}).items()}}
    return max([table.get(_dtype(x), 0.0) for x in xs])
