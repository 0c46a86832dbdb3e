"""Quantisation against SciPy."""

import numpy as np
import pytest
import scipy.cluster.vq

import funcml as fm
from funcml.scipy.cluster.vq import vq
from tests.products import check_products


@pytest.mark.parametrize("shapes", [((5, 3), (4, 3)), ((6,), (3,)), ((2, 1), (2, 1)), ((0, 2), (3, 2))])
def test_values(rng, shapes):
    obs, codes = (rng.normal(size=s) for s in shapes)
    code, distance = vq(obs, codes)
    apart = np.linalg.norm(obs.reshape(obs.shape[0], 1, -1 if obs.size else 2) - codes.reshape(1, codes.shape[0], -1), axis=-1)
    np.testing.assert_array_equal(code, apart.argmin(1))
    np.testing.assert_allclose(distance, apart.min(1), atol=1e-14)
    if obs.size:
        want = scipy.cluster.vq.vq(obs, codes)
        np.testing.assert_array_equal(code, want[0])
        np.testing.assert_allclose(distance, want[1], atol=1e-7)
    assert code.dtype == "int32" and distance.dtype == "float64"


def test_integers_and_equal_distances():
    code, distance = vq(np.array([[1, 1]], "int32"), np.array([[0, 1], [1, 0], [2, 2]], "int32"))
    assert code[0] == 0 and distance.dtype == "float32" and distance[0] == 1


def test_products(rng):
    obs, codes = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    check_products(lambda obs, codes: vq(obs, codes)[1], obs, codes)
    assert np.all(np.asarray(fm.grad(lambda x: vq(x, codes)[1].sum())(codes)) == 0)  # at the codes themselves


@pytest.mark.parametrize("shapes", [((5, 3), (4, 2)), ((5,), (4, 2)), ((2, 2, 2), (2, 2, 2)), ((5, 3), (0, 3))])
def test_errors(shapes):
    with pytest.raises(ValueError, match="vq expects observations"):
        vq(*[np.ones(s) for s in shapes])
