"""``jax.nn``: functions of networks."""

from stretto.compat.jax.naming import names_of

__getattr__, __dir__ = names_of("stretto.compat.jax.nn")
