"""Distributions, and statistics of samples.

Distributions are modules: `stats.norm.logpdf(x, loc, scale)`. Integers become floats and operands broadcast. Probabilities and
their logarithms keep their digits in both tails; outside of the support all derivatives are 0; parameters that are no good
give nan.
"""

from funcml.scipy.stats import (
    bernoulli,
    beta,
    betabinom,
    binom,
    cauchy,
    chi2,
    dirichlet,
    expon,
    gamma,
    gennorm,
    geom,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    multinomial,
    multivariate_normal,
    nbinom,
    norm,
    pareto,
    poisson,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from funcml.scipy.stats.kde import gaussian_kde
from funcml.scipy.stats.samples import mode, rankdata, sem

__all__ = [
    # distributions
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm", "geom", "gumbel_l",
    "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t",
    "truncnorm", "uniform", "vonmises", "wrapcauchy",
    # of samples
    "gaussian_kde", "mode", "rankdata", "sem",
]
