"""``jax.interpreters.partial_eval``."""

from stretto.as_jax.naming import names_of

__getattr__, __dir__ = names_of("stretto.as_jax.jaxprs.partial")
