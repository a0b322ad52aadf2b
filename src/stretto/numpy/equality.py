"""Compare whole arrays, exactly or nearly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.sizes import alike
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import NUMERIC, eager
from stretto._engine.ops.comparison import full
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto.numpy.creation import listed
from stretto.numpy.logic import equal, isclose, isnan
from stretto.numpy.reductions import all

__all__ = ["allclose", "array_equal", "array_equiv"]

_BOOL = np.dtype(bool)


@described_like(isclose)
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Say whether all elements of two arrays are close, as ``isclose`` defines it.

    Returns:
        A boolean of rank 0.

    As NumPy's ``allclose``.

    >>> import stretto.numpy as snp
    >>> bool(snp.allclose(snp.array([1.0]), 1.000001))
    True
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(
    a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any], equal_nan: bool = False
) -> Array:
    """Say whether two arrays have the same shape and equal elements.

    Args:
        a1: an array, or nested lists of numbers.
        a2: the array to compare with.
        equal_nan: whether NaN equals NaN.

    Returns:
        A boolean of rank 0.

    As NumPy's ``array_equal``.

    >>> import stretto.numpy as snp
    >>> bool(snp.array_equal(snp.array([1, 2]), snp.array([1, 3])))
    False
    """
    x, y = listed(a1, "array_equal", "a1"), listed(a2, "array_equal", "a2")
    return _array_equal(x, y, equal_nan=bool(equal_nan))


@eager(np.array_equal, NUMERIC, _BOOL)
def _array_equal(x: Array, y: Array, *, equal_nan: bool) -> Array:
    pairs = zip(x.shape, y.shape, strict=False)
    if x.ndim != y.ndim or False in [alike(n, m, "array_equal") for n, m in pairs]:
        return full((), False, np.dtype(bool))
    same: Any = equal(x, y)
    if not equal_nan:
        return all(same)
    missing: Any = isnan(x)
    return all(same | (missing & isnan(y)))


def array_equiv(a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any]) -> Array:
    """Say whether two arrays broadcast to one shape and have equal elements there.

    Args:
        a1: an array, or nested lists of numbers.
        a2: the array to compare with.

    Returns:
        A boolean of rank 0; False where the shapes do not broadcast.

    As NumPy's ``array_equiv``.

    >>> import stretto.numpy as snp
    >>> bool(snp.array_equiv(snp.array([1, 2]), snp.array([[1, 2], [1, 2]])))
    True
    """
    x, y = listed(a1, "array_equiv", "a1"), listed(a2, "array_equiv", "a2")
    for n, m in zip(x.shape[::-1], y.shape[::-1], strict=False):
        if 1 not in (n, m):
            alike(n, m, "array_equiv")
    try:
        broadcast_shapes("array_equiv", x.shape, y.shape)
    except ValueError:
        return full((), False, np.dtype(bool))
    return all(equal(x, y))
