"""Random matrices, and how close results about them have to be."""

import numpy as np

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def matrix(rng, shape, dtype):
    """Normal numbers of a dtype, complex ones in both parts."""
    x = rng.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def adjoint(x):
    """The conjugate transpose of each matrix of a stack."""
    return np.conj(np.swapaxes(x, -1, -2))


def close(found, want, dtype, factor=1000):
    """Raises unless arrays, or tuples of them, differ by at most `factor` rounding errors of the largest element."""
    found, want = (x if isinstance(x, tuple | list) else (x,) for x in (found, want))
    assert len(found) == len(want)
    for x, y in zip(found, want, strict=True):
        np.testing.assert_allclose(x, y, atol=factor * np.finfo(dtype).eps * (1 + np.max(np.abs(y), initial=0)), rtol=0)
