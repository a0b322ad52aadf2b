"""``jax.numpy.linalg``."""

from stretto.compat.jax.naming import names_of

__getattr__, __dir__ = names_of("stretto.numpy.linalg")
