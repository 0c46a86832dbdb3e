"""StableHLO of `primitives.hypergeometric`: power series, after transformations that make them converge.

Terms may cancel, so that all is computed in float64."""

from __future__ import annotations

import math

from funcml.lowering.emit import lowers
from funcml.lowering.loops import repeat
from funcml.lowering.rules_elementwise import full
from funcml.lowering.smooth import cases, smooth
from funcml.primitives import elementwise as ew
from funcml.primitives import hypergeometric, special
from funcml.primitives import transcendental as tr

_STEPS_1F1 = 400
_FAR = 100.0
_STEPS_FAR = 32


def _series(upper, lower, x, steps: int):
    """The sum over n <= steps of the product of (u)_n / (l)_n times x^n / n!, from its last term on."""

    def body(k, total):
        n = ew.sub(float(steps - 1), k)
        ratio = ew.div(x, ew.add(n, 1.0))
        for u in upper:
            ratio = ew.mul(ratio, ew.add(u, n))
        for v in lower:
            ratio = ew.div(ratio, ew.add(v, n))
        return (ew.add(1.0, ew.mul(ratio, total)),)

    return repeat(steps, body, [full(1, x)], unroll=8)[0]


def _is_pole(x):
    return ew.and_(ew.le(x, 0.0), ew.eq(x, ew.floor(x)))


# M(a, b, x) = exp(x) M(b - a, b, -x)                                                              DLMF 13.2.39
def _hyp1f1(a, b, x):
    negative = ew.lt(x, 0.0)
    p = cases((negative, ew.sub(b, a)), a)
    z = ew.abs(x)
    far = ew.ge(z, _FAR)
    near_value = _series((p,), (b,), cases((far, 1), z), _STEPS_1F1)
    near_value = cases((negative, ew.mul(near_value, tr.exp(cases((far, 0), x)))), near_value)
    large = cases((far, z), full(_FAR, z))
    # gamma(b) / gamma(p) exp(z) z^(p - b) sum of (1 - p)_n (b - p)_n / n! z^-n                     DLMF 13.7.1
    expansion = _series((ew.sub(1.0, p), ew.sub(b, p)), (), ew.div(1.0, large), _STEPS_FAR)
    exponent = ew.add(ew.sub(special.lgamma(b), special.lgamma(p)), ew.mul(ew.sub(p, b), tr.log(large)))
    exponent = ew.add(exponent, cases((negative, 0), large))
    sign = ew.mul(_sign_of_gamma(b), _sign_of_gamma(p))
    far_value = ew.mul(sign, ew.mul(tr.exp(exponent), expansion))
    value = cases((far, cases((_is_pole(p), 0), far_value)), near_value)
    return cases((ew.eq(a, 0.0), 1), (_is_pole(b), math.inf), value)


def _sign_of_gamma(x):
    whole = ew.floor(x)
    odd = ew.ne(whole, ew.mul(2.0, ew.floor(ew.mul(0.5, whole))))
    return cases((ew.and_(ew.lt(x, 0.0), odd), -1), full(1, x))


lowers(hypergeometric.hyp1f1_p)(smooth(_hyp1f1, wide=True))

_STEPS_2F1 = 480
_NEAR_1 = 0.9


# F(a, b; c; x) = (1 - x)^-a F(a, c - b; c; x / (x - 1)) for x < 0                                  DLMF 15.8.1
def _hyp2f1(a, b, c, x):
    negative = ew.lt(x, 0.0)
    q = cases((negative, ew.sub(c, b)), b)
    z = cases((negative, ew.div(x, ew.sub(x, 1.0))), x)
    ends = ew.or_(_is_pole(a), _is_pole(q))
    near_1 = ew.and_(ew.gt(z, _NEAR_1), ew.not_(ends))
    inside = _series((a, q), (c,), cases((near_1, 0.5), z), _STEPS_2F1)
    value = cases((near_1, _about_1(a, q, c, cases((near_1, z), full(0.95, z)))), inside)
    power = tr.exp(ew.neg(ew.mul(a, tr.log1p(ew.neg(cases((negative, x), full(0, x)))))))
    value = cases((negative, ew.mul(power, value)), value)
    value = cases((ew.and_(ew.gt(x, 1.0), ew.not_(ends)), math.inf), value)
    trivial = ew.or_(ew.or_(ew.eq(a, 0.0), ew.eq(b, 0.0)), ew.eq(x, 0.0))
    ended = ew.or_(ew.and_(_is_pole(a), ew.gt(a, c)), ew.and_(_is_pole(b), ew.gt(b, c)))
    pole = ew.and_(_is_pole(c), ew.not_(ended))
    return cases((trivial, 1), (pole, math.inf), value)


def _about_1(a, b, c, z):
    """F near z = 1; where c - a - b is nearly whole, the mean of its values at c + h and c - h, where the formula holds."""
    s = ew.sub(ew.sub(c, a), b)
    whole = ew.lt(ew.abs(ew.sub(s, ew.round(s))), 1e-5)
    h = ew.mul(1e-5, ew.max(ew.abs(c), 1.0))
    above = _connection(a, b, cases((whole, ew.add(c, h)), c), z)
    below = _connection(a, b, cases((whole, ew.sub(c, h)), c), z)
    value = cases((whole, ew.mul(0.5, ew.add(above, below))), above)
    at_1 = cases((ew.gt(s, 0.0), _gauss(a, b, c)), full(math.inf, z))
    return cases((ew.ge(z, 1.0), at_1), value)


def _gauss(a, b, c):
    """gamma(c) gamma(c - a - b) / (gamma(c - a) gamma(c - b))                                     DLMF 15.4.20"""
    return _gamma_ratio((c, ew.sub(ew.sub(c, a), b)), (ew.sub(c, a), ew.sub(c, b)))


def _gamma_ratio(above, below):
    exponent, sign = 0.0, 1.0
    for x, direction in [(x, 1) for x in above] + [(x, -1) for x in below]:
        size = special.lgamma(x)
        exponent = ew.add(exponent, size) if direction > 0 else ew.sub(exponent, size)
        sign = ew.mul(sign, _sign_of_gamma(x))
    return ew.mul(sign, tr.exp(exponent))


# gamma(c) gamma(s) / (gamma(c - a) gamma(c - b)) F(a, b; 1 - s; y) + y^s gamma(c) gamma(-s) / (gamma(a) gamma(b))
# F(c - a, c - b; s + 1; y), with s = c - a - b and y = 1 - z                                      DLMF 15.8.4
def _connection(a, b, c, z):
    y = ew.sub(1.0, z)
    p, q = ew.sub(c, a), ew.sub(c, b)
    s = ew.sub(p, b)
    one = ew.mul(_gamma_ratio((c, s), (p, q)), _series((a, b), (ew.sub(1.0, s),), y, 32))
    power = tr.exp(ew.mul(s, tr.log(cases((ew.gt(y, 0.0), y), full(1, y)))))
    two = ew.mul(_gamma_ratio((c, ew.neg(s)), (a, b)), _series((p, q), (ew.add(s, 1.0),), y, 32))
    return ew.add(one, ew.mul(power, two))


lowers(hypergeometric.hyp2f1_p)(smooth(_hyp2f1, wide=True))
