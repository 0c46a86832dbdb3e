"""`custom_vjp.defvjp(symbolic_zeros=True)`: what is differentiated, and which cotangents are zero, is told to the rule."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax
from funcml.custom_derivatives import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal


def product(note):
    """(x y, x + y) with a rule that notes which arguments are perturbed and which cotangents are zero."""

    @fm.custom_vjp
    def f(x, y):
        return x * y, x + y

    def fwd(x, y):
        assert isinstance(x, CustomVJPPrimal)
        note.append((x.perturbed, y.perturbed))
        return f(x.value, y.value), (x.value, y.value)

    def bwd(xy, cts):
        x, y = xy
        note.append(tuple(type(ct) is SymbolicZero for ct in cts))
        p, s = [jnp.zeros(ct.shape, ct.dtype) if type(ct) is SymbolicZero else ct for ct in cts]
        return p * y + s, p * x + s

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f


WRAPPERS = {
    "plain": lambda f: f,
    "jit": fm.jit,
    "checkpoint": fm.checkpoint,
    "vmap": lambda f: lambda x, y: fm.vmap(f)(jnp.stack([x, x]), jnp.stack([y, y])).sum() / 2,
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(("argnum", "out", "expected"), [(0, 0, 3.0), (1, 0, 2.0), (0, 1, 1.0)])
def test_the_rule_knows(wrapper, argnum, out, expected):
    note: list = []
    f = product(note)
    got = fm.grad(WRAPPERS[wrapper](lambda x, y: f(x, y)[out]), argnum)(2.0, 3.0)
    assert float(got) == expected
    assert note[0] == (argnum == 0, argnum == 1)
    assert note[-1] == (out != 0, out != 1)


def test_both_modes_and_second_order():
    f = product([])
    g = lambda x, y: f(x, y)[0] * x  # noqa: E731
    assert float(fm.jvp(g, (2.0, 3.0), (1.0, 0.0))[1]) == 12.0
    assert float(fm.grad(fm.grad(g))(2.0, 3.0)) == 6.0
    assert float(fm.jacfwd(fm.grad(g))(2.0, 3.0)) == 6.0


def test_in_a_scan_and_around_tracers():
    f = product([])
    got = fm.grad(lambda x: lax.scan(lambda c, y: (f(c, y)[0], None), x, np.float32([2, 3]))[0])(1.0)
    assert float(got) == 6.0

    def outer(x, c):
        @fm.custom_vjp
        def g(y):
            return c * y, y

        def fwd(y):
            assert y.perturbed
            return g(y.value), None

        g.defvjp(fwd, lambda _, cts: (c * cts[0] + cts[1],), symbolic_zeros=True)
        return g(x)[0]

    assert float(fm.grad(outer)(5.0, 7.0)) == 7.0


def test_integers_are_not_perturbed():
    note: list = []
    f = product(note)
    assert float(fm.grad(lambda x: f(x, 3)[0])(2.0)) == 3.0
    assert note[0] == (True, False)


def test_values_and_zeros():
    primals = {"a": CustomVJPPrimal(np.float32(2), True)}
    assert custom_vjp_primal_tree_values(primals) == {"a": 2.0}
    assert type(zero_from_primal(np.ones(3), symbolic_zeros=True)) is SymbolicZero
    assert zero_from_primal(np.ones(3)).tolist() == [0.0, 0.0, 0.0]
