"""The functions that are measured, written once for both libraries: `np` is `funcml.numpy` or `jax.numpy`.

    mlp          : 50 layers of tanh(x w + b), mean squared error
    transformer  : 12 layers of pre-norm attention and gelu, written out, mean cross-entropy
    thirty       : 30 elementwise operations and a sum

Parameters are trees of NumPy arrays from a seeded generator; `np.asarray` makes them either library's.
"""

from __future__ import annotations

import math

import numpy

__all__ = ["mlp", "mlp_inputs", "thirty", "transformer", "transformer_inputs"]


# ---- an MLP ------------------------------------------------------------------------------------------------------


def mlp(np, params, x, y):
    """The mean squared error of a deep MLP; params are pairs (w, b)."""
    for w, b in params:
        x = np.tanh(x @ w + b)
    return np.mean((x - y) ** 2)


def mlp_inputs(layers: int = 50, width: int = 32, batch: int = 16):
    """(params, x, y) for `mlp`, float32."""
    rng = numpy.random.default_rng(0)
    params = [(_normal(rng, width, width), _normal(rng, width)) for _ in range(layers)]
    return params, _normal(rng, batch, width), _normal(rng, batch, width)


def _normal(rng, *shape):
    scale = 1.0 / math.sqrt(shape[0])
    return rng.normal(0.0, scale, shape).astype("float32")


# ---- a transformer -----------------------------------------------------------------------------------------------


def _layer_norm(np, x, scale, shift):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * scale + shift


def _softmax(np, x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def _gelu(np, x):
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def _heads(np, x, heads: int):
    """[batch, time, width] -> [batch, heads, time, width / heads]"""
    batch, time, width = x.shape
    return np.swapaxes(np.reshape(x, (batch, time, heads, width // heads)), 1, 2)


def _attention(np, x, p, heads: int):
    batch, time, width = x.shape
    q, k, v = (_heads(np, x @ p[name], heads) for name in ("query", "key", "value"))
    scores = q @ np.swapaxes(k, 2, 3) / math.sqrt(width / heads)
    causal = np.tril(np.ones((time, time), bool))
    mixed = _softmax(np, np.where(causal, scores, -1e9)) @ v
    return np.reshape(np.swapaxes(mixed, 1, 2), (batch, time, width)) @ p["out"]


def _block(np, x, p, heads: int):
    x = x + _attention(np, _layer_norm(np, x, p["scale1"], p["shift1"]), p, heads)
    hidden = _gelu(np, _layer_norm(np, x, p["scale2"], p["shift2"]) @ p["up"] + p["up_bias"])
    return x + hidden @ p["down"] + p["down_bias"]


def transformer(np, params, x, targets, heads: int = 4):
    """The mean cross-entropy of a transformer on embedded tokens x; targets are one-hot."""
    for p in params["blocks"]:
        x = _block(np, x, p, heads)
    logits = x @ params["head"]
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    log_probabilities = shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
    return -np.mean(np.sum(targets * log_probabilities, axis=-1))


def transformer_inputs(layers: int = 12, width: int = 64, batch: int = 2, time: int = 16, words: int = 100):
    """(params, x, targets) for `transformer`, float32."""
    rng = numpy.random.default_rng(0)
    blocks = [_block_params(rng, width) for _ in range(layers)]
    targets = numpy.eye(words, dtype="float32")[rng.integers(0, words, (batch, time))]
    return {"blocks": blocks, "head": _normal(rng, width, words)}, _normal(rng, batch, time, width), targets


def _block_params(rng, width: int) -> dict:
    square = {name: _normal(rng, width, width) for name in ("query", "key", "value", "out")}
    ones = {name: numpy.ones(width, "float32") for name in ("scale1", "scale2")}
    zeros = {name: numpy.zeros(width, "float32") for name in ("shift1", "shift2", "down_bias")}
    wide = {"up": _normal(rng, width, 4 * width), "up_bias": numpy.zeros(4 * width, "float32")}
    return {**square, **ones, **zeros, **wide, "down": _normal(rng, 4 * width, width)}


# ---- thirty operations -------------------------------------------------------------------------------------------


def thirty(np, x):
    """Seven times four elementwise operations, a square and a sum; `np` may also be torch."""
    y = x
    for _ in range(7):
        y = np.sin(y) * x + y
        y = np.tanh(y)
    return np.sum(y * y)
