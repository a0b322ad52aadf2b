"""``jax.experimental.layout``."""

from stretto.as_jax.refused import RefusedName

__all__ = ["Format", "Layout"]

_WHY = "the layout of arrays in memory is the compiler's"
Format = Layout = RefusedName("jax.experimental.layout.Format", _WHY)
