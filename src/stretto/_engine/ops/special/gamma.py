"""The gamma function, its logarithm, and the logarithm's derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.elementwise import unary
from stretto._engine.ops.special.gamma_formulas import (
    digamma_formula,
    gamma_formula,
    log_gamma_formula,
)
from stretto._engine.ops.special.zeta import polygamma
from stretto._engine.ops.written import Written, from_scipy

special = LazyModule("scipy.special")


def _put(out: np.ndarray, x: np.ndarray, mask: np.ndarray, function: Any) -> None:
    """Replace the selected elements, if there are any, by the function of them."""
    if mask.any():
        out[mask] = function(x[mask])


class Lgamma(Written):
    """The logarithm of the absolute value of the gamma function."""

    formula = staticmethod(log_gamma_formula)
    partials = (lambda dx, out, x: dx * digamma(x),)

    def exact(self, x: np.ndarray) -> np.ndarray:
        """SciPy's; the formula at its zeros 1 and 2; infinite at minus infinity, as in C."""
        out = np.asarray(special.gammaln(x))
        _put(out, x, (x > 0.5) & (x < 2.5), log_gamma_formula)
        _put(out, x, x == -np.inf, np.abs)
        return out


class Digamma(Written):
    """The derivative of the logarithm of the gamma function."""

    formula = staticmethod(digamma_formula)
    partials = (lambda dx, out, x: dx * polygamma(1.0, x),)

    def exact(self, x: np.ndarray) -> np.ndarray:
        """SciPy's; below zero, near the poles, the formula."""
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
    """The gamma function of each element; NaN at the negative integers.

    Source: DLMF 5.2.1.

    >>> import stretto as st
    >>> gamma(st.numpy.array([5.0, 0.5, -1.0]))
    Array([24.       ,  1.7724539,        nan], dtype=float32)
    """
    return unary(GAMMA, x)
