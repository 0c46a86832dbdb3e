"""Random numbers as functions of a key.

    key : seed -> key      split, fold_in : key -> keys      uniform, normal, ... : key, shape, dtype -> array

The same key gives the same bits always, on every platform and under every transformation, and they are those of JAX; so
are the samples, as far as both are compiled alike. They are not where JAX's formula loses its digits: `poisson` and `binomial`
for means above 1e5, `wald` far from its mean, `t` and `f` where a gamma sample underflows, `truncated_normal` in a far tail.
Keys of "rbg" and "unsafe_rbg" give other bits on other platforms, and under `vmap`.

>>> import funcml
>>> k1, k2 = funcml.random.split(funcml.random.key(0))
>>> funcml.random.normal(k1, (3,)).shape
(3,)
"""

from funcml.random.arrangements import choice, permutation
from funcml.random.bits import bits
from funcml.random.continuous import cauchy, exponential, laplace, logistic, normal, truncated_normal, uniform
from funcml.random.counts import binomial, multinomial, poisson
from funcml.random.discrete import bernoulli, categorical, rademacher, randint
from funcml.random.extremes import gumbel
from funcml.random.families import (
    double_sided_maxwell,
    geometric,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
from funcml.random.gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from funcml.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from funcml.random.matrices import multivariate_normal, orthogonal

__all__ = [
    # keys
    "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data",
    # continuous distributions
    "beta", "cauchy", "chisquare", "double_sided_maxwell", "exponential", "f", "gamma", "generalized_normal", "gumbel", "laplace",
    "loggamma", "logistic", "lognormal", "maxwell", "normal", "pareto", "rayleigh", "t", "triangular", "truncated_normal",
    "uniform", "wald", "weibull_min",
    # of vectors and matrices
    "ball", "dirichlet", "multivariate_normal", "orthogonal",
    # bits, discrete distributions, order and choice
    "bernoulli", "binomial", "bits", "categorical", "choice", "geometric", "multinomial", "permutation", "poisson", "rademacher",
    "randint",
]
