"""copy, stop_gradient, name and optimization_barrier: the values stay, the programs tell."""

import numpy as np

import funcml as fm
from funcml.primitives import identities
from funcml.primitives.elementwise import mul
from tests.products import check_products


def test_values_stay_for_every_dtype():
    for x in (np.arange(3), np.array([True, False]), np.array([1 + 2j]), np.ones((0, 2), np.float16)):
        barred = identities.optimization_barrier([x, x])
        for y in [identities.copy(x), identities.stop_gradient(x), identities.name(x, "a"), *barred]:
            np.testing.assert_array_equal(y, x)
            assert y.dtype == x.dtype
    assert identities.optimization_barrier([]) == []


def test_products_of_identities(rng):
    x, y = rng.normal(size=(2, 3))
    square = lambda x: mul(x, x)
    check_products(
        lambda x, y: [
            square(identities.copy(x)), square(identities.name(x, "x")),
            *map(square, identities.optimization_barrier([x, y, square(x)])),
        ],
        x, y,
    )  # fmt: skip


def test_stop_gradient_is_a_constant_to_every_transform():
    f = lambda x: mul(x, identities.stop_gradient(mul(x, x)))
    assert float(fm.grad(f)(3.0)) == 9
    assert float(fm.grad(fm.grad(f))(3.0)) == 0
    assert float(fm.jvp(identities.stop_gradient, (3.0,), (1.0,))[1]) == 0


def test_the_barrier_of_part_of_its_operands_has_a_derivative():
    f = lambda x: identities.optimization_barrier([x, np.arange(3)])[0]
    assert float(fm.grad(f)(2.0)) == 1


def test_a_name_stands_in_the_program():
    assert "name[name=hidden]" in str(fm.make_jaxpr(lambda x: identities.name(x, "hidden"))(1.0))
