"""Polar factors by Halley's method, against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import funcml as fm
from funcml.lax import linalg


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (1, 1)], ids=str)
def test_qdwh(shape, dtype, rng):
    a = rng.normal(size=shape)
    a = (a + 1j * rng.normal(size=shape) if np.issubdtype(dtype, np.complexfloating) else a).astype(dtype)
    u, h, steps, converged = map(np.asarray, linalg.qdwh(a))
    want_u, want_h = scipy.linalg.polar(a)
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(u, want_u, atol=tolerance)
    np.testing.assert_allclose(h, want_h, atol=tolerance)
    assert converged and 0 < steps <= 6 and u.dtype == h.dtype == dtype


def test_singular_and_ill_conditioned_matrices():
    u, h, _, converged = linalg.qdwh(np.diag([1.0, 1e-8, 1e-14]))
    np.testing.assert_allclose(u, np.eye(3), atol=1e-14)
    assert converged
    assert not linalg.qdwh(np.diag([1.0, 1e-8, 1e-14]), max_iterations=3)[3]
    u, h, _, _ = linalg.qdwh(np.zeros((3, 2)))
    assert not np.any(u) and not np.any(h)


def test_a_batch_is_its_members(rng):
    a = rng.normal(size=(2, 4, 3))
    for y, z in zip(linalg.qdwh(a)[:2], fm.vmap(linalg.qdwh)(a)[:2], strict=True):
        np.testing.assert_allclose(y, z, atol=1e-14)
    np.testing.assert_allclose(linalg.qdwh(a)[0][1], scipy.linalg.polar(a[1])[0], atol=1e-13)


def test_bad_input():
    with pytest.raises(ValueError, match=r"\[.., m, n\] with m >= n, got f64\[2,3\]"):
        linalg.qdwh(np.ones((2, 3)))
    with pytest.raises(NotImplementedError, match="no shapes known only at run time"):
        linalg.qdwh(np.ones((3, 2)), dynamic_shape=(2, 2))
