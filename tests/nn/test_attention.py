"""Attention: against JAX and a plain loop in float64, with every kind of mask; derivatives; what is refused."""

import itertools

import jax
import numpy as np
import pytest

import funcml as fm
from funcml import dtypes, nn
from tests.products import check_products

B, T, S, N, K, H = 2, 5, 7, 4, 2, 8
RNG = np.random.default_rng(0)
Q, KEYS, VALUES = (RNG.normal(size=s) for s in ((B, T, N, H), (B, S, K, H), (B, S, K, H)))
BIAS = RNG.normal(size=(1, N, T, S))
MASK = RNG.random((B, 1, T, S)) > 0.3
MASK[..., 0] = True
Q_LENGTHS, K_LENGTHS = np.array([3, 5], np.int32), np.array([7, 4], np.int32)

OPTIONS = {
    "plain": {},
    "bias": {"bias": BIAS},
    "mask": {"mask": MASK},
    "causal": {"is_causal": True},
    "query lengths": {"query_seq_lengths": Q_LENGTHS},
    "key lengths": {"key_value_seq_lengths": K_LENGTHS},
    "window": {"local_window_size": (2, 1)},
    "all": {
        "bias": BIAS, "mask": MASK, "is_causal": True, "query_seq_lengths": Q_LENGTHS, "key_value_seq_lengths": K_LENGTHS,
        "local_window_size": 2, "scale": 0.3,
    },
}  # fmt: skip


def by_loop(q, k, v, bias=None, mask=None, scale=None, is_causal=False, query_seq_lengths=None, key_value_seq_lengths=None,
            local_window_size=None):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    left, right = np.broadcast_to(np.inf if local_window_size is None else local_window_size, 2)
    whole = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    bias, mask = np.broadcast_to(0.0 if bias is None else bias, whole), np.broadcast_to(True if mask is None else mask, whole)
    out = np.zeros(q.shape)
    for b, n, t in itertools.product(*map(range, whole[:3])):
        head = n // (q.shape[2] // k.shape[2])
        seen = [
            s for s in range(k.shape[1])
            if mask[b, n, t, s] and (s <= t or not is_causal) and -left <= s - t <= right
            and (key_value_seq_lengths is None or s < key_value_seq_lengths[b])
        ]  # fmt: skip
        if query_seq_lengths is not None and t >= query_seq_lengths[b]:
            continue
        e = np.exp([q[b, t, n] @ k[b, s, head] * scale + bias[b, n, t, s] for s in seen])
        out[b, t, n] = e @ v[b, seen, head] / e.sum()
    return out


@pytest.mark.parametrize("name", OPTIONS)
def test_values(name):
    options = OPTIONS[name]
    found = nn.dot_product_attention(Q, KEYS, VALUES, **options)
    np.testing.assert_allclose(found, by_loop(Q, KEYS, VALUES, **options), 1e-12, 1e-14)
    for dtype in ("float32", "bfloat16"):
        dtype = dtypes.canonical(dtype)
        args = [x.astype(dtype) for x in (Q, KEYS, VALUES)]
        given = {k: v.astype(dtype) if k == "bias" else v for k, v in options.items()}
        found = nn.dot_product_attention(*args, **given, return_residual=True)
        want = jax.nn.dot_product_attention(*args, **given, return_residual=True)
        rtol = 1e-5 if dtype == np.float32 else 3e-2
        for x, y in zip(found, want, strict=True):
            assert x.dtype == y.dtype == dtype and x.shape == y.shape
            x, y = (np.asarray(a)[[1]] if x.ndim == 3 else np.asarray(a) for a in (x, y))  # sequence 0 has no query 4
            np.testing.assert_allclose(x.astype(float), y.astype(float), rtol, rtol)


def test_the_batch_may_be_missing():
    whole = nn.dot_product_attention(Q[:1], KEYS[:1], VALUES[:1], mask=MASK[:1])
    one, residual = nn.dot_product_attention(Q[0], KEYS[0], VALUES[0], mask=MASK[0], return_residual=True)
    assert one.shape == Q[0].shape and residual.shape == Q[0].shape[:-1]
    np.testing.assert_allclose(one, whole[0], 1e-14)


def test_padding_may_be_anything():
    q, k, v = (x.copy() for x in (Q, KEYS, VALUES))
    options = {"query_seq_lengths": Q_LENGTHS, "key_value_seq_lengths": K_LENGTHS}
    want = nn.dot_product_attention(q, k, v, **options)
    for x, lengths in ((q, Q_LENGTHS), (k, K_LENGTHS), (v, K_LENGTHS)):
        for row, n in zip(x, lengths, strict=True):
            row[n:] = np.nan

    def loss(q, k, v):
        return (nn.dot_product_attention(q, k, v, **options) ** 2).sum()

    np.testing.assert_allclose(nn.dot_product_attention(q, k, v, **options), want, 1e-14)
    assert all(np.isfinite(g).all() for g in fm.grad(loss, (0, 1, 2))(q, k, v))


def test_a_query_that_sees_nothing_gets_the_mean():
    mask = np.zeros((1, 1, T, S), bool)
    found = nn.dot_product_attention(Q, KEYS, VALUES, mask=mask)
    np.testing.assert_allclose(found, np.broadcast_to(VALUES.mean(1).repeat(2, 1)[:, None], Q.shape), 1e-12)


@pytest.mark.parametrize("name, products", [("bias", ("jit", "jvp", "vjp", "order2")), ("all", ("jvp", "vjp", "vmap"))])
def test_derivatives(name, products):
    options = dict(OPTIONS[name])
    bias = options.pop("bias")
    check_products(lambda q, k, v, b: nn.dot_product_attention(q, k, v, b, **options), Q, KEYS, VALUES, bias, products=products)


@pytest.mark.parametrize("args, options, words", [
    ((Q, KEYS, VALUES[:, :-1]), {}, r"expected a value like the key f64\[2,7,2,8\], got f64\[2,6,2,8\]"),
    ((Q[..., :-1], KEYS, VALUES), {}, r"expected a query .*; got f64\[2,5,4,7\]"),
    ((Q.astype("f"), KEYS, VALUES), {}, r"expected a query \[B, T, N, H\] with the dtype"),
    ((Q[:, :, :3], KEYS, VALUES), {}, "the query has 3 heads, which is no multiple of the 2 heads of the key"),
    ((Q[0, 0], KEYS, VALUES), {}, r"expected a query \[B, length, heads, H\]"),
    ((Q, KEYS, VALUES), {"mask": BIAS}, r"expected a mask of bool, got f64\[1,4,5,7\]; a mask that is added is a bias"),
    ((Q, KEYS, VALUES), {"bias": BIAS[:, :3]}, r"expected a bias that broadcasts to \[B, N, T, S\] = \[2, 4, 5, 7\]"),
    ((Q, KEYS, VALUES), {"query_seq_lengths": np.zeros(3, "i")}, r"query_seq_lengths as integers \[B\] = \[2\], got i32\[3\]"),
    ((Q, KEYS, VALUES), {"local_window_size": "x"}, "local_window_size as an int or a pair"),
    ((Q, KEYS, VALUES), {"implementation": "triton"}, "expected implementation None, 'xla' or 'cudnn', got 'triton'"),
])  # fmt: skip
def test_bad_arguments(args, options, words):
    with pytest.raises(ValueError, match=words):
        nn.dot_product_attention(*args, **options)


def test_cudnn_is_not_there():
    with pytest.raises(NotImplementedError, match="cudnn.*leave it out, or pass 'xla'"):
        nn.dot_product_attention(Q, KEYS, VALUES, implementation="cudnn")
