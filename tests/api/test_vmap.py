"""`vmap`: axes, trees, nesting, and its errors."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp


def test_in_and_out_axes():
    x, y = np.random.rand(4, 3), np.random.rand(3, 5, 4)
    f = lambda a, b: a @ b
    np.testing.assert_allclose(fm.vmap(f, (0, 2))(x, y), np.einsum("ni,ijn->nj", x, y))
    np.testing.assert_allclose(fm.vmap(f, (0, -1), out_axes=1)(x, y), np.einsum("ni,ijn->jn", x, y))
    want = np.stack([x @ y[:, i] for i in range(5)], -1)
    np.testing.assert_allclose(fm.vmap(f, (None, 1), out_axes=-1)(x, y), want)


def test_axes_as_trees():
    p = {"w": np.random.rand(3, 2), "b": np.random.rand(2)}
    x = np.random.rand(5, 3)
    f = lambda p, x: {"y": x @ p["w"] + p["b"], "n": x.sum()}
    out = fm.vmap(f, in_axes=(None, 0), out_axes={"y": 1, "n": 0})(p, x)
    np.testing.assert_allclose(out["y"], (x @ p["w"] + p["b"]).T)
    out = fm.vmap(f, in_axes=({"w": 1, "b": 0}, None), out_axes={"y": 0, "n": None})(
        {"w": np.stack([p["w"]] * 4, 1), "b": np.stack([p["b"]] * 4)}, x[0]
    )
    assert out["y"].shape == (4, 2) and out["n"].shape == ()


def test_keyword_arguments_map_on_axis_zero():
    out = fm.vmap(lambda x, *, y: x * y, in_axes=(None,))(2.0, y=jnp.arange(3.0))
    assert out.tolist() == [0.0, 2.0, 4.0]


def test_axis_size_and_unmapped_outputs():
    assert fm.vmap(lambda: jnp.ones(2), axis_size=3)().shape == (3, 2)
    assert fm.vmap(lambda x: 1.0)(jnp.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert fm.vmap(lambda x, y: y, in_axes=(0, None), out_axes=None)(jnp.ones(3), 2.0) == 2.0


def test_objects_pass_where_nothing_is_mapped():
    assert fm.vmap(lambda x, how: x * 2 if how == "twice" else x, in_axes=(0, None))(jnp.ones(2), "twice").tolist() == [2.0, 2.0]


def test_nesting_and_transforms():
    x = np.random.rand(2, 3, 4)
    f = lambda v: (v**2).sum()
    np.testing.assert_allclose(fm.vmap(fm.vmap(f))(x), (x**2).sum(-1))
    np.testing.assert_allclose(fm.vmap(fm.grad(f))(x[0]), 2 * x[0])
    np.testing.assert_allclose(fm.jit(fm.vmap(fm.vmap(fm.grad(f)), in_axes=1))(x), 2 * x.transpose(1, 0, 2))
    np.testing.assert_allclose(fm.grad(lambda x: fm.vmap(f)(x).sum())(x[0]), 2 * x[0])
    np.testing.assert_allclose(fm.vmap(fm.hessian(f))(x[0]), np.broadcast_to(2 * np.eye(4), (3, 4, 4)))


def test_empty_batch():
    assert fm.vmap(lambda x: x.sum())(jnp.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fm.vmap(lambda x: x, in_axes={"a": 0})({"a": 1}), TypeError, r"in_axes must be.*write \(\{'a': 0\},\)"),
        (lambda: fm.vmap(lambda x, y: x, in_axes=(0,))(1, 2), ValueError, "1 entries, but the call has 2"),
        (lambda: fm.vmap(lambda x: x)(1.0), ValueError, r"`x` is f32\[\] and has no axis 0"),
        (lambda: fm.vmap(lambda x: x, in_axes=2)(jnp.ones((2, 2))), ValueError, r"f32\[2,2\] and has no axis 2"),
        (lambda: fm.vmap(lambda x, y: x)(jnp.ones(2), jnp.ones(3)), ValueError, r"different lengths.*`x`.*`y` \(f32\[3\]\)"),
        (lambda: fm.vmap(lambda x: x, in_axes=None)(1.0), ValueError, "axis_size"),
        (lambda: fm.vmap(lambda x: x, axis_size=4)(jnp.ones(3)), ValueError, "axis_size=4"),
        (lambda: fm.vmap(lambda x: x, out_axes=None)(jnp.ones(3)), ValueError, "out_axes is None for an output"),
        (lambda: fm.vmap(lambda x: x, out_axes=2)(jnp.ones(3)), ValueError, "out_axes asks for axis 2"),
        (lambda: fm.vmap(lambda x: x)("a"), TypeError, "not an array"),
        (lambda: fm.vmap(lambda x: x, in_axes=({"b": 0},))({"a": jnp.ones(2)}), ValueError, "in_axes"),
        (lambda: fm.vmap(lambda x: x, in_axes="x")(jnp.ones(3)), TypeError, "in_axes must be"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
