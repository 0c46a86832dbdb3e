"""Golden text: the jaxpr and the StableHLO of a few small programs, reviewed like code.

`FUNCML_UPDATE_GOLDEN=1` writes the files in `tests/golden` anew; read the difference before committing it. Text is for form:
what the programs compute is tested elsewhere.
"""

import os
from pathlib import Path

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp

GOLDEN = Path(__file__).parent / "golden"

X = np.zeros((2, 3), np.float32)
W = np.zeros((3, 4), np.float32)
B = np.zeros(4, np.float32)


def loss(w, b, x):
    return jnp.mean((x @ w + b) ** 2)


def masked(x):
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)


@fm.custom_vjp
def scaled(x):
    return jnp.sin(x)


scaled.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (10.0 * ct,))

block = fm.jit(lambda x, w: jnp.sin(x @ w))

PROGRAMS = {
    "loss": (loss, (W, B, X)),
    "grad_loss": (fm.grad(loss, (0, 1)), (W, B, X)),
    "vmap_loss": (fm.vmap(loss, in_axes=(None, None, 0)), (W, B, np.zeros((5, 2, 3), np.float32))),
    "grad_where": (fm.grad(masked), (np.float32(0),)),
    "jvp_custom_vjp": (lambda x, t: fm.jvp(scaled, (x,), (t,)), (np.float32(0), np.float32(1))),
    "nested_calls": (lambda x, w: block(block(x, w), w), (np.zeros((3, 3), np.float32), np.zeros((3, 3), np.float32))),
    "grad_checkpoint": (fm.grad(fm.checkpoint(lambda x: jnp.sin(jnp.sin(x)))), (np.float32(0),)),
    "index_update": (lambda x, i: x.at[i].add(1.0)[:, 1:], (X, np.int32(0))),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", ["jaxpr", "mlir"])
def test_text(name, kind):
    function, args = PROGRAMS[name]
    text = str(fm.make_jaxpr(function)(*args)) + "\n" if kind == "jaxpr" else fm.jit(function).lower(*args).as_text()
    path = GOLDEN / f"{name}.{kind}"
    if os.environ.get("FUNCML_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} has changed; see the module docstring"
