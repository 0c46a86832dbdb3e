"""Special functions, element by element, and `logsumexp`.

Integers become floats, operands broadcast, and every function has derivatives of any order by each operand that is no whole
number. Formulas: NIST Digital Library of Mathematical Functions (DLMF).
"""

from funcml.nn.normalization import logsumexp
from funcml.scipy.special.bessel import bessel_jn, i0, i0e, i1, i1e
from funcml.scipy.special.error_functions import (
    dawsn,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
    owens_t,
    wofz,
)
from funcml.scipy.special.exponentials import log_softmax, softmax
from funcml.scipy.special.gamma_functions import (
    bernoulli,
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)
from funcml.scipy.special.harmonics import sph_harm_y
from funcml.scipy.special.hypergeometric import hyp1f1, hyp2f1
from funcml.scipy.special.information import boxcox, boxcox1p, entr, expit, kl_div, logit, rel_entr, xlog1py, xlogy
from funcml.scipy.special.integrals import exp1, expi, expn, fresnel, sici, spence

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn", "digamma", "entr", "erf",
    "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi", "expit", "expn", "factorial", "fresnel", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax",
    "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma", "rel_entr", "sici",
    "softmax", "spence", "sph_harm_y", "wofz", "xlog1py", "xlogy", "zeta",
]  # fmt: skip
