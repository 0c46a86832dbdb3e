"""The products of a function and the transforms: each must agree with what it means.

    jit    == eager                         vmap  == loop over the examples
    jvp    == central differences           vjp   == jvp, transposed
    orders two: forward over reverse == central differences of the gradient, reverse over reverse == forward over reverse
    checkpoint == plain

Every program that a pass gives is checked on the way (`config.check_jaxprs`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

import funcml as fm
from funcml import dtypes, tree

ALL = ("jit", "jvp", "vjp", "order2", "vmap", "checkpoint")


def check_products(
    fn: Callable,
    *args,
    order: int = 2,
    products: Sequence[str] = ALL,
    rtol: float = 1e-6,
    atol: float = 1e-7,
    step: float = 1e-6,
    batch: int = 3,
    seed: int = 0,
) -> None:
    """Checks `fn` (of arrays, to a tree of arrays) at `args` under the transforms.

    Derivatives are taken with respect to the float64 and complex128 arguments; others are held fixed. `fn` must be smooth there.
    """
    rng = np.random.default_rng(seed)
    args = [np.asarray(a) for a in args]
    flat = _flat(fn)
    want = [np.asarray(y) for y in flat(*args)]
    if "jit" in products:
        _agree("jit", fm.jit(flat)(*args), want, rtol, atol)
    if "vmap" in products:
        _check_vmap(flat, args, rng, batch, rtol, atol)
    moving = [i for i, a in enumerate(args) if a.dtype in (np.float64, np.complex128)]
    smooth = [i for i, y in enumerate(want) if dtypes.is_inexact(y.dtype)]
    if not moving or not smooth:
        return
    f = restrict(flat, args, moving, smooth)
    x = [args[i] for i in moving]
    t = [_random_like(rng, a) for a in x]
    ct = [_random_like(rng, want[i]) for i in smooth]
    if "vjp" in products and "vmap" in products:
        _check_vmap(lambda *xs: fm.vjp(f, *xs)[1](ct), x, rng, batch, rtol, atol)
    ahead = [a + step * d for a, d in zip(x, t, strict=True)]
    behind = [a - step * d for a, d in zip(x, t, strict=True)]
    second = order >= 2 and "order2" in products
    found = fm.jit(functools.partial(_derivatives, f, second, "checkpoint" in products))(x, ahead, behind, t, ct)
    found = tree.map(np.asarray, found)
    tangent = found["jvp"]
    if "jvp" in products:
        _agree("jvp and differences", tangent, _slope(*found["values"], step), 1e2 * rtol, 1e2 * atol)
    if "vjp" in products:
        _agree("vjp and jvp", [pair(found["vjp"], t)], [pair(ct, tangent)], rtol, atol)
    if "checkpoint" in products:
        _agree("checkpoint", found["checkpoint"], found["vjp"], rtol, atol)
    if second:
        forward = found["forward over reverse"]
        _agree("forward over reverse and differences", forward, _slope(*found["gradients"], step), 1e2 * rtol, 1e2 * atol)
        want_two = [pair(t, forward)]
        _agree("reverse over reverse", [pair(found["reverse over reverse"], t)], want_two, 10 * rtol, 10 * atol)
        _agree("forward over forward", [pair(ct, found["forward over forward"])], want_two, 10 * rtol, 10 * atol)


def _derivatives(f, second: bool, checkpoint: bool, x, ahead, behind, t, ct) -> dict:
    """All that is compared, as one program."""

    def gradient(*xs):
        return list(fm.vjp(f, *xs)[1](ct))

    found = {
        "values": (f(*ahead), f(*behind)),
        "jvp": fm.jvp(f, x, t)[1],
        "vjp": gradient(*x),
    }
    if checkpoint:
        found["checkpoint"] = list(fm.vjp(fm.checkpoint(f), *x)[1](ct))
    if second:
        found["gradients"] = (gradient(*ahead), gradient(*behind))
        found["forward over reverse"] = fm.jvp(gradient, x, t)[1]
        found["reverse over reverse"] = list(fm.vjp(gradient, *x)[1](list(t)))
        found["forward over forward"] = fm.jvp(lambda *xs: fm.jvp(f, xs, t)[1], x, t)[1]
    return found


def _slope(ahead, behind, step) -> list[np.ndarray]:
    """(f(x + h t) - f(x - h t)) / 2h."""
    return [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]


def _check_vmap(fn, args, rng, batch, rtol, atol) -> None:
    """All arguments mapped, on the first and on the last axis; then each one alone; against a loop, in one program."""
    stacks = [np.stack([a, *[_perturbed(rng, a) for _ in range(batch - 1)]]) for a in args]
    choices = [[0] * len(args)]
    if any(a.ndim for a in args):
        choices.append([-1] * len(args))
    if len(args) > 1:
        choices += [[0 if i == k else None for i in range(len(args))] for k in range(len(args))]
    given = [
        [a if d is None else np.moveaxis(s, 0, d) for a, s, d in zip(args, stacks, axes, strict=True)]
        for axes in choices
    ]
    rows = [
        [[a if d is None else s[i] for a, s, d in zip(args, stacks, axes, strict=True)] for i in range(batch)]
        for axes in choices
    ]

    def both(given, rows):
        mapped = [fm.vmap(fn, in_axes=tuple(axes))(*xs) for axes, xs in zip(choices, given, strict=True)]
        return mapped, [[fn(*xs) for xs in examples] for examples in rows]

    for axes, mapped, examples in zip(choices, *fm.jit(both)(given, rows), strict=True):
        want = [np.stack(list(map(np.asarray, column))) for column in zip(*map(tree.leaves, examples), strict=True)]
        _agree(f"vmap over {axes} and a loop", tree.leaves(mapped), want, rtol, atol)


def _flat(fn) -> Callable:
    """`fn` with a list of leaves for its result."""

    @functools.wraps(fn)
    def flat(*args):
        return tree.leaves(fn(*args))

    return flat


def restrict(flat, args, moving, smooth) -> Callable:
    """The function of the arguments `moving` to the outputs `smooth`."""

    @functools.wraps(flat)
    def restricted(*xs):
        full = list(args)
        for i, x in zip(moving, xs, strict=True):
            full[i] = x
        outs = flat(*full)
        return [outs[i] for i in smooth]

    return restricted


def pair(cts, tangents):
    """The real part of the sum of products, without conjugation: how cotangents act on tangents, for functions that
    need not be holomorphic too."""
    return np.asarray(sum(np.sum(np.asarray(c) * np.asarray(t)).real for c, t in zip(cts, tangents, strict=True)))


def _random_like(rng, a):
    values = rng.uniform(-1, 1, a.shape)
    if dtypes.is_complex(a.dtype):
        values = values + 1j * rng.uniform(-1, 1, a.shape)
    return np.asarray(values, a.dtype)


def _perturbed(rng, a):
    """Another example near `a` (floats), or with its elements permuted (anything else)."""
    if dtypes.is_inexact(a.dtype):
        return (a * (1 + 0.05 * rng.uniform(-1, 1, a.shape))).astype(a.dtype)
    return rng.permutation(a.ravel()).reshape(a.shape)


def _agree(what, found, want, rtol, atol) -> None:
    assert len(found) == len(want), what
    for y, z in zip(found, want, strict=True):
        y, z = np.asarray(y), np.asarray(z)
        assert y.shape == z.shape, f"{what}: {y.shape} and {z.shape}"
        scale = np.max(np.abs(z[np.isfinite(z)]), initial=0.0) if dtypes.is_inexact(z.dtype) else 0.0
        np.testing.assert_allclose(
            y.astype(np.result_type(y.dtype, np.float32)) if y.dtype == dtypes.bfloat16 else y,
            z.astype(np.result_type(z.dtype, np.float32)) if z.dtype == dtypes.bfloat16 else z,
            rtol=rtol,
            atol=atol + rtol * scale,
            err_msg=what,
        )
