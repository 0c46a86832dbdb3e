"""How much memory a backward pass takes, and what it costs to take less.

    scans        : grad of a scan of 5, 50 and 500 steps: bytes kept (`saved_residuals`), temporary bytes of the program, time
    transformers : value_and_grad with everything saved, with JAX's policies, with `policy="auto"`: bytes kept, and time;
                   the same with the blocks in a scan, each a checkpoint: temporary bytes, and time

Bytes kept are those that the forward pass hands to the backward pass beside arguments and constants, counted on the programs.
Temporary bytes are what XLA allocates for the whole compiled program: it merges, moves and (on CPU) ignores barriers as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.ad_checkpoint
import jax.numpy
import models
import numpy
from jax._src.ad_checkpoint import saved_residuals as jax_saved_residuals
from timing import Row, Sample, interleaved

import funcml
import funcml.numpy
from funcml.ad_checkpoint import saved_residuals

__all__ = ["rows"]

_STEPS = (5, 50, 500)


def rows(quick: bool = False) -> Iterator[Row]:
    """Scans, then transformers."""
    rounds = 3 if quick else 15
    yield from _scans(rounds)
    yield from _transformers(rounds)
    yield from _scanned_transformers(rounds)


# ---- bytes ---------------------------------------------------------------------------------------------------------


def _kept(function: Callable, *args) -> Sample:
    return Sample(sum(r.bytes for r in saved_residuals(function, *args) if r.equation is not None), 1)


def _kept_by_jax(function: Callable, *args) -> Sample:
    outside = ("from the argument", "from a constant", "from a literal")
    held = [a for a, reason in jax_saved_residuals(function, *args) if not reason.startswith(outside)]
    return Sample(sum(a.size * a.dtype.itemsize for a in held), 1)


def _temporary(function: Callable, *args) -> Sample:
    analysis = funcml.jit(funcml.grad(function)).lower(*args).compile().memory_analysis()
    return Sample(analysis["temp_size_in_bytes"], 1)


def _temporary_in_jax(function: Callable, *args) -> Sample:
    return Sample(jax.jit(jax.grad(function)).lower(*args).compile().memory_analysis().temp_size_in_bytes, 1)


# ---- scans ---------------------------------------------------------------------------------------------------------


def _network(np, lax, params, xs, **options):
    """A recurrent network: a product and a tanh in each step."""

    def step(h, x):
        h = np.tanh(h @ params["w"] + x @ params["u"] + params["b"])
        return h, np.sum(h)

    h = np.zeros((xs.shape[1], params["w"].shape[0]), "float32")
    return np.mean(lax.scan(step, h, xs, **options)[1])


def _oscillators(np, lax, params, xs, **options):
    """Pendulums with friction, driven: some twenty elementwise operations in each step."""

    def step(state, x):
        angle, speed = state
        force = -params["stiffness"] * np.sin(angle) - params["friction"] * speed * np.abs(speed) + x * np.cos(angle)
        speed = speed + 0.01 * force
        return (angle + 0.01 * speed, speed), None

    start = np.zeros(xs.shape[1], "float32") + 1.0
    angle, speed = lax.scan(step, (start, 0.0 * start), xs, **options)[0]
    return np.mean(angle**2 + speed**2)


def _scan_inputs(steps: int) -> dict:
    rng = numpy.random.default_rng(0)
    normal = lambda *shape: rng.normal(0, 0.1, shape).astype("float32")
    width = 4096
    return {
        "recurrent network": (_network, {"w": normal(64, 64), "u": normal(16, 64), "b": normal(64)}, normal(steps, 32, 16)),
        "pendulums": (_oscillators, {"stiffness": normal(width), "friction": normal(width)}, normal(steps, width)),
    }


def _scans(rounds: int) -> Iterator[Row]:
    for steps in _STEPS:
        for name, (model, params, xs) in _scan_inputs(steps).items():
            ours = lambda p, x, m=model, **options: m(funcml.numpy, funcml.lax, p, x, **options)
            theirs = lambda p, x, m=model: m(jax.numpy, jax.lax, p, x)
            two_levels = lambda p, x, f=ours: f(p, x, checkpoint="sqrt")
            what = f"{name}, {steps} steps"
            kept, temporary = _kept_by_jax(theirs, params, xs), _temporary_in_jax(theirs, params, xs)
            forms = {"": ours, ', "sqrt"': two_levels}
            steppers = {suffix: _step(funcml, f, (params, xs)) for suffix, f in forms.items()}
            times = interleaved({**steppers, "JAX": _step(jax, theirs, (params, xs))}, rounds=rounds)
            for suffix, f in forms.items():
                yield Row("bytes kept", what + suffix, _kept(f, params, xs), "JAX", kept, unit="B")
                yield Row("temporary bytes", what + suffix, _temporary(f, params, xs), "JAX", temporary, unit="B")
                yield Row("time of a gradient", what + suffix, times[suffix], "JAX", times["JAX"])


# ---- transformers --------------------------------------------------------------------------------------------------


_ATTRIBUTES = {
    "dots": "dots_saveable",
    "dots without batch": "dots_with_no_batch_dims_saveable",
    "nothing": "nothing_saveable",
}


def _policies() -> dict:
    """Name -> (ours, JAX's); each wraps a loss function."""

    def both(name: str):
        ours, theirs = getattr(funcml.checkpoint_policies, name), getattr(jax.checkpoint_policies, name)
        return lambda f: funcml.checkpoint(f, policy=ours), lambda f: jax.checkpoint(f, policy=theirs)

    return {"everything": (lambda f: f, lambda f: f), **{name: both(attribute) for name, attribute in _ATTRIBUTES.items()}}


def _automatic() -> dict:
    def within(memory):
        return lambda f: funcml.checkpoint(f, policy="auto", memory=memory)

    return {"auto": within(None), "auto, 20 MB": within(20_000_000), "auto, 5 MB": within(5_000_000)}


def _transformers(rounds: int) -> Iterator[Row]:
    """Ours against JAX with the same policy; "auto" against JAX saving all, and against JAX's policy nearest in bytes."""
    inputs = models.transformer_inputs(6, 256, 4, 128)
    ours = lambda p, x, t: models.transformer(funcml.numpy, p, x, t)
    theirs = lambda p, x, t: models.transformer(jax.numpy, p, x, t)
    contestants, kept = {}, {}
    for name, (wrap, wrap_jax) in _policies().items():
        contestants[f"JAX {name}"] = _step(jax, wrap_jax(theirs), inputs)
        kept[f"JAX {name}"] = _kept_by_jax(wrap_jax(theirs), *inputs)
        contestants[name], kept[name] = _step(funcml, wrap(ours), inputs), _kept(wrap(ours), *inputs)
    for name, wrap in _automatic().items():
        contestants[name], kept[name] = _step(funcml, wrap(ours), inputs), _kept(wrap(ours), *inputs)
    times = interleaved(contestants, rounds=rounds)
    for name in _policies():
        yield from _pair(name, f"JAX {name}", kept, times)
    for name, near in zip(_automatic(), ("dots", "dots without batch", "nothing"), strict=True):
        yield from _pair(name, "JAX everything", kept, times)
        yield from _pair(name, f"JAX {near}", kept, times)


def _pair(name: str, other: str, kept: dict, times: dict) -> Iterator[Row]:
    yield Row("bytes kept", f"transformer: {name}", kept[name], other, kept[other], unit="B")
    yield Row("time of a step", f"transformer: {name}", times[name], other, times[other])


def _step(library, loss: Callable, inputs) -> Callable:
    """One call of the compiled value and gradient."""
    arrays = library.tree.map(library.numpy.asarray, inputs)
    compiled = library.jit(library.value_and_grad(loss))
    return lambda: library.block_until_ready(compiled(*arrays))


def _scanned_transformers(rounds: int) -> Iterator[Row]:
    """The blocks in a scan, each a checkpoint; "auto" against JAX saving all and JAX saving nothing."""
    inputs = models.scanned_transformer_inputs(6, 256, 4, 128)
    losses, losses_of_jax = {}, {}
    for name in _policies():
        policy, policy_of_jax = _named(name)
        losses[name] = _through(funcml.numpy, lambda f, x, p, c=policy: funcml.lax.scan(f, x, p, checkpoint=c))
        losses_of_jax[name] = _through(jax.numpy, lambda f, x, p, c=policy_of_jax: jax.lax.scan(c(f), x, p))
    losses["auto"] = _through(funcml.numpy, lambda f, x, p: funcml.lax.scan(f, x, p, checkpoint="auto"))
    contestants = {name: _step(funcml, loss, inputs) for name, loss in losses.items()}
    contestants |= {f"JAX {name}": _step(jax, loss, inputs) for name, loss in losses_of_jax.items()}
    times = interleaved(contestants, rounds=rounds)
    bytes_of_jax = {name: _temporary_in_jax(loss, *inputs) for name, loss in losses_of_jax.items()}
    pairs = [*[(name, name) for name in losses_of_jax], ("auto", "everything"), ("auto", "nothing")]
    for name, other in pairs:
        what, peer = f"transformer in a scan: {name}", f"JAX {other}"
        yield Row("temporary bytes", what, _temporary(losses[name], *inputs), peer, bytes_of_jax[other], unit="B")
        yield Row("time of a step", what, times[name], peer, times[peer])


def _named(name: str) -> tuple:
    """A policy for `scan(checkpoint=)`, and JAX's as a wrapper of a step."""
    if name == "everything":
        return None, lambda f: f
    attribute = _ATTRIBUTES[name]
    theirs = getattr(jax.checkpoint_policies, attribute)
    return getattr(funcml.checkpoint_policies, attribute), lambda f: jax.checkpoint(f, policy=theirs, prevent_cse=False)


def _through(np, scan: Callable) -> Callable:
    return lambda params, x, targets: models.scanned_transformer(np, scan, params, x, targets)
