"""Random programs mean in funcml what they mean in NumPy, plain and under the transforms.

    pytest tests/fuzz --programs 10000      (or `make fuzz`)
"""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import funcml as fm
import funcml.numpy as fnp
from funcml import lax
from tests.fuzz.programs import GAP, Program, programs
from tests.fuzz.reference import Loops, Watched
from tests.products import pair, restrict

PARTS = 8
_SETTINGS = settings(
    deadline=None, database=None, derandomize=False, report_multiple_bugs=False, suppress_health_check=list(HealthCheck)
)


class Funcml:
    """The control flow of `Loops`, as funcml has it."""

    cond, scan, fori_loop, while_loop = lax.cond, lax.scan, lax.fori_loop, lax.while_loop

    @staticmethod
    def mapped(body, *arrays):
        return fm.vmap(body)(*arrays)

    @staticmethod
    def put(x, index, how, value):
        return getattr(x.at[index], how)(value)

    @staticmethod
    def called(body, *operands):
        return body(*operands)

    @staticmethod
    def jitted(body, *operands):
        return fm.jit(body)(*operands)

    @staticmethod
    def checkpointed(body, *operands):
        return fm.checkpoint(body)(*operands)


@pytest.mark.parametrize("part", range(PARTS))
def test_programs(part, pytestconfig):
    count = -(-pytestconfig.getoption("programs") // PARTS)

    @hypothesis.seed(part)
    @settings(_SETTINGS, max_examples=count)
    @given(programs())
    def check(program):
        check_program(program)

    check()


def check_program(program: Program) -> None:
    """The value, its batched form and its derivatives, against NumPy."""
    reference = program.over(np, Loops)
    examples = program.examples
    want = [_arrays(reference(*args)) for args in examples]
    f = program.over(fnp, Funcml)
    args = examples[0]
    if program.eager:
        _agree("eager", f(*map(fnp.asarray, args)), want[0])
    moving = [i for i, a in enumerate(args) if a.dtype.kind == "f"]
    smooth = [i for i, y in enumerate(want[0]) if y.dtype.kind == "f"]
    rng = np.random.default_rng(0)
    t = [rng.uniform(-1, 1, args[i].shape) for i in moving]
    ct = [rng.uniform(-1, 1, want[0][i].shape) for i in smooth]

    restricted = restrict(f, args, moving, smooth)

    def gradient(*xs):
        return list(fm.vjp(restricted, *xs)[1](ct))

    def everything(args, stacks):
        x = [args[i] for i in moving]
        found = {"value": f(*args), "mapped": fm.vmap(f)(*stacks)}
        if smooth:
            found["jvp"], found["vjp"] = fm.jvp(restricted, x, t)[1], gradient(*x)
            if program.order == 2:
                found["forward"] = fm.jvp(gradient, x, t)[1]
                found["reverse"] = list(fm.vjp(gradient, *x)[1](t))
        return found

    found = fm.jit(everything)(list(args), [np.stack(column) for column in zip(*examples, strict=True)])
    _agree("jit", found["value"], want[0])
    _agree("vmap", found["mapped"], [np.stack(column) for column in zip(*want, strict=True)])
    if smooth:
        _agree("vjp and jvp", [pair(found["vjp"], t)], [pair(ct, found["jvp"])], 1e-8)
        _agree_with_slope(program, moving, smooth, t, found["jvp"])
        if program.order == 2:
            _agree("reverse over reverse", [pair(found["reverse"], t)], [pair(t, found["forward"])], 1e-7)


def _agree_with_slope(program, moving, smooth, t, tangents) -> None:
    """A derivative against central differences of two widths, where these agree among themselves.

    They do where the program is smooth between its points: no jump there, and no sharp bend.
    """
    slopes = [_slope(program, moving, smooth, t, step) for step in (1e-5, 2e-6)]
    if any(s is None for s in slopes):
        return
    for found, wide, narrow in zip(tangents, *slopes, strict=True):
        scale = 1.0 + np.max(np.abs(narrow), initial=0.0)
        if np.max(np.abs(wide - narrow), initial=0.0) < 1e-6 * scale:
            np.testing.assert_allclose(found, narrow, rtol=1e-5, atol=1e-5 * scale, err_msg="jvp and differences")


def _slope(program, moving, smooth, t, step):
    """(f(x + h t) - f(x - h t)) / 2h of the program in NumPy, or None where a point is near a jump or a kink."""
    sides = []
    for h in (step, -step):
        args = list(program.examples[0])
        for i, direction in zip(moving, t, strict=True):
            args[i] = args[i] + h * direction
        watched = Watched()
        outs = _arrays(program.over(watched, Loops)(*args))
        if watched.gap < GAP / 2:
            return None
        sides.append([outs[i] for i in smooth])
    return [(ahead - behind) / (2 * step) for ahead, behind in zip(*sides, strict=True)]


def _arrays(outs) -> list[np.ndarray]:
    return [np.asarray(y) for y in outs]


def _agree(what, found, want, rtol=1e-9) -> None:
    assert len(found) == len(want), what
    for y, z in zip(map(np.asarray, found), want, strict=True):
        assert y.shape == z.shape, f"{what}: {y.shape} and {z.shape}"
        assert y.dtype.kind == z.dtype.kind, f"{what}: {y.dtype} and {z.dtype}"
        np.testing.assert_allclose(y, z, rtol=rtol, atol=rtol * (1.0 + np.max(np.abs(z), initial=0)), err_msg=what)
