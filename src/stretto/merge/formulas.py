"""The formulas of methods: what becomes of one place in several arrays.

They are pure functions of arrays, element by element, for blocks of files (``methods``) and for
trees in memory (``st.ensemble``), where they are differentiated and mapped. Where a product is
added to something, ``times`` multiplies: blocks of files need a product that is rounded alike on
all machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from stretto import numpy as snp
from stretto._engine.core.typing import Array

__all__ = ["OfZero", "agreeing", "by_precision", "drawn", "elected", "kept_count", "large", "only",
           "product", "sum_of"]  # fmt: skip

OfZero: TypeAlias = Literal["positive", "none"]
"""The sign that a sum of 0 elects."""

Times: TypeAlias = Callable[[Array, Any], Array]


def product(x: Array, y: Any) -> Array:
    """Multiply, as the compiler likes."""
    return x * y


def sum_of(arrays: Sequence[Array]) -> Array:
    """Add up arrays, from the first to the last."""
    return sum(arrays[1:], arrays[0])


# What is kept


def kept_count(share: float, size: int) -> int:
    """Return how many elements a share is, at least one.

    >>> kept_count(0.5, 7), kept_count(0.01, 7)
    (3, 1)
    """
    return max(1, int(share * size))


def large(x: Array, least: Any) -> Array:
    """Say where magnitudes are at least so large: what TIES keeps."""
    return abs(x) >= least


def drawn(noise: Array, density: Any) -> Array:
    """Say where uniform numbers from 0 to 1 are below a share: what DARE keeps."""
    return noise < density


def only(x: Array, keep: Array, scale: Any = None, times: Times = product) -> Array:
    """Return what is kept, multiplied if that is asked, and 0 elsewhere."""
    return snp.where(keep, x if scale is None else times(x, scale), 0)


# Signs


def agreeing(arrays: Sequence[Array], of_zero: OfZero = "positive") -> list[Array]:
    """Return for each where its sign is that of the sum."""
    total = sum_of(arrays)
    positive = total >= 0
    agree = [snp.where(positive, x > 0, x < 0) for x in arrays]
    return agree if of_zero == "positive" else [a & (total != 0) for a in agree]


def elected(
    arrays: Sequence[Array], weights: Sequence[Any], of_zero: OfZero = "positive"
) -> tuple[Array, Array]:
    """Return the sum of those with the sum's sign, and the sum of their weights."""
    agree = agreeing(arrays, of_zero)
    total = sum_of([snp.where(a, x, 0) for a, x in zip(agree, arrays, strict=True)])
    return total, sum_of([snp.where(a, w, 0) for a, w in zip(agree, weights, strict=True)])


# Averages


def by_precision(
    arrays: Sequence[Array],
    precisions: Sequence[Array],
    weights: Sequence[Any],
    least: Any,
    times: Times = product,
) -> Array:
    """Return Σ w F x / Σ w F, with F raised to ``least`` where it is smaller."""
    shares = [times(snp.maximum(f, least), w) for f, w in zip(precisions, weights, strict=True)]
    return sum_of([times(x, s) for x, s in zip(arrays, shares, strict=True)]) / sum_of(shares)
