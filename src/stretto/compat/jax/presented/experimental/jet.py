"""``jax.experimental.jet``."""

from stretto import jet

__all__ = ["jet"]
