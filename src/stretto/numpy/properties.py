"""Shapes, ranks, sizes and kinds of arrays, and of what can become one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Value, type_of
from stretto._engine.core.types import ArrayType
from stretto._engine.core.typing import ArrayLike, Tree
from stretto._engine.ops.broadcast import canonical_axes
from stretto.numpy.creation import listed

__all__ = ["iscomplexobj", "isrealobj", "isscalar", "iterable", "ndim", "shape", "size"]


def _type_of(x: ArrayLike | Sequence[Any], caller: str, argument: str) -> ArrayType:
    return type_of(
        listed(x, caller, argument) if isinstance(x, (list, tuple)) else x, caller, argument
    )


def _shape_of(x: ArrayLike | Sequence[Any], caller: str) -> tuple[int, ...]:
    """Return the sizes of the axes; NumPy's arrays may have any elements, such as strings."""
    return x.shape if isinstance(x, np.ndarray) else _type_of(x, caller, "a").shape


def shape(a: ArrayLike | Sequence[Any] | None) -> tuple[int, ...]:
    """Give the sizes of the axes.

    Args:
        a: an array, a ``ShapeDtypeStruct``, a number, or nested lists of numbers; None has no axes.

    Returns:
        A tuple of Python integers.

    As NumPy's ``shape``.

    >>> import stretto.numpy as snp
    >>> snp.shape(snp.ones((2, 3)))
    (2, 3)
    """
    return () if a is None else _shape_of(a, "shape")


def ndim(a: ArrayLike | Sequence[Any] | None) -> int:
    """Give the number of axes.

    Args:
        a: an array, a ``ShapeDtypeStruct``, a number, or nested lists of numbers; None has no axes.

    Returns:
        A Python integer.

    As NumPy's ``ndim``.

    >>> import stretto.numpy as snp
    >>> snp.ndim(snp.ones((2, 3)))
    2
    """
    return 0 if a is None else len(_shape_of(a, "ndim"))


def size(a: ArrayLike | Sequence[Any], axis: int | Sequence[int] | None = None) -> int:
    """Count the elements, or those along some axes.

    Args:
        a: an array, a ``ShapeDtypeStruct``, a number, or nested lists of numbers.
        axis: the axes to count along; all by default.

    Returns:
        A Python integer.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``size``.

    >>> import stretto.numpy as snp
    >>> snp.size(snp.ones((2, 3))), snp.size(snp.ones((2, 3)), 1)
    (6, 3)
    """
    shape = _shape_of(a, "size")
    return math.prod([shape[d] for d in canonical_axes(axis, len(shape), "size")])


def isscalar(element: object) -> bool:
    """Say whether something is a number, a string, or an array of rank 0.

    Args:
        element: anything.

    Returns:
        A Python boolean.

    As NumPy's ``isscalar``; for arrays of rank 0 as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.isscalar(3), snp.isscalar(snp.ones(1))
    (True, False)
    """
    if isinstance(element, (Value, np.ndarray)):
        return element.ndim == 0
    return np.isscalar(element)


def iterable(y: Tree) -> bool:
    """Say whether something has elements to iterate over, as all arrays except those of rank 0 do.

    Args:
        y: anything.

    Returns:
        A Python boolean.

    As NumPy's ``iterable``.

    >>> import stretto.numpy as snp
    >>> snp.iterable(snp.ones(2)), snp.iterable(snp.array(1.0)), snp.iterable([])
    (True, False, True)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def iscomplexobj(x: ArrayLike | Sequence[Any]) -> bool:
    """Say whether the dtype is complex.

    Args:
        x: an array, a ``ShapeDtypeStruct``, a number, or nested lists of numbers.

    Returns:
        A Python boolean.

    As NumPy's ``iscomplexobj``.

    >>> import stretto.numpy as snp
    >>> snp.iscomplexobj(snp.array([1j])), snp.iscomplexobj(1.0)
    (True, False)
    """
    return _type_of(x, "iscomplexobj", "x").kind == "complex"


@described_like(iscomplexobj)
def isrealobj(x: ArrayLike | Sequence[Any]) -> bool:
    """Say whether the dtype is not complex.

    As NumPy's ``isrealobj``.

    >>> import stretto.numpy as snp
    >>> snp.isrealobj(snp.array([1j])), snp.isrealobj(1.0)
    (False, True)
    """
    return not iscomplexobj(x)
