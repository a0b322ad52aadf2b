"""The gamma and the digamma function of complex numbers.

Source: DLMF 5.5.1, 5.5.3 (recurrence and reflection), 5.11.1, 5.11.2 (Stirling's series).
"""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.ops.arithmetic import absolute as magnitude
from stretto._engine.ops.comparison import full_like, lt, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.elementwise import COMPLEX
from stretto._engine.ops.exponential import log as log_of
from stretto._engine.ops.rounding import round_
from stretto._engine.ops.trigonometric import tan
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    complex_number,
    cos,
    exp,
    expm1,
    floor,
    from_scipy,
    imaginary,
    log,
    real_part,
    sin,
    where,
)

# B_2k for k = 1, 2, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_SHIFT = 10
_FAR = 10.0
"""From this imaginary part on, the series holds without the recurrence."""


def _gamma_formula(z: Number) -> Number:
    """Stirling's series far from zero, by the recurrence; on the left by reflection."""
    x, y = real_part(z), imaginary(z)
    far = absolute(y) >= _FAR
    mirrored = ~far & (x < 0.5)
    w = where(mirrored, 1.0 - z, z)
    near = ~far & (real_part(w) < _FAR)
    product = w
    for k in range(1, _SHIFT):
        product = product * (w + float(k))
    v = where(near, w + float(_SHIFT), w)
    inverse = 1.0 / v
    square = inverse * inverse
    total = 0.0 * v
    for k in range(len(_BERNOULLI), 0, -1):
        total = total * square + _BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    out = exp((v - 0.5) * log(v) - v + total * inverse + 0.5 * math.log(2 * math.pi))
    out = where(near, out / product, out)
    # π / (sin(πz) Γ(1 - z)); the sine about the nearest integer
    nearest = floor(x + 0.5)
    odd = nearest - 2.0 * floor(0.5 * nearest)
    sign = 1.0 - 2.0 * odd
    angle, height = math.pi * (x - nearest), math.pi * where(mirrored, y, 0.0 * y)
    up, down = expm1(height), expm1(-height)
    sine = complex_number(
        sign * sin(angle) * (0.5 * (up + down) + 1.0), sign * cos(angle) * 0.5 * (up - down)
    )
    pole = mirrored & (sine == 0.0)
    mirror = math.pi / (where(pole, 1.0, sine) * out)
    out = where(mirrored, mirror, out)
    return where(pole, complex(math.nan, math.nan), out)


class ComplexGamma(Written):
    """The gamma function of complex numbers."""

    accepts = COMPLEX
    formula = staticmethod(_gamma_formula)
    exact = from_scipy("gamma")
    partials = (lambda dz, out, z: dz * (out * complex_digamma(z)),)


COMPLEX_GAMMA = ComplexGamma()


def complex_gamma(z: Any) -> Any:
    """The gamma function of each complex element (DLMF 5.2.1)."""
    return COMPLEX_GAMMA(z)


def complex_digamma(z: Any) -> Any:
    """The derivative of the logarithm of the gamma function of complex numbers (DLMF 5.2.2)."""
    x, y = real(z), imag(z)
    one = full_like(z, 1)
    far = full_like(y, _FAR)
    mirrored = lt(x, full_like(x, 0.5)) & lt(magnitude(y), far)
    w = select(mirrored, one - z, z)
    near = lt(magnitude(y), far) & lt(real(w), far)
    inside = select(near, w, one)
    below = zeros_like(z)
    for k in range(_SHIFT):
        below = below + one / (inside + full_like(z, k))
    v = select(near, w + full_like(z, _SHIFT), w)
    square = one / (v * v)
    total = zeros_like(z)
    for k in range(len(_BERNOULLI), 0, -1):
        total = (total + full_like(z, _BERNOULLI[k - 1] / (2 * k))) * square
    out = log_of(v) - full_like(z, 0.5) / v - total
    out = select(near, out - below, out)
    # ψ(1 - z) - π / tan(πz), with the tangent about the nearest integer
    about = select(mirrored, z - complex_(round_(x), zeros_like(x)), full_like(z, 0.25))
    return select(mirrored, out - full_like(z, math.pi) / tan(full_like(z, math.pi) * about), out)
