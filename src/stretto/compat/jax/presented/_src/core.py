"""``jax._src.core``: what is public in ``jax.extend.core`` and ``jax.core``."""

from stretto.compat.jax.naming import names_of

__getattr__, __dir__ = names_of(
    "stretto.compat.jax.presented.extend.core", "stretto.compat.jax.presented.core"
)
