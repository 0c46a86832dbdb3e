"""`named_scope` and `ensure_compile_time_eval`: names in StableHLO, and values while a function is recorded."""

import re

import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax


def names(f, *args):
    """The names in the text of a function, which compiles with them."""
    lowered = fm.jit(f).lower(*args)
    lowered.compile()
    return set(re.findall(r'loc\("([^"]*)"\)', lowered.as_text(debug_info=True)))


def test_names_nest_and_end():
    @fm.named_scope("outer")
    def f(x):
        with fm.named_scope("inner"):
            x = jnp.sin(x)
        return jnp.cos(x)

    assert names(lambda x: jnp.tan(f(x)), 1.0) == {"outer/inner/sin", "outer/cos"}


def test_programs_that_differ_in_names_alone():
    def named(name):
        def f(x):
            with fm.named_scope(name):
                return jnp.sin(x)

        return f

    assert names(named("a"), 1.0) == {"a/sin"}
    assert names(named("b"), 1.0) == {"b/sin"}


def test_names_of_an_exception_end_too():
    with pytest.raises(ValueError), fm.named_scope("lost"):
        raise ValueError
    assert names(jnp.sin, 1.0) == set()


def test_derivatives_batches_and_control_flow():
    def f(x):
        with fm.named_scope("step"):
            return lax.scan(lambda c, _: (jnp.sin(c) * 2, None), x, None, length=3)[0]

    assert {"step/scan", "step/sin", "step/mul"} <= names(f, 1.0)
    assert "step/cos" in names(fm.grad(f), 1.0)
    assert "step/sin" in names(fm.vmap(f), jnp.ones(3))
    step = lambda c: lax.cond(c > 1, jnp.sin, jnp.exp, c) + 1  # noqa: E731
    loop = fm.named_scope("loop")(lambda x: lax.while_loop(lambda c: c < 3, step, x))
    assert {"loop/while", "loop/sin", "loop/exp"} <= names(loop, 1.0)


def test_a_jitted_function_has_its_own_names():
    inner = fm.jit(fm.named_scope("inner")(jnp.sin))
    found = names(lambda x: fm.named_scope("a")(inner)(x) + fm.named_scope("b")(inner)(x), 1.0)
    assert "inner/sin" in found and any(n.startswith("a/") for n in found) and any(n.startswith("b/") for n in found)


def test_quotes_in_names():
    fm.jit(fm.named_scope('say "x"\\')(jnp.sin)).lower(1.0).compile()


def test_a_name_must_be_a_string():
    with pytest.raises(TypeError, match="must be a string"), fm.named_scope(3):
        pass


def test_values_while_recording():
    @fm.jit
    def f(x):
        with fm.ensure_compile_time_eval():
            n = jnp.sum(jnp.arange(4))
            assert int(n) == 6
            assert float(fm.grad(jnp.sin)(0.0)) == 1.0
        return x * n

    assert float(f(2.0)) == 12.0

    def asks(x):
        with fm.ensure_compile_time_eval():
            return jnp.sin(x)

    with pytest.raises(TypeError, match="known value"):
        fm.jit(asks)(1.0)
