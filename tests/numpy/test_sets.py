"""Different elements and operations on sets against NumPy: with known arrays, and with a size under jit."""

import itertools

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp

RNG = np.random.default_rng(0)
NAN = np.nan
ARRAYS = {
    "ints": RNG.integers(-3, 6, 12), "few": RNG.integers(0, 4, 5), "empty": np.zeros(0, int),
    "floats": np.array([1.0, NAN, 2, NAN, 1, 0]), "others": np.array([NAN, 3.0, 1]), "bools": np.array([True, False, True]),
    "complex": np.array([1 + 2j, 1 + 1j, 1 + 2j, 0]),
}  # fmt: skip
OPERATIONS = ["union1d", "intersect1d", "setdiff1d", "setxor1d"]


def same(ours, want):
    ours, want = np.asarray(ours), np.asarray(want)
    assert ours.shape == want.shape
    np.testing.assert_array_equal(ours, want)


@pytest.mark.parametrize("name", ARRAYS)
def test_unique(name):
    x = ARRAYS[name]
    for flags in itertools.product((False, True), repeat=3):
        ours, want = jnp.unique(x, *flags), np.unique(x, *flags)
        for a, b in zip(ours if any(flags) else [ours], want if any(flags) else [want], strict=True):
            same(a, b)
    for f in ("unique_all", "unique_counts", "unique_inverse"):
        for field in getattr(np, f)(x)._fields:
            same(getattr(getattr(jnp, f)(x), field), getattr(getattr(np, f)(x), field))
    same(jnp.unique_values(x), np.unique(x, equal_nan=False))


@pytest.mark.parametrize("name, equal_nan", list(itertools.product(ARRAYS, (True, False))))
def test_unique_with_a_size(name, equal_nan):
    x = ARRAYS[name]
    want = np.unique(x, True, True, True, equal_nan=equal_nan)
    sizes = (0, len(want[0]) // 2, len(want[0]) + 2)
    found = funcml.jit(
        lambda x: [jnp.unique(x, True, True, True, equal_nan=equal_nan, size=n, fill_value=1) for n in sizes]
    )(x)
    for n, (values, index, inverse, counts) in zip(sizes, found, strict=True):
        k = min(n, len(want[0]))
        same(values, np.concatenate([want[0][:k], np.ones(n - k, x.dtype)]))
        same(index[:k], want[1][:k])
        same(inverse, want[2])
        same(counts, np.concatenate([want[3][:k], np.zeros(n - k, int)]))


def test_unique_along_an_axis():
    matrices = [RNG.integers(0, 2, (7, 2)), RNG.integers(0, 2, (3, 4, 2)), RNG.integers(0, 2, (5, 2)) > 0, np.zeros((3, 0))]
    for x in matrices:
        for axis in range(x.ndim):
            for ours, want in zip(jnp.unique(x, True, True, True, axis), np.unique(x, True, True, True, axis), strict=True):
                same(ours, want)
    rows = np.array([[1.0, NAN], [1, NAN], [0, 2]])
    same(jnp.unique(rows, axis=0), [[0, 2], [1, NAN]])
    same(jnp.unique(rows, axis=0, equal_nan=False), [[0, 2], [1, NAN], [1, NAN]])
    same(funcml.jit(lambda x: jnp.unique(x, axis=1, size=3, fill_value=9))(np.array([[1, 1], [2, 2]])), [[1, 9, 9], [2, 9, 9]])
    halves = jnp.array([2, NAN, 1, NAN, 2], "bfloat16")
    np.testing.assert_array_equal(np.asarray(jnp.unique(halves), np.float32), [1, 2, NAN])


@pytest.mark.parametrize("name, other", list(itertools.product(ARRAYS, repeat=2)))
def test_two_known_sets(name, other):
    x, y = ARRAYS[name], ARRAYS[other]
    for f in OPERATIONS:
        same(getattr(jnp, f)(x, y), getattr(np, f)(x, y))
        if f != "union1d":
            unique = np.unique(x), np.unique(y)
            same(getattr(jnp, f)(*unique, assume_unique=True), getattr(np, f)(*unique, assume_unique=True))
    for ours, want in zip(jnp.intersect1d(x, y, return_indices=True), np.intersect1d(x, y, return_indices=True), strict=True):
        same(ours, want)


@pytest.mark.parametrize("other", ["few", "floats", "empty"])
@pytest.mark.parametrize("name", ["ints", "others", "bools", "empty"])
def test_two_sets_with_a_size(name, other):
    x, y = ARRAYS[name], ARRAYS[other]
    for f in OPERATIONS:
        want = getattr(np, f)(x, y)
        sizes = (0, len(want) // 2, len(want) + 2)
        found = funcml.jit(lambda x, y, f=f, s=sizes: [getattr(jnp, f)(x, y, size=n, fill_value=1) for n in s])(x, y)
        for n, ours in zip(sizes, found, strict=True):
            same(ours, np.concatenate([want[:n], np.ones(max(n - len(want), 0))]))
    common, *places = np.intersect1d(x, y, return_indices=True)
    ours = jnp.intersect1d(x, y, return_indices=True, size=len(common) + 1)
    for found, want, beyond in zip(ours[1:], places, (x.size, y.size), strict=True):
        same(found, [*want, beyond])


def test_what_is_missing_is_the_first_or_zero():
    x, y = np.array([5, 7, 9]), np.array([7, 9])
    same(jnp.intersect1d(x, y, size=3), [7, 9, 7])
    same(jnp.setxor1d(x, y, size=2), [5, 5])
    same(jnp.setdiff1d(x, y, size=2), [5, 0])
    same(jnp.intersect1d(x, np.array([1]), size=2), [0, 0])
    same(jnp.setdiff1d(np.array([3, 1, 3, 2]), np.array([2]), True, size=3), [3, 1, 3])


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_membership(method):
    pairs = [(ARRAYS["floats"].reshape(2, 3), ARRAYS["others"]), (ARRAYS["ints"], np.arange(-100, 100, 3)), (3, np.array([3]))]
    pairs += [(ARRAYS["ints"], ARRAYS["empty"]), (ARRAYS["empty"], ARRAYS["few"])]
    for x, y in pairs:
        for invert in (False, True):
            same(jnp.isin(x, y, invert=invert, method=method), np.isin(x, y, invert=invert))


@pytest.mark.parametrize("call, error, words", [
    (lambda: funcml.jit(jnp.unique)(ARRAYS["ints"]), TypeError, r"unique: .* in the array \(without `size`\)"),
    (lambda: funcml.jit(jnp.union1d)(ARRAYS["ints"], 1), TypeError, "without `size`"),
    (lambda: funcml.jit(jnp.setdiff1d)(ARRAYS["ints"], 1), TypeError, "setdiff1d: .* in an array"),
    (lambda: jnp.unique(ARRAYS["empty"], size=2), ValueError, r"unique of i64\[0\]: .* give fill_value"),
    (lambda: jnp.unique(ARRAYS["ints"], axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: jnp.isin(1, np.ones(2), method="hash"), ValueError, "method must be one of 'auto'"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
