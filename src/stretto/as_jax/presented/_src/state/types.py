"""``jax._src.state.types``."""

from stretto.as_jax.avals import AbstractValue

__all__ = ["AbstractRef"]


class AbstractRef(AbstractValue):
    """That of mutable references, of which there are none."""
