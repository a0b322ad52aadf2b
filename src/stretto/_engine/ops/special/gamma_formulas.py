"""The formulas of the gamma function, its logarithm, and the logarithm's derivative.

Sources: DLMF 5.5 (recurrence, reflection), 5.11 (Stirling's series, and that of the digamma
function). Between, Chebyshev series, whose coefficients were computed with fifty digits from the
functions.
"""

from __future__ import annotations

import math

from stretto._engine.ops.written import (
    Number,
    absolute,
    chebyshev,
    exp,
    floor,
    horner,
    log,
    log1p,
    power,
    sin,
    tangent,
    where,
)

# log Γ(2 + t/2) / (t/2) for t in [-1, 1]
_LOG_GAMMA = (
    0.41418612492156676,
    0.16322170068760064,
    -0.008658972394126285,
    0.0006727515726001485,
    -6.139556963628233e-05,
    6.110065797003576e-06,
    -6.410003033826223e-07,
    6.962242692768951e-08,
    -7.747248733788217e-09,
    8.774075140687239e-10,
    -1.0070266869830198e-10,
    1.1678602130652374e-11,
    -1.3656871334744932e-12,
    1.6079351149711552e-13,
    -1.9039501088488732e-14,
    2.2653768767833064e-15,
    -2.706656814831896e-16,
    3.245660731626191e-17,
    -3.904483378457447e-18,
)

# ψ(3/2 + t/2) / (3/2 + t/2 - root) for t in [-1, 1]
_DIGAMMA = (
    0.983570260441567,
    -0.2270640863346444,
    0.03336889902393011,
    -0.005320077271596548,
    0.0008788656937820505,
    -0.00014773492650606044,
    2.5060543468359146e-05,
    -4.2721034029993324e-06,
    7.302769272465923e-07,
    -1.2502886813559594e-07,
    2.1425009322359472e-08,
    -3.673295918565179e-09,
    6.299717236108931e-10,
    -1.080593028883266e-10,
    1.853735192053638e-11,
    -3.18023536582553e-12,
    5.456147570322795e-13,
    -9.360993131036438e-14,
    1.606064636295075e-14,
    -2.7555431377438815e-15,
    4.727736178601912e-16,
    -8.11148420346509e-17,
    1.391707769474154e-17,
    -2.3877901082188625e-18,
)

# The positive root of ψ: a float, and what is missing
_ROOT, _ROOT_REST = 1.4616321449683622, 9.549995429965697e-17

# B_2k / (2k (2k - 1)), and B_2k / 2k, for k = 1, 2, ...
_STIRLING = (
    0.08333333333333333,
    -0.002777777777777778,
    0.0007936507936507937,
    -0.0005952380952380953,
    0.0008417508417508417,
    -0.0019175269175269176,
    0.00641025641025641,
    -0.029550653594771242,
    0.17964437236883057,
)
_DIGAMMA_FAR = (
    0.08333333333333333,
    -0.008333333333333333,
    0.003968253968253968,
    -0.004166666666666667,
    0.007575757575757576,
    -0.021092796092796094,
    0.08333333333333333,
    -0.4432598039215686,
    3.0539543302701198,
    -26.456212121212122,
)

_FAR = 8.0
"""From here on the asymptotic series hold."""


def stirling_remainder(x: Number) -> Number:
    """log Γ(x) - ((x - 1/2) log x - x + log(2π)/2) for x of at least 8 (DLMF 5.11.1)."""
    inverse = 1.0 / x
    return inverse * horner(_STIRLING, inverse * inverse)


def _reduced(x: Number) -> tuple[Number, Number, Number]:
    """e in [-1/2, 1/2], and p and d such that Γ(x) = Γ(2 + e) p / d, for x from -1/2 to 8."""
    whole = where(x < 2.5, where(x < 1.5, where(x < 0.5, 0.0 * x, 1.0), 2.0), floor(x + 0.5))
    above, below = 1.0, where(x < 0.5, x, 1.0)
    for k in range(1, 7):  # x - 1, ..., down to [1.5, 2.5)
        lower = x - float(k)
        above = above * where(lower >= 1.5, lower, 1.0)
    return x - whole, above, below


def log_gamma_two(e: Number) -> Number:
    """log Γ(2 + e)."""
    return e * chebyshev(_LOG_GAMMA, 2.0 * e)


def _from_whole(x: Number) -> Number:
    """The difference from the nearest integer, exactly."""
    return x - floor(x + 0.5)


def log_gamma_formula(x: Number) -> Number:
    """log |Γ(x)|."""
    mirrored = x < -0.5
    z = where(mirrored, 1.0 - x, x)
    e, above, below = _reduced(z)
    near = log_gamma_two(e) + log(above)
    near = near - where(z < 1.5, log1p(e), 0.0) - log(absolute(below))
    far = (z - 0.5) * (log(z) - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5) + stirling_remainder(z)
    out = where(z >= _FAR, far, near)
    # Γ(x) Γ(1 - x) = π / sin(πx)
    sine = absolute(sin(math.pi * _from_whole(x)))
    reflected = where((sine == 0.0) | (z == math.inf), math.inf, log(math.pi / sine) - out)
    return where(mirrored, reflected, out)


def gamma_formula(x: Number) -> Number:
    """Γ(x): infinite at zeros, NaN at negative integers, as in SciPy."""
    mirrored = x < -0.5
    z = where(mirrored, 1.0 - x, x)
    e, above, below = _reduced(z)
    near = exp(log_gamma_two(e)) * above / (where(z < 1.5, 1.0 + e, 1.0) * below)
    half = power(z, 0.5 * z - 0.25)  # z^(z - 1/2) overflows before Γ(z)
    rest = math.sqrt(2 * math.pi) * exp(stirling_remainder(z))
    far = where(z < 180.0, half * exp(-z) * half * rest, math.inf)
    out = where(z >= _FAR, far, near)
    nearest = floor(x + 0.5)
    odd = nearest - 2.0 * floor(0.5 * nearest)
    sine = sin(math.pi * (x - nearest)) * (1.0 - 2.0 * odd)
    reflected = where(sine == 0.0, math.nan, math.pi / (sine * out))
    return where(mirrored, reflected, out)


def digamma_formula(x: Number) -> Number:
    """ψ(x): opposite infinities at zeros, NaN at negative integers, as in SciPy."""
    mirrored = x < 0.0
    z = where(mirrored, 1.0 - x, x)
    small = z < 1.0
    y = where(small, z + 1.0, z)
    more = where(small, -1.0 / z, 0.0)
    for _ in range(6):  # ψ(y) = ψ(y - 1) + 1 / (y - 1)
        lower = y - 1.0
        again = (lower >= 1.0) & (z < _FAR)
        more = more + where(again, 1.0 / lower, 0.0)
        y = where(again, lower, y)
    slope = chebyshev(_DIGAMMA, 2.0 * y - 3.0)
    near = ((y - _ROOT) * slope - _ROOT_REST * slope) + more
    square = 1.0 / (z * z)
    far = log(z) - 0.5 / z - square * horner(_DIGAMMA_FAR, square)
    out = where(z >= _FAR, far, near)
    # ψ(1 - x) - ψ(x) = π cot(πx)
    part = _from_whole(x)
    reflected = where(part == 0.0, math.nan, out - math.pi / tangent(math.pi * part))
    return where(mirrored, reflected, out)
