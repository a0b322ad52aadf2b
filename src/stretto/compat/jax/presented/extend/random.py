"""``jax.extend.random``."""

from stretto.compat.jax.refused import RefusedName
from stretto.random.implementations import Implementation as PRNGImpl

__all__ = ["PRNGImpl", "define_prng_impl"]

define_prng_impl = RefusedName(
    "jax.extend.random.define_prng_impl", "the implementations of keys are those of st.random"
)
