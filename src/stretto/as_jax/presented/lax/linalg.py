"""``jax.lax.linalg``."""

from stretto.as_jax.naming import names_of

__getattr__, __dir__ = names_of("stretto.lax.linalg")
