"""Owen's T function, for bivariate normal probabilities."""

from __future__ import annotations

import functools
import math

import numpy as np

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.elementwise import binary
from stretto._engine.ops.exponential import exp as exp_of
from stretto._engine.ops.special.error_functions import erf
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    erfc,
    exp,
    from_scipy,
    is_nan,
    where,
)

__all__ = ["owens_t"]

legendre = LazyModule("numpy.polynomial.legendre")


@functools.cache
def _nodes() -> tuple[tuple[float, float], ...]:
    """Nodes and weights of Gauss-Legendre quadrature on [0, 1]."""
    nodes, weights = legendre.leggauss(32)
    return tuple(zip((0.5 * nodes + 0.5).tolist(), (0.5 * weights).tolist(), strict=True))


def _integral(h: Number, a: Number) -> Number:
    """T(h, a) for h >= 0 and 0 <= a <= 1: ∫ exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx / 2π.

    Beyond x = 9 / h the integrand is negligible compared with its value at 0.
    """
    end = where(a * h > 9.0, 9.0 / where(h > 1.0, h, 1.0), a)
    total = 0.0
    for node, weight in _nodes():
        x = end * node
        square = x * x
        total = total + weight * exp(-0.5 * (h * h) * square) / (1.0 + square)
    return total * end * exp(-0.5 * h * h) * (0.5 / math.pi)


def _owens_t_formula(h: Number, a: Number) -> Number:
    """Even in h, odd in a; for a > 1 by T(h, a) + T(ah, 1/a) = (Q(h) + Q(ah)) / 2 - Q(h) Q(ah)."""
    height, slope = absolute(h), absolute(a)
    steep = slope > 1.0
    product = where(height == 0.0, 0.0, height * slope)
    low = where(steep, product, height)
    low = where(low < 100.0, low, 100.0)  # beyond, everything is zero
    part = _integral(low, where(steep, 1.0 / slope, slope))
    q, r = 0.5 * erfc(math.sqrt(0.5) * height), 0.5 * erfc(math.sqrt(0.5) * product)
    out = where(steep, 0.5 * (q + r) - q * r - part, part)
    out = where(is_nan(h) | is_nan(a), math.nan, out)
    return where(a < 0.0, -out, out)


class OwensT(Written):
    """Owen's T function."""

    formula = staticmethod(_owens_t_formula)
    # ∂T/∂h = -φ(h) erf(ah / √2) / 2; ∂T/∂a the integrand at a
    partials = (
        lambda dh, out, h, a: (
            -(
                dh
                * exp_of(full_like(h, -0.5) * h * h)
                * erf(full_like(h, math.sqrt(0.5)) * a * h)
                * full_like(h, 0.5 / math.sqrt(2 * math.pi))
            )
        ),
        lambda da, out, h, a: da * _integrand(h, a),
    )

    def exact(self, h: np.ndarray, a: np.ndarray) -> np.ndarray:
        """SciPy's, with the sign of zero."""
        out = _scipy(self, h, a)
        return np.where(out == 0, np.where(a < 0, -0.0, 0.0), out)


_scipy = from_scipy("owens_t")


def _integrand(h: Array, a: Array) -> Array:
    square = full_like(a, 1) + a * a
    return exp_of(full_like(h, -0.5) * h * h * square) * full_like(a, 0.5 / math.pi) / square


OWENS_T = OwensT()


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Compute Owen's T function, a probability of two normal variables.

    Args:
        h: real numbers.
        a: real numbers, promoted and broadcast with ``h``.

    Returns:
        The probabilities of X > h and 0 < Y < aX, for independent standard normal X and Y.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``owens_t``. Source: Owen, "Tables for computing bivariate normal probabilities",
    1956.

    >>> import stretto as st
    >>> st.special.owens_t(st.numpy.array([0.0, 1.0]), 1.0)
    Array([0.125     , 0.06674188], dtype=float32)
    """
    return binary(OWENS_T, h, a)
