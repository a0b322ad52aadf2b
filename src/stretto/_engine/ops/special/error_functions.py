"""The error function, its complement and its inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.primitive import Kernel
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import thresholds
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.elementwise import FLOAT, Elementwise, in_float32, unary
from stretto._engine.ops.exponential import exp

# The inverse of the error function in float32, as compiled programs compute it.
#
# Source: Giles, "Approximating the erfinv function", GPU Computing Gems, 2010: two polynomials in
# ``w = -log(1 - x^2)``. Random numbers are computed with it, and must be the same eagerly and
# compiled: an exact inverse differs from the approximation in the last digits.


# From the highest power down: in w - 5/2 for w < 5, in sqrt(w) - 3 beyond.
_CENTRAL = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)

_BLOCK = 1 << 12  # numbers that stay in the cache


def _horner(coefficients: tuple[float, ...], w: np.ndarray) -> np.ndarray:
    """Return the polynomial with fused steps: each product and sum rounded once, to float32."""
    first, *rest = np.array(coefficients, np.float32)
    wide, p = w.astype(np.float64), np.full(w.shape, first)
    for c in rest:
        p = (p * wide + np.float64(c)).astype(np.float32)
    return p


def _inverse(x: np.ndarray) -> np.ndarray:
    w = -np.log1p(-x * x)
    p = _horner(_CENTRAL, w - np.float32(2.5))
    tail = ~(w < 5)
    if np.any(tail):
        p = np.where(tail, _horner(_TAIL, np.sqrt(w) - np.float32(3)), p)
    return np.where(np.abs(x) == 1, x * np.float32(np.inf), p * x)


def erf_inv_float32(x: np.ndarray) -> np.ndarray:
    """Return the inverse error function of float32 numbers; infinite at -1 and 1, NaN beyond."""
    if x.size <= _BLOCK:
        return _inverse(x)
    flat = x.reshape(-1)
    blocks = [_inverse(flat[i : i + _BLOCK]) for i in range(0, x.size, _BLOCK)]
    return np.concatenate(blocks).reshape(x.shape)


# The error function, its complement and its inverse.


special = LazyModule("scipy.special")


class Erf(Elementwise):
    """The error function."""

    accepts = FLOAT
    kernel = Kernel.LONG
    costs = thresholds.ERF
    op = "erf"
    dialect = "chlo"
    # 2/sqrt(pi) exp(-x^2)
    partials = (lambda dx, out, x: dx * (full_like(x, 2 / math.sqrt(math.pi)) * exp(-(x * x))),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(special.erf, x)

    def splat_reference(self, x: np.ndarray) -> np.ndarray:
        """Use Python's: for the bounds of truncated distributions SciPy need not be loaded."""
        return np.asarray(math.erf(x), x.dtype)


class Erfc(Elementwise):
    """One minus the error function, exact in the tail."""

    accepts = FLOAT
    kernel = Kernel.LONG
    costs = thresholds.ERFC
    op = "erfc"
    partials = (lambda dx, out, x: dx * (full_like(x, -2 / math.sqrt(math.pi)) * exp(-(x * x))),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(special.erfc, x)

    def splat_reference(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(math.erfc(x), x.dtype)

    def lower(self, b: Any, x: Any) -> Any:
        """Write CHLO ``erfc``, which has no eight-bit form."""
        if x.type.dtype.itemsize > 1:
            return b.emit("erfc", x, dialect="chlo")
        x = b.convert(x, np.dtype(np.float32))
        return b.convert(b.emit("erfc", x, out=x.type, dialect="chlo"), b.outs[0].dtype)


class ErfInv(Elementwise):
    """The inverse of the error function."""

    accepts = FLOAT
    kernel = Kernel.LONG
    costs = thresholds.ERF_INV
    op = "erf_inv"
    dialect = "chlo"
    # sqrt(pi)/2 exp(out^2)
    partials = (lambda dx, out, x: dx * (full_like(x, math.sqrt(math.pi) / 2) * exp(out * out)),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Use XLA's polynomials up to float32, so that random numbers agree; SciPy's beyond."""
        if x.dtype.itemsize <= 4:
            return in_float32(erf_inv_float32, x)
        return np.copysign(special.erfinv(x), x)  # SciPy loses the sign of zero


ERF, ERFC, ERF_INV = Erf(), Erfc(), ErfInv()


def erf(x: ArrayLike) -> Array:
    """Compute the error function of each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, from -1 to 1, of the shape of ``x``.

    Source: Abramowitz and Stegun 7.1.1.

    >>> import stretto as st
    >>> st.lax.erf(st.numpy.array([0.0, 9.0]))
    Array([0., 1.], dtype=float32)
    """
    return unary(ERF, x)


def erfc(x: ArrayLike) -> Array:
    """Compute ``1 - erf(x)`` of each element, exact in the tail.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, from 0 to 2, of the shape of ``x``.

    Source: Abramowitz and Stegun 7.1.2.

    >>> import stretto as st
    >>> st.lax.erfc(st.numpy.array([0.0, 99.0]))
    Array([1., 0.], dtype=float32)
    """
    return unary(ERFC, x)


def erf_inv(x: ArrayLike) -> Array:
    """Compute the inverse of the error function at each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``; infinite at -1 and 1, NaN beyond.

    Source: CHLO, ``erf_inv``.

    >>> import stretto as st
    >>> st.lax.erf_inv(st.numpy.array([0.0, 1.0, 2.0]))
    Array([ 0., inf, nan], dtype=float32)
    """
    return unary(ERF_INV, x)
