"""The Faddeeva function: the scaled error function of complex numbers.

Source: Al Azah, Chandler-Wilde, "Computation of the complex error function using modified
trapezoidal rules", SIAM J. Numer. Anal. 59, 2021.
"""

from __future__ import annotations

import math

from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute as absolute_of
from stretto._engine.ops.comparison import full_like, lt, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, real
from stretto._engine.ops.convert import as_inexact
from stretto._engine.ops.elementwise import COMPLEX
from stretto._engine.ops.exponential import exp as exp_of
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    complex_number,
    cos,
    exp,
    floor,
    from_scipy,
    imaginary,
    real_part,
    sin,
    where,
)

__all__ = ["wofz"]

_TERMS = 12
_STEP = math.sqrt(math.pi / _TERMS)
_MIDPOINTS = [((k + 0.5) * _STEP) ** 2 for k in range(_TERMS)]
_POINTS = [((k + 1.0) * _STEP) ** 2 for k in range(_TERMS - 1)]


def _divided(top_x: Number, top_y: Number, x: Number, y: Number) -> tuple[Number, Number]:
    """(top_x + i top_y) / (x + iy) as real and imaginary parts, for numbers far from overflow."""
    size = x * x + y * y
    return (top_x * x + top_y * y) / size, (top_y * x - top_x * y) / size


def _rule(x: Number, y: Number, squares: list[float], start: float) -> tuple[Number, Number]:
    """h/π i (start / z + 2z Σ exp(-t^2) / (z^2 - t^2)), z = x + iy, over these t^2."""
    u, v = (x - y) * (x + y), 2.0 * x * y
    total_x, total_y = 0.0, 0.0
    for square in squares:
        part_x, part_y = _divided(math.exp(-square), 0.0, u - square, v)
        total_x, total_y = total_x + part_x, total_y + part_y
    # z Σ + start / 2z
    sum_x, sum_y = x * total_x - y * total_y, x * total_y + y * total_x
    if start:  # else z may be zero
        start_x, start_y = _divided(start * 0.5, 0.0 * x, x, y)
        sum_x, sum_y = sum_x + start_x, sum_y + start_y
    scale = 2.0 * _STEP / math.pi
    return -scale * sum_y, scale * sum_x


def _pole(x: Number, y: Number, sign: float) -> tuple[Number, Number]:
    """2 exp(-z^2) / (1 + sign exp(-2πi z / h)), what the rule leaves out at its pole."""
    angle, phase = 2.0 * x * y, x / _STEP
    phase = (2.0 * math.pi) * (phase - floor(phase))
    # exp(-2πi z / h) = exp(2π y / h) (cos - i sin); the fraction is reduced by its size
    growth = exp(-2.0 * math.pi / _STEP * y)
    below_x, below_y = growth + sign * cos(phase), -sign * sin(phase)
    decay = 2.0 * exp((y - x) * (y + x)) * growth
    return _divided(decay * cos(angle), -decay * sin(angle), below_x, below_y)


def _quadrant(x: Number, y: Number) -> tuple[Number, Number]:
    """w(x + iy) for x, y >= 0, by whichever of three rules has no node near z."""
    far = (x > 1e8) | (y > 1e8)
    near_x, near_y = where(far, 1.0, x), where(far, 1.0, y)
    tall = near_y >= where(near_x > math.pi / _STEP, near_x, math.pi / _STEP)
    phase = near_x / _STEP
    phase = phase - floor(phase)
    middle = (phase >= 0.25) & (phase <= 0.75)  # closer to the midpoints than to the points
    mid_x, mid_y = _rule(near_x, near_y, _MIDPOINTS, 0.0)
    at_x = where(middle, near_x, 1.0)  # the rule has a pole at zero
    end_x, end_y = _rule(at_x, near_y, _POINTS, 1.0)
    plus_x, plus_y = _pole(near_x, near_y, 1.0)
    minus_x, minus_y = _pole(near_x, near_y, -1.0)
    out_x = where(tall, mid_x, where(middle, end_x + minus_x, mid_x + plus_x))
    out_y = where(tall, mid_y, where(middle, end_y + minus_y, mid_y + plus_y))
    # i / (√π z), scaled so that nothing overflows
    largest = where(x > y, x, y)
    scale = where(far & (largest < math.inf), largest, 1.0)
    last_x, last_y = _divided(0.0, 1.0 / math.sqrt(math.pi), x / scale, y / scale)
    infinite = largest == math.inf
    last_x, last_y = where(infinite, 0.0, last_x / scale), where(infinite, 0.0, last_y / scale)
    return where(far, last_x, out_x), where(far, last_y, out_y)


def _wofz_formula(z: Number) -> Number:
    """w(z) from its values in the first quadrant."""
    x, y = real_part(z), imaginary(z)
    out_x, out_y = _quadrant(absolute(x), absolute(y))
    # w(-conj z) = conj w(z); w(z) = 2 exp(-z^2) - w(-z)
    below = y < 0.0
    out_y = where((x < 0.0) != below, -out_y, out_y)
    twice, angle = 2.0 * exp((y - x) * (y + x)), 2.0 * x * y
    sine = where(twice == 0.0, 0.0, twice * sin(angle))
    sine = where(angle == 0.0, angle, sine)  # not infinity times zero
    cosine = where(twice == 0.0, 0.0, twice * cos(angle))
    out_x = where(below, cosine - out_x, out_x)
    out_y = where(below, -sine - out_y, out_y)
    return complex_number(out_x, out_y)


class Wofz(Written):
    """The Faddeeva function."""

    accepts = COMPLEX
    formula = staticmethod(_wofz_formula)
    exact = from_scipy("wofz")
    # w' = -2 z w + 2i / √π
    partials = (
        lambda dz, out, z: dz * (full_like(z, 2j / math.sqrt(math.pi)) - full_like(z, 2) * z * out),
    )


WOFZ = Wofz()


def wofz(z: ArrayLike) -> Array:
    """Compute the Faddeeva function ``exp(-z**2) * erfc(-1j * z)`` of each element.

    Args:
        z: real or complex numbers.

    Returns:
        The values, complex, of the shape of ``z``.

    As SciPy's ``wofz``. Source: DLMF 7.2.3.

    >>> import stretto as st
    >>> st.special.wofz(st.numpy.array([0.0, 1j]))
    Array([1.        +0.j, 0.42758358+0.j], dtype=complex64)
    """
    value = as_inexact(z, "wofz", "z")
    return WOFZ(value if is_complex(value.dtype) else complex_(value, zeros_like(value)))


# The error function and its relatives for complex numbers, by the Faddeeva function.
#
# ``errors`` puts them beside those for real numbers.


def erfcx_complex(z: Array) -> Array:
    """``exp_of(z**2) * erfc(z)`` for complex numbers (DLMF 7.2.3)."""
    return wofz(z * full_like(z, 1j))


def erfc_complex(z: Array) -> Array:
    """``exp_of(-z**2) * erfcx(z)`` in the right half plane; ``2 - erfc(-z)`` in the left."""
    left = lt(real(z), zeros_like(real(z)))
    right = select(left, -z, z)
    out = exp_of(-(right * right)) * erfcx_complex(right)
    return select(left, full_like(z, 2) - out, out)


def erf_complex(z: Array) -> Array:
    """``1 - erfc(z)``; near zero by its series (DLMF 7.6.1)."""
    size = absolute_of(z)
    near = lt(size, full_like(size, 1))
    inside = select(near, z, zeros_like(z))
    square = -(inside * inside)
    total = zeros_like(z)
    for k in range(22, -1, -1):
        total = total * square + full_like(z, 1 / (math.factorial(k) * (2 * k + 1)))
    series = full_like(z, 2 / math.sqrt(math.pi)) * inside * total
    return select(near, series, full_like(z, 1) - erfc_complex(select(near, full_like(z, 1), z)))
