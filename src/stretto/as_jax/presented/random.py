"""``jax.random``."""

from stretto import random
from stretto.as_jax.moved_keys import drawing_keys
from stretto.as_jax.naming import names_of

__all__ = ["choice", "permutation"]

choice = drawing_keys(random.choice)
permutation = drawing_keys(random.permutation)

__getattr__, __dir__ = names_of("stretto.random")
