"""The modified Bessel functions of orders 0 and 1, and the same scaled exponentially.

They are Chebyshev series, whose coefficients were computed with fifty digits from the functions
(DLMF 10.25.2).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import thresholds
from stretto._engine.ops.arithmetic import absolute as absolute_of
from stretto._engine.ops.arithmetic import sign
from stretto._engine.ops.comparison import full_like, lt, select, zeros_like
from stretto._engine.ops.elementwise import describe_unary, unary
from stretto._engine.ops.exponential import exp as exp_of
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    chebyshev,
    exp,
    from_scipy,
    is_nan,
    sqrt,
    where,
)

# e^-x I_0(x) for x = 4t + 4, and sqrt(x) e^-x I_0(x) for x = 16 / (t + 1), t in [-1, 1]
_I0_NEAR = (
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993451e-14,
    1.715391285555133e-15,
    -2.431279846547955e-16,
    3.3307945188222384e-17,
    -4.4153416464793395e-18,
    5.669178006921496e-19,
)
_I0_FAR = (
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.54008621752141e-14,
    -4.150569347287222e-14,
    -9.554846698828307e-15,
    3.8116806693526224e-15,
    1.7725601330565263e-15,
    -3.425485619677219e-16,
    -2.8276239805165836e-16,
    3.461222867697461e-17,
    4.46562142029676e-17,
    -4.830504485944182e-18,
    -7.233180487874754e-18,
)

# e^-x I_1(x) / x and sqrt(x) e^-x I_1(x) there
_I1_NEAR = (
    0.12629359322181682,
    -0.17641651835783406,
    0.1026436586898471,
    -0.05294598120809499,
    0.024726449030626516,
    -0.010564084894626197,
    0.004156422944312888,
    -0.0015135724506312532,
    0.0005122859561685758,
    -0.00016176081582589674,
    4.781565107550054e-05,
    -1.3273163656039436e-05,
    3.4702513081376785e-06,
    -8.568720264695455e-07,
    2.0032947535521353e-07,
    -4.445059128796328e-08,
    9.381537386495773e-09,
    -1.8872497517228294e-09,
    3.625590281552117e-10,
    -6.663489723502027e-11,
    1.1736186298890901e-11,
    -1.9839743977649436e-12,
    3.223793365945575e-13,
    -5.042185504727912e-14,
    7.600684294735408e-15,
    -1.1055969477353862e-15,
    1.5536319577362005e-16,
    -2.111421214358166e-17,
    2.7779141127610464e-18,
    -3.541581772542136e-19,
)
_I1_FAR = (
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.0356285441470896e-12,
    -7.198551776245908e-13,
    -4.0835511110921974e-13,
    -2.1015418427726643e-14,
    4.272440016711951e-14,
    1.0420276984128802e-14,
    -3.8144030724370075e-15,
    -1.8803547755107825e-15,
    3.3082023109209285e-16,
    2.96262899764595e-16,
    -3.209525921993424e-17,
    -4.6503053684893586e-17,
    4.414348323071708e-18,
    7.517296310842105e-18,
    -9.314178867326884e-19,
    -1.242193275194891e-18,
)


def _by_series(near: tuple[float, ...], far: tuple[float, ...], x: Number) -> tuple[Number, Number]:
    """Return both series at |x|, each where it holds."""
    size = absolute(x)
    small = size <= 8.0
    beyond = where(small, 8.0, size)
    return (
        chebyshev(near, where(small, 0.25 * size - 1.0, 0.0)),
        chebyshev(far, 16.0 / beyond - 1.0) / sqrt(beyond),
    )


def _i0e_formula(x: Number) -> Number:
    near, far = _by_series(_I0_NEAR, _I0_FAR, x)
    return where(absolute(x) <= 8.0, near, where(is_nan(x), x, far))


def _i1e_formula(x: Number) -> Number:
    near, far = _by_series(_I1_NEAR, _I1_FAR, x)
    out = where(absolute(x) <= 8.0, x * near, where(x < 0.0, -far, far))
    return where(is_nan(x), x, out)


class BesselI0e(Written):
    """exp(-|x|) I_0(x)."""

    costs = thresholds.BESSEL
    formula = staticmethod(_i0e_formula)
    exact = from_scipy("i0e")
    partials = (lambda dx, out, x: dx * (bessel_i1e(x) - sign(x) * out),)


class BesselI1e(Written):
    """exp(-|x|) I_1(x)."""

    costs = thresholds.BESSEL
    formula = staticmethod(_i1e_formula)
    partials = (lambda dx, out, x: dx * (_i0e_less_ratio(x, out) - sign(x) * out),)

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Use SciPy's, with the sign of zero."""
        return np.copysign(_scipy_i1e(self, x), x)


_scipy_i1e = from_scipy("i1e")


def _i0e_less_ratio(x: Any, i1e: Any) -> Any:
    """e^-|x| I_1' = e^-|x| (I_0 - I_1 / x)."""
    near, ratio = _ratio_near_zero(x)
    scaled = ratio * exp_of(-absolute_of(x))
    return bessel_i0e(x) - select(near, scaled, i1e / select(near, full_like(x, 1), x))


class BesselI0(Written):
    """I_0(x)."""

    costs = thresholds.BESSEL_GROWING
    partials = (lambda dx, out, x: dx * bessel_i1(x),)

    @staticmethod
    def formula(x: Number) -> Number:
        """Scale back by e^(x/2) twice, as e^x overflows before I_0(x)."""
        half = exp(0.5 * absolute(x))
        return where(absolute(x) < math.inf, half * _i0e_formula(x) * half, absolute(x))

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Use SciPy's, infinite at infinities."""
        return np.where(np.isinf(x), np.inf, _scipy_i0(self, x))


class BesselI1(Written):
    """I_1(x)."""

    costs = thresholds.BESSEL_GROWING
    partials = (lambda dx, out, x: dx * _i0_less_ratio(x, out),)

    @staticmethod
    def formula(x: Number) -> Number:
        """Scale the scaled one back."""
        half = exp(0.5 * absolute(x))
        return where(absolute(x) < math.inf, half * _i1e_formula(x) * half, x)

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Use SciPy's, with the sign of zero, infinite at infinities."""
        return np.where(np.isinf(x), x, np.copysign(_scipy_i1(self, x), x))


_scipy_i0, _scipy_i1 = from_scipy("i0"), from_scipy("i1")


def _i0_less_ratio(x: Any, i1: Any) -> Any:
    """I_1' = I_0 - I_1 / x."""
    near, ratio = _ratio_near_zero(x)
    return bessel_i0(x) - select(near, ratio, i1 / select(near, full_like(x, 1), x))


def _ratio_near_zero(x: Any) -> tuple[Any, Any]:
    """Say whether |x| < 1; I_1(x) / x there, by its series, which has all derivatives at zero."""
    # sum of (x^2 / 4)^k / (2 k! (k + 1)!), DLMF 10.25.2
    near = lt(absolute_of(x), full_like(x, 1))
    inside = select(near, x, zeros_like(x))
    square = inside * inside * full_like(x, 0.25)
    total = zeros_like(x)
    for k in range(11, -1, -1):
        term = 0.5 / (math.factorial(k) * math.factorial(k + 1))
        total = total * square + full_like(x, term)
    return near, total


I0E, I1E, I0, I1 = BesselI0e(), BesselI1e(), BesselI0(), BesselI1()


def bessel_i0(x: Any) -> Any:
    """Return the modified Bessel function of order 0, of each element (DLMF 10.25.2).

    >>> import stretto.numpy as snp
    >>> bessel_i0(snp.array([0.0, 1.0]))
    Array([1.       , 1.2660658], dtype=float32)
    """
    return unary(I0, x)


def bessel_i1(x: Any) -> Any:
    """Return the modified Bessel function of order 1, of each element (DLMF 10.25.2).

    >>> import stretto.numpy as snp
    >>> bessel_i1(snp.array([0.0, 1.0]))
    Array([0.       , 0.5651591], dtype=float32)
    """
    return unary(I1, x)


@describe_unary
def bessel_i0e(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of order 0, times ``exp(-abs(x))``.

    Source: DLMF 10.25.2.

    >>> import stretto as st
    >>> st.lax.bessel_i0e(st.numpy.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return unary(I0E, x)


@describe_unary
def bessel_i1e(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of order 1, times ``exp(-abs(x))``.

    Source: DLMF 10.25.2.

    >>> import stretto as st
    >>> st.lax.bessel_i1e(st.numpy.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return unary(I1E, x)
