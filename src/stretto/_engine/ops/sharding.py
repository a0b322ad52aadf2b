"""Where arrays lie: there is one device, and every array lies there whole.

Layer 2 (ops). The arguments that say how to split an array over devices take None alone.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value

__all__ = ["refuse_sharding", "with_sharding_constraint"]


def refuse_sharding(caller: str, **arguments: Any) -> None:
    """Raise ``NotImplementedError`` unless the argument, passed by its name, is None."""
    for name, value in arguments.items():
        if value is not None:
            raise NotImplementedError(
                f"{caller}: {name} must be None, since arrays are not split over devices; got "
                f"{value}"
            )


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return a tree as it is, where no sharding is requested.

    Args:
        x: a tree of arrays.
        shardings: None, or a tree of None.

    Returns:
        The same values.

    Raises:
        TypeError: a leaf of ``x`` is not an array.
        NotImplementedError: a sharding is requested; arrays are not split over devices.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.lax.with_sharding_constraint(snp.ones(2), None)
    Array([1., 1.], dtype=float32)
    """
    caller = "with_sharding_constraint"
    for leaf in tree.leaves(shardings):
        refuse_sharding(caller, shardings=leaf)
    leaves, structure = tree.flatten(x)
    paths = tree.paths(x, "x")
    return tree.unflatten(
        structure, [as_value(leaf, caller, path) for leaf, path in zip(leaves, paths, strict=True)]
    )
