"""The Hurwitz zeta function, and the derivatives of the digamma function that it gives.

Sources: DLMF 25.11 (zeta), 5.15 (polygamma).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.comparison import full_like, gt, select
from stretto._engine.ops.elementwise import binary
from stretto._engine.ops.special.gamma_formulas import digamma_formula, gamma_formula
from stretto._engine.ops.written import Number, Written, absolute, floor, is_nan, log, power, where

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
"""From here on ζ(s) is computed by Euler and Maclaurin's formula, below it from ζ(1 - s).

For s nearer to zero, 1 - s is so close to the pole that its distance from it loses its digits.
"""


def refused_partial(reason: str) -> Any:
    """A partial derivative that raises ``MissingRuleError`` for this reason."""

    def refuse(*_: Any) -> NoReturn:
        raise MissingRuleError(reason)

    return refuse


def euler_maclaurin(s: Number, q: Number, order: int = 0) -> Number:
    """Σ (q + k)^-s for q > 0: some terms, then Euler and Maclaurin's formula (DLMF 25.11.5).

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
    """The series times (s + e) / a."""
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
    return where(is_nan(s) | is_nan(q), math.nan, out)


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
        """SciPy's for q >= 0; for q < 0 that would add up about -q terms."""
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
        """By Euler and Maclaurin's formula."""
        inside = (q > 0.0) & (s >= LEAST_SUMMED)
        out = euler_maclaurin(where(inside, s, 2.0), where(inside, q, 1.0), self.order)
        return where(inside, out, math.nan)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """In s the next one; in q, ∂ζ(s, q)/∂q = -s ζ(s + 1, q) differentiated n times in s."""
        (s, q), (ds, dq), n = primals, tangents, self.order
        parts = [] if ds is None else [ds * ZetaSlope(n + 1)(s, q)]
        if dq is not None:
            above = s + full_like(s, 1)
            lower = zeta(above, q) if n == 1 else ZetaSlope(n - 1)(above, q)
            parts.append(dq * -(s * ZetaSlope(n)(above, q) + full_like(s, n) * lower))
        return self(s, q), parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _beyond_pole(s: Any, x: Any) -> Any:
    """``x`` for s > 1, else NaN."""
    return select(gt(s, full_like(s, 1)), x, full_like(x, math.nan))


class Polygamma(Written):
    """A derivative of the digamma function, of an order given element by element."""

    formula = staticmethod(_polygamma_formula)

    def exact(self, m: np.ndarray, x: np.ndarray) -> np.ndarray:
        """By SciPy's functions, as the formula."""
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
