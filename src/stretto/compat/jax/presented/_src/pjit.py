"""``jax._src.pjit``."""

from stretto.compat.jax.calls import jit
from stretto.compat.jax.jaxprs.tables.named import primitive_of
from stretto.compat.jax.presented.lax import with_sharding_constraint

__all__ = ["jit", "jit_p", "pjit", "pjit_p", "sharding_constraint_p", "with_sharding_constraint"]

pjit = jit
jit_p = pjit_p = primitive_of("jit")
sharding_constraint_p = primitive_of("sharding_constraint")
