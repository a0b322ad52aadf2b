"""Spherical harmonics, by the recurrences of normalized Legendre functions.

Source: DLMF 14.30 (definition), 14.10.3 (recurrence in the degree).
"""

from __future__ import annotations

import math

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.comparison import full_like, lt, select, zeros_like
from stretto._engine.ops.complex_parts import complex_
from stretto._engine.ops.elementwise import FLOAT, check_kind, promote_values
from stretto._engine.ops.extrema import minimum
from stretto._engine.ops.powers import sqrt as sqrt_of
from stretto._engine.ops.special.gamma import refused_partial
from stretto._engine.ops.trigonometric import cos as cos_of
from stretto._engine.ops.trigonometric import sin as sin_of
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    alike,
    cos,
    floor,
    loop,
    sin,
    sqrt,
    where,
)

__all__ = ["sph_harm_y"]


def _legendre_formula(n: Number, m: Number, theta: Number) -> Number:
    """The factor of Y that depends on theta; zero for |m| > n."""
    order = absolute(m)
    defined = (n >= order) & (floor(n) == n) & (floor(m) == m)
    n, order = where(defined, n, 0.0), where(defined, order, 0.0)
    height, width = cos(theta), absolute(sin(theta))  # a function of cos(theta) alone

    def across(k: Number, degree: Number, here: Number) -> list[Number]:
        return [degree + 1.0, here * -width * sqrt(1.0 + 0.5 / k)]

    zero = alike(theta, 0.0)
    start = [zero, alike(theta, math.sqrt(0.25 / math.pi))]
    degree, here = loop(lambda degree, here: degree < order, across, start, 1 << 16)

    def up(_: Number, degree: Number, before: Number, here: Number, ratio: Number) -> list[Number]:
        after = degree + 1.0
        next_ratio = sqrt((4.0 * after * after - 1.0) / (after * after - order * order))
        return [after, here, next_ratio * (height * here - before / ratio), next_ratio]

    state = [degree, zero, here, alike(theta, 1.0)]
    out = loop(lambda degree, *_: degree < n, up, state, 1 << 16)[2]
    odd = (m < 0.0) & (order != 2.0 * floor(0.5 * order))
    return where(defined, where(odd, -out, out), 0.0 * theta)


class NormalizedLegendre(Written):
    """The spherical harmonic at longitude zero."""

    formula = staticmethod(_legendre_formula)
    partials = (
        refused_partial("sph_harm_y has no derivative in the degree n, which is a whole number"),
        refused_partial("sph_harm_y has no derivative in the order m, which is a whole number"),
        lambda dtheta, out, n, m, theta: dtheta * _legendre_slope(n, m, theta),
    )


def _legendre_slope(n: Array, m: Array, theta: Array) -> Array:
    """(√((n - m)(n + m + 1)) P^(m + 1) - √((n + m)(n - m + 1)) P^(m - 1)) / 2.

    For theta from 0 to π; where the sine is negative, with the opposite sign.
    """
    one = full_like(m, 1)
    above = sqrt_of((n - m) * (n + m + one)) * LEGENDRE(n, m + one, theta)
    below = sqrt_of((n + m) * (n - m + one)) * LEGENDRE(n, m - one, theta)
    backwards = lt(sin_of(theta), zeros_like(theta))
    half = select(backwards, full_like(theta, -0.5), full_like(theta, 0.5))
    return (above - below) * half


LEGENDRE = NormalizedLegendre()


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: None = None,
    n_max: int | None = None,
) -> Array:
    """Compute spherical harmonics.

    Args:
        n: the degrees, whole numbers from 0 on.
        m: the orders, whole numbers.
        theta: the colatitudes, in radians.
        phi: the longitudes, in radians; all four are broadcast together.
        diff_n: must be None.
        n_max: the largest degree; larger ones count as this one.

    Returns:
        The values, complex; 0 where ``abs(m) > n``.

    Raises:
        NotImplementedError: ``diff_n`` is not None.
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``sph_harm_y``, with derivatives in both angles. Source: DLMF 14.30.1.

    >>> import stretto as st
    >>> st.special.sph_harm_y(1, 0, st.numpy.array([0.0, 3.1415927]), 0.0)
    Array([ 0.48860252+0.j, -0.48860252-0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError(
            f"sph_harm_y: diff_n must be None, got {diff_n!r}; use stretto.grad or stretto.jvp"
        )
    first, second = promote_values("sph_harm_y", theta, phi, inexact=True)
    values = promote_values("sph_harm_y", n, m, first, second, inexact=True)
    check_kind("sph_harm_y", FLOAT, values[0].type)
    degree, order, colatitude, longitude = values
    if n_max is not None:
        degree = minimum(degree, full_like(degree, n_max))
    part = LEGENDRE(degree, order, colatitude)
    angle = order * longitude
    return complex_(part * cos_of(angle), part * sin_of(angle))
