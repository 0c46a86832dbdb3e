"""Scaled dot-product attention.

    logits = scale q k^T + bias,  masked where a query may not see a key;    out = softmax(logits) v

Axes: B batch, T queries, S keys and values, N heads of queries, K heads of keys, G = N / K, H length of a vector. Each head
of keys serves G heads of queries, so inside the queries are [B, T, K, G, H] and the logits [B, K, T, G, S].

Source: Vaswani et al. (2017); grouped queries: Ainslie et al. (2023).
"""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.core.values import Array
from funcml.lowering.execute import fused
from funcml.nn.normalization import logsumexp, softmax
from funcml.numpy.promotion import as_array, broadcast_shapes, exact, literal, operand, spread
from funcml.numpy.rows import fill
from funcml.primitives import elementwise as ew
from funcml.primitives import shaping
from funcml.primitives.axes import broadcast_in_dim, reshape, transpose
from funcml.primitives.contraction import DotDimensions, dot_general
from funcml.primitives.identities import stop_gradient

__all__ = ["dot_product_attention"]

_NAME = "dot_product_attention"


def dot_product_attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    *,
    scale=None,
    is_causal: bool = False,
    query_seq_lengths=None,
    key_value_seq_lengths=None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
):
    """softmax(scale query key^T + bias) value for each head: [B, T, N, H] x [B, S, K, H] x [B, S, K, H] -> [B, T, N, H].

    The batch may be missing everywhere. N is a multiple of K: each head of keys and values serves N / K heads of queries.
    `bias` is added to the logits and `mask` (bool) says which keys a query may see; both broadcast to [B, N, T, S]. With
    `is_causal` query t sees the keys up to t; with `local_window_size` (left, right) those from t - left to t + right.
    Of query and key sequences only the first `query_seq_lengths` and `key_value_seq_lengths` [B] count: what lies beyond may
    be anything, and the result for such queries is 0. A query that may see no key gets the mean of all values. `scale` is
    1 / sqrt(H) by default. Softmax is computed in float32 at least.

    With `return_residual` the pair of the result and the logarithms of the sums of exponentials [B, T, N], which have no
    derivative. `implementation` is None or "xla"; "cudnn" raises NotImplementedError. Raises ValueError for shapes and
    dtypes that do not fit.

    >>> import numpy as np
    >>> x = np.ones((1, 2, 1, 4), np.float32)
    >>> dot_product_attention(x, x, 3 * x).tolist()
    [[[[3.0, 3.0, 3.0, 3.0]], [[3.0, 3.0, 3.0, 3.0]]]]
    """
    _check_implementation(implementation)
    q, k, v = (_with_batch(what, x) for what, x in (("query", query), ("key", key), ("value", value)))
    bias, mask = (None if x is None else _with_batch(what, x) for what, x in (("bias", bias), ("mask", mask)))
    _check_shapes(q, k, v, bias, mask)
    lengths = [_lengths(what, n, q.shape[0]) for what, n in (
        ("query_seq_lengths", query_seq_lengths), ("key_value_seq_lengths", key_value_seq_lengths))]
    scale = 1 / math.sqrt(q.shape[3]) if scale is None and q.shape[3] else 1.0 if scale is None else scale
    out, residual = _attention(
        q, k, v, bias, mask, exact(operand(_NAME, scale)), *lengths, bool(is_causal), _window(local_window_size),
        bool(return_residual),
    )  # fmt: skip
    shape = aval_of(operand(_NAME, query)).shape
    out = reshape(out, shape)
    return (out, reshape(residual, shape[:-1])) if return_residual else out


# ---- reading arguments -----------------------------------------------------------------------------------------


def _check_implementation(implementation) -> None:
    if implementation == "cudnn":
        raise NotImplementedError(
            f"{_NAME}: implementation='cudnn' needs a library of NVIDIA's GPUs that is not called; leave it out, or pass 'xla'"
        )
    if implementation not in (None, "xla"):
        raise ValueError(f"{_NAME}: expected implementation None, 'xla' or 'cudnn', got {implementation!r}")


def _with_batch(what: str, x):
    x = as_array(operand(_NAME, x))
    if x.ndim < 3 and what in ("query", "key", "value"):
        raise ValueError(f"{_NAME}: expected a {what} [B, length, heads, H] or [length, heads, H], got {x.aval}")
    if x.ndim > 4:
        raise ValueError(f"{_NAME}: expected a {what} of at most 4 axes, got {x.aval}")
    return reshape(x, (1,) * (4 - x.ndim) + x.shape)


def _check_shapes(q, k, v, bias, mask) -> None:
    if v.shape != k.shape or v.dtype != k.dtype:
        raise ValueError(f"{_NAME}: expected a value like the key {k.aval}, got {v.aval}")
    if q.dtype != k.dtype or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3]):
        raise ValueError(
            f"{_NAME}: expected a query [B, T, N, H] with the dtype, B and H of the key [B, S, K, H], {k.aval}; got {q.aval}"
        )
    if not dtypes.is_float(q.dtype):
        raise ValueError(f"{_NAME}: expected floats, got the query {q.aval}")
    heads, key_heads = q.shape[2], k.shape[2]
    if not key_heads or heads % key_heads:
        raise ValueError(f"{_NAME}: the query has {heads} heads, which is no multiple of the {key_heads} heads of the key")
    whole = (q.shape[0], heads, q.shape[1], k.shape[1])
    if mask is not None and not dtypes.is_bool(mask.dtype):
        raise ValueError(f"{_NAME}: expected a mask of bool, got {mask.aval}; a mask that is added is a bias")
    for what, x in (("bias", bias), ("mask", mask)):
        if x is not None and any(n not in (1, m) for n, m in zip(x.shape, whole, strict=True)):
            raise ValueError(f"{_NAME}: expected a {what} that broadcasts to [B, N, T, S] = {list(whole)}, got {x.aval}")


def _lengths(what: str, x, batch: int):
    if x is None:
        return None
    aval = aval_of(operand(_NAME, x))
    if not dtypes.is_integer(aval.dtype) or aval.shape != (batch,):
        raise ValueError(f"{_NAME}: expected {what} as integers [B] = [{batch}], got {aval}")
    return x


def _window(size) -> tuple[int, int] | None:
    if size is None or (isinstance(size, tuple | list) and len(size) == 2):
        return None if size is None else (int(size[0]), int(size[1]))
    if not isinstance(size, int | np.integer):
        raise ValueError(f"{_NAME}: expected local_window_size as an int or a pair (left, right), got {size!r}")
    return int(size), int(size)


# ---- the program -----------------------------------------------------------------------------------------------

_LOGITS = DotDimensions(((4,), (3,)), ((0, 2), (0, 2)))
_OUTPUT = DotDimensions(((4,), (1,)), ((0, 1), (0, 2)))


@fused(static=("is_causal", "window", "with_residual"))
def _attention(q, k, v, bias, mask, scale, q_lengths, k_lengths, is_causal, window, with_residual):
    batch, queries, heads, size = q.shape
    key_heads = k.shape[2]
    q, k, v = _without_padding(q, q_lengths), _without_padding(k, k_lengths), _without_padding(v, k_lengths)
    grouped = reshape(q, (batch, queries, key_heads, heads // key_heads, size))
    logits = dot_general(grouped, k, _LOGITS, None, dtypes.promote_types(q.dtype, dtypes.float32))
    logits = _masked(_scaled(logits, scale, bias), mask, q_lengths, k_lengths, is_causal, window)
    weights = ew.convert(softmax(logits), k.dtype)
    out = transpose(dot_general(weights, v, _OUTPUT), (0, 2, 1, 3, 4))
    out = _without_padding(reshape(out, (batch, queries, heads, size)), q_lengths)
    if not with_residual:
        return out, None
    residual = transpose(ew.convert(logsumexp(logits, -1), k.dtype), (0, 2, 1, 3))
    return out, stop_gradient(reshape(residual, (batch, queries, heads)))


def _without_padding(x, lengths):
    """x [B, length, ...] with zeros from the length of each sequence on."""
    if lengths is None:
        return x
    shape = aval_of(x).shape
    return ew.select(broadcast_in_dim(_below(lengths, shape[1]), shape, (0, 1)), x, fill(x, 0))


def _below(lengths, size: int):
    """[B, size]: whether a place is one of the sequence."""
    lengths = as_array(lengths)
    shape = (*lengths.shape, size)
    return ew.lt(shaping.iota(lengths.dtype, shape, 1), broadcast_in_dim(lengths, shape, (0,)))


def _scaled(logits, scale, bias):
    dtype = aval_of(logits).dtype
    scale = ew.convert(scale, dtype) if isinstance(scale, Array) else literal(scale, dtype)
    logits = ew.mul(logits, spread(scale, aval_of(logits).shape))
    if bias is None:
        return logits
    return ew.add(logits, spread(ew.convert(_in_groups(bias, logits), dtype), aval_of(logits).shape))


def _in_groups(x, logits):
    """x, which broadcasts to [B, N, T, S], as one that broadcasts to the logits [B, K, T, G, S]."""
    key_heads, groups = (aval_of(logits).shape[i] for i in (1, 3))
    batch, heads, queries, keys = x.shape
    split = (1, 1) if heads == 1 else (key_heads, groups)
    return transpose(reshape(x, (batch, *split, queries, keys)), (0, 1, 3, 2, 4))


def _masked(logits, mask, q_lengths, k_lengths, is_causal, window):
    aval = aval_of(logits)
    batch, _, queries, _, keys = aval.shape
    pairs = (queries, keys)
    row, column = (shaping.iota(dtypes.int32, pairs, i) for i in range(2))
    seen = []
    if mask is not None:
        seen.append(_in_groups(mask, logits))
    if is_causal:
        seen.append(_as_pairs(ew.le(column, row)))
    if window is not None:
        left, right = window
        seen.append(_as_pairs(ew.and_(ew.le(row, ew.add(column, left)), ew.le(column, ew.add(row, right)))))
    for lengths, axis, size in ((q_lengths, 2, queries), (k_lengths, 4, keys)):
        if lengths is not None:
            ones = [1] * 5
            ones[0], ones[axis] = batch, size
            seen.append(reshape(_below(lengths, size), ones))
    if not seen:
        return logits
    shape = broadcast_shapes(*[aval_of(x).shape for x in seen])
    visible = spread(seen[0], shape)
    for x in seen[1:]:
        visible = ew.and_(visible, spread(x, shape))
    lowest = -0.7 * float(dtypes.finfo(dtypes.float32).max)
    return ew.select(spread(visible, aval.shape), logits, fill(logits, lowest))


def _as_pairs(x):
    """[T, S] as an array that broadcasts to the logits."""
    queries, keys = aval_of(x).shape
    return reshape(x, (1, 1, queries, 1, keys))
