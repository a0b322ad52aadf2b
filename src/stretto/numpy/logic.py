"""Logical operations, element by element."""

from __future__ import annotations

import numpy as np

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import bitwise
from stretto._engine.ops.convert import convert

__all__ = ["logical_and", "logical_not", "logical_or", "logical_xor"]

_BOOL = np.dtype(bool)


# Truth


def truth(x: ArrayLike, caller: str, argument: str = "x") -> Array:
    """Say whether each element is not zero."""
    return convert(as_value(x, caller, argument), _BOOL)


def mask_of_where(where: ArrayLike, caller: str) -> Array:
    """The argument ``where`` as a mask; raises ``TypeError`` for what is not boolean."""
    mask = as_value(where, caller, "where")
    if mask.type.kind != "bool":
        raise TypeError(
            f"{caller}: where must be boolean, got {mask.type}; compare its elements (where > 0), "
            "or convert it with .astype(bool)"
        )
    return mask


def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether both elements are true (not zero).

    Args:
        x: an array, or a number.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's ``logical_and``.

    >>> import stretto.numpy as snp
    >>> snp.logical_and(snp.array([True, False]), 1)
    Array([ True, False], dtype=bool)
    """
    return bitwise.bitwise_and(truth(x, "logical_and"), truth(y, "logical_and", "y"))


@described_like(logical_and)
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether either element is true (not zero).

    As NumPy's ``logical_or``.

    >>> import stretto.numpy as snp
    >>> snp.logical_or(snp.array([True, False]), 1)
    Array([ True,  True], dtype=bool)
    """
    return bitwise.bitwise_or(truth(x, "logical_or"), truth(y, "logical_or", "y"))


@described_like(logical_and)
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether exactly one element is true (not zero).

    As NumPy's ``logical_xor``.

    >>> import stretto.numpy as snp
    >>> snp.logical_xor(snp.array([True, False]), 1)
    Array([False,  True], dtype=bool)
    """
    return bitwise.bitwise_xor(truth(x, "logical_xor"), truth(y, "logical_xor", "y"))


def logical_not(x: ArrayLike, /) -> Array:
    """Say whether each element is false (zero).

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's ``logical_not``.

    >>> import stretto.numpy as snp
    >>> snp.logical_not(snp.array([0, 3]))
    Array([ True, False], dtype=bool)
    """
    return bitwise.bitwise_not(truth(x, "logical_not"))
