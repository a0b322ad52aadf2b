"""``jax._src.core``: what is public in ``jax.extend.core`` and ``jax.core``."""

from stretto.as_jax.naming import names_of

__getattr__, __dir__ = names_of(
    "stretto.as_jax.presented.extend.core", "stretto.as_jax.presented.core"
)
