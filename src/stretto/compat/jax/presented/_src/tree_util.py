"""``jax._src.tree_util``."""

from stretto.compat.jax.naming import names_of
from stretto.compat.jax.trees import ENTRIES as _registry

__all__ = ["_registry"]

__getattr__, __dir__ = names_of("stretto.compat.jax.presented.tree_util")
