"""The gamma function, its logarithm and derivatives, with formulas, and Hurwitz's zeta function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute as magnitude
from stretto._engine.ops.comparison import full_like, gt, lt, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.elementwise import COMPLEX, binary, unary
from stretto._engine.ops.exponential import log as log_of
from stretto._engine.ops.rounding import round_
from stretto._engine.ops.trigonometric import tan
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    chebyshev,
    complex_number,
    cos,
    exp,
    expm1,
    floor,
    from_scipy,
    horner,
    imaginary,
    is_nan,
    log,
    log1p,
    power,
    real_part,
    sin,
    tangent,
    where,
)

# The formulas of the gamma function, its logarithm, and the logarithm's derivative.
#
# Sources: DLMF 5.5 (recurrence, reflection), 5.11 (Stirling's series, and that of the digamma
# function). Between, Chebyshev series, whose coefficients were computed with fifty digits from the
# functions.


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
"""The asymptotic series hold from here on."""


def stirling_remainder(x: Number) -> Number:
    """Return log Γ(x) - ((x - 1/2) log x - x + log(2π)/2) for x of at least 8 (DLMF 5.11.1)."""
    inverse = 1.0 / x
    return inverse * horner(_STIRLING, inverse * inverse)


def _reduce_argument(x: Number) -> tuple[Number, Number, Number]:
    """Return e in [-1/2, 1/2], p and d with Γ(x) = Γ(2 + e) p / d, for x from -1/2 to 8."""
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
    """Return the difference from the nearest integer, exactly."""
    return x - floor(x + 0.5)


def log_gamma_formula(x: Number) -> Number:
    """log |Γ(x)|."""
    mirrored = x < -0.5
    z = where(mirrored, 1.0 - x, x)
    e, above, below = _reduce_argument(z)
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
    e, above, below = _reduce_argument(z)
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


# The Hurwitz zeta function, and the derivatives of the digamma function that it gives.
#
# Sources: DLMF 25.11 (zeta), 5.15 (polygamma).


special = LazyModule("scipy.special")

# B_2k / (2k)! for k = 1, 2, ...
_BERNOULLI = (
    0.08333333333333333,
    -0.001388888888888889,
    3.306878306878307e-05,
    -8.267195767195768e-07,
    2.08767569878681e-08,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
    5.5090028283602295e-18,
    -1.3954464685812522e-19,
)
_TERMS = 10

LEAST_SUMMED = -0.25
"""ζ(s) is computed by Euler and Maclaurin's formula from here on, below it from ζ(1 - s).

For s nearer to zero, 1 - s is so close to the pole that its distance from it loses its digits.
"""


def refused_partial(reason: str) -> Any:
    """Return a partial derivative that raises ``MissingRuleError`` for this reason."""

    def refuse(*_: Any) -> NoReturn:
        raise MissingRuleError(reason)

    return refuse


def euler_maclaurin(s: Number, q: Number, order: int = 0) -> Number:
    """Sum (q + k)^-s for q > 0: some terms, then Euler and Maclaurin's formula (DLMF 25.11.5).

    With an ``order``, that derivative in s: by power series in e at s + e, lists of coefficients.
    """
    powers = [_power_series(q + float(k), s, order) for k in range(_TERMS)]
    total = [_sum(column) for column in zip(*powers, strict=True)]
    a = q + float(_TERMS)
    # (s + e) (s + e + 1) ... (s + e + 2k - 2) B_2k / (2k)! a^(1 - 2k)
    factor = _times_linear([1.0] + [0.0] * order, s, a)
    tail = [0.5] + [0.0] * order
    for k, b in enumerate(_BERNOULLI):
        tail = [t + b * f for t, f in zip(tail, factor, strict=True)]
        for rise in (2.0 * k + 1.0, 2.0 * k + 2.0):
            factor = _times_linear(factor, s + rise, a)
    whole, last = _power_series(a, s - 1.0, order), _power_series(a, s, order)
    rest, scale = 0.0, 1.0 / (s - 1.0)
    for j in range(order + 1):
        # 1 / (s - 1 + e) = Σ (-e)^j / (s - 1)^(j + 1)
        other = last[order - j]
        rest = rest + whole[order - j] * scale + where(other == 0.0, 0.0, other * tail[j])
        scale = -scale / (s - 1.0)
    first = total[order]
    out = first + where(absolute(first) == math.inf, 0.0, rest)
    return out * float(math.factorial(order)) if order else out


def _power_series(x: Number, s: Number, order: int) -> list[Number]:
    """x^-(s + e) = x^-s Σ (-log x)^j e^j / j!."""
    out = [power(x, -s)]
    for j in range(1, order + 1):
        out.append(where(out[-1] == 0.0, 0.0, out[-1] * log(x) / -float(j)))
    return out


def _times_linear(series: list[Number], s: Number, a: Number) -> list[Number]:
    """Return the series times (s + e) / a."""
    out = [c * (s / a) for c in series]
    return [out[0], *[c + d / a for c, d in zip(out[1:], series, strict=False)]]


def _sum(terms: Sequence[Number]) -> Number:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def zeta_formula(s: Number, q: Number) -> Number:
    """ζ(s, q): NaN for s < 1, infinite for s = 1; for q < 0 by reflection, where s is whole."""
    below, pole = q < 0.0, floor(q) == q
    part = where(below, q - floor(q), q)
    out = euler_maclaurin(s, part)
    # For f = q + n in (0, 1) the terms before f are those of 1 - f up to 1 - q, times (-1)^s.
    mirrored = where(below, 1.0 - part, 1.0)
    before = euler_maclaurin(s, mirrored) - euler_maclaurin(s, where(below, 1.0 - q, 1.0))
    odd = s - 2.0 * floor(0.5 * s)
    out = where(below, out + (1.0 - 2.0 * odd) * before, out)
    out = where(below & (floor(s) != s), math.nan, out)
    out = where((q <= 0.0) & pole, math.inf, out)
    out = where(s > 1.0, out, where(s == 1.0, math.inf, math.nan))
    return where(is_nan(q), math.nan, out)


def _polygamma_formula(m: Number, x: Number) -> Number:
    """(-1)^(m + 1) m! ζ(m + 1, x) for a whole m > 0 (DLMF 5.15.1); ψ(x) for m = 0."""
    odd = m - 2.0 * floor(0.5 * m)
    out = (2.0 * odd - 1.0) * gamma_formula(m + 1.0) * zeta_formula(m + 1.0, x)
    out = where(m == 0.0, digamma_formula(x), out)
    return where((m >= 0.0) & (floor(m) == m) & (m < math.inf), out, math.nan)


class Zeta(Written):
    """The Hurwitz zeta function."""

    formula = staticmethod(zeta_formula)

    def exact(self, s: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Use SciPy's for q >= 0; for q < 0 that would add up about -q terms."""
        below = q < 0
        out = special.zeta(s, np.where(below, 1, q))
        out = np.where(below, zeta_formula(s, q), out) if np.any(below) else out
        return np.where(np.isnan(s) | np.isnan(q), np.nan, out)

    partials = (
        lambda ds, out, s, q: ds * _beyond_pole(s, ZetaSlope(1)(s, q)),
        # ∂ζ(s, q)/∂q = -s ζ(s + 1, q)
        lambda dq, out, s, q: dq * (-s * zeta(s + full_like(s, 1), q)),
    )


class ZetaSlope(Written):
    """A derivative of ζ(s, q) in s, (-1)^n Σ log^n(q + k) (q + k)^-s; NaN for q <= 0.

    Continued to ``LEAST_SUMMED`` <= s < 1, where the sum has no value.
    """

    order: int

    def formula(self, s: Number, q: Number) -> Number:  # type: ignore[override]
        """Use Euler and Maclaurin's formula."""
        inside = (q > 0.0) & (s >= LEAST_SUMMED)
        out = euler_maclaurin(where(inside, s, 2.0), where(inside, q, 1.0), self.order)
        return where(inside, out, math.nan)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Take the next one in s; in q, ∂ζ(s, q)/∂q = -s ζ(s + 1, q), n times in s."""
        (s, q), (ds, dq), n = primals, tangents, self.order
        parts = [] if ds is None else [ds * ZetaSlope(n + 1)(s, q)]
        if dq is not None:
            above = s + full_like(s, 1)
            lower = zeta(above, q) if n == 1 else ZetaSlope(n - 1)(above, q)
            parts.append(dq * -(s * ZetaSlope(n)(above, q) + full_like(s, n) * lower))
        return self(s, q), parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _beyond_pole(s: Any, x: Any) -> Any:
    """Return ``x`` for s > 1, else NaN."""
    return select(gt(s, full_like(s, 1)), x, full_like(x, math.nan))


class Polygamma(Written):
    """A derivative of the digamma function, of an order given element by element."""

    formula = staticmethod(_polygamma_formula)

    def exact(self, m: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Use SciPy's functions, as the formula."""
        out = np.where(m % 2 != 0, 1, -1) * special.gamma(m + 1) * ZETA.exact(m + 1, x)
        out = np.where(m == 0, special.digamma(x), out)
        return np.where((m >= 0) & (np.floor(m) == m) & (m < np.inf), out, np.nan)

    partials = (
        refused_partial("polygamma has no derivative in its order m, which is a whole number"),
        lambda dx, out, m, x: dx * polygamma(m + full_like(m, 1), x),
    )


ZETA, POLYGAMMA = Zeta(), Polygamma()


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Compute the Hurwitz zeta function ``sum((q + k) ** -x for k = 0, 1, ...)``.

    Derivatives exist with respect to both arguments, in ``x`` for positive ``q``.

    Args:
        x: the exponents, floats.
        q: the first terms, promoted and broadcast with ``x``.

    Returns:
        The sums; infinite at ``x`` = 1 and where ``q`` is 0, -1, ..., NaN for ``x`` below 1.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: DLMF 25.11.1.

    >>> import stretto as st
    >>> st.lax.zeta(st.numpy.array([2.0, 4.0]), 1.0)
    Array([1.644934 , 1.0823232], dtype=float32)
    """
    return binary(ZETA, x, q)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Compute the ``m``-th derivative of ``digamma`` at each ``x``.

    Args:
        m: the orders: whole numbers from 0 on, as floats.
        x: the points, promoted and broadcast with ``m``.

    Returns:
        The derivatives; NaN where ``m`` is not 0, 1, 2, ...

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: DLMF 5.15.

    >>> import stretto as st
    >>> st.lax.polygamma(1.0, st.numpy.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return binary(POLYGAMMA, m, x)


# The gamma function, its logarithm, and the logarithm's derivative.


def _put(out: np.ndarray, x: np.ndarray, mask: np.ndarray, function: Any) -> None:
    """Replace the selected elements, if there are any, by the function of them."""
    if mask.any():
        out[mask] = function(x[mask])


class Lgamma(Written):
    """The logarithm of the absolute value of the gamma function."""

    formula = staticmethod(log_gamma_formula)
    partials = (lambda dx, out, x: dx * digamma(x),)

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Use SciPy's; the formula at its zeros 1 and 2; infinite at minus infinity, as in C."""
        out = np.asarray(special.gammaln(x))
        _put(out, x, (x > 0.5) & (x < 2.5), log_gamma_formula)
        _put(out, x, x == -np.inf, np.abs)
        return out


class Digamma(Written):
    """The derivative of the logarithm of the gamma function."""

    formula = staticmethod(digamma_formula)
    partials = (lambda dx, out, x: dx * polygamma(1.0, x),)

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Use SciPy's; below zero, near the poles, the formula."""
        out = np.asarray(special.digamma(np.where(x < 0, 1.0, x)))  # which is slow below zero
        _put(out, x, x < 0, digamma_formula)
        return out


class Gamma(Written):
    """The gamma function."""

    formula = staticmethod(gamma_formula)
    exact = from_scipy("gamma")
    partials = (lambda dx, out, x: dx * (out * digamma(x)),)


LGAMMA, DIGAMMA, GAMMA = Lgamma(), Digamma(), Gamma()


def lgamma(x: ArrayLike) -> Array:
    """Compute the logarithm of the absolute value of the gamma function.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``; infinite at zero and the negative integers.

    Source: DLMF 5.2.1.

    >>> import stretto as st
    >>> st.lax.lgamma(st.numpy.array([1.0, 3.0, 0.0]))
    Array([0.       , 0.6931472,       inf], dtype=float32)
    """
    return unary(LGAMMA, x)


def digamma(x: ArrayLike) -> Array:
    """Compute the derivative of ``lgamma`` at each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``; NaN at the negative integers.

    Source: DLMF 5.2.2.

    >>> import stretto as st
    >>> st.lax.digamma(st.numpy.array([1.0, 2.0, -1.0]))
    Array([-0.5772157 ,  0.42278433,         nan], dtype=float32)
    """
    return unary(DIGAMMA, x)


def gamma(x: Any) -> Any:
    """Return the gamma function of each element; NaN at the negative integers.

    Source: DLMF 5.2.1.

    >>> import stretto as st
    >>> gamma(st.numpy.array([5.0, 0.5, -1.0]))
    Array([24.       ,  1.7724539,        nan], dtype=float32)
    """
    return unary(GAMMA, x)


# The gamma and the digamma function of complex numbers.
#
# Source: DLMF 5.5.1, 5.5.3 (recurrence and reflection), 5.11.1, 5.11.2 (Stirling's series).


# B_2k for k = 1, 2, ...
_EVEN_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_SHIFT = 10
_FAR_OUT = 10.0
"""The series holds without the recurrence from this imaginary part on."""


def _gamma_formula(z: Number) -> Number:
    """Sum Stirling's series far from zero, by the recurrence; on the left by reflection."""
    x, y = real_part(z), imaginary(z)
    far = absolute(y) >= _FAR_OUT
    mirrored = ~far & (x < 0.5)
    w = where(mirrored, 1.0 - z, z)
    near = ~far & (real_part(w) < _FAR_OUT)
    product = w
    for k in range(1, _SHIFT):
        product = product * (w + float(k))
    v = where(near, w + float(_SHIFT), w)
    inverse = 1.0 / v
    square = inverse * inverse
    total = 0.0 * v
    for k in range(len(_EVEN_BERNOULLI), 0, -1):
        total = total * square + _EVEN_BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    out = exp((v - 0.5) * log(v) - v + total * inverse + 0.5 * math.log(2 * math.pi))
    out = where(near, out / product, out)
    # π / (sin(πz) Γ(1 - z)); the sine about the nearest integer
    nearest = floor(x + 0.5)
    odd = nearest - 2.0 * floor(0.5 * nearest)
    sign = 1.0 - 2.0 * odd
    angle, height = math.pi * (x - nearest), math.pi * where(mirrored, y, 0.0 * y)
    up, down = expm1(height), expm1(-height)
    sine = complex_number(
        sign * sin(angle) * (0.5 * (up + down) + 1.0), sign * cos(angle) * 0.5 * (up - down)
    )
    pole = mirrored & (sine == 0.0)
    mirror = math.pi / (where(pole, 1.0, sine) * out)
    out = where(mirrored, mirror, out)
    return where(pole, complex(math.nan, math.nan), out)


class ComplexGamma(Written):
    """The gamma function of complex numbers."""

    accepts = COMPLEX
    formula = staticmethod(_gamma_formula)
    exact = from_scipy("gamma")
    partials = (lambda dz, out, z: dz * (out * complex_digamma(z)),)


COMPLEX_GAMMA = ComplexGamma()


def complex_gamma(z: Any) -> Any:
    """Return the gamma function of each complex element (DLMF 5.2.1)."""
    return COMPLEX_GAMMA(z)


def complex_digamma(z: Any) -> Any:
    """Differentiate the logarithm of the gamma function of complex numbers (DLMF 5.2.2)."""
    x, y = real(z), imag(z)
    one = full_like(z, 1)
    far = full_like(y, _FAR_OUT)
    mirrored = lt(x, full_like(x, 0.5)) & lt(magnitude(y), far)
    w = select(mirrored, one - z, z)
    near = lt(magnitude(y), far) & lt(real(w), far)
    inside = select(near, w, one)
    below = zeros_like(z)
    for k in range(_SHIFT):
        below = below + one / (inside + full_like(z, k))
    v = select(near, w + full_like(z, _SHIFT), w)
    square = one / (v * v)
    total = zeros_like(z)
    for k in range(len(_EVEN_BERNOULLI), 0, -1):
        total = (total + full_like(z, _EVEN_BERNOULLI[k - 1] / (2 * k))) * square
    out = log_of(v) - full_like(z, 0.5) / v - total
    out = select(near, out - below, out)
    # ψ(1 - z) - π / tan(πz), with the tangent about the nearest integer
    about = select(mirrored, z - complex_(round_(x), zeros_like(x)), full_like(z, 0.25))
    return select(mirrored, out - full_like(z, math.pi) / tan(full_like(z, math.pi) * about), out)
