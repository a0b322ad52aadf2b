"""Names for values, by which a checkpoint's policy knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import CARRIED, Primitive
from stretto._engine.core.types import ArrayType

T = TypeVar("T")


class Name(Primitive):
    """The operand, under a name."""

    padded = CARRIED

    light = True
    label: str
    hands_on = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return range(out.ndim)

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The value has the name; its tangent has none."""
        return self(*primals), tangents[0]

    def transpose(self, ct: Any, x: Any) -> tuple[Any]:
        return (ct,)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(*args), axes[0]


def checkpoint_name(x: T, name: str) -> T:
    """Name the leaves of a tree, so that policies of ``checkpoint`` know them.

    Outside a checkpoint it does nothing.

    Args:
        x: a tree of arrays.
        name: the name.

    Returns:
        The same tree.

    Raises:
        TypeError: ``name`` is not a string, or a leaf is not an array.

    >>> import stretto as st, stretto.numpy as snp
    >>> only = st.checkpoint_policies.save_only_these_names("wave")
    >>> f = st.checkpoint(lambda x: snp.sin(st.checkpoint_name(snp.sin(x), "wave")), policy=only)
    >>> float(st.grad(f)(0.0))
    1.0
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: name must be a string, got {type(name).__name__}")
    primitive = Name(name)
    return tree.map(lambda leaf: primitive(as_value(leaf, "checkpoint_name")), x)
