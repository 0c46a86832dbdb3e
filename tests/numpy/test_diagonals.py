"""Diagonals, triangles and where they stand, against NumPy."""

import numpy as np
import pytest

import funcml
import funcml.numpy as jnp
from tests.products import check_products


def test_traced_offsets():
    for k in (-9, -1, 0, 2, 9):
        np.testing.assert_array_equal(funcml.jit(lambda k: jnp.eye(3, 4, k))(k), np.eye(3, 4, k))
        np.testing.assert_array_equal(funcml.jit(lambda k: jnp.tri(3, 4, k, int))(k), np.tri(3, 4, k, int))
    with pytest.raises(OverflowError):
        jnp.tri(3, k=2**33)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (7, 2), (3, 3, 3), (1, 1), (0, 2)], ids=str)
def test_filled_diagonals(shape, wrap):
    for value in (7.0, np.array([7.0, 8.0]), np.arange(60.0)):
        want = np.zeros(shape)
        np.fill_diagonal(want, value, wrap)
        np.testing.assert_array_equal(jnp.fill_diagonal(np.zeros(shape), value, wrap, inplace=False), want)


def test_places():
    m = np.zeros((3, 4))
    pairs = [
        (jnp.tril_indices_from(m, 1), np.tril_indices_from(m, 1)), (jnp.triu_indices_from(m, -1), np.triu_indices_from(m, -1)),
        (jnp.diag_indices_from(np.zeros((3, 3, 3))), np.diag_indices(3, 3)),
        (jnp.mask_indices(3, jnp.triu, 1), np.mask_indices(3, np.triu, 1)),
        (funcml.jit(lambda: jnp.mask_indices(3, jnp.tril, size=4))(), [x[:4] for x in np.mask_indices(3, np.tril)]),
    ]  # fmt: skip
    for ours, want in pairs:
        for x, y in zip(ours, want, strict=True):
            np.testing.assert_array_equal(x, y)


def test_products():
    rng = np.random.default_rng(0)
    check_products(lambda a, v: jnp.fill_diagonal(a, v, inplace=False), rng.normal(size=(4, 3)), rng.normal(size=2))


@pytest.mark.parametrize("call, error, words", [
    (lambda: jnp.fill_diagonal(np.zeros((2, 2)), 1.0), NotImplementedError, "arrays are immutable; use the result"),
    (lambda: jnp.fill_diagonal(np.zeros(2), 1.0, inplace=False), ValueError, r"expects a matrix.* got f64\[2\]"),
    (lambda: jnp.fill_diagonal(np.zeros((2, 2, 3)), 1.0, inplace=False), ValueError, r"got f64\[2,2,3\]"),
    (lambda: jnp.tril_indices_from(np.zeros(3)), ValueError, r"expects a matrix, got an array of the shape \(3,\)"),
    (lambda: jnp.diag_indices_from(np.zeros((2, 3))), ValueError, r"axes of one length, got f64\[2,3\]"),
    (lambda: jnp.diag_indices(-1), ValueError, "must be nonnegative"),
])  # fmt: skip
def test_words_of_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
