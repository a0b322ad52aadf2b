"""``stretto.scipy.spatial.transform``: rotations of space, and interpolation between them.

A rotation is a unit quaternion ``[..., 4]``, x y z w. The formulas to and from other forms are
differentiable, even at the identity.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import stretto.numpy as snp
from stretto import random
from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.types import as_dtype, inexact_dtype, is_complex
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import root_of_squares

if TYPE_CHECKING:
    from stretto._engine.core.typing import Index

__all__ = ["Rotation", "Slerp"]


def _sum(x: Array) -> Array:
    return snp.sum(x, -1, keepdims=True)


def _length(x: Array) -> Array:
    """Return the norm over the last axis, which is kept; its derivative at 0 is 0."""
    return root_of_squares(_sum(x * x))


def normalize(q: Array) -> Array:
    """Scale to length 1; NaN where the length is 0."""
    return q / snp.sqrt(_sum(q * q))


def _parts(q: Array) -> tuple[Array, Array]:
    """Return the vector and the real part, with the sign that makes the latter positive."""
    q = snp.where(q[..., 3:] < 0, -q, q)
    return q[..., :3], q[..., 3:]


def product(p: Array, q: Array) -> Array:
    """Return the rotation by ``q``, then by ``p``."""
    u, a, v, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = a * v + b * u + snp.cross(u, v)
    return snp.concatenate([vector, a * b - _sum(u * v)], -1)


# Vectors along the axis, with the angle as their length

_SMALL = 1e-4


def quaternion_of_rotvec(v: Array) -> Array:
    """Return sin(a / 2) v / a and cos(a / 2) with the angle a = |v|; near 0 by their series."""
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
    """Return the angle, from 0 to pi."""
    v, w = _parts(q)
    return 2 * snp.arctan2(_length(v), w)[..., 0]


# Matrices


def matrix_of(q: Array) -> Array:
    """Return the rotation matrices, ``[..., 3, 3]``."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return snp.stack([snp.stack(row, -1) for row in rows], -2)


def quaternion_of_matrix(m: Array) -> Array:
    """Normalize the longest of four multiples of the quaternion, one by each element.

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
    return normalize(snp.take_along_axis(multiples, longest[..., None, None], -2)[..., 0, :])


# Modified Rodrigues parameters: tan(a / 4) along the axis


def quaternion_of_mrp(m: Array) -> Array:
    """(2 m, 1 - |m|^2) / (1 + |m|^2)."""
    squares = _sum(m * m)
    return snp.concatenate([2 * m, 1 - squares], -1) / (1 + squares)


def mrp_of(q: Array) -> Array:
    """v / (1 + w)."""
    v, w = _parts(q)
    return v / (1 + w)


# Angles about axes


def quaternion_of_euler(axes: list[int], intrinsic: bool, angles: Array) -> Array:
    """Turn about axes by angles ``[..., len(axes)]``; if ``intrinsic``, the axes turn too."""
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
    """Return the angles about three axes; the last is 0 where only a sum is determined.

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


def _floats(caller: str, x: ArrayLike, argument: str, *shape: int) -> Array:
    """Return real floats whose last axes have these sizes."""
    value = as_value(x, caller, argument)
    if is_complex(value.dtype) or value.shape[max(value.ndim - len(shape), 0) :] != shape:
        sizes = ", ".join(map(str, shape))
        raise ValueError(
            f"{caller}: {argument} must be real, of shape [..., {sizes}]; got {value.type}"
        )
    return convert(value, inexact_dtype(value.dtype))


_RADIANS = math.pi / 180


def _axes(caller: str, seq: str, least: int) -> tuple[list[int], bool]:
    """Return the numbers of the axes, and whether they turn too."""
    letters = "XYZ" if isinstance(seq, str) and seq.isupper() else "xyz"
    valid = isinstance(seq, str) and least <= len(seq) <= 3 and set(seq) <= set(letters)
    if not valid or any(a == b for a, b in itertools.pairwise(seq)):
        count = "3" if least == 3 else f"{least} to 3"
        raise ValueError(
            f"{caller}: seq must have {count} letters, all of 'xyz' for fixed axes or all of "
            f"'XYZ' for axes that turn, with no letter twice in a row; got {seq!r}"
        )
    return [letters.index(c) for c in seq], letters == "XYZ"


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Rotation:
    """A rotation of space, or an array of them; a tree with one leaf.

    Create one with the functions ``from_...``. Source: SciPy, ``scipy.spatial.transform.Rotation``.

    Args:
        quat: its quaternion, ``[4]`` or ``[n, 4]``, x y z w.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> turn = st.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
    >>> turn.apply(snp.array([1.0, 0.0, 0.0])).round(3)
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Array

    # From other forms

    @staticmethod
    def from_quat(quat: ArrayLike) -> Rotation:
        """Make rotations from quaternions, which are normalized.

        Args:
            quat: x y z w, ``[..., 4]``.

        Returns:
            The rotation, or the array of them.

        Raises:
            ValueError: ``quat`` is not real, or not of that shape.
        """
        return Rotation(normalize(_floats("Rotation.from_quat", quat, "quat", 4)))

    @staticmethod
    def from_matrix(matrix: ArrayLike) -> Rotation:
        """Make rotations from orthogonal matrices.

        Args:
            matrix: ``[..., 3, 3]``, of determinant 1, which is not checked.

        Returns:
            The rotation, or the array of them.

        Raises:
            ValueError: ``matrix`` is not real, or not of that shape.
        """
        return Rotation(
            quaternion_of_matrix(_floats("Rotation.from_matrix", matrix, "matrix", 3, 3))
        )

    @staticmethod
    def from_rotvec(rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Make rotations from vectors along the axis, as long as the angle.

        Args:
            rotvec: ``[..., 3]``.
            degrees: whether the angles are in degrees rather than radians.

        Returns:
            The rotation, or the array of them.

        Raises:
            ValueError: ``rotvec`` is not real, or not of that shape.
        """
        v = _floats("Rotation.from_rotvec", rotvec, "rotvec", 3)
        return Rotation(quaternion_of_rotvec(v * _RADIANS if degrees else v))

    @staticmethod
    def from_mrp(mrp: ArrayLike) -> Rotation:
        """Make rotations from modified Rodrigues parameters: tan(a / 4) along the axis.

        Args:
            mrp: ``[..., 3]``.

        Returns:
            The rotation, or the array of them.

        Raises:
            ValueError: ``mrp`` is not real, or not of that shape.
        """
        return Rotation(quaternion_of_mrp(_floats("Rotation.from_mrp", mrp, "mrp", 3)))

    @staticmethod
    def from_euler(seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Make rotations from turns about axes, one after another.

        Args:
            seq: the axes: 1 to 3 letters, of ``"xyz"`` for fixed axes, of ``"XYZ"`` for axes that
                turn along.
            angles: ``[..., len(seq)]``, or a number for one axis.
            degrees: whether the angles are in degrees rather than radians.

        Returns:
            The rotation, or the array of them.

        Raises:
            ValueError: ``seq`` names no such axes, or one twice in a row; or ``angles`` is not
                real, or not of that shape.
        """
        caller = "Rotation.from_euler"
        axes, intrinsic = _axes(caller, seq, 1)
        x = as_value(angles, caller, "angles")
        x = _floats(caller, x[None] if not x.ndim and len(axes) == 1 else x, "angles", len(axes))
        return Rotation(quaternion_of_euler(axes, intrinsic, x * _RADIANS if degrees else x))

    @staticmethod
    def identity(num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """Make rotations that leave everything as it is.

        Args:
            num: how many; by default a single one.
            dtype: the dtype of the quaternion.

        Returns:
            The rotation, or the array of them.

        Raises:
            TypeError: ``num`` is not an integer.
            ValueError: ``num`` is negative.
        """
        one = snp.array([0, 0, 0, 1], as_dtype(dtype))
        return Rotation(
            one
            if num is None
            else snp.broadcast_to(one, (integer(num, "Rotation.identity", "num", 0), 4))
        )

    @staticmethod
    @described_like(identity)
    def random(random_key: Key, num: int | None = None) -> Rotation:
        """Draw rotations uniformly at random.

        Args:
            random_key: the key.

        """
        shape = (4,) if num is None else (integer(num, "Rotation.random", "num", 0), 4)
        return Rotation(normalize(random.normal(random_key, shape)))

    @staticmethod
    def concatenate(rotations: Sequence[Rotation]) -> Rotation:
        """Join rotations, and arrays of them, one after another.

        Args:
            rotations: the rotations.

        Returns:
            The array of all.
        """
        return Rotation(snp.concatenate([r.quat.reshape(-1, 4) for r in rotations]))

    # To other forms

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Give the quaternion.

        Args:
            canonical: whether to choose the one of the two whose w is not negative.
            scalar_first: whether to order it w x y z rather than x y z w.

        Returns:
            The quaternion, ``[..., 4]``.
        """
        q = self.quat
        if canonical:
            q = snp.where(q[..., 3:] < 0, -q, q)
        return snp.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self) -> Array:
        """Give the orthogonal matrix.

        Returns:
            The matrix, ``[..., 3, 3]``.
        """
        return matrix_of(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Give the vector along the axis, as long as the angle, which is at most pi.

        Args:
            degrees: whether the angles are in degrees rather than radians.

        Returns:
            The vector, ``[..., 3]``.
        """
        out = rotvec_of(self.quat)
        return out / _RADIANS if degrees else out

    def as_mrp(self) -> Array:
        """Give the modified Rodrigues parameters.

        Returns:
            The parameters, ``[..., 3]``.
        """
        return mrp_of(self.quat)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Give the angles about three axes.

        Args:
            seq: the axes, three letters; see ``from_euler``.
            degrees: whether the angles are in degrees rather than radians.

        Returns:
            The angles, ``[..., 3]``. The middle one is from -pi/2 to pi/2, or from 0 to pi where
            the first and last axes are the same. Where it is at an end, the last angle is 0.

        Raises:
            ValueError: ``seq`` does not name three such axes, or names one twice in a row.
        """
        axes, intrinsic = _axes("Rotation.as_euler", seq, 3)
        out = euler_of(self.quat, axes, intrinsic)
        return out / _RADIANS if degrees else out

    # Operations

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Turn vectors; rotations and vectors broadcast.

        Args:
            vectors: ``[..., 3]``.
            inverse: whether to turn them back instead.

        Returns:
            The vectors turned, ``[..., 3]``.

        Raises:
            ValueError: ``vectors`` is not real, or not of that shape.
        """
        v = _floats("Rotation.apply", vectors, "vectors", 3)
        matrix = self.as_matrix()
        matrix = snp.matrix_transpose(matrix) if inverse else matrix
        return snp.sum(matrix * v[..., None, :], -1)

    def inv(self) -> Rotation:
        """Invert the rotation.

        Returns:
            The rotation back.
        """
        return Rotation(snp.concatenate([-self.quat[..., :3], self.quat[..., 3:]], -1))

    def magnitude(self) -> Array:
        """Measure the angle.

        Returns:
            The angle, in radians, from 0 to pi.
        """
        return magnitude_of(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """Average an array of rotations: find the one with the least sum of squared distances.

        Args:
            weights: a weight for each, ``[n]``; by default equal.

        Returns:
            The mean rotation.

        Raises:
            ValueError: ``weights`` has another shape.

        Source: Markley and others, Averaging quaternions (2007).
        """
        caller, q = "Rotation.mean", self.quat.reshape(-1, 4)
        w = snp.ones(len(q), q.dtype) if weights is None else as_value(weights, caller, "weights")
        if w.shape != q.shape[:1]:
            raise ValueError(f"{caller}: weights must have shape ({len(q)},), got {w.type}")
        _, vectors = snp.linalg.eigh((w[:, None] * q).T @ q)
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Say whether it is one rotation, and not an array of them."""
        return self.quat.ndim == 1

    def __mul__(self, other: Rotation) -> Rotation:
        """Return the rotation by ``other``, then by this one; they broadcast."""
        if not isinstance(other, Rotation):
            return NotImplemented
        p, q = snp.broadcast_arrays(self.quat, other.quat)
        return Rotation(normalize(product(p, q)))

    def __len__(self) -> int:
        if self.single:
            raise TypeError("a single Rotation has no len()")
        return self.quat.shape[0]

    def __getitem__(self, index: Index) -> Rotation:
        if self.single:
            raise TypeError("a single Rotation has no elements")
        return Rotation(self.quat[index])


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Slerp:
    """Interpolation between rotations at given times, at constant speed from each to the next.

    Create one with ``Slerp.init``. Source: SciPy, ``scipy.spatial.transform.Slerp``.

    Args:
        times: the times, which ascend.
        timedelta: the times from each to the next.
        rotations: the rotations at these times.
        rotvecs: the rotation vectors from each to the next.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> from stretto.scipy.spatial.transform import Rotation, Slerp
    >>> ends = Rotation.from_euler("z", snp.array([[0.0], [90.0]]), degrees=True)
    >>> Slerp.init(snp.array([0.0, 1.0]), ends)(0.5).as_rotvec(degrees=True).round(3)
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Interpolate rotations at given times.

        Args:
            times: ``[n]``, which ascend.
            rotations: an array of n rotations, at least two.

        Returns:
            The interpolation, to be called with times.

        Raises:
            ValueError: there are fewer than two ``rotations``, or ``times`` has another shape.
        """
        t = as_value(times, "Slerp.init", "times")
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            raise ValueError(
                f"Slerp.init: rotations must be a Rotation of at least two, got {rotations}"
            )
        if t.shape != (len(rotations),):
            raise ValueError(f"Slerp.init: times must have shape ({len(rotations)},), got {t.type}")
        t = convert(t, inexact_dtype(t.dtype))
        steps = rotations[:-1].inv() * rotations[1:]
        return cls(t, t[1:] - t[:-1], rotations, steps.as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """Return the rotations at these times, extrapolated before the first and after the last."""
        t = as_value(times, "Slerp", "times")
        last = self.timedelta.size - 1
        interval = snp.clip(snp.searchsorted(self.times, t, side="right") - 1, 0, last)
        part = (t - self.times[interval]) / self.timedelta[interval]
        return self.rotations[interval] * Rotation.from_rotvec(
            self.rotvecs[interval] * part[..., None]
        )


exports(__name__)
