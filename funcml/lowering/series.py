"""Series of special functions, as programs of primitives, with their coefficients.

    polynomial : (c_0, c_1, ...), x -> c_0 + c_1 x + ...          Horner
    chebyshev  : (c_0, c_1, ...), t -> c_0 + c_1 T_1(t) + ...     Clenshaw, t in [-1, 1]

The coefficients were computed from their definitions with 40 digits. A series ends where the terms are below the
precision of the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcml import dtypes
from funcml.core.tracing import aval_of
from funcml.primitives.elementwise import add, mul, sub

# c_k = (-1)^k (zeta(k) - 1) / k for k >= 2:  lgamma(2 + w) = (1 - gamma) w + sum of c_k w^k                DLMF 5.7.3
LGAMMA_AT_2 = (
    0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986,
    0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939,
    9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06,
    4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07,
    2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
    1.0838659214896955e-08, -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
    5.731367241678862e-10, -2.7595228851242334e-10, 1.330476437424449e-10,
)
ONE_MINUS_EULER_GAMMA = 0.42278433509846713

# x0, the float next to the zero of digamma, with digamma(x0); and c_k = polygamma(k, x0) / k! for k >= 1
DIGAMMA_ZERO = {
    dtypes.float32: (1.4616321325302124, -1.203605254910667e-08),
    dtypes.float64: (1.4616321449683622, -9.241265521729427e-17),
}
DIGAMMA_AT_ZERO = (
    0.9676722454476212, -0.4427631689835921, 0.258499760955651, -0.16394270544240652, 0.10782405069126237,
    -0.07219956125645471, 0.04880428816414311, -0.03316112647484736, 0.022597648232218104,
    -0.01542476590494896, 0.010538791616612175, -0.007204534386356869, 0.004926781395729853,
    -0.003369801655439328, 0.002305126326734928, -0.0015769367714301972, 0.0010788252019162967,
    -0.0007380709389960052, 0.000504953265834602, -0.0003454680251063077, 0.00023635601564027053,
    -0.00016170622091974803,
)

# exp(-x) I0(x) for x in [0, 8], t = x / 4 - 1
BESSEL_I0E_SMALL = (
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18, 5.669178006921496e-19,
)
# sqrt(x) exp(-x) I0(x) for x >= 8, t = 16 / x - 1
BESSEL_I0E_LARGE = (
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14,
    -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18,
    -7.233180487874754e-18, 1.193650890845982e-18,
)


def _significant(coefficients: Sequence[float], dtype, reach: float) -> Sequence[float]:
    """The coefficients up to the last whose term, c reach^k, counts in this dtype."""
    limit = float(dtypes.finfo(dtype).eps) / 16
    count = 1 + max(k for k, c in enumerate(coefficients) if abs(c) * reach**k > limit or k == 0)
    return coefficients[:count]


def polynomial(coefficients: Sequence[float], x, reach: float):
    """c_0 + c_1 x + c_2 x^2 + ..., for |x| <= `reach`."""
    *rest, total = _significant(coefficients, aval_of(x).dtype, reach)
    for c in reversed(rest):
        total = add(mul(x, total), c)
    return total


def chebyshev(coefficients: Sequence[float], t):
    """c_0 + c_1 T_1(t) + c_2 T_2(t) + ... by b_k = c_k + 2 t b_(k+1) - b_(k+2); the sum is c_0 + t b_1 - b_2."""
    first, *rest = _significant(coefficients, aval_of(t).dtype, 1.0)
    twice = mul(2.0, t)
    b1 = b2 = mul(0.0, t)
    for c in reversed(rest):
        b1, b2 = add(sub(mul(twice, b1), b2), c), b1
    return add(sub(mul(t, b1), b2), first)
