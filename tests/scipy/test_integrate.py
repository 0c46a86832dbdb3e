"""The trapezoidal rule against SciPy's."""

import numpy as np
import scipy.integrate

from funcml.scipy.integrate import trapezoid
from tests.products import check_products


def test_values(rng):
    y, x = rng.normal(size=(3, 5)), np.sort(rng.normal(size=5))
    for arguments in ((y,), (y, x), (y, None, 0.5), (y.T, x, 1.0, 0), (y, np.sort(y))):
        np.testing.assert_allclose(trapezoid(*arguments), scipy.integrate.trapezoid(*arguments), atol=1e-14)


def test_products(rng):
    check_products(trapezoid, rng.normal(size=(2, 4)), np.sort(rng.normal(size=4)))
