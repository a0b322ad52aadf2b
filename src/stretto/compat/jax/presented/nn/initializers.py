"""``jax.nn.initializers``."""

from stretto.compat.jax.draws import drawing_names_of

__getattr__, __dir__ = drawing_names_of("stretto.compat.jax.initializers")
