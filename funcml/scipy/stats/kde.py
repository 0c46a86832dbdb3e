"""Estimates of densities by sums of normal densities; Scott, Multivariate Density Estimation (1992)."""

from __future__ import annotations

import math

import numpy as np

from funcml import dtypes, random
from funcml import numpy as jnp
from funcml.core.registry import on_load, register_pytree_node
from funcml.lax import linalg
from funcml.nn.normalization import logsumexp
from funcml.numpy.promotion import operand, promote_dtypes
from funcml.scipy.special.error_functions import normal_cdf

__all__ = ["gaussian_kde"]


class gaussian_kde:  # noqa: N801
    """A density estimated from samples: the mean of normal densities around them.

    `dataset` is [d, n] or [n]; `weights` [n] need not sum to 1; `bw_method` is 'scott' (default), 'silverman', a number, or a
    function of the estimate: the factor by which the standard deviation of the samples is scaled. Raises ValueError for shapes
    that do not fit and NotImplementedError for complex samples.

    >>> import numpy as np
    >>> gaussian_kde(np.float32([-1, 0, 1]))(np.float32([0.0]))
    Array([0.31815618], dtype=float32)
    """

    def __init__(self, dataset, bw_method=None, weights=None):
        dataset = jnp.atleast_2d(operand("gaussian_kde", dataset))
        if dtypes.is_complex(dataset.dtype):
            raise NotImplementedError(f"gaussian_kde does not support complex data, got {dataset.aval}")
        if dataset.size <= 1:
            raise ValueError(f"gaussian_kde: the dataset should have multiple elements, got {dataset.aval}")
        d, n = dataset.shape
        if weights is None:
            (dataset,) = promote_dtypes("gaussian_kde", dataset, inexact=True)
            weights = jnp.full(n, 1.0 / n, dtype=dataset.dtype)
        else:
            dataset, weights = promote_dtypes("gaussian_kde", dataset, jnp.atleast_1d(weights), inexact=True)
            if weights.shape != (n,):
                raise ValueError(f"gaussian_kde: weights should be one-dimensional, of length n = {n}, got {weights.aval}")
            weights = weights / jnp.sum(weights)
        self.dataset, self.weights = dataset, weights
        self.neff = 1 / jnp.sum(weights**2)
        factor = self._factor("scott" if bw_method is None else bw_method)
        centred = dataset - (dataset @ weights)[:, None]
        scale = 1 - jnp.sum(weights**2)
        spread = (centred * weights) @ centred.T / scale
        self.covariance = spread * factor**2
        root = linalg.cholesky(self.covariance)
        half = linalg.triangular_solve(root, jnp.eye(d, dtype=root.dtype), left_side=True, lower=True)
        self.inv_cov = half.T @ half

    def _factor(self, bw_method):
        if isinstance(bw_method, str):
            if bw_method == "scott":
                return self.neff ** (-1.0 / (self.d + 4))
            if bw_method == "silverman":
                return (self.neff * (self.d + 2) / 4.0) ** (-1.0 / (self.d + 4))
        elif callable(bw_method):
            return bw_method(self)
        elif np.ndim(bw_method) == 0:
            return bw_method
        raise ValueError(f"gaussian_kde: bw_method should be 'scott', 'silverman', a scalar, or a callable, got {bw_method!r}")

    def tree_flatten(self):
        """The arrays of the estimate, as children of a pytree node."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The estimate made of its arrays."""
        kde = cls.__new__(cls)
        kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov = children
        return kde

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def evaluate(self, points):
        """The density at points [d, m], or [m] where d is 1 (or m is d: one point): [m]."""
        return jnp.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    def logpdf(self, x):
        """The logarithm of the density at points [d, m], or [m]: [m]."""
        logs = _log_densities(self.covariance, self._points(x), self.dataset)
        return logsumexp(logs + jnp.log(self.weights), axis=-1)

    def _points(self, x):
        x = jnp.atleast_2d(operand("gaussian_kde", x))
        if dtypes.is_complex(x.dtype):
            raise NotImplementedError(f"gaussian_kde does not support complex coordinates, got {x.aval}")
        if x.shape[0] == self.d:
            return x
        if x.shape == (1, self.d):
            return x.reshape(self.d, 1)
        raise ValueError(f"gaussian_kde: points have dimension {x.shape[0]}, the dataset has dimension {self.d}")

    def integrate_gaussian(self, mean, cov):
        """The integral of the density times a normal density with this mean [d] and covariance [d, d]."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"gaussian_kde: the mean does not have dimension {self.d}, it is {mean.aval}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"gaussian_kde: the covariance does not have dimension {self.d}, it is {cov.aval}")
        logs = _log_densities(self.covariance + cov, mean[:, None], self.dataset)
        return jnp.sum(jnp.exp(logs[0]) * self.weights)

    def integrate_box_1d(self, low, high):
        """The probability between two numbers, where d is 1."""
        if self.d != 1:
            raise ValueError(f"integrate_box_1d() only handles 1D pdfs, and the dataset has dimension {self.d}")
        if np.ndim(low) or np.ndim(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        samples, sigma = self.dataset[0], jnp.sqrt(self.covariance[0, 0])
        below, above = (normal_cdf((jnp.asarray(x, samples.dtype) - samples) / sigma) for x in (low, high))
        return jnp.sum(self.weights * (above - below))

    def integrate_kde(self, other):
        """The integral of the product with another estimate of the same dimension."""
        if other.d != self.d:
            raise ValueError(f"KDEs are not the same dimensionality: {self.d} and {other.d}")
        logs = _log_densities(self.covariance + other.covariance, self.dataset, other.dataset)
        return self.weights @ jnp.exp(logs) @ other.weights

    def resample(self, key, shape=()):
        """Samples of the estimate: [d, *shape]."""
        of_index, of_noise = random.split(key)
        index = random.choice(of_index, self.n, shape=tuple(shape), p=self.weights)
        noise = random.normal(of_noise, (*shape, self.d), dtype=self.dataset.dtype)
        noise = noise @ linalg.cholesky(self.covariance).T
        return self.dataset[:, index] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds, high_bounds, maxpts=None):
        """Not supported: use `integrate_box_1d`."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method=None):
        """Not supported, as arrays are immutable: make a new estimate."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported; make a new gaussian_kde")


on_load(lambda: register_pytree_node(gaussian_kde, gaussian_kde.tree_flatten, gaussian_kde.tree_unflatten))


def _log_densities(covariance, points, samples):
    """[m, n]: the logarithm of the normal density around sample j at point i."""
    points, samples = promote_dtypes("gaussian_kde", points, samples, inexact=True)
    d = samples.shape[0]
    root = linalg.cholesky(covariance)
    whitened = [linalg.triangular_solve(root, x.astype(root.dtype), left_side=True, lower=True) for x in (points, samples)]
    gaps = whitened[0][:, :, None] - whitened[1][:, None, :]
    norm = 0.5 * d * math.log(2 * math.pi) + jnp.sum(jnp.log(jnp.diagonal(root)))
    return -0.5 * jnp.sum(gaps * gaps, axis=0) - norm
