"""``stop_gradient``: the identity, with a derivative of zero.

It holds no program, but takes trees, so it stands here and not in ``ops``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import CARRIED, NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.program import Atom, Equation
from stretto._engine.core.types import ArrayType

T = TypeVar("T")


class StopGradient(Primitive):
    """The operand, with a derivative of zero."""

    padded = CARRIED

    light = True
    same = True
    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        """Each element is made of those in its place."""
        return True

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """Find the operand itself: derivatives have been taken."""
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        """Write no operation: the operand itself."""
        return x

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Do the same, wherever the axis is."""
        return self(*args), axes[0]


STOP_GRADIENT = StopGradient()


def stop_gradient(x: T) -> T:
    """Return a tree as it is, with a derivative of zero.

    Args:
        x: a tree of arrays.

    Returns:
        The same values.

    Raises:
        TypeError: a leaf is not an array.

    >>> import stretto as st
    >>> float(st.grad(lambda x: x * st.lax.stop_gradient(x))(3.0))
    3.0
    """
    return tree.map(lambda leaf: STOP_GRADIENT(as_value(leaf, "stop_gradient")), x)
