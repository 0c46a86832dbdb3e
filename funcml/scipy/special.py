"""Special functions, element by element, and `logsumexp`.

Integers become floats. Formulas: NIST Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math

from funcml import dtypes
from funcml.core.linear import is_zero
from funcml.core.tracing import aval_of
from funcml.nn.normalization import log_softmax, logsumexp, softmax
from funcml.numpy import rows
from funcml.numpy.rows import fill
from funcml.primitives import elementwise as ew
from funcml.primitives import special
from funcml.primitives import transcendental as tr
from funcml.primitives.powers import square
from funcml.random.tails import mills
from funcml.transforms.custom_jvp import custom_jvp

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfinv", "expit", "gammaln", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr",
    "log_softmax", "logit", "logsumexp", "ndtr", "polygamma", "rel_entr", "softmax", "xlog1py", "xlogy", "zeta",
]


def _function(make, name: str, kernel, doc: str):
    """A function of this module, made as the ufuncs of `funcml.numpy` are."""
    function = make(name, kernel, doc, inexact=True)
    function.__module__ = __name__
    return function


def _unary(name, kernel, doc):
    return _function(rows.unary, name, kernel, doc)


def _binary(name, kernel, doc):
    return _function(rows.binary, name, kernel, doc)


# ---- error functions and the normal distribution -------------------------------------------------------------

erf = _unary("erf", special.erf, "The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.")
erfc = _unary("erfc", special.erfc, "1 - erf(x), exact where it is small.")
erfinv = _unary("erfinv", special.erf_inv, "The y with erf(y) = x.")
ndtr = _unary(
    "ndtr",
    lambda x: ew.mul(0.5, special.erfc(ew.mul(x, -math.sqrt(0.5)))),
    "The probability that a standard normal variable is below x.",
)

# where log(ndtr(-x)) is better taken from Mills' ratio: log R(x) - x^2 / 2 - log(2 pi) / 2
_TAIL = {dtypes.float32: 4.0, dtypes.float64: 6.0}
_LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)


def _log_density(x):
    return ew.sub(ew.mul(-0.5, square(x)), _LOG_ROOT_2_PI)


@custom_jvp
def _log_ndtr(x):
    limit = _TAIL[aval_of(x).dtype]
    tail = ew.lt(x, -limit)
    far = ew.add(_log_density(x), tr.log(mills(ew.select(tail, ew.neg(x), fill(x, limit)))))
    below, above = (ew.mul(0.5, special.erfc(ew.mul(x, s * math.sqrt(0.5)))) for s in (-1, 1))
    near = ew.select(ew.lt(x, 0), tr.log(ew.select(tail, fill(x, 1), below)), tr.log1p(ew.neg(above)))
    return ew.select(ew.eq(x, -math.inf), x, ew.select(tail, far, near))


# (log P)' = p / P
_log_ndtr.defjvps(lambda t, ans, x: ew.mul(t, tr.exp(ew.sub(_log_density(x), ans))))


def _in_float32(kernel):
    """The kernel, with narrow floats computed in float32."""

    def wide(x):
        dtype = aval_of(x).dtype
        narrow = dtypes.bit_width(dtype) < 32
        return ew.convert(kernel(ew.convert(x, dtypes.float32)), dtype) if narrow else kernel(x)

    return wide


log_ndtr = _unary("log_ndtr", _in_float32(_log_ndtr), "log(ndtr(x)), exact in both tails.")

# ---- sigmoid and its inverse ---------------------------------------------------------------------------------

expit = _unary("expit", tr.logistic, "1 / (1 + exp(-x)).")
logit = _unary("logit", lambda p: ew.sub(tr.log(p), tr.log1p(ew.neg(p))), "log(p / (1 - p)), the inverse of expit.")

# ---- gamma and its relatives ---------------------------------------------------------------------------------

gammaln = _unary("gammaln", special.lgamma, "log(|gamma(x)|).")
digamma = _unary("digamma", special.digamma, "The derivative of log(gamma(x)).")
polygamma = _binary("polygamma", special.polygamma, "The n-th derivative of digamma at x, n >= 0 a whole number.")
zeta = _binary("zeta", special.zeta, "Hurwitz' zeta function, the sum of (k + q)^-x over k >= 0.")

# ---- Bessel functions ----------------------------------------------------------------------------------------

i0e = _unary("i0e", special.bessel_i0e, "exp(-|x|) I0(x).")
i1e = _unary("i1e", special.bessel_i1e, "exp(-|x|) I1(x).")
i0 = _unary(
    "i0", lambda x: ew.mul(tr.exp(ew.abs(x)), special.bessel_i0e(x)), "The modified Bessel function I0 of the first kind."
)
i1 = _unary(
    "i1", lambda x: ew.mul(tr.exp(ew.abs(x)), special.bessel_i1e(x)), "The modified Bessel function I1 of the first kind."
)

# ---- x log y and what is made of it ----------------------------------------------------------------------------


def _times_log(log, slope):
    """x log(y), and 0 where x is 0 and y no nan.  z' = log(y) x' + x slope(y) y', whose last term is 0 where x is 0."""

    @custom_jvp
    def product(x, y):
        zero = ew.and_(ew.eq(x, 0), ew.eq(y, y))
        return ew.select(zero, fill(x, 0), ew.mul(x, log(y)))

    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        parts = [] if is_zero(tx) else [ew.mul(tx, log(y))]
        if not is_zero(ty):
            parts.append(ew.mul(ty, ew.select(ew.eq(x, 0), fill(x, 0), ew.mul(x, slope(y)))))
        return product(x, y), parts[0] if len(parts) == 1 else ew.add(*parts)

    product.defjvp(rule, symbolic_zeros=True)
    return product


_xlogy = _times_log(tr.log, lambda y: ew.div(1.0, y))
_xlog1py = _times_log(tr.log1p, lambda y: ew.div(1.0, ew.add(1.0, y)))

xlogy = _binary("xlogy", _xlogy, "x log(y); 0 where x = 0, unless y is nan.")
xlog1py = _binary("xlog1py", _xlog1py, "x log(1 + y); 0 where x = 0, unless y is nan.")
entr = _unary(
    "entr",
    lambda x: ew.select(ew.lt(x, 0), fill(x, -math.inf), ew.neg(_xlogy(x, x))),
    "-x log(x); 0 where x = 0, -inf where x < 0.",
)


def _relative(where_positive, where_x_is_0):
    """A function of x and y: inf where one is negative, or where y alone is 0."""

    def kernel(x, y):
        positive = ew.and_(ew.gt(x, 0), ew.gt(y, 0))
        safe_x, safe_y = (ew.select(positive, z, fill(z, 1)) for z in (x, y))
        at_0 = ew.and_(ew.eq(x, 0), ew.ge(y, 0))
        value = ew.select(at_0, where_x_is_0(y), fill(x, math.inf))
        value = ew.select(positive, where_positive(safe_x, safe_y), value)
        return ew.select(ew.or_(ew.ne(x, x), ew.ne(y, y)), fill(x, math.nan), value)

    return kernel


def _x_log_ratio(x, y):
    return ew.mul(x, tr.log(ew.div(x, y)))


rel_entr = _binary(
    "rel_entr",
    _relative(_x_log_ratio, lambda y: fill(y, 0)),
    "x log(x / y); 0 where x = 0 and y >= 0, inf where x or y is negative, or y alone is 0.",
)
kl_div = _binary(
    "kl_div",
    _relative(lambda x, y: ew.add(ew.sub(_x_log_ratio(x, y), x), y), lambda y: y),
    "x log(x / y) - x + y; y where x = 0 and y >= 0, inf where x or y is negative, or y alone is 0.",
)
