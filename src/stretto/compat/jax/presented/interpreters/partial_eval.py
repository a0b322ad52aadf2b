"""``jax.interpreters.partial_eval``."""

from stretto.compat.jax.naming import names_of

__getattr__, __dir__ = names_of("stretto.compat.jax.jaxprs.partial")
