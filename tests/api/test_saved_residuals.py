"""`saved_residuals`: which arrays, how large, and where they come from; against JAX's list, and against what `vjp` holds."""

import jax
import jax.ad_checkpoint
import jax.numpy
import numpy as np
import pytest
from jax._src.ad_checkpoint import saved_residuals as jax_saved_residuals

import funcml as fm
import funcml.numpy as jnp
from funcml.ad_checkpoint import print_saved_residuals, saved_residuals

X = np.ones((3, 3), np.float32)


def functions(np_, lib, name):
    """Functions of either library with the same residuals."""

    def mixed(x, y):
        x1, x2 = x
        z = name(np_.sin(3.0), "z")
        return z * ((x1 * x2) * y) * np.array([3.0], np.float32)

    def layers(x, w):
        return np_.tanh(np_.sin(x @ w) @ w)

    return {
        "mixed": (mixed, ((2.0, 3.0), 4.0)),
        "layers": (layers, (X, X)),
        "checkpoint": (lib.checkpoint(layers), (X, X)),
        "dots": (lib.checkpoint(layers, policy=lib.checkpoint_policies.dots_saveable), (X, X)),
    }


@pytest.mark.parametrize("case", ["mixed", "layers", "checkpoint", "dots"])
def test_as_many_bytes_as_in_jax(case):
    ours, args = functions(jnp, fm, fm.checkpoint_name)[case]
    theirs, _ = functions(jax.numpy, jax, jax.ad_checkpoint.checkpoint_name)[case]
    found, wanted = saved_residuals(ours, *args), jax_saved_residuals(theirs, *args)
    literals = 4 * sum(reason == "from a literal" for _, reason in wanted)
    assert sum(r.bytes for r in found) <= sum(a.size * a.dtype.itemsize for a, _ in wanted) - literals
    of_inputs = ("from the argument", "from a constant")
    assert [r.reason for r in found if not r.equation] == [reason for _, reason in wanted if reason.startswith(of_inputs)]


def test_it_is_what_vjp_holds():
    @fm.jit
    def layer(x, w):
        return jnp.tanh(x @ w)

    def f(p, x):
        y = layer(layer(x, p["w"]), p["w"])
        return fm.lax.scan(lambda c, t: (jnp.sin(c * t), c), y.sum(), jnp.arange(5.0))

    args = ({"w": X}, X)
    held = fm.vjp(f, *args)[1].args[0]
    found = saved_residuals(f, *args)
    assert {r.aval.shape for r in found} == {np.shape(x) for x in held}
    assert "from the argument p['w']" in [r.reason for r in found]


def test_two_calls_of_one_program_are_two_arrays():
    layer = fm.jit(lambda x: jnp.sin(x))
    assert [r.equation for r in saved_residuals(lambda x: layer(layer(x)), X)] == ["cos", "cos"]


def test_steps_and_lines():
    w = np.ones((64, 64), np.float32)

    def step(c, x):
        return jnp.sin(c @ w) * x, None

    found = saved_residuals(lambda c, x: fm.lax.scan(step, c, x), np.ones(64, np.float32), np.ones(7, np.float32))
    inner = next(r for r in found if r.equation == "dot_general")
    assert inner.steps == (7,) and inner.bytes == 7 * 64 * 4 and inner.aval.shape == (7, 64)
    assert f"{step.__code__.co_firstlineno + 1} (" in inner.line and __file__ in inner.line
    assert inner.reason == f"output of dot_general from {inner.line}, in each of 7 steps of a scan"


def test_types_alone_will_do():
    found = saved_residuals(jnp.sin, fm.ShapeDtypeStruct((1000, 1000), jnp.float32))
    assert [r.bytes for r in found] == [4_000_000]
    assert {r.aval.dtype.name for r in saved_residuals(lambda n, x: jnp.sin(x * n), 3, np.float32(1.0))} == {"float32"}
    assert saved_residuals(lambda x: 2.0 * x, X) == []


def test_printed(capsys):
    print_saved_residuals(lambda x, w: jnp.sin(x[0] * w).sum(), X, np.ones(3, np.float32))
    said = capsys.readouterr().out.splitlines()
    assert said[-1].split() == [said[-1].split()[0], "bytes", "in", str(len(said) - 1), "arrays"]
    assert sum(int(line.split()[0].replace(",", "")) for line in said[:-1]) == int(said[-1].split()[0].replace(",", ""))


def test_only_functions():
    with pytest.raises(TypeError, match="expects a function"):
        saved_residuals(3)
