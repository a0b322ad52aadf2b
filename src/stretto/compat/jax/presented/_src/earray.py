"""``jax._src.earray``."""

from stretto.random.key_arrays import KeyArray as EArray

__all__ = ["EArray"]
