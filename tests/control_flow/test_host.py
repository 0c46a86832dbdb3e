"""Calls of the host from compiled programs: values, order, batches, derivatives, exceptions, checks."""

import io
import sys

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml import lax

X = np.array([3.0, 1.0, 2.0])


def host_sort(x, **kwargs):
    return fm.pure_callback(lambda v: np.sort(v, axis=-1), fm.ShapeDtypeStruct(x.shape, x.dtype), x, **kwargs)


def test_pure_callback_is_an_operation():
    assert host_sort(X).tolist() == [1.0, 2.0, 3.0]
    assert fm.jit(lambda x: 2 * host_sort(x))(X).tolist() == [2.0, 4.0, 6.0]
    tree = fm.jit(lambda x: fm.pure_callback(lambda v, k: {"a": v + k, "b": np.int32(7)}, {"a": x, "b": np.int32(0)}, x, k=x))(X)
    assert tree["a"].tolist() == [6.0, 2.0, 4.0] and int(tree["b"]) == 7


def test_pure_callback_that_nothing_uses_is_not_called():
    seen = []
    fm.jit(lambda x: (fm.pure_callback(lambda v: seen.append(1) or v, x, x), x)[1])(X)
    assert not seen


@pytest.mark.parametrize(("method", "shapes"), [
    ("sequential", [(3,)] * 2), ("expand_dims", [(2, 3)]), ("broadcast_all", [(2, 3)]),
])  # fmt: skip
def test_batches(method, shapes):
    seen = []

    def f(x):
        return fm.pure_callback(lambda v: seen.append(v.shape) or np.sort(v, -1), x, x, vmap_method=method)

    got = fm.vmap(f)(np.stack([X, -X]))
    assert got.tolist() == [[1.0, 2.0, 3.0], [-3.0, -2.0, -1.0]] and seen == shapes


def test_unmapped_arguments_of_a_batch():
    seen = []

    def f(method, x, y):
        return fm.pure_callback(lambda a, b: seen.append((a.shape, b.shape)) or a + b, x, x, y, vmap_method=method)

    for method in ("expand_dims", "broadcast_all", "sequential"):
        got = fm.vmap(lambda x, y, m=method: f(m, x, y), (0, None))(np.stack([X, X]), X)
        assert got.tolist() == [[6.0, 2.0, 4.0]] * 2
    assert seen == [((2, 3), (1, 3)), ((2, 3), (2, 3)), ((3,), (3,)), ((3,), (3,))]
    with pytest.raises(NotImplementedError, match="vmap_method='sequential'"):
        fm.vmap(host_sort)(np.stack([X, X]))


def test_derivatives_need_a_rule():
    with pytest.raises(NotImplementedError, match="custom_jvp"):
        fm.grad(lambda x: host_sort(x).sum())(X)

    @fm.custom_jvp
    def square(x):
        return fm.pure_callback(lambda v: v * v, x, x, vmap_method="sequential")

    square.defjvp(lambda primals, tangents: (square(primals[0]), 2 * primals[0] * tangents[0]))
    assert fm.grad(lambda x: square(x).sum())(X).tolist() == [6.0, 2.0, 4.0]


def test_what_a_callback_raises_comes_out_as_it_was():
    class Mine(Exception):
        pass

    def fail(v):
        raise Mine("no")

    f = fm.jit(lambda x: fm.pure_callback(fail, x, x))
    for _ in range(2):
        with pytest.raises(Mine, match="no"):
            f(X)


@pytest.mark.parametrize(("result", "words"), [
    (lambda v: v[:2], r"float64\[2\], but it was declared as f64\[3\]"),
    (lambda v: v + 1j, "complex128"),
    (lambda v: (v, v), "structure"),
    (lambda v: "a", "declared"),
])  # fmt: skip
def test_results_are_checked(result, words):
    f = lambda x: fm.pure_callback(result, x, x)
    for g in (f, fm.jit(f)):
        with pytest.raises(TypeError, match=words):
            g(X)


def test_bad_arguments():
    with pytest.raises(TypeError, match="expects a function"):
        fm.pure_callback(3, X, X)
    with pytest.raises(ValueError, match="vmap_method"):
        fm.pure_callback(np.sort, X, X, vmap_method="mean")
    with pytest.raises(TypeError, match="not an array"):
        fm.pure_callback(np.sort, X, "a")
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        fm.pure_callback(np.sort, "f32", X)


def test_io_callbacks_run_once_each_time():
    seen = []
    f = fm.jit(lambda x: (fm.io_callback(lambda v: seen.append(float(v)), None, x), x)[1])
    f(1.0), f(2.0)
    assert seen == [1.0, 2.0]
    fm.vmap(f)(jnp.arange(3.0))
    assert sorted(seen[2:]) == [0.0, 1.0, 2.0]
    with pytest.raises(NotImplementedError, match="ordered"):
        fm.vmap(lambda x: fm.io_callback(print, None, x, ordered=True))(X)


def test_ordered_effects_keep_their_order_through_control_flow():
    seen = []
    note = lambda v: fm.io_callback(lambda v: seen.append(int(v)), None, v, ordered=True)

    def f(n):
        note(n)

        def body(i, c):
            note(i)
            lax.cond(i % 2 == 0, lambda: note(10 * i), lambda: None)
            return c

        lax.fori_loop(0, 3, body, 0)
        lax.fori_loop(0, n, body, 0)
        lax.while_loop(lambda c: c < 2, lambda c: (note(100 + c), c + 1)[1], 0)
        fm.jit(lambda: note(7))()
        note(n + 1)

    fm.jit(f)(2)
    assert seen == [2, 0, 0, 1, 2, 20, 0, 0, 1, 100, 101, 7, 3]


def test_effects_of_dead_examples_do_not_happen():
    seen = []
    look = lambda v: fm.debug.callback(lambda v: seen.append(float(v)), v)
    fm.vmap(lambda x: lax.cond(x > 1.5, lambda: look(x), lambda: None))(X)
    assert sorted(seen) == [2.0, 3.0]
    seen.clear()
    fm.vmap(lambda n: lax.while_loop(lambda c: c < n, lambda c: (look(c), c + 1)[1], 0))(jnp.array([0, 2, 1]))
    assert sorted(seen) == [0.0, 0.0, 1.0]


def test_debug_print(capsys):
    def f(x):
        fm.debug.print("x = {x} {} {:.2f}", "of f", x[0], x=x, ordered=True)
        return x.sum()

    fm.jit(f)(X), fm.grad(f)(X), f(X)
    assert capsys.readouterr().out == "x = [3. 1. 2.] of f 3.00\n" * 3
    fm.vmap(lambda x: fm.debug.print("{}", x))(X)
    assert sorted(capsys.readouterr().out.split()) == ["1.0", "2.0", "3.0"]
    with pytest.raises(ValueError, match="does not use"):
        fm.debug.print("{}", 1, 2)
    with pytest.raises(TypeError, match="format"):
        fm.debug.print(X)


def test_effects_under_other_transforms():
    seen = []

    def f(x):
        fm.debug.callback(lambda v: seen.append(float(v)), x)
        return jnp.sin(x)

    fm.grad(fm.checkpoint(f))(1.0)
    assert seen == [1.0]
    seen.clear()

    def read(x):
        return jnp.sin(x * fm.io_callback(lambda: seen.append(0) or np.float32(2.0), np.float32(0)))

    assert float(fm.grad(fm.checkpoint(read))(1.0)) == pytest.approx(2 * np.cos(2.0)) and len(seen) == 1
    seen.clear()
    fm.jit(fm.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]))(0.5)
    np.testing.assert_allclose(seen, [0.5, np.sin(0.5)], rtol=1e-6)


def test_breakpoint_shows_local_arrays(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO("p y * 2\nc\n"))
    monkeypatch.setattr(sys, "stdout", out)

    def f(x):
        y = x + 1
        fm.debug.breakpoint()
        return y

    assert float(fm.jit(f)(1.0)) == 2.0
    assert "local arrays: x, y" in out.getvalue() and "4.0" in out.getvalue()


def host_product(x, y, method=None):
    """x * y on the host, and its derivative."""
    out = fm.ShapeDtypeStruct(jnp.shape(x), np.float32)
    return fm.pure_callback(np.multiply, out, x, y, vmap_method=method, vjp=product_vjp)


def product_vjp(xy, ct):
    x, y = xy
    return ct * y, ct * x


@pytest.mark.parametrize("wrap", [lambda f: f, fm.jit, fm.checkpoint], ids=["plain", "jit", "checkpoint"])
def test_a_derivative_on_the_host(wrap):
    f = wrap(lambda x, y: host_product(x, y).sum())
    x, y = np.float32([1, 2]), np.float32([3, 4])
    assert float(f(x, y)) == 11.0
    gradients = fm.grad(f, (0, 1))(x, y)
    assert gradients[0].tolist() == [3.0, 4.0] and gradients[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_a_derivative_on_the_host_of_a_batch(method):
    x, y = np.float32([1, 2, 3]), np.float32(5)
    assert fm.vmap(fm.grad(lambda x: host_product(x, y, method)))(x).tolist() == [5.0] * 3
    assert fm.grad(lambda y: fm.vmap(lambda x: host_product(x, y, method))(x).sum())(y).tolist() == 6.0


def test_a_derivative_on_the_host_of_integers_and_trees():
    def vjp(args, ct):
        n = args[1]
        return {"a": ct["b"] * n}, 0 * n

    def f(x, n):
        return fm.pure_callback(lambda t, n: {"b": t["a"] * np.float32(n)}, {"b": x}, {"a": x}, n, vjp=vjp)["b"]

    assert float(fm.grad(f)(np.float32(2), np.int32(3))) == 3.0
    assert float(fm.jit(fm.grad(f))(np.float32(2), np.int32(3))) == 3.0


def test_errors_of_a_derivative_on_the_host():
    with pytest.raises(TypeError, match="by position alone.*'y'"):
        fm.pure_callback(np.multiply, X, X, y=X, vjp=product_vjp)
    bad = lambda x: fm.pure_callback(np.sin, x, x, vjp=lambda args, ct: (np.ones(7),))  # noqa: E731
    with pytest.raises(TypeError, match=r"vjp of a pure_callback.*float64\[7\], but it was declared as f32\[\]"):
        fm.grad(bad)(np.float32(1))
    f = lambda x: host_product(x, x)  # noqa: E731
    with pytest.raises(TypeError, match="forward mode through"):
        fm.jvp(f, (np.float32(1),), (np.float32(1),))
