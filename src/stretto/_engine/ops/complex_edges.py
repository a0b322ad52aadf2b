"""Functions of complex numbers where XLA's formulas break: at zeros, infinities and NaN.

XLA computes them from real functions, where infinity times zero gives NaN and sums lose the sign of
zero. The right values are those of C99's annex G, which NumPy and the array API standard follow.
Each rule takes the parts ``a`` and ``b`` of the argument, and ``u`` and ``v`` of XLA's result, and
returns the corrected parts. Last come references for the functions that NumPy gets wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.types import is_complex
from stretto._engine.ops.comparison import eq, full_like, le, lt, ne, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.rounding import is_finite


class WithEdges(Elementwise, abstract=True):
    """A function whose result for complex numbers is corrected by its rule ``edges``."""

    edges: ClassVar[Callable[..., tuple[Any, Any]]]

    def lower(self, b: Any, x: Any) -> Any:
        """Write one operation; for complex numbers, followed by the rule."""
        out = b.emit(self.op, x, dialect=self.dialect)
        return b.inline(self._correct, x, out) if is_complex(x.type.dtype) else out

    def _correct(self, x: Any, out: Any) -> Any:
        return complex_(*type(self).edges(real(x), imag(x), real(out), imag(out)))


def _is(x: Any, number: float) -> Any:
    return eq(x, full_like(x, number))


def is_infinite(x: Any) -> Any:
    """Say whether each real number is infinite."""
    return _is(x, math.inf) | _is(x, -math.inf)


def _is_nan(x: Any) -> Any:
    return ne(x, x)


def _within_one(x: Any) -> Any:
    return le(x * x, full_like(x, 1))


def _like_zero(x: Any, zero: Any) -> Any:
    """Return ``x`` with the sign of a zero: the side of a branch cut that its argument is on."""
    size = select(lt(x, zeros_like(x)), -x, x)
    return select(lt(full_like(zero, 1) / zero, zeros_like(zero)), -size, size)


def tanh_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Make the hyperbolic tangent real or imaginary where its argument is, and real at infinity."""
    v = select(_is(b, 0) | (is_infinite(a) & is_finite(b)), _zero_like(b), v)
    return select(_is(a, 0), a, u), select(_is(b, 0), b, v)


def tan_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Treat the tangent as the hyperbolic tangent, with the parts exchanged."""
    v, u = tanh_edges(b, a, v, u)
    return u, v


def _zero_like(x: Any) -> Any:
    """Return zero with the sign of a finite number."""
    zero = zeros_like(x)
    return select(lt(x, zero), -zero, zero)


def _exponential(a: Any, b: Any, u: Any, v: Any, least: float) -> tuple[Any, Any]:
    # exp(a) cis(b): where cis(b) is NaN, exp(-inf) = 0 and exp(inf) = inf remain
    undefined = ~is_finite(b)
    high, low = undefined & _is(a, math.inf), undefined & _is(a, -math.inf)
    u = select(low, full_like(u, least), select(high, a, u))
    return u, select(_is(b, 0), b, select(low, zeros_like(v), v))


def exp_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Correct the exponential."""
    return _exponential(a, b, u, v, 0.0)


def expm1_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Correct the exponential minus 1."""
    return _exponential(a, b, u, v, -1.0)


def log_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Make the modulus of logarithms infinite where one part is, whatever the other."""
    return select(is_infinite(a) | is_infinite(b), full_like(u, math.inf), u), v


def sqrt_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Make the square root infinite where one part is."""
    high, undefined = full_like(u, math.inf), _is_nan(b)
    v = select(_is(b, 0), _like_zero(v, b), v)
    v = select(undefined & _is(a, -math.inf), high, v)
    u = select(undefined & _is(a, math.inf), high, u)
    infinite = is_infinite(b)
    return select(infinite, high, u), select(infinite, b, v)


def asinh_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Make the inverse hyperbolic sine real where ``b`` is zero, imaginary between its branches."""
    u = select(_is(a, 0), select(_within_one(b), a, _like_zero(u, a)), u)
    return u, select(_is(b, 0), b, v)


def asin_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Treat the inverse sine as the inverse hyperbolic sine, with the parts exchanged."""
    v, u = asinh_edges(b, a, v, u)
    return u, v


def acos_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Take the inverse cosine as a right angle minus the inverse sine."""
    u = select(_is(a, 0), full_like(u, math.pi / 2), u)
    return u, select(_is(b, 0), select(_within_one(a), -b, -_like_zero(v, b)), v)


def acosh_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Give the angle of the inverse hyperbolic cosine the sign of ``b``, also of zero."""
    below = _is(b, 0) & lt(full_like(b, 1) / b, zeros_like(b))
    v = select(below, -select(lt(v, zeros_like(v)), -v, v), v)
    return u, select(_is(a, 0) & _is_nan(b), full_like(v, math.pi / 2), v)


def atanh_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Make the inverse hyperbolic tangent imaginary where its argument is, NaN where that is."""
    v = select(_is(b, 0), select(_within_one(a), b, _like_zero(v, b)), v)
    undefined = _is_nan(b) | (_is_nan(a) & is_finite(b))
    return select(_is(a, 0), a, u), select(undefined, full_like(v, math.nan), v)


def atan_edges(a: Any, b: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Treat the inverse tangent as the inverse hyperbolic tangent, with the parts exchanged."""
    v, u = atanh_edges(b, a, v, u)
    return u, v


# By NumPy


def tanh_reference(x: np.ndarray) -> np.ndarray:
    """Return the hyperbolic tangent.

    At infinity the imaginary part has the sign of the argument's.
    """
    out = np.tanh(x)
    if x.dtype.kind != "c":
        return out
    a, b = np.real(x), np.imag(x)
    far = np.isinf(a) & np.isfinite(b)
    if far.any():
        out = np.array(out)
        out.imag = np.where(far, np.copysign(0, b), np.imag(out))
    return out


def tan_reference(x: np.ndarray) -> np.ndarray:
    """Return the tangent, -i tanh(ix)."""
    if x.dtype.kind != "c":
        return np.tan(x)
    return _times_i(tanh_reference(_times_i(x, -1)), 1)


def _times_i(x: np.ndarray, sign: int) -> np.ndarray:
    """Return -i x or i x, exactly."""
    out = np.empty(x.shape, x.dtype)
    out.real, out.imag = sign * np.imag(x), -sign * np.real(x)
    return out


def expm1_reference(x: np.ndarray) -> np.ndarray:
    """Return ``exp(x) - 1``, complex by parts, with what remains where cis(b) is NaN."""
    if not is_complex(x.dtype):
        return np.expm1(x)
    # exp(a) cis(b) - 1 = expm1(a) cos(b) - 2 sin(b / 2)^2 + i exp(a) sin(b)
    a, b = np.real(x), np.imag(x)
    out = np.empty(x.shape, x.dtype)
    undefined, low = ~np.isfinite(b), a == -np.inf
    u = np.expm1(a) * np.cos(b) - 2 * np.sin(b / 2) ** 2
    out.real = np.where(low, -1, np.where(undefined & (a == np.inf), a, u + 0.0))
    out.imag = np.where(b == 0, b, np.where(undefined & low, 0, np.exp(a) * np.sin(b)))
    return out


def log1p_reference(x: np.ndarray) -> np.ndarray:
    """Return ``log(1 + x)``; near zero log|1 + z| is by log1p, which NumPy does not do."""
    if not is_complex(x.dtype):
        return np.log1p(x)
    out, a, b = np.array(np.log1p(x)), np.real(x), np.imag(x)
    # |1 + a + ib|^2 = 1 + a (2 + a) + b^2
    near = np.log1p(a * (2 + a) + b * b) / 2
    out.real = np.where(np.maximum(np.abs(a), np.abs(b)) < 0.5, near, np.real(out))
    return out
