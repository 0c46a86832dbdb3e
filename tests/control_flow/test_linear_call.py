"""linear_call: linear functions with a transpose of their own, in every transform."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.custom_derivatives import linear_call
from tests.products import check_products

X = np.array([1.0, 2.0, 4.0])
R = np.array([2.0, 5.0, 8.0])


def divided(r, x):
    return linear_call(lambda r, x: x / r, lambda r, ct: ct / r, r, x)


def marked(x):
    """The identity, whose transpose says 7."""
    return linear_call(lambda _, x: x, lambda _, ct: ct * 0 + 7.0, (), x)


def transposed(f, n=1):
    for _ in range(n):
        f = lambda ct, f=f: fm.linear_transpose(f, 1.0)(ct)[0]  # noqa: E731
    return f


def test_values_and_products_in_both_arguments():
    check_products(divided, R, X)
    np.testing.assert_allclose(fm.jit(divided)(R, X), X / R)


def test_the_given_transpose_is_used():
    assert float(marked(1.0)) == 1.0
    assert [float(transposed(marked, n)(1.0)) for n in range(4)] == [1.0, 7.0, 1.0, 7.0]
    assert float(fm.grad(marked)(3.0)) == 7.0
    np.testing.assert_array_equal(fm.vmap(fm.grad(marked))(X), [7.0, 7.0, 7.0])
    np.testing.assert_array_equal(fm.grad(lambda x: fm.vmap(marked)(x).sum())(X), [7.0, 7.0, 7.0])
    assert float(fm.jvp(marked, (3.0,), (2.0,))[1]) == 2.0


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_batches(axes):
    r, x = (v if a is None else np.stack([v, 2 * v]) for v, a in zip((R, X), axes, strict=True))
    np.testing.assert_allclose(fm.vmap(divided, axes)(r, x), x / r * np.ones((2, 1)))
    found = fm.vmap(fm.grad(lambda r, x: divided(r, x).sum(), (0, 1)), axes)(r, x)
    np.testing.assert_allclose(found[0], -x / r**2 * np.ones((2, 1)))
    np.testing.assert_allclose(found[1], 1 / r * np.ones((2, 3)))


def test_trees_and_closures():
    def f(scale, tree):
        double = lambda r, t: {"y": (t["a"] + 2 * t["b"]) * r * scale}  # noqa: E731
        back = lambda r, ct: {"a": ct["y"] * r * scale, "b": 2 * ct["y"] * r * scale}  # noqa: E731
        return linear_call(double, back, 3.0, tree)["y"]

    tree = {"a": X, "b": R}
    np.testing.assert_allclose(f(2.0, tree), 6 * (X + 2 * R))
    found = fm.jit(fm.grad(lambda t: f(2.0, t).sum()))(tree)
    np.testing.assert_allclose(found["b"], np.full(3, 12.0))
    assert float(fm.grad(lambda s: f(s, tree).sum())(2.0)) == pytest.approx((3 * (X + 2 * R)).sum())


@pytest.mark.parametrize("back, words", [
    (lambda r, ct: (ct, ct), "transpose output pytree structure must match that of linear inputs"),
    (lambda r, ct: jnp.sum(ct), r"must return the types of the linear inputs, \[f64\[3\]\], got \[f64\[\]\]"),
])  # fmt: skip
def test_errors(back, words):
    with pytest.raises(TypeError, match=words):
        linear_call(lambda r, x: x * r, back, R, X)
