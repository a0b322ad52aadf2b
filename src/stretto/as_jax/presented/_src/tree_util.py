"""``jax._src.tree_util``."""

from stretto.as_jax.naming import names_of
from stretto.as_jax.trees import ENTRIES as _registry

__all__ = ["_registry"]

__getattr__, __dir__ = names_of("stretto.as_jax.presented.tree_util")
