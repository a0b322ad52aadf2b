"""``jax.flatten_util``: dictionaries come back sorted, as from JAX's trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto.compat.jax import trees
from stretto.tree import ravel as ravelled

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves as one vector, and the function from such a vector to the tree."""
    leaves, structure = trees.flatten(pytree)
    vector, back = ravelled(leaves)
    return vector, lambda flat: structure.unflatten(back(flat))
