"""The functions that are measured, written once for both libraries: `np` is `funcml.numpy` or `jax.numpy`.

    mlp          : 50 layers of tanh(x w + b), mean squared error
    transformer  : 12 layers of pre-norm attention and gelu, written out, mean cross-entropy; or scanned over its layers
    thirty       : 30 elementwise operations and a sum
    compiled     : name -> (model(library, params, ...), inputs), the programs whose compiled code is timed

Parameters are trees of NumPy arrays from a seeded generator; `np.asarray` makes them either library's.
"""

from __future__ import annotations

import math

import numpy

__all__ = [
    "compiled", "mlp", "mlp_inputs", "scanned_transformer", "scanned_transformer_inputs", "thirty", "transformer",
    "transformer_inputs",
]


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
    return _cross_entropy(np, x @ params["head"], targets)


def scanned_transformer(np, scan, params, x, targets, heads: int = 4):
    """The same with the blocks' parameters stacked: `scan(step, x, blocks)` goes through them."""
    x, _ = scan(lambda x, p: (_block(np, x, p, heads), None), x, params["blocks"])
    return _cross_entropy(np, x @ params["head"], targets)


def scanned_transformer_inputs(*sizes: int):
    """(params, x, targets) for `scanned_transformer`; sizes as for `transformer_inputs`."""
    params, x, targets = transformer_inputs(*sizes)
    blocks = {name: numpy.stack([block[name] for block in params["blocks"]]) for name in params["blocks"][0]}
    return {**params, "blocks": blocks}, x, targets


def _cross_entropy(np, logits, targets):
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


# ---- programs for compiled speed -----------------------------------------------------------------------------------
#
# `library` has `package` (funcml or jax, with `lax`) and `np`.


def cnn(library, params, images, labels):
    """Two convolutions with pooling and a dense layer; mean cross-entropy."""
    lax, np = library.package.lax, library.np
    x = images
    for kernel in params["kernels"]:
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = np.maximum(x, 0.0)
        x = lax.reduce_window(x, -math.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    logits = x.reshape(x.shape[0], -1) @ params["dense"]
    return -np.mean(np.take_along_axis(logits - np.log(np.sum(np.exp(logits), -1, keepdims=True)), labels[:, None], 1))


def _cnn_inputs(batch: int = 32):
    rng = numpy.random.default_rng(1)
    kernels = [rng.normal(0, 0.2, shape).astype("float32") for shape in ((3, 3, 1, 16), (3, 3, 16, 32))]
    params = {"kernels": kernels, "dense": _normal(rng, 7 * 7 * 32, 10)}
    return params, rng.normal(size=(batch, 28, 28, 1)).astype("float32"), rng.integers(0, 10, batch).astype("int32")


def lstm(library, params, xs, targets):
    """An LSTM whose steps are written out one after the other; mean squared error."""
    np = library.np
    h = c = np.zeros((xs.shape[1], params["w"].shape[1] // 4), "float32")
    for t in range(xs.shape[0]):
        gates = xs[t] @ params["u"] + h @ params["w"] + params["b"]
        i, f, g, o = np.split(gates, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    return np.mean((h - targets) ** 2)


def _lstm_inputs(time: int = 20, batch: int = 32, width: int = 64):
    rng = numpy.random.default_rng(2)
    params = {"u": _normal(rng, width, 4 * width), "w": _normal(rng, width, 4 * width), "b": numpy.zeros(4 * width, "float32")}
    return params, rng.normal(size=(time, batch, width)).astype("float32"), _normal(rng, batch, width)


def spectral_filter(library, filter_, signals):
    """The energy of signals filtered in the frequency domain."""
    np = library.np
    return np.sum(np.fft.irfft(np.fft.rfft(signals) * filter_) ** 2)


def _spectral_inputs(batch: int = 64, length: int = 4096):
    rng = numpy.random.default_rng(3)
    return rng.normal(size=length // 2 + 1).astype("float32"), rng.normal(size=(batch, length)).astype("float32")


def gaussian(library, factor, x):
    """The log-density of a normal distribution whose covariance is A A^T + I: a product, a factorisation, two solves."""
    np = library.np
    cov = factor @ factor.T + np.eye(factor.shape[0], dtype="float32")
    return np.sum(x * np.linalg.solve(cov, x)) + np.linalg.slogdet(cov)[1] + np.sum(np.linalg.cholesky(cov))


def _gaussian_inputs(n: int = 128, columns: int = 16):
    rng = numpy.random.default_rng(4)
    return _normal(rng, n, n), rng.normal(size=(n, columns)).astype("float32")


def compiled() -> dict:
    """The programs by name, each with the arguments behind `library`; the first is differentiated."""
    return {
        "MLP": (lambda library, *args: mlp(library.np, *args), mlp_inputs(10, 256, 128)),
        "CNN": (cnn, _cnn_inputs()),
        "transformer": (lambda library, *args: transformer(library.np, *args), transformer_inputs(4, 128, 4, 64)),
        "LSTM": (lstm, _lstm_inputs()),
        "FFT": (spectral_filter, _spectral_inputs()),
        "linear algebra": (gaussian, _gaussian_inputs()),
    }
