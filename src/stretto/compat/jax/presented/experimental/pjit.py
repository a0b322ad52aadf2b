"""``jax.experimental.pjit``."""

from stretto.compat.jax.calls import jit as pjit
from stretto.lax import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
