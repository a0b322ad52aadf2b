"""Rotations of space as unit quaternions ``[..., 4]``, x y z w: to and from other forms.

All are differentiable, even at the identity.
"""

from __future__ import annotations

import math
from typing import Any

import stretto.numpy as snp
from stretto._engine.core.typing import Array
from stretto._engine.ops.powers import root_of_squares


def _sum(x: Array) -> Array:
    return snp.sum(x, -1, keepdims=True)


def _length(x: Array) -> Array:
    """The norm over the last axis, which is kept; its derivative at 0 is 0."""
    return root_of_squares(_sum(x * x))


def normalized(q: Array) -> Array:
    """Scaled to length 1; NaN where the length is 0."""
    return q / snp.sqrt(_sum(q * q))


def _parts(q: Array) -> tuple[Array, Array]:
    """The vector and the real part, with the sign that makes the latter positive."""
    q = snp.where(q[..., 3:] < 0, -q, q)
    return q[..., :3], q[..., 3:]


def product(p: Array, q: Array) -> Array:
    """The rotation by ``q``, then by ``p``."""
    u, a, v, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = a * v + b * u + snp.cross(u, v)
    return snp.concatenate([vector, a * b - _sum(u * v)], -1)


# Vectors along the axis, with the angle as their length

_SMALL = 1e-4


def from_rotvec(v: Array) -> Array:
    """sin(a / 2) v / a and cos(a / 2) with the angle a = |v|; near 0 by their series."""
    squares = _sum(v * v)
    small = squares < _SMALL
    angle = snp.sqrt(snp.where(small, 1, squares))
    sine = snp.where(small, 0.5 - squares / 48 + squares**2 / 3840, snp.sin(angle / 2) / angle)
    cosine = snp.where(small, 1 - squares / 8 + squares**2 / 384, snp.cos(angle / 2))
    return snp.concatenate([sine * v, cosine], -1)


def rotvec_of(q: Array) -> Array:
    """2 atan(|v| / w) v / |v|; near 0 by the series."""
    v, w = _parts(q)
    squares = _sum(v * v)
    small = squares < _SMALL * _SMALL
    ratio = squares / snp.where(small, w * w, 1)
    length = snp.sqrt(snp.where(small, 1, squares))
    far = 2 * snp.arctan2(length, w) / length
    near = 2 / snp.where(small, w, 1) * (1 - ratio / 3)
    return v * snp.where(small, near, far)


def magnitude_of(q: Array) -> Array:
    """The angle, from 0 to pi."""
    v, w = _parts(q)
    return 2 * snp.arctan2(_length(v), w)[..., 0]


# Matrices


def matrix_of(q: Array) -> Array:
    """``[..., 3, 3]``."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return snp.stack([snp.stack(row, -1) for row in rows], -2)


def from_matrix(m: Array) -> Array:
    """The longest of four multiples of the quaternion, one by each element, normalized.

    Source: Shepperd, Quaternion from rotation matrix (1978).
    """
    a, b, c = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    xy, xz, yz = (m[..., i, j] + m[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    x, y, z = (m[..., j, i] - m[..., i, j] for i, j in ((1, 2), (2, 0), (0, 1)))
    squares = [1 + a - b - c, 1 - a + b - c, 1 - a - b + c, 1 + a + b + c]
    rows = [
        [squares[0], xy, xz, x],
        [xy, squares[1], yz, y],
        [xz, yz, squares[2], z],
        [x, y, z, squares[3]],
    ]
    multiples = snp.stack([snp.stack(row, -1) for row in rows], -2)
    longest = snp.argmax(snp.stack(squares, -1), -1)
    return normalized(snp.take_along_axis(multiples, longest[..., None, None], -2)[..., 0, :])


# Modified Rodrigues parameters: tan(a / 4) along the axis


def from_mrp(m: Array) -> Array:
    """(2 m, 1 - |m|^2) / (1 + |m|^2)."""
    squares = _sum(m * m)
    return snp.concatenate([2 * m, 1 - squares], -1) / (1 + squares)


def mrp_of(q: Array) -> Array:
    """v / (1 + w)."""
    v, w = _parts(q)
    return v / (1 + w)


# Angles about axes


def from_euler(axes: list[int], intrinsic: bool, angles: Array) -> Array:
    """Turns about axes by angles ``[..., len(axes)]``; if ``intrinsic``, the axes turn too."""
    out: Any = None
    for i, axis in enumerate(axes):
        half = angles[..., i] / 2
        parts = [snp.zeros_like(half)] * 3 + [snp.cos(half)]
        parts[axis] = snp.sin(half)
        turn = snp.stack(parts, -1)
        if out is None:
            out = turn
        else:
            out = product(out, turn) if intrinsic else product(turn, out)
    return out


_DEGENERATE = 1e-7


def euler_of(q: Array, axes: list[int], intrinsic: bool) -> Array:
    """``[..., 3]``: the angles about three axes; the last is 0 where only a sum is determined.

    Source: Bernardes and Viollet, Quaternion to Euler angles conversion (2022).
    """
    i, j, k = axes[::-1] if intrinsic else axes
    proper = i == k
    if proper:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = q[..., i], q[..., j], sign * q[..., k], q[..., 3]
    a, b, c, d = (w, x, y, z) if proper else (w - y, x + z, y + w, z - x)
    middle = 2 * snp.arctan2(snp.hypot(c, d), snp.hypot(a, b))
    total, rest = snp.arctan2(b, a), snp.arctan2(d, c)
    low, high = middle < _DEGENERATE, middle > math.pi - _DEGENERATE
    first, last = total - rest, total + rest
    if intrinsic:
        first, last = last, first
    # Where the middle angle is at an end of its range, the first and last turns share an axis.
    combined = snp.where(low, 2 * total, (2 if intrinsic else -2) * rest)
    first = snp.where(low | high, combined, first)
    last = snp.where(low | high, 0, last)
    if not proper:
        first, last = (first * sign, last) if intrinsic else (first, last * sign)
        middle = middle - math.pi / 2
    angles = snp.stack([first, middle, last], -1)
    return (angles + math.pi) % (2 * math.pi) - math.pi
