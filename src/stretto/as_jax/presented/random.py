"""``jax.random``."""

from stretto import random
from stretto.as_jax.draws import drawing_names_of, with_jax_draws
from stretto.as_jax.moved_keys import drawing_keys

__all__ = ["choice", "permutation"]

choice = drawing_keys(with_jax_draws(random.choice))
permutation = drawing_keys(random.permutation)

__getattr__, __dir__ = drawing_names_of("stretto.random")
