"""``jax.interpreters.batching``."""

from stretto.as_jax.naming import names_of

__getattr__, __dir__ = names_of("stretto.as_jax.jaxprs.batching")
