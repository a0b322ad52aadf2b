"""Distributions of angles, in radians."""

from __future__ import annotations

import math

from stretto._engine.core.typing import Array, ArrayLike
from stretto.numpy.elementary import log, log1p
from stretto.numpy.trigonometric import cos
from stretto.scipy.stats.distribution import Density
from stretto.special import i0e

_LOG_2PI = math.log(2 * math.pi)


class VonMises(Density):
    """The von Mises distribution, of density exp(kappa cos y) / (2π I₀(kappa)), periodic in y.

    Args:
        kappa: the concentration, 0 or more.

    As SciPy's ``vonmises``.

    >>> from stretto.scipy.stats import vonmises
    >>> (vonmises.pdf(1.0, 0.0) * 6.2831855).round(4)
    Array(1., dtype=float32, weak_type=True)
    """

    shapes = ("kappa",)

    def allowed(self, kappa: Array) -> Array:
        """kappa ≥ 0."""
        return kappa >= 0

    def logpdf_formula(self, y: Array, kappa: Array) -> Array:
        """With I₀ scaled by exp(-kappa), so that nothing overflows."""
        return kappa * (cos(y) - 1) - _LOG_2PI - log(i0e(kappa))


class WrapCauchy(Density):
    """The wrapped Cauchy distribution on [0, 2π], with 0 < c < 1.

    Args:
        c: the concentration, between 0 and 1.

    As SciPy's ``wrapcauchy``.

    >>> from stretto.scipy.stats import wrapcauchy
    >>> wrapcauchy.pdf(7.0, 0.5)
    Array(0., dtype=float32, weak_type=True)
    """

    shapes = ("c",)

    def allowed(self, c: Array) -> Array:
        """0 < c < 1."""
        return (c > 0) & (c < 1)

    def support(self, c: Array) -> tuple[ArrayLike, ArrayLike]:
        """One turn."""
        return 0, 2 * math.pi

    def logpdf_formula(self, y: Array, c: Array) -> Array:
        """Log(1 - c²) - log 2π - log(1 + c² - 2c cos y)."""
        return log1p(-c * c) - _LOG_2PI - log1p(c * c - 2 * c * cos(y))


vonmises, wrapcauchy = VonMises(), WrapCauchy()
