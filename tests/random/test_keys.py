"""Keys: JAX's words for the same seed, and key arrays as ordinary values of every transform."""

import copy
import pickle

import jax
import numpy as np
import pytest

import funcml as fm
from funcml import dtypes, lax, random
from funcml import numpy as fnp
from funcml.core.config import config
from funcml.primitives import axes, elementwise, gather_scatter, identities, indexing, shaping, sorting
from funcml.primitives.keys import random_unwrap, random_wrap
from funcml.primitives.random_bits import rng_bit_generator, threefry2x32
from funcml.random import ciphers

IMPLS = ("threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg")
KEY, JAX_KEY = random.key(7), jax.random.key(7)


def words(keys):
    return np.asarray(random.key_data(keys))


# ---- against JAX -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 42, -1, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, np.int32(-7), np.uint8(200), True])
def test_seeds(seed):
    np.testing.assert_array_equal(random.PRNGKey(seed), jax.random.PRNGKey(seed))
    np.testing.assert_array_equal(words(random.key(seed)), jax.random.PRNGKey(seed))


@pytest.mark.parametrize("seed", [np.int64(-1), 2**40 + 3, -(2**40), 2**63 - 1])
def test_seeds_of_64_bits_count_whole(seed):
    with jax.enable_x64(True):
        np.testing.assert_array_equal(random.PRNGKey(seed), jax.random.PRNGKey(seed))


def test_an_offset_of_seeds():
    config.update("random_seed_offset", 3)
    try:
        np.testing.assert_array_equal(random.PRNGKey(4), [0, 7])
    finally:
        config.update("random_seed_offset", 0)
    np.testing.assert_array_equal(random.PRNGKey(4), [0, 4])


def test_split_and_fold_in():
    for shape in (2, 3, (2, 3), (), 0, (4, 0)):
        want = jax.random.key_data(jax.random.split(JAX_KEY, shape))
        np.testing.assert_array_equal(words(random.split(KEY, shape)), want)
    raw = random.split(random.PRNGKey(7), 3)
    assert raw.dtype == np.uint32
    np.testing.assert_array_equal(raw, jax.random.split(jax.random.PRNGKey(7), 3))
    for data in (0, 1, 2**32 - 1, np.int32(-5)):
        want = jax.random.key_data(jax.random.fold_in(JAX_KEY, np.asarray(data).astype(np.uint32)))
        np.testing.assert_array_equal(words(random.fold_in(KEY, data)), want)


def test_the_cipher_on_published_vectors():
    # Random123, kat_vectors: threefry2x32 with 20 rounds
    ones = 0xFFFFFFFF
    counters, keys, want = [
        np.array(v, np.uint32).T
        for v in (
            [(0, 0), (ones, ones), (0x243F6A88, 0x85A308D3)],
            [(0, 0), (ones, ones), (0x13198A2E, 0x03707344)],
            [(0x6B200159, 0x99BA4EFE), (0x1CB996FC, 0xBB002BE7), (0xC4923A9C, 0x483DF7A0)],
        )
    ]
    np.testing.assert_array_equal(threefry2x32(*keys, *counters), want)


# ---- implementations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", IMPLS)
def test_every_implementation_is_that_of_jax(impl):
    found, want = (results(r, r.key(-42, impl=impl)) for r in (random, jax.random))
    for name in want:
        np.testing.assert_array_equal(found[name], want[name], name)
    with fm.default_prng_impl(impl), jax.default_prng_impl(impl):
        found, want = (results(r, r.PRNGKey(3)) for r in (random, jax.random))
        assert random.key_dtype() is random.key(0).dtype and random.key_impl(random.PRNGKey(0)) == impl
    for name in want:
        np.testing.assert_array_equal(found[name], want[name], name)
    typed = random.key(0, impl=impl)
    assert random.key_impl(typed) == impl and typed.dtype is random.key_dtype(impl) is random.key_dtype(typed.dtype)
    assert dtypes.canonical(typed.dtype.name) is typed.dtype
    np.testing.assert_array_equal(words(pickle.loads(pickle.dumps(typed))), words(typed))


def results(random, key):
    data = {"key": key, "folded": random.fold_in(key, 7), **{f"split {s}": random.split(key, s) for s in (2, (2, 3), ())}}
    found = {name: random.key_data(k) for name, k in data.items()}
    found |= {f"bits {d}": random.bits(key, (3, 5), d) for d in ("uint8", "uint16", "uint32")}
    vmap, keys = fm.vmap if random is fm.random else jax.vmap, random.split(key, 4)
    found["bits of many"] = vmap(lambda k: random.bits(k, (3,)))(keys)
    found["split many"] = random.key_data(vmap(lambda k: random.split(k, 3))(keys))
    return {**found, "normal": random.normal(key, (4,)), "choice": random.choice(key, 9, (4,), replace=False)}


@pytest.mark.parametrize("impl", IMPLS)
def test_bits_of_64(impl):
    with jax.enable_x64(True):
        want = jax.random.bits(jax.random.key(1, impl=impl), (3, 5), "uint64")
    np.testing.assert_array_equal(random.bits(random.key(1, impl=impl), (3, 5), "uint64"), want)


def test_ciphers_on_published_vectors():
    # Random123, kat_vectors: threefry4x32 with 20 rounds, philox2x32 and philox4x32 with 10
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89]
    for cipher, counter, key, want in (
        (ciphers.threefry4x32, [0] * 4, [0] * 4, "9c6ca96a e17eae66 fc10ecd4 5256a7d8"),
        (ciphers.threefry4x32, pi[:4], pi[4:], "59cd1dbb b8879579 86b5d00c ac8b6d84"),
        (ciphers.philox2x32, [0] * 2, [0], "ff1dae59 6cd10df2"),
        (ciphers.philox2x32, pi[:2], pi[2:3], "dd7ce038 f62a4c12"),
        (ciphers.philox4x32, [0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (ciphers.philox4x32, pi[:4], pi[4:6], "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ):
        key, counter = ([fm.numpy.uint32(w) for w in x] for x in (key, counter))
        assert " ".join(f"{int(w):08x}" for w in cipher(key, counter)) == want


def test_the_generator_and_its_state():
    state = np.arange(4, dtype=np.uint32)
    for algorithm, theirs in (("default", 0), ("three_fry", 1), ("philox", 2)):
        found = rng_bit_generator(state, (3,), np.dtype("uint32"), algorithm)
        for x, y in zip(found, jax.lax.rng_bit_generator(state, (3,), algorithm=theirs), strict=True):
            np.testing.assert_array_equal(x, y)
    new, bits = fm.vmap(lambda s: rng_bit_generator(s, (3,)))(np.zeros((0, 4), np.uint32))
    assert new.shape == (0, 4) and bits.shape == (0, 3)
    for bad, words in (
        ((state[:2], (3,)), r"a state u32\[4\] or u64\[2\], got u32\[2\]"),
        ((state, (3,), np.dtype("int32")), "unsigned integers of 8 to 64 bits, not i32"),
    ):
        with pytest.raises(TypeError, match=words):
            rng_bit_generator(*bad)
    with pytest.raises(ValueError, match="an algorithm among default, three_fry, philox, got 'mt19937'"):
        rng_bit_generator(state, (3,), np.dtype("uint32"), "mt19937")


# ---- as values -------------------------------------------------------------------------------------------------


def test_what_a_key_is():
    keys = random.split(KEY, (2, 3))
    assert keys.shape == (2, 3) and keys.dtype is dtypes.KeyDtype() and str(keys.aval) == "key<fry>[2,3]"
    first, second = random.split(KEY)
    np.testing.assert_array_equal(np.stack([words(first), words(second)]), words(random.split(KEY)))
    for other in (pickle.loads(pickle.dumps(keys)), copy.deepcopy(keys), random.clone(keys), fm.device_put(keys)):
        np.testing.assert_array_equal(words(other), words(keys))
    np.testing.assert_array_equal(words(random.wrap_key_data(random.key_data(keys))), words(keys))
    assert random.key_impl(keys) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"


MASK = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]], bool)
ROWS = gather_scatter.GatherDimensionNumbers((1,), (0,), (0,))
AT_2 = np.array([[2]], np.int32)
ON_KEYS = {
    "reshape": (lambda k: axes.reshape(k, (4, 3)), lambda w: w.reshape(4, 3, -1)),
    "transpose": (lambda k: axes.transpose(k, (1, 0)), lambda w: w.transpose(1, 0, 2)),
    "broadcast": (lambda k: axes.broadcast_in_dim(k, (2, 3, 4), (1, 2)), lambda w: np.stack([w, w])),
    "slice": (lambda k: shaping.slice_(k, (1, 0), (3, 4), (1, 2)), lambda w: w[1:3, ::2]),
    "rev": (lambda k: shaping.rev(k, (0,)), lambda w: w[::-1]),
    "concatenate": (lambda k: shaping.concatenate([k, k], 1), lambda w: np.concatenate([w, w], 1)),
    "split": (lambda k: shaping.split(k, (1, 2))[1], lambda w: w[1:]),
    "select": (
        lambda k: elementwise.select(MASK, k, shaping.rev(k, (1,))),
        lambda w: np.where(MASK[..., None], w, w[:, ::-1]),
    ),
    "dynamic_slice": (
        lambda k: indexing.dynamic_slice(k, (np.int32(1), np.int32(1)), (2, 2)),
        lambda w: w[1:3, 1:3],
    ),
    "gather": (lambda k: gather_scatter.gather(k, np.array([[2], [0]], np.int32), ROWS, (1, 4)), lambda w: w[[2, 0]]),
    "scatter": (
        lambda k: gather_scatter.scatter(
            k, AT_2, shaping.slice_(k, (0, 0), (1, 4)), gather_scatter.ScatterDimensionNumbers(*ROWS)
        ),
        lambda w: w[[0, 1, 0]],
    ),
    "sort": (
        lambda k: sorting.sort((np.array([[3, 1, 2, 0]] * 3), k), 1)[1],
        lambda w: w[:, [3, 1, 2, 0]],
    ),
    "copy": (identities.copy, lambda w: w),
    "barrier": (lambda k: identities.optimization_barrier([k])[0], lambda w: w),
    "unwrap and wrap": (lambda k: random_wrap(random_unwrap(k), random.key_impl(k)), lambda w: w),
}


@pytest.mark.parametrize("impl", ["threefry2x32", "philox2x32", "rbg"])
def test_moving_keys_about(impl):
    keys = random.split(random.key(7, impl=impl), (5, 3, 4))
    bits = words(keys)

    def moved(keys):
        one, batch = axes.reshape(shaping.slice_in_dim(keys, 0, 1), (3, 4)), axes.moveaxis(keys, 0, 1)
        functions = {name: move for name, (move, _) in ON_KEYS.items()}
        plain = {name: move(one) for name, move in functions.items()}
        mapped = {name: fm.vmap(move, in_axes=1)(batch) for name, move in functions.items()}
        return fm.tree.map(random.key_data, (plain, mapped))

    plain, mapped = fm.jit(moved)(keys)
    for name, (_, want) in ON_KEYS.items():
        np.testing.assert_array_equal(plain[name], want(bits[0]), name)
        np.testing.assert_array_equal(mapped[name], np.stack([want(w) for w in bits]), name)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_in_loops(impl):
    key = random.key(5, impl=impl)
    keys = random.split(key, (3, 4))
    turned = fm.jit(lambda ks: lax.scan(lambda _, k: (None, k[::-1]), None, ks))(keys)[1]
    np.testing.assert_array_equal(words(turned), words(keys)[:, ::-1])

    def walk(x):
        return lax.while_loop(lambda s: s[1] < 50.0, lambda s: (random.split(s[0])[0], s[1] * x + random.uniform(s[0])), (key, x))

    k, x = key, 2.0
    while x < 50:
        k, x = random.split(k)[0], x * 2 + float(random.uniform(k))
    found, total = walk(2.0)
    np.testing.assert_array_equal(words(found), words(k))
    np.testing.assert_allclose(total, x, 1e-6)
    slope = fm.grad(lambda x: walk(x)[1])(2.0)
    np.testing.assert_allclose(slope, (walk(2.001)[1] - walk(1.999)[1]) / 0.002, 1e-2)


def test_keys_of_equal_words():
    for dtype in (KEY.dtype, random.key_dtype("rbg")):
        n = dtype.key_shape[0]
        assert words(fnp.zeros((2,), dtype)).tolist() == [[0] * n] * 2
        assert words(fnp.full((), 7, dtype)).tolist() == [7] * n
        keys = random.split(random.key(0, impl=dtype.impl))
        assert words(fnp.full_like(keys, keys[0])).tolist() == [words(keys[0]).tolist()] * 2
        assert fm.device_get(keys) is keys


def test_keys_under_derivatives():
    def f(x, key):
        first, second = random.split(key)
        return x * random.normal(first, (3,)).sum(), second

    (value, left), (slope, none) = fm.jvp(lambda x: f(x, KEY), (2.0,), (1.0,))
    assert none.dtype == dtypes.float0 and left.dtype is KEY.dtype
    np.testing.assert_allclose(slope, value / 2, rtol=1e-6)
    np.testing.assert_allclose(fm.grad(f, has_aux=True)(2.0, KEY)[0], slope, rtol=1e-6)
    np.testing.assert_allclose(fm.grad(fm.checkpoint(lambda x, key: f(x, key)[0]))(2.0, KEY), slope, rtol=1e-6)


def test_seeds_and_keys_under_vmap():
    seeds = np.arange(4)
    np.testing.assert_array_equal(words(fm.vmap(random.key)(seeds)), np.stack([words(random.key(s)) for s in range(4)]))
    keys = random.split(KEY, 4)
    for f in (random.split, lambda k: random.fold_in(k, 3)):
        np.testing.assert_array_equal(words(fm.vmap(f)(keys)), np.stack([words(f(k)) for k in keys]))
    folded = fm.vmap(random.fold_in, (None, 0))(KEY, seeds)
    np.testing.assert_array_equal(words(folded), np.stack([words(random.fold_in(KEY, int(s))) for s in seeds]))


# ---- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad, came", [
    (np.zeros(3, np.float32), r"f32\[3\]"), (np.zeros(2, np.int32), r"i32\[2\]"), (0, "0 of type int"),
    ("k", "'k' of type str"), (None, "None of type NoneType"), (np.zeros(4, np.uint32), r"u32\[4\]"),
])
def test_no_key(bad, came):
    expected = r"expected a key \(`random.key\(0\)`\) or u32\[2\], got " + came
    for f in (lambda k: random.normal(k), random.split, random.key_data, lambda k: random.randint(k, (), 0, 2)):
        with pytest.raises(TypeError, match=expected):
            f(bad)


def test_several_keys_where_one_is_expected():
    with pytest.raises(ValueError, match=r"uniform accepts a single key, but .* of shape \(3,\): key<fry>\[3\]; use `vmap`"):
        random.uniform(random.split(KEY, 3))
    with pytest.raises(ValueError, match=r"split accepts a single key, but .* u32\[3,2\]; use `vmap`"):
        random.split(random.split(random.PRNGKey(0), 3))


def test_other_bad_arguments():
    with pytest.raises(TypeError, match=r"key: PRNG key seed must be an integer, got f32\[\]"):
        random.key(np.float32(1))
    with pytest.raises(TypeError, match=r"i64\[2\]; use `vmap` for a batch of seeds"):
        random.key(np.arange(2))
    with pytest.raises(ValueError, match="key: unrecognized PRNG implementation 'mersenne'; expected one of threefry2x32, "):
        random.key(0, impl="mersenne")
    with pytest.raises(TypeError, match="PRNGKey: unrecognized type int for a PRNG implementation, got 3; expected its name"):
        random.PRNGKey(0, impl=3)
    with pytest.raises(ValueError, match="wrap_key_data: Cannot specify both `impl` and `dtype`, which say the same"):
        random.wrap_key_data(np.zeros(2, np.uint32), impl="rbg", dtype="rbg")
    with pytest.raises(TypeError, match=r"expected the words of keys, u32\[..., 4\], got u32\[2\]"):
        random.wrap_key_data(np.zeros(2, np.uint32), impl="rbg")
    with pytest.raises(OverflowError, match="-1"):
        random.fold_in(KEY, -1)
    with pytest.raises(TypeError, match=r"fold_in: expected an integer without axes as data, got f32\[\]"):
        random.fold_in(KEY, np.float32(1))
    with pytest.raises(TypeError, match=r"wrap_key_data: expected the words of keys, u32\[..., 2\], got u32\[3\]"):
        random.wrap_key_data(np.zeros(3, np.uint32))
    with pytest.raises(ValueError, match="split: lengths must not be negative"):
        random.split(KEY, -1)
    with pytest.raises(TypeError, match=r"grad of .* needs float .*key<fry>"):
        fm.grad(lambda k: random.normal(k))(KEY)


@pytest.mark.parametrize("impl", [*IMPLS])
def test_keys_compare(impl):
    keys = random.split(random.key(0, impl=impl), 3)
    assert (keys == keys[0]).tolist() == [True, False, False]
    assert (keys != keys[0]).tolist() == [False, True, True]
