"""Weighted sums of integer and boolean leaves, which keep their dtype.

They are rounded to the nearest integer, half to even; a boolean is true where that is not 0. Means,
and sums with integer weights, are exact. Other weights multiply the differences from the first
member, so that a leaf in which all members agree is kept whatever its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import constant
from stretto._engine.core.types import is_inexact, kind_of, promote, scalar_dtype
from stretto._engine.core.typing import Array
from stretto._engine.ops.arithmetic import add, divide, multiply, negative, remainder, subtract
from stretto._engine.ops.bitwise import bitwise_and
from stretto._engine.ops.broadcast import of_rank, reduce_sum
from stretto._engine.ops.comparison import eq, ge, gt, lt, where
from stretto._engine.ops.contract import tensordot
from stretto._engine.ops.convert import convert
from stretto._engine.ops.rounding import floor
from stretto.tree.members import member_at

__all__ = ["IntegerSum", "are_integers", "of_stacked_integers"]


def are_integers(types: Sequence[Any], weights: Sequence[Any] | None) -> bool:
    """Say whether a sum of leaves of these types is one of integers; weights are values."""
    complex_weights = weights is not None and any([kind_of(w.dtype) == "complex" for w in weights])
    return not complex_weights and not [0 for t in types if is_inexact(t.dtype)]


class IntegerSum:
    """The sum over members of a leaf at rest, of which one is held at a time.

    A weight is a number of the host; ``None`` for each counts how many there are, for their mean.
    """

    __slots__ = ("count", "dtype", "first", "moved", "total", "weight")

    def __init__(self, x: Array) -> None:
        self.first = _wide(x)
        self.dtype = x.dtype
        self.total = np.zeros_like(self.first)  # with weights that are integers: exact
        self.moved: Any = 0.0  # with others: of differences from the first
        self.weight: Any = 0.0
        self.count = 0

    def add(self, x: Array, weight: float | None) -> None:
        """Add ``weight * x``, or ``x`` to a mean."""
        self.dtype = promote([(self.dtype, False), (x.dtype, x.weak_type)])[0]
        host = _wide(x)
        self.count += 1
        if weight is None:
            self.total = self.total + (host - self.first)
        elif isinstance(weight, int):
            self.total = self.total + host * self.first.dtype.type(weight)
        else:
            self.moved = self.moved + (host - self.first) * weight
            self.weight += weight

    def result(self, mean: bool = False) -> Array:
        """Return the sum, or the mean, of what was added."""
        if mean:
            whole, rest = np.divmod(self.total, self.first.dtype.type(self.count))
            out = self.first + whole
            rest = 2 * rest
            out = out + ((rest > self.count) | ((rest == self.count) & (out % 2 == 1)))
        elif np.ndim(self.moved) or self.weight:
            # A weight of one holds the first itself, however large; the rest is small, or a float.
            whole_weight = np.rint(self.weight)
            moved = self.moved + self.first * (self.weight - whole_weight)
            below = np.floor(moved)
            out = self.total + self.first * int(whole_weight) + below.astype(self.first.dtype)
            rest = moved - below
            out = out + ((rest > 0.5) | ((rest == 0.5) & (out % 2 == 1)))
        else:
            out = self.total
        return constant(out.astype(self.dtype))

    def unrounded(self) -> Array:
        """Return what was added so far as a float, to which others can be added."""
        total = self.total + self.first * self.weight + self.moved
        return constant(np.asarray(total, scalar_dtype(float)))


def _wide(x: Any) -> np.ndarray:  # noqa: ANN401 (an array at rest)
    host = np.asarray(x.to_host())
    return host.astype(np.uint64 if host.dtype == np.uint64 else np.int64)


def of_stacked_integers(
    xs: Array, weights: Array | None, known: Sequence[float | None] | None = None
) -> Array:
    """Return the same of traced leaves, stacked along axis 0.

    ``weights`` is a vector, of which ``known`` has the numbers that are; ``None`` is the mean.
    Where there are no 64 bits, weights that are not integers multiply differences in float32.
    """
    dtype = xs.dtype
    narrow = kind_of(dtype) == "bool" or dtype.itemsize < 4
    xs = convert(xs, np.dtype(np.int32) if narrow else dtype)
    if weights is None:
        out = _mean(xs)
    elif not is_inexact(weights.dtype):
        out = tensordot(convert(weights, xs.dtype), xs, 1)
    else:
        out = _nearest(xs, weights, known or [None])
    return convert(out, dtype)


def _mean(xs: Array) -> Array:
    """Quotients and remainders are added up apart, which fits where their sum would not."""
    n = constant(np.asarray(xs.shape[0], xs.dtype))
    rest = remainder(xs, n)
    rest = where(lt(rest, 0), add(rest, n), rest)
    whole = reduce_sum(divide(subtract(xs, rest), n), (0,))
    rest = reduce_sum(rest, (0,))
    left = remainder(rest, n)
    whole = add(whole, divide(subtract(rest, left), n))
    # left > n - left, and not 2 left > n, which might not fit
    other = subtract(n, left)
    return _round(whole, gt(left, other), eq(left, other))


def _nearest(xs: Array, weights: Array, known: Sequence[float | None]) -> Array:
    """Σ w x = Σ w (x - x₀) + (Σ w) x₀, of which the whole multiples of x₀ stay integers."""
    numbers = [w for w in known if w is not None]
    if len(numbers) == len(known):
        multiple = int(np.rint(sum(numbers)))
        spare: Any = sum(numbers) - multiple
    else:
        multiple, spare = 1, subtract(reduce_sum(weights, (0,)), 1)
    first = member_at(xs, 0, 0)
    across = of_rank(first, xs.ndim)
    up = ge(xs, across)
    bits = np.dtype(f"u{xs.dtype.itemsize}")  # in which a difference of any two fits
    a, b = convert(xs, bits), convert(across, bits)
    size = convert(where(up, subtract(a, b), subtract(b, a)), weights.dtype)
    moved = tensordot(weights, where(up, size, negative(size)), 1)
    moved = add(moved, multiply(convert(first, weights.dtype), spare))
    below = floor(moved)
    rest = subtract(moved, below)
    signed = convert(below, np.dtype(f"i{xs.dtype.itemsize}"))
    whole = add(multiply(first, multiple), convert(signed, xs.dtype))
    return _round(whole, gt(rest, 0.5), eq(rest, 0.5))


def _round(whole: Array, up: Array, half: Array) -> Array:
    odd = eq(bitwise_and(whole, constant(np.ones((), whole.dtype))), 1)
    return where(up | (half & odd), add(whole, constant(np.ones((), whole.dtype))), whole)
