"""Zeros that are known without being computed, and how users' derivative rules see them.

Inside this package a zero tangent or cotangent is ``None``. A user's rule gets an array of zeros
instead, or a ``SymbolicZero`` if it asks for these.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import float0, is_inexact
from stretto._engine.ops.comparison import full


@dataclasses.dataclass(frozen=True)
class SymbolicZero:
    """A tangent or cotangent that is known to be zero, so that nothing was computed for it.

    Rules given with ``symbolic_zeros=True`` get it as a leaf, and may return it. The dtype is
    float0 where the value is an integer or a boolean.

    Args:
        shape: the sizes of the axes.
        dtype: the dtype.

    >>> SymbolicZero((2,), np.dtype("float32"))
    SymbolicZero(shape=(2,), dtype=float32)
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        dtype = "float0" if self.dtype == float0 else self.dtype.name
        return f"SymbolicZero(shape={self.shape}, dtype={dtype})"


@dataclasses.dataclass(frozen=True)
class CustomVJPPrimal:
    """A leaf as ``fwd`` gets it with ``symbolic_zeros=True``.

    Args:
        value: the value.
        perturbed: whether it is differentiated by.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(x: Any) -> Any:
    """Replace each ``CustomVJPPrimal`` of a tree by its value.

    Args:
        x: the tree, as ``fwd`` gets it with ``symbolic_zeros=True``.

    Returns:
        The tree of values.

    >>> custom_vjp_primal_tree_values({"x": CustomVJPPrimal(1.0, True), "n": 2})
    {'x': 1.0, 'n': 2}
    """
    return tree.map(lambda leaf: leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf, x)


def zero_tangent(value: Any) -> Any:
    """Return the zero of the tangent space of a value: float0 for integers and booleans.

    NumPy has no array of a size that varies: there the zero is symbolic.
    """
    if is_inexact(value.dtype):
        return full(value.shape, 0, value.dtype, value.weak_type)
    if any(map(is_size, value.shape)):
        return symbolic_zero(value)
    return np.zeros(value.shape, float0)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Make the zero tangent or cotangent for each leaf of a tree.

    Args:
        val: a tree of arrays.
        symbolic_zeros: whether to make ``SymbolicZero`` objects rather than arrays.

    Returns:
        The tree of zeros; their dtype is float0 where the leaf is an integer or a boolean.

    Raises:
        TypeError: a leaf is no array.

    >>> import stretto.numpy as snp
    >>> zero_from_primal(snp.ones(2))
    Array([0., 0.], dtype=float32)
    >>> zero_from_primal({"n": 1}, symbolic_zeros=True)
    {'n': SymbolicZero(shape=(), dtype=float0)}
    """

    def zero(leaf: Any) -> Any:
        value = as_value(leaf, "zero_from_primal", "a leaf")
        return symbolic_zero(value) if symbolic_zeros else zero_tangent(value)

    return tree.map(zero, val)


def symbolic_zero(value: Any) -> SymbolicZero:
    """Return the symbolic zero of the tangent space of a value or type."""
    return SymbolicZero(value.shape, value.dtype if is_inexact(value.dtype) else float0)


def given_or_zero(value: Any, tangent: Any, symbolic: bool) -> Any:
    """Return the tangent as a user's rule gets it, with a zero in place of ``None``."""
    if tangent is not None:
        return tangent
    return symbolic_zero(value) if symbolic else zero_tangent(value)
