"""Exponentials, logarithms and the logistic function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import complex_edges, thresholds
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.elementwise import (
    FLOAT,
    INEXACT,
    Elementwise,
    describe_unary,
    in_float32,
    unary,
)
from stretto._engine.ops.trigonometric import tanh
from stretto._engine.ops.written import Term, absolute
from stretto._engine.ops.written import exp as exp_of
from stretto._engine.ops.written import log1p as log1p_of


class Exp(complex_edges.Edged):
    """e to the power x."""

    accepts = INEXACT
    costs = thresholds.EXP
    op = "exponential"
    reference = staticmethod(np.exp)
    edges = staticmethod(complex_edges.exp_edges)
    partials = (lambda dx, out, x: dx * out,)


class Exp2(Elementwise):
    """2 to the power x."""

    accepts = INEXACT
    costs = thresholds.EXP2
    op = "exp2"
    reference = staticmethod(np.exp2)
    partials = (lambda dx, out, x: dx * (full_like(x, math.log(2)) * out),)

    def lower(self, b: Any, x: Any) -> Any:
        """``power`` of 2; of complex numbers the exponential of x log 2."""
        if is_complex(x.type.dtype):
            return b.inline(lambda x: exp(x * full_like(x, math.log(2))), x)
        return b.emit("power", b.splat(2, x.type), x)


class Expm1(complex_edges.Edged):
    """e to the power x, minus 1, exact near zero."""

    accepts = INEXACT
    kernel = Kernel.LONG
    op = "exponential_minus_one"
    reference = staticmethod(complex_edges.expm1_reference)
    edges = staticmethod(complex_edges.expm1_edges)
    # exp(x), as out + 1 has no digit left where out rounds to -1
    partials = (lambda dx, out, x: dx * exp(x),)


class Log(complex_edges.Edged):
    """The natural logarithm."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.LOG
    op = "log"
    reference = staticmethod(np.log)
    edges = staticmethod(complex_edges.log_edges)
    partials = (lambda dx, out, x: dx / x,)


class Log1p(complex_edges.Edged):
    """The natural logarithm of 1 + x, exact near zero."""

    accepts = INEXACT
    kernel = Kernel.LONG
    op = "log_plus_one"
    reference = staticmethod(complex_edges.log1p_reference)
    edges = staticmethod(complex_edges.log_edges)
    partials = (lambda dx, out, x: dx / (x + full_like(x, 1)),)

    def lower(self, b: Any, x: Any) -> Any:
        """Write one operation; in float64, where it is off by a hundred ulps, write it out."""
        if x.type.dtype == np.float64:
            return log1p_of(Term(b, x)).operand
        return super().lower(b, x)


class Logistic(Elementwise):
    """1 / (1 + exp(-x))."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.LOGISTIC
    op = "logistic"
    partials = (lambda dx, out, x: dx * _logistic_slope(out, x),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Compute by the definition, in at least float32; complex numbers without overflow."""
        if is_complex(x.dtype):
            left = np.real(x) < 0
            e = np.exp(np.where(left, x, -x))
            return np.where(left, e, 1) / (1 + e)
        return in_float32(_logistic, x)


def _logistic_slope(out: Any, x: Any) -> Any:
    # out (1 - out) has no digit left where out rounds to 1, from x = 17 on in float32.
    return out * (full_like(out, 1) - out) if is_complex(x.type.dtype) else LOGISTIC_SLOPE(x)


class LogisticSlope(Elementwise):
    """The derivative of the logistic function, exact in both tails."""

    accepts = FLOAT
    kernel = Kernel.LONG
    # s''(x) = -tanh(x / 2) s'(x)
    partials = (lambda dx, out, x: -(dx * (tanh(full_like(x, 0.5) * x) * out)),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Compute by one exponential, in at least float32."""
        return in_float32(lambda v: _slope_by(np.exp(-np.abs(v))), x)

    def lower(self, b: Any, x: Any) -> Any:
        wide = b.convert(x, np.dtype(np.float32)) if x.type.dtype.itemsize < 4 else x
        return b.convert(_slope_by(exp_of(-absolute(Term(b, wide)))).operand, x.type.dtype)


def _slope_by(e: Any) -> Any:
    """e / (1 + e)^2, the slope for e = exp(-|x|)."""
    return e / ((e + 1.0) * (e + 1.0))


def _logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), computed in place."""
    out = np.negative(x, out=np.empty_like(x))
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


EXP, EXP2, EXPM1, LOG, LOG1P, LOGISTIC = Exp(), Exp2(), Expm1(), Log(), Log1p(), Logistic()
LOGISTIC_SLOPE = LogisticSlope()


@describe_unary
def exp(x: ArrayLike) -> Array:
    """Raise e to the power of each element.

    Returns:
        The powers, of the shape of ``x``; integers become floats.

    As NumPy's ``exp``. Source: StableHLO, ``exponential``.

    >>> import stretto.numpy as snp
    >>> snp.exp(snp.array([-snp.inf, 0.0]))
    Array([0., 1.], dtype=float32)
    """
    return unary(EXP, x)


@describe_unary
def exp2(x: ArrayLike) -> Array:
    """Raise 2 to the power of each element.

    Returns:
        The powers, of the shape of ``x``; integers become floats.

    As NumPy's ``exp2``.

    >>> import stretto.numpy as snp
    >>> snp.exp2(snp.array([0.0, 3.0]))
    Array([1., 8.], dtype=float32)
    """
    return unary(EXP2, x)


@describe_unary
def expm1(x: ArrayLike) -> Array:
    """Compute ``exp(x) - 1`` of each element, accurately near zero.

    As NumPy's ``expm1``. Source: StableHLO, ``exponential_minus_one``.

    >>> import stretto.numpy as snp
    >>> snp.expm1(snp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    return unary(EXPM1, x)


@describe_unary
def log(x: ArrayLike) -> Array:
    """Take the natural logarithm of each element.

    Returns:
        The logarithms, -inf at zero and NaN below it; of the shape of ``x``; integers become
        floats.

    As NumPy's ``log``. Source: StableHLO, ``log``.

    >>> import stretto.numpy as snp
    >>> snp.log(snp.array([1.0, 0.0]))
    Array([  0., -inf], dtype=float32)
    """
    return unary(LOG, x)


@describe_unary
def log1p(x: ArrayLike) -> Array:
    """Compute ``log(1 + x)`` of each element, accurately near zero.

    Returns:
        The logarithms, -inf at -1 and NaN below it; of the shape of ``x``; integers become floats.

    As NumPy's ``log1p``. Source: StableHLO, ``log_plus_one``.

    >>> import stretto.numpy as snp
    >>> snp.log1p(snp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    return unary(LOG1P, x)


@describe_unary
def logistic(x: ArrayLike) -> Array:
    """Compute ``1 / (1 + exp(-x))`` of each element.

    Source: StableHLO, ``logistic``.

    >>> import stretto as st
    >>> st.lax.logistic(st.numpy.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return unary(LOGISTIC, x)
