"""An effect happens once for each run that passes it: whatever is retried, asked for while tracing, or computed again."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax

SCALAR = fm.ShapeDtypeStruct((), np.float32)


class Counted:
    """A function for the host that notes what it is called with."""

    def __init__(self):
        self.seen = []

    def __call__(self, x):
        self.seen.append(float(x))
        return np.float32(x)

    def read(self, x, ordered=False):
        """The traced value, by way of the host."""
        return fm.io_callback(self, SCALAR, lax.stop_gradient(x), ordered=ordered)


TRANSFORMS = {
    "grad": lambda f: fm.grad(f)(2.0),
    "vjp": lambda f: fm.vjp(f, 2.0)[1](1.0)[0],
    "jvp": lambda f: fm.jvp(f, (2.0,), (1.0,))[1],
    "linearize": lambda f: fm.linearize(f, 2.0)[1](1.0),
    "value_and_grad": lambda f: fm.value_and_grad(f)(2.0)[1],
    "grad of checkpoint": lambda f: fm.grad(fm.checkpoint(f))(2.0),
    "grad of jit": lambda f: fm.grad(fm.jit(f))(2.0),
    "jit of grad": lambda f: fm.jit(fm.grad(f))(2.0),
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_in_derivatives(transform, ordered):
    host = Counted()
    assert float(TRANSFORMS[transform](lambda x: x * host.read(x, ordered))) == 2.0
    assert host.seen == [2.0]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "linearize", "value_and_grad"])
def test_where_python_asks_for_the_result(transform, ordered):
    host = Counted()

    def f(x):
        y = host.read(x, ordered)
        while y > 1:
            y = y - 1
        return x * x if y > 0 else x * float(host.read(3 * x, ordered))

    assert float(TRANSFORMS[transform](f)) == 4.0
    assert host.seen == [2.0]


def test_effects_before_the_one_that_python_asks_for_come_first():
    host = Counted()

    def f(x):
        host.read(x, True)
        fm.debug.callback(host, 2 * x)
        y = host.read(3 * x, True)
        host.read(4 * x, True)
        return x * x if y > 0 else x

    assert float(fm.grad(f)(1.0)) == 2.0
    assert host.seen == [1.0, 2.0, 3.0, 4.0]


def test_results_are_not_asked_for_while_a_program_for_later_runs_is_recorded():
    host = Counted()
    with pytest.raises(fm.errors.ConcretizationTypeError, match="float"):
        fm.jit(lambda x: x * float(host.read(np.float32(3))))(1.0)
    with pytest.raises(fm.errors.ConcretizationTypeError, match="float"):
        fm.jit(fm.grad(lambda x: x * float(host.read(np.float32(3)))))(1.0)
    assert not host.seen


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError])
def test_a_run_that_fails_is_not_tried_again(error):
    host = Counted()

    def fails(x):
        host(x)
        raise error("mine")

    f = fm.jit(lambda x: fm.io_callback(fails, SCALAR, x))
    for n in (1, 2):
        with pytest.raises(error, match="mine"):
            f(5.0)
        with pytest.raises(error, match="mine"):
            f(jnp.float32(5))
        assert host.seen == [5.0] * (2 * n)


def test_a_function_that_raises_is_traced_once():
    traced = []

    @fm.jit
    def f(x):
        traced.append(1)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        f(jnp.ones(3))
    assert len(traced) == 1


def test_programs_that_are_evaluated_equation_by_equation():
    host = Counted()
    for n in range(20):
        fm.grad(lambda x, n=n: x * sum(host.read(x) for _ in range(n)))(2.0)
    assert len(host.seen) == sum(range(20))


def test_loops_of_unknown_length_do_not_repeat_an_effect():
    host = Counted()

    def loop(read):
        def step(carry):
            return carry[0] + 1, carry[1] * read(carry[1])

        return lambda x: lax.while_loop(lambda c: c[0] < 3, step, (0, x))[1]

    with pytest.raises(NotImplementedError, match="must not happen twice"):
        fm.grad(loop(host.read))(2.0)
    assert not host.seen


def test_scans_do_not_repeat_an_effect():
    host = Counted()
    step = lambda c, _: (c * host.read(c), None)  # noqa: E731
    fm.grad(lambda x: lax.scan(step, x, None, length=3)[0])(2.0)
    assert host.seen == [2.0, 4.0, 16.0]
