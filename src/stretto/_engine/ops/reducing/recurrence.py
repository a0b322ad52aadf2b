"""The linear recurrence ``y[i] = a[i] y[i-1] + b[i]`` along an axis.

What the derivatives of running reductions are made of. Its own derivative and transpose are
recurrences again. Source: Blelloch, Prefix Sums and Their Applications, 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.primitive import Primitive
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops import reducing
from stretto._engine.ops.elementwise import INEXACT, align_mapped
from stretto._engine.ops.reducing.reduce import widened
from stretto._engine.ops.shape import pad


def shifted(x: Any, axis: int, reverse: bool, first: Any) -> Any:
    """Return the element before each, or after if ``reverse``; else ``first``."""
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, first, config)


class LinearRecurrence(Primitive):
    """y[i] = a[i] y[i-1] + b[i] along an axis, with y[-1] = 0; linear in b.

    From the end, y[i] = a[i] y[i+1] + b[i], if ``reverse``.
    """

    axis: int
    reverse: bool

    def infer(self, a: ArrayType, b: ArrayType) -> ArrayType:
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
        if not x.type.size:
            return y
        wide = widened(x.type.dtype)
        out = b.inline(self.composed, b.convert(x, wide), b.convert(y, wide))
        return b.convert(out, x.type.dtype)

    def composed(self, a: Any, b: Any) -> Any:
        """Write it with other operations: (a', b') after (a, b) is (a a', a' b + b')."""
        return reducing.running.running(_after, (1, 0), (a, b), self.axis, self.reverse)[1]

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
        values, axis = align_mapped(size, args, axes)
        return LinearRecurrence(self.axis + (axis <= self.axis), self.reverse)(*values), axis

    def padded(self, at: Any, a: Any, b: Any) -> Any:
        """Padding comes last; where it comes first, it is 0 and stays so."""
        if self.reverse:
            a, b = (at.filled(x, t, 0, (self.axis,)) for x, t in zip((a, b), at.types, strict=True))
        return self(a, b)


def _after(before: tuple[Any, ...], here: tuple[Any, ...]) -> tuple[Any, Any]:
    (a, b), (factor, source) = before, here
    return a * factor, factor * b + source
