"""The linear recurrence ``y[i] = a[i] y[i-1] + b[i]`` along an axis.

Layer 2 (ops). What the derivatives of running reductions are made of. Its own derivative and
transpose are recurrences again. Source: Blelloch, Prefix Sums and Their Applications, 1990. Next,
read ``cumulative``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.primitive import Primitive
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.elementwise import INEXACT, align_mapped
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.reduce import widened
from stretto._engine.ops.shape import pad, rev, slice_in_dim

__all__ = ["LinearRecurrence", "shifted"]


def shifted(x: Any, axis: int, reverse: bool, first: Any, by: int = 1) -> Any:
    """The element ``by`` places before each, or after if ``reverse``; else ``first``."""
    low, high = (-by, by) if reverse else (by, -by)
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (low, high, 0)
    return pad(x, first, config)


class LinearRecurrence(Primitive):
    """y[i] = a[i] y[i-1] + b[i] along an axis, with y[-1] = 0; linear in b.

    From the end, y[i] = a[i] y[i+1] + b[i], if ``reverse``.
    """

    axis: int
    reverse: bool

    def infer(self, a: ArrayType, b: ArrayType) -> ArrayType:
        """The operands' one type."""
        if a.shape != b.shape or a.dtype != b.dtype or not 0 <= self.axis < a.ndim:
            raise TypeError(
                f"linear_recurrence: expected operands of one type with an axis {self.axis}, got "
                f"{a} and {b}"
            )
        if kind_of(a.dtype) not in INEXACT:
            raise TypeError(f"linear_recurrence: expected inexact numbers, got {a}")
        return array_type(a.shape, a.dtype, a.weak_type and b.weak_type)

    def reference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Steps of doubling length: n log n work, and no loop over elements."""
        wide = widened(a.dtype)
        direction = -1 if self.reverse else 1
        factor, y = (np.moveaxis(v.astype(wide), self.axis, 0)[::direction] for v in (a, b))
        step, n = 1, y.shape[0]
        while step < n:
            y[step:] += factor[step:] * y[:-step].copy()
            factor[step:] = factor[step:] * factor[:-step]
            step *= 2
        return np.moveaxis(y[::direction], 0, self.axis).astype(a.dtype, copy=False)

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        """By ``composed``, in at least float32."""
        if not x.type.size:
            return y
        wide = widened(x.type.dtype)
        out = b.inline(self.composed, b.convert(x, wide), b.convert(y, wide))
        return b.convert(out, x.type.dtype)

    def composed(self, a: Any, b: Any) -> Any:
        """Written with other operations: a scan in blocks."""
        if not self.reverse:
            return _scan(a, b, self.axis)[1]
        return rev(_scan(rev(a, (self.axis,)), rev(b, (self.axis,)), self.axis)[1], (self.axis,))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """dy[i] = a[i] dy[i-1] + (da[i] y[i-1] + db[i])."""
        (a, b), (da, db) = primals, tangents
        y = self(a, b)
        source = db
        if da is not None:
            moved = da * shifted(y, self.axis, self.reverse, 0)
            source = moved if db is None else moved + db
        return y, self(a, source)

    def transpose(self, ct: Any, a: Any, b: Any) -> tuple[None, Any]:
        """g[i] = a[i+1] g[i+1] + ct[i]: the recurrence from the other end."""
        after = shifted(a, self.axis, not self.reverse, 0)
        return None, LinearRecurrence(self.axis, not self.reverse)(after, ct)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis is left as it is."""
        values, axis = align_mapped(size, args, axes)
        return LinearRecurrence(self.axis + (axis <= self.axis), self.reverse)(*values), axis


_BLOCK = 16


def _scan(a: Any, b: Any, axis: int) -> tuple[Any, Any]:
    """All products of ``a`` up to each element, and the recurrence's values.

    Within blocks of 16 by steps of doubling length, then over the blocks' last elements in the
    same way: linear work, and a program whose length grows with the logarithm of the size.
    (a', b') after (a, b) is (a a', a' b + b').
    """
    n = a.shape[axis]
    if n <= _BLOCK:
        step = 1
        while step < n:
            b = b + a * shifted(b, axis, False, 0, step)
            a = a * shifted(a, axis, False, 1, step)
            step *= 2
        return a, b
    blocks = -(-n // _BLOCK)
    shape = a.shape
    filled = [(0, blocks * _BLOCK - n if d == axis else 0, 0) for d in range(a.ndim)]
    split = (*shape[:axis], blocks, _BLOCK, *shape[axis + 1 :])
    a, b = (reshape(pad(v, e, filled), split) for v, e in ((a, 1), (b, 0)))
    a, b = _scan(a, b, axis + 1)
    last = [
        reshape(
            slice_in_dim(v, _BLOCK - 1, _BLOCK, axis=axis + 1),
            split[: axis + 1] + split[axis + 2 :],
        )
        for v in (a, b)
    ]
    last_a, last_b = _scan(last[0], last[1], axis)
    dims = tuple(d for d in range(a.ndim) if d != axis + 1)
    before_a = broadcast_in_dim(shifted(last_a, axis, False, 1), split, dims)
    before_b = broadcast_in_dim(shifted(last_b, axis, False, 0), split, dims)
    whole = (*shape[:axis], blocks * _BLOCK, *shape[axis + 1 :])
    a, b = a * before_a, b + a * before_b
    a, b = (slice_in_dim(reshape(v, whole), 0, n, axis=axis) for v in (a, b))
    return a, b
