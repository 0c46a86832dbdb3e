"""Programs: printing, keys, interning, checking."""

import numpy as np
import pytest

import funcml as fm
from funcml.core.avals import shaped
from funcml.core.check import InvalidJaxprError, check_jaxpr
from funcml.core.ir import Eqn, Jaxpr, Literal, Primitive, Var, clear_interned, intern, structural_key
from funcml.core.tracing import trace
from funcml.primitives import elementwise as ew
from funcml.primitives.transcendental import cos, sin

F32 = shaped((3,), np.dtype("float32"))


def program(function, *avals):
    return trace(function, avals)[0]


def test_avals_are_one_object_for_each_type():
    assert shaped((3,), np.dtype("float32")) is F32
    assert shaped((3,), np.dtype("float32"), True) is not F32
    assert str(F32) == "f32[3]"
    assert F32.update(shape=(2, 3)) is shaped((2, 3), np.dtype("float32"))


def test_printing_shows_types_parameters_and_inner_programs():
    def f(x):
        return fm.jit(lambda y: ew.mul(sin(y), 2.0), inline=False)(x)

    assert str(fm.make_jaxpr(f)(np.zeros(3, np.float32))) == (
        "{ lambda a:f32[3]. let\n"
        "    b:f32[3] = call[name=<lambda>] a\n"
        "      jaxpr={ lambda a:f32[3]. let\n"
        "          b:f32[3] = sin a\n"
        "          c:f32[3] = mul b 2.0\n"
        "        in (c,) }\n"
        "  in (b,) }"
    )


def test_equal_programs_are_interned_to_one_object():
    first, second = (intern(program(lambda x: [sin(x)], F32)) for _ in range(2))
    assert first is second
    assert intern(program(lambda x: [cos(x)], F32)) is not first
    clear_interned()
    assert intern(program(lambda x: [sin(x)], F32)) is not first


@pytest.mark.parametrize("pair", [(0.0, -0.0), (1.0, 1.0000001), (1, 1.0), (float("nan"), float("inf"))])
def test_literals_differ_in_keys_when_their_bits_do(pair):
    keys = [structural_key(program(lambda x, v=v: [ew.mul(x, np.float32(v))], F32)) for v in pair]
    assert (keys[0] == keys[1]) == (np.float32(pair[0]).tobytes() == np.float32(pair[1]).tobytes())


def test_each_equation_knows_the_users_line():
    jaxpr = program(lambda x: [sin(x)], F32)
    code, _ = jaxpr.eqns[0].source
    assert code.co_filename == __file__


def test_check_accepts_what_trace_makes():
    check_jaxpr(program(lambda x: [ew.add(sin(x), 1.0)], F32))


def _eqn(primitive, invars, outvars, **params):
    return Eqn(primitive, tuple(invars), tuple(outvars), params, None)


@pytest.mark.parametrize("case", ["unbound", "twice", "type", "output", "mixed"])
def test_check_refuses_malformed_programs(case):
    x, y, z = Var(F32), Var(F32), Var(F32)
    scalar = Var(shaped((), np.dtype("float32")))
    bad = {
        "unbound": (Jaxpr([x], [_eqn(sin, [y], [z])], [z]), "unbound"),
        "twice": (Jaxpr([x], [_eqn(sin, [x], [y]), _eqn(cos, [x], [y])], [y]), "twice"),
        "type": (Jaxpr([x], [_eqn(sin, [x], [scalar])], [scalar]), "typed"),
        "output": (Jaxpr([x], [], [y]), "unbound"),
        "mixed": (Jaxpr([x, scalar], [_eqn(ew.mul, [x, scalar], [y])], [y]), "mixes"),
    }
    jaxpr, words = bad[case]
    with pytest.raises(InvalidJaxprError, match=words):
        check_jaxpr(jaxpr)


def test_a_scalar_literal_may_stand_among_arrays():
    x, y = Var(F32), Var(F32)
    check_jaxpr(Jaxpr([x], [_eqn(ew.mul, [x, Literal(2.0, shaped((), np.dtype("float32")))], [y])], [y]))


def test_a_missing_rule_names_itself_and_who_asked():
    p = Primitive("mystery")
    p.type_rule = lambda x: x
    with pytest.raises(NotImplementedError, match="`mystery` has no jvp_rule, which differentiation needs"):
        from funcml.core.tracing import bind

        fm.make_jaxpr(lambda x: fm.jvp(lambda y: bind(p, (y,)), (x,), (x,)))(np.ones(3, np.float32))
