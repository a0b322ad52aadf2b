"""Distributions of extremes: Gumbel's of maxima and of minima, and Pareto's with its heavy tail.

Formulas are of the standard form, at location 0 and scale 1; definitions as in SciPy's manual.
"""

from __future__ import annotations

import math
from typing import ClassVar

from stretto._engine.core.typing import Array, ArrayLike
from stretto.numpy.elementary import exp, expm1, log, log1p
from stretto.numpy.normalized import log1mexp
from stretto.scipy.stats.distribution import Invertible


class Pareto(Invertible):
    """The Pareto distribution with exponent ``b``, of density b / y^(b+1) for y ≥ 1.

    Args:
        b: the exponent, positive.

    As SciPy's ``pareto``.

    >>> from stretto.scipy.stats import pareto
    >>> pareto.sf(2.0, 3.0)
    Array(0.125, dtype=float32, weak_type=True)
    """

    shapes = ("b",)

    def support(self, b: Array) -> tuple[ArrayLike, ArrayLike]:
        """Start at 1."""
        return 1, math.inf

    def inner(self, b: Array) -> float:
        """2."""
        return 2.0

    def logpdf_formula(self, y: Array, b: Array) -> Array:
        """log b - (b + 1) log y."""
        return log(b) - (b + 1) * log(y)

    def cdf_formula(self, y: Array, b: Array) -> Array:
        """1 - y^-b."""
        return -expm1(-b * log(y))

    def sf_formula(self, y: Array, b: Array) -> Array:
        """y^-b."""
        return exp(-b * log(y))

    def logcdf_formula(self, y: Array, b: Array) -> Array:
        """log(1 - y^-b)."""
        return log1mexp(b * log(y))

    def logsf_formula(self, y: Array, b: Array) -> Array:
        """-b log y."""
        return -b * log(y)

    def ppf_formula(self, q: Array, b: Array) -> Array:
        """(1 - q)^(-1/b)."""
        return exp(-log1p(-q) / b)

    def isf_formula(self, q: Array, b: Array) -> Array:
        """q^(-1/b)."""
        return exp(-log(q) / b)


class Gumbel_R(Invertible):
    """The Gumbel distribution of maxima, of distribution function exp(-exp(-y)).

    As SciPy's ``gumbel_r``.

    >>> from stretto.scipy.stats import gumbel_r
    >>> gumbel_r.logcdf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        """-y - exp(-y)."""
        return -y - exp(-y)

    def cdf_formula(self, y: Array) -> Array:
        """exp(-exp(-y))."""
        return exp(-exp(-y))

    def sf_formula(self, y: Array) -> Array:
        """1 - exp(-exp(-y))."""
        return -expm1(-exp(-y))

    def logcdf_formula(self, y: Array) -> Array:
        """-exp(-y)."""
        return -exp(-y)

    def logsf_formula(self, y: Array) -> Array:
        """log(1 - exp(-exp(-y)))."""
        return log1mexp(exp(-y))

    def ppf_formula(self, q: Array) -> Array:
        """-log(-log q)."""
        return -log(-log(q))

    def isf_formula(self, q: Array) -> Array:
        """-log(-log(1 - q))."""
        return -log(-log1p(-q))


class Gumbel_L(Invertible):
    """The Gumbel distribution of minima: the mirror image of ``gumbel_r``.

    As SciPy's ``gumbel_l``.

    >>> from stretto.scipy.stats import gumbel_l
    >>> gumbel_l.logsf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """

    _mirror: ClassVar[Gumbel_R] = Gumbel_R()

    def logpdf_formula(self, y: Array) -> Array:
        """Take it at -y."""
        return self._mirror.logpdf_formula(-y)

    def cdf_formula(self, y: Array) -> Array:
        """The survival function at -y."""
        return self._mirror.sf_formula(-y)

    def sf_formula(self, y: Array) -> Array:
        """The distribution function at -y."""
        return self._mirror.cdf_formula(-y)

    def logcdf_formula(self, y: Array) -> Array:
        """The logarithm of the survival function at -y."""
        return self._mirror.logsf_formula(-y)

    def logsf_formula(self, y: Array) -> Array:
        """The logarithm of the distribution function at -y."""
        return self._mirror.logcdf_formula(-y)

    def ppf_formula(self, q: Array) -> Array:
        """The negative of the ``isf`` of ``gumbel_r``."""
        return -self._mirror.isf_formula(q)

    def isf_formula(self, q: Array) -> Array:
        """The negative of the ``ppf`` of ``gumbel_r``."""
        return -self._mirror.ppf_formula(q)


pareto, gumbel_r, gumbel_l = Pareto(), Gumbel_R(), Gumbel_L()
