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
from stretto._engine.ops.special.erf_inv_reference import erf_inv_float32

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
        """Python's: for the bounds of truncated distributions SciPy need not be loaded."""
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
        """CHLO ``erfc``, which has no eight-bit form."""
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
        """XLA's polynomials up to float32, so that random numbers agree; SciPy's beyond."""
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
